import { FileError } from "../platform/files.ts";
import {
  type ColumnsArgument,
  HEADINGS,
  type Header,
  hasHeading,
  headingOf,
  plainHeading,
  REASON_COLUMN,
  type ValidColumns,
  withoutNumber,
} from "./columns.ts";
import { likelyMapping } from "./likely-mapping.ts";

/**
 * Headings of product lists that may mean the names of options. They count only if the sheet otherwise lacks a required
 * name, and those in PRODUCTS only if it also has Context IDs.
 */
const PRODUCT_NAMES = [
  ...["product name", "item name", "article name", "상품명", "제품명", "품목명"],
  ...["Artikelbezeichnung", "Artikelname", "Produktbezeichnung", "Produktname"],
];
const PRODUCTS = ["product", "item", "상품", "제품", "Artikel", "Produkt"];

/** The headings of result columns that this program adds to sheets. They are ignored when the sheet is read again. */
const WRITTEN = new Set(["Result", "Problem", "How to fix", REASON_COLUMN].map(plainHeading));

export const HEADER_WITHIN = 100;

/**
 * How certain the meaning of a heading is. The most certain comes first: mapped by the caller, the name of a column,
 * another accepted heading, a heading with a note, and the headings of PRODUCT_NAMES and PRODUCTS.
 */
const [MAPPED, NAMED, ALIASED, NOTED, PRODUCT_NAMED, PRODUCT] = [0, 1, 2, 3, 4, 5];

/** Matches the notes beside a heading, as in "1. Option (required)" and "[필수] 옵션명". */
const NOTES = /^\s*\d{1,2}[.)]\s*|^\s*[[【(（][^\]】)）]*[\]】)）]|[(（【].*[)）】]\s*$/gsu;

interface Reading {
  readonly column: string;
  readonly rank: number;
}

/** Returns a function that finds the column for a heading. Throws a FileError if the caller maps an unknown column. */
function readingOf({ columns, spelt = () => undefined }: ValidColumns, mapped: ColumnsArgument) {
  const known = new Map<string, Reading>();
  if (columns.includes("name")) {
    for (const heading of PRODUCTS) known.set(plainHeading(heading), { column: "name", rank: PRODUCT });
    for (const heading of PRODUCT_NAMES) known.set(plainHeading(heading), { column: "name", rank: PRODUCT_NAMED });
  }
  for (const column of columns.toReversed()) {
    for (const alias of HEADINGS[column] ?? []) known.set(plainHeading(alias), { column, rank: ALIASED });
  }
  for (const column of columns.toReversed()) {
    for (const name of [headingOf(column), column]) known.set(plainHeading(name), { column, rank: NAMED });
  }
  for (const [given, heading] of Object.entries(mapped)) {
    if (heading === "") continue;
    const column = known.get(plainHeading(given))?.column;
    if (column === undefined) {
      throw new FileError(
        `the argument columns maps ${JSON.stringify(given)}, which is not a column`,
        known.has(plainHeading(heading)) ? turnedWords([[given, heading]]) : validWords(columns),
      );
    }
    for (const [plain, reading] of known) {
      if (reading.rank === MAPPED || reading.column !== column) continue;
      known.delete(plain);
    }
    known.set(plainHeading(heading), { column, rank: MAPPED });
  }
  // If the caller chooses a column of Context IDs, only this one is read, even if others have its heading with a
  // number.
  const isChosen = [...known.values()].some(({ column, rank }) => rank === MAPPED && CONTEXTS.includes(column));
  return (heading: string, plain = plainHeading(heading)): Reading | undefined => {
    if (plain === "") return undefined;
    const found = known.get(plain);
    if (found !== undefined) return found;
    const numbered = isChosen ? undefined : known.get(withoutNumber(plain));
    if (numbered !== undefined && CONTEXTS.includes(numbered.column)) return numbered;
    const right = spelt(heading.trim());
    if (right !== undefined) return { column: right, rank: ALIASED };
    const bare = heading.replaceAll(NOTES, "");
    const noted = bare === heading ? undefined : known.get(plainHeading(bare));
    return noted && noted.rank <= ALIASED ? { ...noted, rank: NOTED } : undefined;
  };
}

