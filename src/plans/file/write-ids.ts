import { headingOf } from "../../files/columns.ts";
import { BYTE_ORDER_MARK, recordsIn } from "../../files/delimited.ts";
import { openBytes } from "../../files/open-file.ts";
import { type SheetHeader, type SheetRow, sheetRows } from "../../files/sheet-rows.ts";
import { FileError } from "../../platform/files.ts";
import { bytesIn, wholeOf } from "../../platform/held-folder.ts";
import type { DesiredOption } from "./desired.ts";
import { jsonNodes } from "./json-nodes.ts";
import { type DesiredSource, readDesired } from "./read-desired.ts";
import { desiredRows } from "./sheet.ts";
import type { Entry, MapNode, Node } from "./tree.ts";

type Ids = ReadonlyMap<number, string>;

interface Splice {
  readonly at: number;
  readonly removed?: number;
  readonly text: string;
}

export type WrittenFile = Pick<DesiredSource, "format" | "path" | "sheet">;

/** Returns a file with the IDs of options in its rows. Throws a FileError if anything else would change. */
export async function withIds(bytes: Uint8Array, file: WrittenFile, ids: Ids): Promise<Uint8Array> {
  const before = await optionsOf(bytes, file);
  const spliced = await (file.format === "xlsx"
    ? workbookWithIds(bytes, file, idsByLine(before, ids))
    : textWithIds(Buffer.from(bytes).toString("utf8"), file, ids, idsByLine(before, ids)));
  const after = await optionsOf(spliced, file);
  const wanted = before.map((row, index) => ({ ...row, _id: ids.get(index) ?? row._id }));
  if (JSON.stringify(after.map(meaningOf)) === JSON.stringify(wanted.map(meaningOf))) return spliced;
  throw new FileError(
    "the new IDs cannot be written into the file, because the file is written in an unusual form",
    "Copy each _id from the results of the run into its row.",
  );
}

/** Reads the options of a desired state, without the files of Context IDs that it names. */
async function optionsOf(bytes: Uint8Array, file: WrittenFile): Promise<readonly DesiredOption[]> {
  return (await readDesired({ bytes, ...file, folder: undefined })).desired.options;
}

function meaningOf({ _id, name, parent, type, exposeChildren, contexts }: DesiredOption) {
  return { _id, name, parent, type, exposeChildren, contexts };
}

function idsByLine(options: readonly DesiredOption[], ids: Ids): Ids {
  return new Map([...ids].map(([row, id]) => [options[row]?.line ?? 0, id]));
}

async function textWithIds(text: string, file: WrittenFile, ids: Ids, byLine: Ids): Promise<Uint8Array> {
  if (text.includes("\uFFFD") || text.includes("\0")) {
    throw new FileError(
      "the new IDs can be written only into workbooks and into text files in UTF-8",
      "Save the file as .xlsx or CSV UTF-8, or copy each _id from the results of the run into its row.",
    );
  }
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
  const body = text.slice(mark.length);
  const splices = file.format === "csv" ? sheetSplices(body, file, byLine) : splicesOf(body, file.format, ids);
  return Buffer.from(mark + applied(body, await splices));
}

async function workbookWithIds(bytes: Uint8Array, file: WrittenFile, byLine: Ids): Promise<Uint8Array> {
  const { header, rows, sheet } = await rowsOf(bytes, file);
  const own = header.at("_id");
  const width = rows.reduce((most, { raw }) => Math.max(most, raw.length), header.cells.length);
  const column = own < 0 ? width : own;
  const cells = withTheirIds({ rows, header }, byLine).flatMap(({ line, id }) =>
    id === undefined ? [] : [{ line, column, text: id }],
  );
  const headed = own < 0 ? [{ line: header.line, column, text: headingOf("_id") }] : [];
  // Loaded only here, because only workbooks need this module.
  const { withCells } = await import("../../files/xlsx/edit-workbook.ts");
  return wholeOf(() => withCells(bytes, sheet.sheet, [...headed, ...cells]));
}

async function rowsOf(content: Uint8Array, { format, path = "", sheet = {} }: WrittenFile) {
  const bytes = bytesIn(content);
  const named = { path, format: format === "xlsx" ? format : "csv", maxLineBytes: undefined } as const;
  const { file } = await openBytes(bytes, named, sheet, desiredRows);
  const rows: SheetRow[] = [];
  const headers: SheetHeader[] = [];
  const read = sheetRows({ bytes, file, shape: desiredRows, withPlaces: true }, (found) => headers.push(found));
  for await (const batch of read) rows.push(...batch);
  const [header] = headers;
  if (header === undefined)
    throw new FileError("the sheet has no header", "Check whether the file was changed in the meantime.");
  return { rows, header, sheet: file.sheet ?? {} };
}

