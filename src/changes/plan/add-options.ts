import type { Row } from "../../files/rows.ts";
import { folded, NameIndex } from "../../platform/by-key.ts";
import { mapConcurrently, readOptionContents } from "../../reads/option-contents.ts";
import { readOptions } from "../../reads/option-lists.ts";
import { ownReason } from "../../runs/outcome.ts";
import type { OptionRecord } from "../../spec/records.ts";
import type { AddOptionInput, Inputs } from "../call.ts";
import { unchangedOption } from "../rows/entries.ts";
import type { RowRange } from "../rows/row-block.ts";
import { found, isOption, noteJoinedIds, noteSimilarIds } from "./current-values.ts";

import {
  addParts,
  atomic,
  givenContextIds,
  type NewOption,
  type OptionCandidate,
  OptionDrafts,
  planOption,
} from "./option-drafts.ts";
import { badId, Plan, type PlanningContext, parts } from "./plan.ts";

type AddOptionsInput = Inputs["bulk_add_options"];

/**
 * Plans adding options to one targeting. Sub-options of a new group are in the group's item if they fit. Existing
 * options are read if a `parentName` is not the name of a group in the call, if a row has an `_id`, or if `onExisting`
 * is not `fail`.
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
  if (input.file === undefined) noteJoinedIds(plan, givenContextIds(input.items));
  plan.note({ within: input.targetingId, ...(input.file && { rows: drafts.rowCounts() }) });
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
  const candidates = await planRowsWithIds(plan, input, drafts.candidates(), context);
  const placed = await assignToGroups(plan, input, { candidates, subOptionNames: drafts.subOptionNames }, context);
  const existing = onExisting === "fail" ? undefined : await existingOptions(targetingId, onExisting, context);
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
  if (there === undefined) noteNearName(plan, option.name, existing);
  if (there !== undefined && existing !== undefined) planExisting(plan, option, there, existing, parent);
  else if (option.isGroup) {
    const fresh = { ...option, children: newSubOptions(plan, option.children, existing) };
    if (fresh.children.length > 0 || fresh.contexts.length > 0) planOption(plan, fresh, { targeting });
    else plan.fail(option.object, ownReason("EMPTY_GROUP"));
  } else planOption(plan, option, parent === undefined ? { targeting } : { targeting, parent: { id: parent } });
}

function placePlain(plan: Plan, { block, from, to }: RowRange, existing: Existing): void {
  let first = from;
  for (let row = from; row < to; row += 1) {
    const { name, contexts = [] } = block.itemOf(row);
    const there = existing.names.get(name);
    if (there === undefined) {
      noteNearName(plan, name, existing);
      continue;
    }
    plan.addRows({ block, from: first, to: row });
    planExisting(plan, atomic({ object: block.firstObject + row, name, contexts }), there, existing);
    first = row + 1;
  }
  plan.addRows({ block, from: first, to });
}

/**
 * A new group and its sub-options are created by one item of a request, so each such sub-option is moved into that
 * item. Returns the remaining options. Those that belong to an existing group get the group's ID.
 */
async function assignToGroups(
  plan: Plan,
  { targetingId }: AddOptionsInput,
  {
    candidates,
    subOptionNames,
  }: Pick<OptionDrafts, "subOptionNames"> & { readonly candidates: readonly OptionCandidate[] },
  context: PlanningContext,
): Promise<readonly Placed[]> {
  const groups = new Map<string, NewOption>();
  for (const { option } of candidates) if (option.isGroup) groups.set(option.name, option);
  const missing = candidates.some(({ item }) => item.parentName !== undefined && !groups.has(item.parentName));
  const existing = missing ? await topLevelGroups(targetingId, context) : new NameIndex<OptionRecord>();
  const placed: Placed[] = [];
  const inexact = new Map<string, string>();
  for (const { item, object, option } of candidates) {
    const group = item.parentName === undefined ? undefined : groups.get(item.parentName);
    if (group !== undefined) group.children.push(option);
    else if (item.parentName === undefined) {
      placed.push(item.parent === undefined ? { option } : { option, parent: item.parent });
    } else {
      const there = found(existing, item.parentName, "parentName");
      if (isOption(there)) {
        placed.push({ option, parent: there._id });
        if (there.name !== item.parentName) inexact.set(item.parentName, there.name);
      } else if (there.code === "NAME_NOT_FOUND") {
        const all = [...new Set([...groups.keys(), ...existing.names()])];
        const isNested = subOptionNames.has(item.parentName);
        const nested = isNested && { nested: item.parentName === option.name ? "itself" : "subOption" };
        const detail = { ...there.detail, ...nested, groups: all.slice(0, 10), groupCount: all.length };
        plan.fail(object, { ...there, detail });
      } else plan.fail(object, there);
    }
  }
  const takenFor = [...inexact].slice(0, MAX_NAMED).map(([given, name]) => ({ given, name }));
  if (takenFor.length > 0) plan.note({ takenFor });
  return placed;
}