const CONTEXTS: readonly string[] = ["contextId", "contexts"];

interface Omission {
  readonly given: string;
  readonly plain: string;
  /**
   * The columns that `given` names. Empty if it is only a heading of the file. If it names a column of Context IDs,
   * both columns of Context IDs.
   */
  readonly columns: readonly string[];
}

function omissionsIn(mapped: ColumnsArgument, read: ReturnType<typeof readingOf>): readonly Omission[] {
  return Object.keys(mapped).flatMap((given) => {
    if (mapped[given] !== "") return [];
    const column = read(given)?.column;
    const columns = column === undefined ? [] : CONTEXTS.includes(column) ? CONTEXTS : [column];
    return [{ given, plain: plainHeading(given), columns }];
  });
}

/**
 * Returns a function that finds the omission with which the caller excluded a heading. The omission names this heading,
 * or its column.
 */
function omitter(cells: readonly string[], omissions: readonly Omission[], read: ReturnType<typeof readingOf>) {
  const headings = new Set(cells.map(plainHeading));
  return (heading: string): Omission | undefined => {
    const plain = plainHeading(heading);
    const column = read(heading)?.column ?? "";
    const isOut = (one: Omission): boolean =>
      one.plain === plain || (!headings.has(one.plain) && one.columns.includes(column));
    return plain === "" ? undefined : omissions.find(isOut);
  };
}

/**
 * Returns a function that says whether a cell could be the heading of a known column. `plain` is the plain form of the
 * cell.
 */
export function headingTest(
  shape: ValidColumns,
  mapped: ColumnsArgument = {},
): (cell: string, plain: string) => boolean {
  const read = readingOf(shape, mapped);
  return (cell, plain) => read(cell, plain) !== undefined;
}

/** Returns a function that reads a row as a header. Throws a FileError if the caller maps an unknown column. */
export function headerReader(shape: ValidColumns, mapped: ColumnsArgument = {}): (cells: readonly string[]) => Header {
  const read = readingOf(shape, mapped);
  const omissions = omissionsIn(mapped, read);
  return (cells) => {
    const omissionOf = omitter(cells, omissions, read);
    const out = omissions.length === 0 ? [] : cells.map(omissionOf);
    const found = cells.map((cell, at) => (out[at] === undefined ? read(cell) : undefined));
    const has = (column: string): boolean => found.some((one) => one?.column === column && one.rank <= NOTED);
    const isNeeded = shape.required.some((group) => group.includes("name") && !group.some(has));
    const worst = !isNeeded ? NOTED : has("contexts") || has("contextId") ? PRODUCT : PRODUCT_NAMED;
    const readings = found.map((one) => (one !== undefined && one.rank <= worst ? one : undefined));
    const best = new Map<string, number>();
    for (const reading of readings) {
      if (reading !== undefined) best.set(reading.column, Math.min(reading.rank, best.get(reading.column) ?? worst));
    }
    const hasIds = CONTEXTS.some((column) => (best.get(column) ?? NOTED) < NOTED);
    const names = readings.map((reading) => {
      if (reading === undefined || reading.rank !== best.get(reading.column)) return "";
      return reading.rank === NOTED && hasIds && CONTEXTS.includes(reading.column) ? "" : reading.column;
    });
    const positions = new Map(names.map((name, at) => [name ?? "", at] as const).toReversed());
    const ignored = cells.flatMap((cell, at) => {
      const isRead = names[at] !== "" && names[at] !== undefined;
      return isRead || plainHeading(cell) === "" || WRITTEN.has(plainHeading(cell)) ? [] : [cell.trim()];
    });
    positions.delete("");
    const contexts = CONTEXTS.find((column) => positions.has(column));
    return {
      at: (column) => positions.get(column) ?? -1,
      names: names.map((name) => name ?? ""),
      contextsAt: names.flatMap((name, at) => (name !== undefined && name === contexts ? [at] : [])),
      ignored,
      omitted: ignored.filter((heading) => omissionOf(heading) !== undefined),
      omitsContexts: cells.some((cell, at) => out[at] !== undefined && CONTEXTS.includes(read(cell)?.column ?? "")),
      absent: omissions.filter((one) => !out.includes(one)).map(({ given }) => given),
      unfound: Object.entries(mapped).filter(([, heading]) => heading !== "" && !hasHeading(cells, heading)),
    };
  };
}

