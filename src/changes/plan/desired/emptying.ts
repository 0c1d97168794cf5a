import { createHash } from "node:crypto";
import type { DesiredChanges } from "./desired-changes.ts";
import type { Freeing, OpenItems } from "./freeing.ts";

/**
 * A group that gets a Context ID for a while: it would be empty before others have moved into it, which the service
 * refuses (management-api 7.4, cases 1, 6 and 7).
 */
interface SparedGroup {
  /** The ID of the group, or the item that creates it. */
  readonly group: string | number;
  readonly contextId: string;
  /** The item in whose outcome it counts. */
  readonly about: number;
  /** The items after which it is taken away again; none where it stays, or goes with the group. */
  readonly until: readonly number[];
}

/** The groups that are empty for a moment while options and Context IDs change places. */
export interface Emptying {
  readonly spared: readonly SparedGroup[];
  /** The items that move options into a group which loses all its own Context IDs: it loses them after these. */
  arrivalsBefore(groupId: string): readonly number[];
  /**
   * The items that create options in a group which would be empty without them, for an item that takes the last Context
   * IDs or the last sub-options out of it: it comes after these, which may have to wait for their names.
   */
  creationsBefore(at: number): readonly number[];
  /**
   * The items that put something into a group which would be empty once all its sub-options are gone: those of them that
   * are deleted go after these.
   */
  fillersOf(groupId: string): readonly number[];
}

/** Finds the groups that would be empty for a moment; `early` are the deletions that come before everything else. */
export function emptyingOf(
  changes: DesiredChanges,
  open: OpenItems,
  freeing: Freeing,
  early: ReadonlySet<number>,
): Emptying {
  const { there } = changes;
  const { creations, updates } = open;
  const traffic = trafficOf(open, early);
  const { arrivals, leavers, deleted } = traffic;
  const filled = new Map<string | number, number[]>();
  for (const { at, item } of creations)
    if (item.parent !== null) push(filled, "_id" in item.parent ? item.parent._id : item.parent.item, at);
  const creationsBefore = new Map<number, readonly number[]>();
  const spared: SparedGroup[] = [];
  const spare = (group: string | number, about: number, until: readonly number[]): void => {
    spared.push({ group, contextId: spareContextId(`${changes.targeting._id} ${group} ${about}`), about, until });
  };
  for (const { at, item } of creations) {
    const moved = arrivals.get(at) ?? [];
    if (item.type === "collection" && item.contexts.length === 0 && !filled.has(at) && moved.length > 0)
      spare(at, at, moved);
  }
  const subOptions = new Map<string, number>();
  for (const { parent } of there.values())
    if (parent !== null) subOptions.set(parent, (subOptions.get(parent) ?? 0) + 1);
  const gains = gainsOf(open, freeing);
  for (const [group, { first, isEarly, count }] of goingOf(traffic)) {
    if (there.get(group)?.contexts.length !== 0 || count !== subOptions.get(group)) continue;
    const moved = arrivals.get(group) ?? [];
    const leaving = leavers.get(group) ?? [];
    const gain = gains.get(group);
    if (traffic.gone.has(group)) {
      // Its sub-options that are deleted too are deleted around it.
      if (leaving.length === count) spare(group, first, []);
    } else if (gain?.free !== undefined) spared.push({ group, contextId: gain.free, about: gain.at, until: [] });
    else if (gain !== undefined) spare(group, gain.at, [gain.at, ...moved, ...leaving]);
    else if (filled.has(group) ? isEarly : moved.length > 0)
      spare(group, moved[0] ?? first, [first, ...moved, ...leaving, ...(filled.get(group) ?? [])]);
    else for (const at of leaving) creationsBefore.set(at, filled.get(group) ?? []);
  }
  const fillers = new Map<string, readonly number[]>();
  for (const [group, inside] of deleted) {
    const going = inside.length + (leavers.get(group) ?? []).length;
    if (traffic.gone.has(group) || there.get(group)?.contexts.length !== 0 || going !== subOptions.get(group)) continue;
    const gain = gains.get(group)?.at;
    const given = gain === undefined ? [] : [gain];
    fillers.set(group, [...given, ...(arrivals.get(group) ?? []), ...(filled.get(group) ?? [])]);
  }
  const losing = new Set<string>();
  for (const { at, item } of updates) {
    if (item.seen.type !== "collection" || item.contexts === undefined) continue;
    const held = there.get(item._id)?.contexts ?? [];
    const removed = new Set(item.contexts.remove);
    const moving = freeing.movingFrom(at);
    const leaving = leavers.get(item._id) ?? [];
    const isLeft = leaving.length + (deleted.get(item._id)?.length ?? 0) === (subOptions.get(item._id) ?? 0);
    const created = filled.get(item._id) ?? [];
    if (item.contexts.add.length === 0 && held.every((id) => removed.has(id))) {
      losing.add(item._id);
      if (isLeft) creationsBefore.set(at, created);
    }
    if (moving.size > 0 && isLeft && held.every((id) => moving.has(id))) {
      spare(item._id, at, [at, ...(arrivals.get(item._id) ?? []), ...leaving, ...created]);
    }
  }
  return {
    spared,
    arrivalsBefore: (id) => (losing.has(id) ? (arrivals.get(id) ?? []) : []),
    creationsBefore: (at) => creationsBefore.get(at) ?? [],
    fillersOf: (id) => fillers.get(id) ?? [],
  };
}

