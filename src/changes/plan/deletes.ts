import type { ManagementApi } from "../../api/management.ts";
import { addTo, defined } from "../../platform/by-key.ts";
import { findOptions, isMissing, mapConcurrently, readOptionContents } from "../../reads/option-contents.ts";
import { emptyOptions, isLeftEmpty, readOptions } from "../../reads/option-lists.ts";
import type { PlacedOption } from "../../reads/saved-options.ts";
import { ownReason, type Reason } from "../../runs/outcome.ts";
import { ERROR_CODES } from "../../spec/error-codes.ts";
import type { OptionRecord, TargetingRecord } from "../../spec/records.ts";
import { requestReason } from "../api-reasons.ts";
import type { Inputs } from "../call.ts";
import {
  groupMark,
  isOption,
  noteCommonTargeting,
  optionFinder,
  reasonIfRenamed,
  unnamed,
  withoutNames,
} from "./current-values.ts";

import { badId, type Loss, type LostOption, MAX_FREED_NAMES, optionLoss, Plan, type PlanningContext } from "./plan.ts";

interface WantedDelete {
  readonly _id: string;
  readonly object: number;
}

/**
 * Plans deleting targetings, which it reads first. If a read fails, throws its ApiError. If a targeting does not exist,
 * only its object fails.
 */
export async function planDeleteTargetings(input: Inputs["delete_targeting"], context: PlanningContext): Promise<Plan> {
  const { api, signal } = context;
  const plan = new Plan();
  const objects = [
    ...input.ids.map((_id, index) => ({ _id, object: plan.object({ index, _id }) })),
    ...namedTargetings(plan, input),
  ];
  const nameOf = new Map((input.names ?? []).map(({ _id, currentName }) => [_id, currentName]));
  const read = await mapConcurrently([...validIds(plan, objects)], async ([_id, about]) => {
    try {
      const targeting = await api.getTargeting(_id, { signal });
      const another = reasonIfRenamed(input.ids.includes(_id) ? undefined : nameOf.get(_id), targeting.name);
      if (another === undefined) return { about, loss: await lossOfTargeting(targeting, context) };
      for (const object of about) plan.fail(object, another);
      return undefined;
    } catch (thrown) {
      if (!isMissing(thrown)) throw thrown;
      for (const object of about) plan.fail(object, requestReason("deleteTargetings", thrown));
      return undefined;
    }
  });
  for (const { about, loss } of read) {
    const { _id, name } = loss;
    for (const object of about) plan.objects.amend(object, { name });
    plan.losses.push(loss);
    plan.former.targeting(_id, name);
    plan.removed.push({ kind: "targeting", _id });
    plan.add(plan.make.deleteTargeting(_id, { objects: about }));
  }
  const full = read.filter(({ loss }) => loss.count > 0);
  const inside = full.map(({ loss: { _id, count: options, groups = 0 } }) => ({ _id, options, groups }));
  if (inside.length > 0) plan.note({ inside });
  return plan;
}

const NAMED = { first: 990, last: 10 } as const;

async function lossOfTargeting(
  { _id, name, optionCount = 0 }: TargetingRecord,
  { api, signal }: PlanningContext,
): Promise<Loss> {
  const loss = { name, _id, kind: "targeting", count: optionCount } as const;
  if (optionCount === 0) return loss;
  const first: LostOption[] = [];
  let last: LostOption[] = [];
  let contextIds: number | undefined = 0;
  let groups = 0;
  let updatedAt = "";
  for await (const { contextCount, ...option } of readOptions(api, _id, signal)) {
    if (option.updatedAt !== undefined && option.updatedAt > updatedAt) updatedAt = option.updatedAt;
    if (option.type === "collection") groups += 1;
    contextIds = contextCount === undefined || contextIds === undefined ? undefined : contextIds + contextCount;
    const lost = { name: option.name, _id: option._id, contextIds: contextCount ?? 0 };
    if (first.length < NAMED.first) first.push(lost);
    else last = [...last.slice(1 - NAMED.last), lost];
  }
  const changed = updatedAt === "" ? loss : { ...loss, updatedAt };
  return contextIds === undefined ? changed : { ...changed, contextIds, groups, options: [...first, ...last] };
}

/** Returns the targetings that were given by name and found. The others are recorded in the plan as failed. */
function namedTargetings(plan: Plan, { ids, names = [] }: Inputs["delete_targeting"]): readonly WantedDelete[] {
  return names.flatMap((named, position) => {
    const { _id, currentName: name } = named;
    const object = plan.object({ index: ids.length + position, ...defined({ _id }), name });
    if (_id !== undefined) return [{ _id, object }];
    plan.fail(object, unnamed(named));
    return [];
  });
}

