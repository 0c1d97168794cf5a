import * as z from "zod";
import { pageBudget, readCursor, renderAnswer, sizeOf, takeRows, writeCursor } from "../answers/budget.ts";
import { withFewPlaces } from "../answers/failures.ts";
import { rejectsUri, sheetCall } from "../answers/next-steps.ts";
import { type RunRow, runLine, runsText, startedNote } from "../answers/run-headline.ts";
import { renderReport, resultsUri } from "../answers/run-report.ts";
import { resultLine, shortened } from "../answers/run-results.ts";
import { isApproval } from "../changes/approvals.ts";
import { isChangeRun } from "../changes/change-run.ts";
import { thousands } from "../platform/text.ts";
import type { ListedRun, Run } from "../runs/kind.ts";
import { changedAt } from "../runs/outcome.ts";
import { countsOf, type ObjectResult, objectResult, RUN_STATUSES } from "../runs/report.ts";
import { placeOf, saveArguments } from "./arguments.ts";
import { type ToolAnswer, type ToolContext, type ToolDefinition, ToolError, timeLeft } from "./define-tool.ts";
import { planPageOf, shownPlan } from "./kept-plan.ts";
import { originalItemsOf } from "./original-items.ts";
import { sheetRunOf } from "./run-files.ts";
import { ownRun, reportOf, savedAnswer, undoNoteOf } from "./run-reports.ts";
import { waitsForDecision } from "./write/awaiting-decision.ts";
import { untilDecided } from "./write/on-page.ts";
import { waitForEnd } from "./write/within-call.ts";
import { runOutput } from "./write/write.ts";

const LONGEST_WAIT_MS = 25_000;

const input = () =>
  z.strictObject({
    runId: z.string().optional().describe("Without it, recent runs are listed"),
    status: z.enum(RUN_STATUSES).optional().describe("List only these runs"),
    tool: z.string().optional().describe("Only of this tool"),
    targetingId: z.string().optional().describe("Only of this targeting"),
    outcome: z
      .enum(["succeeded", "alreadyDone", "skipped", "failed", "notApplied", "unknown", "pending"])
      .optional()
      .describe("Only these items"),
    includeInput: z.boolean().optional().describe("Only items that were not done, with input"),
    limit: z.int().min(1).max(1000).optional().describe("Items or runs per answer. Default: 20; 50 with includeInput"),
    cursor: z.string().optional(),
    ...saveArguments("File to create: the imported sheet with results"),
    waitMs: z.int().min(0).max(LONGEST_WAIT_MS).optional().describe("Wait for the end of the run"),
  });

const output = () => runOutput().extend({ runs: z.array(z.looseObject({})).optional(), cursor: z.string().optional() });

type GetRun = z.output<ReturnType<typeof input>>;
type Asked = Omit<GetRun, "runId" | "status" | "tool" | "targetingId">;

