import { setImmediate as nextTurn } from "node:timers/promises";
import type * as z from "zod";
import { type JsonFault, jsonFault } from "../platform/exact-json.ts";
import { FileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { isJsonObject, parseJson } from "../platform/json.ts";
import { MAX_JOINED, ownReason, type Reason, type ReportedObject, type RowCounts } from "../runs/outcome.ts";
import { type Header, REASON_COLUMN, type ValidColumns } from "./columns.ts";
import type { TextCells } from "./damage.ts";
import { type ReadableFile, withDetectedForm } from "./detected-form.ts";
import type { Encoding, InputFile, SheetForm } from "./input-file.ts";
import type { SheetHeader } from "./sheet-rows.ts";
import { textOf } from "./text.ts";

export interface OpenedFile {
  readonly file: InputFile;
  readonly bytes: ByteSource;
  readonly size: number;
}

/**
 * The content of a row. Rows with the same `key` become one item. If one of them is invalid, the whole item fails.
 * `group`: the group that an invalid row names. The option with that name still becomes a group. `readable`: what could
 * be read of an invalid row. The other rows of its item may leave out what it says.
 */
export type RowContent<Item> =
  | ReadableContent<Item>
  | {
      readonly reason: Reason;
      readonly key?: string | undefined;
      readonly group?: string | undefined;
      readonly readable?: ReadableContent<Item> | undefined;
    };

export interface ReadableContent<Item> {
  readonly item: Item;
  readonly key?: string | undefined;
}

/** How the cells of a sheet are read. */
export interface MoreOfSheet extends SheetForm {
  /** What rows may contain in the column of the targeting. Absent if they may name any targeting. */
  readonly targeting?: readonly string[] | undefined;
}

export function moreOf({ sheet, targeting }: Pick<InputFile, "sheet" | "targeting">): MoreOfSheet {
  return { ...sheet, targeting };
}

export interface RowShape<Item> extends ValidColumns {
  /**
   * Returns a function that reads rows of a sheet, in their order. `isContinued`: the row's name and ID were blank, and
   * are those of the row above. Throws a FileError if columns of the sheet exclude each other.
   */
  readonly fromCells: (
    header: Header,
    more: MoreOfSheet,
  ) => (cells: readonly string[], asText?: TextCells, isContinued?: boolean) => RowContent<Item>;
  readonly fromValue: (value: unknown) => RowContent<Item>;
  readonly merge: (item: Item, further: Item) => Reason | undefined;
  /**
   * Returns whether the rows of an item replace values together, so that all of them fail if one contradicts another.
   */
  readonly isReplacement?: (item: Item) => boolean;
  readonly rest: (item: Item, failed: readonly FailedObject[]) => readonly RestRow[];
}

export interface FailedObject {
  readonly about: ReportedObject;
  readonly reason: Reason;
}

export interface RestRow {
  readonly row: object;
  readonly reason: Reason;
}

export interface Row<Item> {
  readonly content: RowContent<Item>;
  readonly index: number;
  readonly line?: number;
  /** How many empty rows were skipped before this row. For the last row, those after it count as well. Absent for 0. */
  readonly skipped?: number;
}

/** A row of a file with its original text, which is written to the file of failed rows. */
export interface FileRow<Item> extends Row<Item> {
  /** The cells of a row of a sheet, or the text of a row of JSON. */
  readonly raw: readonly string[] | string;
}

/** Yields the rows of a file, also invalid ones. Throws a FileError if the file, or the rest of it, cannot be read. */
export async function* rowsOf<Item>(
  bytes: ByteSource,
  file: ReadableFile,
  shape: RowShape<Item>,
  onHeader: (header: SheetHeader) => void = () => {},
): AsyncGenerator<readonly FileRow<Item>[]> {
  const { format, encoding } = file;
  if (format === "csv" || format === "xlsx")
    yield* sheetFileRows(bytes, await withDetectedForm(bytes, file, shape), shape, onHeader);
  else yield* jsonRows(format === "json" ? jsonArrayTexts(bytes, encoding) : ndjsonTexts(bytes, encoding), shape);
}

async function* sheetFileRows<Item>(
  bytes: ByteSource,
  file: ReadableFile,
  shape: RowShape<Item>,
  onHeader: (header: SheetHeader) => void,
): AsyncGenerator<readonly FileRow<Item>[]> {
  let read: ReturnType<typeof shape.fromCells> | undefined;
  let columns = 0;
  let index = 0;
  const { sheetRows } = await import("./sheet-rows.ts");
  const rows = sheetRows({ bytes, file, shape }, (header) => {
    onHeader(header);
    columns = header.cells.length;
    read = shape.fromCells(header, moreOf(file));
  });
  for await (const batch of rows) {
    yield batch.map(({ line, cells, raw, skipped, asText, isContinued }) => {
      const tooMany = cells.length > columns && cells.slice(columns).some((cell) => cell !== "");
      const found = read?.(cells, asText, isContinued);
      const content = tooMany || found === undefined ? tooManyCells(columns, found) : found;
      return { content, index: index++, line, raw, ...(skipped !== undefined && { skipped }) };
    });
  }
}

function tooManyCells<Item>(columns: number, found: RowContent<Item> | undefined): RowContent<Item> {
  const reason = invalidRow("tooManyCells", { columns });
  if (found === undefined || "reason" in found) return { ...found, ...reason };
  return { ...reason, group: groupIn(found.item), readable: found };
}

/** Returns the name in the field `parentName` of a row; undefined if it has none. */
export function groupIn(value: unknown): string | undefined {
  const has = typeof value === "object" && value !== null && "parentName" in value;
  return has && typeof value.parentName === "string" ? value.parentName : undefined;
}

async function* jsonRows<Item>(
  texts: AsyncIterable<readonly JsonText[]>,
  shape: RowShape<Item>,
): AsyncGenerator<readonly FileRow<Item>[]> {
  let index = 0;
  let isLineEach: boolean | undefined;
  for await (const batch of texts) {
    // Line numbers are reported only if each of the first elements of the JSON begins on a line of its own. Otherwise
    // they would not tell which element is meant.
    isLineEach ??= batch.every(({ line }, at) => line !== batch[at - 1]?.line);
    const hasLines = isLineEach;
    const rows = batch.filter(({ text }) => !(index === 0 && isHead(text)));
    yield rows.map(({ line, text }) => {
      return { content: jsonRow(text, shape), index: index++, ...(hasLines && { line }), raw: text };
    });
  }
}

/** Returns whether a line is the head of an exported targeting, which describes the file and is not an option. */
function isHead(text: string): boolean {
  const value = text.startsWith('{"version":') ? parseJson(text) : undefined;
  return typeof value === "object" && value !== null && "version" in value && "targeting" in value;
}

function jsonRow<Item>(text: string, shape: RowShape<Item>): RowContent<Item> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return invalidRow("notJson", {});
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return invalidRow("noObject", {});
  const fault = jsonFault(text, value);
  if (fault !== undefined) return { ...invalidJson(fault), group: groupIn(value) };
  if (!(REASON_COLUMN in value)) return shape.fromValue(value);
  const { [REASON_COLUMN]: _, ...row } = value;
  const unread = unreadLine(value);
  return unread === undefined ? shape.fromValue(row) : jsonRow(unread, shape);
}

