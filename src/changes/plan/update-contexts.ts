import { orError } from "../../api/errors.ts";
import { splitBeside } from "../../files/cells.ts";
import { type GivenItem, placeOf, rowCounts } from "../../files/rows.ts";
import { folded } from "../../platform/by-key.ts";
import {
  findOptions,
  isMissing,
  mapConcurrently,
  type OptionContents,
  readOptionContents,
} from "../../reads/option-contents.ts";
import { ownReason, type Reason } from "../../runs/outcome.ts";
import { LIMITS } from "../../spec/limits.ts";
import { isUlid } from "../../spec/names-and-contexts.ts";
import { requestReason } from "../api-reasons.ts";
import type { Inputs, UpdateContextsItem } from "../call.ts";
import { noteRows, planContextChanges, type RequestedContextChange } from "./context-changes.ts";
import {
  noteCommonTargeting,
  noteJoinedIds,
  notePreviousContents,
  noteSimilarIds,
  noteUnread,
  type OptionalReads,
  optionalReads,
  optionFinder,
} from "./current-values.ts";

import { badId, checkContextIds, invisibleContextIds, Plan, type PlanningContext, tooManyForOption } from "./plan.ts";

/**
 * Plans changes of Context IDs. Items about the same option are merged in their order. Options are read first. This is
 * required for an option that loses Context IDs, because an undo must know which, and for one whose new Context IDs
 * need several requests. If a required read fails, throws its ApiError. An option that does not exist only makes its
 * items fail.
 */
export async function planUpdateContexts(
  input: Inputs["update_contexts"],
  given: readonly GivenItem<UpdateContextsItem>[],
  context: PlanningContext,
): Promise<Plan> {
  const plan = new Plan();
  const items = given.flatMap((one) => ("item" in one ? [one.item] : []));
  const isNamed = items.some((item) => item.name !== undefined || item.names !== undefined);
  const find = await optionFinder(input.targetingId, isNamed, context);
  const sourceIds = new Set(items.flatMap(({ addFrom = [], removeFrom = [] }) => [...addFrom, ...removeFrom]));
  const sources = await readAll([...sourceIds], context, "addFrom");
  const reads = optionalReads(context);
  const beside = await readSplitOptions(items, find, reads, context);
  const wishes = new Map<string, RequestedContextChange>();
  const called: CalledOption[] = [];
  for (const one of given) {
    if ("reason" in one) {
      plan.failGiven(one);
      continue;
    }
    const { item } = one;
    const objects = targetsOf(item).map((target) => {
      const found = "_id" in target ? target : find(target.name, "name");
      const object = plan.object({ ...placeOf(one), ...target, ...("_id" in found && { _id: found._id }) });
      return { found, object };
    });
    for (const { found, object } of objects) {
      const wanted = contextsOf("_id" in found ? joinHeldContextIds(item, beside.get(found._id)) : item, sources);
      if ("code" in wanted) plan.fail(object, wanted);
      else if (!("_id" in found)) plan.fail(object, found);
      else {
        const invalid = badId("_id", found._id);
        if (invalid === undefined) mergeItemChange(wishes, found._id, object, wanted);
        else plan.fail(object, invalid);
        if (invalid === undefined && item.calledName !== undefined) {
          called.push({ optionId: found._id, object, name: item.calledName });
        }
      }
    }
    if (objects.length === 0) {
      plan.fail(plan.object(placeOf(one)), ownReason("INVALID_ITEM", { problem: "noOption" }));
    }
  }
  let contents = await readNeededContents([...wishes.values()], beside, context);
  const open = [...wishes.keys()].filter((optionId) => !contents.has(optionId));
  const there = new Map(await reads.contents(open.filter((optionId) => !beside.has(optionId))));
  for (const optionId of open) {
    const known = beside.get(optionId);
    if (known !== undefined && !("code" in known)) there.set(optionId, known);
  }
  const names = await namesOf([...new Set(called.map(({ optionId }) => optionId))], [contents, there], context);
  const changed = failMisnamed(plan, wishes, called, names);
  if (changed.length > 0) {
    contents = new Map([...contents, ...(await readNeededContents(changed, contents, context))]);
  }
  const all = [...wishes.values()];
  planContextChanges(plan, all, contents);
  const copied = new Set([...sources.values()].flatMap((source) => ("code" in source ? [] : source.contexts)));
  for (const { optionId, add, set } of all) {
    const read = contents.get(optionId) ?? there.get(optionId);
    const isRead = read !== undefined && !("code" in read);
    if (isRead) noteSimilarIds(plan, set ?? add, read.contexts);
    if (input.file === undefined) {
      const given = [...(set ?? add)].filter((id) => !copied.has(id));
      noteJoinedIds(plan, given, isRead ? read.contexts : []);
    }
  }
  const unread = all.filter(({ optionId }) => !contents.has(optionId));
  noteUnread(plan, unread.length - there.size - reads.missing.size);
  for (const { optionId, asked, add } of unread) {
    const held = there.get(optionId);
    if (held === undefined) continue;
    noteRows(plan, asked, held);
    notePreviousContents(plan, held, add);
  }
  const onlyNames = items.every(({ _id, _ids }) => (_id ?? _ids) === undefined);
  const targetings = all.flatMap(({ optionId }) => {
    const read = contents.get(optionId) ?? there.get(optionId);
    if (read !== undefined && "code" in read) return [];
    return [onlyNames ? input.targetingId : read?.option.targeting];
  });
  noteCommonTargeting(plan, targetings);
  if (find.takenFor.length > 0) plan.note({ takenFor: find.takenFor });
  if (input.file !== undefined) plan.note({ rows: rowCounts(given) });
  return plan;
}

