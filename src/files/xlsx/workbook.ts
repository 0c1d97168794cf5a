import { FileError } from "../../platform/files.ts";
import { type ByteSource, wholeOf } from "../../platform/held-folder.ts";
import type { SheetRecord } from "../delimited.ts";
import { HEADER_WITHIN, listed } from "../headers.ts";
import type { SheetForm, SheetSeen } from "../input-file.ts";
import { type Archive, openArchive, readWholeXml, unescaped, unreadableWorkbook } from "./archive.ts";
import { isTrue, type NumberFormat, readSheet, type SheetParts } from "./sheet.ts";

const MEGABYTE = 1_048_576;
/** The largest part that is read into memory completely, in bytes when unpacked. */
const MAX_PART_BYTES = 96 * MEGABYTE;

const NAMED_SHEETS = 20;

interface Sheet {
  readonly name: string;
  readonly part: string;
  readonly isHidden: boolean;
}

interface Workbook {
  readonly archive: Archive;
  readonly sheets: readonly Sheet[];
  readonly parts: SheetParts;
}

/**
 * Finds a sheet by name or number. Default: the first visible sheet whose header has several known columns (`columnsIn`
 * counts them, and returns 0 if a row is no header), or else the first visible sheet with a header, or else the first
 * visible sheet. Throws a FileError.
 */
export async function findSheet(
  bytes: ByteSource,
  wanted: string | number | undefined,
  columnsIn: (cells: readonly string[]) => number,
): Promise<{
  readonly form: SheetForm;
  readonly seen: SheetSeen;
  readonly records: AsyncGenerator<readonly SheetRecord[]>;
  /** Whether the sheet was found by its header. */
  readonly hasHeader: boolean;
}> {
  const workbook = await openWorkbook(bytes);
  const { sheets, archive, parts } = workbook;
  const headed = wanted === undefined ? await sheetWithHeader(workbook, columnsIn) : undefined;
  const found = headed ?? (wanted === undefined ? firstOf(sheets) : namedSheet(sheets, wanted));
  const others = sheets.filter((sheet) => sheet !== found).map(({ name }) => name);
  const hasMacros = archive.names.some((name) => name.endsWith("vbaProject.bin"));
  return {
    form: { sheet: found.name },
    hasHeader: headed !== undefined,
    records: readSheet(archive, found.part, parts),
    seen: {
      ...(others.length > 0 && { otherSheets: others.length, sheets: others.slice(0, NAMED_SHEETS) }),
      ...(hasMacros && { macros: true }),
    },
  };
}

/** Returns the name of the first visible sheet, or of the first one if all are hidden. Throws a FileError. */
export async function firstSheetName(bytes: ByteSource): Promise<string> {
  return firstOf((await openWorkbook(bytes)).sheets).name;
}

/**
 * Yields the rows of a sheet in batches. Default: the first visible sheet. Throws a FileError if there is no such
 * sheet.
 */
export async function* workbookRecords(
  bytes: ByteSource,
  sheet: string | undefined,
): AsyncGenerator<readonly SheetRecord[]> {
  const { archive, sheets, parts } = await openWorkbook(bytes);
  yield* readSheet(archive, calledOrFirst(sheets, sheet).part, parts);
}

/**
 * Returns the archive of a workbook, and the name of the part that contains the sheet. Throws a FileError if there is
 * no such sheet.
 */
export async function partOfSheet(
  bytes: ByteSource,
  sheet: string | undefined,
): Promise<{ readonly archive: Archive; readonly part: string }> {
  const { archive, sheets } = await openWorkbook(bytes);
  return { archive, part: calledOrFirst(sheets, sheet).part };
}

async function sheetWithHeader(
  { archive, sheets, parts }: Workbook,
  columnsIn: (cells: readonly string[]) => number,
): Promise<Sheet | undefined> {
  const visible = sheets.filter(({ isHidden }) => !isHidden);
  let headed: Sheet | undefined;
  for (const sheet of visible) {
    let rows = 0;
    for await (const batch of readSheet(archive, sheet.part, parts)) {
      const most = Math.max(0, ...batch.slice(0, HEADER_WITHIN - rows).map(({ cells }) => columnsIn(cells)));
      if (most > 1) return sheet;
      // A header with one known column may be that of a glossary or a summary, so the search continues.
      if (most === 1) headed ??= sheet;
      rows += batch.length;
      if (rows >= HEADER_WITHIN) break;
    }
  }
  return headed;
}