export function isWhole(header: Header, { required }: ValidColumns): boolean {
  return required.every((group) => group.some((column) => header.at(column) >= 0));
}

/** Returns how many known columns a header has. "Targeting" does not count: it may also stand above other headings. */
export function columnCount({ names }: Header): number {
  return names.filter((name) => name !== "" && name !== "targeting").length;
}

/** Returns how well a row can be read as a header: by its known columns, and then by whether it has Context IDs. */
function headerRank(header: Header): number {
  return 2 * columnCount(header) + Math.min(header.contextsAt.length, 1);
}

/**
 * Returns a header on two lines as one row of headings; undefined if the two rows are not such a header. A cell that is
 * merged across columns has its text only in the first of them.
 */
export function headerOfTwo(
  upper: readonly string[],
  lower: readonly string[],
  read: (cells: readonly string[]) => Header,
  shape: ValidColumns,
): readonly string[] | undefined {
  let across = "";
  const cells = Array.from({ length: Math.max(upper.length, lower.length) }, (_, at) => {
    const [above = "", below = ""] = [upper[at], lower[at]];
    across = above.trim() === "" ? across : above;
    if (below.trim() === "") return above;
    const both = `${across} ${below}`;
    return plainHeading(above) !== plainHeading(below) && columnCount(read([both])) > 0 ? both : below;
  });
  const header = read(cells);
  const most = Math.max(headerRank(read(upper)), headerRank(read(lower)));
  return isWhole(header, shape) && headerRank(header) > most ? cells : undefined;
}

/**
 * Throws a FileError if a required column is missing, if a column occurs twice (except numbered Context IDs), if the
 * argument `columns` names a heading that the header does not have, or if `isStrict` is set and a column is unknown.
 */
