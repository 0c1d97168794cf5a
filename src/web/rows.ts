import { approvalWords, approvedIn, declinedIn, personWords } from "../answers/approvals.ts";
import { groupFailures } from "../answers/failures.ts";
import { many } from "../answers/message-words.ts";
import type { ApprovalRun } from "../changes/approvals.ts";
import { isUndone, isWithdrawn, undoneByRun } from "../changes/change-kinds.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import { countsOfRows } from "../plans/undo-plan.ts";
import { cutText, thousands } from "../platform/text.ts";
import type { ListedRun, Run } from "../runs/kind.ts";
import { didCounts, summaryOf } from "../runs/report.ts";
import { callerName, undefinedIfUnreadable } from "../runs/store.ts";
import { callerContext } from "../tools/decide-run.ts";
import type { ToolServices } from "../tools/define-tool.ts";
import { isDryRun } from "../tools/get-run.ts";
import { documentOf } from "../tools/kept-plan.ts";
import { waitingAnywhere } from "../tools/write/awaiting-decision.ts";
import { changeLines, changeList, firstChanges } from "./changes.ts";
import { downloadOf, filesOf, planView, readingOf, requestList, savedBy, storyOf } from "./detail.ts";
import { failureRow, forAgent, problemList, readerOf } from "./failure-rows.ts";
import { fileAnswer } from "./page.ts";
import { ownWaitingRuns, type PageScope, type SeenRun, unlessDamaged, visibleRun, whyNotApprovable } from "./seen.ts";
import { actOf, itemsOf, titleOf, waitingTitle } from "./titles.ts";
import { objectsOf, undoOfRun, waitingOf, withOverlap } from "./waiting.ts";
import {
  type ChangeList,
  type EffectObjects,
  type ProblemList,
  RUN_STATUSES,
  type RunAction,
  type RunDetail,
  type RunRow,
  type UndoneRun,
} from "./wire.ts";

/** The maximum number of recent runs in a list: the default number of stored runs (TARGETING_MCP_KEEP_RUNS). */
const MAX_RUNS = 500;
const EXPIRED = "Nobody decided in time";
/** The reason why nothing can execute a run: see `canBeDriven`. */
export const ENDED =
  "Nothing can execute this here: it is of another project or environment, or no server runs for it. " +
  "Ask the agent to make the change again.";
/** The reason why a page with other settings than the run's server cannot execute the run. The server may be running. */
const OTHER_PROJECT =
  "This page lacks the address or the key of this run's project. Start targeting-mcp page with the settings of the " +
  "server that requested the change, or ask the agent to make the change again.";
export const STALE = "Changed since it was planned: ask the agent to plan it again.";
export const DAMAGED =
  "The journal of this run is damaged: the run may have sent all, some or none of its requests. It can be neither " +
  "resumed nor undone. Compare the targeting with the changes that you wanted.";
/** The reasons why a started run makes no progress. */
const STALLED = {
  onStore:
    "No server or worker executes this run now. Start targeting-mcp worker, or a server without " +
    "TARGETING_MCP_DRIVE=off, with the key of the run's project. The run then continues automatically.",
  onMachine: "The server that executed this run is no longer running. Resume continues it.",
} as const;

/** Returns rows of recent runs, of runs that may be unfinished, and of `ofOthers`. Omits dry runs. In any order. */
export async function runRows(shown: PageScope, ofOthers: readonly SeenRun[]): Promise<readonly RunRow[]> {
  const rows = (await Promise.all(ofOthers.map((seen) => foundRow(seen, shown)))).filter((row) => !isDryRun(row));
  const waits = new Map(ofOthers.map(({ run }) => [run.header.runId, run]));
  const found: ListedRun[] = [];
  for await (const listed of shown.services.runs.list(shown.caller)) {
    if (!isDryRun(listed)) found.push(listed);
    if (rows.length + found.length >= MAX_RUNS) break;
  }
  const names = withDeleted(await targetingNames(shown), found);
  const known = { names, waits, runs: new Map(found.map((listed) => [listed.runId, listed])) };
  for (const listed of found) rows.push(await listedRow(listed, known, shown));
  const all = rows.length < MAX_RUNS ? rows : [...rows, ...(await otherOpenRuns(rows, shown))];
  return withUndos(all).map((row) =>
    row.waiting ? { ...row, waiting: withOverlap(row.waiting, waits.get(row.runId), waits.values()) } : row,
  );
}

