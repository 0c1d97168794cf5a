import { Numbers } from "./lists.ts";
import type { Columns } from "./loads.ts";
import type { Texts } from "./texts.ts";
import { boundBytes } from "./weigh.ts";
import type { Binding, Step, Weight } from "./work.ts";

/** The steps of a run to look at; the ID of a step is its position. */
export type StepList = Pick<
  StepTable,
  | "length"
  | "at"
  | "operations"
  | "operationOf"
  | "boundBy"
  | "bindingsOf"
  | "objectOf"
  | "objectsOf"
  | "afterOf"
  | "areIndependent"
  | "rowsFrom"
  | "weights"
  | "weightsOf"
  | "itemOf"
  | "itemSize"
  | "isWhole"
  | "listed"
  | "bytesOf"
>;

/** What many steps have in common. */
interface Kind {
  readonly operation: Step["operation"];
  readonly bindings: readonly Binding[];
  /** Whether the items are kept with the bound fields in them. */
  readonly isWhole: boolean;
}

/** Rows that follow each other: the first of their objects and of their texts, and how many Context IDs each has. */
export interface RowSteps {
  readonly object: number;
  readonly text: number;
  readonly contextIds: Numbers;
}

/** What few steps have. */
type Further = Pick<Step, "after" | "undoes" | "prepares" | "formerName">;

/**
 * The steps of a run. Their items lie in the texts, and what they weigh in lists of numbers, so that a hundred thousand
 * of them fit into a few megabytes. A step that is read is a view that looks things up.
 */
export class StepTable {
  readonly #texts: Texts;
  readonly #kinds: Kind[] = [];
  readonly #operations = new Set<Step["operation"]>();
  readonly #kind = new Numbers();
  readonly #item = new Numbers();
  readonly #object = new Numbers();
  /** Of steps that are about several objects. */
  readonly #objects = new Map<number, readonly number[]>();
  readonly #options = new Numbers();
  readonly #groupItems = new Numbers();
  readonly #contextIds = new Numbers();
  readonly #bytes = new Numbers();
  readonly #further = new Map<number, Further>();
  #independent = true;

  constructor(texts: Texts) {
    this.#texts = texts;
  }

  get length(): number {
    return this.#item.length;
  }

  /** Adds a step. Throws a RangeError when its ID is not its position. */
  add(step: Step): void {
    if (step.id !== this.length) throw new RangeError(`step ${step.id} comes where step ${this.length} should`);
    const { objects, weight, after, undoes, prepares, formerName } = step;
    if ((after ?? []).length > 0 || step.bindings.some((binding) => binding.object !== undefined)) {
      this.#independent = false;
    }
    const [object = 0] = objects;
    if (objects.length !== 1) this.#objects.set(step.id, objects);
    if (after !== undefined || undoes !== undefined || prepares !== undefined || formerName !== undefined) {
      this.#further.set(step.id, { after, undoes, prepares, formerName });
    }
    this.#beOf({ ...step, isWhole: false });
    this.#kind.push(this.#kinds.length - 1);
    const item = this.#texts.add(step.json);
    this.#item.push(item);
    this.#bytes.push(this.#texts.size(item) + boundBytes(step.bindings));
    this.#object.push(object);
    this.#options.push(weight.options);
    this.#groupItems.push(weight.groupItems);
    this.#contextIds.push(weight.contextIds);
  }

  /**
   * Adds steps that each add one option without sub-options. Their objects, and the texts that are their items, follow
   * each other; the items have the bound field in them.
   */
  addRows(bindings: readonly Binding[], { object, text, contextIds }: RowSteps): void {
    const { length: count } = contextIds;
    this.#beOf({ operation: "addOptions", bindings, isWhole: true });
    this.#kind.fill(count, this.#kinds.length - 1);
    this.#item.countUp(this.#item.length, count, text);
    this.#object.countUp(this.#object.length, count, object);
    this.#options.fill(count, 1);
    this.#groupItems.fill(count, 0);
    this.#contextIds.append(contextIds);
    for (let row = 0; row < count; row += 1) this.#bytes.push(this.#texts.size(text + row) + COMMA_BYTES);
  }

  at(id: number): Step | undefined {
    const kind = this.#kinds[this.#kind.at(id)];
    return kind === undefined || id >= this.length ? undefined : new StoredStep(this, id, kind);
  }

  /** A step's item without its bound fields. */
  jsonOf(id: number): string {
    const text = this.#texts.at(this.#item.at(id));
    return this.isWhole(id) ? `{${text.slice(boundFieldOf(this.bindingsOf(id)).length)}` : text;
  }

  /** Bytes of a step's item; 0 for a delete. */
  itemSize(id: number): number {
    return this.#texts.size(this.#item.at(id));
  }

