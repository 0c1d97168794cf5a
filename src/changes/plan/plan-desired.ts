import type { PlacedOption } from "../../reads/saved-options.ts";
import { type KnownChange, type OptionPlace, ownReason } from "../../runs/outcome.ts";
import type { PlannedRequest } from "../rows/entries.ts";
import type { DesiredChanges, DesiredItem, DesiredPlace, DesiredUpdate } from "./desired-changes.ts";
import { addSteps } from "./desired-steps.ts";
import { Plan } from "./plan.ts";
import { plannedRequests, weighed } from "./requests.ts";

/** How many of the things that have changed since are kept for the report. */
const MOST_STALE = 20;

/**
 * Plans the changes of a desired state as one run: every item is an object, in its order, after the targeting where that
 * is created, renamed or deleted. What frees a name, a place or a Context ID comes before what needs it. Where something
 * is no longer as it was planned for, everything fails, and nothing is sent. A plan that is only shown keeps nothing for
 * the way back.
 */
export function planDesired(changes: DesiredChanges, purpose: "start" | "show" = "start"): Plan {
  const plan = new Plan();
  const keeps = purpose === "start";
  const { further = [], targeting } = changes;
  const placed = [changes, ...further].map((one) => ({ one, from: addObjects(plan, one) }));
  if (targeting._id !== undefined && further.length === 0) plan.facts = { ...plan.facts, within: targeting._id };
  for (const { _id, name } of changes.unclear ?? []) {
    const object = plan.object({ index: plan.objects.length, _id, name });
    plan.settlements.push({ object, outcome: "unknown", reason: ownReason("OWNER_UNCLEAR", { existingIds: [_id] }) });
  }
  const stale = placed.flatMap(({ one }) => one.stale);
  if (stale.length > 0) {
    plan.facts = { ...plan.facts, stale: stale.slice(0, MOST_STALE) };
    for (const { one, from } of placed) failStale(plan, one, from);
  } else for (const { one, from } of placed) addChanges(plan, one, { ...from, keeps });
  return plan;
}

/** The requests that the changes of a desired state need, if every answer is a success. */
export function requestsOf(changes: DesiredChanges): readonly PlannedRequest[] {
  const { steps } = planDesired(changes, "show");
  return weighed(steps, plannedRequests(steps));
}

/** Where the objects of a targeting are: its own, where it has one, and that of its first item. */
interface ObjectPlace {
  readonly own: number;
  readonly first: number;
}

function addObjects(plan: Plan, changes: DesiredChanges): ObjectPlace {
  const { _id, name, rename, delete: isDeleted } = changes.targeting;
  const own = plan.objects.length;
  if (_id === undefined) plan.object({ index: own, name });
  else if (rename !== undefined) plan.object({ index: own, _id, name: rename, change: { from: name, to: rename } });
  else if (isDeleted) plan.object({ index: own, _id, name });
  const first = plan.objects.length;
  for (const item of changes.items) plan.object(objectOf(item, plan.objects.length, changes));
  return { own, first };
}

/** Where the objects of a targeting are, and whether what is there is kept for the way back. */
interface Adding extends ObjectPlace {
  readonly keeps: boolean;
}

function addChanges(plan: Plan, changes: DesiredChanges, { own, first, keeps }: Adding): void {
  const { items, alreadyDone, targeting } = changes;
  if (keeps) noteFormer(plan, changes);
  if (targeting.delete && targeting._id !== undefined) {
    const { _id, name } = targeting;
    // Its options go with it.
    const objects = [own, ...items.map((_, at) => first + at)];
    plan.losses.push({ name, _id, kind: "targeting", count: changes.there.size });
    plan.removed.push({ kind: "targeting", _id });
    plan.add(plan.make.deleteTargeting(_id, { objects }));
    return;
  }
  for (const at of alreadyDone) {
    const item = items[at];
    const id = item === undefined || item.kind === "create" ? {} : { _id: item._id };
    plan.settlements.push({ object: first + at, outcome: "alreadyDone", ...id });
  }
  noteLosses(plan, changes, keeps);
  addSteps(plan, changes, { own, first });
}

/** Notes what is there before it is changed, for the way back. */
function noteFormer({ former }: Plan, { targeting, items, there }: DesiredChanges): void {
  const { _id: targetingId } = targeting;
  if (targetingId === undefined) return;
  if (targeting.rename !== undefined || targeting.delete) former.targeting(targetingId, targeting.name);
  const subOptions = subOptionsIn(there);
  for (const item of items) {
    const now = item.kind === "create" ? undefined : there.get(item._id);
    if (item.kind === "create" || now === undefined) continue;
    const { contexts, ...record } = now;
    former.record({ ...record, _id: item._id, targeting: targetingId });
    const { add = [], remove = [] } = item.kind === "change" ? (item.contexts ?? {}) : {};
    const changed = new Set([...add, ...remove]);
    const held = item.kind === "delete" ? [...contexts] : contexts.filter((id) => changed.has(id));
    const inside = item.kind === "delete" ? (subOptions.get(item._id) ?? []) : [];
    former.option({ _id: item._id, held, ...(inside.length > 0 && { subOptions: inside }) });
  }
}

function objectOf(item: DesiredItem, index: number, changes: DesiredChanges) {
  if (item.kind === "delete") return { index, _id: item._id, name: item.seen.name };
  if (item.kind === "create") return { index, ...(item.line > 0 && { line: item.line }), name: item.name };
  const { _id, line, seen } = item;
  return { index, ...(line > 0 && { line }), _id, name: item.name ?? seen.name, change: changeOf(item, changes) };
}