/** Returns the first visible sheet, or the first one if all are hidden. Throws a FileError if there is no sheet. */
function firstOf(sheets: readonly Sheet[]): Sheet {
  const first = sheets.find(({ isHidden }) => !isHidden) ?? sheets[0];
  if (first === undefined) throw unreadableWorkbook("it has no sheet");
  return first;
}

function calledOrFirst(sheets: readonly Sheet[], name: string | undefined): Sheet {
  return name === undefined ? firstOf(sheets) : namedSheet(sheets, name);
}

function namedSheet(sheets: readonly Sheet[], wanted: string | number): Sheet {
  const plain = (name: string): string => name.normalize("NFC").trim().toLowerCase();
  const found =
    typeof wanted === "number"
      ? (sheets.find(({ name }) => name === String(wanted)) ?? sheets[wanted - 1])
      : (sheets.find(({ name }) => name === wanted) ?? sheets.find(({ name }) => plain(name) === plain(wanted)));
  if (found !== undefined) return found;
  throw new FileError(
    `the workbook has no sheet ${JSON.stringify(wanted)}`,
    `Its sheets: ${listed(sheets.map(({ name }) => name).slice(0, NAMED_SHEETS))}.`,
  );
}

async function openWorkbook(bytes: ByteSource): Promise<Workbook> {
  const archive = await openArchive(await wholeOf(bytes));
  const root = await relationsOf(archive, "");
  const path = root.find(({ type }) => type.endsWith("/officeDocument"))?.target ?? "xl/workbook.xml";
  if (!archive.names.includes(path)) {
    const isOds = archive.names.includes("mimetype") && archive.names.includes("content.xml");
    if (isOds) {
      throw new FileError(
        "the file is really an OpenDocument spreadsheet",
        "In LibreOffice: File, Save As, Excel 2007-365 (.xlsx).",
      );
    }
    throw unreadableWorkbook("it is another kind of archive");
  }
  const relations = await relationsOf(archive, path);
  const sheets: Sheet[] = [];
  let is1904 = false;
  await readWholeXml(archive.part(path, MAX_PART_BYTES), {
    open(name, attribute) {
      if (name === "workbookPr") is1904 = isTrue(attribute("date1904"));
      if (name !== "sheet") return;
      const part = relations.find(({ id }) => id === attribute(":id"));
      const called = attribute("name");
      if (part?.type.endsWith("/worksheet") !== true || called === undefined) return;
      sheets.push({ name: called, part: part.target, isHidden: (attribute("state") ?? "visible") !== "visible" });
    },
  });
  const pathOf = (kind: string) => relations.find(({ type }) => type.endsWith(`/${kind}`))?.target ?? "";
  const strings = await sharedStrings(archive, pathOf("sharedStrings"));
  const styles = await cellStyles(archive, pathOf("styles"));
  return { archive, sheets, parts: { strings, ...styles, is1904 } };
}

interface Relation {
  readonly id: string;
  readonly type: string;
  readonly target: string;
}

/** Returns the parts to which a part refers. Links that lead out of the archive are ignored. */
async function relationsOf(archive: Archive, part: string): Promise<readonly Relation[]> {
  const folder = part.slice(0, part.lastIndexOf("/") + 1);
  const relations: Relation[] = [];
  await readWholeXml(archive.part(`${folder}_rels/${part.slice(folder.length)}.rels`, MAX_PART_BYTES), {
    open(name, attribute) {
      const [id, type, target] = [attribute("Id"), attribute("Type"), attribute("Target")];
      if (name !== "Relationship" || id === undefined || type === undefined || target === undefined) return;
      if (attribute("TargetMode") === "External") return;
      relations.push({ id, type, target: pathOf(folder, target) });
    },
  });
  return relations;
}

function pathOf(folder: string, target: string): string {
  if (target.startsWith("/")) return target.slice(1);
  const steps: string[] = [];
  for (const step of `${folder}${target}`.split("/")) {
    if (step === "..") steps.pop();
    else if (step !== ".") steps.push(step);
  }
  return steps.join("/");
}

