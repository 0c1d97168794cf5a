import { FileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { cutText, detached } from "../platform/text.ts";
import { trimContextId } from "../spec/names-and-contexts.ts";
import { BETWEEN_CONTEXTS, contextActionIn, contextsReader, oneText, splitter, unusualSeparator } from "./cells.ts";
import { HEADINGS, type Header, headingOf, plainHeading, type ValidColumns, withoutNumber } from "./columns.ts";
import { composedHangul, damageIn } from "./damage.ts";
import { DelimitedReader, QuoteFault, type SheetRecord } from "./delimited.ts";
import { checkContent } from "./foreign-content.ts";
import { checkOneTable, columnCount, headerReader, isWhole, listed } from "./headers.ts";
import {
  DELIMITERS,
  type Delimiter,
  ENCODINGS,
  type Encoding,
  type InputFile,
  type SheetForm,
  type SheetSeen,
} from "./input-file.ts";
import { similarHeading } from "./likely-mapping.ts";
import { DecimalSigns } from "./numbers.ts";
import { RowFacts } from "./row-facts.ts";
import {
  isArchive,
  isBlank,
  listRecords,
  noNotes,
  type SheetHeader,
  type SheetReading,
  type SheetRow,
  type SkippedLines,
  sheetRows,
} from "./sheet-rows.ts";
import { certainEncoding, EncodingDetector, sampleOf } from "./text.ts";
import { Signs } from "./truth.ts";

export interface SheetArguments {
  readonly encoding?: Encoding | undefined;
  /** The sheet of a workbook: its name or number. The first number is 1. */
  readonly sheet?: string | number | undefined;
  readonly columns?: Readonly<Record<string, string>> | undefined;
  readonly separator?: string | undefined;
  readonly fillDown?: readonly string[] | undefined;
}

export interface UndetectedSheet {
  readonly bytes: ByteSource;
  readonly format: "csv" | "xlsx";
  readonly encoding: Encoding;
  readonly shape: ValidColumns;
  readonly isTabbed: boolean;
  readonly maxBytes: number | undefined;
}

/**
 * Reads a whole sheet to detect how it must be read, and what is unusual about it. Throws a FileError if it cannot be
 * read or lacks a required column.
 */
export async function detectSheet(
  undetected: UndetectedSheet,
  given: SheetArguments,
): Promise<{ readonly sheet: SheetForm; readonly seen: SheetSeen }> {
  const { bytes, format, encoding, shape, maxBytes } = undetected;
  const form: SheetForm = {
    ...(given.columns !== undefined && { columns: { ...given.columns } }),
    ...(given.fillDown !== undefined && given.fillDown.length > 0 && { fillDown: [...given.fillDown] }),
  };
  const place = await (format === "xlsx" ? sheetOf(undetected, given) : delimiterOf(undetected, form));
  const notes = noNotes();
  const skipped: SkippedLines = { subtotals: [], hints: [] };
  let facts: Facts | undefined;
  const file: Pick<InputFile, "format" | "encoding" | "sheet"> = {
    format,
    encoding,
    sheet: { ...form, ...place.form },
  };
  const { records } = place;
  const rows = sheetRows({ bytes, file, shape, maxBytes, notes, skipped, ...(records && { records }) }, (header) => {
    facts = new Facts(header, given.separator, new DecimalSigns(header.names, shape.isNumeric, format === "xlsx"));
  });
  try {
    for await (const batch of rows) for (const row of batch) facts?.take(row);
  } catch (thrown) {
    const isChosen = given.sheet !== undefined || facts !== undefined;
    if (!(thrown instanceof FileError) || isChosen) throw thrown;
    const isGuessed = format === "csv" && encoding === "windows-1252" && given.encoding === undefined;
    throw withOtherSheets(isGuessed ? withEncoding(thrown) : thrown, place);
  }
  facts?.checkOneTable(shape, form.columns);
  const separator = facts?.separator();
  return {
    sheet: {
      ...form,
      ...place.form,
      ...(separator !== undefined && { separator }),
      ...facts?.decimals.found(),
      ...facts?.signs.found(),
      ...(skipped.subtotals.length > 0 && { subtotals: skipped.subtotals }),
      ...(skipped.hints.length > 0 && { hints: skipped.hints }),
    },
    seen: without0({ ...facts?.seen(shape), ...notes, ...place.seen }),
  };
}

/**
 * Adds to an error that the headings may be garbled, if they are not only ASCII. Windows-1252 is only a guess, for
 * files of Western text that match no other encoding.
 */
function withEncoding(thrown: FileError): FileError {
  // The encoding matters only if the headings have letters beyond ASCII.
  if (!/[\u0080-\uffff]/.test(thrown.message)) return thrown;
  return new FileError(
    `${thrown.message}; the file was read as Windows-1252`,
    `If these headings are not what the file shows, save it as CSV UTF-8, or give its encoding: ${ENCODINGS.join(", ")}. ${thrown.remedy}`,
  );
}

/**
 * Adds the name of its sheet to an error. If no visible sheet has a header, the first one was read, which may be a
 * cover page. Then also names the first other sheets.
 */
function withOtherSheets(thrown: FileError, { form, seen, hasHeader }: Placed): FileError {
  const { sheets = [], otherSheets = 0 } = seen;
  if (sheets.length === 0) return thrown;
  const where = `${thrown.message}; this is the sheet ${JSON.stringify(form.sheet)}`;
  if (hasHeader) return new FileError(where, thrown.remedy, { cause: thrown });
  const more = otherSheets - sheets.length;
  return new FileError(
    `${where}, and no visible sheet has a header with the usual columns`,
    `The other sheets: ${listed(sheets)}${more > 0 ? ` and ${more} more` : ""}. To read one of them: sheet ${JSON.stringify(sheets[0])}. ` +
      "If its headings are not recognized either, the next error lists them. Then map them with columns.",
    { cause: thrown },
  );
}

interface Placed extends Partial<Pick<SheetReading, "records">> {
  readonly form: SheetForm;
  readonly seen: SheetSeen;
  readonly hasHeader?: boolean;
}

async function sheetOf({ bytes, shape }: UndetectedSheet, { sheet, columns }: SheetArguments): Promise<Placed> {
  const { findSheet } = await import("./xlsx/workbook.ts");
  const read = headerReader(shape, columns);
  return findSheet(bytes, sheet, (cells) => (isWhole(read(cells), shape) ? columnCount(read(cells)) : 0));
}

const SAMPLE_RECORDS = 100;

async function delimiterOf(
  { bytes, encoding, shape, isTabbed }: UndetectedSheet,
  { columns }: SheetForm,
): Promise<Placed> {
  const { sample, isAll } = await sampleOf(bytes, encoding);
  const said = /^"?sep=(.)"?\r?(?:\n|$)/i.exec(sample)?.[1];
  const chosen = DELIMITERS.find((one) => one === said);
  if (chosen !== undefined) return { form: { delimiter: chosen }, seen: {} };
  const read = headerReader(shape, columns);
  const order: readonly Delimiter[] = isTabbed ? ["\t", ",", ";", "|"] : DELIMITERS;
  const scored = order.map((delimiter) => ({
    delimiter,
    score: likeness(recordsOf(sample, delimiter, isAll), read, shape),
  }));
  const best = scored.reduce((one, other) => (isMore(other.score, one.score) ? other : one));
  return { form: { delimiter: best.delimiter }, seen: {} };
}

/**
 * Returns the first records of a file, split at a delimiter that may be wrong. If a cell in quotation marks is then
 * invalid, returns only the records before it.
 */
function recordsOf(sample: string, delimiter: Delimiter, isAll: boolean): readonly SheetRecord[] {
  const reader = new DelimitedReader({ delimiter });
  try {
    const records = reader.take(sample);
    return (isAll ? [...records, ...reader.end()] : records).slice(0, SAMPLE_RECORDS);
  } catch (thrown) {
    if (!(thrown instanceof QuoteFault)) throw thrown;
    const above = sample.split("\n").slice(0, thrown.line - 1);
    return above.length === 0 ? [] : recordsOf(above.join("\n"), delimiter, true);
  }
}

/**
 * How well a delimiter fits the first rows. Compared in this order: whether a row is a complete header, how many known
 * columns that row or else any row has, and, without a complete header, how many cells the first filled row has.
 */
type Likeness = readonly [whole: number, columns: number, cells: number];

function likeness(
  records: readonly SheetRecord[],
  read: (cells: readonly string[]) => Header,
  shape: ValidColumns,
): Likeness {
  const headers = records.map(({ cells }) => read(cells));
  const whole = headers.find((header) => isWhole(header, shape));
  const first = records.find(({ cells }) => cells.some((cell) => cell.trim() !== ""));
  if (whole !== undefined) return [1, columnCount(whole), 0];
  return [0, Math.max(0, ...headers.map(columnCount)), first?.cells.length ?? 0];
}

function isMore(one: Likeness, other: Likeness): boolean {
  const at = one.findIndex((value, position) => value !== other[position]);
  return at >= 0 && (one[at] ?? 0) > (other[at] ?? 0);
}

/**
 * The columns for reading a list of Context IDs from a sheet. Only the Context IDs and `op` are used. The other columns
 * help to recognize the header.
 */
const LIST_SHAPE: ValidColumns = { columns: Object.keys(HEADINGS), required: [["contextId", "contexts"]] };

export interface ListedContextId {
  readonly line: number;
  readonly id: string;
  /** Whether the cell looks like a date or a truth value, but is formatted as text, so that it was not converted. */
  readonly isText?: boolean | undefined;
}

export interface ContextIdList {
  readonly ids: readonly ListedContextId[];
  /** The heading of the Context IDs. `isColumn`: the file is a sheet, and only the column below it was read. */
  readonly heading?: { readonly line: number; readonly text: string; readonly isColumn: boolean };
}

/**
 * Reads Context IDs from a file with one on each line, or from the first column of a workbook's first visible sheet. If
 * a header names a column of Context IDs, reads only that column. Throws a FileError if the file has other columns but
 * none of Context IDs, if a row removes Context IDs, or if the file cannot be read.
 */
export async function listedContextIds(
  path: string,
  bytes: ByteSource,
  maxBytes: number | undefined,
): Promise<ContextIdList> {
  const encodings = new EncodingDetector();
  let isFirst = true;
  for await (const chunk of bytes()) {
    if (isFirst) checkContent(chunk, path);
    isFirst = false;
    encodings.take(chunk);
  }
  const isWorkbook = await isArchive(bytes);
  const encoding = isWorkbook ? "utf-8" : certainEncoding(await encodings.found(bytes));
  const head = await headOfList(bytes, encoding, isWorkbook);
  if (head?.isColumn === true) return idsOfSheet({ bytes, encoding, maxBytes, format: isWorkbook ? "xlsx" : "csv" });
  const ids: ListedContextId[] = [];
  for await (const records of listRecords(bytes, encoding, maxBytes)) {
    for (const { line, cells, asText } of records) {
      const second = cells.slice(1).find((cell) => cell.trim() !== "");
      if (second !== undefined) throw withoutIds(line, cells);
      const id = composedHangul(trimContextId(cells[0] ?? ""));
      if (id !== "" && line !== head?.line) ids.push({ line, id, isText: asText?.has(0) });
    }
  }
  return { ids, ...(head && { heading: head }) };
}

/** Returns the heading of the Context IDs, if any. Throws a FileError if the first row is a header without them. */
async function headOfList(
  bytes: ByteSource,
  encoding: Encoding,
  isWorkbook: boolean,
): Promise<ContextIdList["heading"]> {
  const read = headerReader(LIST_SHAPE);
  const { sample, isAll } = isWorkbook ? { sample: "", isAll: true } : await sampleOf(bytes, encoding);
  const readings = isWorkbook
    ? [await firstRecords(listRecords(bytes, encoding, undefined))]
    : DELIMITERS.map((delimiter) => recordsOf(sample, delimiter, isAll));
  const heads = readings.flatMap((records) => {
    const filled = records.filter((one) => !isBlank(one));
    return filled.map(({ line, cells }, at) => ({ line, cells, header: read(cells), isFirst: at === 0 }));
  });
  // A Context ID may look like a numbered heading ("keyword1"), so a row with only such cells is no header.
  const hasIds = ({ header, cells }: (typeof heads)[number]): boolean =>
    isWhole(header, LIST_SHAPE) &&
    cells.some((cell, at) => header.names[at] !== "" && withoutNumber(plainHeading(cell)) === plainHeading(cell));
  const sheet = heads.find(
    (one) => hasIds(one) && one.cells.length > 1 && (one.isFirst || columnCount(one.header) > 1),
  );
  if (sheet !== undefined) return { line: sheet.line, text: headingOfIds(sheet.header, sheet.cells), isColumn: true };
  const other = heads.find((one) => one.isFirst && columnCount(one.header) > 1);
  if (other !== undefined) throw withoutIds(other.line, other.cells);
  const alone = heads.find((one) => one.isFirst && hasIds(one));
  return alone && { line: alone.line, text: headingOfIds(alone.header, alone.cells), isColumn: false };
}

function headingOfIds({ contextsAt }: Header, cells: readonly string[]): string {
  return contextsAt.map((at) => (cells[at] ?? "").trim()).join(", ");
}

async function firstRecords(batches: AsyncIterable<readonly SheetRecord[]>): Promise<readonly SheetRecord[]> {
  const records: SheetRecord[] = [];
  for await (const batch of batches) {
    records.push(...batch);
    if (records.length >= SAMPLE_RECORDS) break;
  }
  return records.slice(0, SAMPLE_RECORDS);
}

function withoutIds(line: number, cells: readonly string[]): FileError {
  const filled = cells.map((cell) => cell.trim()).filter((cell) => cell !== "");
  return new FileError(
    `the file is a sheet without a column of Context IDs; nothing was sent. Its cells on line ${line}: ${listed(filled.slice(0, NAMED))}`,
    `Give the column of Context IDs the heading ${headingOf("contextId")}, or save only its cells, one Context ID a line.`,
  );
}

async function idsOfSheet(
  sheet: Pick<UndetectedSheet, "bytes" | "format" | "encoding" | "maxBytes">,
): Promise<ContextIdList> {
  const { bytes, format, encoding, maxBytes } = sheet;
  const given = format === "xlsx" ? { sheet: await (await import("./xlsx/workbook.ts")).firstSheetName(bytes) } : {};
  const detected = await detectSheet({ ...sheet, shape: LIST_SHAPE, isTabbed: false }, given);
  const ids: ListedContextId[] = [];
  let heading: ContextIdList["heading"];
  let column = -1;
  let idsIn: (cells: readonly string[]) => readonly string[] | undefined = () => [];
  const rows = sheetRows({ bytes, file: { format, encoding, ...detected }, shape: LIST_SHAPE, maxBytes }, (header) => {
    contextsReader(header);
    heading = { line: header.line, text: headingOfIds(header, header.cells), isColumn: true };
    column = header.contextsAt[0] ?? -1;
    const { separator } = detected.sheet;
    const split = separator === undefined ? oneText : splitter(separator);
    idsIn = (cells) =>
      contextActionIn(cells[header.at("op")] ?? "") === "remove" ? undefined : split(cells[column] ?? "");
  });
  for await (const batch of rows) {
    for (const { line, cells, asText } of batch) {
      const found = idsIn(cells);
      if (found === undefined) {
        throw new FileError(
          `line ${line} of the file has Remove as its ${headingOf("op")}, or its Context IDs begin with [ but are not a JSON array of texts; nothing was sent`,
          "Correct the line, or pass the sheet to update_contexts in the argument file.",
        );
      }
      for (const id of found.map(trimContextId)) if (id !== "") ids.push({ line, id, isText: asText?.has(column) });
    }
  }
  return { ids, ...(heading && { heading }) };
}

const NAMED = 12;
/** Matches a number with separators between thousands, as spreadsheets may show it. */
const GROUPED = /^\d{1,3}(?:(?:,\d{3})+|(?:[.'’ ]\d{3}){2,})$/;
/** Matches a Context ID that has only digits. If most IDs in the column are longer, it may have lost leading zeros. */
const DIGITS = /^\d+$/;

const splitAtDefault = splitter(BETWEEN_CONTEXTS);

class Facts {
  readonly #header: SheetHeader;
  readonly #given: string | undefined;
  readonly #at: Readonly<Record<"targeting" | "tx", number>>;
  readonly #holding = new Map<string, number>();
  /** How many Context IDs there are of each length. Undefined as soon as one has a character that is no digit. */
  #digits: Map<number, number> | undefined = new Map();
  #grouped = 0;
  #targeting: string | undefined;
  readonly #transactions = new Set<string>();
  #repeatedTx = 0;
  readonly #joinedBy: string[] = [];
  readonly #rows: RowFacts;

  readonly signs: Signs;
  readonly decimals: DecimalSigns;
  /** The indexes of columns without a heading in which all cells so far are empty. */
  readonly #empty: Set<number>;

  constructor(header: SheetHeader, given: string | undefined, decimals: DecimalSigns) {
    this.decimals = decimals;
    this.signs = new Signs(header.at);
    this.#header = header;
    this.#rows = new RowFacts(header);
    this.#given = given?.trim() || given;
    this.#empty = new Set(header.cells.flatMap((cell, at) => (cell.trim() === "" ? [at] : [])));
    this.#at = {
      targeting: header.at("targeting"),
      tx: header.at("tx_id"),
    };
  }

  /** Throws a FileError if the sheet may have two tables side by side. */
  checkOneTable(shape: ValidColumns, mapped: SheetForm["columns"]): void {
    if (shape.isStrict !== true) checkOneTable(this.#header, this.#empty, shape, mapped);
  }

  take(row: SheetRow): void {
    const { cells, raw } = row;
    for (const at of this.#empty) if ((cells[at] ?? "").trim() !== "") this.#empty.delete(at);
    this.decimals.take(cells);
    this.signs.take(cells);
    for (const at of this.#header.contextsAt) this.#takeContexts((raw[at] ?? "").trim());
    this.#rows.take(row);
    const targeting = (cells[this.#at.targeting] ?? "").trim();
    if (targeting !== "") this.#targeting ??= targeting;
    const tx = cells[this.#at.tx] ?? "";
    if (tx === "") return;
    if (this.#transactions.has(tx)) this.#repeatedTx += 1;
    else this.#transactions.add(detached(tx));
  }

  #takeContexts(contexts: string): void {
    if (GROUPED.test(contexts)) this.#grouped += 1;
    else if (contexts !== "" && !contexts.startsWith("[")) {
      const signs = ["\n", "|", ";", ","].filter((one) => contexts.includes(one)).join("");
      if (signs !== "" && damageIn(contexts) === undefined)
        this.#holding.set(signs, (this.#holding.get(signs) ?? 0) + 1);
      const sign = unusualSeparator(contexts);
      if (sign !== undefined && !this.#given?.includes(sign)) this.#joinedBy.push(sign);
      this.#takeDigits(contexts);
    }
  }

  #takeDigits(contexts: string): void {
    if (this.#digits === undefined) return;
    for (const text of splitAtDefault(contexts) ?? []) {
      const id = trimContextId(text);
      if (id === "") continue;
      if (!DIGITS.test(id)) this.#digits = undefined;
      this.#digits?.set(id.length, (this.#digits.get(id.length) ?? 0) + 1);
    }
  }

  /** Returns the separator of Context IDs in a cell. Undefined if each cell is read as one ID. */
  separator(): string | undefined {
    if (this.#given !== undefined) return this.#given;
    // The Context IDs of numbered columns are joined with line breaks.
    if (this.#header.at("contextId") >= 0) return this.#header.contextsAt.length > 1 ? "\n" : undefined;
    return ["|", ";", "\n"].find((one) => this.#cellsWith([one]) > 0) ?? BETWEEN_CONTEXTS;
  }

  /** Returns how many cells of Context IDs contain at least one of the signs. */
  #cellsWith(signs: readonly string[]): number {
    let cells = 0;
    for (const [held, count] of this.#holding) if (signs.some((one) => held.includes(one))) cells += count;
    return cells;
  }

  seen({ columns }: ValidColumns): SheetSeen {
    const { line, above, ignored, omitted, omitsContexts, names, cells } = this.#header;
    const rows = this.#rows.seen();
    const separator = this.separator();
    const separating = separator === undefined ? [] : [...separator, "\n"];
    const read = names.flatMap((column, at) => {
      const heading = (cells[at] ?? "").trim();
      const isOwn = [column, headingOf(column)].some((one) => plainHeading(one) === plainHeading(heading));
      return column === "" || isOwn ? [] : [{ column, heading: cutText(heading, LONGEST_HEADING) }];
    });
    const isWithout = columns.includes("contextId") && this.#header.contextsAt.length === 0 && !omitsContexts;
    const others = ignored.filter((heading) => !omitted.includes(heading));
    const likely = isWithout ? similarHeading(others, "contextId") : undefined;
    return {
      ...(line > 1 && { headerLine: line }),
      above,
      ignored: ignored.length,
      ...(ignored.length > 0 && {
        ignoredHeadings: ignored.slice(0, NAMED).map((heading) => cutText(heading, LONGEST_HEADING)),
      }),
      ...(read.length > 0 && { read: read.slice(0, NAMED) }),
      severalIds: this.#cellsWith(separating),
      commas: separating.includes(",") ? 0 : this.#cellsWith([","]),
      unseparated: this.#cellsWith(["|", ";", "\n"].filter((one) => !separating.includes(one))),
      joined: this.#joinedBy.length,
      ...(this.#joinedBy[0] !== undefined && { joinedBy: this.#joinedBy[0] }),
      ...rows,
      ...((rows.blankGroups ?? 0) > 0 && {
        groupHeading: cutText((cells[this.#header.at("parentName")] ?? "").trim(), LONGEST_HEADING),
      }),
      shorter: this.#shorter(),
      grouped: this.#grouped,
      repeatedTx: this.#repeatedTx,
      ...(likely !== undefined && { likelyContexts: likely }),
      ...(isWithout && likely === undefined && others.length > 0 && { withoutContexts: true }),
      ...(this.#targeting !== undefined && { targeting: this.#targeting }),
    };
  }

  /**
   * Returns how many Context IDs may have lost leading zeros: all that are shorter than the longest, if all IDs have
   * only digits, and the longest have at least 5 and are at least 90 % of all. Otherwise returns 0.
   */
  #shorter(): number {
    const lengths = [...(this.#digits ?? [])].sort(([one], [other]) => other - one);
    const [longest, ...others] = lengths;
    if (longest === undefined) return 0;
    const shorter = others.reduce((sum, [, count]) => sum + count, 0);
    return longest[0] >= 5 && longest[1] >= 9 * shorter ? shorter : 0;
  }
}

const LONGEST_HEADING = 60;

function without0(seen: SheetSeen): SheetSeen {
  return Object.fromEntries(Object.entries(seen).filter(([, value]) => value !== 0));
}
