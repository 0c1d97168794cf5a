import { parseJson } from "../../platform/json.ts";
import type { ReportedObject } from "../../runs/outcome.ts";
import { type Binding, type RowItem, type RowsEntry, rowItem, type StepOf, type Weight } from "./entries.ts";

/** The position of a row: its index among the items or data rows, from 0, and its line in the file, from 1. */
interface RowOrigin {
  readonly index: number;
  readonly line?: number;
}

/** The rows of a block, in one buffer. Each list has one number for each row. */
interface WrittenRows {
  /** Returns the buffer. From `start` on, it has the rows as JSON in UTF-8, each with a comma after it. */
  readonly bytes: () => Buffer;
  readonly start: number;
  readonly ends: number[];
  readonly contextIds: number[];
  /** The line of each row. Empty if the rows are arguments of a call. */
  readonly lines: number[];
}

const ROWS_PER_ENTRY = 500;
const COMMA_BYTES = 1;

/** Consecutive new options without sub-options, stored as the bytes to send. So 100,000 of them need little memory. */
export class RowBlock {
  readonly operation = "addOptions";
  readonly bindings: readonly Binding[];
  /** The object of the first row. Those of the other rows follow it in order. */
  readonly firstObject: number;
  /** The step of the first row. Those of the other rows follow it in order. Undefined until the rows are planned. */
  readonly firstStep: number | undefined;
  readonly #targeting: string;
  readonly #firstIndex: number;
  readonly #rows: WrittenRows;

  constructor(
    targeting: string,
    first: { readonly object: number; readonly step: number | undefined; readonly index: number },
    rows: WrittenRows,
  ) {
    this.bindings = [{ field: "targeting", id: targeting }];
    this.firstObject = first.object;
    this.firstStep = first.step;
    this.#targeting = targeting;
    this.#firstIndex = first.index;
    this.#rows = rows;
  }

  get length(): number {
    return this.#rows.ends.length;
  }