export function checkHeader(
  header: Header,
  { cells, line }: { readonly cells: readonly string[]; readonly line: number },
  shape: ValidColumns,
): void {
  const { columns, required, isStrict, nearest } = shape;
  const firstOf = new Map<string, string>();
  const seen = new Set<string>();
  const twice = header.names.find((name, at) => {
    if (name === "") return false;
    const heading = plainHeading(cells[at] ?? "");
    const base = withoutNumber(heading);
    const isTwice = seen.has(`${name} ${heading}`) || (firstOf.get(name) ?? base) !== base;
    firstOf.set(name, firstOf.get(name) ?? base);
    seen.add(`${name} ${heading}`);
    return isTwice;
  });
  if (twice !== undefined) {
    const headings = cells.filter((_, at) => header.names[at] === twice);
    throw new FileError(
      `${listed(headings)} on line ${line} of the file are all read as the column ${twice}`,
      new Set(headings.map(plainHeading)).size === 1
        ? CONTEXTS.includes(twice)
          ? "Put the Context IDs of an option into one cell under the heading Context IDs, separated by |. If these are tables side by side, save each as a file of its own."
          : "Delete all but one of them, or give the others another heading. If these are tables side by side, save each as a file of its own."
        : `Leave one of them out, or choose one: columns ${JSON.stringify({ [twice]: headings[0]?.trim() })}.`,
    );
  }
  const shown = cells.map((cell) => cell.trim().slice(0, LONGEST_HEADING)).filter((cell) => cell !== "");
  const { absent, unfound } = header;
  if (absent.length + unfound.length > 0) {
    const isAbsent = absent.length > 0;
    const names = listed(isAbsent ? absent : unfound.map(([, heading]) => heading));
    const isTurned =
      !isAbsent && unfound.every(([given, column]) => hasHeading(cells, given) && columns.includes(column));
    throw new FileError(
      `the argument columns ${isAbsent ? "leaves out" : "names"} ${names}, but the header on line ${line} of the file has no such column; nothing was sent`,
      isTurned
        ? turnedWords(unfound)
        : `Its headings: ${listed(shown.slice(0, SHOWN_HEADINGS))}. ${isAbsent ? "Leave one of them out" : "Name one of them"}, or remove ${names} from columns.`,
    );
  }
  const ignored = header.ignored.filter((heading) => !header.omitted.includes(heading));
  if (isStrict === true && ignored.length > 0) {
    const twin = ignored.find((heading) => header.at(heading) >= 0);
    if (twin !== undefined) {
      const headings = listed([cells[header.at(twin)] ?? "", twin]);
      throw new FileError(`${headings} on line ${line} of the file are both the column ${twin}`, "Delete one of them.");
    }
    const free = columns.filter((column) => header.at(column) < 0);
    const hints = ignored.slice(0, 5).flatMap((heading) => {
      const meant = nearest?.(heading, free);
      const named = JSON.stringify(heading);
      return meant === undefined
        ? []
        : [`${named}: did you mean ${meant}? If so, give columns {"${meant}":${named}}. `];
    });
    throw new FileError(
      `unknown ${ignored.length === 1 ? "column" : "columns"} ${listed(ignored.slice(0, 5))} on line ${line} of the file`,
      `${hints.join("")}To leave ${ignored.length === 1 ? "it" : "them"} out, give columns ` +
        `${JSON.stringify(Object.fromEntries(ignored.slice(0, 5).map((heading) => [heading, ""])))}. ${validWords(columns)}`,
    );
  }
  const missing = required.find((group) => !group.some((column) => header.at(column) >= 0));
  if (missing === undefined) return;
  const [only = "", ...others] = shown;
  const inside = only.replaceAll('"', "").split(/[,;|\t\r\n]|\s{2,}/);
  if (others.length === 0 && inside.length > 1 && isWhole(headerReader(shape)(inside), shape)) {
    throw new FileError(
      `line ${line} of the file is a single cell with all headings: ${JSON.stringify(only)}`,
      "Either each whole line of the file is in quotation marks, or spaces separate the columns. Export the data again as .xlsx, or as CSV with a comma, semicolon or tab between the cells.",
    );
  }
  const likely = likelyMapping(header, shown, shape);
  const words = missing.map((column) => (headingOf(column) === column ? column : `${column} ("${headingOf(column)}")`));
  throw new FileError(
    `the file has no column for ${words.join(" or ")}; its header was read from line ${line}: ${listed(shown.slice(0, SHOWN_HEADINGS))}`,
    (likely === undefined
      ? `${mappingWords(missing[0] ?? "", header, columns)} ` +
        `If the sheet has no headings, insert a row of them: ${headingsFor(required)}. ` +
        (shown.length > 1 && columnCount(header) === 0 && columns.includes("parentName")
          ? "If each column is a group, write a row for each option instead, with its Option and its Group. "
          : "")
      : `If this mapping is right, give it: columns ${JSON.stringify(likely)}. ${unmappedWords(likely, header, columns)}`) +
      validWords(columns),
  );
}

/** The columns that a second table beside the first may have in common with it. */
const SHARED = ["parentName", ...CONTEXTS];

/**
 * Throws a FileError if the sheet may have two tables side by side: the columns before an empty one are a complete
 * table, and a column after it has a heading of Context IDs or groups. A column that the caller maps is accepted.
 * `empty`: the indexes of the empty columns.
 */
