import { RejectedError } from "../../api/errors.ts";
import { LIMITS } from "../../spec/limits.ts";
import type { ContextChanges } from "../../spec/records.ts";
import { type Given, type InputFile, placeOf } from "../files/rows.ts";
import { mapConcurrently, type OptionContents, readOptionContents } from "../option-contents.ts";
import { readOptionNames } from "../option-names.ts";
import { ownReason, requestReason } from "../reasons.ts";
import type { Reason } from "../work.ts";
import { badId, checkContextIds, parts, tooManyForOption } from "./checks.ts";
import { Plan, type PlanningContext } from "./plan.ts";

/** An item of `update_contexts` (contract, Tools). */
export interface UpdateContextsItem {
  readonly _id?: string | undefined;
  readonly _ids?: readonly string[] | undefined;
  readonly name?: string | undefined;
  readonly names?: readonly string[] | undefined;
  readonly add?: readonly string[] | undefined;
  readonly remove?: readonly string[] | undefined;
  readonly set?: readonly string[] | undefined;
  readonly addFrom?: readonly string[] | undefined;
  readonly removeFrom?: readonly string[] | undefined;
}

/** The input of `update_contexts`: changes as `items`, or in a file. `targetingId` is needed where options are named. */
export interface UpdateContextsInput {
  readonly targetingId?: string | undefined;
  /** Empty where there is a file. */
  readonly items: readonly UpdateContextsItem[];
  readonly file?: InputFile | undefined;
}

/** What a call wants of one option, over all its items. */
interface Wish {
  readonly optionId: string;
  readonly objects: number[];
  add: Set<string>;
  remove: Set<string>;
  set: Set<string> | undefined;
}

/**
 * Plans changing Context IDs. Items about one option are merged in the order of the call. Options that lose something,
 * and those that get more than one request can carry, are read first: so that what is taken away is known before it is,
 * and that parts are exact. Throws an ApiError when a read fails for another reason than that the option is missing.
 */
export async function planUpdateContexts(
  input: UpdateContextsInput,
  given: readonly Given<UpdateContextsItem>[],
  context: PlanningContext,
): Promise<Plan> {
  const plan = new Plan();
  const items = given.flatMap((one) => ("item" in one ? [one.item] : []));
  const resolve = await nameResolver(items, input.targetingId, context);
  const sources = await readSources(items, context);
  const wishes = new Map<string, Wish>();
  for (const one of given) {
    if ("reason" in one) {
      plan.failGiven(one);
      continue;
    }
    const { item } = one;
    const targets = targetsOf(item);
    const objects = targets.map((target) => ({ target, object: plan.object({ ...placeOf(one), ...target }) }));
    const wanted = contextsOf(item, sources);
    for (const { target, object } of objects) {
      const found = "_id" in target ? { id: target._id } : resolve(target.name);
      if ("code" in wanted) plan.fail(object, wanted);
      else if ("code" in found) plan.fail(object, found);
      else {
        const invalid = badId("_id", found.id);
        if (invalid === undefined) addWish(wishes, found.id, object, wanted);
        else plan.fail(object, invalid);
      }
    }
    if (objects.length === 0) {
      plan.fail(plan.object(placeOf(one)), ownReason("INVALID_ITEM", { problem: "noOption" }));
    }
  }
  const contents = await readWhereNeeded([...wishes.values()], context);
  for (const wish of wishes.values()) planWish(plan, wish, contents.get(wish.optionId));
  return plan;
}

type Target = { readonly _id: string } | { readonly name: string };

function targetsOf({ _id, _ids = [], name, names = [] }: UpdateContextsItem): readonly Target[] {
  const ids = [...new Set([...(_id === undefined ? [] : [_id]), ..._ids])];
  const all = [...new Set([...(name === undefined ? [] : [name]), ...names])];
  return [...ids.map((id) => ({ _id: id })), ...all.map((each) => ({ name: each }))];
}