interface Existing {
  readonly targetingId: string;
  readonly onExisting: "skip" | "addContexts";
  readonly names: ReadonlyMap<string, Place>;
  /** A name of each existing option, by its form for inexact comparisons. */
  readonly alike: ReadonlyMap<string, string>;
}

type Place = Pick<OptionRecord, "_id" | "parent" | "type">;

async function existingOptions(
  targetingId: string,
  onExisting: Existing["onExisting"],
  context: PlanningContext,
): Promise<Existing> {
  const names = await placesOf(targetingId, context);
  return { targetingId, onExisting, names, alike: new Map([...names.keys()].map((name) => [folded(name), name])) };
}

async function placesOf(targetingId: string, { api, signal }: PlanningContext): Promise<ReadonlyMap<string, Place>> {
  const places = new Map<string, Place>();
  for await (const { name, _id, parent, type } of readOptions(api, targetingId, signal)) {
    places.set(name, { _id, parent, type });
  }
  return places;
}

/**
 * Plans an option whose name exists already: adds missing sub-options and, with `addContexts`, its Context IDs.
 * `group`: the ID of the group that the call names for the option; null if the call itself creates that group.
 */
function planExisting(
  plan: Plan,
  option: NewOption,
  { _id: there, parent, type }: Place,
  existing: Existing,
  group?: string | null,
): void {
  // With `skip`, an existing option is enough for a group without sub-options. Otherwise it would have to be a group.
  if (type === "atomic" && (option.children.length > 0 || (option.isGroup && existing.onExisting === "addContexts"))) {
    plan.fail(option.object, ownReason("INVALID_ITEM", { problem: "notGroup", existingId: there }));
    for (const { object } of option.children)
      plan.leaveOut(object, ownReason("NEEDS_FAILED", { needs: option.object }));
    return;
  }
  if (group !== undefined && group !== parent) noteObject(plan, "elsewhere", option.name);
  const add = existing.onExisting === "addContexts" ? option.contexts : [];
  if (add.length === 0) plan.settlements.push(unchangedOption(option.object, there, existing.onExisting));
  else addParts(plan, { id: there }, option.object, parts(add));
  const place = { targeting: { id: existing.targetingId }, parent: { id: there } };
  for (const child of option.children) {
    const childThere = existing.names.get(child.name);
    if (childThere === undefined) planOption(plan, atomic(child), place);
    else planExisting(plan, atomic(child), childThere, existing, there);
  }
}

const MAX_NAMED = 20;

function noteObject(plan: Plan, fact: "elsewhere" | "missingIds", name: string): void {
  const { count = 0, first = [] } = plan.facts[fact] ?? {};
  plan.note({ [fact]: { count: count + 1, first: [...first, name].slice(0, MAX_NAMED) } });
}

function noteNearName(plan: Plan, given: string, existing: Existing | undefined): void {
  const name = existing?.alike.get(folded(given));
  const { nearNames = [] } = plan.facts;
  if (name !== undefined && nearNames.length < MAX_NAMED) plan.note({ nearNames: [...nearNames, { given, name }] });
}

function newSubOptions(
  plan: Plan,
  children: readonly NewOption["children"][number][],
  existing: Existing | undefined,
): NewOption["children"] {
  return children.filter((child) => {
    const there = existing?.names.get(child.name);
    if (existing === undefined || there === undefined) return true;
    planExisting(plan, atomic(child), there, existing, null);
    return false;
  });
}

