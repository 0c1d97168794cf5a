import { createHash } from "node:crypto";
import { planRequests } from "../../model/order.ts";
import {
  type Change,
  type CreateItem,
  type Item,
  type KnownOption,
  type Placeholders,
  type Ref,
  TargetingModel,
  type UpdateItem,
  Work,
} from "../../model/targeting-model.ts";
import {
  changeOf,
  groupAt,
  knownOption,
  NO_CONTEXTS,
  type ParentRef,
  type PlanItem,
  positionOf,
} from "../../plans/plan.ts";
import type { PlannedChanges } from "../../plans/planned-undo.ts";
import { defined } from "../../platform/by-key.ts";
import { ownReason } from "../../runs/outcome.ts";
import { LIMITS } from "../../spec/limits.ts";
import type { OptionChanges } from "../../spec/records.ts";
import type { Bound, Step } from "../rows/entries.ts";
import type { RowBlock } from "../rows/row-block.ts";
import { contextParts } from "./context-changes.ts";
import { type NewOption, planOption, ROW_CONTEXT_IDS } from "./option-drafts.ts";
import { type Plan, parts } from "./plan.ts";
import { MEASURES, REQUEST_LIMITS } from "./requests.ts";

/**
 * The positions of one targeting's objects in the plan: `own` is the position of the targeting itself, `first` the
 * position of its first item.
 */
export interface TargetingObjects {
  readonly own: number;
  readonly first: number;
  readonly rows: ReadonlySet<RowBlock>;
}

/**
 * Returns the new top-level options on which no other change depends. They are stored as rows, because 100,000 separate
 * steps would need much memory. Returns none if the targeting is new, if one request can contain all these options, or
 * if other options may have to be deleted first.
 */
export function plainItems({ targeting, items, alreadyDone, there }: PlannedChanges): ReadonlySet<PlanItem> {
  const created = items.filter(({ kind }) => kind === "create").length;
  if (targeting._id === undefined || there.size + created > LIMITS.targetingOptions.value) return new Set();
  const taken = new Set([...there.values()].map(({ name }) => name));
  const plain = new Map<string, PlanItem>();
  for (const [at, item] of items.entries()) {
    if (item.kind !== "create") taken.add(item.seen.name);
    if (item.kind === "delete" || item.name === undefined || alreadyDone.has(at)) continue;
    if (isPlain(item) && !plain.has(item.name)) plain.set(item.name, item);
    else taken.add(item.name);
  }
  for (const name of taken) plain.delete(name);
  return new Set(plain.size > LIMITS.optionItems.value ? plain.values() : []);
}

function isPlain(item: PlanItem): boolean {
  const isNew = item.kind === "create" && item.type === "atomic" && item.parent === null;
  return isNew && item.contexts.length <= ROW_CONTEXT_IDS;
}

interface StepContext extends TargetingObjects {
  readonly plan: Plan;
  readonly changes: PlannedChanges;
  readonly itemOf: ReadonlyMap<Ref, number>;
  readonly groupOf: (place: ParentRef) => Ref | null;
  readonly placeholders: Placeholders;
  last: readonly number[];
}

/**
 * Adds the steps of all items that are not done yet, in the order of the requests that will send them. If the targeting
 * would exceed its limit of options between two requests, whatever their order, all items fail.
 */
export function addSteps(plan: Plan, changes: PlannedChanges, place: TargetingObjects): void {
  const { items, alreadyDone } = changes;
  const open = items.flatMap((item, at) => (alreadyDone.has(at) ? [] : [{ at, item }]));
  // `ordered` lacks the options that are stored as rows. No other change depends on them, so they can be sent at any
  // time.
  const ordered = open.filter(({ at }) => plan.objects.rowAt(place.first + at) === undefined);
  const groupOf = groupFinder(changes);
  const wishes = ordered.map(({ at, item }) => ({ at, change: changeOf(item, at, groupOf) }));
  const itemOf = new Map(wishes.map(({ at, change }) => [change.ref, at]));
  const wanted = new Map(wishes.map(({ change }) => [change.ref, change]));
  const placeholders = placeholdersOf(changes);
  const making: StepContext = { plan, changes, ...place, itemOf, groupOf, placeholders, last: [] };
  addTargeting(making);
  const { model, others } = modelOf(changes, wanted);
  const room = LIMITS.targetingOptions.value - others - (open.length - ordered.length);
  const work = new Work(model, wanted, { placeholders, room });
  const { requests, isWhole } = planRequests(work);
  if (!isWhole) {
    const reason = ownReason("NO_FREE_PLACE", { limit: LIMITS.targetingOptions.value, there: changes.there.size });
    for (const { at } of open) plan.fail(place.first + at, reason);
    return;
  }
  for (const block of place.rows) plan.addRows({ block, from: 0, to: block.length });
  // `planRequests` has changed its model to the final state. This one has the state before each request.
  const before = modelOf(changes, wanted).model;
  for (const request of requests) {
    addRequest(making, request, before);
    for (const item of request) before.apply(item);
  }
}

