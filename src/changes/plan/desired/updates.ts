import type { OptionChanges } from "../../../spec/records.ts";
import type { Binding } from "../../rows/entries.ts";
import type { Plan } from "../plan.ts";
import type { DesiredChanges, DesiredUpdate } from "./desired-changes.ts";
import { type Emptying, temporaryName } from "./emptying.ts";
import type { Freeing, OpenItems, Placed, RenamesInOrder } from "./freeing.ts";

/** An ID that is known, or of an object that the run makes. */
export type Bound = Omit<Binding, "field">;

/** What the steps of a desired state are made from. */
export interface Making {
  readonly plan: Plan;
  readonly changes: DesiredChanges;
  readonly open: OpenItems;
  readonly freeing: Freeing;
  readonly emptying: Emptying;
  /** The object of the targeting, where it has one. */
  readonly own: number;
  /** The object of the first item; the others follow. */
  readonly first: number;
  /** By item: the step after which what it frees is free. */
  readonly freed: Map<number, number>;
  /** By item: its last step so far. */
  readonly done: Map<number, number>;
  /** By item: the step that moves its option. What else it changes may have to wait for what waits for the move. */
  readonly moved: Map<number, number>;
  /** By item: the options that leave a group which is deleted before everything else. */
  readonly leaving: ReadonlyMap<number, Placed<DesiredUpdate>>;
  /** By group: the step that gives it a spare Context ID. */
  readonly spared: Map<string, number>;
  /** By option: its last step so far. The next one waits for it, since a request may name an option once. */
  readonly last: Map<string, number>;
  /**
   * By a name that an option gives up: the steps before that. Who takes the name waits for the same, and leaves in one
   * request with it.
   */
  readonly given: Map<string, readonly number[]>;
  /** The changes of options, in the order of their names. */
  readonly renames: RenamesInOrder;
  /** The IDs of the options that are there, by name, where something of the plan is done already. */
  readonly names: ReadonlyMap<string, string>;
}

/** Adds one update of an option, where it changes anything. */
export function addUpdate(
  { plan, first, last, done, moved, given, changes }: Making,
  at: number,
  id: string,
  fields: OptionChanges,
  { after = [], group }: { readonly after?: readonly number[]; readonly group?: Bound | undefined } = {},
): void {
  if (Object.keys(fields).length === 0 && group === undefined) return;
  const before = last.get(id);
  const forName = fields.name === undefined ? [] : (given.get(fields.name) ?? []);
  const waits = [...new Set([...after, ...forName, ...(before === undefined ? [] : [before])])];
  const extras = { objects: [first + at], ...(waits.length > 0 && { after: waits }) };
  const step = plan.add(plan.make.updateOption({ id }, fields, extras, group)).id;
  const item = changes.items[at];
  if (fields.name !== undefined && item?.kind === "change") {
    const creation = group?.object === undefined ? undefined : done.get(group.object - first);
    given.set(item.seen.name, creation === undefined ? waits : [...waits, creation]);
  }
  last.set(id, step);
  done.set(at, step);
  if (group !== undefined || fields.parent !== undefined) moved.set(at, step);
}

/**
 * Names that go round: the last one in the ring gets a temporary name, which leaves with the names of the others, each
 * after the one that frees it. What else these options change is done before, so that all names leave together.
 */
export function addRing(making: Making, ring: readonly Placed<DesiredUpdate>[]): void {
  const { plan, first, last, changes } = making;
  const after = [...new Set(ring.flatMap(({ item }) => last.get(item._id) ?? []))];
  const end = ring.at(-1);
  if (end === undefined) return;
  const { _id, name: wanted, seen } = end.item;
  const name = temporaryName(`${changes.targeting._id} ${_id} ${wanted}`);
  const given = { objects: [first + end.at], prepares: true, formerName: seen.name } as const;
  const waits = after.length > 0 ? { ...given, after } : given;
  last.set(_id, plan.add(plan.make.updateOption({ id: _id }, { name }, waits)).id);
  for (const { at, item } of ring) {
    if (item.name !== undefined) addUpdate(making, at, item._id, { name: item.name }, { after });
  }
}
