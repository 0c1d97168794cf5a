import { FileError } from "../platform/files.ts";
import { thousands } from "../platform/text.ts";
import type { Encoding } from "./input-file.ts";

export interface SheetRecord {
  readonly line: number;
  readonly cells: readonly string[];
  readonly places?: readonly CellPlace[];
  /** Only in a workbook: the indexes of cells that are formatted as text and contain a date or a truth value. */
  readonly asText?: ReadonlySet<number>;
  /**
   * Only in a workbook, by index: the stored numbers of cells that show them otherwise, such as rounded or in percent.
   */
  readonly stored?: ReadonlyMap<number, string>;
  /** Only in a workbook: the indexes of cells with a formula that sums or counts. Absent if there is none. */
  readonly sums?: ReadonlySet<number>;
  /** Only in a workbook: whether the row is hidden, by hand or by a filter. */
  readonly isHidden?: true;
}

/** Matches a formula that sums or counts, in several languages. In text files, an apostrophe may precede it. */
export const SUM_FORMULA =
  /^'?=(?:SUM|SUBTOTAL|AGGREGATE|COUNTA?|SUMME|TEILERGEBNIS|AGGREGAT|ANZAHL2?|SOMME|SOUS\.TOTAL|SUMA|SUBTOTALES|SOMMA|SUBTOTALE|SOMA)\(/i;

/**
 * The position of a cell in a text. The first `line` and `column` are 1. `start` and `end` are offsets that include
 * quotation marks.
 */
export interface CellPlace {
  readonly line: number;
  readonly column: number;
  readonly start: number;
  readonly end: number;
}

export class QuoteFault extends Error {
  readonly line: number;
  readonly column: number;
  constructor(message: string, { line, column }: Pick<CellPlace, "line" | "column">) {
    super(message);
    this.line = line;
    this.column = column;
  }
}

export const QUOTES =
  "Put each cell that contains a separator, a quotation mark or a line break in quotation marks, " +
  'and double each quotation mark inside: "a ""b"", c".';

export interface Delimited {
  readonly delimiter: string;
  readonly withPlaces?: boolean;
  readonly maxBytes?: number | undefined;
}

/** The maximum number of cells in a record: the columns of a sheet in spreadsheet programs. */
const MAX_CELLS = 16_384;

/**
 * Splits a text into records. An empty line is a record with one empty cell. Quotation marks count only at the
 * beginning of a cell.
 */
export class DelimitedReader {
  readonly #options: Delimited;
  #begun: string[] = [];
  #begunLength = 0;
  /**
   * How long the unread text must be before it is searched for complete records: twice as long as after the last
   * search. If it were searched after each piece, a long record would be read from its start too often.
   */
  #lookAt = 0;
  #offset = 0;
  #line = 1;

  constructor(options: Delimited) {
    this.#options = options;
  }