/** Adds to each completely undone run the ID of the run that undid it, unless the undo was undone, too. */
function withUndos(rows: readonly RunRow[]): readonly RunRow[] {
  const byId = new Map(rows.map((row) => [row.runId, row]));
  const undoneBy = new Map<string, string>();
  const timeOf = ({ startedAt, beganAt = startedAt }: RunRow) => beganAt;
  for (const undo of rows.toSorted((one, other) => timeOf(other) - timeOf(one))) {
    const { did, optionsInside = 0 } = byId.get(undo.undoes ?? "") ?? {};
    if (did === undefined || undo.did === undefined || undo.status !== "succeeded" || undoneBy.has(undo.runId))
      continue;
    const { created, changed, deleted } = undo.did;
    const isWhole = did.created - optionsInside <= deleted && did.changed <= changed && did.deleted <= created;
    if (isWhole && undo.undoes !== undefined) undoneBy.set(undo.undoes, undo.runId);
  }
  return rows.map((row) => ({ ...row, undoneBy: undoneBy.get(row.runId) }));
}

/** By ID: waiting runs (filled while rows are made), the last known names of targetings, and the listed runs. */
interface Known {
  readonly waits: Map<string, Run>;
  readonly names: ReadonlyMap<string, string>;
  readonly runs: ReadonlyMap<string, ListedRun>;
}

/** Returns the rows of own runs that may be unfinished or wait for approval and are not in `rows`. */
async function otherOpenRuns(rows: readonly RunRow[], shown: PageScope): Promise<readonly RunRow[]> {
  const known = new Set(rows.map(({ runId }) => runId));
  const more = (await shown.services.runs.open()).filter((runId) => !known.has(runId));
  const seen = await Promise.all(more.map((runId) => undefinedIfUnreadable(visibleRun(runId, shown))));
  return (await Promise.all(seen.flatMap((one) => (one?.isOwn ? [foundRow(one, shown)] : [])))).filter(
    (row) => !isDryRun(row),
  );
}

async function listedRow(listed: ListedRun, known: Known, shown: PageScope): Promise<RunRow> {
  const { runId, isDamaged } = listed;
  const waiting = statusOf(listed) === "needs_confirmation" ? await waitingAnywhere(runId, shown.services) : undefined;
  if (waiting !== undefined) known.waits.set(runId, waiting);
  const undone = waiting ? await undoneTitle(waiting, shown) : listedUndoneTitle(listed, known);
  const row = rowOf(listed, { names: known.names, waiting, undone }, shown.services.person);
  return {
    ...row,
    ...(waiting ? await waitingFields(waiting, row, shown, shown) : idleActions(listed, row.status, shown)),
    ...(isDamaged && { standsStill: DAMAGED, actions: [], undoUntil: undefined }),
  };
}

/** What a row needs that the summary of its run lacks. */
interface Beside {
  readonly names: Known["names"];
  /** The run, if it waits for approval. */
  readonly waiting?: ChangeRun | ApprovalRun | undefined;
  /** The title of the run that this run undoes. */
  readonly undone: string | undefined;
}

/** Returns the fields of a row, from its run's summary and `beside`. `reader`: the name of the person who sees it. */
function rowOf(listed: ListedRun, beside: Beside, reader: string | undefined): Omit<RunRow, "actions"> {
  const { runId, tool, caller, startedAt, updatedAt, about = {} } = listed;
  const { how, inside, names, undoes, client, person, fileName, plannedBy, beganAt, endedAt } = about;
  const { decided, isExpired, deletedTargetings: { options: lost = 0 } = {} } = about;
  // The options of a deleted targeting are no items of the run. The page counts them, as it does when they are created.
  const did = about.did && { ...about.did, deleted: about.did.deleted + lost };
  const counts = { ...NO_COUNTS, ...listed.counts };
  const status = statusOf(listed);
  return {
    ...{ runId, title: titleFrom(listed, beside), tool: tool === "" ? "unknown tool" : tool },
    ...{ caller: callerName(caller), client, requestedBy: person && personWords(person, reader) },
    ...{ startedAt, beganAt, updatedAt, endedAt },
    ...{ status, counts: { ...counts, items: counts.items + lost, succeeded: counts.succeeded + lost } },
    ...{ ...itemsOf({ tool, ...about }, inside ?? (lost > 0 ? { lost } : undefined)), fileName },
    ...{ targeting: targetingIn(listed, beside), names, did, optionsInside: inside?.succeeded },
    // Until a run has ended, these counts include pending changes.
    how: counts.pending > 0 ? undefined : how,
    isUndo: tool === "undo_run" || plannedBy === "undo_run" || undefined,
    undoes,
    decided: isExpired ? EXPIRED : decided && decisionWords(decided, reader),
    isDecidedOnPage: decided?.where === "page" || undefined,
    isDeclined: decided?.is === "declined" || undefined,
    isExpired,
  };
}

