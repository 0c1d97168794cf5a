import type { ParseError, ParseResult } from "papaparse";
import type { ByteSource } from "../platform/bytes.ts";
import { FileError } from "../platform/file-error.ts";
import type { Encoding } from "./text.ts";
import { textOf } from "./text.ts";

/** One record of a CSV file: the line on which it begins, counted from 1, and its cells. */
export interface CsvRecord {
  readonly line: number;
  readonly cells: readonly string[];
}

/**
 * The records of a CSV file in order, the header first; an empty line is a record of one empty cell. Throws a FileError
 * that names the line where quotes do not match or bytes are not of the encoding.
 */
export async function* csvRecords(bytes: ByteSource, encoding: Encoding): AsyncGenerator<readonly CsvRecord[]> {
  // Not papaparse's `parse`: that keeps its last result in memory, its Parser does not.
  const { Parser } = (await import("papaparse")).default;
  let line = 1;
  for await (const text of wholeRecords(textOf(bytes, encoding))) {
    const parsed: ParseResult<string[]> = new Parser({ delimiter: ",", newline: "\n" }).parse(text, 0, false);
    const read = recordsIn(text, line, parsed);
    line = read.nextLine;
    yield read.records;
  }
}

/** The records of a text that begins on a line, and the line on which the next text begins. */
function recordsIn(
  text: string,
  from: number,
  { data, errors }: ParseResult<string[]>,
): { readonly records: readonly CsvRecord[]; readonly nextLine: number } {
  const faulty = errors.find(({ type }) => type === "Quotes");
  const isQuoted = text.includes('"');
  const hasReturns = text.includes("\r");
  const records: CsvRecord[] = [];
  let line = from;
  // After the last line break the parser sees one more, empty line.
  const isClosed = text.endsWith("\n");
  for (let row = 0; row < data.length; row += 1) {
    const cells = data[row] ?? [];
    if (faulty?.row === row) throw malformed(faulty, line);
    if (hasReturns) withoutReturn(cells);
    if (!isClosed || row < data.length - 1) records.push({ line, cells });
    line += isQuoted ? 1 + newlinesInside(cells) : 1;
  }
  if (faulty !== undefined) throw malformed(faulty, line);
  return { records, nextLine: isClosed ? line - 1 : line };
}

/** Cuts a text where a record ends, so that each piece can be parsed by itself: at line breaks outside of quotes. */
async function* wholeRecords(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let begun: string[] = [];
  let quoted = false;
  for await (const text of texts) {
    let end = 0;
    for (let from = 0; from < text.length; ) {
      const quote = text.indexOf('"', from);
      const to = quote < 0 ? text.length : quote;
      const newline = quoted ? -1 : text.slice(from, to).lastIndexOf("\n");
      if (newline >= 0) end = from + newline + 1;
      if (quote >= 0) quoted = !quoted;
      from = to + 1;
    }
    if (end > 0) {
      yield begun.join("") + text.slice(0, end);
      begun = [];
    }
    if (end < text.length) begun.push(text.slice(end));
  }
  if (begun.length > 0) yield begun.join("");
}

/** Lines may end with a carriage return too. */
function withoutReturn(cells: string[]): void {
  const last = cells.length - 1;
  const cell = cells[last];
  if (cell?.endsWith("\r")) cells[last] = cell.slice(0, -1);
}

function malformed({ code }: ParseError, line: number): FileError {
  return new FileError(
    `the quotes on line ${line} of the file do not match (${code})`,
    'A cell with a comma, a quote or a line break stands in quotes, and a quote inside it is doubled: "a ""b"", c".',
  );
}

function newlinesInside(cells: readonly string[]): number {
  let count = 0;
  for (const cell of cells) {
    for (let at = cell.indexOf("\n"); at >= 0; at = cell.indexOf("\n", at + 1)) count += 1;
  }
  return count;
}
