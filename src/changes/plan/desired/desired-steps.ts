import { LIMITS } from "../../../spec/limits.ts";
import type { OptionChanges } from "../../../spec/records.ts";
import { parts } from "../checks.ts";
import { contextParts } from "../contexts/context-parts.ts";
import { type NewOption, planOption } from "../creating/options.ts";
import type { Plan } from "../plan.ts";
import type {
  DesiredChanges,
  DesiredCreation,
  DesiredDeletion,
  DesiredPlace,
  DesiredUpdate,
} from "./desired-changes.ts";
import { emptyingOf, push } from "./emptying.ts";
import {
  type Freeing,
  freeingOf,
  isInTree,
  type OpenItems,
  openItems,
  type Placed,
  renamesInOrder,
} from "./freeing.ts";
import { addRing, addUpdate, type Bound, type Making } from "./updates.ts";

/** Adds the steps of the items that are open, each after the steps that it needs. */
export function addSteps(
  plan: Plan,
  changes: DesiredChanges,
  place: { readonly own: number; readonly first: number },
): void {
  const open = openItems(changes);
  const freeing = freeingOf(changes, open);
  const early = earlyDeletions(changes, open, freeing);
  const emptying = emptyingOf(changes, open, freeing, early);
  const isAnyDone = changes.alreadyDone.size > 0;
  const names = isAnyDone ? new Map([...changes.there].map(([id, { name }]) => [name, id])) : new Map();
  const maps = { freed: new Map(), done: new Map(), moved: new Map(), spared: new Map(), last: new Map() };
  const leaving = leavingFirst(open, early);
  const renames = renamesInOrder(open.updates);
  const making: Making = {
    given: new Map(),
    renames,
    names,
    plan,
    changes,
    open,
    freeing,
    emptying,
    leaving,
    ...place,
    ...maps,
  };
  addTargeting(making);
  addSpares(making, early);
  for (const update of leaving.values()) addMove(making, update);
  addDeletions(making, (at) => early.has(at));
  for (const update of renames.ordered) addEarly(making, update);
  addCreations(making);
  addUpdates(making);
  removeSpares(making);
  addDeletions(making, (at) => !early.has(at));
}

function addTargeting({ plan, own, changes: { targeting } }: Making): void {
  const { _id, name, rename } = targeting;
  if (_id === undefined) plan.add(plan.make.createTargeting({ name }, { objects: [own] }));
  else if (rename !== undefined) plan.add(plan.make.renameTargeting(_id, rename, { objects: [own] }));
}

/**
 * The deletions that something else needs, those of a group and its sub-options together: all of them where the targeting
 * would be too large meanwhile.
 */
function earlyDeletions(
  { there }: DesiredChanges,
  { creations, updates, deletions }: OpenItems,
  freeing: Freeing,
): ReadonlySet<number> {
  if (there.size + creations.length > LIMITS.targetingOptions.value) return new Set(deletions.map(({ at }) => at));
  const needed = new Set([...creations, ...updates].flatMap(({ at }) => freeing.needsOf(at)));
  const trees = new Set(deletions.flatMap(({ at, item }) => (needed.has(at) ? treeOf(item) : [])));
  return new Set(deletions.flatMap(({ at, item }) => (treeOf(item).some((id) => trees.has(id)) ? [at] : [])));
}

/** The group that an option is or is in, besides itself. */
function treeOf({ _id, seen: { parent } }: DesiredDeletion): readonly string[] {
  return parent === null ? [_id] : [_id, parent];
}

/**
 * The options, by item, that leave a group which is deleted before everything else, for a place that is there already.
 * Deleted with them inside, the group would make them top-level options. Those for a new group follow: that may need the
 * name of the deleted one.
 */
function leavingFirst({ updates, deletions }: OpenItems, early: ReadonlySet<number>): Making["leaving"] {
  const gone = new Set(deletions.flatMap(({ at, item }) => (early.has(at) ? item._id : [])));
  const leaving = updates.filter(({ item: { parent, seen } }) => {
    const isOpen = parent === null || (parent !== undefined && "_id" in parent);
    return isOpen && seen.parent !== null && gone.has(seen.parent);
  });
  return new Map(leaving.map((update) => [update.at, update]));
}

/** Moves an option; what else it changes follows. */
function addMove(making: Making, { at, item: { _id, parent, seen } }: Placed<DesiredUpdate>): void {
  const spare = making.spared.get(seen.parent ?? "");
  const after = spare === undefined ? [] : [spare];
  addUpdate(making, at, _id, parent === null ? { parent } : {}, { after, group: groupOf(parent, making) });
}

