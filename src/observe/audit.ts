import * as z from "zod";
import type { RestedRun } from "../runs/kind.ts";
import { callerName } from "../runs/store.ts";
import { isOfSaves } from "../saves/save-runs.ts";
import type { DecisionLine, ToolServices } from "../tools/context.ts";
import type { Tool } from "../tools/registry.ts";
import type { Log } from "./log.ts";

/**
 * A line of the audit about a run that ended, or about a call without a run that may have changed an API: who called
 * which tool, and the outcome.
 */
interface OutcomeLine extends Pick<DecisionLine, "caller" | "project"> {
  /** Absent if no request led to it, or if another process received the request. */
  readonly requestId?: string | undefined;
  readonly environment: string;
  readonly tool: string;
  readonly runId?: string | undefined;
  /** The status of the run; `error` if the call ended without a run. */
  readonly outcome: string;
  readonly counts?: unknown;
}

/** Appends a line. */
export type Audit = (line: OutcomeLine | DecisionLine) => void;

/**
 * Appends lines, each with its time and its caller as people know it. Each passes `redact`, so that it contains no key.
 * The log gets lines that cannot be written.
 */
export function auditInto(
  append: (line: string) => Promise<void>,
  { now, redact, log }: { readonly now: () => number; readonly redact: (line: string) => string; readonly log: Log },
): Audit & { readonly written: () => Promise<void> } {
  let turn = Promise.resolve();
  const audit = (given: OutcomeLine | DecisionLine): void => {
    const at = new Date(now()).toISOString();
    const line = redact(JSON.stringify({ at, ...given, caller: callerName(given.caller) }));
    turn = turn
      .then(() => append(line))
      .catch((error: unknown) => log.error("a line of the audit could not be written", { error, line }));
  };
  return Object.assign(audit, { written: () => turn });
}

/** The fields of a report that go into the audit log. */
const report = z.object({ status: z.string(), runId: z.string().optional(), counts: z.unknown() });
/** The fields of an answer about event tests that go into the audit log. */
const tests = z.object({
  target: z.literal("configured"),
  status: z.string().default("done"),
  cases: z.number().optional(),
  matched: z.number().optional(),
  mismatched: z.number().optional(),
  unobservable: z.number().optional(),
});

/** Returns whether calls of a tool go into the audit log. This is so for every tool that may change an API. */
export function isAudited({ effect }: Pick<Tool, "effect">): boolean {
  return effect === "adds" || effect === "changes" || effect === "tests";
}

/** A call for the audit. */
export interface AuditedCall {
  readonly tool: Pick<Tool, "name" | "effect">;
  readonly caller: string;
  readonly requestId: string;
  readonly services: Pick<ToolServices, "environment" | "project">;
}

/** The statuses of runs that have not ended: their lines come later. */
const OPEN: ReadonlySet<string> = new Set(["running", "needs_confirmation"]);

/**
 * Writes a line when a call that may have changed an API is answered, unless it reports a run that has ended: the
 * process that ended the run has written that line. `answer` is undefined if the call failed without a report.
 */
export function auditCall(
  audit: Audit,
  { tool, caller, requestId, services: { environment, project } }: AuditedCall,
  answer: Readonly<Record<string, unknown>> | undefined,
): void {
  const line = { requestId, caller, project: project.id, environment, tool: tool.name };
  if (tool.effect === "tests") {
    // Event tests change an API only in live mode. A failed call may have sent some.
    if (environment !== "live") return;
    const { data } = tests.safeParse(answer);
    if (data !== undefined) {
      const { target, status: outcome, ...counts } = data;
      audit({ ...line, outcome, counts });
    } else if (answer === undefined) audit({ ...line, outcome: "error" });
    return;
  }
  const { data: reported } = report.safeParse(answer);
  if (reported?.status === "planned") return;
  const { runId, status = "error", counts } = reported ?? {};
  if (runId === undefined || OPEN.has(status)) audit({ ...line, runId, outcome: status, counts });
}

/** Writes a line about a run when it has ended; none about one that only reads. `requestId` is of the call, if known. */
export function auditRun(
  audit: Audit,
  { kind, header, status, counts }: RestedRun,
  requestId: string | undefined,
): void {
  if (isOfSaves({ kind, header })) return;
  const { runId, caller, project, environment, call } = header;
  audit({ requestId, caller, project, environment, tool: call.tool, runId, outcome: status, counts });
}
