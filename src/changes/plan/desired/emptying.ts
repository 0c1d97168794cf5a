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
  /** The items after which it is taken away again. */
  readonly until: readonly number[];
}

/** The groups that are empty for a moment while options and Context IDs change places. */
export interface Emptying {
  readonly spared: readonly SparedGroup[];
  /** The items that move options into a group which loses all its own Context IDs: it loses them after these. */
  arrivalsBefore(groupId: string): readonly number[];
}

/** Finds the groups that would be empty for a moment. */
export function emptyingOf(changes: DesiredChanges, open: OpenItems, freeing: Freeing): Emptying {
  const { there } = changes;
  const { creations, updates, deletions } = open;
  const arrivals = new Map<string | number, number[]>();
  const leavers = new Map<string, number[]>();
  for (const { at, item } of updates) {
    if (item.parent === undefined) continue;
    if (item.seen.parent !== null) push(leavers, item.seen.parent, at);
    if (item.parent !== null) push(arrivals, "_id" in item.parent ? item.parent._id : item.parent.item, at);
  }
  const filled = new Set(
    creations.flatMap(({ item: { parent } }) => (parent === null ? [] : ["_id" in parent ? parent._id : parent.item])),
  );
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
  for (const [group, leaving] of leavers) {
    const moved = arrivals.get(group) ?? [];
    const [first] = moved;
    const isEmptied = there.get(group)?.contexts.length === 0 && leaving.length === subOptions.get(group);
    if (isEmptied && first !== undefined && !filled.has(group)) spare(group, first, [...moved, ...leaving]);
  }
  const losing = new Set<string>();
  for (const { at, item } of updates) {
    if (item.seen.type !== "collection" || item.contexts === undefined) continue;
    const held = there.get(item._id)?.contexts ?? [];
    const removed = new Set(item.contexts.remove);
    if (item.contexts.add.length === 0 && held.every((id) => removed.has(id))) losing.add(item._id);
    const moving = freeing.movingFrom(at);
    const leaving = leavers.get(item._id) ?? [];
    const deleted = deletions.filter(({ item: { seen } }) => seen.parent === item._id).length;
    const isLeft = leaving.length + deleted === (subOptions.get(item._id) ?? 0);
    if (moving.size > 0 && isLeft && held.every((id) => moving.has(id))) {
      spare(item._id, at, [at, ...(arrivals.get(item._id) ?? []), ...leaving]);
    }
  }
  return { spared, arrivalsBefore: (id) => (losing.has(id) ? (arrivals.get(id) ?? []) : []) };
}

function push<Key>(lists: Map<Key, number[]>, key: Key, value: number): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

/** The same each time that a plan is made. */
function spareContextId(about: string): string {
  return `tmp-${createHash("sha256").update(about).digest("hex").slice(0, 26)}`;
}