/** Returns groups by name. Edits in the web console can give two groups the same name (management-api 4.2). */
async function topLevelGroups(targetingId: string, { api, signal }: PlanningContext): Promise<NameIndex<OptionRecord>> {
  const groups = new NameIndex<OptionRecord>();
  for await (const option of readOptions(api, targetingId, signal, { subOptions: false })) {
    if (option.type !== "atomic") groups.add(option);
  }
  return groups;
}

/**
 * Plans the rows that have the ID of an existing option, as in a file with results. Returns the options of all other
 * valid rows. A row that asks for nothing new is already done. With `addContexts`, missing Context IDs are added.
 * Unless `onExisting` is `fail`, another group is only reported. With any other difference, the row fails, even if
 * `onExisting` is `skip`.
 */
async function planRowsWithIds(
  plan: Plan,
  { targetingId, onExisting = "fail" }: AddOptionsInput,
  candidates: readonly OptionCandidate[],
  { api, signal }: PlanningContext,
): Promise<readonly OptionCandidate[]> {
  if (!candidates.some(({ item }) => item._id !== undefined)) return candidates;
  const there = new Map<string, OptionRecord>();
  for await (const option of readOptions(api, targetingId, signal)) there.set(option._id, option);
  const names = new Set([...there.values()].map(({ name }) => name));
  const known: { readonly candidate: OptionCandidate; readonly option: OptionRecord }[] = [];
  const others = candidates.filter((candidate) => {
    const { _id } = candidate.item;
    const option = _id === undefined ? undefined : there.get(_id);
    if (option !== undefined) known.push({ candidate, option });
    const invalid = _id === undefined ? undefined : badId("_id", _id);
    if (invalid !== undefined) plan.fail(candidate.object, invalid);
    else if (_id !== undefined && option === undefined && !names.has(candidate.item.name)) {
      noteObject(plan, "missingIds", candidate.item.name);
    }
    return option === undefined && invalid === undefined;
  });
  // All options are read before the first one is planned. Otherwise the order of the plan would depend on the order in
  // which the answers arrive.
  const read = await mapConcurrently(known, async ({ candidate, option }) => {
    const areRead = candidate.option.contexts.length > 0 && option.contextCount !== 0;
    const held = areRead ? (await readOptionContents(api, option._id, signal)).contexts : [];
    return { candidate, option, held };
  });
  for (const { candidate, option, held } of read) {
    const { object, item } = candidate;
    const { _id, name, parent } = option;
    const differing = differingFields(candidate, option, there.get(parent ?? "")?.name, names);
    // An option in another group is changed there and not moved, as if the row had no ID.
    const isElsewhere = onExisting !== "fail" && differing.includes("Group");
    const fields = isElsewhere ? differing.filter((field) => field !== "Group") : differing;
    const isHeld = new Set(held);
    const missing = candidate.option.contexts.filter((id) => !isHeld.has(id));
    const isDone = fields.length === 0 && missing.length === 0;
    const isAdded = fields.length === 0 && onExisting === "addContexts";
    if (isElsewhere && (isDone || isAdded)) noteObject(plan, "elsewhere", name);
    if (isDone) plan.settlements.push({ object, outcome: "alreadyDone", _id });
    else if (isAdded) addParts(plan, { id: _id }, object, parts(missing));
    else {
      if (missing.length > 0) differing.push("Context IDs");
      noteSimilarIds(plan, missing, held);
      plan.fail(
        object,
        ownReason("INVALID_ROW", { problem: "edited", _id, name, value: item.name, fields: differing }),
      );
    }
  }
  return others;
}

/**
 * Returns the headings of the columns in which a row differs from its option. An empty cell never differs. `names`: all
 * names of the targeting. A group's name that is none of them may differ from that of the option's group in case.
 */
function differingFields(
  { item }: OptionCandidate,
  option: OptionRecord,
  group: string | undefined,
  names: ReadonlySet<string>,
): string[] {
  const { name, type, exposeChildren, parentName = group } = item;
  const isSameGroup = parentName === group || (!names.has(parentName ?? "") && isAlike(parentName, group));
  return [
    ...(name !== option.name ? ["Option"] : []),
    ...(isSameGroup ? [] : ["Group"]),
    ...(type !== undefined && type !== option.type ? ["Is Group"] : []),
    ...(exposeChildren !== undefined && exposeChildren !== (option.exposeChildren ?? false)
      ? ["Expose Sub-options"]
      : []),
  ];
}

function isAlike(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && folded(one) === folded(other);
}
