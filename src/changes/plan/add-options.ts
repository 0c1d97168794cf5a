import type { Row } from "../../files/rows.ts";
import { mapConcurrently, readOptionContents } from "../../reads/option-contents.ts";
import { readOptionNames, readOptions } from "../../reads/option-lists.ts";
import { ownReason } from "../../runs/outcome.ts";
import { NameIndex } from "../../spec/names.ts";
import type { OptionRecord } from "../../spec/records.ts";
import type { AddOptionInput, Inputs, OnExisting } from "../call.ts";
import { leftAsItIs } from "../rows/former.ts";
import type { RowRange } from "../rows/row-block.ts";
import { badId, parts } from "./checks.ts";
import { noteNear } from "./former-values.ts";
import { found, isOption } from "./names.ts";
import { type NewOption, type OptionCandidate, OptionDrafts, planOption } from "./option-drafts.ts";
import { Plan, type PlanningContext } from "./plan.ts";

type AddOptionsInput = Inputs["bulk_add_options"];

/**
 * Plans adding options to one targeting. Sub-options of a group that the same call creates travel inside it, wherever
 * they stand in the call. Reads List Options when a `parentName` is not among the call's own groups, and when
 * `onExisting` is not `fail`: then only what is new is sent. Rows with the ID of an existing option add nothing.
 */
export async function planAddOptions(
  input: AddOptionsInput,
  rows: AsyncIterable<readonly Row<AddOptionInput>[]>,
  context: PlanningContext,
): Promise<Plan> {
  const plan = new Plan();
  const drafts = new OptionDrafts(plan, input.targetingId);
  for await (const batch of rows) drafts.take(batch);
  await placeAll(plan, input, drafts, context);
  plan.facts = {
    ...plan.facts,
    within: input.targetingId,
    ...(input.file !== undefined && { rows: drafts.rowCounts() }),
  };
  return plan;
}

interface Placed {
  readonly option: NewOption;
  readonly parent?: string;
}

async function placeAll(
  plan: Plan,
  input: AddOptionsInput,
  drafts: OptionDrafts,
  context: PlanningContext,
): Promise<void> {
  const { targetingId, onExisting = "fail" } = input;
  const candidates = await planKnown(plan, input, drafts.candidates(), context);
  const placed = await intoGroups(plan, targetingId, candidates, context);
  const existing = onExisting === "fail" ? undefined : await readExisting(input, onExisting, context);
  const further = placed.values();
  let next = further.next();
  for (const plain of drafts.plain()) {
    const object = plain.block.firstObject + plain.from;
    for (; !next.done && next.value.option.object < object; next = further.next()) {
      place(plan, targetingId, next.value, existing);
    }
    if (existing === undefined) plan.addRows(plain);
    else placePlain(plan, plain, existing);
  }
  for (; !next.done; next = further.next()) place(plan, targetingId, next.value, existing);
}

function place(plan: Plan, targetingId: string, { option, parent }: Placed, existing: Existing | undefined): void {
  const targeting = { id: targetingId };
  const there = existing?.names.get(option.name);
  if (there !== undefined && existing !== undefined) planExisting(plan, option, there, existing);
  else if (option.isGroup) {
    const fresh = { ...option, children: onlyNew(plan, option.children, existing) };
    if (fresh.children.length > 0 || fresh.contexts.length > 0) planOption(plan, fresh, { targeting });
    else plan.fail(option.object, ownReason("EMPTY_GROUP"));
  } else planOption(plan, option, parent === undefined ? { targeting } : { targeting, parent: { id: parent } });
}

/** Adds the rows whose names are new; rows whose names exist are planned one by one. */
function placePlain(plan: Plan, { block, from, to }: RowRange, existing: Existing): void {
  let first = from;
  for (let row = from; row < to; row += 1) {
    const { name, contexts = [] } = block.itemOf(row);
    const there = existing.names.get(name);
    if (there === undefined) continue;
    plan.addRows({ block, from: first, to: row });
    planExisting(plan, atomic({ object: block.firstObject + row, name, contexts }), there, existing);
    first = row + 1;
  }
  plan.addRows({ block, from: first, to });
}