  /**
   * Adds the next piece of the text. Returns the records that are now complete, or none until enough text was added.
   * Throws a QuoteFault or a FileError.
   */
  take(text: string): readonly SheetRecord[] {
    this.#begun.push(text);
    this.#begunLength += text.length;
    const { maxBytes = Number.POSITIVE_INFINITY } = this.#options;
    if (this.#begunLength < this.#lookAt && this.#begunLength <= maxBytes) return [];
    return this.#read(false);
  }

  /** Ends the text. Returns the records that `take` has not returned yet. Throws a QuoteFault or a FileError. */
  end(): readonly SheetRecord[] {
    return this.#begunLength === 0 ? [] : this.#read(true);
  }

  #read(isLast: boolean): readonly SheetRecord[] {
    const text = this.#begun.length === 1 ? (this.#begun[0] ?? "") : this.#begun.join("");
    const scan = new TextScan(text, { ...this.#options, line: this.#line, offset: this.#offset, isLast });
    const records: SheetRecord[] = [];
    let from = 0;
    while (from < text.length) {
      const record = scan.record();
      if (record === undefined) break;
      this.#checkLength(text, from, scan.at);
      records.push(record);
      this.#line = scan.line;
      from = scan.at;
    }
    const rest = text.slice(from);
    this.#checkLength(text, from, text.length);
    this.#offset += from;
    this.#begun = rest === "" ? [] : [rest];
    this.#begunLength = rest.length;
    this.#lookAt = 2 * rest.length;
    return records;
  }

  #checkLength(text: string, from: number, to: number): void {
    const { maxBytes = Number.POSITIVE_INFINITY } = this.#options;
    if ((to - from) * 3 <= maxBytes || Buffer.byteLength(text.slice(from, to)) <= maxBytes) return;
    throw tooLong(this.#line, maxBytes);
  }
}

interface ScanOptions extends Delimited {
  readonly line: number;
  readonly offset: number;
  readonly isLast: boolean;
}

class TextScan {
  at = 0;
  line: number;
  readonly #text: string;
  readonly #options: ScanOptions;
  #cells: string[] = [];
  #places: CellPlace[] = [];
  #lineStart = 0;
  readonly #next = { delimiter: -1, newline: -1 };

  constructor(text: string, options: ScanOptions) {
    this.#text = text;
    this.#options = options;
    this.line = options.line;
  }

  /** Returns the next record. Undefined if it is not complete yet. */
  record(): SheetRecord | undefined {
    const { delimiter, isLast, withPlaces } = this.#options;
    const { line } = this;
    this.#cells = [];
    this.#places = [];
    this.#lineStart = this.at;
    // Files that were joined have a byte order mark at the beginning of each.
    if (this.#text[this.at] === BYTE_ORDER_MARK) this.at += 1;
    for (;;) {
      const isWhole = this.#text.charCodeAt(this.at) === QUOTE ? this.#quoted() : this.#bare();
      if (!isWhole) return undefined;
      const next = this.#text.charAt(this.at);
      if (next === delimiter) {
        this.at += 1;
        if (this.at === this.#text.length && !isLast) return undefined;
        continue;
      }
      this.at += next === "" ? 0 : 1;
      this.line += 1;
      return { line, cells: this.#cells, ...(withPlaces === true && { places: this.#places }) };
    }
  }

  #find(what: "delimiter" | "newline"): number {
    if (this.#next[what] < this.at) {
      const found = this.#text.indexOf(what === "newline" ? "\n" : this.#options.delimiter, this.at);
      this.#next[what] = found < 0 ? this.#text.length : found;
    }
    return this.#next[what];
  }

  #bare(): boolean {
    const text = this.#text;
    const lineEnd = this.#find("newline");
    const found = this.#find("delimiter");
    const isCell = found < lineEnd;
    if (!isCell && lineEnd === text.length && !this.#options.isLast) return false;
    const end = isCell ? found : lineEnd;
    const isReturn = !isCell && end > this.at && text.charCodeAt(end - 1) === RETURN;
    this.#add(text.slice(this.at, isReturn ? end - 1 : end), this.at, isReturn ? end - 1 : end);
    this.at = end;
    return true;
  }

  #quoted(): boolean {
    const text = this.#text;
    const start = this.at;
    let closing = text.indexOf('"', start + 1);
    while (closing >= 0 && text.charCodeAt(closing + 1) === QUOTE) closing = text.indexOf('"', closing + 2);
    if (closing < 0 || (closing + 1 === text.length && !this.#options.isLast)) {
      if (!this.#options.isLast) return false;
      throw this.#fault(start, "the cell that begins here has no closing quotation mark");
    }
    this.at = closing + 1;
    if (text.charCodeAt(this.at) === RETURN) {
      if (this.at + 1 === text.length && !this.#options.isLast) return false;
      if (this.at + 1 === text.length || text.charCodeAt(this.at + 1) === NEWLINE) this.at += 1;
    }
    const next = text.charAt(this.at);
    if (next !== "" && next !== "\n" && next !== this.#options.delimiter) {
      throw this.#fault(start, "there is text between the closing quotation mark of this cell and the next separator");
    }
    const end = text.charCodeAt(this.at - 1) === RETURN ? this.at - 1 : this.at;
    // Much faster than `replaceAll` if there are millions of them.
    const cell = text
      .slice(start + 1, closing)
      .split('""')
      .join('"');
    this.#add(cell, start, end);
    const newlines = cell.split("\n").length - 1;
    if (newlines > 0) {
      this.line += newlines;
      this.#lineStart = text.lastIndexOf("\n", end - 1) + 1;
    }
    return true;
  }

  #add(cell: string, start: number, end: number): void {
    if (this.#cells.length >= MAX_CELLS) throw tooWide(this.line);
    this.#cells.push(cell);
    if (this.#options.withPlaces !== true) return;
    const { offset } = this.#options;
    this.#places.push({ ...this.#spot(start), start: offset + start, end: offset + end });
  }

  #fault(start: number, message: string): QuoteFault {
    return new QuoteFault(message, this.#spot(start));
  }

  #spot(start: number): Pick<CellPlace, "line" | "column"> {
    return { line: this.line, column: start - this.#lineStart + 1 };
  }
}

const [QUOTE, RETURN, NEWLINE] = [0x22, 0x0d, 0x0a];

export function recordsIn(text: string, options: Delimited): readonly SheetRecord[] {
  const reader = new DelimitedReader(options);
  return [...reader.take(text), ...reader.end()];
}

/** The mark at the beginning of a CSV file that makes spreadsheet programs read it as UTF-8. */
export const BYTE_ORDER_MARK = "\uFEFF";

export function csvLine(cells: readonly string[], delimiter = ","): string {
  return `${cells.map((cell) => csvCell(cell, delimiter)).join(delimiter)}\r\n`;
}

function csvCell(text: string, delimiter: string): string {
  return /["\r\n]|^\s|\s$/.test(text) || text.includes(delimiter) ? `"${text.replaceAll('"', '""')}"` : text;
}

export type BoundedUnit = "line" | { readonly jsonDepth: number };

const MEGABYTE = 1_048_576;
const [SPACE, BACKSLASH, COMMA] = [0x20, 0x5c, 0x2c];
const OPENING: readonly number[] = [0x5b, 0x7b];
const CLOSING: readonly number[] = [0x5d, 0x7d];

type Check = (chunk: Uint8Array) => void;

/**
 * Returns a function to call with each chunk of a file. It throws a FileError at the first line or JSON element that is
 * larger than `mostBytes`. `encoding` matters only if it is UTF-16, in which a byte of a letter may look like ASCII.
 */
export function lineLimit(unit: BoundedUnit, mostBytes: number, encoding?: Encoding): Check {
  const isUtf16 = encoding === "utf-16le" || encoding === "utf-16be";
  const most = isUtf16 ? mostBytes / 2 : mostBytes;
  const refuse = (line: number): FileError => tooLong(line, mostBytes);
  const check = unit === "line" ? plainLineLimit(most, refuse) : elementLimit(unit.jsonDepth, most, refuse);
  if (!isUtf16) return check;
  const narrow = narrower(encoding);
  return (chunk) => check(narrow(chunk));
}

/** The byte for a character above U+00FF. It is not ASCII. */
const OTHER = 0xff;

/** Returns a function that reads UTF-16 and returns one byte for each code unit: its code up to U+00FF, or `OTHER`. */
function narrower(encoding: "utf-16le" | "utf-16be"): (chunk: Uint8Array) => Uint8Array {
  const [lowAt, highAt] = encoding === "utf-16le" ? [0, 1] : [1, 0];
  let held = new Uint8Array();
  return (chunk) => {
    const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    const units = new Uint8Array(bytes.length >> 1);
    for (let at = 0; at < units.length; at += 1) {
      units[at] = bytes[2 * at + highAt] === 0 ? (bytes[2 * at + lowAt] ?? OTHER) : OTHER;
    }
    held = Uint8Array.from(bytes.subarray(2 * units.length));
    return units;
  };
}

function elementLimit(jsonDepth: number, most: number, refuse: (line: number) => FileError): Check {
  const endsUnit = elementEnds(jsonDepth);
  let line = 1;
  let unitLine = 1;
  let unitBytes = 0;
  let isBlank = true;
  return (chunk) => {
    for (const byte of chunk) {
      if (byte === NEWLINE) line += 1;
      if (endsUnit(byte)) {
        unitLine = line;
        unitBytes = 0;
        isBlank = true;
      } else unitBytes += 1;
      if (isBlank && byte > SPACE && unitBytes > 0) {
        isBlank = false;
        unitLine = line;
      }
      if (unitBytes > most) throw refuse(unitLine);
    }
  };
}

/** Checks lines. It searches for line breaks, which is faster than checking each byte. */
function plainLineLimit(most: number, refuse: (line: number) => FileError): Check {
  let line = 1;
  let lineBytes = 0;
  const withLines = lineEnds();
  return (read) => {
    const chunk = withLines(read);
    for (let from = 0; from < chunk.length; ) {
      const found = chunk.indexOf(NEWLINE, from);
      lineBytes += (found < 0 ? chunk.length : found) - from;
      if (lineBytes > most) throw refuse(line);
      if (found < 0) return;
      line += 1;
      lineBytes = 0;
      from = found + 1;
    }
  };
}

/**
 * Returns a function that replaces the line ends of old Mac programs with line feeds, as `textOf` does. If the first
 * line may end at the end of a chunk, this is decided with the next one. If a quotation mark in it is never closed,
 * nothing is replaced.
 */
function lineEnds(): (chunk: Uint8Array) => Uint8Array {
  let isMac: boolean | undefined;
  let isQuoted = false;
  let isHeld = false;
  return (chunk) => {
    const bytes = isHeld ? Buffer.concat([Uint8Array.of(RETURN), chunk]) : chunk;
    if (isMac === undefined) {
      const end = bytes.findIndex((byte) => {
        if (byte === QUOTE) isQuoted = !isQuoted;
        return !isQuoted && (byte === NEWLINE || byte === RETURN);
      });
      isHeld = bytes[end] === RETURN && end === bytes.length - 1;
      if (isHeld) return bytes.subarray(0, end);
      if (end >= 0) isMac = bytes[end] === RETURN && bytes[end + 1] !== NEWLINE;
    }
    return isMac === true ? bytes.map((byte) => (byte === RETURN ? NEWLINE : byte)) : bytes;
  };
}

function elementEnds(jsonDepth: number): (byte: number) => boolean {
  let isQuoted = false;
  let isEscaped = false;
  let depth = 0;
  return (byte) => {
    if (isQuoted) {
      if (isEscaped) isEscaped = false;
      else if (byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE) isQuoted = false;
      return false;
    }
    if (byte === QUOTE) isQuoted = true;
    else if (OPENING.includes(byte)) {
      depth += 1;
      return depth <= jsonDepth;
    } else if (CLOSING.includes(byte)) depth -= 1;
    else return byte === COMMA && depth <= jsonDepth;
    return false;
  };
}

function tooWide(line: number): FileError {
  return new FileError(
    `line ${line} of the file has more than ${thousands(MAX_CELLS)} cells; nothing was sent`,
    "Check the file: a line break may be missing there. Otherwise delete the columns that are not needed.",
  );
}

function tooLong(line: number, mostBytes: number): FileError {
  return new FileError(
    `the line or JSON value on line ${line} of the file is longer than ${mostBytes / MEGABYTE} MB; nothing was sent`,
    "Check the file: a quote or a line break may be missing there. Otherwise split it, or ask the person who runs " +
      "this server to raise TARGETING_MCP_MAX_LINE_MB.",
  );
}