function statusOf({ status }: ListedRun): RunRow["status"] {
  return RUN_STATUSES.find((one) => one === status) ?? "unknown";
}

/** Returns the targeting of a run with its last known name. Undefined if the run has none or several. */
function targetingIn(
  { targetingId, tool, about }: ListedRun,
  { names, waiting }: Pick<Beside, "names" | "waiting">,
): RunRow["targeting"] {
  // A run that renamed only one targeting is shown with this targeting and its current name.
  const renamed = tool === "rename_targetings" ? about?.to : undefined;
  const [_id = targetingId] = renamed === undefined ? [] : ([...names].find(([, name]) => name === renamed) ?? []);
  return _id === undefined ? undefined : { _id, name: names.get(_id) ?? (waiting && nameIn(waiting)) ?? about?.within };
}

function titleFrom(listed: ListedRun, beside: Beside): string {
  const { tool, status, about: { inside, ...about } = {} } = listed;
  const { waiting, undone } = beside;
  const { _id, name = waiting && _id && `the targeting ${_id}` } = targetingIn(listed, beside) ?? {};
  const { did, plannedBy, deletedTargetings: { options, groups: groupsInside } = {} } = about;
  return titleOf({
    ...{ tool, status, ...about, options, groupsInside, targeting: name },
    ...workOf({ ...NO_COUNTS, ...listed.counts }, inside),
    ...(waiting
      ? waitingTitle(waiting, undone)
      : { plan: did && { isUndo: plannedBy === "undo_run", changes: did, of: undone } }),
  });
}

/** Returns the title of the run that a listed run undoes. Undefined if that run is not listed. */
function listedUndoneTitle({ about }: ListedRun, known: Known): string | undefined {
  const undone = known.runs.get(about?.undoes ?? "");
  return undone && titleFrom(undone, { names: known.names, undone: listedUndoneTitle(undone, known) });
}

/** Returns what a person can do with a listed run that does not wait for approval, and until when it can be undone. */
function idleActions(listed: ListedRun, status: RunRow["status"], shown: PageScope) {
  const { updatedAt, about } = listed;
  const actions = actionsOf(listed, shown);
  const { created = 0, changed = 0, deleted = 0 } = about?.did ?? {};
  if (UNSTARTED.has(status) || created + changed + deleted === 0) return { actions };
  const undoes = about?.isOver || shown.services.readOnly ? [] : (["undo"] as const);
  return { actions: [...actions, ...undoes], undoUntil: updatedAt + shown.services.keep.days * DAY_MS };
}

function decisionWords(
  { is, who, where }: NonNullable<NonNullable<ListedRun["about"]>["decided"]>,
  person: string | undefined,
): string | undefined {
  const channel = (["client", "view", "page", "token", "terminal"] as const).find((one) => one === where);
  if (channel === undefined) return undefined;
  return approvalWords(
    is === "declined"
      ? declinedIn(channel === "page" || channel === "view" ? channel : "client", who)
      : approvedIn(channel, who),
    person,
  );
}

function nameIn(run: Run): string | undefined {
  return isChangeRun(run) ? run.state.facts.withinName : undefined;
}

const DAY_MS = 86_400_000;

/** Returns how many items a run has and how many are done. Options in new targetings are counted apart (`options`). */
function workOf(
  { items, succeeded, alreadyDone, skipped = 0, pending }: RunRow["counts"],
  inside: NonNullable<ListedRun["about"]>["inside"],
) {
  const all = { items, done: succeeded + alreadyDone + skipped, pending };
  if (inside === undefined) return all;
  return { items: items - inside.items, done: all.done - inside.succeeded, options: inside.items };
}

/** Returns the details of a damaged run. Undefined if the caller has no such run. */
async function damagedDetail(runId: string, shown: PageScope): Promise<RunDetail | undefined> {
  const listed = await shown.services.runs.damaged(runId, shown.caller);
  return (
    listed && {
      run: await listedRow(listed, { names: new Map(), runs: new Map(), waits: new Map() }, shown),
      story: [],
      failures: [],
      downloads: [],
    }
  );
}