function addTargeting({ plan, own, changes: { targeting } }: StepContext): void {
  const { _id, name, rename } = targeting;
  if (_id === undefined) plan.add(plan.make.createTargeting({ name }, { objects: [own] }));
  else if (rename !== undefined) plan.add(plan.make.renameTargeting(_id, rename, { objects: [own] }));
}

/** Returns the temporary names and Context IDs of a plan. They come from IDs, so planning again gives the same ones. */
function placeholdersOf({ targeting }: PlannedChanges): Placeholders {
  const known = new Map<string, string>();
  const lettersFor = (ref: Ref): string => {
    const about = `${targeting._id} ${ref}`;
    const letters = known.get(about) ?? createHash("sha256").update(about).digest("hex").slice(0, 26);
    known.set(about, letters);
    return letters;
  };
  return { nameOf: (ref) => `tmp ${lettersFor(ref)}`, contextIdOf: (group) => `tmp-${lettersFor(group)}` };
}

/** Returns a function that finds the group of an item, by name if the group to be created exists already. */
function groupFinder({ alreadyDone, items, there }: PlannedChanges): StepContext["groupOf"] {
  const byName = new Map(alreadyDone.size === 0 ? [] : [...there].map(([ref, { name }]) => [name, ref]));
  return (place) => {
    const made = place !== null && "item" in place && alreadyDone.has(place.item) ? items[place.item] : undefined;
    return (made?.kind === "create" ? byName.get(made.name) : undefined) ?? groupAt(place);
  };
}

/**
 * Returns a model of the options that the changes concern, for planning the requests, and how many other options the
 * targeting has (`others`). In the model, an option that was not read is as the plan saw it, and a group that was not
 * read is not empty.
 */
function modelOf({ there, items }: PlannedChanges, wanted: ReadonlyMap<Ref, Change>) {
  const names = new Set<string>();
  const groups = new Set<Ref>();
  for (const change of wanted.values()) {
    const now = there.get(change.ref);
    if (now !== undefined && now.parent !== null) groups.add(now.parent);
    if (now?.type === "collection") groups.add(change.ref);
    if (change.kind === "delete") continue;
    if (change.name !== undefined) names.add(change.name);
    if (change.parent !== undefined && change.parent !== null) groups.add(change.parent);
  }
  const model = new TargetingModel();
  let others = 0;
  for (const [ref, option] of there) {
    const { name, parent, type } = option;
    const isGroup = type === "collection";
    const isInside = parent !== null && groups.has(parent);
    if (isGroup || isInside || wanted.has(ref) || names.has(name)) {
      model.put(ref, knownOption(option, isGroup || wanted.has(ref)));
    } else others += 1;
  }
  for (const item of items) {
    if (item.kind === "create" || !wanted.has(item._id) || model.options.has(item._id)) continue;
    const { name, parent, type } = item.seen;
    const contexts = new Set(item.kind === "change" ? item.contexts?.remove : []);
    model.put(item._id, { name, group: type === "collection", parent, expose: false, contexts, others: 1 });
    if (parent !== null) groups.add(parent);
  }
  for (const ref of groups) {
    if (model.options.has(ref) || positionOf(ref) !== undefined) continue;
    model.put(ref, { name: ref, group: true, parent: null, expose: false, contexts: NO_CONTEXTS, others: 1 });
  }
  return { model, others };
}

/** Adds the steps of one request. If they do not fit into one, they are split into several, which are sent in order. */
function addRequest(making: StepContext, request: readonly Item[], before: TargetingModel): void {
  const { plan } = making;
  let { last: after } = making;
  let filled = MEASURES.map(() => 0);
  let latest: number | undefined;
  const lastParts: number[] = [];
  for (const item of request) {
    if (item.op === "create") {
      latest = addCreation(making, item, after);
      continue;
    }
    const step = item.op === "delete" ? deletion(making, item.ref, after) : update(making, item, { before, after });
    const limits = REQUEST_LIMITS[step.operation];
    const sums = MEASURES.map((measure, place) => (filled[place] ?? 0) + step.weight[measure]);
    const isFull = latest !== undefined && MEASURES.some((measure, place) => (sums[place] ?? 0) > limits[measure]);
    filled = isFull ? MEASURES.map((measure) => step.weight[measure]) : sums;
    // This and later items may need names that the full request frees, so they wait until it has ended.
    if (isFull && latest !== undefined) after = [latest];
    plan.add(isFull ? { ...step, after } : step);
    latest = step.id;
    if (item.op === "update") lastParts.push(...addContextParts(making, item, step.id, before));
  }
  making.last = [...new Set([...(latest === undefined ? [] : [latest]), ...lastParts, plan.steps.length - 1])];
}

