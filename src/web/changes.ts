import { many } from "../answers/message-words.ts";
import { isApiError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import { isWithdrawn } from "../changes/change-kinds.ts";
import { isChangeRun } from "../changes/change-run.ts";
import { thousands } from "../platform/text.ts";
import { findOptions } from "../reads/option-contents.ts";
import { readOptions } from "../reads/option-lists.ts";
import { type PlacedOption, placedOptions, withContexts } from "../reads/saved-options.ts";
import type { Run } from "../runs/kind.ts";
import type { OptionRecord } from "../spec/records.ts";
import type { ToolServices } from "../tools/define-tool.ts";
import { documentOf } from "../tools/kept-plan.ts";
import {
  changesOfPlan,
  cut,
  ITSELF,
  type Placed,
  rowsOfEffect,
  rowsOfEndedRun,
  type WholeSide,
} from "./change-rows.ts";
import { sumIn } from "./effect-parts.ts";
import { PAGE_ROWS, pageOf } from "./list-page.ts";
import type { ChangeList, ChangeRow, ChangeSide } from "./wire.ts";

// Lists the changes of a run as rows, each with the state before and after. The rows of a plan come from its document,
// those of an executed run from its journal, and those of any other run that waits for approval from the effect that is
// shown to the person. Of objects to delete, plan and effect contain only the number of Context IDs, so these objects
// are read from the service.

/** The maximum number of Context IDs on one side of a row. */
const MAX_IDS = 5;
/** The number of lines of a file that are sent at once. */
const LINES = 100;
/** How long a response waits for objects of the service, in ms. After that, it is sent without them (`isReading`). */
const READING_MS = 1500;

interface AllChanges extends Omit<ChangeList, "rows" | "total"> {
  /** The sub-options that moved to the top level because their group was deleted: names by ID, undefined if unknown. */
  readonly freedNames?: ReadonlyMap<string, string | undefined>;
  readonly rows: readonly Placed[];
  /** Set if the service could not be read now, so that Context IDs or names are missing. */
  readonly isUnread?: true;
}

/** Returns a page of the changes of a run in the targeting's order. `kind` and `search` of the query select rows. */
export async function changeList(run: Run, query: URLSearchParams, services: ToolServices): Promise<ChangeList> {
  const { rows, isUnread, freedNames, ...about } = await changesOfRun(run, services);
  const kind = query.get("kind") ?? "";
  const text = (query.get("search") ?? "").toLowerCase();
  const found = rows.filter((row) => (kind === "" || row.kind === kind) && (text === "" || holds(row, text)));
  const { rows: some, total } = pageOf(found, query);
  const groups = isUnstarted(run) ? groupsOf(rows) : undefined;
  return { rows: some.map((row) => shownRow(row, text)), total, ...about, ...(groups && { groups }) };
}

/** The maximum number of groups whose deleted options are counted separately. */
const MAX_GROUPS = 4;

/**
 * Counts deleted options by group, the largest first. Undefined if a whole targeting is deleted, or if no group loses
 * options.
 */
function groupsOf(rows: readonly Placed[]): ChangeList["groups"] {
  const counts = new Map<string | null, number>();
  for (const { kind, group, before } of rows) {
    if (kind !== "deleted") continue;
    if (before?.says === ITSELF) return undefined;
    if (group !== undefined && !before?.isGroup) counts.set(group, (counts.get(group) ?? 0) + 1);
  }
  if (counts.size === 0 || (counts.size === 1 && counts.has(null))) return undefined;
  const sorted = [...counts].toSorted(([, one], [, other]) => other - one);
  const rest = sorted.slice(MAX_GROUPS);
  return [
    ...sorted.slice(0, MAX_GROUPS).map(([name, count]) => ({ name, count })),
    ...(rest.length > 0 ? [{ more: rest.length, count: rest.reduce((sum, [, count]) => sum + count, 0) }] : []),
  ];
}

/** Returns the first changes, deletions first, of a run that has not started or was not approved. */
export async function firstChanges(run: Run, services: ToolServices): Promise<ChangeList | undefined> {
  if (!isUnstarted(run) && !(isChangeRun(run) && isWithdrawn(run.state))) return undefined;
  const { rows, ...about } = await allChanges(run, true, services);
  const sorted = rows.toSorted((one, other) => Number(other.kind === "deleted") - Number(one.kind === "deleted"));
  return { rows: sorted.slice(0, PAGE_ROWS).map((row) => shownRow(row, "")), total: rows.length, ...about };
}

function shownRow({ _id, lacksIds, isInside, before, after, ...row }: Placed, text: string): ChangeRow {
  return {
    ...row,
    ...(before && { before: shownSide(before, text) }),
    ...(after && { after: shownSide(after, text) }),
  };
}

/** Returns one side of a row with its first Context IDs. Those that match the search come first. */
function shownSide({ all, ...side }: WholeSide, text: string): ChangeSide {
  if (all === undefined) return side;
  const found = text === "" ? [] : all.filter((id) => id.toLowerCase().includes(text)).slice(0, MAX_IDS);
  return { ...side, contextIds: [...new Set([...found, ...all.slice(0, MAX_IDS)])].slice(0, MAX_IDS).map(cut) };
}

const COLUMNS = ["Change", "Group", "Name", "New name", "Context IDs removed", "Context IDs added", "Note"];
const WORDS = { deleted: "Deleted", changed: "Changed", created: "New" } as const;

/** Returns all changes of a run as a CSV file, with all Context IDs that are known. */
export async function* changeLines(run: Run, services: ToolServices): AsyncGenerator<Uint8Array> {
  const { rows, freed: { count, names } = { count: 0, names: [] } } = await madeChanges(run, services).whole;
  const { csvLine, BYTE_ORDER_MARK } = await import("../files/delimited.ts");
  const { inertCell } = await import("../files/written-rows.ts");
  const line = (cells: readonly string[]) => csvLine(cells.map(inertCell));
  yield Buffer.from(BYTE_ORDER_MARK + line(COLUMNS));
  for (let from = 0; from < rows.length; from += LINES) {
    const some = rows.slice(from, from + LINES).map((row) => line(cellsOf(row)));
    yield Buffer.from(some.join(""));
  }
  const unnamed = count > names.length ? [`${thousands(count - names.length)} more`] : [];
  for (const name of [...names, ...unnamed])
    yield Buffer.from(line(["Moved", "", name, "", "", "", "to the top level, because its group is deleted"]));
}

function cellsOf({ kind, group, before, after }: Placed): readonly string[] {
  const name = (before ?? after)?.name ?? "";
  const isRenamed = after !== undefined && after.name !== name;
  const moved = before?.within === after?.within ? [] : [`moved from ${before?.within ?? "the top level"}`];
  const unread = [before, after].flatMap((side) =>
    side?.all === undefined && side?.count ? [`${many(side.count, "Context ID")}, not read`] : [],
  );
  const notes = [...new Set([before?.says, after?.says].filter((says) => says !== undefined)), ...moved, ...unread];
  const lists = [before, after].map((side) => (side?.all ?? []).join("|"));
  return [WORDS[kind], group ?? "", name, isRenamed ? after.name : "", ...lists, notes.join("; ")];
}

/** The changes of the runs that pages requested last, by run ID. A page requests the list of a run part by part. */
const last = new Map<string, Made>();
const MAX_KEPT = 4;

/** The changes of a run. `changes`: from the store only. `whole`: with the deleted objects, read from the service. */
interface Made {
  readonly mark: string;
  readonly changes: Promise<AllChanges>;
  readonly whole: Promise<AllChanges>;
}

async function changesOfRun(run: Run, services: ToolServices): Promise<AllChanges> {
  const made = madeChanges(run, services);
  const late = new Promise<undefined>((resolve) => {
    setTimeout(() => resolve(undefined), READING_MS).unref();
  });
  return (await Promise.race([made.whole, late])) ?? { ...(await made.changes), isReading: true };
}

function madeChanges(run: Run, services: ToolServices): Made {
  const { runId } = run.header;
  const mark = `${run.state.updatedAt} ${run.status()} ${run.state.requests.sent}`;
  const known = last.get(runId);
  if (known?.mark === mark) return known;
  const areAhead = isUnstarted(run);
  const changes = allChanges(run, areAhead, services);
  const whole = changes.then((stored) => (areAhead ? addDeleted : addFreed)(stored, services));
  const made: Made = { mark, changes, whole };
  // If the service could not be read, the next request tries again.
  const forget = ({ isUnread }: AllChanges) => isUnread && last.get(runId) === made && last.delete(runId);
  whole.then(forget, () => last.delete(runId));
  last.delete(runId);
  last.set(runId, made);
  const [oldest] = last.keys();
  if (last.size > MAX_KEPT && oldest !== undefined) last.delete(oldest);
  return made;
}

function isUnstarted(run: Run): boolean {
  return run.status() === "planned" || run.status() === "needs_confirmation";
}

/** Returns the changes that a run made. With `areAhead`, those that it would make, according to its plan or effect. */
async function allChanges(run: Run, areAhead: boolean, services: ToolServices): Promise<AllChanges> {
  if (!isChangeRun(run)) return withCounts([]);
  const { runId, call } = run.header;
  const document = call.tool === "apply_plan" ? await documentOf(runId, services) : undefined;
  const there = document?.plan.optionsThere ?? run.state.facts.optionsThere;
  if (!areAhead) {
    const names = new Map(Object.entries(document?.groups ?? {}));
    const { rows, freed } = await rowsOfEndedRun(run, names, services);
    return { ...withFreed(withCounts(rows, there), freed.size), freedNames: freed };
  }
  if (document !== undefined) return withCounts(changesOfPlan(document), there);
  const parts = run.state.facts.waits?.parts ?? [];
  const freed = call.tool === "delete_options" ? sumIn(parts, "freed") : 0;
  return withFreed(withCounts(rowsOfEffect(parts, run), there), freed);
}

function withCounts(rows: readonly Placed[], there?: number): AllChanges {
  const counts = { created: 0, changed: 0, deleted: 0 };
  for (const { kind } of rows) counts[kind] += 1;
  const unchanged = there === undefined ? undefined : Math.max(0, there - counts.changed - counts.deleted);
  const removedBy = (kind: keyof typeof counts): number =>
    rows.reduce((sum, row) => sum + (row.kind === kind ? (row.before?.count ?? 0) : 0), 0);
  const lost = removedBy("deleted");
  return { rows: inOrder(rows), counts, unchanged, removed: lost + removedBy("changed"), lost };
}

/** Adds how many sub-options move to the top level because their group is deleted. They do not count as unchanged. */
function withFreed(all: AllChanges, count: number): AllChanges {
  if (count === 0) return all;
  const { unchanged } = all;
  return { ...all, freed: { count, names: [] }, unchanged: unchanged && Math.max(0, unchanged - count) };
}

/** Adds the names of the first sub-options that moved because their group was deleted. */
async function addFreed(stored: AllChanges, services: ToolServices): Promise<AllChanges> {
  const { freed, freedNames = new Map() } = stored;
  if (freed === undefined) return stored;
  const names = await namesOfFreed(freedNames, services);
  if (names === "unread") return { ...stored, isUnread: true };
  return { ...stored, freed: { ...freed, names: names.map(cut) } };
}

/**
 * Reads from the service what would be deleted. Adds the Context IDs of the deleted options, and the options of deleted
 * targetings.
 */
async function addDeleted(stored: AllChanges, services: ToolServices): Promise<AllChanges> {
  const own = stored.rows.filter(({ isInside }) => !isInside);
  const deleted = own.filter(({ kind, _id }) => kind === "deleted" && _id !== undefined);
  if (deleted.length === 0) return withSearch(stored);
  const idsOf = (areTargetings: boolean) =>
    deleted.flatMap(({ _id, before }) =>
      _id !== undefined && (before?.says === ITSELF) === areTargetings ? [_id] : [],
    );
  const lost = await readLost({ options: idsOf(false), targetings: idsOf(true) }, services);
  if (lost === undefined) return { ...stored, findsNames: true };
  if (lost === "unread") return { ...stored, findsNames: true, isUnread: true };
  const known = new Set(own.map(({ _id }) => _id));
  const rows = [...own.map((row) => withIds(row, lost)), ...lost.within.filter(({ _id }) => !known.has(_id))];
  const { unchanged, freed } = stored;
  const names = lost.freed.map(cut);
  return withSearch({ ...withCounts(rows), unchanged, freed: freed && { ...freed, names } });
}

/** Sets `findsNames` if some of the removed or added Context IDs are unknown: a search then compares only names. */
function withSearch(all: AllChanges): AllChanges {
  const isKnown = all.rows.every(({ before, lacksIds }) => !lacksIds && (before?.all !== undefined || !before?.count));
  return isKnown ? all : { ...all, findsNames: true };
}

function withIds(row: Placed, { options }: Lost): Placed {
  const found = row.kind === "deleted" ? options.get(row._id ?? "") : undefined;
  return found === undefined ? row : { ...row, ...found, before: { ...row.before, ...found.before } };
}

/**
 * Sorts rows: first the targeting itself, then its groups, by the oldest row of each, then the top level. A group that
 * is itself created or deleted comes before its sub-options. Of two options, the older one comes first. Those that do
 * not exist yet come last, in the order of the plan.
 */
function inOrder(all: readonly Placed[]): readonly Placed[] {
  const parents = new Set(all.map(({ group }) => group));
  const rows = all.map((row): Placed => {
    const { isGroup, name } = sideOf(row) ?? {};
    return isGroup && row.kind !== "changed" && parents.has(name) ? { ...row, isHead: true } : row;
  });
  const first = new Map<string | null | undefined, string>();
  for (const [at, { group, _id = `~${String(at).padStart(9, "0")}` }] of rows.entries()) {
    const known = first.get(group);
    if (known === undefined || _id < known) first.set(group, _id);
  }
  const groupOf = (row: Placed): string | null | undefined => (row.isHead ? sideOf(row)?.name : row.group);
  const rank = (row: Placed): string => {
    if (sideOf(row)?.says === ITSELF) return "";
    const group = groupOf(row);
    return group === null || group === undefined ? "~~" : (first.get(group) ?? "");
  };
  return rows.toSorted(
    (one, other) =>
      compare(rank(one), rank(other)) ||
      compare(groupOf(one) ?? "", groupOf(other) ?? "") ||
      Number(other.isHead ?? false) - Number(one.isHead ?? false) ||
      byId(one, other),
  );
}

function sideOf({ before, after }: Placed): WholeSide | undefined {
  return before ?? after;
}

function byId(one: Placed, other: Placed): number {
  return compare(one._id ?? "~", other._id ?? "~");
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function holds({ before, after, group }: Placed, text: string): boolean {
  const sides = [before, after].flatMap((side) => (side === undefined ? [] : [side.name, ...(side.all ?? [])]));
  return [...sides, group ?? ""].some((one) => one.toLowerCase().includes(text));
}

// Reads from the service what a run would delete. The stored effect has only the numbers of Context IDs, but the person
// who decides must see the Context IDs themselves.

/** The Context IDs of at most this many options are read. With more options, only names and counts are shown. */
const MAX_READ = 2000;
const MAX_LISTED = 20_000;
const MAX_MS = 60_000;
const MAX_FREED = 500;

/** A deleted option with its Context IDs, if they were read. */
type LostOption = Placed & { readonly before: WholeSide };

/** The objects to delete. `options`: those deleted one by one, by ID. `within`: all options of deleted targetings. */
interface Lost {
  readonly options: ReadonlyMap<string, LostOption>;
  readonly within: readonly LostOption[];
  /** The names of the first sub-options that are not deleted with their group, but move to the top level. */
  readonly freed: readonly string[];
}

/** Reads from the service, for at most a minute. Returns "unread" if the service cannot be read now. */
async function readNow<T>(
  management: ManagementApi,
  read: (api: ManagementApi, signal: AbortSignal) => Promise<T>,
): Promise<T | "unread"> {
  const signal = AbortSignal.timeout(MAX_MS);
  try {
    return await read(management.forCall?.() ?? management, signal);
  } catch (thrown) {
    if (!isApiError(thrown) && !signal.aborted) throw thrown;
    return "unread";
  }
}

/** Reads these options, and all options of these targetings. Undefined if too many, or without a management API. */
async function readLost(
  { options, targetings }: { readonly options: readonly string[]; readonly targetings: readonly string[] },
  { management }: Pick<ToolServices, "management">,
): Promise<Lost | "unread" | undefined> {
  if (management === undefined || options.length > MAX_LISTED) return undefined;
  return readNow(management, async (api, signal) => {
    const { found } = await findOptions(api, options, signal);
    const groups = [...found.values()].flatMap(({ parent }) => parent ?? []).filter((id) => !found.has(id));
    const { found: around } = await findOptions(api, [...new Set(groups)], signal);
    const nameOf = (id: string): string | undefined => (found.get(id) ?? around.get(id))?.name;
    const alone = [...found.values()].map((option) => ({ option, groupName: nameOf(option.parent ?? "") }));
    const inside: PlacedOption[] = [];
    for (const id of targetings) {
      for await (const placed of placedOptions(api, id, signal)) {
        if (inside.push(placed) > MAX_LISTED) return undefined;
      }
    }
    const all = [...alone, ...inside];
    const read = new Map<string, readonly string[]>();
    if (all.length <= MAX_READ) {
      for await (const { option, contexts } of withContexts(api, all, { signal })) read.set(option._id, contexts);
    }
    const lostOf = (placed: PlacedOption): LostOption => lostOption(placed, read.get(placed.option._id));
    return {
      options: new Map(alone.map((one) => [one.option._id, lostOf(one)])),
      within: inside.map(lostOf),
      freed: await freedNames([...found.values()], api, signal),
    };
  });
}

/**
 * Returns the names of the first sub-options that moved to the top level because their group was deleted. Unknown names
 * are read from the service; "unread" if it cannot be read now.
 */
async function namesOfFreed(
  freed: ReadonlyMap<string, string | undefined>,
  { management }: Pick<ToolServices, "management">,
): Promise<readonly string[] | "unread"> {
  const first = [...freed].slice(0, MAX_FREED);
  const unknown = first.flatMap(([_id, name]) => (name === undefined ? [_id] : []));
  if (unknown.length === 0 || management === undefined) return first.flatMap(([, name]) => name ?? []);
  return readNow(management, async (api, signal) => {
    const { found } = await findOptions(api, unknown, signal);
    return first.flatMap(([_id, name]) => name ?? found.get(_id)?.name ?? []);
  });
}

/** Returns the names of the first sub-options that would not be deleted together with their group. */
async function freedNames(
  deleted: readonly OptionRecord[],
  api: ManagementApi,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const ids = new Set(deleted.map(({ _id }) => _id));
  const names: string[] = [];
  for (const { _id, type, targeting, childCount } of deleted) {
    if (type !== "collection" || targeting === undefined || childCount === 0) continue;
    for await (const child of readOptions(api, targeting, signal, { parent: _id })) {
      if (names.length === MAX_FREED) return names;
      if (!ids.has(child._id)) names.push(child.name);
    }
  }
  return names;
}

function lostOption({ option, groupName }: PlacedOption, contextIds: readonly string[] | undefined): LostOption {
  const { _id, name, type, parent, contextCount } = option;
  const group = typeof parent === "string" ? cut(groupName ?? "a group") : null;
  const isGroup = type === "collection" || undefined;
  const before = { name: cut(name), isGroup, count: contextIds?.length ?? contextCount, all: contextIds };
  return { kind: "deleted", _id, group, before };
}
