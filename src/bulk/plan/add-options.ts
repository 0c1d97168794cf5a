import type { OnExisting } from "../driver.ts";
import { type Given, type InputFile, placeOf } from "../files/rows.ts";
import { readOptionNames, readOptions } from "../option-names.ts";
import { ownReason } from "../reasons.ts";
import { badId, parts } from "./checks.ts";
import { checkOption, type NamesInUse, type NewOption, type OptionInput, planOption } from "./options.ts";
import { Plan, type PlanningContext } from "./plan.ts";

/** An item of `bulk_add_options` (contract, Tools). */
export interface AddOptionInput extends OptionInput {
  readonly parent?: string | undefined;
  readonly parentName?: string | undefined;
}

/** The input of `bulk_add_options`, once the targeting is known: options as `items`, or in a file. */
export interface AddOptionsInput {
  readonly targetingId: string;
  /** Empty where there is a file. */
  readonly items: readonly AddOptionInput[];
  readonly file?: InputFile | undefined;
  readonly onExisting?: OnExisting | undefined;
}

interface Candidate {
  readonly item: AddOptionInput;
  readonly object: number;
  readonly option: NewOption;
}

/**
 * Plans adding options to one targeting. Sub-options of a group that the same call creates travel inside it, wherever
 * they stand in the call. Reads List Options when a `parentName` is not among the call's own groups, and when
 * `onExisting` is not `fail`: then only what is new is sent.
 */
export async function planAddOptions(
  input: AddOptionsInput,
  given: readonly Given<AddOptionInput>[],
  context: PlanningContext,
): Promise<Plan> {
  const plan = new Plan();
  const names: NamesInUse = new Map();
  const namedParents = new Set(given.flatMap((one) => ("item" in one ? (one.item.parentName ?? []) : [])));
  const candidates: Candidate[] = [];
  for (const one of given) {
    if ("reason" in one) {
      plan.failGiven(one);
      continue;
    }
    const { item, index } = one;
    const object = plan.object({ ...placeOf(one), name: item.name });
    const children = (item.children ?? []).map((child, position) =>
      plan.object({ ...placeOf(one), child: position, name: child.name }),
    );
    const place = { object, index, child: (position: number): number => children[position] ?? object };
    const misplaced = badPlace(item);
    if (misplaced !== undefined) {
      plan.fail(object, misplaced);
      for (const child of children) plan.leaveOut(child, ownReason("NEEDS_FAILED", { needs: object }));
      continue;
    }
    const option = checkOption(plan, item, place, names, namedParents.has(item.name));
    if (option !== undefined) candidates.push({ item, object, option });
  }
  await placeAll(plan, input, candidates, context);
  return plan;
}

/** Rules about `parent` (management-api 7.4, case 3). */
function badPlace(item: AddOptionInput) {
  const { parent, parentName } = item;
  if (parent === undefined && parentName === undefined) return undefined;
  if (parent !== undefined && parentName !== undefined) {
    return ownReason("INVALID_ITEM", { problem: "parentAndParentName" });
  }
  if (item.type === "collection" || item.children !== undefined || item.exposeChildren !== undefined) {
    return ownReason("INVALID_ITEM", { problem: "groupWithParent" });
  }
  return parent === undefined ? undefined : badId("parent", parent);
}

interface Placed {
  readonly option: NewOption;
  readonly parent?: string;
}

async function placeAll(
  plan: Plan,
  input: AddOptionsInput,
  candidates: readonly Candidate[],
  context: PlanningContext,
): Promise<void> {
  const placed = await intoGroups(plan, input.targetingId, candidates, context);
  const onExisting = input.onExisting ?? "fail";
  const names =
    onExisting === "fail"
      ? new Map<string, string>()
      : await readOptionNames(context.api, input.targetingId, context.signal);
  const targeting = { id: input.targetingId };
  for (const { option, parent } of placed) {
    const there = names.get(option.name);
    if (there !== undefined) planExisting(plan, option, there, { targetingId: input.targetingId, onExisting, names });
    else if (option.isGroup) {
      const fresh = { ...option, children: onlyNew(plan, option.children, onExisting, names) };
      if (fresh.children.length > 0 || fresh.contexts.length > 0) planOption(plan, fresh, { targeting });
      else plan.fail(option.object, ownReason("EMPTY_GROUP"));
    } else planOption(plan, option, parent === undefined ? { targeting } : { targeting, parent: { id: parent } });
  }
}

