import { BYTE_ORDER_MARK } from "../../files/csv-text.ts";
import { recordsIn } from "../../files/delimited.ts";
import { openBytes } from "../../files/open-file.ts";
import { type SheetHeader, type SheetRow, sheetRows } from "../../files/sheet-rows.ts";
import { FileError } from "../../platform/files.ts";
import { jsonNodes } from "./json-nodes.ts";
import type { Entry, MapNode, Node } from "./node.ts";
import { type ReadFormat, readDesired } from "./read-desired.ts";
import { desiredRows } from "./sheet.ts";

/** Text that goes in at a place, for so much that goes out. */
interface Splice {
  readonly at: number;
  readonly removed?: number;
  readonly text: string;
}

/**
 * Puts `_id`s into a file that was read without problems, by the position of the row among its options; everything else
 * stays to the letter, comments included. Throws a FileError where the result would not mean the same.
 */
export async function withIds(text: string, format: ReadFormat, ids: ReadonlyMap<number, string>): Promise<string> {
  if (format === "xlsx" || text.includes("\uFFFD") || text.includes("\0")) {
    throw new FileError(
      "the new IDs can be written only into text files of UTF-8",
      "Save the file as CSV UTF-8, or write each _id into its row by hand, as the results of the run name them.",
    );
  }
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
  const body = text.slice(mark.length);
  const spliced = mark + applied(body, await splicesOf(body, format, ids));
  const [before, after] = await Promise.all([meaningOf(text, format), meaningOf(spliced, format)]);
  const wanted = before.map((row, index) => ({ ...row, _id: ids.get(index) ?? row._id }));
  if (JSON.stringify(after) === JSON.stringify(wanted)) return spliced;
  throw new FileError(
    "the new IDs cannot be written into the file, since it is written in a way that is not understood",
    "Write each _id into its row by hand, as the results of the run name them.",
  );
}

async function splicesOf(
  text: string,
  format: ReadFormat,
  ids: ReadonlyMap<number, string>,
): Promise<readonly Splice[]> {
  if (format === "csv") return sheetSplices(text, ids);
  if (format === "ndjson") return ndjsonSplices(text, ids);
  const root = format === "json" ? jsonNodes(text) : await (await import("./yaml-nodes.ts")).yamlNodes(text);
  return [...optionsIn(root)].flatMap((map, row) => {
    const [id, first] = [ids.get(row), map.entries[0]];
    return id === undefined || first === undefined ? [] : [mapSplice(text, map, first, id, format === "json")];
  });
}

/** The objects of options in the order of rows: each before its children. */
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
 * In front of the first field: on a line of its own where that one begins a line, or where the object has no braces.
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

function ndjsonSplices(text: string, ids: ReadonlyMap<number, string>): readonly Splice[] {
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

async function sheetSplices(text: string, ids: ReadonlyMap<number, string>): Promise<readonly Splice[]> {
  const bytes = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from(text);
  };
  const { file } = await openBytes(bytes, { path: "", format: "csv", maxLineBytes: undefined }, {}, desiredRows);
  const delimiter = file.sheet?.delimiter ?? ",";
  const rows: SheetRow[] = [];
  let header: SheetHeader | undefined;
  const read = sheetRows({ bytes, file, shape: desiredRows, withPlaces: true }, (found) => {
    header = found;
  });
  for await (const batch of read) rows.push(...batch);
  const column = header?.at("_id") ?? -1;
  const headed = recordsIn(text, { delimiter, withPlaces: true }).find(({ line }) => line === header?.line)
    ?.places?.[0];
  if (headed === undefined) return [];
  const splices: Splice[] = column < 0 ? [{ at: headed.start, text: `_id${delimiter}` }] : [];
  for (const [row, { places = [] }] of rows.entries()) {
    const id = ids.get(row);
    const [start, last, cell] = [places[0], places.at(-1), places[column]];
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

/** What a file means, row by row, without places. Files of Context IDs are left alone. */
async function meaningOf(text: string, format: ReadFormat) {
  const { desired } = await readDesired({ bytes: Buffer.from(text), format, folder: undefined });
  return desired.options.map(({ _id, name, parent, type, exposeChildren, contexts }) => {
    return { _id, name, parent, type, exposeChildren, contexts };
  });
}
