/** How many characters the IDs of the service have: ULIDs. */
const ID_LENGTH = 26;

/** The IDs of objects that follow each other, in one text. */
interface Block {
  readonly from: number;
  readonly count: number;
  readonly ids: string;
}

/** The IDs that objects were given. Those of an import are kept in long texts, which take half of what single ones do. */
export class GivenIds {
  readonly #single: (string | undefined)[] = [];
  /** By their first objects, in order. */
  readonly #blocks: Block[] = [];

  /** The ID of an object; undefined where it was given none. */
  at(object: number): string | undefined {
    const block = this.#blocks[this.#after(object) - 1];
    const at = object - (block?.from ?? 0);
    if (block === undefined || at >= block.count) return this.#single[object];
    return this.#single[object] ?? block.ids.slice(at * ID_LENGTH, (at + 1) * ID_LENGTH);
  }

  give(object: number, id: string): void {
    this.#single[object] = id;
  }

  /** Gives objects that follow each other their IDs; null is none. */
  giveAll(from: number, ids: readonly (string | null)[]): void {
    const end = from + ids.length;
    const isFree = this.#after(end - 1) === this.#after(from) && this.#endBefore(from) <= from;
    if (isFree && ids.every((id) => id?.length === ID_LENGTH)) {
      this.#single.fill(undefined, from, end);
      this.#blocks.splice(this.#after(from), 0, { from, count: ids.length, ids: ids.join("") });
      return;
    }
    for (const [at, id] of ids.entries()) if (id !== null) this.give(from + at, id);
  }

  /** Where the last block ends that begins at an object or before. */
  #endBefore(object: number): number {
    const { from, count } = this.#blocks[this.#after(object) - 1] ?? { from: 0, count: 0 };
    return from + count;
  }

  /** The position of the first block that begins after an object. */
  #after(object: number): number {
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#blocks[middle]?.from ?? 0) <= object) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
