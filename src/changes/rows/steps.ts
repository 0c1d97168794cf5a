import type { ReportedObject } from "../../runs/outcome.ts";
import type { CreateTargetingItem, OptionChanges } from "../../spec/records.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import type {
  Binding,
  Bound,
  JournalEntry,
  OptionItem,
  Step,
  StepFields,
  StepItems,
  StepOf,
  Weight,
} from "./entries.ts";
import { RowBlock } from "./row-block.ts";

/** The steps of a run, in which rows are stored as blocks. The ID of a step is its index. */
export class StepList {
  readonly #parts: (Step | RowBlock)[] = [];

  get length(): number {
    return this.#parts.length;
  }

  /** Adds a step. Throws a RangeError if the ID of the step is not the next index. */
  add(step: Step): void {
    if (step.id !== this.length)
      throw new RangeError(`step ${step.id} must be added at position ${step.id}, not ${this.length}`);
    this.#parts.push(step);
  }

  addRow(block: RowBlock): void {
    this.#parts.push(block);
  }

  at(id: number): Step | undefined {
    const part = this.#parts[id];
    return part instanceof RowBlock ? part.open(rowOf(part, id)) : part;
  }

  /** Returns a step or, for a row, its whole block. Only use it for properties that all rows of a block share. */
  partAt(id: number): Step | RowBlock | undefined {
    return this.#parts[id];
  }

  /** Yields all steps. Each block of rows is yielded once. */
  *parts(): Generator<Step | RowBlock> {
    for (let id = 0; id < this.length; ) {
      const part = this.#parts[id];
      if (part !== undefined) yield part;
      id += part instanceof RowBlock ? part.length : 1;
    }
  }

  objectOf(id: number): number | undefined {
    const part = this.#parts[id];
    return part instanceof RowBlock ? part.firstObject + rowOf(part, id) : part?.objects[0];
  }

  /** Returns how much of each request limit a step uses. Throws a RangeError if the step does not exist. */
  weightOf(id: number): Weight {
    const part = this.#parts[id];
    if (part === undefined) throw new RangeError(`there is no step ${id}`);
    return part instanceof RowBlock ? part.weightOf(rowOf(part, id)) : part.weight;
  }

  /** Returns the bindings of all steps of an operation. Those of a block of rows are returned once. */
  boundBy(operation: BulkOperation): readonly (readonly Binding[])[] {
    return [...this.parts()].flatMap((part) => (part.operation === operation ? [part.bindings] : []));
  }

  areIndependent(): boolean {
    for (const part of this.parts()) {
      if (part instanceof RowBlock) continue;
      if ((part.after ?? []).length > 0 || part.bindings.some(({ object }) => object !== undefined)) return false;
    }
    return true;
  }

  /** Returns whether the steps are consecutive rows whose objects are consecutive, too. */
  areRows(ids: readonly number[]): boolean {
    const [first = 0] = ids;
    const last = first + ids.length - 1;
    return (
      ids.every((id, at) => id === first + at && this.#parts[id] instanceof RowBlock) &&
      (this.objectOf(last) ?? 0) - (this.objectOf(first) ?? 0) === ids.length - 1
    );
  }
}

export function rowOf({ firstStep = 0 }: RowBlock, step: number): number {
  return step - firstStep;
}

export interface OptionPlace {
  readonly targeting: Bound;
  readonly parent?: Bound;
}

/** The fields of a step that its planner decides. An empty `after` counts as absent. */
type StepExtras = Pick<StepFields, "objects" | "after" | "undoes" | "prepares" | "formerName">;

export class StepMaker {
  readonly #next: () => number;

  constructor(next: () => number) {
    this.#next = next;
  }

  /** Returns a maker whose first step has the next free ID. Its steps may be added to the list later. */
  static after({ length }: { readonly length: number }): StepMaker {
    let next = length;
    return new StepMaker(() => next++);
  }

  createTargeting(item: CreateTargetingItem, given: StepExtras): StepOf<"createTargetings"> {
    const options = item.options ?? [];
    const fields = this.#fields(item, [], given, {
      options: options.reduce((sum, option) => sum + optionCount(option), 0),
      contextIds: options.reduce((sum, option) => sum + contextCount(option), 0),
    });
    return { ...fields, operation: "createTargetings", item };
  }

  renameTargeting(targetingId: string, name: string, given: StepExtras): StepOf<"renameTargetings"> {
    const item = { name };
    const fields = this.#fields(item, [{ field: "_id", id: targetingId }], given, {});
    return { ...fields, operation: "renameTargetings", item };
  }

  deleteTargeting(targetingId: string, given: StepExtras): StepOf<"deleteTargetings"> {
    const fields = this.#fields(undefined, [{ field: "_id", id: targetingId }], given, {});
    return { ...fields, operation: "deleteTargetings", item: undefined };
  }

  /** Creates a step that adds an option. The group of the option must be in `place.parent`, not in `item`. */
  addOption(item: OptionItem, place: OptionPlace, given: StepExtras): StepOf<"addOptions"> {
    const bindings: Binding[] = [{ field: "targeting", ...place.targeting }];
    if (place.parent !== undefined) bindings.push({ field: "parent", ...place.parent });
    const group = item.type === "collection" || item.children !== undefined || place.parent !== undefined;
    const fields = this.#fields(item, bindings, given, {
      options: optionCount(item),
      groupItems: group ? 1 : 0,
      contextIds: contextCount(item),
    });
    return { ...fields, operation: "addOptions", item };
  }

  /**
   * Creates a step that changes an option. `option`: its ID, or the object if this run creates it. `group`: the group
   * into which it moves, unless `item.parent` already says where it moves.
   */
  updateOption(option: Bound, item: OptionChanges, given: StepExtras, group?: Bound): StepOf<"updateOptions"> {
    const { add = [], remove = [], set = [] } = item.contexts ?? {};
    const bindings: Binding[] = [{ field: "_id", ...option }];
    if (group !== undefined) bindings.push({ field: "parent", ...group });
    const fields = this.#fields(item, bindings, given, {
      groupItems: item.parent === undefined && group === undefined ? 0 : 1,
      contextIds: add.length + remove.length + set.length,
    });
    return { ...fields, operation: "updateOptions", item };
  }

  /**
   * Creates a step that deletes an option. `inTree`: the option is a group or a sub-option. A request may delete only a
   * limited number of these (management-api 8.1).
   */
  deleteOption(option: Bound, inTree: boolean, given: StepExtras): StepOf<"deleteOptions"> {
    const fields = this.#fields(undefined, [{ field: "_id", ...option }], given, { groupItems: inTree ? 1 : 0 });
    return { ...fields, operation: "deleteOptions", item: undefined };
  }

  #fields(
    item: StepItems[keyof StepItems],
    bindings: readonly Binding[],
    { after = [], ...given }: StepExtras,
    measures: Partial<Weight>,
  ): StepFields {
    const bytes = entryBytes(item === undefined ? "" : JSON.stringify(item), bindings);
    const weight = { items: 1, options: 0, groupItems: 0, contextIds: 0, bytes, ...measures };
    return { id: this.#next(), bindings, weight, ...given, ...(after.length > 0 && { after }) };
  }
}

