import * as z from "zod";
import type { RestedRun } from "../runs/kind.ts";
import { callerName } from "../runs/store.ts";
import { isSaveKind } from "../saves/save-runs.ts";
import type { DecisionLine, Tool, ToolServices } from "../tools/define-tool.ts";
import type { Log } from "./log.ts";

/** An audit entry about the outcome of a run, or about a call that may have changed data in an API. */
interface OutcomeLine extends Pick<DecisionLine, "caller" | "project"> {
  /** The ID of the HTTP request or, for a call over stdio, of the call. Absent if it is not known in this process. */
  readonly requestId?: string | undefined;
  readonly environment: string;
  readonly tool: string;
  readonly runId?: string | undefined;
  readonly outcome: string;
  readonly counts?: unknown;
}

export type Audit = (line: OutcomeLine | DecisionLine) => void;

/** Returns a function that writes audit entries with the time and without secrets. Logs an error if writing fails. */
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

const report = z.object({ status: z.string(), runId: z.string().optional(), counts: z.unknown() });
const tests = z.object({
  target: z.literal("configured"),
  status: z.string().default("done"),
  cases: z.number().optional(),
  matched: z.number().optional(),
  mismatched: z.number().optional(),
  unobservable: z.number().optional(),
});

export function isAudited({ effect }: Pick<Tool, "effect">): boolean {
  return effect === "adds" || effect === "changes" || effect === "tests";
}

export interface AuditedCall {
  readonly tool: Pick<Tool, "name" | "effect">;
  readonly caller: string;
  readonly requestId: string;
  readonly services: Pick<ToolServices, "environment" | "project">;
}

const OPEN: ReadonlySet<string> = new Set(["running", "needs_confirmation"]);

/** Writes the entry of a call that may have changed data, unless its run does. `answer`: undefined if it failed. */
export function auditCall(
  audit: Audit,
  { tool, caller, requestId, services: { environment, project } }: AuditedCall,
  answer: Readonly<Record<string, unknown>> | undefined,
): void {
  const line = { requestId, caller, project: project.id, environment, tool: tool.name };
  if (tool.effect === "tests") {
    // Event tests send events to a real API only in live mode. Then even a failed call may have sent some.
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

/** Writes the audit entry of a run, unless it only exports data. `requestId`: of the call's request, if known. */
export function auditRun(
  audit: Audit,
  { kind, header, status, counts }: RestedRun,
  requestId: string | undefined,
): void {
  if (isSaveKind({ kind, header })) return;
  const { runId, caller, project, environment, call } = header;
  audit({ requestId, caller, project, environment, tool: call.tool, runId, outcome: status, counts });
}