/** Adds IDs to the rows of a sheet. If each row has one Context ID, all rows of an option get its ID. */
function withTheirIds(
  { rows, header }: { readonly rows: readonly SheetRow[]; readonly header: SheetHeader },
  byLine: Ids,
): readonly (SheetRow & { readonly id: string | undefined })[] {
  const name = header.at("name");
  const oneARow = header.at("contextId") >= 0;
  const byName = new Map(rows.map((row) => [row.cells[name], byLine.get(row.line)] as const).filter(([, id]) => id));
  return rows.map((row) => ({ ...row, id: oneARow ? byName.get(row.cells[name]) : byLine.get(row.line) }));
}

async function splicesOf(text: string, format: DesiredSource["format"], ids: Ids): Promise<readonly Splice[]> {
  if (format === "ndjson") return ndjsonSplices(text, ids);
  const root = format === "json" ? jsonNodes(text) : await (await import("./yaml-nodes.ts")).yamlNodes(text);
  return [...optionsIn(root)].flatMap((map, row) => {
    const id = ids.get(row);
    const [first] = map.entries;
    return id === undefined || first === undefined ? [] : [mapSplice(text, map, first, id, format === "json")];
  });
}

/** Yields the options of a file in the order of their row numbers: each option, then its children. */
function* optionsIn(root: Node): Generator<MapNode> {
  for (const option of mapsIn(root, "options")) {
    yield option;
    yield* mapsIn(option, "children");
  }
}

function mapsIn(node: Node, key: string): readonly MapNode[] {
  const list = node.kind === "map" ? node.entries.find((entry) => entry.key === key)?.value : undefined;
  return list?.kind === "list" ? list.items.flatMap((item) => (item.kind === "map" ? [item] : [])) : [];
}

/**
 * Returns the text that inserts an ID before the first field of an option, and where to insert it. The ID gets its own
 * line if that field begins a line or the object has no braces.
 */
function mapSplice(text: string, { isFlow }: MapNode, { offset, column }: Entry, id: string, isJson: boolean): Splice {
  const start = text.lastIndexOf("\n", offset - 1) + 1;
  const before = text.slice(start, offset);
  const field = `${isJson ? '"_id"' : "_id"}: ${JSON.stringify(id)}`;
  if (isFlow && before.trim() !== "") return { at: offset, text: `${field}, ` };
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  const indent = isFlow ? before : " ".repeat(column - 1);
  return { at: offset, text: `${field}${isFlow ? "," : ""}${newline}${indent}` };
}

function ndjsonSplices(text: string, ids: Ids): readonly Splice[] {
  const splices: Splice[] = [];
  let row = 0;
  let start = 0;
  for (const [index, line] of text.split("\n").entries()) {
    const node = line.trim() === "" ? undefined : jsonNodes(line, index + 1);
    const first = node?.kind === "map" ? node.entries[0] : undefined;
    const isHead = node?.kind === "map" && node.entries.some(({ key }) => key === "version" || key === "targeting");
    if (first !== undefined && !isHead) {
      const id = ids.get(row);
      if (id !== undefined) splices.push({ at: start + first.offset, text: `"_id":${JSON.stringify(id)},` });
      row += 1;
    }
    start += line.length + 1;
  }
  return splices;
}

async function sheetSplices(text: string, file: WrittenFile, byLine: Ids): Promise<readonly Splice[]> {
  const { rows, header, sheet } = await rowsOf(Buffer.from(text), file);
  const { delimiter = "," } = sheet;
  const column = header.at("_id");
  const headed = recordsIn(text, { delimiter, withPlaces: true }).find(({ line }) => line === header.line)?.places?.[0];
  if (headed === undefined) return [];
  const splices: Splice[] = column < 0 ? [{ at: headed.start, text: `_id${delimiter}` }] : [];
  for (const { id, places = [] } of withTheirIds({ rows, header }, byLine)) {
    const [start] = places;
    const last = places.at(-1);
    const cell = places[column];
    if (start === undefined || last === undefined) continue;
    if (column < 0) splices.push({ at: start.start, text: `${id ?? ""}${delimiter}` });
    else if (id !== undefined && cell !== undefined) {
      splices.push({ at: cell.start, removed: cell.end - cell.start, text: id });
    } else if (id !== undefined) {
      splices.push({ at: last.end, text: `${delimiter.repeat(column - places.length + 1)}${id}` });
    }
  }
  return splices;
}

function applied(text: string, splices: readonly Splice[]): string {
  const parts: string[] = [];
  let from = 0;
  for (const { at, removed = 0, text: added } of splices) {
    parts.push(text.slice(from, at), added);
    from = at + removed;
  }
  return [...parts, text.slice(from)].join("");
}
