/** A list of whole numbers from 0 to 2^32 - 1 that takes four bytes for each. */
export class Numbers {
  #values = new Uint32Array(64);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The number at a position; 0 where there is none. */
  at(position: number): number {
    return position < this.#length ? (this.#values[position] ?? 0) : 0;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) this.#reserve(1);
    this.#values[this.#length] = value;
    this.#length += 1;
  }

  set(position: number, value: number): void {
    this.#values[position] = value;
  }

  /** Adds a number so many times. */
  fill(count: number, value: number): void {
    this.#reserve(count);
    this.#values.fill(value, this.#length, this.#length + count);
    this.#length += count;
  }

  /** Sets so many numbers from a position of the list, or its end, on: each is one more than the one before. */
  countUp(position: number, count: number, from: number): void {
    this.#reserve(position + count - this.#length);
    for (let at = 0; at < count; at += 1) this.#values[position + at] = from + at;
    this.#length = Math.max(this.#length, position + count);
  }

  /** Adds the numbers of another list. */
  append(other: Numbers): void {
    this.#reserve(other.length);
    this.#values.set(other.#values.subarray(0, other.length), this.#length);
    this.#length += other.length;
  }

  /** All numbers, as they lie: they may not be changed. */
  all(): Uint32Array {
    return this.#values.subarray(0, this.#length);
  }

  /** The numbers at some positions. */
  pick(positions: readonly number[]): Uint32Array {
    return Uint32Array.from(positions, (position) => this.at(position));
  }

  /** A part of the list. */
  slice(from: number, to: number): Numbers {
    const part = new Numbers();
    part.#values = this.#values.slice(from, Math.min(to, this.#length));
    part.#length = part.#values.length;
    return part;
  }

  /** Where a number stands next from a position on; -1 where it does not. */
  indexOf(value: number, from: number): number {
    const at = this.#values.indexOf(value, from);
    return at < this.#length ? at : -1;
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#values.length) return;
    const larger = new Uint32Array(Math.max(this.#length + count, this.#values.length * 2));
    larger.set(this.#values);
    this.#values = larger;
  }
}

/** A list of values out of few, which takes four bytes for each. */
export class Codes<Value extends string> {
  readonly #values: readonly Value[];
  readonly #codes = new Numbers();

  constructor(values: readonly Value[]) {
    this.#values = values;
  }

  get length(): number {
    return this.#codes.length;
  }

  /** The value at a position; undefined where there is none. */
  at(position: number): Value | undefined {
    return position < this.#codes.length ? this.#values[this.#codes.at(position)] : undefined;
  }

  /** Adds a value so many times. */
  fill(count: number, value: Value): void {
    this.#codes.fill(count, this.#values.indexOf(value));
  }

  /** Where a value stands next from a position on; -1 where it does not. */
  indexOf(value: Value, from: number): number {
    return this.#codes.indexOf(this.#values.indexOf(value), from);
  }

  set(position: number, value: Value): void {
    this.#codes.set(position, this.#values.indexOf(value));
  }
}
