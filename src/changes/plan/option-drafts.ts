import { placeOf, type ReadableContent, type Row } from "../../files/rows.ts";
import { detached } from "../../platform/text.ts";
import { MAX_JOINED, ownReason, type Reason, type RowCounts } from "../../runs/outcome.ts";
import type { AddOptionInput, ChildInput, OptionInput } from "../call.ts";
import type { Bound, OptionItem } from "../rows/entries.ts";
import { type OptionRow, optionRows } from "../rows/input-rows.ts";
import { type RowBlock, type RowRange, RowWriter } from "../rows/row-block.ts";
import type { OptionPlace } from "../rows/steps.ts";
import {
  badId,
  badName,
  bytesInBody,
  checkContextIds,
  invisibleContextIds,
  type Plan,
  parts,
  tooManyForOption,
} from "./plan.ts";
import { REQUEST_LIMITS } from "./requests.ts";

/** The maximum number of Context IDs of an option that is stored as a row. */
export const ROW_CONTEXT_IDS = 100;

export interface OptionCandidate {
  readonly item: AddOptionInput;
  readonly object: number;
  readonly option: NewOption;
}

interface OpenOption {
  readonly object: number;
  readonly item: OptionRow;
}

/** Collects and checks the rows of a call. Most options without a group are stored as text, which saves memory. */
export class OptionDrafts {
  readonly #plan: Plan;
  readonly #targetingId: string;
  readonly #rows = new RowWriter();
  readonly #blocks: RowBlock[] = [];
  /** Options that were rows until another row added something to them or named them as its group. Now candidates. */
  readonly #grown = new Set<number>();
  /** Options stored as rows whose `type` says that they are no groups. */
  readonly #atomic = new Set<number>();
  readonly #open = new Map<string, OpenOption>();
  /** The lines of failed rows, by key. Later rows with the same key describe the same option, so they fail as well. */
  readonly #failed = new Map<string, number | undefined>();
  /** What invalid rows say about options that have no valid row yet, by key. */
  readonly #readable = new Map<string, OptionRow>();
  readonly #candidates: OptionCandidate[] = [];
  /** All names in the group column, even those in failed rows. An option with one of these names is a group. */
  readonly #groupNames = new Set<string>();
  /** The names of all rows that could be read and that name a group, even if their options fail. */
  readonly subOptionNames = new Set<string>();
  /** The object of the first option with each name. */
  readonly #names: NamesInUse = new Map();
  readonly #rowCounts = { read: 0, merged: 0, skipped: 0 };
  readonly #joined: { readonly line: number; readonly of: number }[] = [];

  constructor(plan: Plan, targetingId: string) {
    this.#plan = plan;
    this.#targetingId = targetingId;
  }

  take(rows: readonly Row<AddOptionInput>[]): void {
    for (const row of rows) {
      const { content } = row;
      this.#rowCounts.read += 1;
      this.#rowCounts.skipped += row.skipped ?? 0;
      const group = "reason" in content ? content.group : content.item.parentName;
      if (group !== undefined) this.#groupNames.add(group);
      if ("item" in content && (group ?? content.item.parent) !== undefined) this.subOptionNames.add(content.item.name);
      if ("reason" in content) {
        this.#plan.failGiven({ ...placeOf(row), reason: content.reason });
        if (content.readable !== undefined) this.#takeReadable(content.readable);
      } else if (content.key !== undefined) this.#takeKeyed(row, content.key, content.item);
      else if (isPlain(content.item))
        this.#takePlain(row, checkOne(this.#plan, content.item, this.#names), content.item);
      else this.#takeFull(row, content.item);
    }
  }

