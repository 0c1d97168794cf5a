import { pipeline, Readable } from "node:stream";
import type { CsvError } from "csv-parse";
import type { ByteSource } from "./bytes.ts";
import { FileError } from "./file-error.ts";
import type { Encoding } from "./text.ts";
import { textOf } from "./text.ts";

/** One record of a CSV file: the line on which it begins, counted from 1, and its cells. */
export interface CsvRecord {
  readonly line: number;
  readonly cells: readonly string[];
}

/** How many records travel together: one at a time would cost more than reading them. */
const BATCH = 512;

/**
 * The records of a CSV file in order, the header first; empty lines are passed over. Throws a FileError that names the
 * line where quotes do not match or bytes are not of the encoding.
 */
export async function* csvRecords(bytes: ByteSource, encoding: Encoding): AsyncGenerator<readonly CsvRecord[]> {
  const { CsvError, parse } = await import("csv-parse");
  const parser = parse({ relax_column_count: true });
  // What goes wrong on the way reaches the loop below, since the parser is destroyed with it.
  pipeline(Readable.from(textOf(bytes, encoding)), parser, () => undefined);
  let batch: CsvRecord[] = [];
  let line = 1;
  try {
    for await (const record of parser) {
      const cells: unknown = record;
      if (!isCells(cells)) continue;
      if (cells.length > 1 || cells[0] !== "") batch.push({ line, cells });
      line += 1 + newlinesInside(cells);
      if (batch.length < BATCH) continue;
      yield batch;
      batch = [];
    }
  } catch (thrown) {
    if (thrown instanceof CsvError) throw malformed(thrown);
    throw thrown;
  }
  yield batch;
}

function malformed(error: CsvError): FileError {
  const line = typeof error.lines === "number" ? error.lines : 1;
  return new FileError(
    `the quotes on line ${line} of the file do not match (${error.code})`,
    'A cell with a comma, a quote or a line break stands in quotes, and a quote inside it is doubled: "a ""b"", c".',
    { cause: error },
  );
}

function isCells(value: unknown): value is readonly string[] {
  return Array.isArray(value);
}

function newlinesInside(cells: readonly string[]): number {
  let count = 0;
  for (const cell of cells) {
    for (let at = cell.indexOf("\n"); at >= 0; at = cell.indexOf("\n", at + 1)) count += 1;
  }
  return count;
}