/** Puts sub-options into the groups that they name: new ones of the call, or existing ones. */
async function intoGroups(
  plan: Plan,
  targetingId: string,
  candidates: readonly OptionCandidate[],
  context: PlanningContext,
): Promise<readonly Placed[]> {
  const groups = new Map<string, NewOption>();
  for (const { option } of candidates) if (option.isGroup) groups.set(option.name, option);
  const missing = candidates.some(({ item }) => item.parentName !== undefined && !groups.has(item.parentName));
  const existing = missing ? await topLevelGroups(targetingId, context) : new NameIndex<OptionRecord>();
  const placed: Placed[] = [];
  for (const { item, object, option } of candidates) {
    const group = item.parentName === undefined ? undefined : groups.get(item.parentName);
    if (group !== undefined) group.children.push(option);
    else if (item.parentName === undefined) {
      placed.push(item.parent === undefined ? { option } : { option, parent: item.parent });
    } else {
      const there = found(existing, item.parentName, "parentName");
      if (isOption(there)) placed.push({ option, parent: there._id });
      else if (there.code === "NAME_NOT_FOUND") {
        const all = [...groups.keys(), ...existing.names()].slice(0, 10);
        plan.fail(object, { ...there, detail: { ...there.detail, groups: all } });
      } else plan.fail(object, there);
    }
  }
  return placed;
}

/** The options that the targeting has already, and what to do about them. */
interface Existing {
  readonly targetingId: string;
  readonly onExisting: "skip" | "addContexts";
  readonly names: ReadonlyMap<string, string>;
}

async function readExisting(
  { targetingId }: AddOptionsInput,
  onExisting: Existing["onExisting"],
  { api, signal }: PlanningContext,
): Promise<Existing> {
  return { targetingId, onExisting, names: await readOptionNames(api, targetingId, signal) };
}

function atomic(option: Pick<NewOption, "object" | "name" | "contexts">): NewOption {
  return { ...option, isGroup: false, exposeChildren: undefined, children: [] };
}

/** Plans an option that exists: it is left as it is, or gets the Context IDs; its new sub-options are added to it. */
function planExisting(plan: Plan, option: NewOption, there: string, existing: Existing): void {
  const add = existing.onExisting === "addContexts" ? option.contexts : [];
  if (add.length === 0) plan.settlements.push(leftAsItIs(option.object, there, existing.onExisting));
  else planAdding(plan, option.object, there, add);
  const place = { targeting: { id: existing.targetingId }, parent: { id: there } };
  for (const child of option.children) {
    const childThere = existing.names.get(child.name);
    if (childThere === undefined) planOption(plan, atomic(child), place);
    else planExisting(plan, atomic(child), childThere, existing);
  }
}

