import { Numbers } from "./lists.ts";
import type { Texts } from "./texts.ts";
import type { ReportedObject } from "./work.ts";

/** A list of objects that reads like an array. */
export interface ObjectList {
  readonly length: number;
  at(object: number): ReportedObject | undefined;
}

/** Where a name stands in the texts, as one number: in none, in a text that is the name, or in an item that has it. */
const NAME = { none: 0, text: 1, item: 2 } as const;

/** What few objects have. */
type Further = Pick<ReportedObject, "child" | "grandchild" | "name" | "_id">;

/**
 * The reported objects of a run. A row of a file takes twelve bytes: where it stands, and in which item its name is.
 */
export class ObjectTable implements ObjectList {
  readonly #texts: Texts;
  readonly #index = new Numbers();
  /** 0 where it has no line. */
  readonly #line = new Numbers();
  readonly #name = new Numbers();
  readonly #further = new Map<number, Further>();

  constructor(texts: Texts) {
    this.#texts = texts;
  }

  get length(): number {
    return this.#index.length;
  }

  /** Adds an object; gives its position. */
  add({ index, line = 0, ...further }: ReportedObject): number {
    const { name, ...others } = further;
    const isPlain = name?.isWellFormed() === true;
    const object = this.#add(index, line, isPlain ? this.#texts.add(name) * 3 + NAME.text : NAME.none);
    const kept = isPlain ? others : further;
    if (Object.keys(kept).length > 0) this.#further.set(object, kept);
    return object;
  }

  /** Adds an object whose name stands in an item, which is the text at the position `item`; gives its position. */
  addRow(place: { readonly index: number; readonly line?: number }, item: number): number {
    return this.#add(place.index, place.line ?? 0, item * 3 + NAME.item);
  }

  at(object: number): ReportedObject | undefined {
    if (object >= this.length) return undefined;
    const name = this.#nameOf(object);
    return { ...this.placeOf(object), ...(name !== undefined && { name }), ...this.#further.get(object) };
  }

  /** Where an object stands in what the caller gave. */
  placeOf(object: number): { readonly index: number; readonly line?: number } {
    const line = this.#line.at(object);
    return { index: this.#index.at(object), ...(line > 0 && { line }) };
  }

  /** Whether so many objects from one on stand one row, and one line, after the other. */
  follow(first: number, count: number): boolean {
    const [index, line] = [this.#index.at(first), this.#line.at(first)];
    for (let rows = 1; rows < count; rows += 1) {
      if (this.#index.at(first + rows) !== index + rows) return false;
      if (this.#line.at(first + rows) !== (line === 0 ? 0 : line + rows)) return false;
    }
    return true;
  }

  /** The ID that the caller gave. */
  idOf(object: number): string | undefined {
    return this.#further.get(object)?._id;
  }

  /** The position of the item that an object is named by; undefined where it has a name of its own. */
  itemOf(object: number): number | undefined {
    const name = this.#name.at(object);
    return name % 3 === NAME.item ? Math.floor(name / 3) : undefined;
  }

  #add(index: number, line: number, name: number): number {
    this.#index.push(index);
    this.#line.push(line);
    this.#name.push(name);
    return this.#index.length - 1;
  }

  #nameOf(object: number): string | undefined {
    const name = this.#name.at(object);
    const text = Math.floor(name / 3);
    if (name % 3 === NAME.text) return this.#texts.at(text);
    return name % 3 === NAME.item ? nameIn(this.#texts.at(text)) : undefined;
  }
}

/** The name in the JSON text of an item. */
function nameIn(item: string): string | undefined {
  const value: unknown = JSON.parse(item);
  const isNamed = typeof value === "object" && value !== null && "name" in value;
  return isNamed && typeof value.name === "string" ? value.name : undefined;
}
