import { extname } from "node:path";
import { bytesAt, digestOf } from "../platform/bytes.ts";
import { FileError } from "../platform/file-error.ts";
import { findFile } from "./folders.ts";
import type { Format, OpenedFile } from "./rows.ts";
import type { Encoding } from "./text.ts";

const BY_ENDING: Readonly<Record<string, Format>> = {
  ".csv": "csv",
  ".ndjson": "ndjson",
  ".jsonl": "ndjson",
  ".json": "json",
};

/**
 * Opens a file of rows that lies in an allowed folder. Throws a FileError where it may not be read, is not there, or
 * has an unknown ending.
 */
export async function openFile(path: string, encoding: Encoding, allowedDirs: readonly string[]): Promise<OpenedFile> {
  const found = await findFile(path, allowedDirs);
  const format = formatOf(path);
  if (format === undefined) {
    throw new FileError(
      `${JSON.stringify(path)} has an ending that does not say what it holds`,
      "Name it .csv (a header and rows), .ndjson (one JSON object a line) or .json (one JSON array).",
    );
  }
  const bytes = bytesAt(found);
  return { file: { format, encoding, digest: await digestOf(bytes) }, bytes };
}

/** The format that the ending of a file's name means; undefined for any other ending. */
export function formatOf(path: string): Format | undefined {
  return BY_ENDING[extname(path).toLowerCase()];
}
