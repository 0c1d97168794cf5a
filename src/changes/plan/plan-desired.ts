import { type ChangeItem, createdIn, type ParentRef, type PlanItem, renamedIn } from "../../plans/plan.ts";
import type { PlannedChanges } from "../../plans/planned-undo.ts";
import { defined, groupedBy } from "../../platform/by-key.ts";
import type { PlacedOption } from "../../reads/saved-options.ts";
import { type KnownChange, type OptionPosition, ownReason, type ReportedObject } from "../../runs/outcome.ts";
import type { PlannedRequest, StaleField } from "../rows/entries.ts";
import { type RowBlock, RowWriter } from "../rows/row-block.ts";
import { groupMark } from "./current-values.ts";
import { addSteps, plainItems, type TargetingObjects } from "./desired-steps.ts";
import { contextIdLoss, type Loss, MAX_FREED_NAMES, optionLoss, Plan } from "./plan.ts";
import { plannedRequests, weighed } from "./requests.ts";

const MAX_STALE = 20;

/**
 * Plans a desired state as one run. The objects of the run are the items in their order; if the targeting itself is
 * created, renamed or deleted, it is the first object. If the service has changed since the plan was made, nothing is
 * sent. `show`: the plan is only shown, so no data for an undo is collected.
 */
export function planDesired(changes: PlannedChanges, purpose: "start" | "show" = "start"): Plan {
  const plan = new Plan();
  const keeps = purpose === "start";
  const { further, targeting } = changes;
  const placed = [changes, ...further].map((one) => ({ one, from: addObjects(plan, one) }));
  if (targeting._id !== undefined && further.length === 0) plan.note({ within: targeting._id });
  const left = addLeft(plan, changes);
  const stale = placed.flatMap(({ one }) => one.stale.map(({ difference }) => difference));
  const isStale = stale.length > 0 || (left.length > 0 && placed.every(({ one }) => isEmpty(one)));
  if (isStale) plan.note({ stale: [...stale, ...left].slice(0, MAX_STALE) });
  if (stale.length > 0) for (const { one, from } of placed) failStale(plan, one, from);
  else for (const { one, from } of placed) addChanges(plan, one, from, keeps);
  return plan;
}

function isEmpty({ targeting: { _id, rename, delete: isDeleted }, items }: PlannedChanges): boolean {
  return items.length === 0 && _id !== undefined && rename === undefined && isDeleted !== true;
}

/** Adds objects with unanswered requests that an undo leaves unchanged. Returns them as differences. */
function addLeft(plan: Plan, { unclear = [], left = [] }: PlannedChanges): readonly StaleField[] {
  const why: StaleField[] = [];
  for (const { _id, name } of unclear) {
    const object = plan.object({ index: plan.objects.length, _id, name });
    plan.settlements.push({ object, outcome: "unknown", reason: ownReason("OWNER_UNCLEAR", { existingIds: [_id] }) });
    why.push({ _id, name, field: "name" });
  }
  for (const { _id, name, field = "subOption", left: planned, now: service, reasons, group } of left) {
    const about = { ...defined({ _id }), name };
    const values = defined({ planned, service });
    const object = plan.object({ index: plan.objects.length, ...about });
    plan.fail(object, ownReason("PLAN_STALE", { isUndo: true, field, ...values, ...(reasons && { reasons, group }) }));
    why.push({ ...about, field, ...values });
  }
  return why;
}

/** Returns the requests that a desired state needs if none of them fails. */
export function requestsOf(changes: PlannedChanges): readonly PlannedRequest[] {
  const { steps } = planDesired(changes, "show");
  return weighed(steps, plannedRequests(steps));
}

function addObjects(plan: Plan, changes: PlannedChanges): TargetingObjects {
  const { _id, name, rename, delete: isDeleted } = changes.targeting;
  const own = plan.objects.length;
  const kind = "targeting";
  if (_id === undefined) plan.object({ index: own, name, kind });
  else if (rename !== undefined)
    plan.object({ index: own, _id, name: rename, kind, change: { from: name, to: rename } });
  else if (isDeleted) plan.object({ index: own, _id, name, kind });
  const first = plan.objects.length;
  const plain = plainItems(changes);
  const writer = new RowWriter();
  const rows = new Set<RowBlock>();
  for (const [at, item] of changes.items.entries()) {
    const { length } = plan.objects;
    const object = objectOf(item, length, changes, changes.alreadyDone.has(at));
    if (_id === undefined || item.kind !== "create" || !plain.has(item)) plan.object(object);
    else {
      const block = writer.add({ targeting: _id, name: item.name, contexts: item.contexts }, object, length);
      plan.objects.addRow(block);
      rows.add(block);
    }
  }
  return { own, first, rows };
}