  /** Returns whether a row can be appended: same targeting, and the next index, object and step. */
  isFollowedBy(targeting: string, { index, line }: RowOrigin, object: number, step: number | undefined): boolean {
    const { length } = this;
    return (
      targeting === this.#targeting &&
      object === this.firstObject + length &&
      index === this.#firstIndex + length &&
      (line === undefined) === (this.#rows.lines.length === 0) &&
      step === (this.firstStep === undefined ? undefined : this.firstStep + length)
    );
  }

  /** Returns the rows from `from` to `to` (exclusive) as a planned block, to which no row may be added. */
  planned(from: number, to: number, firstStep: number): RowBlock {
    const { bytes, ends, contextIds, lines } = this.#rows;
    const first = { object: this.firstObject + from, step: firstStep, index: this.#firstIndex + from };
    if (from === 0 && to === this.length) return new RowBlock(this.#targeting, first, this.#rows);
    return new RowBlock(this.#targeting, first, {
      bytes,
      start: this.#startOf(from),
      ends: ends.slice(from, to),
      contextIds: contextIds.slice(from, to),
      lines: lines.slice(from, to),
    });
  }

  /** Returns rows as JSON in UTF-8, separated by commas. The caller must not change these bytes. */
  items(from: number, to: number): Uint8Array {
    return this.#rows.bytes().subarray(this.#startOf(from), this.#rows.ends[to - 1]);
  }

  weightOf(row: number): Weight {
    const bytes = (this.#rows.ends[row] ?? 0) - this.#startOf(row) + COMMA_BYTES;
    return { items: 1, options: 1, groupItems: 0, contextIds: this.#rows.contextIds[row] ?? 0, bytes };
  }

  placeOf(row: number): RowOrigin {
    const line = this.#rows.lines[row];
    return { index: this.#firstIndex + row, ...(line !== undefined && { line }) };
  }

  objectOf(row: number): ReportedObject {
    return { ...this.placeOf(row), name: this.itemOf(row).name };
  }

  itemOf(row: number): StepOf<"addOptions">["item"] {
    const text = this.#rows.bytes().toString("utf8", this.#startOf(row), this.#rows.ends[row]);
    const { targeting: _, ...item } = rowItem.parse(parseJson(text));
    return item;
  }

  /** Returns the step of a single row. Throws a RangeError if the rows were not planned. */
  open(row: number): StepOf<"addOptions"> {
    if (this.firstStep === undefined) throw new RangeError("the rows were not planned, so they have no steps");
    const { operation, bindings } = this;
    const objects = [this.firstObject + row];
    return {
      id: this.firstStep + row,
      operation,
      objects,
      item: this.itemOf(row),
      bindings,
      weight: this.weightOf(row),
    };
  }

  *steps(): Generator<StepOf<"addOptions">> {
    for (let row = 0; row < this.length; row += 1) yield this.open(row);
  }

  /** Returns the journal entries of the block. Rows on consecutive lines share an entry. */
  *entries(): Generator<RowsEntry> {
    for (let from = 0; from < this.length; ) {
      const place = this.placeOf(from);
      let to = from + 1;
      const isNext = (): boolean => place.line === undefined || this.#rows.lines[to] === place.line + to - from;
      while (to < this.length && to - from < ROWS_PER_ENTRY && isNext()) to += 1;
      yield { t: "rows", ...place, items: this.items(from, to) };
      from = to;
    }
  }

  #startOf(row: number): number {
    return row === 0 ? this.#rows.start : (this.#rows.ends[row - 1] ?? 0) + COMMA_BYTES;
  }
}

export interface RowRange {
  readonly block: RowBlock;
  readonly from: number;
  readonly to: number;
}

const CHUNK_BYTES = 262_144;
/** How many UTF-16 code units are encoded at once. Encoding row by row takes three times as long. */
const GATHERED_UNITS = 16_384;

/** Writes rows into blocks. All rows of a block are in one buffer. */
export class RowWriter {
  #chunk = new TextChunk(0);
  #last: { readonly block: RowBlock; readonly rows: WrittenRows } | undefined;
  /** The last row's targeting with its JSON, which the next row with the same targeting uses again. */
  #head: { readonly targeting: string; readonly json: Json } | undefined;

  /** Adds a row as `object` and, if it is planned, as `step`. Returns the block that has the row. */
  add({ targeting, name, contexts = [] }: RowItem, place: RowOrigin, object: number, step?: number): RowBlock {
    if (this.#head?.targeting !== targeting) this.#head = { targeting, json: jsonOf(targeting) };
    const head = this.#head.json;
    const called = jsonOf(name);
    let text = `{"targeting":${head.text},"name":${called.text}`;
    let bytes = '{"targeting":,"name":},'.length + head.bytes + called.bytes;
    for (const [at, contextId] of contexts.entries()) {
      const listed = jsonOf(contextId);
      text += `${at === 0 ? ',"contexts":[' : ","}${listed.text}`;
      bytes += (at === 0 ? ',"contexts":[]'.length : COMMA_BYTES) + listed.bytes;
    }
    text += contexts.length > 0 ? "]}," : "},";
    const hasRoom = this.#chunk.hasRoom(bytes);
    if (!hasRoom) this.#chunk = new TextChunk(Math.max(bytes, CHUNK_BYTES));
    const last = hasRoom ? this.#last : undefined;
    const isNext = last?.block.isFollowedBy(targeting, place, object, step) === true;
    const { block, rows } = isNext ? last : this.#begin(targeting, place, object, step);
    rows.ends.push(this.#chunk.add(text, bytes) - COMMA_BYTES);
    rows.contextIds.push(contexts.length);
    if (place.line !== undefined) rows.lines.push(place.line);
    return block;
  }

  #begin(targeting: string, { index }: RowOrigin, object: number, step: number | undefined) {
    const chunk = this.#chunk;
    const bytes = (): Buffer => chunk.bytes();
    const rows: WrittenRows = { bytes, start: chunk.used, ends: [], contextIds: [], lines: [] };
    this.#last = { block: new RowBlock(targeting, { object, step, index }, rows), rows };
    return this.#last;
  }
}

class TextChunk {
  readonly #bytes: Buffer;
  #gathered = "";
  #written = 0;
  /** The number of bytes in use, including those of text that is not encoded yet. */
  used = 0;

  constructor(bytes: number) {
    this.#bytes = Buffer.allocUnsafeSlow(bytes);
  }

  hasRoom(bytes: number): boolean {
    return this.used + bytes <= this.#bytes.length;
  }

  add(text: string, bytes: number): number {
    this.#gathered += text;
    this.used += bytes;
    if (this.#gathered.length >= GATHERED_UNITS) this.bytes();
    return this.used;
  }

  bytes(): Buffer {
    if (this.#gathered !== "") this.#written += this.#bytes.write(this.#gathered, this.#written);
    this.#gathered = "";
    return this.#bytes;
  }
}

interface Json {
  readonly text: string;
  readonly bytes: number;
}

/** Returns a text as JSON, with its size in bytes. One loop counts the bytes and looks for characters to escape. */
function jsonOf(text: string): Json {
  let bytes = 2;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    const isSurrogate = unit >= 0xd800 && unit <= 0xdfff;
    if (unit < 0x20 || unit === 0x22 || unit === 0x5c || isSurrogate) {
      const json = JSON.stringify(text);
      return { text: json, bytes: Buffer.byteLength(json) };
    }
    bytes += unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3;
  }
  return { text: `"${text}"`, bytes };
}
