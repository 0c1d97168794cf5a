import type { BulkOperation } from "../../spec/routes.ts";
import type { Binding, Step, Weight } from "./entries.ts";
import { RowBlock } from "./row-block.ts";

/** The steps of a run, each by itself or in a block of rows. The ID of a step is its position. */
export class StepList {
  /** By ID: the step, or the block that it is in. */
  readonly #parts: (Step | RowBlock)[] = [];

  get length(): number {
    return this.#parts.length;
  }

  /** Adds a step. Throws a RangeError when its ID is not its position. */
  add(step: Step): void {
    if (step.id !== this.length) throw new RangeError(`step ${step.id} comes where step ${this.length} should`);
    this.#parts.push(step);
  }

  /** Adds the next row of a block. */
  addRow(block: RowBlock): void {
    this.#parts.push(block);
  }

  /** A step by its ID; one of a row is made for it. */
  at(id: number): Step | undefined {
    const part = this.#parts[id];
    return part instanceof RowBlock ? part.open(rowOf(part, id)) : part;
  }

  /** The step, or the block that it is in: for what a block has as a whole. */
  partAt(id: number): Step | RowBlock | undefined {
    return this.#parts[id];
  }

  /** The steps in their order, rows as blocks. */
  *parts(): Generator<Step | RowBlock> {
    for (let id = 0; id < this.length; ) {
      const part = this.#parts[id];
      if (part !== undefined) yield part;
      id += part instanceof RowBlock ? part.length : 1;
    }
  }

  /** The object that a step is about; undefined where there is no such step. */
  objectOf(id: number): number | undefined {
    const part = this.#parts[id];
    return part instanceof RowBlock ? part.firstObject + rowOf(part, id) : part?.objects[0];
  }

  /** The weight of a step in a request. Throws a RangeError where there is no such step. */
  weightOf(id: number): Weight {
    const part = this.#parts[id];
    if (part === undefined) throw new RangeError(`there is no step ${id}`);
    return part instanceof RowBlock ? part.weightOf(rowOf(part, id)) : part.weight;
  }

  /** The bindings of the steps of an operation; those of a block come once. */
  boundBy(operation: BulkOperation): readonly (readonly Binding[])[] {
    return [...this.parts()].flatMap((part) => (part.operation === operation ? [part.bindings] : []));
  }

  /** Whether no step waits for another one. */
  areIndependent(): boolean {
    for (const part of this.parts()) {
      if (part instanceof RowBlock) continue;
      if ((part.after ?? []).length > 0 || part.bindings.some(({ object }) => object !== undefined)) return false;
    }
    return true;
  }

  /** Whether these are rows that follow each other, and their objects do, too. */
  areRows(ids: readonly number[]): boolean {
    const [first = 0] = ids;
    const last = first + ids.length - 1;
    return (
      ids.every((id, at) => id === first + at && this.#parts[id] instanceof RowBlock) &&
      (this.objectOf(last) ?? 0) - (this.objectOf(first) ?? 0) === ids.length - 1
    );
  }
}

/** The row of a block that is a step. */
export function rowOf({ firstStep = 0 }: RowBlock, step: number): number {
  return step - firstStep;
}