/** Returns what is deleted with a targeting. Context IDs are counted only if all its options (`count`) were read. */
export function targetingLoss(targeting: Pick<Loss, "name" | "_id">, items: readonly PlanItem[], count: number): Loss {
  const seen = items.flatMap((item) => (item.kind === "delete" ? [item.seen.contexts] : []));
  const contextIds = seen.reduce((sum, contexts) => sum + contexts, 0);
  return { ...targeting, kind: "targeting", count, ...(seen.length === count && { contextIds }) };
}

function addChanges(plan: Plan, changes: PlannedChanges, objects: TargetingObjects, keeps: boolean): void {
  const { own, first } = objects;
  const { items, alreadyDone, targeting } = changes;
  const { _id, name } = targeting;
  if (keeps && _id !== undefined && (targeting.rename !== undefined || targeting.delete))
    plan.former.targeting(_id, name);
  noteChanged(plan, changes, keeps);
  if (targeting.delete && _id !== undefined) {
    // A single step deletes the targeting with its options, so it decides about all objects.
    const gone = [own, ...items.map((_, at) => first + at)];
    plan.losses.push(targetingLoss({ name, _id }, items, changes.there.size));
    plan.removed.push({ kind: "targeting", _id });
    plan.add(plan.make.deleteTargeting(_id, { objects: gone }));
    return;
  }
  for (const at of alreadyDone) {
    const item = items[at];
    const id = item === undefined || item.kind === "create" ? {} : { _id: item._id };
    plan.settlements.push({ object: first + at, outcome: "alreadyDone", ...id });
  }
  addSteps(plan, changes, objects);
}

function objectOf(item: PlanItem, index: number, changes: PlannedChanges, isAlreadyDone: boolean): ReportedObject {
  const group = groupMark(item.kind === "create" ? item : item.seen);
  const { line = 0 } = item;
  const place = { index, ...(line > 0 && { line }) };
  if (item.kind === "delete") return { ...place, _id: item._id, name: item.seen.name, ...group };
  if (item.kind === "create") return { ...place, name: item.name, ...group };
  const { _id, seen } = item;
  return {
    ...place,
    _id,
    name: item.name ?? seen.name,
    ...group,
    change: isAlreadyDone ? alreadyDone(item) : changeOf(item, changes),
  };
}

/**
 * Returns the reported counts of an item that others have already applied: how many of its Context IDs are already
 * there, and how many are already absent.
 */
function alreadyDone({ contexts }: ChangeItem): KnownChange {
  const { add, remove } = contexts ?? { add: [], remove: [] };
  return {
    ...(add.length > 0 && { alreadyThere: add.length }),
    ...(remove.length > 0 && { absent: remove.length }),
  };
}

function changeOf({ name, parent, contexts, seen }: ChangeItem, changes: PlannedChanges): KnownChange {
  const placeNow = (id: string | null): OptionPosition => ({
    parent: id,
    parentName: id === null ? null : (changes.there.get(id)?.name ?? null),
  });
  const counts = contexts && {
    ...(contexts.add.length > 0 && { added: contexts.add.length }),
    ...(contexts.remove.length > 0 && { removed: contexts.remove.length }),
  };
  if (parent === undefined) return { ...(name !== undefined && { from: seen.name, to: name }), ...counts };
  const from = placeNow(seen.parent);
  const to = placeOf(parent, changes);
  if (name === undefined) return { from, to, ...counts };
  return { from: { name: seen.name, ...from }, to: { name, ...to }, ...counts };
}

/** Returns the group that an option will have, with its future name. A group that does not exist yet has no ID. */
function placeOf(place: ParentRef, changes: PlannedChanges): OptionPosition {
  if (place === null) return { parent: null, parentName: null };
  if (!("_id" in place)) return defined({ parentName: createdIn(changes, place.item) });
  const { _id } = place;
  return { parent: _id, parentName: renamedIn(changes, _id) ?? changes.there.get(_id)?.name ?? null };
}

