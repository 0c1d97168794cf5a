import type { ByteSource } from "../platform/held-folder.ts";
import { trimContextId } from "../spec/names-and-contexts.ts";
import { composedHangul } from "./damage.ts";
import type { SheetRecord } from "./delimited.ts";
import { isArchive, textRecords } from "./sheet-rows.ts";
import { EncodingDetector } from "./text.ts";

export interface ListedContextId {
  readonly line: number;
  readonly id: string;
}

/** A delimiter that occurs in no text, so that each line is one cell. */
const NO_DELIMITER = "\0";

/** Reads the first cell of each line or row; there is no header. Throws a FileError. */
export async function listedContextIds(
  bytes: ByteSource,
  maxBytes: number | undefined,
): Promise<readonly ListedContextId[]> {
  const ids: ListedContextId[] = [];
  for await (const records of recordsOf(bytes, maxBytes)) {
    for (const { line, cells } of records) {
      const id = composedHangul(trimContextId(cells[0] ?? ""));
      if (id !== "") ids.push({ line, id });
    }
  }
  return ids;
}

async function* recordsOf(bytes: ByteSource, maxBytes: number | undefined): AsyncGenerator<readonly SheetRecord[]> {
  if (await isArchive(bytes)) {
    const { workbookRecords } = await import("./xlsx/workbook.ts");
    yield* workbookRecords(bytes, undefined);
    return;
  }
  const encodings = new EncodingDetector();
  for await (const chunk of bytes()) encodings.take(chunk);
  yield* textRecords(bytes, encodings.found(), { delimiter: NO_DELIMITER, maxBytes });
}
