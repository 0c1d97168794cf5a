import { Numbers } from "./lists.ts";

const COMMA = ",".charCodeAt(0);
const CHUNK_BYTES = 262_144;
/** A UTF-16 code unit takes three bytes of UTF-8 at the most. */
const BYTES_PER_UNIT = 3;
const NOTHING = new Uint8Array(0);

/**
 * A list of texts, kept as UTF-8 outside of the JavaScript heap: a hundred thousand small ones cost little more than
 * their bytes. Texts must be well formed: a lone surrogate does not come back. A comma follows each, so that several in
 * a row are a list as they lie there.
 */
export class Texts {
  readonly #chunks: Buffer[] = [];
  #used = CHUNK_BYTES;
  readonly #chunk = new Numbers();
  readonly #start = new Numbers();
  readonly #size = new Numbers();

  get length(): number {
    return this.#size.length;
  }

  /** Adds a text; gives its position. */
  add(text: string): number {
    const most = text.length * BYTES_PER_UNIT;
    const chunk = this.#chunkFor((most > CHUNK_BYTES ? Buffer.byteLength(text, "utf8") : most) + 1);
    const size = chunk.write(text, this.#used, "utf8");
    this.#chunk.push(this.#chunks.length - 1);
    this.#start.push(this.#used);
    this.#size.push(size);
    this.#used += size;
    chunk[this.#used] = COMMA;
    this.#used += 1;
    return this.#size.length - 1;
  }

  /** The text at a position; empty where there is none. */
  at(position: number): string {
    const start = this.#start.at(position);
    return this.#chunks[this.#chunk.at(position)]?.toString("utf8", start, start + this.#size.at(position)) ?? "";
  }

  /** Bytes of UTF-8 of the text at a position. */
  size(position: number): number {
    return this.#size.at(position);
  }

  /** The text at a position, as it lies: it may not be changed. */
  bytesOf(position: number): Uint8Array {
    const start = this.#start.at(position);
    return this.#chunks[this.#chunk.at(position)]?.subarray(start, start + this.size(position)) ?? NOTHING;
  }

  /** The texts from one position on up to another, with commas between them, as they lie: they may not be changed. */
  listed(from: number, to: number): readonly Uint8Array[] {
    const pieces: Uint8Array[] = [];
    for (let first = from; first < to; ) {
      const last = this.#lastBeside(first, to);
      const end = this.#endOf(last) - (last + 1 === to ? 1 : 0);
      const chunk = this.#chunks[this.#chunk.at(first)];
      if (chunk !== undefined) pieces.push(chunk.subarray(this.#start.at(first), end));
      first = last + 1;
    }
    return pieces;
  }

  /** The last text before `to` that lies in the same chunk: chunks are filled one after the other. */
  #lastBeside(first: number, to: number): number {
    const chunk = this.#chunk.at(first);
    if (this.#chunk.at(to - 1) === chunk) return to - 1;
    let last = first;
    while (this.#chunk.at(last + 1) === chunk) last += 1;
    return last;
  }

  #endOf(position: number): number {
    return this.#start.at(position) + this.size(position) + 1;
  }

  #chunkFor(bytes: number): Buffer {
    const last = this.#chunks.at(-1);
    if (last !== undefined && this.#used + bytes <= last.length) return last;
    const chunk = Buffer.allocUnsafeSlow(Math.max(bytes, CHUNK_BYTES));
    this.#chunks.push(chunk);
    this.#used = 0;
    return chunk;
  }
}
