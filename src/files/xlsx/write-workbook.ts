import { Zip, ZipDeflate } from "fflate";
import { FileError } from "../../platform/files.ts";
import { thousands } from "../../platform/text.ts";
import { type CellMark, VALUES_SHEET, type WrittenRow, type WrittenSheet } from "../written-rows.ts";

const MAX_ROWS = 1_048_576;
const MAX_CHARACTERS = 32_767;
/** The maximum number of cells with comments. Spreadsheet programs need much memory for each. */
const MAX_COMMENTS = 10_000;
const SAMPLE_ROWS = 500;
const [LEAST_WIDTH, MAX_WIDTH] = [9, 60];

/** The time of the last change in every workbook. It is fixed, so that equal sheets give equal bytes. */
const TIME = "2000-01-01T00:00:00Z";
const MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const PACKAGE = "http://schemas.openxmlformats.org/package/2006";
const OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';

const [TEXT, HEADING, MARKED] = [1, 2, 3] as const;
const STYLES = `${DECLARATION}<styleSheet xmlns="${MAIN}"><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="3"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill><fill><patternFill patternType="solid"><fgColor rgb="FFFFC7CE"/><bgColor indexed="64"/></patternFill></fill></fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="4"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/><xf numFmtId="49" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/><xf numFmtId="49" fontId="1" fillId="0" borderId="0" xfId="0" applyNumberFormat="1" applyFont="1"/><xf numFmtId="49" fontId="0" fillId="2" borderId="0" xfId="0" applyNumberFormat="1" applyFill="1"/></cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`;

interface Comment extends CellMark {
  readonly row: number;
}

interface Seen {
  readonly comments: Comment[];
  readonly filters: string[];
}

/**
 * Writes the rows, and a second sheet that explains the allowed values. Throws a FileError if they are too large.
 */
export async function* writtenWorkbook(sheet: WrittenSheet): AsyncGenerator<Uint8Array, void, undefined> {
  const seen: Seen = { comments: [], filters: [] };
  const values = { name: VALUES_SHEET.name, above: 0, rows: inTurn(VALUES_SHEET.rows) };
  yield* zipped([
    ["[Content_Types].xml", once(contentTypes)],
    ["_rels/.rels", once(() => relations([["rId1", `${OFFICE}/officeDocument`, "xl/workbook.xml"]]))],
    ["xl/_rels/workbook.xml.rels", once(workbookRelations)],
    ["xl/styles.xml", once(() => STYLES)],
    ["xl/worksheets/sheet1.xml", sheetXml(sheet, seen)],
    ["xl/worksheets/sheet2.xml", sheetXml(values, { filters: seen.filters })],
    ["xl/workbook.xml", once(() => workbook([sheet.name, values.name], seen.filters))],
    ["xl/worksheets/_rels/sheet1.xml.rels", once(sheetRelations)],
    ["xl/comments1.xml", once(() => commentsXml(seen.comments))],
    ["xl/drawings/vmlDrawing1.vml", once(() => drawing(seen.comments))],
  ]);
}

async function* inTurn(rows: readonly WrittenRow[]): AsyncGenerator<WrittenRow> {
  yield* rows;
}

async function* once(text: () => string): AsyncGenerator<string> {
  yield text();
}

export async function* zipped(
  parts: readonly (readonly [name: string, content: AsyncIterable<string | Uint8Array>])[],
): AsyncGenerator<Uint8Array, void, undefined> {
  const ready: Uint8Array[] = [];
  const zip = new Zip((thrown, chunk) => {
    if (thrown !== null) throw thrown;
    ready.push(chunk);
  });
  for (const [name, content] of parts) {
    const part = new ZipDeflate(name, { level: 6 });
    part.mtime = TIME;
    zip.add(part);
    for await (const piece of content) {
      part.push(typeof piece === "string" ? Buffer.from(piece) : piece);
      yield* ready.splice(0);
    }
    part.push(new Uint8Array(), true);
    yield* ready.splice(0);
  }
  zip.end();
  yield* ready.splice(0);
}

const PIECE = 65_536;