export function checkOneTable(
  header: Header & { readonly cells: readonly string[]; readonly line: number },
  empty: ReadonlySet<number>,
  { required }: ValidColumns,
  mapped: ColumnsArgument = {},
): void {
  const { cells, names, line } = header;
  const gap = [...empty].find((at) => at > 1 && !empty.has(at - 1) && !empty.has(at - 2)) ?? 0;
  const isTable = required.every((group) => group.some((one) => header.at(one) >= 0 && header.at(one) < gap));
  const given = new Set(Object.values(mapped).map(plainHeading));
  const at = names.findIndex(
    (name, column) => column > gap && SHARED.includes(name) && !given.has(plainHeading(cells[column] ?? "")),
  );
  const [heading, name] = [cells[at]?.trim() ?? "", names[at] ?? ""];
  if (gap === 0 || at < 0 || !isTable) return;
  throw new FileError(
    `${listed([heading])} on line ${line} of the file is to the right of an empty column, so it may belong to another table; nothing was sent`,
    `If it belongs to this table, give columns ${JSON.stringify({ [name]: heading })}. If not, leave it out: columns ${JSON.stringify({ [name]: "" })}.`,
  );
}

/**
 * Returns a text with the headings that a suggested mapping does not use, if the mapping has no column of Context IDs.
 */
function unmappedWords(likely: Readonly<Record<string, string>>, header: Header, columns: readonly string[]): string {
  const isRead = (column: string): boolean => column in likely || header.at(column) >= 0;
  const mapped = new Set(Object.values(likely));
  const left = header.ignored.filter((heading) => !mapped.has(heading)).slice(0, SHOWN_HEADINGS);
  const hasIds = !columns.includes("contextId") || isRead("contextId") || isRead("contexts");
  if (left.length === 0 || hasIds) return "";
  return `This mapping reads no Context IDs. If one of the other headings means contextId, parentName or another column, map it in the same argument: ${listed(left)}. `;
}

/**
 * Returns a text on how to map headings to columns. If the sheet has no column of Context IDs, the text includes this
 * optional column, whose values would otherwise be ignored.
 */
function mappingWords(missing: string, header: Header, columns: readonly string[]): string {
  const isWithoutIds = columns.includes("contextId") && header.at("contextId") < 0 && header.at("contexts") < 0;
  if (!isWithoutIds || missing === "contextId" || missing === "contexts") {
    return `Map the heading to the column: columns ${JSON.stringify({ [missing]: "HEADING" })}.`;
  }
  const both = JSON.stringify({ [missing]: "HEADING", contextId: "HEADING" });
  return `Map the headings to the columns: columns ${both} if each row has one Context ID; "contexts" instead of "contextId" if a cell has several.`;
}

/**
 * Throws a FileError if the headings of a sheet are in the first column instead of a row. `firsts` are the cells of
 * that column.
 */
export function checkNotTransposed(
  firsts: readonly string[],
  header: Header | undefined,
  read: (cells: readonly string[]) => Header,
  shape: ValidColumns,
): void {
  const down = read(firsts);
  const known = columnCount(down);
  const isAcross =
    header !== undefined && (columnCount(header) > 1 || header.names[0] === "" || header.names.length === 1);
  if (isAcross || known < 2 || known * 2 <= firsts.length || !isWhole(down, shape)) return;
  const found = firsts.filter((_, at) => down.names[at] !== "");
  throw new FileError(
    `the sheet is transposed: its headings (${listed(found.slice(0, SHOWN_HEADINGS))}) are in its first column, and its rows are columns`,
    "Swap its rows and columns: copy the sheet, and paste it with Paste Special, Transpose. Then save the file, and give it again.",
  );
}