type ReadContents = ReadonlyMap<string, OptionContents | Reason>;

async function namesOf(
  ids: readonly string[],
  read: readonly ReadContents[],
  { api, signal }: PlanningContext,
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  for (const id of ids) {
    const found = read.map((contents) => contents.get(id)).find((one) => one !== undefined);
    if (found !== undefined && !("code" in found)) names.set(id, found.option.name);
  }
  const unknown = ids.filter((id) => !names.has(id) && !read.some((contents) => contents.has(id)));
  if (unknown.length === 0) return names;
  for (const [id, { name }] of (await findOptions(api, unknown, signal)).found) names.set(id, name);
  return names;
}

/** An option that a row identifies by both ID and name. */
interface CalledOption {
  readonly optionId: string;
  readonly object: number;
  readonly name: string;
}

/**
 * Fails each row whose name is not the name of the option with the row's ID. If valid rows about such an option remain,
 * its changes are merged again without the failed rows. Returns these changes.
 */
function failMisnamed(
  plan: Plan,
  wishes: Map<string, RequestedContextChange>,
  called: readonly CalledOption[],
  names: ReadonlyMap<string, string>,
): readonly RequestedContextChange[] {
  const failed = called.filter(({ optionId, name }) => {
    const is = names.get(optionId);
    return is !== undefined && folded(is) !== folded(name);
  });
  for (const { optionId, object, name } of failed) {
    const detail = { problem: "otherName", value: name, name: names.get(optionId), _id: optionId };
    plan.fail(object, ownReason("INVALID_ROW", detail));
  }
  const objects = new Set(failed.map(({ object }) => object));
  return [...new Set(failed.map(({ optionId }) => optionId))].flatMap((optionId) => {
    const asked = wishes.get(optionId)?.asked.filter(({ object }) => !objects.has(object)) ?? [];
    wishes.delete(optionId);
    for (const { object, ...wanted } of asked) mergeItemChange(wishes, optionId, object, wanted);
    return wishes.get(optionId) ?? [];
  });
}

/** Reads the options whose cells were split at a separator, because they may have a Context ID that contains it. */
async function readSplitOptions(
  items: readonly UpdateContextsItem[],
  find: Awaited<ReturnType<typeof optionFinder>>,
  reads: OptionalReads,
  context: PlanningContext,
): Promise<ReadContents> {
  const needed = new Set<string>();
  const others = new Set<string>();
  for (const item of items) {
    if (item.split === undefined) continue;
    for (const target of targetsOf(item)) {
      const found = "_id" in target ? target : find(target.name, "name");
      if ("_id" in found) (item.add === undefined ? needed : others).add(found._id);
    }
  }
  const read = new Map(await readAll([...needed], context, "_id"));
  const more = await reads.contents([...others].filter((id) => isUlid(id) && !read.has(id)));
  for (const [id, contents] of more) read.set(id, contents);
  return read;
}

/** Joins parts of a split cell again where the option already has the joined text as one Context ID. */
function joinHeldContextIds(item: UpdateContextsItem, held: OptionContents | Reason | undefined): UpdateContextsItem {
  const { split, add, remove, set } = item;
  if (split === undefined || held === undefined || "code" in held) return item;
  const taken = new Set(splitBeside(split, []));
  const whole = splitBeside(split, held.contexts);
  const again = (ids: readonly string[]) => [...new Set([...ids.filter((id) => !taken.has(id)), ...whole])];
  return {
    ...item,
    ...(add && { add: again(add) }),
    ...(remove && { remove: again(remove) }),
    ...(set && { set: again(set) }),
  };
}