type Found = { readonly id: string } | Reason;

async function nameResolver(
  items: readonly UpdateContextsItem[],
  targetingId: string | undefined,
  { api, signal }: PlanningContext,
): Promise<(name: string) => Found> {
  const named = items.some((item) => item.name !== undefined || item.names !== undefined);
  if (!named || targetingId === undefined) {
    return (value) => ownReason("INVALID_ITEM", { problem: "nameWithoutTargeting", value });
  }
  const names = await readOptionNames(api, targetingId, signal);
  return (value) => {
    const id = names.get(value);
    return id === undefined ? ownReason("NAME_NOT_FOUND", { field: "name", value }) : { id };
  };
}

type Contexts = {
  readonly add: readonly string[];
  readonly remove: readonly string[];
  readonly set?: readonly string[];
};

function contextsOf(
  item: UpdateContextsItem,
  sources: ReadonlyMap<string, OptionContents | Reason>,
): Contexts | Reason {
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
  const add = checkContextIds(lists.add);
  const remove = checkContextIds(lists.remove);
  const set = checkContextIds(item.set ?? []);
  if (!add.ok) return add.reason;
  if (!remove.ok) return remove.reason;
  if (!set.ok) return set.reason;
  const changes = item.set !== undefined;
  if (changes && (item.add ?? item.remove ?? item.addFrom ?? item.removeFrom) !== undefined) {
    return ownReason("INVALID_ITEM", { problem: "setWithAddOrRemove" });
  }
  const nothing = !changes && (item.add ?? item.remove ?? item.addFrom ?? item.removeFrom) === undefined;
  if (nothing) return ownReason("INVALID_ITEM", { problem: "noChange" });
  const removed = new Set(remove.ids);
  const both = add.ids.find((id) => removed.has(id));
  if (both !== undefined) return ownReason("INVALID_ITEM", { problem: "addAndRemove", value: both.slice(0, 40) });
  const tooMany = tooManyForOption(changes ? set.ids : add.ids);
  if (tooMany !== undefined) return tooMany;
  return { add: add.ids, remove: remove.ids, ...(changes ? { set: set.ids } : {}) };
}