/** Returns a run with all its details. Undefined if it does not exist or this person may not see it. */
export async function runDetail(runId: string, shown: PageScope): Promise<RunDetail | undefined> {
  const seen = await unlessDamaged(visibleRun(runId, shown));
  if (seen === "damaged") return damagedDetail(runId, shown);
  if (seen === undefined) return undefined;
  const { run, isOwn } = seen;
  const { services } = seen.shown;
  const row = await foundRow(seen, shown);
  const failures = groupFailures(run.state, readerOf(row.actions.includes("resume"))).map(failureRow);
  const waiting = row.waiting && withOverlap(row.waiting, run, await ownWaitingRuns(shown));
  return {
    run: { ...row, waiting },
    story: storyOf(run, shown.services),
    reading: readingOf(run),
    ...{ failures, forAgent: forAgent(row, failures) },
    downloads: isOwn ? await filesOf(run, services) : [],
    saved: isOwn ? savedBy(run) : undefined,
    changes: await firstChanges(run, services),
    undone: isChangeRun(run) && isUndone(run.state) ? await undoneOf(undoneByRun(run.state), services) : undefined,
    undo:
      row.undoUntil !== undefined && isChangeRun(run) && !isUndone(run.state)
        ? await undoOfRun(run, services)
        : undefined,
    ...(run.header.call.tool === "apply_plan" && { plan: planView(await documentOf(runId, services), services) }),
  };
}

/** Describes how much of a run was undone by the run `by`. Has counts only if that run has succeeded. */
async function undoneOf(by: string | undefined, services: ToolServices): Promise<UndoneRun> {
  const found = by === undefined ? undefined : await undefinedIfUnreadable(services.runs.find(by));
  if (by === undefined || found?.status() !== "succeeded") return { by };
  const { wayBack } = await documentOf(by, services);
  if (wayBack === undefined) return { by };
  const { exact, caveat, notOurs, impossible, unresolved } = countsOfRows(wayBack.rows);
  const [undone, lost] = [exact + caveat, impossible + unresolved];
  const all = undone + notOurs + lost;
  const rest = [
    notOurs === 1 && "1 was kept since it was changed later",
    notOurs > 1 && `${thousands(notOurs)} were kept since they were changed later`,
    lost > 0 && `${thousands(lost)} could not be undone`,
    isChangeRun(found) && isUndone(found.state) && "that run was undone later",
  ].filter((words) => words !== false);
  const says = lost + notOurs === 0 ? "Undone" : `${thousands(undone)} of ${many(all, "change")} undone`;
  return { by, says, rest: rest.join("; ") || undefined };
}

/** Returns a file of a run as a download. Undefined if it does not exist or this person may not see it. */
export async function downloaded(runId: string, file: string, shown: PageScope): Promise<Response | undefined> {
  if (file === "list") return listedChanges(runId, shown);
  const run = await unlessDamaged(shown.services.runs.findOwn(runId, shown.caller));
  return run === undefined || run === "damaged" ? undefined : downloadOf(run, file, shown.services);
}

/** The maximum number of characters of a title in a file name. Systems accept about 250 bytes. */
const FILE_LETTERS = 80;

/**
 * Returns all changes of a run as a CSV file that is named after the run's title. Undefined if this person may not see
 * the run, or if it does not exist or is damaged.
 */
async function listedChanges(runId: string, shown: PageScope): Promise<Response | undefined> {
  const seen = await unlessDamaged(visibleRun(runId, shown));
  if (seen === undefined || seen === "damaged") return undefined;
  const { title } = await foundRow(seen, shown);
  return fileAnswer(`${cutText(title, FILE_LETTERS)}.csv`, changeLines(seen.run, seen.shown.services));
}

/** Returns the row of a run. `to` describes the person who sees the row. */
async function foundRow({ run, shown, isOwn }: SeenRun, to: PageScope): Promise<RunRow> {
  const { header, state } = run;
  const { runId, environment } = header;
  const listed = { runId, ...summaryOf(header, state, run.status()) };
  const waiting = await waitingAnywhere(runId, shown.services);
  const undone = await undoneTitle(waiting ?? run, shown);
  const names = await targetingNames(shown, listed.targetingId);
  const row = rowOf(listed, { names, waiting, undone }, to.services.person);
  return {
    ...{ ...row, environment, requests: state.requests, standsStill: await stalledReason(run, shown) },
    ...(waiting
      ? await waitingFields(waiting, row, shown, to)
      : isOwn
        ? await actionsWithUndo(run, actionsOf(listed, shown), shown)
        : { actions: [] }),
  };
}

