import { extname } from "node:path";
import { bytesAt, digestOf } from "../platform/bytes.ts";
import { FileError } from "../platform/file-error.ts";
import { findFile } from "./folders.ts";
import { type BoundedUnit, withinLineLimit } from "./line-limit.ts";
import type { Format, OpenedFile } from "./rows.ts";
import type { Encoding } from "./text.ts";

const BY_ENDING: Readonly<Record<string, Format>> = {
  ".csv": "csv",
  ".ndjson": "ndjson",
  ".jsonl": "ndjson",
  ".json": "json",
};

/** What is bounded in a file of rows, by its format: what is held in memory at once. */
const UNITS: Readonly<Record<Format, BoundedUnit>> = { csv: "record", ndjson: "line", json: { jsonDepth: 1 } };

/** What decides which files may be read. */
export interface FileRules {
  /** Absolute paths of the folders that they may lie in. */
  readonly allowedDirs: readonly string[];
  /** The longest line or value, in bytes. */
  readonly maxLineBytes: number;
}

/**
 * Opens a file of rows that lies in an allowed folder. Throws a FileError where it may not be read, is not there, has
 * an unknown ending, or holds a line that is too long.
 */
export async function openFile(
  path: string,
  encoding: Encoding,
  { allowedDirs, maxLineBytes }: FileRules,
): Promise<OpenedFile> {
  const found = await findFile(path, allowedDirs);
  const format = formatOf(path);
  if (format === undefined) {
    throw new FileError(
      `${JSON.stringify(path)} has an ending that does not say what it holds`,
      "Name it .csv (a header and rows), .ndjson (one JSON object a line) or .json (one JSON array).",
    );
  }
  const bytes = bytesAt(found);
  let size = 0;
  const read = async function* (pieceBytes?: number): AsyncGenerator<Uint8Array> {
    for await (const chunk of withinLineLimit(bytes(pieceBytes), UNITS[format], maxLineBytes)) {
      size += chunk.length;
      yield chunk;
    }
  };
  const digest = await digestOf(read);
  return { file: { format, encoding, digest }, bytes, size };
}

/** The format that the ending of a file's name means; undefined for any other ending. */
export function formatOf(path: string): Format | undefined {
  return BY_ENDING[extname(path).toLowerCase()];
}