/** Yields the XML of a sheet. Adds the range of its filter to `filters` and its comments to `comments`. */
async function* sheetXml(
  { rows, above }: WrittenSheet,
  { comments, filters }: Pick<Seen, "filters"> & Partial<Seen>,
): AsyncGenerator<string> {
  const reading = rows[Symbol.asyncIterator]();
  const sample: WrittenRow[] = [];
  for (let next = await reading.next(); !next.done; next = await reading.next()) {
    if (sample.push(next.value) >= SAMPLE_ROWS) break;
  }
  const frozen = above + 1;
  let piece = `${DECLARATION}<worksheet xmlns="${MAIN}" xmlns:r="${OFFICE}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="${frozen}" topLeftCell="A${frozen + 1}" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetFormatPr defaultRowHeight="15"/>${columnsXml(sample, above)}<sheetData>`;
  let count = 0;
  const take = (row: WrittenRow): void => {
    if (count >= MAX_ROWS) throw tooMany(`more than ${thousands(MAX_ROWS)} rows`);
    piece += rowXml(row, count, count === above ? HEADING : TEXT);
    for (const mark of row.marks ?? []) {
      if (comments !== undefined && comments.length < MAX_COMMENTS) comments.push({ ...mark, row: count });
    }
    count += 1;
  };
  for await (const row of chained(sample, reading)) {
    take(row);
    if (piece.length < PIECE) continue;
    yield piece;
    piece = "";
  }
  const width = sample[above]?.cells.length ?? 1;
  const last = Math.max(count, frozen);
  filters.push(`$A$${frozen}:$${lettersOf(width - 1)}$${last}`);
  const filter = `<autoFilter ref="A${frozen}:${lettersOf(width - 1)}${last}"/>`;
  yield `${piece}</sheetData>${filter}${comments === undefined ? "" : '<legacyDrawing r:id="rId1"/>'}</worksheet>`;
}

async function* chained(first: readonly WrittenRow[], rest: AsyncIterator<WrittenRow>): AsyncGenerator<WrittenRow> {
  yield* first;
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
}

function columnsXml(sample: readonly WrittenRow[], above: number): string {
  const widths: number[] = [];
  for (const { cells } of sample.slice(above)) {
    for (const [at, cell] of cells.entries()) widths[at] = Math.max(widths[at] ?? LEAST_WIDTH, shownWidth(cell) + 2);
  }
  const columns = widths.map((width, at) => {
    const fitted = Math.min(MAX_WIDTH, width);
    return `<col min="${at + 1}" max="${at + 1}" width="${fitted}" style="${TEXT}" customWidth="1"/>`;
  });
  return columns.length === 0 ? "" : `<cols>${columns.join("")}</cols>`;
}

/** Returns the width of a text in digits. East Asian characters count twice. */
function shownWidth(text: string): number {
  let width = 0;
  for (const letter of text.slice(0, MAX_WIDTH)) width += letter >= "\u1100" ? 2 : 1;
  return width;
}

function rowXml({ cells, marks = [] }: WrittenRow, row: number, style: number): string {
  const marked = new Set(marks.map(({ column }) => column));
  let xml = `<row r="${row + 1}">`;
  for (const [at, cell] of cells.entries()) {
    const isMarked = marked.has(at);
    if (cell === "" && !isMarked) continue;
    if (cell.length > MAX_CHARACTERS) throw tooMany(`more than ${thousands(MAX_CHARACTERS)} characters in a cell`);
    const about = `<c r="${lettersOf(at)}${row + 1}" s="${isMarked ? MARKED : style}"`;
    xml +=
      cell === "" ? `${about}/>` : `${about} t="inlineStr"><is><t xml:space="preserve">${escaped(cell)}</t></is></c>`;
  }
  return `${xml}</row>`;
}

function tooMany(what: string): FileError {
  return new FileError(`the file would have ${what}, which a workbook cannot hold`, "Save it as .csv instead.");
}

export function lettersOf(column: number): string {
  const [more, last] = [Math.floor(column / 26), String.fromCharCode(65 + (column % 26))];
  return more === 0 ? last : lettersOf(more - 1) + last;
}

const NAMED: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Characters that XML does not allow, and the carriage return, which XML readers change to a line feed. */
const NOT_IN_XML = /[^\P{Cc}\t\n]|[\ufffe\uffff]/gu;

/**
 * Escapes a text for XML. Characters that XML does not allow become codes such as `_x000D_`. A text that already looks
 * like such a code is escaped as well.
 */