/** Returns the title of the run that a plan undoes. Undefined if it undoes none or that run cannot be read. */
async function undoneTitle(run: Run, shown: PageScope): Promise<string | undefined> {
  const call = isChangeRun(run) ? run.header.call : undefined;
  const runId = call?.tool === "apply_plan" ? call.input.undoes : undefined;
  const found = runId === undefined ? undefined : await undefinedIfUnreadable(shown.services.runs.find(runId));
  return found && (await foundRow({ run: found, shown, isOwn: false }, shown)).title;
}

/**
 * Returns the last known names of targetings, by ID. If the targeting with the ID `wanted` has no name there, adds those
 * of the targetings that recent runs have deleted.
 */
async function targetingNames({ services, caller }: PageScope, wanted?: string): Promise<Known["names"]> {
  const names = new Map((await services.memory.recent()).map(({ _id, name }) => [_id, name]));
  if (wanted === undefined || names.has(wanted)) return names;
  const found: ListedRun[] = [];
  for await (const listed of services.runs.list(caller)) {
    found.push(listed);
    if (found.length >= MAX_RUNS) break;
  }
  return withDeleted(names, found);
}

/** Adds to the known names of targetings those of targetings that a run has deleted, so that earlier runs name them. */
function withDeleted(names: Known["names"], runs: readonly ListedRun[]): Known["names"] {
  const all = new Map(names);
  for (const { about } of runs) {
    for (const { _id, name } of about?.deletedTargetings?.first ?? []) if (!all.has(_id)) all.set(_id, name);
  }
  return all;
}

/** Returns the targeting of a run that waits for approval. Undefined if the run has none or several. */
export async function targetingOf(waiting: ChangeRun | ApprovalRun, shown: PageScope): Promise<RunRow["targeting"]> {
  const { header, state } = waiting;
  const listed = { runId: header.runId, ...summaryOf(header, state, waiting.status()) };
  return targetingIn(listed, { names: await targetingNames(shown), waiting });
}

/**
 * Returns why an interrupted run makes no progress. Undefined for other runs, and if the journal has the reason, the
 * run may continue here, and no process will continue it by itself.
 */
async function stalledReason(run: Run, { services: { runs } }: PageScope): Promise<string | undefined> {
  if (run.status() !== "interrupted") return undefined;
  const refusal = await runs.refusal(run);
  if (refusal !== undefined) return `It cannot continue here: ${refusal.message}.`;
  if (await runs.isToBeClaimed(run.header.runId)) return STALLED.onStore;
  return run.state.stopped === undefined ? STALLED.onMachine : undefined;
}

/** Returns whether a run is of the project and environment of `services`, and a process can execute such runs now. */
export async function canBeDriven(run: Pick<Run, "header">, shown: PageScope): Promise<boolean> {
  return isOurs(run, shown) && shown.services.runs.hasWorker(run.header.project);
}

function isOurs({ header }: Pick<Run, "header">, { services, project }: PageScope): boolean {
  const { changes, events, environment } = services;
  const api = header.call.tool === "run_event_tests" ? events : changes;
  return api !== undefined && header.project === project.id && header.environment === environment;
}

/** Returns why a process cannot execute a run. `to`: the scope of the person who sees the reason. */
export function whyNotDriven(run: Pick<Run, "header">, shown: PageScope, to: PageScope = shown): string {
  // An approver of a shared server cannot start it with other settings.
  return isOurs(run, shown) || to.approves !== undefined ? ENDED : OTHER_PROJECT;
}

/** Returns what a person can do with a run: `actions`, and undo if its changes can be undone. */
async function actionsWithUndo(
  run: Run,
  actions: readonly RunAction[],
  shown: PageScope,
): Promise<Pick<RunRow, "actions" | "disabled" | "undoUntil">> {
  const isDriven = await canBeDriven(run, shown);
  const refusal = await shown.services.runs.refusal(run);
  const goesBack = await canBeUndone(run, shown);
  const all = goesBack && !shown.services.readOnly ? [...actions, "undo" as const] : actions;
  const why = (action: RunAction): string | undefined => {
    if (action !== "undo" && action !== "resume") return undefined;
    if (!isDriven) return whyNotDriven(run, shown);
    return action === "resume" ? refusal && `${refusal.message}.` : undefined;
  };
  const off = all.map((action) => [action, why(action)] as const).filter(([, reason]) => reason !== undefined);
  return {
    ...{ actions: all, disabled: off.length > 0 ? Object.fromEntries(off) : undefined },
    undoUntil: goesBack ? run.state.updatedAt + shown.services.keep.days * DAY_MS : undefined,
  };
}