export const getRun = {
  name: "get_run",
  title: "Look at runs",
  description:
    "Shows what happened in a run, such as an import: its rows by outcome, and why rows failed, page by page. Or lists recent runs.",
  toolset: "either",
  effect: "reads",
  idempotent: true,
  input,
  output,
  handler: ({ runId, ...asked }, context) => showRunOrList({ runId: runId || undefined, ...asked }, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

export function showRunOrList(
  { runId, status, tool, targetingId, ...page }: GetRun,
  context: ToolContext,
): Promise<ToolAnswer> {
  const ofList = { status, tool, targetingId };
  if (runId === undefined && page.saveTo) {
    throw new ToolError("saveTo was given without runId", "Give the runId of the run whose sheet is wanted.");
  }
  if (runId === undefined) return listRuns(ofList, page, context);
  const strange = Object.entries(ofList).find(([, value]) => value !== undefined)?.[0];
  if (strange === undefined) return showRun(runId, page, context);
  throw new ToolError(
    `${strange} and runId were both given, but ${strange} only filters the list of runs`,
    "Leave out one of the two. To filter the items of one run, use outcome.",
  );
}

async function showRun(runId: string, query: Asked, context: ToolContext): Promise<ToolAnswer> {
  const { outcome, includeInput = false } = query;
  const run = await waitForRun(await followResumedRun(await ownRun(runId, context), context), query.waitMs, context);
  if (query.saveTo) {
    const { savedResults } = await import("./result-sheet.ts");
    return savedResults(run, { outcome, saveTo: query.saveTo, delimiter: query.delimiter || undefined }, context);
  }
  const isAsked = isChangeRun(run) && context.changes?.asks(run) !== undefined;
  const isPlan = isChangeRun(run) && !run.header.dryRun && run.status() === "planned";
  if (isPlan && !isAsked && outcome === undefined && !includeInput) {
    const { cursor, limit } = query;
    return cursor === undefined ? shownPlan(run, context) : planPageOf(run, { cursor, limit }, context);
  }
  const asked = includeInput ? { runId, outcome, includeInput } : { runId, outcome };
  const from = placeOf("run", query.cursor, asked, { schema: z.int().min(0), beginning: 0 });
  const saved = savedAnswer(run, context);
  if (saved !== undefined) return saved;
  const { state } = run;
  const isWanted = (object: number): boolean => {
    const standing = state.standing(object);
    if (outcome !== undefined) return standing === outcome;
    // The input of items that were done is not shown, so `includeInput` leaves these items out.
    return !includeInput || (standing !== "succeeded" && standing !== "alreadyDone" && standing !== "skipped");
  };
  const wanted: number[] = [];
  for (let object = from; object < state.objects.length; object += 1) if (isWanted(object)) wanted.push(object);
  const page = wanted.slice(0, query.limit ?? (includeInput ? MAX_WITH_INPUT : MAX_SHOWN));
  const bodies = includeInput ? await originalItemsOf(run, page, context) : undefined;
  const rows = page.map((object) => rowOf(objectResult(state, object), shortened(bodies?.get(object)), includeInput));
  const picked = await reportOf(run, context);
  const started = startedNote(run.header.createdAt, run.header.client);
  const ownNotes = includeInput ? [] : [started, await undoNoteOf(run, context)].filter((note) => note !== undefined);
  // The groups of events by expected result are shown once, above the rows of all outcomes.
  const verdicts = outcome === undefined && !includeInput && from === 0 ? picked.verdicts : undefined;
  const whole = { ...picked, verdicts: verdicts ?? [], notes: [...(picked.notes ?? []), ...ownNotes] };
  // Only the first page has the reasons of failures and the notes.
  const report =
    from > 0
      ? { ...whole, failures: [], notes: [], file: undefined }
      : includeInput
        ? { ...whole, failures: whole.failures.map((failure) => withFewPlaces(failure, PLACES_BESIDE)) }
        : whole;
  const shortNote = (shown: number): readonly string[] => {
    if (query.limit === undefined || shown === rows.length) return [];
    const few = `${thousands(shown)} of the ${thousands(rows.length)} requested rows are shown, because an answer holds no more`;
    return [`${few}. All of them: ${allRowsOf(run, outcome, picked.hasRejects === true, context)}`];
  };
  const withShort = (shown: number) => ({ ...report, notes: [...(report.notes ?? []), ...shortNote(shown)] });
  const bare = renderReport({
    ...withShort(0),
    results: [],
    page: { cursor: "x".repeat(CURSOR_LETTERS), hasInput: includeInput },
  });
  const fitting = takeRows(rows, resultLine, pageBudget({ around: sizeOf(bare) + HEADING_TOKENS }));
  const end = wanted[fitting.length];
  const cursor = end === undefined ? undefined : writeCursor(asked, end);
  const shown = { cursor, matching: wanted.length, hasInput: includeInput };
  return renderReport({ ...withShort(fitting.length), results: fitting, page: shown });
}

/** Returns the call that saves a sheet with all rows of a run. If there is no such call, returns a resource address. */
function allRowsOf(run: Run, outcome: Asked["outcome"], hasRejects: boolean, { allowedDirs }: ToolContext): string {
  const { runId } = run.header;
  const found = sheetRunOf(run);
  // A sheet of events has only the rows that were not sent.
  const isWhole = found?.run !== undefined && allowedDirs.length > 0;
  if (isWhole) return sheetCall(runId, found.run.header.call.tool === "apply_plan" ? undefined : outcome);
  return hasRejects && outcome === "failed" ? rejectsUri(runId) : resultsUri(runId);
}

/** Waits until a run was decided and has ended: at most `waitMs` ms, within the time of the call. Returns the run. */
async function waitForRun(run: Run, waitMs: number | undefined, context: ToolContext): Promise<Run> {
  if (waitMs === undefined) return run;
  const { clock } = context;
  const until = clock.now() + Math.min(waitMs, timeLeft(context));
  const restOf = (some: Run): Promise<void> => waitForEnd(some, Math.max(0, until - clock.now()), context);
  if (run.status() === "running") await restOf(run);
  let found = run;
  if (waitsForDecision(run)) {
    await untilDecided(run.header.runId, { ...context, arrivedAt: clock.now(), waitMs: until - clock.now() });
    found = await followResumedRun(await ownRun(run.header.runId, context), context);
  }
  if (found.status() === "running") await restOf(found);
  return found;
}

/** If `run` is an approved request to resume a run, returns the resumed run. Otherwise returns `run`. */
export async function followResumedRun(run: Run, context: ToolContext): Promise<Run> {
  const goesOn = isApproval(run) && run.header.call.tool === "resume_run" && run.status() === "succeeded";
  return goesOn ? ownRun(run.header.call.input.about, context) : run;
}

const PLACES_BESIDE = 3;

/** How many rows a page has by default: without and with their input. */
const MAX_SHOWN = 20;
const MAX_WITH_INPUT = 50;
const CURSOR_LETTERS = 110;
const HEADING_TOKENS = 40;

/** Returns a row of the answer. A row with its input omits fields that the input or the list of failures has. */
function rowOf(
  result: ObjectResult,
  input: unknown,
  includeInput: boolean,
): ObjectResult & { readonly input?: unknown } {
  if (!includeInput) return result;
  const { uid, name, predicted, rule, observed, reason, ...place } = result;
  return input === undefined ? result : { ...place, input };
}

async function listRuns(
  asked: Pick<GetRun, "status" | "tool" | "targetingId">,
  { limit = MAX_SHOWN, cursor }: Asked,
  context: ToolContext,
): Promise<ToolAnswer> {
  const { environment } = context;
  const before = cursor ? readCursor(cursor, asked, z.string()) : undefined;
  if (cursor && before === undefined)
    throw new ToolError("cursor does not come from this list", "Leave cursor out to start at the beginning.");
  const { status, tool, targetingId } = asked;
  const isWanted = (run: ListedRun): boolean =>
    (before === undefined || run.runId < before) &&
    (status === undefined || run.status === status) &&
    (tool === undefined || run.tool === tool) &&
    (targetingId === undefined || run.targetingId === targetingId);
  const names = new Map((await context.memory.recent()).map(({ _id, name }) => [_id, name]));
  const runs: RunRow[] = [];
  let more = false;
  const dryRuns: string[] = [];
  for await (const run of context.runs.list(context.caller)) {
    const listed = run.status === "needs_confirmation" ? await currentRow(run, context) : run;
    if (!isWanted(listed)) continue;
    if (isDryRun(listed) && status !== "planned") {
      dryRuns.push(listed.runId);
      continue;
    }
    more = runs.length === limit;
    if (more) break;
    runs.push(listedRow(listed, names));
  }
  const shown = takeRows(runs, runLine, pageBudget());
  const last = shown.at(-1);
  const next = (more || shown.length < runs.length) && last !== undefined ? writeCursor(asked, last.runId) : undefined;
  // Dry runs that are older than the last shown run are counted on the next page.
  const omitted = dryRuns.filter((runId) => next === undefined || last === undefined || runId > last.runId).length;
  const left = `${more ? "at least " : ""}${thousands(runs.length - shown.length + Number(more))}`;
  return renderAnswer({ environment, runs: shown, cursor: next }, [runsText(shown, next, { dryRuns: omitted, left })]);
}

async function currentRow(listed: ListedRun, context: ToolContext): Promise<ListedRun> {
  const run = await ownRun(listed.runId, context);
  return { ...listed, status: run.status(), counts: countsOf(run.state), updatedAt: changedAt(run.header, run.state) };
}

export async function recentRuns(context: ToolContext): Promise<readonly RunRow[]> {
  const names = new Map((await context.memory.recent()).map(({ _id, name }) => [_id, name]));
  const runs: RunRow[] = [];
  for await (const run of context.runs.list(context.caller)) if (!isDryRun(run)) runs.push(listedRow(run, names));
  return runs;
}

/** Returns whether a run is a dry run that was not applied. Lists only show these for the status `planned`. */
export function isDryRun({ status, tool }: { readonly status: string; readonly tool: string }): boolean {
  return status === "planned" && tool !== "plan_targeting" && tool !== "undo_run";
}

function listedRow(run: ListedRun, names: ReadonlyMap<string, string>): RunRow {
  const { runId, tool, status, targetingId, counts, startedAt, updatedAt, isDamaged } = run;
  const at = (ms: number): string => new Date(ms).toISOString();
  const targetingName = targetingId === undefined ? undefined : names.get(targetingId);
  return {
    runId,
    ...(tool !== "" && { tool }),
    status,
    ...(targetingId !== undefined && { targetingId }),
    ...(targetingName !== undefined && { targetingName }),
    ...(isDamaged ? { error: { errorCode: "RUN_DAMAGED" } } : { counts }),
    startedAt: at(startedAt),
    updatedAt: at(updatedAt),
  };
}