  /**
   * How many steps from one on, up to `most`, are rows whose items and objects follow each other. Both only grow from
   * row to row, so that looking at the last one is enough; the number is not always the largest.
   */
  rowsFrom(id: number, most: number): number {
    if (!this.isWhole(id)) return 0;
    for (let count = Math.min(most, this.length - id); count > 1; count = count >> 1) {
      const last = id + count - 1;
      const follows = [this.#item, this.#object].every((list) => list.at(last) - list.at(id) === count - 1);
      if (follows && this.#kind.at(last) === this.#kind.at(id)) return count;
    }
    return 1;
  }

  /** Whether no step waits for another one. */
  areIndependent(): boolean {
    return this.#independent;
  }

  /** Whether a step's item has its bound fields in it. */
  isWhole(id: number): boolean {
    return this.#kinds[this.#kind.at(id)]?.isWhole ?? false;
  }

  /** The items of rows that follow each other, with commas between them, in pieces: they may not be changed. */
  listed(from: number, count: number): readonly Uint8Array[] {
    const first = this.#item.at(from);
    return this.#texts.listed(first, first + count);
  }

  /** A step's item in UTF-8, as it lies in the texts: it may not be changed. */
  bytesOf(id: number): Uint8Array {
    return this.#texts.bytesOf(this.#item.at(id));
  }

  /** The position of a step's item in the texts. */
  itemOf(id: number): number {
    return this.#item.at(id);
  }

  /** The operations of all steps. */
  operations(): ReadonlySet<Step["operation"]> {
    return this.#operations;
  }

  /** Undefined where there is no such step. */
  operationOf(id: number): Step["operation"] | undefined {
    return id < this.length ? this.#kinds[this.#kind.at(id)]?.operation : undefined;
  }

  /** Steps that must be settled before. */
  afterOf(id: number): readonly number[] | undefined {
    return this.#further.get(id)?.after;
  }

  /** The bindings of the steps of one operation; what steps that follow each other share comes once. */
  boundBy(operation: Step["operation"]): readonly (readonly Binding[])[] {
    return this.#kinds.flatMap((kind) => (kind.operation === operation ? [kind.bindings] : []));
  }

  bindingsOf(id: number): readonly Binding[] {
    return this.#kinds[this.#kind.at(id)]?.bindings ?? [];
  }

  /** The object that a step is about; what it makes inside comes after it. */
  objectOf(id: number): number {
    return this.#object.at(id);
  }

  objectsOf(id: number): readonly number[] {
    return this.#objects.get(id) ?? [this.#object.at(id)];
  }

  weightOf(id: number): Weight {
    return {
      items: 1,
      options: this.#options.at(id),
      groupItems: this.#groupItems.at(id),
      contextIds: this.#contextIds.at(id),
      bytes: this.#bytes.at(id),
    };
  }

  /** What all steps weigh. */
  weights(): Columns {
    return {
      items: new Uint32Array(this.length).fill(1),
      options: this.#options.all(),
      groupItems: this.#groupItems.all(),
      contextIds: this.#contextIds.all(),
      bytes: this.#bytes.all(),
    };
  }

  /** What some steps weigh, in their order. */
  weightsOf(ids: readonly number[]): Columns {
    return {
      items: new Uint32Array(ids.length).fill(1),
      options: this.#options.pick(ids),
      groupItems: this.#groupItems.pick(ids),
      contextIds: this.#contextIds.pick(ids),
      bytes: this.#bytes.pick(ids),
    };
  }

  furtherOf(id: number): Further {
    return this.#further.get(id) ?? NOTHING;
  }

  /** What is added next is of this kind. */
  #beOf({ operation, bindings, isWhole }: Kind): void {
    const last = this.#kinds.at(-1);
    if (last?.operation === operation && last.bindings === bindings && last.isWhole === isWhole) return;
    this.#kinds.push({ operation, bindings, isWhole });
    this.#operations.add(operation);
  }
}

/** Whether these steps are rows that follow each other. */
export function areRows(steps: StepList, ids: readonly number[]): boolean {
  const [from = 0] = ids;
  return steps.rowsFrom(from, ids.length) === ids.length && ids.every((id, at) => id === from + at);
}

/** What a row takes in a body beside its item. */
const COMMA_BYTES = 1;
const NOTHING: Further = {};

/** What a row's item begins with: the bound field. */
export function boundFieldOf([binding]: readonly Binding[]): string {
  return `{"targeting":${JSON.stringify(binding?.id)},`;
}

/** A step of a table. */
class StoredStep implements Step {
  readonly id: number;
  readonly #table: StepTable;
  readonly #kind: Kind;

  constructor(table: StepTable, id: number, kind: Kind) {
    this.#table = table;
    this.id = id;
    this.#kind = kind;
  }

  get operation() {
    return this.#kind.operation;
  }

  get bindings() {
    return this.#kind.bindings;
  }

  get json() {
    return this.#table.jsonOf(this.id);
  }

  get objects() {
    return this.#table.objectsOf(this.id);
  }

  get weight() {
    return this.#table.weightOf(this.id);
  }

  get after() {
    return this.#table.furtherOf(this.id).after;
  }

  get undoes() {
    return this.#table.furtherOf(this.id).undoes;
  }

  get prepares() {
    return this.#table.furtherOf(this.id).prepares;
  }

  get formerName() {
    return this.#table.furtherOf(this.id).formerName;
  }

  /** The step as a journal keeps it. */
  toJSON(): Step {
    const { id, operation, objects, json, bindings, weight } = this;
    return { id, operation, objects, json, bindings, weight, ...this.#table.furtherOf(id) };
  }
}
