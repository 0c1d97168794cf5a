import type { ReportedObject } from "../../runs/outcome.ts";
import { RowBlock } from "./row-block.ts";

/** The reported objects of a run, each by itself or in a block of rows. */
export class ObjectList {
  /** By position: the object, or the block that it is in. */
  readonly #parts: (ReportedObject | RowBlock)[] = [];

  get length(): number {
    return this.#parts.length;
  }

  /** Adds an object; gives its position. */
  add(object: ReportedObject): number {
    return this.#parts.push(object) - 1;
  }

  /** Adds the next row of a block; gives its position. */
  addRow(block: RowBlock): number {
    return this.#parts.push(block) - 1;
  }

  /** Adds fields to an object; the rows of a block cannot be amended. */
  amend(object: number, more: Partial<ReportedObject>): void {
    const part = this.#parts[object];
    if (part === undefined || (part instanceof RowBlock && part.firstStep !== undefined)) return;
    const about = part instanceof RowBlock ? part.objectOf(object - part.firstObject) : part;
    this.#parts[object] = { ...about, ...more };
  }

  /** Replaces rows by the same rows with their planned steps. */
  setRows(block: RowBlock): void {
    this.#parts.fill(block, block.firstObject, block.firstObject + block.length);
  }

  at(object: number): ReportedObject | undefined {
    const part = this.#parts[object];
    return part instanceof RowBlock ? part.objectOf(object - part.firstObject) : part;
  }

  /** The position of an object in what the caller gave; undefined where there is no such object. */
  indexOf(object: number): number | undefined {
    const part = this.#parts[object];
    return part instanceof RowBlock ? part.placeOf(object - part.firstObject).index : part?.index;
  }

  /** The ID that the caller gave. */
  idOf(object: number): string | undefined {
    const part = this.#parts[object];
    return part instanceof RowBlock ? undefined : part?._id;
  }

  /** The block that an object is in, and its row there; undefined where it is in none. */
  rowAt(object: number): { readonly block: RowBlock; readonly row: number } | undefined {
    const part = this.#parts[object];
    return part instanceof RowBlock ? { block: part, row: object - part.firstObject } : undefined;
  }
}
