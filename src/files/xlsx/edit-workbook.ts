import { parser } from "sax";
import { addTo } from "../../platform/by-key.ts";
import { FileError } from "../../platform/files.ts";
import { bytesIn, wholeOf } from "../../platform/held-folder.ts";
import { columnOf } from "./sheet.ts";
import { partOfSheet } from "./workbook.ts";
import { escaped, lettersOf, zipped } from "./write-workbook.ts";

export interface CellText {
  readonly line: number;
  readonly column: number;
  readonly text: string;
}

interface Splice {
  readonly at: number;
  readonly removed: number;
  readonly text: string;
}

const MAX_PART_BYTES = 268_435_456;

/** Writes texts into cells, and removes the stored ranges of filled cells. Throws a FileError if a row is missing. */
export async function* withCells(
  packed: Uint8Array,
  sheet: string | undefined,
  cells: readonly CellText[],
): AsyncGenerator<Uint8Array> {
  const { archive, part } = await partOfSheet(bytesIn(packed), sheet);
  const names = archive.names.filter((name) => !name.endsWith("/"));
  yield* zipped(
    names.map((name) => {
      const bytes = archive.part(name, MAX_PART_BYTES);
      return [name, name === part ? edited(bytes, cells) : bytes];
    }),
  );
}

async function* edited(bytes: AsyncGenerator<Uint8Array>, cells: readonly CellText[]): AsyncGenerator<string> {
  const xml = (await wholeOf(() => bytes)).toString("utf8");
  let from = 0;
  for (const { at, removed, text } of splicesOf(xml, cells)) {
    yield xml.slice(from, at) + text;
    from = at + removed;
  }
  yield xml.slice(from);
}

function splicesOf(xml: string, cells: readonly CellText[]): readonly Splice[] {
  const wanted = new Map<number, CellText[]>();
  for (const cell of cells.toSorted((a, b) => a.column - b.column)) addTo(wanted, cell.line, cell);
  const splices: Splice[] = [];
  const reader = parser(true, { position: true });
  let line = 0;
  let column = 0;
  let open: CellText[] = [];
  let replaced: (Splice & { readonly depth: number }) | undefined;
  let depth = 0;
  reader.onopentag = ({ name, attributes, isSelfClosing }) => {
    depth += 1;
    const [start, end] = [reader.startTagPosition - 1, reader.position];
    const attribute = (of: string): string => String(attributes[of] ?? "");
    const prefix = name.slice(0, name.indexOf(":") + 1);
    switch (name.slice(prefix.length)) {
      case "dimension":
        // A new cell may be outside the stored range of filled cells, so the range is removed. Programs then find it
        // themselves.
        if (isSelfClosing) splices.push({ at: start, removed: end - start, text: "" });
        break;
      case "row": {
        line = Math.max(line + 1, Number(attribute("r")) || 0);
        column = 0;
        open = wanted.get(line) ?? [];
        if (open.length === 0) break;
        wanted.delete(line);
        const tag = xml.slice(start, end).replace(/\sspans="[^"]*"/, "");
        const whole = `${tag.slice(0, -2)}>${open.map((cell) => cellXml(cell, prefix)).join("")}</${name}>`;
        splices.push({ at: start, removed: end - start, text: isSelfClosing ? whole : tag });
        if (isSelfClosing) open = [];
        break;
      }
      case "c": {
        const letters = /^[A-Z]{1,3}/.exec(attribute("r"))?.[0];
        if (letters !== undefined) column = columnOf(letters);
        while (open[0] !== undefined && open[0].column < column) insert(open.shift(), start, prefix);
        const [here] = open;
        if (here?.column === column) {
          open.shift();
          replaced = { at: start, removed: 0, text: cellXml(here, prefix, attribute("s")), depth };
        }
        column += 1;
      }
    }
  };
  const insert = (cell: CellText | undefined, at: number, prefix: string): void => {
    if (cell !== undefined) splices.push({ at, removed: 0, text: cellXml(cell, prefix) });
  };
  reader.onclosetag = (name) => {
    if (replaced?.depth === depth) {
      const { at, text } = replaced;
      splices.push({ at, removed: reader.position - at, text });
      replaced = undefined;
    }
    depth -= 1;
    const prefix = name.slice(0, name.indexOf(":") + 1);
    if (name.slice(prefix.length) !== "row") return;
    while (open.length > 0) insert(open.shift(), reader.startTagPosition - 1, prefix);
  };
  reader.onerror = (thrown) => {
    throw thrown;
  };
  reader.write(xml).close();
  const [missing] = wanted.keys();
  if (missing === undefined) return splices;
  throw new FileError(`the sheet has no row ${missing}`, "Save the workbook again in a spreadsheet program.");
}

function cellXml({ line, column, text }: CellText, prefix: string, style = ""): string {
  const format = style === "" ? "" : ` s="${style}"`;
  const content = `<${prefix}is><${prefix}t>${escaped(text)}</${prefix}t></${prefix}is>`;
  return `<${prefix}c r="${lettersOf(column)}${line}"${format} t="inlineStr">${content}</${prefix}c>`;
}