/** A later item about the same option comes after the earlier one: what it says about a Context ID wins. */
function addWish(wishes: Map<string, Wish>, optionId: string, object: number, wanted: Contexts): void {
  const wish = wishes.get(optionId) ?? {
    optionId,
    objects: [],
    add: new Set<string>(),
    remove: new Set<string>(),
    set: undefined,
  };
  wishes.set(optionId, wish);
  wish.objects.push(object);
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

async function readSources(
  items: readonly UpdateContextsItem[],
  context: PlanningContext,
): Promise<ReadonlyMap<string, OptionContents | Reason>> {
  const ids = new Set(items.flatMap((item) => [...(item.addFrom ?? []), ...(item.removeFrom ?? [])]));
  const field = "addFrom";
  return readAll([...ids], context, field);
}

async function readWhereNeeded(
  wishes: readonly Wish[],
  context: PlanningContext,
): Promise<ReadonlyMap<string, OptionContents | Reason>> {
  const needed = wishes.filter(
    (wish) => wish.set !== undefined || wish.remove.size > 0 || wish.add.size > LIMITS.requestContextIds.value,
  );
  return readAll(
    needed.map((wish) => wish.optionId),
    context,
    "_id",
  );
}

async function readAll(
  ids: readonly string[],
  context: PlanningContext,
  field: string,
): Promise<ReadonlyMap<string, OptionContents | Reason>> {
  const read = await mapConcurrently(ids, async (id): Promise<readonly [string, OptionContents | Reason]> => {
    const invalid = badId(field, id);
    if (invalid !== undefined) return [id, invalid];
    try {
      return [id, await readOptionContents(context.api, id, context.signal)];
    } catch (thrown) {
      const missing = thrown instanceof RejectedError && thrown.kind === "business" && thrown.statusCode === 404;
      if (missing && thrown.errorCode !== "PROJECT_NOT_FOUND") return [id, requestReason("updateOptions", thrown)];
      throw thrown;
    }
  });
  return new Map(read);
}

function planWish(plan: Plan, wish: Wish, contents: OptionContents | Reason | undefined): void {
  if (contents !== undefined && "code" in contents) {
    for (const object of wish.objects) plan.fail(object, contents);
    return;
  }
  const held = new Set(contents?.contexts ?? []);
  const wanted = wish.set;
  const remove = wanted === undefined ? [...wish.remove] : [...held].filter((id) => !wanted.has(id));
  const add = wanted === undefined ? [...wish.add] : [...wanted].filter((id) => !held.has(id));
  if (contents !== undefined)
    noteLoss(
      plan,
      wish,
      contents,
      remove.filter((id) => held.has(id)),
      add,
    );
  const whole: ContextChanges =
    wanted === undefined
      ? { ...(wish.add.size > 0 ? { add } : {}), ...(wish.remove.size > 0 ? { remove } : {}) }
      : { set: [...wanted] };
  const all = [...(whole.set ?? []), ...(whole.add ?? []), ...(whole.remove ?? [])];
  if (parts(all).length === 1) {
    const changes = all.length === 0 && whole.set === undefined ? { add: [] } : whole;
    plan.add(plan.make.updateOption({ id: wish.optionId }, { contexts: changes }, { objects: wish.objects }));
    return;
  }
  const after = new Set([...held, ...add]);
  for (const id of remove) after.delete(id);
  const tooMany = tooManyForOption([...after]);
  const grows = after.size > held.size;
  if (tooMany !== undefined && grows) {
    for (const object of wish.objects) plan.fail(object, tooMany);
    return;
  }
  planParts(plan, wish, held, { add: add.filter((id) => !held.has(id)), remove: remove.filter((id) => held.has(id)) });
}

/**
 * More than one request can carry: what goes leaves first, since reductions are never refused (management-api 8.2), but
 * for one Context ID where the option would be empty in between, which an option group may not be (7.4 case 7).
 */
function planParts(
  plan: Plan,
  wish: Wish,
  held: ReadonlySet<string>,
  changes: { readonly add: readonly string[]; readonly remove: readonly string[] },
): void {
  const remove = [...changes.remove];
  const wouldBeEmpty = remove.length === held.size && changes.add.length > 0;
  const last = wouldBeEmpty ? remove.pop() : undefined;
  const sequence: ContextChanges[] = [];
  if (remove.length > 0) sequence.push(...parts(remove).map((part) => ({ remove: part })));
  if (changes.add.length > 0) sequence.push(...parts(changes.add).map((part) => ({ add: part })));
  if (last !== undefined) {
    const final = sequence.at(-1)?.add ?? [];
    const hasRoom = final.length < LIMITS.requestContextIds.value;
    if (hasRoom) sequence[sequence.length - 1] = { add: final, remove: [last] };
    else sequence.splice(-1, 1, { add: final.slice(0, -1), remove: [] }, { add: final.slice(-1), remove: [last] });
  }
  let after: readonly number[] = [];
  for (const contexts of sequence.length > 0 ? sequence : [{ add: [] }]) {
    const fields = { objects: wish.objects, after };
    after = [plan.add(plan.make.updateOption({ id: wish.optionId }, { contexts }, fields)).id];
  }
}

function noteLoss(
  plan: Plan,
  wish: Wish,
  contents: OptionContents,
  removed: readonly string[],
  added: readonly string[],
): void {
  if (removed.length === 0) return;
  const empties = removed.length === contents.contexts.length && added.length === 0;
  plan.losses.push({
    name: contents.option.name,
    _id: wish.optionId,
    kind: "contextIds",
    count: removed.length,
    ...(empties ? { empties } : {}),
  });
  plan.removed.push({ kind: "row", row: { _id: wish.optionId, add: removed } });
}
