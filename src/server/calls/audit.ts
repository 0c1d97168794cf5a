import * as z from "zod";
import type { DecisionLine, ToolServices } from "../../tools/context.ts";
import type { Tool } from "../../tools/registry.ts";
import type { Log } from "../log.ts";

/** One line of the audit: who called which tool, through which run, and how it ended. */
interface AuditLine {
  readonly requestId: string;
  readonly caller: string;
  readonly environment: string;
  readonly tool: string;
  readonly runId?: string | undefined;
  /** The status of the run; `error` where the call ended without one. */
  readonly outcome: string;
  readonly counts?: unknown;
}

/** Appends a line. */
export type Audit = (line: AuditLine | DecisionLine) => void;

/**
 * Appends lines one after another. No line holds a key: each passes `redact`. A line that cannot be written is an error in
 * the log, and goes there.
 */
export function auditInto(
  append: (line: string) => Promise<void>,
  { now, redact, log }: { readonly now: () => number; readonly redact: (line: string) => string; readonly log: Log },
): Audit & { readonly written: () => Promise<void> } {
  let turn = Promise.resolve();
  const audit = (given: AuditLine | DecisionLine): void => {
    const time = "at" in given ? {} : { time: new Date(now()).toISOString() };
    const line = redact(JSON.stringify({ ...time, ...given }));
    turn = turn
      .then(() => append(line))
      .catch((error: unknown) => log.error("a line of the audit could not be written", { error, line }));
  };
  return Object.assign(audit, { written: () => turn });
}

/** The fields of a report that the audit keeps. */
const report = z.object({ status: z.string(), runId: z.string().optional(), counts: z.unknown() });
/** The fields of an answer about event tests that the audit keeps. */
const tests = z.object({
  target: z.literal("configured"),
  status: z.string().default("done"),
  cases: z.number().optional(),
  matched: z.number().optional(),
  mismatched: z.number().optional(),
  unobservable: z.number().optional(),
});

/** Whether the audit keeps calls of a tool: of every tool that may change an API. */
export function isAudited({ effect }: Pick<Tool, "effect">): boolean {
  return effect === "adds" || effect === "changes" || effect === "tests";
}

/** A call for the audit. */
export interface AuditedCall {
  readonly tool: Pick<Tool, "name" | "effect">;
  readonly caller: string;
  readonly requestId: string;
  readonly services: Pick<ToolServices, "environment" | "runs">;
}

/**
 * Writes a line about a call that may have changed an API when it is answered, and another one when a run that goes
 * on after the answer has ended. `answer` is the structured answer; undefined where the call failed without a report.
 */
export async function auditCall(
  audit: Audit,
  { tool, caller, requestId, services: { environment, runs } }: AuditedCall,
  answer: Readonly<Record<string, unknown>> | undefined,
): Promise<void> {
  const line = { requestId, caller, environment, tool: tool.name };
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
  const { data: told } = report.safeParse(answer);
  if (told?.status === "planned") return;
  const { runId } = told ?? {};
  audit({ ...line, runId, outcome: told?.status ?? "error", counts: told?.counts });
  if (told?.status !== "running" || runId === undefined) return;
  const run = await runs.find(runId);
  if (run === undefined) return;
  await run.rest;
  audit({ ...line, runId, outcome: run.status(), counts: run.state.counts() });
}