export function escaped(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/_(?=x[0-9A-Fa-f]{4}_)/g, "_x005F_")
    .replaceAll(NOT_IN_XML, (one) => `_x${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}_`)
    .replaceAll(/[&<>"]/g, (one) => NAMED[one] ?? one);
}

function contentTypes(): string {
  const kind = "application/vnd.openxmlformats-officedocument.spreadsheetml";
  const parts = [
    ["/xl/workbook.xml", "sheet.main"],
    ["/xl/worksheets/sheet1.xml", "worksheet"],
    ["/xl/worksheets/sheet2.xml", "worksheet"],
    ["/xl/styles.xml", "styles"],
    ["/xl/comments1.xml", "comments"],
  ].map(([name, type]) => `<Override PartName="${name}" ContentType="${kind}.${type}+xml"/>`);
  return `${DECLARATION}<Types xmlns="${PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Default Extension="vml" ContentType="application/vnd.openxmlformats-officedocument.vmlDrawing"/>${parts.join("")}</Types>`;
}

function relations(all: readonly (readonly [id: string, type: string, target: string])[]): string {
  const each = all.map(([id, type, target]) => `<Relationship Id="${id}" Type="${type}" Target="${target}"/>`);
  return `${DECLARATION}<Relationships xmlns="${PACKAGE}/relationships">${each.join("")}</Relationships>`;
}

function workbookRelations(): string {
  return relations([
    ["rId1", `${OFFICE}/worksheet`, "worksheets/sheet1.xml"],
    ["rId2", `${OFFICE}/worksheet`, "worksheets/sheet2.xml"],
    ["rId3", `${OFFICE}/styles`, "styles.xml"],
  ]);
}

function sheetRelations(): string {
  return relations([
    ["rId1", `${OFFICE}/vmlDrawing`, "../drawings/vmlDrawing1.vml"],
    ["rId2", `${OFFICE}/comments`, "../comments1.xml"],
  ]);
}

/** Returns the XML of the list of sheets. A name that Excel would refuse is changed. */
function workbook(names: readonly [string, string], filters: readonly string[]): string {
  const [first, second] = names.map((name) => name.replaceAll(/[\\/?*[\]:]/g, " ").slice(0, 31));
  const shown = [first || "Options", second === first ? `${second?.slice(0, 29)} 2` : second];
  const sheets = shown.map(
    (name, at) => `<sheet name="${escaped(name ?? "")}" sheetId="${at + 1}" r:id="rId${at + 1}"/>`,
  );
  // Some programs show the buttons of a filter only if a defined name refers to the filter's range.
  const ranges = filters.map((range, at) => {
    const name = escaped((shown[at] ?? "").replaceAll("'", "''"));
    return `<definedName name="_xlnm._FilterDatabase" localSheetId="${at}" hidden="1">'${name}'!${range}</definedName>`;
  });
  return `${DECLARATION}<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}"><sheets>${sheets.join("")}</sheets><definedNames>${ranges.join("")}</definedNames></workbook>`;
}

function commentsXml(comments: readonly Comment[]): string {
  const all = comments.map(
    ({ row, column, comment }) =>
      `<comment ref="${lettersOf(column)}${row + 1}" authorId="0"><text><t xml:space="preserve">${escaped(comment)}</t></text></comment>`,
  );
  return `${DECLARATION}<comments xmlns="${MAIN}"><authors><author>targeting-mcp</author></authors><commentList>${all.join("")}</commentList></comments>`;
}

/** Returns the shapes of the comments, without which Excel does not show them. */
function drawing(comments: readonly Comment[]): string {
  const shapes = comments.map(
    ({ row, column }, at) =>
      `<v:shape id="_x0000_s${1025 + at}" type="#_x0000_t202" style="position:absolute;width:220pt;height:80pt;z-index:${at + 1};visibility:hidden" fillcolor="#ffffe1" o:insetmode="auto"><v:fill color2="#ffffe1"/><v:path o:connecttype="none"/><v:textbox style="mso-direction-alt:auto"/><x:ClientData ObjectType="Note"><x:MoveWithCells/><x:SizeWithCells/><x:Anchor>${column + 1},15,${row},2,${column + 5},15,${row + 5},4</x:Anchor><x:AutoFill>False</x:AutoFill><x:Row>${row}</x:Row><x:Column>${column}</x:Column></x:ClientData></v:shape>`,
  );
  return `<xml xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" xmlns:x="urn:schemas-microsoft-com:office:excel"><o:shapelayout v:ext="edit"><o:idmap v:ext="edit" data="1"/></o:shapelayout><v:shapetype id="_x0000_t202" coordsize="21600,21600" o:spt="202" path="m,l,21600r21600,l21600,xe"><v:stroke joinstyle="miter"/><v:path gradientshapeok="t" o:connecttype="rect"/></v:shapetype>${shapes.join("")}</xml>`;
}