function failStale(plan: Plan, { items, stale }: PlannedChanges, { own, first }: TargetingObjects): void {
  const differences = new Map(stale.map(({ at, difference }) => [first + at, difference]));
  for (let object = own; object < first + items.length; object += 1) {
    const about = differences.get(object);
    if (about === undefined) plan.leaveOut(object, ownReason("PLAN_STALE_ELSEWHERE"));
    else {
      const { field, planned, service } = about;
      plan.fail(object, ownReason("PLAN_STALE", { field, ...defined({ planned, service }) }));
    }
  }
}

/** Records what is removed. With `keeps`, also records what an undo needs: the previous values and the removed data. */
function noteChanged(plan: Plan, { items, there, alreadyDone, targeting }: PlannedChanges, keeps: boolean): void {
  const inside = groupedBy(there, ([, { parent }]) => parent);
  const goes = targeting.delete === true;
  const moved = new Set(
    items.flatMap((item) => (item.kind === "change" && item.parent !== undefined ? [item._id] : [])),
  );
  const deleted = new Set(items.flatMap((item) => (item.kind === "delete" ? [item._id] : [])));
  for (const [at, item] of items.entries()) {
    const now = item.kind === "create" ? undefined : there.get(item._id);
    if (item.kind === "create" || now === undefined) continue;
    const { _id } = item;
    const { contexts, ...record } = now;
    const { name, type, parent } = now;
    const isDeleted = item.kind === "delete";
    const { add = [], remove = [] } = (isDeleted ? undefined : item.contexts) ?? {};
    const subOptions = (isDeleted ? (inside.get(_id) ?? []) : []).map(([id]) => id);
    if (keeps && targeting._id !== undefined) {
      const changed = new Set([...add, ...remove]);
      const held = isDeleted ? [...contexts] : contexts.filter((id) => changed.has(id));
      plan.former.record({ ...record, _id, targeting: targeting._id });
      plan.former.option({ _id, held, contextCount: contexts.length, ...(subOptions.length > 0 && { subOptions }) });
    }
    if (goes || alreadyDone.has(at)) continue;
    if (isDeleted && type === "atomic") plan.losses.push(optionLoss({ name, _id, parent }, contexts.length));
    else if (isDeleted) {
      const unmoved = subOptions.filter((id) => !moved.has(id)).toSorted();
      const group = { count: subOptions.length, subOptions: unmoved, ownContextIds: contexts.length };
      const freed = unmoved.filter((id) => !deleted.has(id)).slice(0, MAX_FREED_NAMES);
      const freedNames = freed.flatMap((id) => there.get(id)?.name ?? []);
      plan.losses.push({ name, _id, kind: "optionGroup", ...group, ...(freedNames.length > 0 && { freedNames }) });
    }
    const held = new Set(contexts);
    const removed = remove.filter((id) => held.has(id));
    if (removed.length === 0) continue;
    const sizes = { held: contexts.length, removed: removed.length, added: add.length };
    plan.losses.push(contextIdLoss({ name, _id }, sizes));
    if (keeps) plan.removed.push({ kind: "row", row: { _id, add: removed } });
  }
  const open = goes ? [] : items.filter((_, at) => !alreadyDone.has(at));
  if (keeps && open.some(({ kind }) => kind === "delete")) {
    const options = { [Symbol.iterator]: () => deletedOptions(open, there, targeting._id) };
    plan.removed.push({ kind: "options", options, areRead: true });
  }
}

function* deletedOptions(
  items: readonly PlanItem[],
  there: PlannedChanges["there"],
  targeting: string | undefined,
): Generator<PlacedOption> {
  const gone = new Set(items.flatMap((item) => (item.kind === "delete" ? [item._id] : [])));
  for (const _id of gone) {
    const now = there.get(_id);
    if (now === undefined) continue;
    const { name, contexts, type, parent, exposeChildren } = now;
    const option = {
      ...{ _id, name, type, contextCount: contexts.length },
      ...(parent !== null && { parent }),
      ...defined({ exposeChildren, targeting }),
    };
    yield { option, contexts, groupName: parent !== null && gone.has(parent) ? there.get(parent)?.name : undefined };
  }
}
