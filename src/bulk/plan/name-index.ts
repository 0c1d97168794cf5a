import { Numbers } from "../lists.ts";

const OFFSET_BASIS = 0x811c9dc5;
const PRIME = 0x01000193;
const FIRST_SLOTS = 1024;

/**
 * Finds names that were seen before by their hashes, without keeping them: four to twelve bytes a name. Entries are
 * numbered in the order in which they were added.
 */
export class NameIndex {
  readonly #hashes = new Numbers();
  /** Where an entry lies: its number and 1; 0 where there is none. */
  #slots = new Uint32Array(FIRST_SLOTS);
  /** What was looked for last is often added next. */
  #last = "";
  #lastHash = hashOf("");

  /** The entry of a name; `isNamed` says whether an entry has it, since different names can have one hash. */
  find(name: string, isNamed: (entry: number) => boolean): number | undefined {
    const hash = this.#hashOf(name);
    const mask = this.#slots.length - 1;
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const slot = this.#slots[at] ?? 0;
      if (slot === 0) return undefined;
      if (this.#hashes.at(slot - 1) === hash && isNamed(slot - 1)) return slot - 1;
    }
  }

  /** Adds the next entry. */
  add(name: string): void {
    const hash = this.#hashOf(name);
    this.#hashes.push(hash);
    if (this.#hashes.length * 2 > this.#slots.length) {
      this.#slots = new Uint32Array(this.#slots.length * 2);
      for (let entry = 0; entry < this.#hashes.length; entry += 1) this.#place(entry, this.#hashes.at(entry));
    } else this.#place(this.#hashes.length - 1, hash);
  }

  #hashOf(name: string): number {
    if (name !== this.#last) {
      this.#last = name;
      this.#lastHash = hashOf(name);
    }
    return this.#lastHash;
  }

  #place(entry: number, hash: number): void {
    const mask = this.#slots.length - 1;
    let at = hash & mask;
    while (this.#slots[at] !== 0) at = (at + 1) & mask;
    this.#slots[at] = entry + 1;
  }
}

/** FNV-1a over the code units of a text. */
function hashOf(text: string): number {
  let hash = OFFSET_BASIS;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), PRIME);
  return hash >>> 0;
}