/** Returns the reason why a row is invalid: parsing its JSON would change a number, or lose a repeated field. */
export function invalidJson(fault: JsonFault): { readonly reason: Reason } {
  return "twice" in fault
    ? invalidRow("fieldTwice", { field: fault.twice.slice(0, 40) })
    : invalidRow("inexactNumber", { value: fault.number.slice(0, 40) });
}

/**
 * Returns the original text of a line that could not be read. The file of failed rows has it in the field `row`.
 * Undefined for other rows.
 */
function unreadLine(row: unknown): string | undefined {
  if (!isJsonObject(row) || !(REASON_COLUMN in row)) return undefined;
  const { [REASON_COLUMN]: _, ...others } = row;
  return typeof others.row === "string" && Object.keys(others).length === 1 ? others.row : undefined;
}

/** Returns an invalid row as the caller wrote it first, without the form of a file of failed rows. */
export function originalText(text: string): string {
  return unreadLine(parseJson(text)) ?? text;
}

/** Returns the reason for an invalid row. `problem` is a code that `answers/` turns into a sentence. */
export function invalidRow(problem: string, detail: Readonly<Record<string, unknown>>): { readonly reason: Reason } {
  return { reason: ownReason("INVALID_ROW", { problem, ...detail }) };
}

/** An item, or why it is invalid, with its position in the input. `line` is set if the item has a line in a file. */
export type GivenItem<Item> = {
  readonly index: number;
  readonly line?: number;
  /** How many further rows belong to this item, and how many empty rows were skipped before it. */
  readonly merged?: number;
  /**
   * The lines of the further rows. If there are more than MAX_JOINED, only the first MAX_JOINED + 1, which shows that
   * they are too many to be listed.
   */
  readonly joined?: readonly number[];
  readonly skipped?: number;
} & ({ readonly item: Item } | { readonly reason: Reason });