  #takeKeyed(row: Row<AddOptionInput>, key: string, item: AddOptionInput): void {
    if (this.#failed.has(key)) {
      this.#merged(row, this.#failed.get(key));
      return;
    }
    const open = this.#open.get(key) ?? this.#grow(key);
    if (open === undefined) {
      const readable = this.#readable.get(key);
      const before = readable && { ...readable, contexts: [] };
      // If the row disagrees with an invalid one before it, the invalid one does not count.
      const isMerged = before !== undefined && optionRows.merge(before, item) === undefined;
      this.#takeFirst(row, key, isMerged ? before : item);
      return;
    }
    const clash = optionRows.merge(open.item, item);
    const line = this.#plan.objects.at(open.object)?.line;
    if (clash === undefined) this.#merged(row, line);
    else {
      const detail = { ...clash.detail, name: item.name, earlierLine: line };
      this.#plan.failGiven({ ...placeOf(row), reason: { ...clash, detail } });
    }
  }

  #takeFirst(row: Row<AddOptionInput>, key: string, item: AddOptionInput): void {
    if (isPlain(item)) {
      // The row reader has checked the Context IDs, and no earlier row has this name. So only the name is checked here.
      const { name, contexts = [] } = item;
      if (!this.#takePlain(row, badName(name) ?? { name, contexts }, item)) this.#failed.set(key, row.line);
    } else this.#opened(key, this.#plan.object({ ...placeOf(row), name: item.name }), item);
  }

  /** Adds to an option what an invalid row says about it, except its Context IDs: its group, its type and its ID. */
  #takeReadable({ key, item }: ReadableContent<AddOptionInput>): void {
    const { contexts: _, ...about } = item;
    if (key === undefined || Object.keys(about).length < 2) return;
    const before = (this.#open.get(key) ?? this.#grow(key))?.item ?? this.#readable.get(key);
    if (before === undefined) this.#readable.set(key, about);
    // The row has failed already. If it also disagrees with an earlier row, the earlier row counts.
    else optionRows.merge(before, about);
  }

  #merged({ line }: Row<AddOptionInput>, of: number | undefined): void {
    this.#rowCounts.merged += 1;
    if (this.#joined.length <= MAX_JOINED && line !== undefined && of !== undefined) this.#joined.push({ line, of });
  }

  rowCounts(): RowCounts {
    const { length } = this.#joined;
    return { ...this.#rowCounts, ...(length > 0 && length <= MAX_JOINED && { joined: this.#joined }) };
  }

  /** Returns the options and groups that cannot be stored as rows. To be called after all rows were added. */
  candidates(): readonly OptionCandidate[] {
    for (const { object, item } of this.#open.values()) {
      this.#check({ object, child: () => object }, item, new Map());
    }
    return this.#withGroups().sort((one, other) => one.object - other.object);
  }

  /** Returns the candidates. An option that other rows name as a group is a group, unless its own row denies it. */
  #withGroups(): OptionCandidate[] {
    for (const name of this.#groupNames) {
      const object = this.#names.get(name);
      const { block, row = 0 } = object === undefined ? {} : (this.#plan.objects.rowAt(object) ?? {});
      if (object === undefined || block === undefined || this.#atomic.has(object) || this.#grown.has(object)) continue;
      this.#grown.add(object);
      const item = { ...block.itemOf(row), type: "collection" } as const;
      this.#check({ object, child: () => object }, item, new Map());
    }
    return this.#candidates.map((candidate) => {
      const { item, option } = candidate;
      const isAtTop = item.parent === undefined && item.parentName === undefined;
      if (item.type !== undefined || !isAtTop || !this.#groupNames.has(option.name)) return candidate;
      return { ...candidate, item: { ...item, type: "collection" }, option: { ...option, isGroup: true } };
    });
  }

  *plain(): Generator<RowRange> {
    for (const block of this.#blocks)
      yield* excludeRows({ block, from: 0, to: block.length }, (row) => this.#grown.has(block.firstObject + row));
  }

  /** Stores an option without a group as a row. Returns false if the option is invalid. */
  #takePlain(row: Row<AddOptionInput>, checked: CheckedOption | Reason, { name, type }: AddOptionInput): boolean {
    const isAtomic = type === "atomic";
    const { objects } = this.#plan;
    if ("code" in checked) {
      this.#plan.fail(this.#plan.object({ ...placeOf(row), name }), checked);
      return false;
    }
    const block = this.#rows.add({ targeting: this.#targetingId, ...checked }, row, objects.length);
    if (block !== this.#blocks.at(-1)) this.#blocks.push(block);
    const object = objects.addRow(block);
    this.#names.set(detached(checked.name), object);
    if (isAtomic) this.#atomic.add(object);
    return true;
  }

  #takeFull(row: Row<AddOptionInput>, item: AddOptionInput): void {
    const object = this.#plan.object({ ...placeOf(row), name: item.name });
    const children = (item.children ?? []).map((child, position) =>
      this.#plan.object({ ...placeOf(row), child: position, name: child.name }),
    );
    this.#check({ object, child: (position) => children[position] ?? object }, item, this.#names);
  }

  #check(place: ObjectsOfOption, item: AddOptionInput, names: NamesInUse): void {
    const { object } = place;
    const misplaced = badParentField(item);
    if (misplaced !== undefined) {
      this.#plan.fail(object, misplaced);
      const left = ownReason("NEEDS_FAILED", { needs: object });
      for (const position of (item.children ?? []).keys()) this.#plan.leaveOut(place.child(position), left);
      return;
    }
    // The group may still be empty, because later items can add sub-options to it.
    const option = checkOption(this.#plan, item, place, names, true);
    if (option !== undefined) this.#candidates.push({ item, object, option });
  }

  /** Makes an option out of a row, so that later rows can add to it. Returns undefined if no row has this key. */
  #grow(key: string): OpenOption | undefined {
    const object = this.#names.get(key);
    const { block, row = 0 } = object === undefined ? {} : (this.#plan.objects.rowAt(object) ?? {});
    if (object === undefined || block === undefined) return undefined;
    this.#grown.add(object);
    return this.#opened(key, object, block.itemOf(row));
  }

  #opened(key: string, object: number, item: AddOptionInput): OpenOption {
    const open = { object, item: { ...item, contexts: [...(item.contexts ?? [])] } };
    this.#open.set(key, open);
    return open;
  }
}