/**
 * Returns the names of the fields that a step sends. They show what an ambiguous error code means. `detach` is used for
 * `parent: null`, and `onlyLoss` is added if the step removes Context IDs and adds none.
 */
export function sentFields({ item, bindings, operation }: Step): readonly string[] {
  const fields = Object.entries(item ?? {}).map(([field, value]) => (value === null ? "detach" : field));
  const onlyLoss = operation === "updateOptions" && takesOnlyAway(item);
  return [...bindings.map(({ field }) => field), ...fields, ...(onlyLoss ? ["onlyLoss"] : [])];
}

function takesOnlyAway({ contexts }: OptionChanges): boolean {
  if (contexts === undefined || contexts.add !== undefined) return false;
  return contexts.set === undefined ? contexts.remove !== undefined : contexts.set.length === 0;
}

type CountedOption = Pick<OptionItem, "contexts" | "children">;

export function optionCount({ children = [] }: CountedOption): number {
  return 1 + children.length;
}

export function contextCount({ contexts = [], children = [] }: CountedOption): number {
  return children.reduce((sum, child) => sum + (child.contexts?.length ?? 0), contexts.length);
}

/** The size of a ULID in JSON in bytes, with its quotation marks. IDs that are not known yet have this size, too. */
const ID_BYTES = 28;

/** Returns the maximum size of an item in a request body in bytes: its JSON, its bound fields, and one comma. */
function entryBytes(json: string, bindings: readonly Binding[]): number {
  const own = Buffer.byteLength(json, "utf8") + 1;
  return bindings.reduce((bytes, { field }) => bytes + field.length + 4 + ID_BYTES, own);
}

export const ENTRIES_PER_LINE = 500;

export class ObjectList {
  readonly #parts: (ReportedObject | RowBlock)[] = [];

  get length(): number {
    return this.#parts.length;
  }

  add(object: ReportedObject): number {
    return this.#parts.push(object) - 1;
  }

  addRow(block: RowBlock): number {
    return this.#parts.push(block) - 1;
  }

  /** Returns journal entries for the objects from `from` up to `to` (exclusive). */
  *entries(from = 0, to = this.length): Generator<JournalEntry> {
    for (let first = from; first < to; first += ENTRIES_PER_LINE) {
      const objects: ReportedObject[] = [];
      for (let object = first; object < Math.min(to, first + ENTRIES_PER_LINE); object += 1) {
        const about = this.at(object);
        if (about !== undefined) objects.push(about);
      }
      yield { t: "objects", objects };
    }
  }

  /** Adds fields to an object. Does nothing for a row of a planned block. */
  amend(object: number, more: Partial<ReportedObject>): void {
    const part = this.#parts[object];
    if (part === undefined || (part instanceof RowBlock && part.firstStep !== undefined)) return;
    const about = part instanceof RowBlock ? part.objectOf(object - part.firstObject) : part;
    this.#parts[object] = { ...about, ...more };
  }

  setRows(block: RowBlock): void {
    this.#parts.fill(block, block.firstObject, block.firstObject + block.length);
  }

  at(object: number): ReportedObject | undefined {
    const part = this.#parts[object];
    return part instanceof RowBlock ? part.objectOf(object - part.firstObject) : part;
  }

  idOf(object: number): string | undefined {
    const part = this.#parts[object];
    return part instanceof RowBlock ? undefined : part?._id;
  }

  /** Returns the kind of an object. A row is neither a group nor a targeting, so it need not be parsed. */
  kindOf(object: number): ReportedObject["kind"] {
    const part = this.#parts[object];
    return part instanceof RowBlock ? undefined : part?.kind;
  }

  /** Returns the block and the row of an object. Undefined if the object is not in a block. */
  rowAt(object: number): { readonly block: RowBlock; readonly row: number } | undefined {
    const part = this.#parts[object];
    return part instanceof RowBlock ? { block: part, row: object - part.firstObject } : undefined;
  }
}
