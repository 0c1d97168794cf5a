import { RejectedError } from "../../api/errors.ts";
import type { TargetingRecord } from "../../spec/records.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import { savedOption } from "../files/saved-options.ts";
import { mapConcurrently, type OptionContents, readOptionContents } from "../option-contents.ts";
import { readOptionNames } from "../option-names.ts";
import { ownReason, requestReason } from "../reasons.ts";
import type { Reason } from "../work.ts";
import type { AddOptionInput } from "./add-options.ts";
import { badId } from "./checks.ts";
import { Plan, type PlanningContext } from "./plan.ts";

/** The input of `delete_targeting`. */
export interface DeleteTargetingsInput {
  readonly ids: readonly string[];
}

/** The input of `delete_options`: IDs, or names with their targeting. */
export interface DeleteOptionsInput {
  readonly ids?: readonly string[] | undefined;
  readonly names?: readonly string[] | undefined;
  readonly targetingId?: string | undefined;
}

/**
 * Plans deleting targetings. Each is read first, so that a person can be told what goes.
 * Throws an ApiError when a read fails for another reason than that the targeting is missing.
 */
export async function planDeleteTargetings(input: DeleteTargetingsInput, context: PlanningContext): Promise<Plan> {
  const plan = new Plan();
  const objects = input.ids.map((_id, index) => ({ _id, object: plan.object({ index, _id }) }));
  const read = (id: string): Promise<TargetingRecord> => context.api.getTargeting(id, { signal: context.signal });
  for (const { id, objects: about, found } of await readEach(plan, objects, "deleteTargetings", read)) {
    plan.losses.push({ name: found.name, _id: id, kind: "targeting", count: found.optionCount ?? 0 });
    plan.removed.push({ kind: "targeting", _id: id });
    plan.add(plan.make.deleteTargeting(id, { objects: about }));
  }
  return plan;
}

/**
 * Plans deleting options. Each is read first: a person can be told what goes, its Context IDs can be kept, and groups
 * and sub-options, of which a request takes 150, are known. A group stands before the last of its sub-options that the
 * call names, so that no request leaves it empty (management-api 7.4 case 6), and after the others, so that these do
 * not become top-level options in between.
 */
export async function planDeleteOptions(input: DeleteOptionsInput, context: PlanningContext): Promise<Plan> {
  const plan = new Plan();
  const objects = await namedOptions(plan, input, context);
  const read = (id: string): Promise<OptionContents> => readOptionContents(context.api, id, context.signal);
  const found = await readEach(plan, objects, "deleteOptions", read);
  for (const { id, objects: about, found: contents } of groupsBeforeTheirLast(found)) {
    const { option, contexts } = contents;
    const isGroup = option.type === "collection";
    plan.losses.push({
      name: option.name,
      _id: id,
      kind: isGroup ? "optionGroup" : "option",
      count: isGroup ? (option.childCount ?? 0) : contexts.length,
    });
    plan.removed.push({ kind: "row", row: removedRow(contents, found) });
    plan.add(plan.make.deleteOption({ id }, isGroup || isSubOption(contents), { objects: about }));
  }
  return plan;
}

/** A deleted option as a file for `bulk_add_options` has it; its group by name where that is deleted too. */
function removedRow({ option, contexts }: OptionContents, deleted: readonly Read<OptionContents>[]): AddOptionInput {
  const { parent } = option;
  if (typeof parent !== "string") return savedOption({ option }, contexts);
  const group = deleted.find(({ id }) => id === parent)?.found.option;
  if (group !== undefined) return savedOption({ option, groupName: group.name }, contexts);
  return { name: option.name, parent, contexts };
}

interface Read<T> {
  readonly id: string;
  readonly objects: readonly number[];
  readonly found: T;
}

/** Reads each thing once; what is missing or no ULID fails in the plan. */
async function readEach<T>(
  plan: Plan,
  wanted: readonly { readonly _id: string; readonly object: number }[],
  operation: BulkOperation,
  read: (id: string) => Promise<T>,
): Promise<readonly Read<T>[]> {
  const byId = new Map<string, number[]>();
  for (const { _id, object } of wanted) byId.set(_id, [...(byId.get(_id) ?? []), object]);
  const results = await mapConcurrently([...byId], async ([id, objects]): Promise<Read<T> | undefined> => {
    const invalid = badId("ids", id);
    const found = invalid ?? (await readOrReason(operation, () => read(id)));
    if (!isReason(found)) return { id, objects, found: found.value };
    for (const object of objects) plan.fail(object, found);
    return undefined;
  });
  return results.filter((result) => result !== undefined);
}

async function readOrReason<T>(
  operation: BulkOperation,
  read: () => Promise<T>,
): Promise<{ readonly value: T } | Reason> {
  try {
    return { value: await read() };
  } catch (thrown) {
    const missing = thrown instanceof RejectedError && thrown.kind === "business" && thrown.statusCode === 404;
    if (missing && thrown.errorCode !== "PROJECT_NOT_FOUND") return requestReason(operation, thrown);
    throw thrown;
  }
}

function isReason<T>(found: { readonly value: T } | Reason): found is Reason {
  return "code" in found;
}

async function namedOptions(
  plan: Plan,
  input: DeleteOptionsInput,
  { api, signal }: PlanningContext,
): Promise<readonly { readonly _id: string; readonly object: number }[]> {
  const ids = (input.ids ?? []).map((_id, index) => ({ _id, object: plan.object({ index, _id }) }));
  const names = input.names ?? [];
  if (names.length === 0 || input.targetingId === undefined) return ids;
  const known = await readOptionNames(api, input.targetingId, signal);
  const named = names.flatMap((name, position) => {
    const _id = known.get(name);
    const object = plan.object({ index: ids.length + position, name, ...(_id === undefined ? {} : { _id }) });
    if (_id === undefined) plan.fail(object, ownReason("NAME_NOT_FOUND", { field: "names", value: name }));
    return _id === undefined ? [] : [{ _id, object }];
  });
  return [...ids, ...named];
}

function isSubOption({ option }: OptionContents): boolean {
  return typeof option.parent === "string";
}

function groupsBeforeTheirLast(found: readonly Read<OptionContents>[]): readonly Read<OptionContents>[] {
  const groups = new Map(found.filter(({ found: { option } }) => option.type === "collection").map((g) => [g.id, g]));
  const children = new Map<string, Read<OptionContents>[]>();
  const others: Read<OptionContents>[] = [];
  for (const each of found) {
    const { parent } = each.found.option;
    if (typeof parent === "string" && groups.has(parent)) {
      children.set(parent, [...(children.get(parent) ?? []), each]);
    } else if (!groups.has(each.id)) others.push(each);
  }
  const trees = [...groups.values()].flatMap((group) => {
    const inside = children.get(group.id) ?? [];
    return [...inside.slice(0, -1), group, ...inside.slice(-1)];
  });
  return [...trees, ...others];
}