function* excludeRows({ block, from, to }: RowRange, isLeftOut: (row: number) => boolean): Generator<RowRange> {
  let first = from;
  for (let row = from; row <= to; row += 1) {
    if (row < to && !isLeftOut(row)) continue;
    if (row > first) yield { block, from: first, to: row };
    first = row + 1;
  }
}

function isPlain(item: AddOptionInput): boolean {
  return (
    (item.contexts?.length ?? 0) <= ROW_CONTEXT_IDS &&
    item._id === undefined &&
    item.type !== "collection" &&
    item.children === undefined &&
    item.exposeChildren === undefined &&
    item.parent === undefined &&
    item.parentName === undefined
  );
}

/** Returns a reason if an item breaks a rule about its group (management-api 7.4, case 3). */
function badParentField(item: AddOptionInput): Reason | undefined {
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

interface CheckedOption {
  readonly name: string;
  readonly contexts: readonly string[];
}

interface Child extends CheckedOption {
  readonly object: number;
}

export interface NewOption extends Child {
  readonly isGroup: boolean;
  readonly exposeChildren: boolean | undefined;
  readonly children: Child[];
}

export type NamesInUse = Map<string, number>;

interface ObjectsOfOption {
  readonly object: number;
  child(position: number): number;
}

/**
 * Checks an option and its sub-options (management-api 7.4, 8.1, 8.3). If the option itself is invalid, its sub-options
 * are not applied either. An invalid sub-option fails alone. `mayBeEmpty`: a group may have no sub-options yet.
 */
export function checkOption(
  plan: Plan,
  input: OptionInput,
  place: ObjectsOfOption,
  names: NamesInUse,
  mayBeEmpty: boolean,
): NewOption | undefined {
  const children = (input.children ?? []).map((child, position) => ({ child, object: place.child(position) }));
  const refuse = (reason: Reason): undefined => {
    plan.fail(place.object, reason);
    for (const { object } of children) plan.leaveOut(object, ownReason("NEEDS_FAILED", { needs: place.object }));
    return undefined;
  };
  const misfit = badTypes(input);
  if (misfit !== undefined) return refuse(misfit);
  const own = checkOne(plan, input, names);
  if ("code" in own) return refuse(own);
  names.set(own.name, place.object);
  const good: Child[] = [];
  for (const { child, object } of children) {
    const checked = checkOne(plan, child, names);
    if ("code" in checked) {
      plan.fail(object, checked);
      continue;
    }
    names.set(checked.name, object);
    good.push({ object, ...checked });
  }
  const isGroup = input.type === "collection" || input.children !== undefined;
  if (isGroup && !mayBeEmpty && good.length === 0 && own.contexts.length === 0) {
    plan.fail(place.object, ownReason("EMPTY_GROUP"));
    return undefined;
  }
  return { object: place.object, ...own, isGroup, exposeChildren: input.exposeChildren, children: good };
}

function badTypes(input: OptionInput): Reason | undefined {
  const hasChildren = input.children !== undefined;
  if (hasChildren && input.type === "atomic") return ownReason("INVALID_ITEM", { problem: "childrenOfAtomic" });
  if (input.exposeChildren !== undefined && input.type !== "collection" && !hasChildren) {
    return ownReason("INVALID_ITEM", { problem: "exposeChildrenOfAtomic" });
  }
  return undefined;
}

function checkOne({ objects }: Plan, input: ChildInput, names: NamesInUse): CheckedOption | Reason {
  const invalid = badName(input.name);
  if (invalid !== undefined) return invalid;
  const contexts = input.contexts ?? [];
  const invisible = invisibleContextIds(contexts);
  if (invisible !== undefined) return invisible;
  const checked = checkContextIds(contexts);
  if (!checked.ok) return checked.reason;
  const tooMany = tooManyForOption(checked.ids);
  if (tooMany !== undefined) return tooMany;
  const first = names.get(input.name);
  if (first !== undefined) {
    const { index, line } = objects.at(first) ?? {};
    const at = line === undefined ? {} : { duplicateOfLine: line };
    const compared = comparedWithRow(objects, first, checked.ids);
    return ownReason("DUPLICATE_IN_INPUT", { duplicateOfIndex: index, ...at, field: "name", ...compared });
  }
  return { name: input.name, contexts: checked.ids };
}

/**
 * Returns whether an option has the same Context IDs as an earlier option of the plan. Only compares options that are
 * stored as rows: no groups, no sub-options, and none with very many Context IDs.
 */
function comparedWithRow(objects: Plan["objects"], object: number, contexts: readonly string[]) {
  const { block, row = 0 } = objects.rowAt(object) ?? {};
  if (block === undefined) return {};
  const earlier = new Set(block.itemOf(row).contexts ?? []);
  const isSame = earlier.size === contexts.length && contexts.every((id) => earlier.has(id));
  return { contexts: isSame ? "same" : "other" };
}

interface OptionTarget extends OptionPlace {
  readonly after?: readonly number[];
}

/** Returns the Context IDs of options and their sub-options, as the caller wrote them. */
export function givenContextIds(options: readonly OptionInput[]): readonly string[] {
  return options.flatMap(({ contexts = [], children = [] }) => [...contexts, ...givenContextIds(children)]);
}

/** Plans the steps that create an option, several if it does not fit into one. Returns the ID of the first step. */
export function planOption(plan: Plan, option: NewOption, { after = [], ...place }: OptionTarget): number {
  const { object } = option;
  if (option.isGroup) plan.objects.amend(object, { kind: "group" });
  const [first = [], ...rest] = parts(option.contexts);
  const { inside, outside } = splitChildren(option, first);
  const objects = [object, ...inside.map((child) => child.object)];
  const { id } = plan.add(plan.make.addOption(optionItem(option, first, inside), place, { objects, after }));
  addParts(plan, { object }, object, rest);
  for (const child of inside) addParts(plan, { object: child.object }, child.object, parts(child.contexts).slice(1));
  for (const child of outside) planOption(plan, atomic(child), { targeting: place.targeting, parent: { object } });
  return id;
}

export function atomic({ object, name, contexts }: Child): NewOption {
  return { object, name, contexts, isGroup: false, exposeChildren: undefined, children: [] };
}

/** Returns the item that creates an option. `inside`: the sub-options in the same item. */
export function optionItem(
  { name, isGroup, exposeChildren }: NewOption,
  contexts: readonly string[],
  inside: readonly Child[],
): OptionItem {
  if (!isGroup) return { name, ...withContexts(contexts) };
  const children = inside.map((child) => ({ name: child.name, ...withContexts(parts(child.contexts)[0] ?? []) }));
  return {
    ...{ name, type: "collection", ...withContexts(contexts) },
    ...(children.length > 0 && { children }),
    ...(exposeChildren !== undefined && { exposeChildren }),
  };
}

function withContexts(contexts: readonly string[]): { readonly contexts?: readonly string[] } {
  return contexts.length > 0 ? { contexts } : {};
}

function splitChildren(group: NewOption, contexts: readonly string[]) {
  const limits = REQUEST_LIMITS.addOptions;
  const inside: Child[] = [];
  const outside: Child[] = [];
  let contextIds = contexts.length;
  let bytes = 512 + contexts.reduce((sum, id) => sum + bytesInBody(id), 0);
  for (const child of group.children) {
    const [first = []] = parts(child.contexts);
    const size = 32 + bytesInBody(child.name) + first.reduce((sum, id) => sum + bytesInBody(id), 0);
    const hasRoom =
      inside.length + 2 <= limits.options &&
      contextIds + first.length <= limits.contextIds &&
      bytes + size < limits.bytes;
    const whole = first.length === child.contexts.length;
    const mustBeInside = contexts.length === 0 && inside.length === 0;
    if (hasRoom && (whole || mustBeInside)) {
      inside.push(child);
      contextIds += first.length;
      bytes += size;
    } else outside.push(child);
  }
  return { inside, outside };
}

export function addParts(plan: Plan, option: Bound, object: number, added: readonly (readonly string[])[]): void {
  let after: readonly number[] = [];
  for (const add of added) {
    after = [plan.add(plan.make.updateOption(option, { contexts: { add } }, { objects: [object], after })).id];
  }
}