type Position = Pick<Row<unknown>, "index" | "line">;

export function placeOf({ index, line }: Position) {
  return line === undefined ? { index } : { index, line };
}

const ITEMS_AT_ONCE = 2000;

/** Yields items as rows. After every ITEMS_AT_ONCE items, other tool calls can run. */
export async function* rowsOfItems<Item>(items: readonly Item[]): AsyncGenerator<readonly Row<Item>[]> {
  for (let from = 0; from < items.length; from += ITEMS_AT_ONCE) {
    if (from > 0) await nextTurn();
    const part = items.slice(from, from + ITEMS_AT_ONCE);
    yield part.map((item, at) => ({ index: from + at, content: { item } }));
  }
}

export function givenItems<Item>(items: readonly Item[]): readonly GivenItem<Item>[] {
  return items.map((item, index) => ({ index, item }));
}

/**
 * Reads the items of a file. Rows with the same key become one item, with the index of their first row. If one of the
 * rows is invalid, the whole item fails.
 */
export async function itemsIn<Item>(
  bytes: ByteSource,
  file: InputFile,
  shape: RowShape<Item>,
): Promise<readonly GivenItem<Item>[]> {
  const given: GivenItem<Item>[] = [];
  const merged = new Map<number, { merged: number; skipped: number; readonly joined: number[] }>();
  const byKey = new Map<string, number>();
  const spoilt = new Map<string, Position>();
  for await (const rows of rowsOf(bytes, file, shape)) {
    for (const row of rows) {
      const { content, skipped } = row;
      const { key } = content;
      const place = { ...placeOf(row), ...(skipped !== undefined && { skipped }) };
      if ("reason" in content) {
        given.push({ ...place, reason: content.reason });
        if (key !== undefined) spoilt.set(key, row);
        continue;
      }
      const owner = key === undefined ? -1 : (byKey.get(key) ?? -1);
      const before = given[owner];
      if (before === undefined || "reason" in before) {
        if (key !== undefined) byKey.set(key, given.length);
        given.push({ ...place, item: content.item });
        continue;
      }
      const clash = shape.merge(before.item, content.item);
      if (clash !== undefined) {
        given.push({ ...place, reason: clash });
        if (key !== undefined && shape.isReplacement?.(content.item)) spoilt.set(key, row);
      } else {
        const sums = merged.get(owner) ?? { merged: 0, skipped: before.skipped ?? 0, joined: [] };
        merged.set(owner, sums);
        sums.merged += 1;
        sums.skipped += skipped ?? 0;
        if (row.line !== undefined && sums.joined.length <= MAX_JOINED) sums.joined.push(row.line);
      }
    }
  }
  for (const [key, place] of spoilt) {
    const position = byKey.get(key) ?? -1;
    const whole = given[position];
    if (whole === undefined) continue;
    const reason = ownReason("INVALID_ROW", { problem: "spoilt", ...placeOf(place) });
    given[position] = { ...placeOf(whole), ...(whole.skipped && { skipped: whole.skipped }), reason };
  }
  for (const [position, { skipped, ...further }] of merged) {
    const whole = given[position];
    if (whole !== undefined) given[position] = { ...whole, ...further, ...(skipped > 0 && { skipped }) };
  }
  return given;
}

export function rowCounts(given: readonly GivenItem<unknown>[]): RowCounts {
  const sum = (field: "merged" | "skipped"): number => given.reduce((total, one) => total + (one[field] ?? 0), 0);
  const merged = sum("merged");
  const joined = given.flatMap(({ joined: lines = [], line = 0 }) => lines.map((one) => ({ line: one, of: line })));
  const isListed = joined.length > 0 && joined.length <= MAX_JOINED;
  return { read: given.length + merged, merged, skipped: sum("skipped"), ...(isListed && { joined }) };
}

export function fieldProblem(issues: readonly z.core.$ZodIssue[], schema: z.ZodObject, row: unknown): Reason {
  const [issue] = issues;
  if (issue?.code === "unrecognized_keys") {
    const valid = issue.path.length === 0 ? Object.keys(schema.shape) : undefined;
    return invalidRow("unknownField", { field: issue.keys[0], ...(valid && { valid }) }).reason;
  }
  const isMissing = issue?.path.reduce(fieldOf, row) === undefined;
  return invalidRow(isMissing ? "fieldMissing" : "fieldType", {
    field: issue?.path.join(".") ?? "",
    expected: expectedBy(issue),
  }).reason;
}