/** What a row of the report says about a change. */
function changeOf({ name, parent, contexts, seen }: DesiredUpdate, changes: DesiredChanges): KnownChange {
  const placeNow = (id: string | null): OptionPlace => ({
    parent: id,
    parentName: id === null ? null : (changes.there.get(id)?.name ?? null),
  });
  const counts = contexts && {
    ...(contexts.add.length > 0 && { added: contexts.add.length }),
    ...(contexts.remove.length > 0 && { removed: contexts.remove.length }),
  };
  if (parent === undefined) return { ...(name !== undefined && { from: seen.name, to: name }), ...counts };
  const [from, to] = [placeNow(seen.parent), placeOf(parent, changes)];
  if (name === undefined) return { from, to, ...counts };
  return { from: { name: seen.name, ...from }, to: { name, ...to }, ...counts };
}

/** Where an option will be: under the name that its group gets. The ID of one that is created is not known yet. */
function placeOf(place: DesiredPlace, { items, there }: DesiredChanges): OptionPlace {
  if (place === null) return { parent: null, parentName: null };
  if ("_id" in place) {
    const group = items.find((item) => item.kind === "change" && item._id === place._id);
    const renamed = group?.kind === "change" ? group.name : undefined;
    return { parent: place._id, parentName: renamed ?? there.get(place._id)?.name ?? null };
  }
  const group = items[place.item];
  return group?.kind === "create" ? { parentName: group.name } : {};
}

function failStale(plan: Plan, { items, stale }: DesiredChanges, { own, first }: ObjectPlace): void {
  const byId = new Map(stale.flatMap((one) => (one._id === undefined ? [] : [[one._id, one]])));
  const byName = new Map(stale.map((one) => [one.name, one]));
  for (let object = own; object < first + items.length; object += 1) {
    const item = items[object - first];
    const found = item === undefined || item.kind === "create" ? undefined : byId.get(item._id);
    const about = found ?? (item?.kind === "create" ? byName.get(item.name) : undefined);
    if (about === undefined) plan.leaveOut(object, ownReason("PLAN_STALE_ELSEWHERE"));
    else {
      const { field, planned, service } = about;
      const known = { ...(planned !== undefined && { planned }), ...(service !== undefined && { service }) };
      plan.fail(object, ownReason("PLAN_STALE", { field, ...known }));
    }
  }
}

/** The sub-options of each group. */
function subOptionsIn(there: DesiredChanges["there"]): ReadonlyMap<string, string[]> {
  const inside = new Map<string, string[]>();
  for (const [id, { parent }] of there) {
    if (parent === null) continue;
    const ids = inside.get(parent);
    if (ids === undefined) inside.set(parent, [id]);
    else ids.push(id);
  }
  return inside;
}

/** Notes what is taken away, so that a person is asked about it, and what is kept of it for the way back. */
function noteLosses(plan: Plan, { items, there, alreadyDone, targeting }: DesiredChanges, keeps: boolean): void {
  const open = items.filter((_, at) => !alreadyDone.has(at));
  const inGroups = subOptionsIn(there);
  for (const item of open) {
    if (item.kind === "create") continue;
    const { _id } = item;
    const now = there.get(_id);
    if (now === undefined) continue;
    const { name, contexts, type } = now;
    if (item.kind === "delete") {
      const subOptions = (inGroups.get(_id) ?? []).sort();
      const loss = { name, _id };
      if (type === "atomic") plan.losses.push({ ...loss, kind: "option", count: contexts.length });
      else {
        const own = { count: subOptions.length, subOptions, ownContextIds: contexts.length };
        plan.losses.push({ ...loss, kind: "optionGroup", ...own });
      }
      continue;
    }
    const { add = [], remove = [] } = item.contexts ?? {};
    const held = new Set(contexts);
    const removed = remove.filter((id) => held.has(id));
    if (removed.length === 0) continue;
    const empties = removed.length === contexts.length && add.length === 0;
    plan.losses.push({ name, _id, kind: "contextIds", count: removed.length, ...(empties && { empties }) });
    if (keeps) plan.removed.push({ kind: "row", row: { _id, add: removed } });
  }
  if (keeps && open.some(({ kind }) => kind === "delete")) {
    const options = { [Symbol.iterator]: () => deletedOptions(open, there, targeting._id) };
    plan.removed.push({ kind: "options", options, areRead: true });
  }
}

/** The options that are deleted, as they are now. */
function* deletedOptions(
  items: readonly DesiredItem[],
  there: DesiredChanges["there"],
  targeting: string | undefined,
): Generator<PlacedOption> {
  const gone = new Set(items.flatMap((item) => (item.kind === "delete" ? [item._id] : [])));
  for (const _id of gone) {
    const now = there.get(_id);
    if (now === undefined) continue;
    const { name, contexts, type, parent, exposeChildren } = now;
    const expose = exposeChildren === undefined ? {} : { exposeChildren };
    const record = { _id, name, type, contextCount: contexts.length, ...(parent !== null && { parent }), ...expose };
    const option = { ...record, ...(targeting !== undefined && { targeting }) };
    yield { option, contexts, groupName: parent !== null && gone.has(parent) ? there.get(parent)?.name : undefined };
  }
}
