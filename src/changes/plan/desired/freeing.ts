import type {
  DesiredChanges,
  DesiredCreation,
  DesiredDeletion,
  DesiredItem,
  DesiredUpdate,
} from "./desired-changes.ts";

/** An item, and its position among the items. */
export interface Placed<Item> {
  readonly at: number;
  readonly item: Item;
}

/** The items of each kind that are to be sent. */
export interface OpenItems {
  readonly creations: readonly Placed<DesiredCreation>[];
  readonly updates: readonly Placed<DesiredUpdate>[];
  readonly deletions: readonly Placed<DesiredDeletion>[];
}

/** Sorts the items that the service does not fulfil yet by their kinds. */
export function openItems({ items, alreadyDone }: DesiredChanges): OpenItems {
  const creations: Placed<DesiredCreation>[] = [];
  const updates: Placed<DesiredUpdate>[] = [];
  const deletions: Placed<DesiredDeletion>[] = [];
  for (const [at, item] of items.entries()) {
    if (alreadyDone.has(at)) continue;
    if (item.kind === "create") creations.push({ at, item });
    else if (item.kind === "change") updates.push({ at, item });
    else deletions.push({ at, item });
  }
  return { creations, updates, deletions };
}

/**
 * What items free that others take: names, which an option holds alone in its targeting, and own Context IDs, which one
 * group alone holds (management-api 7.2). Items are named by their positions.
 */
export interface Freeing {
  /** The items that must be carried out before this one. */
  needsOf(at: number): readonly number[];
  /** Whether the name of an option is needed by an option that is created, or by one that frees such a name. */
  freesName(at: number): boolean;
  /** The Context IDs of a group that another group gets. */
  movingFrom(at: number): ReadonlySet<string>;
}

/** Finds what frees what. */
export function freeingOf({ there, items }: DesiredChanges, { creations, updates, deletions }: OpenItems): Freeing {
  const nameFreedBy = new Map<string, number>();
  for (const { at, item } of updates) if (item.name !== undefined) nameFreedBy.set(item.seen.name, at);
  const deletedNames = new Map(deletions.map(({ at, item }) => [item.seen.name, at]));
  const leaving = new Map<string, number>();
  for (const { at, item } of [...updates, ...deletions]) {
    if (item.seen.type === "atomic") continue;
    const gone = item.kind === "delete" ? (there.get(item._id)?.contexts ?? []) : (item.contexts?.remove ?? []);
    for (const id of gone) leaving.set(id, at);
  }
  const needs = new Map<number, Set<number>>();
  const freesName = new Set<number>();
  const moving = new Map<number, Set<string>>();
  const need = (at: number, freer: number | undefined): void => {
    if (freer === undefined || freer === at) return;
    needs.set(at, (needs.get(at) ?? new Set()).add(freer));
  };
  const freerOf = (at: number): number | undefined => {
    const item = items[at];
    return item?.kind === "change" && item.name !== undefined ? nameFreedBy.get(item.name) : undefined;
  };
  const take = (at: number, contexts: readonly string[]): void => {
    for (const id of contexts) {
      const from = leaving.get(id);
      if (from === undefined || from === at) continue;
      need(at, from);
      moving.set(from, (moving.get(from) ?? new Set()).add(id));
    }
  };
  for (const { at, item } of creations) {
    const renamed = nameFreedBy.get(item.name);
    for (let next = renamed; next !== undefined && !freesName.has(next); next = freerOf(next)) freesName.add(next);
    need(at, renamed);
    need(at, deletedNames.get(item.name));
    if (item.type === "collection") take(at, item.contexts);
  }
  for (const { at, item } of updates) {
    // Renames that wait for each other leave together, in their order; only a deletion has to come before.
    if (item.name !== undefined) need(at, deletedNames.get(item.name));
    if (item.seen.type === "collection") take(at, item.contexts?.add ?? []);
  }
  return {
    needsOf: (at) => [...(needs.get(at) ?? [])],
    freesName: (at) => freesName.has(at),
    movingFrom: (at) => moving.get(at) ?? NOTHING,
  };
}

const NOTHING: ReadonlySet<string> = new Set();

/** Renames in an order in which they can be made. */
export interface RenamesInOrder {
  /** Each follows the one that frees its name. */
  readonly ordered: readonly Placed<DesiredUpdate>[];
  /** Those that wait for each other; the first one takes the name that the last one frees. */
  readonly rings: readonly (readonly Placed<DesiredUpdate>[])[];
}

/** Finds an order for renames, and which of them wait for each other in rings. */
export function renamesInOrder(updates: readonly Placed<DesiredUpdate>[]): RenamesInOrder {
  const holder = new Map(updates.flatMap((one) => (one.item.name === undefined ? [] : [[one.item.seen.name, one]])));
  const ordered: Placed<DesiredUpdate>[] = [];
  const rings: (readonly Placed<DesiredUpdate>[])[] = [];
  const done = new Set<number>();
  for (const update of updates) {
    const path: Placed<DesiredUpdate>[] = [];
    let next: Placed<DesiredUpdate> | undefined = update;
    while (next !== undefined && !done.has(next.at)) {
      done.add(next.at);
      path.push(next);
      next = next.item.name === undefined ? undefined : holder.get(next.item.name);
    }
    const from = next === undefined ? -1 : path.indexOf(next);
    if (from >= 0) rings.push(path.slice(from).toReversed());
    ordered.push(...path.toReversed());
  }
  return { ordered, rings };
}

/** Whether an item is a group, or goes into one: of these a request takes few (management-api 8.1). */
export function isInTree(item: DesiredItem): boolean {
  return item.kind !== "create" && (item.seen.type === "collection" || item.seen.parent !== null);
}