/** Puts sub-options into the groups that they name: new ones of the call, or existing ones. */
async function intoGroups(
  plan: Plan,
  targetingId: string,
  candidates: readonly Candidate[],
  context: PlanningContext,
): Promise<readonly Placed[]> {
  const groups = new Map<string, NewOption>();
  for (const { option } of candidates) if (option.isGroup) groups.set(option.name, option);
  const missing = candidates.some(({ item }) => item.parentName !== undefined && !groups.has(item.parentName));
  const existing = missing ? await topLevelGroups(targetingId, context) : new Map<string, readonly Found[]>();
  const placed: Placed[] = [];
  for (const { item, object, option } of candidates) {
    const group = item.parentName === undefined ? undefined : groups.get(item.parentName);
    if (group !== undefined) group.children.push(option);
    else if (item.parentName === undefined) {
      placed.push(item.parent === undefined ? { option } : { option, parent: item.parent });
    } else {
      const found = existing.get(item.parentName) ?? [];
      const [only] = found;
      if (only === undefined) {
        const near = [...groups.keys(), ...existing.keys()].slice(0, 10);
        plan.fail(object, ownReason("NAME_NOT_FOUND", { field: "parentName", value: item.parentName, groups: near }));
      } else if (found.length > 1) {
        const ids = found.map(({ _id }) => _id);
        plan.fail(object, ownReason("NAME_AMBIGUOUS", { field: "parentName", value: item.parentName, ids }));
      } else placed.push({ option, parent: only._id });
    }
  }
  return placed;
}

interface Existing {
  readonly targetingId: string;
  readonly onExisting: OnExisting;
  readonly names: ReadonlyMap<string, string>;
}

/** An option that is there already: left, or given the Context IDs; its new sub-options are added to it. */
function planExisting(plan: Plan, option: NewOption, there: string, existing: Existing): void {
  const add = existing.onExisting === "addContexts" ? option.contexts : [];
  if (add.length === 0) plan.settlements.push({ object: option.object, outcome: "alreadyDone", _id: there });
  else planAdding(plan, option.object, there, add);
  const place = { targeting: { id: existing.targetingId }, parent: { id: there } };
  for (const child of option.children) {
    const childThere = existing.names.get(child.name);
    const asOption = { ...child, isGroup: false, exposeChildren: undefined, children: [] };
    if (childThere === undefined) planOption(plan, asOption, place);
    else planExisting(plan, asOption, childThere, existing);
  }
}

/** Sub-options of a new group whose names the targeting has already cannot be made inside it. */
function onlyNew(
  plan: Plan,
  children: readonly NewOption["children"][number][],
  onExisting: OnExisting,
  names: ReadonlyMap<string, string>,
): NewOption["children"] {
  return children.filter((child) => {
    const there = names.get(child.name);
    if (there === undefined) return true;
    if (onExisting === "addContexts" && child.contexts.length > 0)
      planAdding(plan, child.object, there, child.contexts);
    else plan.settlements.push({ object: child.object, outcome: "alreadyDone", _id: there });
    return false;
  });
}

function planAdding(plan: Plan, object: number, optionId: string, contexts: readonly string[]): void {
  let after: readonly number[] = [];
  for (const add of parts(contexts)) {
    const fields = { objects: [object], after };
    after = [plan.add(plan.make.updateOption({ id: optionId }, { contexts: { add } }, fields)).id];
  }
}

interface Found {
  readonly _id: string;
}

/** The existing option groups of a targeting, by name. Names can be double after console edits (management-api 4.2). */
async function topLevelGroups(
  targetingId: string,
  { api, signal }: PlanningContext,
): Promise<Map<string, readonly Found[]>> {
  const found = new Map<string, readonly Found[]>();
  for await (const option of readOptions(api, targetingId, signal, { subOptions: false })) {
    if (option.type !== "atomic") found.set(option.name, [...(found.get(option.name) ?? []), option]);
  }
  return found;
}