/** The items that move options into groups and out of them, or delete them there; and the groups that are deleted. */
interface Traffic {
  readonly arrivals: ReadonlyMap<string | number, number[]>;
  readonly leavers: ReadonlyMap<string, number[]>;
  readonly deleted: ReadonlyMap<string, number[]>;
  readonly early: ReadonlySet<number>;
  readonly gone: ReadonlySet<string>;
}

function trafficOf({ updates, deletions }: OpenItems, early: ReadonlySet<number>): Traffic {
  const arrivals = new Map<string | number, number[]>();
  const leavers = new Map<string, number[]>();
  for (const { at, item } of updates) {
    if (item.parent === undefined) continue;
    if (item.seen.parent !== null) push(leavers, item.seen.parent, at);
    if (item.parent !== null) push(arrivals, "_id" in item.parent ? item.parent._id : item.parent.item, at);
  }
  const deleted = new Map<string, number[]>();
  const gone = new Set<string>();
  for (const { at, item } of deletions) {
    const { parent, type } = item.seen;
    if (parent !== null) push(deleted, parent, at);
    if (type === "collection") gone.add(item._id);
  }
  return { arrivals, leavers, deleted, early, gone };
}

/** By group: how many sub-options go before anything comes, or are deleted, and the first item that does so. */
function* goingOf({ leavers, deleted, early }: Traffic) {
  for (const group of new Set([...leavers.keys(), ...deleted.keys()])) {
    const inside = deleted.get(group) ?? [];
    const going = [...(leavers.get(group) ?? []), ...inside];
    const isEarly = inside.some((at) => early.has(at));
    const [first] = going;
    if (first !== undefined && (isEarly || going.length > inside.length))
      yield [group, { first, isEarly, count: going.length }] as const;
  }
}

/** By group: the item that gives it Context IDs, and one of them that no other group has to give up before. */
function gainsOf({ updates, deletions }: OpenItems, { movingFrom }: Freeing) {
  const moving = new Set([...updates, ...deletions].flatMap(({ at }) => [...movingFrom(at)]));
  return new Map(
    updates.flatMap(({ at, item: { _id, contexts } }) =>
      contexts === undefined || contexts.add.length === 0
        ? []
        : [[_id, { at, free: contexts.add.find((id) => !moving.has(id)) }] as const],
    ),
  );
}

/** Adds a value to the list of a key. */
export function push<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

/** The same each time that a plan is made. */
function spareContextId(about: string): string {
  return `tmp-${lettersFor(about)}`;
}

/** A name that an option has for a while; the same each time that a plan is made. */
export function temporaryName(about: string): string {
  return `tmp ${lettersFor(about)}`;
}

function lettersFor(about: string): string {
  return createHash("sha256").update(about).digest("hex").slice(0, 26);
}
