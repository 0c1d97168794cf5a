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
    if (this.#length === this.#values.length) {
      const larger = new Uint32Array(this.#length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#length] = value;
    this.#length += 1;
  }

  set(position: number, value: number): void {
    this.#values[position] = value;
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

  push(value: Value): void {
    this.#codes.push(this.#values.indexOf(value));
  }

  set(position: number, value: Value): void {
    this.#codes.set(position, this.#values.indexOf(value));
  }
}
