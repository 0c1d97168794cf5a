import * as z from "zod";
import { readCursor, rowsThatFit, writeCursor } from "../../render/page.ts";
import { renderReport, resultLine } from "../../render/report.ts";
import { runLine, runsText } from "../../render/runs.ts";
import type { ListedRun } from "../../runs/kind.ts";
import type { OUTCOMES } from "../../runs/outcome.ts";
import { objectResult, type RunStatus } from "../../runs/report.ts";
import { type ToolContext, timeLeft } from "../context.ts";
import { type ToolAnswer, type ToolDefinition, ToolError } from "../definition.ts";
import { restOrTime } from "../writing/follow-run.ts";
import { runOutput } from "../writing/write.ts";
import { ownRun, reportOf } from "./run-reports.ts";

/** The longest that a call waits for a run to go on, in milliseconds. */
const LONGEST_WAIT_MS = 25_000;

const STATUSES = [
  "succeeded",
  "partial",
  "failed",
  "unknown",
  "running",
  "interrupted",
  "cancelled",
  "needs_confirmation",
] as const;

const input = () =>
  z.strictObject({
    runId: z.string().optional().describe("Without it: the recent runs"),
    status: z.enum(STATUSES).optional().describe("Of recent runs: only these"),
    outcome: z.enum(["succeeded", "alreadyDone", "failed", "unattempted", "unknown", "pending"]).optional(),
    limit: z.int().min(1).max(1000).default(20),
    cursor: z.string().optional().describe("From the last answer"),
    waitMs: z
      .int()
      .min(0)
      .max(LONGEST_WAIT_MS)
      .optional()
      .describe(`Milliseconds, at most ${LONGEST_WAIT_MS}, to wait for a running run to finish`),
  });

const output = () => runOutput().extend({ runs: z.array(z.looseObject({})).optional(), cursor: z.string().optional() });

/** Shows runs: the recent ones, or one with its items. */
export const getRun = {
  name: "get_run",
  title: "Look at runs",
  description:
    "Shows one run with its items (by outcome, page by page), also while it is running; or lists the recent runs, " +
    "those of earlier sessions included.",
  toolset: "either",
  effect: "reads",
  idempotent: true,
  input,
  output,
  handler: ({ runId, status, outcome, limit, cursor, waitMs }, context) =>
    runId === undefined || runId === ""
      ? listRuns({ status, limit, cursor }, context)
      : showRun({ runId, status, outcome, limit, cursor, waitMs }, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

interface RunQuery {
  readonly runId: string;
  readonly status: RunStatus | undefined;
  readonly outcome: (typeof OUTCOMES)[number] | "pending" | undefined;
  readonly limit: number;
  readonly cursor: string | undefined;
  readonly waitMs: number | undefined;
}

async function showRun(query: RunQuery, context: ToolContext): Promise<ToolAnswer> {
  if (query.status !== undefined) {
    throw new ToolError(
      "status and runId were both given, but status is for the list of runs",
      "Give one of them. outcome chooses among the items of one run.",
    );
  }
  const run = await ownRun(query.runId, context);
  if (query.waitMs !== undefined && run.status() === "running")
    await restOrTime(run, Math.min(query.waitMs, timeLeft(context)), context);
  const asked = { runId: query.runId, outcome: query.outcome };
  const from = query.cursor ? readCursor(query.cursor, asked, z.int().min(0)) : 0;
  if (from === undefined) throw new ToolError("cursor is not one that this run gave", "Leave it out to begin anew.");
  const { state } = run;
  const page: number[] = [];
  let next = from;
  for (; next < state.objects.length && page.length < query.limit; next += 1) {
    if (query.outcome === undefined || state.standing(next) === query.outcome) page.push(next);
  }
  const results = page.map((object) => objectResult(state, object));
  const fitting = rowsThatFit(results, resultLine, FAILURES_ROOM);
  const end = fitting < page.length ? (page[fitting] ?? next) : next;
  const cursor = end < state.objects.length ? writeCursor(asked, end) : undefined;
  return renderReport({
    ...(await reportOf(run, context)),
    results: results.slice(0, fitting),
    page: { cursor },
  });
}

/** What the failures beside a page may take. */
const FAILURES_ROOM = "x".repeat(2500);

async function listRuns(
  {
    status,
    limit,
    cursor,
  }: { readonly status: RunStatus | undefined; readonly limit: number; readonly cursor: string | undefined },
  context: ToolContext,
): Promise<ToolAnswer> {
  const { environment } = context;
  const asked = { status };
  const before = cursor ? readCursor(cursor, asked, z.string()) : undefined;
  if (cursor && before === undefined) throw new ToolError("cursor is not one that this list gave", "Leave it out.");
  const runs: ReturnType<typeof rowOf>[] = [];
  let more = false;
  for await (const run of context.runs.list(context.caller)) {
    if ((before !== undefined && run.runId >= before) || (status !== undefined && run.status !== status)) continue;
    more = runs.length === limit;
    if (more) break;
    runs.push(rowOf(run));
  }
  const fitting = rowsThatFit(runs, runLine);
  const shown = runs.slice(0, fitting);
  const last = shown.at(-1);
  const next = (more || fitting < runs.length) && last !== undefined ? writeCursor(asked, last.runId) : undefined;
  return {
    structured: { environment, runs: shown, ...(next !== undefined && { cursor: next }) },
    text: runsText(shown, next),
    isError: false,
  };
}

function rowOf({ runId, tool, status, counts, startedAt, updatedAt }: ListedRun) {
  const at = (ms: number): string => new Date(ms).toISOString();
  return { runId, tool, status, counts, startedAt: at(startedAt), updatedAt: at(updatedAt) };
}