/**
 * Plans deleting options. They are read first, to show what would be deleted, and because a request may contain only
 * 150 groups and sub-options. A group is deleted just before its last sub-option. So no group becomes empty
 * (management-api 7.4, case 6). Of the deleted sub-options, only the last one can move to the top level: it does if the
 * next request deletes it.
 */
export async function planDeleteOptions(input: Inputs["delete_options"], context: PlanningContext): Promise<Plan> {
  const { api, signal } = context;
  const plan = new Plan();
  const { wanted, known } = await wantedOptions(plan, input, context);
  const objects = validIds(plan, wanted);
  const { found: others, missing } = await findOptions(
    api,
    [...objects.keys()].filter((id) => !known.has(id)),
    signal,
  );
  for (const [id, refused] of missing) {
    for (const object of objects.get(id) ?? []) plan.fail(object, requestReason("deleteOptions", refused));
  }
  const all = [...objects.keys()].flatMap((id) => known.get(id) ?? others.get(id) ?? []);
  const there = input.onlyEmpty === true ? emptyOptions(all) : all;
  const going = new Set(there);
  const leaving = new Map<string, number>();
  for (const { parent } of there) if (typeof parent === "string") leaving.set(parent, (leaving.get(parent) ?? 0) + 1);
  for (const option of all.filter((one) => !going.has(one))) {
    const { _id, name, contextCount, childCount } = option;
    const staying = childCount === undefined ? {} : { childCount: childCount - (leaving.get(_id) ?? 0) };
    const reason = ownReason("NOT_EMPTY", { contextCount, ...staying });
    for (const object of objects.get(_id) ?? []) {
      plan.objects.amend(object, { name, ...groupMark(option) });
      plan.settlements.push({ object, outcome: "skipped", reason });
    }
  }
  const ordered = orderDeletions(there);
  const lastOf = await groupsLeftEmpty(ordered, known, context);
  const isKept = ({ _id }: OptionRecord): boolean => lastOf.has(_id);
  // If the service would refuse all deletions, nothing is sent, and nobody has to approve anything.
  const isNothingSent = ordered.length > 0 && ordered.every(isKept);
  const isSent = (option: OptionRecord): boolean => !isKept(option) || (input.onlyEmpty !== true && !isNothingSent);
  const sent = ordered.filter(isSent);
  const outcome = input.onlyEmpty === true ? "skipped" : "failed";
  for (const { _id, name } of ordered.filter((option) => !isSent(option))) {
    const reason = leavesEmpty(lastOf.get(_id)?.name);
    for (const object of objects.get(_id) ?? []) {
      plan.objects.amend(object, { name });
      plan.settlements.push({ object, outcome, reason });
    }
  }
  if (isNothingSent) return plan;
  for (const option of sent) {
    const about = { objects: objects.get(option._id) ?? [] };
    for (const object of about.objects) plan.objects.amend(object, { name: option.name, ...groupMark(option) });
    const isInTree = isGroup(option) || typeof option.parent === "string";
    plan.add(plan.make.deleteOption({ id: option._id }, isInTree, about));
  }
  for (const loss of await mapConcurrently(ordered, (option) => lossOf(option, context))) {
    const group = lastOf.get(loss._id);
    const freed = (loss.subOptions ?? []).filter((id) => !objects.has(id)).slice(0, MAX_FREED_NAMES);
    const freedNames = freed.flatMap((id) => known.get(id)?.name ?? []);
    const named = freedNames.length > 0 ? { ...loss, freedNames } : loss;
    plan.losses.push(group === undefined ? named : { ...named, lastOf: group });
  }
  for (const { _id, subOptions } of plan.losses) {
    if (subOptions !== undefined) plan.former.option({ _id, subOptions: [...subOptions] });
  }
  if (sent.length > 0) plan.removed.push({ kind: "options", options: placed(sent) });
  const targetings = ordered.map(({ targeting }) => targeting);
  noteCommonTargeting(plan, targetings);
  return plan;
}

/** Returns the error that the service returns if a group would become empty (management-api 7.4, case 6). */
function leavesEmpty(group: string | undefined): Reason {
  const { statusCode } = ERROR_CODES.TARGETING_CATEGORY_NOT_SUPPORTED;
  const code = "TARGETING_CATEGORY_NOT_SUPPORTED";
  return { code, statusCode, operation: "deleteOptions", detail: { group }, sent: [] };
}

