const OFFSET_BASIS = 0x811c9dc5;
const PRIME = 0x01000193;

/**
 * Finds rows by their names without keeping these: a name that was cut out of a file keeps the text around it in
 * memory, and with the names of a large file kept, an import takes a fifth more memory.
 */
export class RowNames {
  /** By the hash of its name: an object. */
  readonly #byHash = new Map<number, number>();
  /** Objects whose names have the hash of another name. */
  readonly #others = new Map<string, number>();
  readonly #nameOf: (object: number) => string | undefined;
  /** A name is looked up before it is added. */
  #last = { name: "", hash: hashOf("") };

  constructor(nameOf: (object: number) => string | undefined) {
    this.#nameOf = nameOf;
  }

  /** The object of a name. */
  get(name: string): number | undefined {
    const object = this.#byHash.get(this.#hash(name));
    return object === undefined || this.#nameOf(object) === name ? object : this.#others.get(name);
  }

  /** Adds a name that was not there before. */
  add(name: string, object: number): void {
    const hash = this.#hash(name);
    if (this.#byHash.has(hash)) this.#others.set(name, object);
    else this.#byHash.set(hash, object);
  }

  #hash(name: string): number {
    if (this.#last.name !== name) this.#last = { name, hash: hashOf(name) };
    return this.#last.hash;
  }
}

/** FNV-1a over the code units of a text, of which 30 bits are kept: V8 needs no memory of its own for such a number. */
function hashOf(text: string): number {
  let hash = OFFSET_BASIS;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), PRIME);
  return hash >>> 2;
}