/** Returns whether a run made changes that can be undone. Some may be left after an undo that failed or was undone. */
async function canBeUndone(run: Run, { services }: PageScope): Promise<boolean> {
  if (!isChangeRun(run) || UNSTARTED.has(run.status()) || isWithdrawn(run.state)) return false;
  const { created = 0, changed = 0, deleted = 0, gone = 0 } = didCounts(run.state) ?? {};
  if (created + changed + deleted + gone === 0) return false;
  if (!isUndone(run.state)) return true;
  // Imported only when needed, because few runs were undone.
  const { isLeftToUndo } = await import("../tools/undo-run.ts");
  return isLeftToUndo(run, callerContext(run, services));
}

const UNSTARTED: ReadonlySet<string> = new Set(["running", "planned", "needs_confirmation"]);

/** Returns the fields of a row about the required approval. `to` describes the person who sees the row. */
async function waitingFields(
  run: ChangeRun | ApprovalRun,
  { targeting }: Pick<RunRow, "targeting">,
  shown: PageScope,
  to: PageScope,
): Promise<Pick<RunRow, "project" | "waiting" | "actions" | "disabled">> {
  const waits = waitingOf(run, { days: shown.services.keep.days, targeting });
  if (waits === undefined) return { actions: [] };
  const isDriven = await canBeDriven(run, shown);
  const refusal = isDriven ? await shown.services.runs.refusal(run) : undefined;
  const mayNot = isDriven
    ? (whyNotApprovable(run, to) ?? (refusal && `${refusal.message}.`))
    : whyNotDriven(run, shown, to);
  const why = waits.stale === undefined ? mayNot : STALE;
  const { elsewhere } = waits;
  const ended = isDriven || elsewhere !== undefined ? undefined : (true as const);
  return {
    ...{ project: isDriven ? shown.project.name : run.header.project, waiting: { ...waits, act: actOf(run), ended } },
    actions: shown.services.readOnly ? [] : elsewhere === undefined ? ["approve", "decline"] : ["decline"],
    disabled: why === undefined ? undefined : { approve: why },
  };
}

/** The lists of a run. Each function returns the requested page. Undefined if this person sees no such list. */
const LISTS = {
  async effect({ run, shown }: SeenRun, query: URLSearchParams): Promise<EffectObjects | undefined> {
    const waiting = await waitingAnywhere(run.header.runId, shown.services);
    const part = waiting?.state.facts.waits?.parts[Number(query.get("part"))];
    return part && objectsOf(part, query);
  },
  changes: ({ run, shown }: SeenRun, query: URLSearchParams): Promise<ChangeList> =>
    changeList(run, query, shown.services),
  async failures(seen: SeenRun, query: URLSearchParams): Promise<ProblemList | undefined> {
    if (!seen.isOwn) return undefined;
    const { actions } = await foundRow(seen, seen.shown);
    const { runs } = seen.shown.services;
    return problemList(seen.run, query, { canResume: actions.includes("resume"), runs });
  },
  requests: ({ run, shown }: SeenRun, query: URLSearchParams) => requestList(run, query, shown.services),
} as const;
export const LIST_NAMES: readonly (keyof typeof LISTS)[] = ["effect", "changes", "failures", "requests"];

export async function listOfRun(
  name: keyof typeof LISTS,
  { runId, query }: { readonly runId: string; readonly query: URLSearchParams },
  shown: PageScope,
) {
  const seen = await unlessDamaged(visibleRun(runId, shown));
  return seen === undefined || seen === "damaged" ? undefined : LISTS[name](seen, query);
}

function actionsOf({ status, open, about }: ListedRun, { services }: PageScope): readonly RunAction[] {
  if (services.readOnly) return [];
  if (status === "running") return ["cancel"];
  const isOpen = open && !about?.isOver;
  if (status === "cancelled" && isOpen) return ["resume"];
  return status === "interrupted" && isOpen ? ["resume", "cancel"] : [];
}

const NO_COUNTS = { items: 0, succeeded: 0, alreadyDone: 0, failed: 0, notApplied: 0, unknown: 0, pending: 0 };