/** Returns the sub-options that the service will not delete, by ID, with the group that would become empty. */
async function groupsLeftEmpty(
  ordered: readonly OptionRecord[],
  known: ReadonlyMap<string, OptionRecord>,
  { api, signal }: PlanningContext,
): Promise<ReadonlyMap<string, Loss["lastOf"]>> {
  const deleted = new Set(ordered.map(({ _id }) => _id));
  const leaving = new Map<string, string[]>();
  for (const { _id, parent } of ordered) {
    if (typeof parent !== "string" || deleted.has(parent)) continue;
    addTo(leaving, parent, _id);
  }
  const unknown = [...leaving.keys()].filter((id) => known.get(id)?.childCount === undefined);
  const { found: read } = await findOptions(api, unknown, signal);
  const lastOf = new Map<string, Loss["lastOf"]>();
  for (const [id, ids] of leaving) {
    const group = read.get(id) ?? known.get(id);
    const last = ids.at(-1);
    if (group === undefined || last === undefined || !isLeftEmpty(group, ids.length)) continue;
    lastOf.set(last, { _id: id, name: group.name });
  }
  return lastOf;
}

async function lossOf(option: OptionRecord, { api, signal }: PlanningContext): Promise<Loss> {
  const { _id, name, contextCount, parent, updatedAt } = option;
  const contexts = contextCount ?? (await readOptionContents(api, _id, signal)).contexts.length;
  const changed = defined({ updatedAt });
  if (!isGroup(option)) return { ...optionLoss({ name, _id, parent }, contexts), ...changed };
  const subOptions = [...(await subOptionsOf(option, api, signal))].sort();
  const count = Math.max(subOptions.length, option.childCount ?? 0);
  return { name, _id, kind: "optionGroup", count, subOptions, ownContextIds: contexts, ...changed };
}

/** Returns all sub-options of a group. The group itself lists only the first 50 (management-api 2.1). */
async function subOptionsOf(
  { _id, targeting, children = [], childCount = Number.POSITIVE_INFINITY }: OptionRecord,
  api: ManagementApi,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (children.length >= childCount || targeting === undefined) return children;
  const ids: string[] = [];
  for await (const child of readOptions(api, targeting, signal, { parent: _id })) ids.push(child._id);
  return ids;
}

/**
 * Returns deleted options as they are stored for an undo. If the group of an option is deleted as well, the group's
 * name is stored, because an undo creates the group again under another ID.
 */
function placed(options: readonly OptionRecord[]): readonly PlacedOption[] {
  const names = new Map(options.map(({ _id, name }) => [_id, name]));
  return options.map((option) => ({ option, groupName: names.get(option.parent ?? "") }));
}

/** Returns the reported objects by ID. Objects with an invalid ID are recorded in the plan as failed. */
function validIds(plan: Plan, wanted: readonly WantedDelete[]): ReadonlyMap<string, readonly number[]> {
  const objects = new Map<string, number[]>();
  for (const { _id, object } of wanted) {
    const invalid = badId("ids", _id);
    if (invalid === undefined) addTo(objects, _id, object);
    else plan.fail(object, invalid);
  }
  return objects;
}

async function wantedOptions(
  plan: Plan,
  { ids = [], names = [], targetingId }: Inputs["delete_options"],
  context: PlanningContext,
): Promise<{ readonly wanted: readonly WantedDelete[]; readonly known: ReadonlyMap<string, OptionRecord> }> {
  const wanted = ids.map((_id, index) => ({ _id, object: plan.object({ index, _id }) }));
  const find = await optionFinder(targetingId, names.length > 0, context);
  const found = (targetingId === undefined ? [] : names).map((name) => [name, find(name, "names")] as const);
  const going = new Set(found.flatMap(([, option]) => (isOption(option) ? [option.name] : [])));
  for (const [position, [name, option]] of found.entries()) {
    const about = isOption(option) ? { name: option.name, _id: option._id } : { name };
    const object = plan.object({ index: ids.length + position, ...about });
    if (isOption(option)) wanted.push({ _id: option._id, object });
    else plan.fail(object, withoutNames(option, going));
  }
  const { takenFor, known } = find;
  if (takenFor.length > 0) plan.note({ takenFor });
  return { wanted, known };
}

function isGroup({ type }: OptionRecord): boolean {
  return type === "collection";
}

function orderDeletions(options: readonly OptionRecord[]): readonly OptionRecord[] {
  const groups = new Map(options.filter(isGroup).map((group) => [group._id, group]));
  const children = new Map<string, OptionRecord[]>();
  const others: OptionRecord[] = [];
  for (const option of options) {
    const { parent } = option;
    if (typeof parent === "string" && groups.has(parent)) addTo(children, parent, option);
    else if (!groups.has(option._id)) others.push(option);
  }
  const trees = [...groups.values()].flatMap((group) => {
    const inside = children.get(group._id) ?? [];
    return [...inside.slice(0, -1), group, ...inside.slice(-1)];
  });
  return [...trees, ...others];
}