const REQUIREMENT = "required|mandatory|optional|필수|선택|Pflichtfeld|erforderlich";
const TYPE = "text|string|number|integer|boolean|varchar|list|텍스트|문자열?|숫자|목록|Zahl|Liste";
const EXAMPLE = /^\(?(?:(?:example|예시?|Beispiel)\s*:|e\. ?g\.|z\. ?B\.|ex\.)\s*\S/i;
/**
 * Matches a cell that explains what its column may contain, as in templates ("required: max. 36 characters"). No option
 * can have such a name, because the pattern ends with a sign that names cannot contain.
 */
const RULE = new RegExp(`^(?:${REQUIREMENT}|${TYPE})\\s*[,:;(\\[/]`, "i");
const REQUIRED = new RegExp(`^[(*]*(?:${REQUIREMENT})[)*]*$`, "i");
const TYPE_OR_REQUIRED = new RegExp(
  `^(?:[(*]*(?:${REQUIREMENT})(?:[)*]*|\\s*[,:;(].*)|(?:${TYPE})(?:[(\\[].*)?)$`,
  "i",
);

/**
 * Matches a cell of the line that SQL clients and Markdown draw below the header, or an empty cell in it. In sheets
 * with results, such a cell begins with an apostrophe, because it would otherwise look like a formula.
 */
const RULER = /^(?:'?[:|=+-]{3,})?$/;

/**
 * Returns whether a row only explains the columns, as in templates, so that it is skipped: with rules, an example,
 * types, "required" or a drawn line. Also returns true for the last line of a header on several lines, if it repeats
 * the headings of the name and of another column because their cells are merged downwards.
 */
export function isHintRow(
  cells: readonly string[],
  { names, at, cells: headings }: Header & { readonly cells: readonly string[] },
): boolean {
  if (cells.every((cell) => RULER.test(cell.trim()))) return true;
  const isRepeated = (cell: string, column: number): boolean =>
    names[column] !== "" && cell.trim() !== "" && ` ${headings[column]?.trim()}`.endsWith(` ${cell.trim()}`);
  if (isRepeated(cells[at("name")] ?? "", at("name")) && cells.filter(isRepeated).length > 1) return true;
  const name = (cells[at("name")] ?? "").trim();
  if (EXAMPLE.test(name) || RULE.test(name)) return true;
  const filled = cells.flatMap((cell, column) => (names[column] === "" || cell.trim() === "" ? [] : [cell.trim()]));
  const isClear = filled.some((cell) => EXAMPLE.test(cell) || (RULE.test(cell) && /[([]/.test(cell)));
  const isRequired = filled.length > 1 && filled.some((cell) => REQUIRED.test(cell));
  return (isClear || isRequired) && filled.every((cell) => EXAMPLE.test(cell) || TYPE_OR_REQUIRED.test(cell));
}

/**
 * Returns the index of a column in `fillDown`, by its name or heading. Throws a FileError if the sheet does not have
 * it.
 */
export function positionOf(
  column: string,
  header: Pick<Header, "names"> & { readonly cells: readonly string[] },
): number {
  const plain = plainHeading(column);
  const at = header.names.findIndex(
    (name, position) =>
      name !== "" &&
      [name, headingOf(name), header.cells[position] ?? ""].some((heading) => plainHeading(heading) === plain),
  );
  if (at >= 0) return at;
  throw new FileError(
    `fillDown names ${JSON.stringify(column)}, but the file has no such column`,
    `Columns that were read: ${header.names.filter((name) => name !== "").join(", ")}.`,
  );
}

function headingsFor(required: ValidColumns["required"]): string {
  return listed(required.flatMap(([column]) => (column === undefined ? [] : [headingOf(column)])));
}

const SHOWN_HEADINGS = 12;
const LONGEST_HEADING = 60;

function turnedWords(mapped: readonly (readonly [string, string])[]): string {
  const turned = Object.fromEntries(mapped.map(([heading, column]) => [column, heading]));
  return `Give it the other way round, column first: columns ${JSON.stringify(turned)}.`;
}

function validWords(columns: readonly string[]): string {
  return `Valid columns: ${columns.join(", ")}.`;
}

export function listed(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(", ");
}