/** Sub-options of a new group whose names the targeting has already cannot be made inside it. */
function onlyNew(
  plan: Plan,
  children: readonly NewOption["children"][number][],
  existing: Existing | undefined,
): NewOption["children"] {
  return children.filter((child) => {
    const there = existing?.names.get(child.name);
    if (existing === undefined || there === undefined) return true;
    planExisting(plan, atomic(child), there, existing);
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

/** The existing option groups of a targeting, by name. Names can be double after console edits (management-api 4.2). */
async function topLevelGroups(targetingId: string, { api, signal }: PlanningContext): Promise<NameIndex<OptionRecord>> {
  const groups = new NameIndex<OptionRecord>();
  for await (const option of readOptions(api, targetingId, signal, { subOptions: false })) {
    if (option.type !== "atomic") groups.add(option);
  }
  return groups;
}

/** Where options are added, and what happens to those that exist. */
interface Adding {
  readonly targetingId: string;
  readonly onExisting?: OnExisting | undefined;
}

/**
 * Plans the rows that have the ID of an option which the targeting holds, as the sheet with results has them: what the
 * option holds already is done, anything else is an edit, which fails here. An ID that the targeting does not hold says
 * nothing about it. Gives the other candidates. Reads List Options, and the Context IDs of such options.
 */
async function planKnown(
  plan: Plan,
  { targetingId, onExisting = "fail" }: Adding,
  candidates: readonly OptionCandidate[],
  { api, signal }: PlanningContext,
): Promise<readonly OptionCandidate[]> {
  if (!candidates.some(({ item }) => item._id !== undefined)) return candidates;
  const there = new Map<string, Known>();
  for await (const option of readOptions(api, targetingId, signal)) {
    const { _id, name, type, exposeChildren, contextCount, parent } = option;
    there.set(_id, { _id, name, type, exposeChildren, contextCount, parent });
  }
  const known: { readonly candidate: OptionCandidate; readonly option: Known }[] = [];
  const others = candidates.filter((candidate) => {
    const { _id } = candidate.item;
    const option = _id === undefined ? undefined : there.get(_id);
    if (option !== undefined) known.push({ candidate, option });
    const invalid = _id === undefined ? undefined : badId("_id", _id);
    if (invalid !== undefined) plan.fail(candidate.object, invalid);
    return option === undefined && invalid === undefined;
  });
  const groupOf = ({ parent }: Known): string | undefined =>
    typeof parent === "string" ? there.get(parent)?.name : undefined;
  await mapConcurrently(known, async ({ candidate, option }) => {
    const { object, item } = candidate;
    const fields = differingFields(candidate, option, groupOf(option));
    const held = await heldContexts(candidate, option, (id) => readOptionContents(api, id, signal));
    const missing = contextsBeside(candidate, held);
    const { _id, name } = option;
    if (onExisting === "skip" || (fields.length === 0 && missing.length === 0)) {
      plan.settlements.push({ object, outcome: "alreadyDone", _id });
    } else if (onExisting === "addContexts" && fields.length === 0) {
      let after: readonly number[] = [];
      for (const add of parts(missing)) {
        const step = plan.make.updateOption({ id: _id }, { contexts: { add } }, { objects: [object], after });
        after = [plan.add(step).id];
      }
    } else {
      if (missing.length > 0) fields.push("Context IDs");
      noteNear(plan, missing, held);
      plan.fail(object, ownReason("INVALID_ROW", { problem: "edited", _id, name, value: item.name, fields }));
    }
  });
  return others;
}

type Known = Pick<OptionRecord, "_id" | "name" | "type" | "exposeChildren" | "contextCount" | "parent">;

/** The columns in which a row says something else than its option is; a blank cell says nothing. */
function differingFields({ item }: OptionCandidate, option: Known, group: string | undefined): string[] {
  const { name, type, exposeChildren, parentName } = item;
  return [
    ...(name !== option.name ? ["Option"] : []),
    ...(parentName !== undefined && parentName !== group ? ["Group"] : []),
    ...(type !== undefined && type !== option.type ? ["Is Group"] : []),
    ...(exposeChildren !== undefined && exposeChildren !== (option.exposeChildren ?? false)
      ? ["Expose Sub-options"]
      : []),
  ];
}

/** The Context IDs that an option holds, which are read only where its row has some to compare them with. */
async function heldContexts(
  { option: { contexts } }: OptionCandidate,
  { _id, contextCount }: Known,
  read: (id: string) => Promise<{ readonly contexts: readonly string[] }>,
): Promise<readonly string[]> {
  return contexts.length === 0 || contextCount === 0 ? [] : (await read(_id)).contexts;
}

/** The Context IDs of a row that its option does not hold. */
function contextsBeside({ option: { contexts } }: OptionCandidate, held: readonly string[]): readonly string[] {
  const known = new Set(held);
  return contexts.filter((id) => !known.has(id));
}