function addCreation(making: StepContext, item: CreateItem, after: readonly number[]): number {
  const { plan, own, changes } = making;
  const targeting = changes.targeting._id === undefined ? { object: own } : { id: changes.targeting._id };
  const parent = item.parent === null ? undefined : boundTo(making, item.parent);
  const option = newOption(making, item, item.group);
  const children = item.children.map((child) => newOption(making, child, false));
  return planOption(plan, { ...option, children }, { targeting, ...(parent && { parent }), after });
}

function newOption(
  { changes, first }: StepContext,
  { ref, name, contexts }: Pick<CreateItem, "ref" | "name" | "contexts">,
  isGroup: boolean,
): NewOption {
  const at = positionOf(ref) ?? 0;
  const item = changes.items[at];
  const exposeChildren = item?.kind === "create" ? item.exposeChildren : undefined;
  return { object: first + at, name, contexts, isGroup, exposeChildren, children: [] };
}

function boundTo({ first }: StepContext, ref: Ref): Bound {
  const at = positionOf(ref);
  return at === undefined ? { id: ref } : { object: first + at };
}

function deletion(making: StepContext, ref: Ref, after: readonly number[]): Step {
  const { plan, changes, itemOf, first } = making;
  const at = itemOf.get(ref) ?? 0;
  const item = changes.items[at];
  const isInTree = item?.kind === "delete" && (item.seen.type === "collection" || item.seen.parent !== null);
  return plan.make.deleteOption(boundTo(making, ref), isInTree, { objects: [first + at], after });
}

/** Returns the first step of an update, with as many of its Context IDs as one request can have. */
function update(
  making: StepContext,
  item: UpdateItem,
  { before, after }: { readonly before: TargetingModel; readonly after: readonly number[] },
): Step {
  const { plan, placeholders } = making;
  const { ref, name, parent, expose } = item;
  const [contexts] = contextsOf(item, before.options.get(ref));
  const detached = parent === null ? parent : undefined;
  const fields: OptionChanges = defined({ name, parent: detached, exposeChildren: expose, contexts });
  const formerName = name === placeholders.nameOf(ref) ? before.options.get(ref)?.name : undefined;
  const given = {
    objects: [objectOf(making, item, before)],
    after,
    ...(formerName !== undefined && { prepares: true as const, formerName }),
  };
  const group = parent === undefined || parent === null ? undefined : boundTo(making, parent);
  return plan.make.updateOption(boundTo(making, ref), fields, given, group);
}

/** Adds the remaining parts of a long change of Context IDs. Returns the ID of the last part, if there are any. */
function addContextParts(
  making: StepContext,
  item: UpdateItem,
  first: number,
  before: TargetingModel,
): readonly number[] {
  const { plan } = making;
  let last = first;
  for (const contexts of contextsOf(item, before.options.get(item.ref)).slice(1)) {
    const given = { objects: [objectOf(making, item, before)], after: [last] };
    last = plan.add(plan.make.updateOption(boundTo(making, item.ref), { contexts }, given)).id;
  }
  return last === first ? [] : [last];
}

function contextsOf({ add, remove }: UpdateItem, known: KnownOption | undefined) {
  const all = [...add, ...remove];
  if (all.length === 0) return [];
  if (parts(all).length === 1) return [{ ...(add.length > 0 && { add }), ...(remove.length > 0 && { remove }) }];
  const room = LIMITS.optionContextIds.value - (known?.contexts.size ?? 0);
  return contextParts({ add, remove }, { growth: { ids: Math.max(0, room), bytes: Number.POSITIVE_INFINITY } });
}

/**
 * Returns the position of the object under which an update is reported. A group without an item is reported under an
 * item whose option leaves or enters it.
 */
function objectOf(
  { itemOf, changes, groupOf, first }: StepContext,
  { ref }: UpdateItem,
  before: TargetingModel,
): number {
  const own = itemOf.get(ref);
  if (own !== undefined) return first + own;
  const leaving = [...before.inside(ref)].flatMap((child) => itemOf.get(child) ?? []);
  const entering = changes.items.findIndex(
    (item) => item.kind !== "delete" && item.parent !== undefined && groupOf(item.parent) === ref,
  );
  return first + (leaving[0] ?? Math.max(0, entering));
}