/** Adds deletions; that of a group waits for the options that leave it, and is not sent where one of them cannot. */
function addDeletions(making: Making, isMeant: (at: number) => boolean): void {
  const { plan, open, first, freed, spared, moved, done, emptying } = making;
  const leavers = new Map<string, number[]>();
  for (const { at, item } of open.updates) {
    const step = moved.get(at);
    if (step !== undefined && item.seen.parent !== null) push(leavers, item.seen.parent, step);
  }
  for (const { at, item } of groupsBeforeTheirLast(open.deletions.filter((one) => isMeant(one.at)))) {
    const group = item.seen.parent ?? "";
    const spare = spared.get(group);
    const fillers = emptying.fillersOf(group).flatMap((filler) => done.get(filler) ?? []);
    const after = [...(leavers.get(item._id) ?? []), ...(spare === undefined ? [] : [spare]), ...fillers];
    const given = { objects: [first + at], ...(after.length > 0 && { after }) };
    const step = plan.add(plan.make.deleteOption({ id: item._id }, isInTree(item), given));
    freed.set(at, step.id);
  }
}

/**
 * A group comes before the last of its sub-options, so that no request leaves it empty (management-api 7.4 case 6), and
 * after the others, so that these do not become top-level options in between.
 */
function groupsBeforeTheirLast(deletions: readonly Placed<DesiredDeletion>[]): readonly Placed<DesiredDeletion>[] {
  const groups = new Map<string, Placed<DesiredDeletion>[]>();
  for (const { item } of deletions) if (item.seen.type === "collection") groups.set(item._id, []);
  for (const one of deletions) groups.get(one.item.seen.parent ?? "")?.push(one);
  return deletions.flatMap((one) => {
    const inside = groups.get(one.item._id);
    if (inside !== undefined) return [...inside.slice(0, -1), one, ...inside.slice(-1)];
    return groups.has(one.item.seen.parent ?? "") ? [] : [one];
  });
}

function addSpares(making: Making, early: ReadonlySet<number>): void {
  const gone = new Set(making.open.deletions.flatMap(({ at, item }) => (early.has(at) ? item._id : [])));
  // One that is deleted first needs a Context ID only where options leave it before.
  for (const { item } of making.leaving.values()) gone.delete(item.seen.parent ?? "");
  for (const { group, contextId, about } of making.emptying.spared) {
    if (typeof group !== "string" || gone.has(group)) continue;
    addUpdate(making, about, group, { contexts: { add: [contextId] } });
    const step = making.last.get(group);
    if (step !== undefined) making.spared.set(group, step);
  }
}

function removeSpares(making: Making): void {
  const { plan, first, done, last } = making;
  for (const { group, contextId, about, until } of making.emptying.spared) {
    if (until.length === 0) continue;
    const own = typeof group === "string" ? last.get(group) : undefined;
    const after = [...until.flatMap((at) => done.get(at) ?? []), ...(own === undefined ? [] : [own])];
    const option = typeof group === "string" ? { id: group } : { object: first + group };
    const fields = { objects: [first + about], after: [...new Set(after)] };
    plan.add(plan.make.updateOption(option, { contexts: { remove: [contextId] } }, fields));
  }
}

/** What an option gives up before others take it: its name, and Context IDs that another group gets. */
function addEarly(making: Making, { at, item }: Placed<DesiredUpdate>): void {
  const { freeing, freed, changes, done } = making;
  const held = new Set(changes.there.get(item._id)?.contexts);
  const remove = [...freeing.movingFrom(at)].filter((id) => held.has(id));
  const isNameFirst = freeing.freesName(at) && item.name !== undefined;
  const after = isNameFirst ? neededSteps(at, making) : [];
  addUpdate(
    making,
    at,
    item._id,
    { ...(isNameFirst && { name: item.name }), ...(remove.length > 0 && { contexts: { remove } }) },
    { after },
  );
  const step = done.get(at);
  if (step !== undefined) freed.set(at, step);
}

function addCreations(making: Making): void {
  const { plan, open, own, first, changes, emptying } = making;
  const targeting = changes.targeting._id === undefined ? { object: own } : { id: changes.targeting._id };
  const groupOfNew = ({ item: { parent } }: Placed<DesiredCreation>): number | undefined =>
    parent !== null && "item" in parent && !changes.alreadyDone.has(parent.item) ? parent.item : undefined;
  const inside = new Map<number, Placed<DesiredCreation>[]>();
  for (const one of open.creations) {
    const group = groupOfNew(one);
    if (group !== undefined) push(inside, group, one);
  }
  const spares = new Map(emptying.spared.map(({ group, contextId }) => [group, contextId]));
  for (const creation of open.creations) {
    if (groupOfNew(creation) !== undefined) continue;
    const children = inside.get(creation.at) ?? [];
    const spare = spares.get(creation.at);
    const option = newOption(creation, first);
    const contexts = spare === undefined ? option.contexts : [spare];
    const whole = { ...option, contexts, children: children.map((child) => newOption(child, first)) };
    const after = [creation, ...children].flatMap(({ at }) => neededSteps(at, making));
    const parent = groupOf(creation.item.parent, making);
    const step = planOption(plan, whole, { targeting, ...(parent && { parent }), after: [...new Set(after)] });
    making.done.set(creation.at, step);
  }
}