type Target = { readonly _id: string } | { readonly name: string };

export function targetsOf({ _id, _ids = [], name, names = [] }: UpdateContextsItem): readonly Target[] {
  const ids = [...new Set([...(_id === undefined ? [] : [_id]), ..._ids])];
  const all = [...new Set([...(name === undefined ? [] : [name]), ...names])];
  return [...ids.map((id) => ({ _id: id })), ...all.map((each) => ({ name: each }))];
}

type Contexts = {
  readonly add: readonly string[];
  readonly remove: readonly string[];
  readonly set?: readonly string[];
};

function contextsOf(item: UpdateContextsItem, sources: ReadContents): Contexts | Reason {
  const lists = { add: [...(item.add ?? [])], remove: [...(item.remove ?? [])] };
  for (const [field, to] of [
    ["addFrom", lists.add],
    ["removeFrom", lists.remove],
  ] as const) {
    for (const id of item[field] ?? []) {
      const source = badId(field, id) ?? sources.get(id) ?? ownReason("INVALID_ID", { field, value: id });
      if ("code" in source) return source;
      to.push(...source.contexts);
    }
  }
  const invisible = invisibleContextIds([...(item.add ?? []), ...(item.set ?? [])]);
  if (invisible !== undefined) return invisible;
  const add = checkContextIds(lists.add);
  const remove = checkContextIds(lists.remove);
  const set = checkContextIds(item.set ?? []);
  if (!add.ok) return add.reason;
  if (!remove.ok) return remove.reason;
  if (!set.ok) return set.reason;
  const isSet = item.set !== undefined;
  const isChanged = (item.add ?? item.remove ?? item.addFrom ?? item.removeFrom) !== undefined;
  if (isSet === isChanged) return ownReason("INVALID_ITEM", { problem: isSet ? "setWithAddOrRemove" : "noChange" });
  const removed = new Set(remove.ids);
  const both = add.ids.find((id) => removed.has(id));
  if (both !== undefined) return ownReason("INVALID_ITEM", { problem: "addAndRemove", value: both.slice(0, 40) });
  const tooMany = tooManyForOption(isSet ? set.ids : add.ids);
  if (tooMany !== undefined) return tooMany;
  return { add: add.ids, remove: remove.ids, ...(isSet && { set: set.ids }) };
}

/** Adds an item to the changes of its option. If items contradict each other, the last one counts. */
function mergeItemChange(
  wishes: Map<string, RequestedContextChange>,
  optionId: string,
  object: number,
  wanted: Contexts,
): void {
  const wish = wishes.get(optionId) ?? {
    optionId,
    objects: [],
    asked: [],
    add: new Set<string>(),
    remove: new Set<string>(),
    set: undefined,
  };
  wishes.set(optionId, wish);
  wish.objects.push(object);
  wish.asked.push({ object, ...wanted });
  if (wanted.set !== undefined) {
    wish.set = new Set(wanted.set);
    wish.add = new Set();
    wish.remove = new Set();
    return;
  }
  for (const id of wanted.add) {
    wish.remove.delete(id);
    (wish.set ?? wish.add).add(id);
  }
  for (const id of wanted.remove) {
    wish.add.delete(id);
    if (wish.set === undefined) wish.remove.add(id);
    else wish.set.delete(id);
  }
}

async function readNeededContents(
  wishes: readonly RequestedContextChange[],
  known: ReadContents,
  context: PlanningContext,
): Promise<ReadContents> {
  const ids = wishes
    .filter(({ set, add, remove }) => set !== undefined || remove.size > 0 || add.size > LIMITS.requestContextIds.value)
    .map(({ optionId }) => optionId);
  const unknown = ids.filter((id) => !known.has(id));
  const read = new Map(await readAll(unknown, context, "_id"));
  for (const id of ids) {
    const before = known.get(id);
    if (before !== undefined) read.set(id, before);
  }
  return read;
}

async function readAll(ids: readonly string[], context: PlanningContext, field: string): Promise<ReadContents> {
  const read = await mapConcurrently(ids, async (id): Promise<readonly [string, OptionContents | Reason]> => {
    const invalid = badId(field, id);
    if (invalid !== undefined) return [id, invalid];
    const read = await orError(isMissing, readOptionContents(context.api, id, context.signal));
    return [id, read instanceof Error ? requestReason("updateOptions", read) : read];
  });
  return new Map(read);
}
