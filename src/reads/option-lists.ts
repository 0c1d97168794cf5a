import { ListError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import type { OptionRecord } from "../spec/records.ts";
import { type ContentsSource, contextIdsOf, isMissing } from "./option-contents.ts";
import { listPages, type OptionList, readList } from "./pages.ts";
import { type Fetched, MANY_UNREAD, sideBySide } from "./side-by-side.ts";

/** Where to continue: at the option with the index `top`, or inside that group after its first `inside` sub-options. */
export interface WalkPosition {
  readonly top: number;
  readonly inside?: number | undefined;
  /**
   * The end of the ID of the option before this position. With it, the reader notices whether options before the
   * position were added or deleted.
   */
  readonly last?: string | undefined;
}

interface Walk extends OptionList {
  /** Whether a changed total is accepted during the walk. Otherwise it means that the list has changed. */
  readonly totalMayChange?: boolean | undefined;
}

export interface Walked {
  readonly topLevel: number;
  readonly subOptions: number;
}

export interface Step {
  readonly option: OptionRecord;
  readonly next: WalkPosition;
  readonly walked: Walked;
  readonly groupName?: string | undefined;
  /** The number of Context IDs in a group and its sub-options. Absent without sub-options or if a count is unknown. */
  readonly countWithChildren?: number | undefined;
}

/** Consecutive options of a list. At most one of them, the last, is a group whose sub-options must be read. */
interface Stretch<Option> {
  readonly options: readonly Option[];
  readonly group: Option | undefined;
}

/** Yields each option from a position on once, in the order of the service. Sub-options come after their group. */
export async function* walkOptions(api: ManagementApi, walk: Walk, from: WalkPosition): AsyncGenerator<Step> {
  const read = sideBySide({
    source: (signal) => stretchesFrom(api, { ...walk, signal }, from.top),
    map: (stretch, signal) => withChildren(api, { ...walk, signal }, stretch, from),
    signal: walk.signal,
    pace: api.pace,
  });
  const yielded = new Set<string>();
  const walked = { topLevel: 0, subOptions: 0 };
  const one = (kind: keyof Walked): Walked => {
    walked[kind] += 1;
    return { ...walked };
  };
  const isTop = walk.parent === undefined ? "topLevel" : "subOptions";
  const isNew = ({ _id }: OptionRecord): boolean => !yielded.has(_id) && yielded.add(_id).size > 0;
  for await (const { value } of read) {
    if (value === undefined) continue;
    const { at, options, group, children, inside } = value;
    for (const [index, option] of options.entries()) {
      const top = at + index;
      const isBehind = from.inside !== undefined && top === from.top;
      if (isBehind || !isNew(option)) continue;
      const last = idEnd(option);
      const behind = option === group ? { top, inside: 0, last } : { top: top + 1, last };
      const countWithChildren = option === group ? sum([group, ...children]) : undefined;
      yield { option, next: behind, walked: one(isTop), countWithChildren };
    }
    if (group === undefined) continue;
    const top = at + options.length - 1;
    for (const [index, child] of children.entries()) {
      const next = { top, inside: inside + index + 1, last: idEnd(child) };
      if (!isNew(child)) continue;
      const option = { ...child, parent: group._id };
      yield { option, next, walked: one("subOptions"), groupName: group.name };
    }
  }
}

const END_LENGTH = 4;

/** Returns the end of an ID. Cursors contain only this, so that more options fit into an answer. */
export function idEnd({ _id }: Pick<OptionRecord, "_id">): string {
  return _id.slice(-END_LENGTH);
}

/**
 * Finds the index at which to continue in a list. Others may have added or deleted options before `from`. `isLost`: the
 * option before `from` no longer exists, so the index is uncertain.
 */
export async function positionNow(
  api: ManagementApi,
  list: OptionList & { readonly signal: AbortSignal },
  from: WalkPosition,
): Promise<{ readonly from: WalkPosition; readonly isLost: boolean }> {
  const { top, inside, last } = from;
  const { targetingId, parent, signal } = list;
  const at = async (offset: number, of: string | undefined): Promise<OptionRecord | undefined> => {
    return (await api.listOptions(targetingId, { limit: 1, offset, parent: of }, { signal })).items[0];
  };
  if (last === undefined) return { from, isLost: false };
  const isInside = inside !== undefined && inside > 0;
  const first = await at(inside === undefined ? top - 1 : top, parent);
  const before = isInside && first && hasSubOptions(first) ? await at(inside - 1, first._id) : first;
  if (before !== undefined && idEnd(before) === last) return { from, isLost: false };
  const now = { top: -1, inside: 0 };
  for await (const option of readOptions(api, targetingId, signal, { parent, subOptions: isInside })) {
    const isChild = parent === undefined && typeof option.parent === "string";
    if (isChild) now.inside += 1;
    else Object.assign(now, { top: now.top + 1, inside: 0 });
    if (isChild !== isInside || idEnd(option) !== last) continue;
    return { from: inside === undefined ? { top: now.top + 1 } : now, isLost: false };
  }
  return { from: { top }, isLost: true };
}

function withChildren(
  api: ManagementApi,
  walk: Walk,
  stretch: Stretch<OptionRecord> & { readonly at: number },
  from: WalkPosition,
) {
  const { at, options, group } = stretch;
  if (group === undefined) return { ...stretch, children: [], inside: 0 };
  // How many sub-options come before those to read: 0, unless the reading continues in the middle of the group.
  const inside = at + options.length - 1 === from.top ? (from.inside ?? 0) : 0;
  const read = subOptions(api, { ...walk, parent: group._id }, inside);
  return read.then((children) => ({ ...stretch, children, inside }));
}

function sum(options: readonly OptionRecord[]): number | undefined {
  let count = 0;
  for (const { contextCount } of options) {
    if (contextCount === undefined) return undefined;
    count += contextCount;
  }
  return count;
}

async function* stretchesFrom(api: ManagementApi, walk: Walk, from: number) {
  const { parent, totalMayChange = false } = walk;
  for await (const { at: first, options } of listPages(api, walk, { from, totalMayChange })) {
    let at = first;
    for (const stretch of stretches(options, (option) => parent === undefined && hasSubOptions(option))) {
      yield { ...stretch, at };
      at += stretch.options.length;
    }
  }
}

function* stretches<Option>(
  options: readonly Option[],
  isGroup: (option: Option) => boolean,
): Generator<Stretch<Option>> {
  let from = 0;
  for (const [index, option] of options.entries()) {
    if (!isGroup(option)) continue;
    yield { options: options.slice(from, index + 1), group: option };
    from = index + 1;
  }
  if (from < options.length) yield { options: options.slice(from), group: undefined };
}

async function subOptions(api: ManagementApi, list: OptionList, from: number): Promise<readonly OptionRecord[]> {
  try {
    return await readList(api, list, (option) => option, from);
  } catch (thrown) {
    if (isMissing(thrown)) throw new ListError("listOptions", "shifts");
    throw thrown;
  }
}

function hasSubOptions({ type, childCount, children }: OptionRecord): boolean {
  if (childCount !== undefined) return childCount > 0;
  return type === "collection" || (children?.length ?? 0) > 0;
}

type ListedOption = ReturnType<typeof listed>;

/** Reads the options of a targeting or of the group `parent`. Sub-options follow their group, if they are wanted. */
export async function* readOptions(
  api: ManagementApi,
  targetingId: string,
  signal: AbortSignal,
  what: { readonly parent?: string | undefined; readonly subOptions?: boolean } = {},
): AsyncGenerator<ListedOption> {
  const { parent, subOptions = true } = what;
  const list = await readList(api, { targetingId, parent, signal }, listed);
  const isGroup = ({ type, childCount }: ListedOption): boolean =>
    subOptions && parent === undefined && type !== "atomic" && childCount !== 0;
  const read = sideBySide({
    source: () => stretches(list, isGroup),
    map: ({ options, group }, within) => {
      if (group === undefined) return options;
      const inside = readList(api, { targetingId, parent: group._id, signal: within }, listed);
      return inside.then((children) => [...options, ...children.map((child) => ({ ...child, parent: group._id }))]);
    },
    signal,
    pace: api.pace,
  });
  for await (const { value = [] } of read) yield* value;
}

/** Returns an option with only the necessary fields, to save memory: a targeting may have 100,000 options. */
function listed(option: OptionRecord) {
  const { _id, name, type, contextCount, targeting, parent, exposeChildren, children, childCount, updatedAt } = option;
  const about = { _id, name, type, contextCount, parent, exposeChildren, children, childCount, updatedAt };
  return targeting === undefined ? about : { ...about, targeting };
}

export type OptionNames = (targetingId: string, parent?: string) => Promise<ReadonlyMap<string, string>>;

/** Returns a function that reads the names in each targeting or group only once, even if reading them has failed. */
export function optionNamesOnce(api: ManagementApi, signal: AbortSignal): OptionNames {
  const known = new Map<string, Promise<ReadonlyMap<string, string>>>();
  return (targetingId, parent) => {
    const list = parent ?? targetingId;
    const names = known.get(list) ?? readOptionNames(api, targetingId, signal, parent);
    known.set(list, names);
    return names;
  };
}

/** Maps names to IDs: of all options and sub-options of a targeting, or only of the sub-options of `parent`. */
export async function readOptionNames(
  api: ManagementApi,
  targetingId: string,
  signal: AbortSignal,
  parent?: string,
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  for await (const { name, _id } of readOptions(api, targetingId, signal, { parent })) names.set(name, _id);
  return names;
}

export interface Wanted {
  /** A text that the name must contain, in any case. */
  readonly search?: string | undefined;
  readonly contextIds?: readonly string[] | undefined;
  readonly empty?: boolean | undefined;
}

export interface Hit {
  readonly step: Step;
  readonly matched?: readonly string[];
}

interface ScanJob {
  readonly walk: Walk;
  readonly from: WalkPosition;
  readonly wanted: Wanted;
  readonly contents: Pick<ContentsSource, "store" | "fresh">;
}

/**
 * Yields matching options in order, starting at a position. Reads Context IDs only if a condition needs them. Also
 * yields some options that do not match, without a value.
 */
export async function* scanOptions(api: ManagementApi, job: ScanJob): AsyncGenerator<Fetched<Step, Hit>, void> {
  const { walk, from, wanted } = job;
  const isNamed = nameTest(wanted.search);
  const fits = ({ option }: Step): boolean => isNamed(option) && (wanted.empty !== true || isEmpty(option));
  if (wanted.contextIds === undefined) {
    for await (const step of walkOptions(api, walk, from)) {
      yield { from: step, value: fits(step) ? { step } : undefined };
    }
    return;
  }
  const source = { ...job.contents, targetingId: walk.targetingId };
  const ids = new Set(wanted.contextIds);
  await source.store?.refresh();
  yield* sideBySide<Step, Hit>({
    source: (signal) => walkOptions(api, { ...walk, signal }, from),
    map(step, signal, withoutRead) {
      if (!fits(step) || step.option.contextCount === 0) return undefined;
      return contextIdsOf(api, step.option, source, signal, withoutRead).then((held) => {
        const matched = held.filter((id) => ids.has(id));
        return matched.length === 0 ? undefined : { step, matched };
      });
    },
    unreadAhead: MANY_UNREAD,
    signal: walk.signal,
    pace: api.pace,
  });
}

function nameTest(search: string | undefined): (option: OptionRecord) => boolean {
  if (search === undefined) return () => true;
  const part = folded(search);
  return ({ name }) => folded(name).includes(part);
}

/** Returns whether an option has no Context IDs and, if it is a group, no sub-options. */
export function isEmpty({ type, contextCount, childCount, children = [] }: OptionRecord): boolean {
  if (contextCount !== 0) return false;
  return type !== "collection" || (childCount ?? children.length) === 0;
}

/** Returns the empty options, and the groups that become empty when these options are deleted. */
export function emptyOptions(options: readonly OptionRecord[]): readonly OptionRecord[] {
  const inside = new Map<string, number>();
  for (const option of options) {
    if (isEmpty(option) && typeof option.parent === "string") {
      inside.set(option.parent, (inside.get(option.parent) ?? 0) + 1);
    }
  }
  return options.filter((option) => isEmpty(option) || isLeftEmpty(option, inside.get(option._id) ?? 0));
}

/** Returns whether a group becomes empty when this number of sub-options leaves it (management-api 7.4, case 6). */
export function isLeftEmpty(
  { contextCount, childCount }: Pick<OptionRecord, "contextCount" | "childCount">,
  leaving: number,
): boolean {
  return contextCount === 0 && childCount === leaving;
}

function folded(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