function newOption({ at, item }: Placed<DesiredCreation>, first: number): NewOption {
  const { name, type, contexts, exposeChildren } = item;
  return { object: first + at, name, contexts, isGroup: type === "collection", exposeChildren, children: [] };
}

/** The group that an option goes into; undefined at the top level. */
function groupOf(place: DesiredPlace | undefined, { changes, first, names }: Making): Bound | undefined {
  if (place === undefined || place === null) return undefined;
  if ("_id" in place) return { id: place._id };
  if (!changes.alreadyDone.has(place.item)) return { object: first + place.item };
  const group = changes.items[place.item];
  const id = group?.kind === "create" ? names.get(group.name) : undefined;
  return id === undefined ? undefined : { id };
}

function neededSteps(at: number, { freeing, freed }: Making): readonly number[] {
  return freeing.needsOf(at).flatMap((needed) => freed.get(needed) ?? []);
}

/** The rest of each change; a group that loses all its Context IDs follows the options that move into it. */
function addUpdates(making: Making): void {
  const { ordered, rings } = making.renames;
  const inRings = new Set(rings.flatMap((ring) => ring.map(({ at }) => at)));
  const lateNames = new Set<string>();
  const { arrivalsBefore, creationsBefore } = making.emptying;
  const isLate = ({ at, item: { _id, name, seen } }: Placed<DesiredUpdate>): boolean => {
    const waits = arrivalsBefore(_id).length + creationsBefore(at).length > 0;
    const isOfLate = name !== undefined && !inRings.has(at) && lateNames.has(name);
    if ((waits || isOfLate) && name !== undefined && !inRings.has(at)) lateNames.add(seen.name);
    return waits || isOfLate;
  };
  const late = ordered.filter(isLate);
  const isLateToo = new Set(late);
  for (const update of ordered) if (!isLateToo.has(update)) addRest(making, update, inRings.has(update.at));
  for (const update of late) addRest(making, update, inRings.has(update.at));
  for (const ring of rings) addRing(making, ring);
}

function addRest(making: Making, { at, item }: Placed<DesiredUpdate>, isInRing: boolean): void {
  const { freeing, changes, emptying, done, moved, spared, leaving } = making;
  const { _id, name, exposeChildren, contexts, seen } = item;
  const parent = leaving.has(at) ? undefined : item.parent;
  const moving = freeing.movingFrom(at);
  const held = new Set(changes.there.get(_id)?.contexts);
  const add = (contexts?.add ?? []).filter((id) => !held.has(id));
  const remove = (contexts?.remove ?? []).filter((id) => held.has(id) && !moving.has(id));
  const all = [...add, ...remove];
  const isWhole = parts(all).length === 1;
  const lists = { ...(add.length > 0 && { add }), ...(remove.length > 0 && { remove }) };
  // A group that would be empty without it has its spare Context ID first.
  const left = parent === undefined ? undefined : spared.get(seen.parent ?? "");
  const after = [
    ...neededSteps(at, making),
    ...emptying.arrivalsBefore(_id).flatMap((one) => moved.get(one) ?? []),
    ...emptying.creationsBefore(at).flatMap((one) => done.get(one) ?? []),
    ...(left === undefined ? [] : [left]),
  ];
  const rest: OptionChanges = {
    ...(parent === null && { parent }),
    ...(exposeChildren !== undefined && { exposeChildren }),
    ...(isWhole && all.length > 0 && { contexts: lists }),
  };
  const named: OptionChanges = name === undefined || freeing.freesName(at) ? {} : { name };
  const group = groupOf(parent, making);
  addUpdate(making, at, _id, isInRing ? rest : { ...named, ...rest }, { after, group });
  if (isWhole) return;
  const growth = { ids: Math.max(0, LIMITS.optionContextIds.value - held.size), bytes: Number.POSITIVE_INFINITY };
  for (const part of contextParts({ add, remove }, { growth }))
    addUpdate(making, at, _id, { contexts: part }, { after });
}