/** Returns the texts that cells refer to by number, without pronunciation guides. */
async function sharedStrings(archive: Archive, part: string): Promise<readonly string[]> {
  const strings: string[] = [];
  let text = "";
  let isText = false;
  let isPhonetic = false;
  await readWholeXml(archive.part(part, MAX_PART_BYTES), {
    open(name) {
      if (name === "si") text = "";
      else if (name === "rPh") isPhonetic = true;
      else if (name === "t") isText = !isPhonetic;
    },
    text(piece) {
      if (isText) text += piece;
    },
    close(name) {
      if (name === "t") isText = false;
      else if (name === "rPh") isPhonetic = false;
      else if (name === "si") strings.push(unescaped(text));
    },
  });
  return strings;
}

/**
 * Returns the number format of each cell style (undefined if it shows numbers as they are stored), and which styles are
 * for texts.
 */
async function cellStyles(archive: Archive, part: string): Promise<Pick<SheetParts, "formats" | "areTexts">> {
  const codes = new Map(Object.entries(BUILT_IN));
  const formats: (string | undefined)[] = [];
  let isCells = false;
  await readWholeXml(archive.part(part, MAX_PART_BYTES), {
    open(name, attribute) {
      if (name === "cellXfs") isCells = true;
      else if (name === "numFmt") codes.set(attribute("numFmtId") ?? "", attribute("formatCode") ?? "");
      else if (name === "xf" && isCells) formats.push(codes.get(attribute("numFmtId") ?? "0"));
    },
    close(name) {
      if (name === "cellXfs") isCells = false;
    },
  });
  return { areTexts: formats.map((format) => format === TEXT), formats: formats.map(readFormat) };
}

const TEXT = "@";

/** The maximum length of a format in Excel. */
const MAX_FORMAT = 255;
/** The maximum length of each section of a format (one for positive numbers, one for negative numbers, and so on). */
const MAX_SECTION = 64;

/**
 * Returns whether a format is longer than spreadsheet programs allow, has a long section, more than 30 decimals, or a
 * fraction with more than three digits. The time to format a number grows with the square of a section's length. So
 * such numbers are read as they are stored.
 */
function isTooSlow(format: string): boolean {
  return (
    format.length > MAX_FORMAT ||
    format.split(";").some((one) => one.length > MAX_SECTION) ||
    /\.[?#0]{31}|\/[?#0]{4}/.test(format)
  );
}

/**
 * Returns the format in which numbers are read, without separators of thousands. Undefined if they are read as they are
 * stored, for example because the format hides digits (1.23E+12, or 1.2 for millions), or is not supported.
 */
function readFormat(format: string | undefined): NumberFormat | undefined {
  if (format === undefined || format === TEXT || isTooSlow(format)) return undefined;
  const signs = format.replaceAll(/"[^"]*"|\\.|_.|\*.|\[[^\]]*\]|A(?:M\/P)?M?/gi, "");
  const letters = signs.replaceAll(/[^a-z]/gi, "").toLowerCase();
  if (/e[+-]|general|\[dbnum/i.test(format) || /[#0?],+(?![#0?,])/.test(signs)) return undefined;
  if (letters === "") {
    // Removes thousands separators from the format: the number may be an ID, which must not have any.
    return { code: format.replaceAll(/(?<=[#0]),(?=[#0])/g, ""), isDate: false };
  }
  // Dates of other calendars, and names of months in other languages, are not supported.
  const isKnown = !/[^ymdhs]|m{5}/.test(letters) && !(/\[\$-(?!en|0?[48]09)/i.test(format) && /mmm|ddd/.test(letters));
  if (isKnown) return { code: format, isDate: true };
  if (!/[ydegba]/.test(letters)) return undefined;
  return { code: /[hs]/.test(letters) ? "yyyy-mm-dd h:mm" : "yyyy-mm-dd", isDate: true };
}

/** The formats with fixed numbers, which workbooks do not store (ECMA-376, 18.8.30). Local dates are read as ISO. */
const BUILT_IN: Readonly<Record<string, string>> = {
  ...{ 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??" },
  ...{ 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM" },
  ...{ 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)" },
  ...{ 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0" },
  48: "##0.0E+0",
  49: TEXT,
};