function fieldOf(holder: unknown, field: PropertyKey): unknown {
  return typeof holder === "object" && holder !== null ? Reflect.get(holder, field) : undefined;
}

function expectedBy(issue: z.core.$ZodIssue | undefined): string {
  if (issue?.code === "invalid_value") return issue.values.map((value) => JSON.stringify(value)).join(" or ");
  return issue?.code === "invalid_type" ? issue.expected : "another form";
}

interface JsonText {
  readonly line: number;
  readonly text: string;
}

export async function* ndjsonTexts(bytes: ByteSource, encoding: Encoding): AsyncGenerator<readonly JsonText[]> {
  let line = 1;
  // The parts of a line are joined only when it ends. Otherwise a long line would be searched again after each part.
  let begun: string[] = [];
  const takeLines = (text: string): readonly JsonText[] => {
    const [first = "", ...others] = text.split("\n");
    begun.push(first);
    if (others.length === 0) return [];
    const lines = [begun.join(""), ...others];
    begun = [lines.pop() ?? ""];
    return lines.flatMap((one) => textAt(line++, one));
  };
  for await (const chunk of textOf(bytes, encoding)) yield takeLines(chunk);
  yield takeLines("\n");
}

function textAt(line: number, text: string): readonly JsonText[] {
  const trimmed = text.trim();
  return trimmed === "" ? [] : [{ line, text: trimmed }];
}

const NOT_AN_ARRAY =
  "A .json file must contain one array of rows: [{...}, {...}]. If each line is one object, name the file .ndjson.";

/**
 * Yields the elements of a JSON array as texts, without parsing them. Throws a FileError if the file is not exactly
 * one array.
 */
async function* jsonArrayTexts(bytes: ByteSource, encoding: Encoding): AsyncGenerator<readonly JsonText[]> {
  const splitter = new ArraySplitter();
  for await (const chunk of textOf(bytes, encoding)) yield splitter.take(chunk);
  splitter.end();
}

class ArraySplitter {
  /** How many brackets are open: 0 before the array, 1 between its elements, -1 after it. */
  #depth = 0;
  #inText = false;
  #escaped = false;
  #line = 1;
  #elementLine = 1;
  #element = "";
  #begun = false;
  #isEmpty = true;

  take(chunk: string): readonly JsonText[] {
    const found: JsonText[] = [];
    let from = 0;
    const finish = (end: number): void => {
      const text = (this.#element + chunk.slice(from, end)).trim();
      this.#element = "";
      this.#begun = false;
      from = end + 1;
      if (text !== "") found.push({ line: this.#elementLine, text });
    };
    for (let at = 0; at < chunk.length; at += 1) {
      const character = chunk.charAt(at);
      if (character === "\n") this.#line += 1;
      if (this.#inText) this.#insideText(character);
      else if (this.#depth <= 0) from = this.#outside(character, at);
      else {
        if (!this.#begun && /\S/.test(character)) {
          this.#begun = true;
          this.#elementLine = this.#line;
        }
        if (character === '"') this.#inText = true;
        else if (character === "[" || character === "{") this.#depth += 1;
        else if (character === "," && this.#depth === 1) finish(at);
        else if (character === "]" && this.#depth === 1) {
          finish(at);
          this.#depth = -1;
        } else if (character === "]" || character === "}") this.#depth -= 1;
      }
    }
    if (this.#depth > 0) this.#element += chunk.slice(from);
    return found;
  }

  end(): void {
    if (this.#isEmpty) throw new FileError("the file is empty", NOT_AN_ARRAY);
    if (this.#depth >= 0)
      throw new FileError(`the JSON array of the file is not closed (line ${this.#line})`, NOT_AN_ARRAY);
  }

  #insideText(character: string): void {
    if (this.#escaped) this.#escaped = false;
    else if (character === "\\") this.#escaped = true;
    else if (character === '"') this.#inText = false;
  }

  /** Checks a character outside the array: white space, or the bracket that opens it. Returns the next position. */
  #outside(character: string, at: number): number {
    if (/\s/.test(character)) return at + 1;
    this.#isEmpty = false;
    if (this.#depth === 0 && character === "[") this.#depth = 1;
    else {
      throw new FileError(`the file is not one JSON array: line ${this.#line} has text outside of it`, NOT_AN_ARRAY);
    }
    return at + 1;
  }
}
