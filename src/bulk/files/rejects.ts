import type { RunState } from "../run-state.ts";
import type { Reason } from "../work.ts";
import type { ByteSource } from "./bytes.ts";
import { BYTE_ORDER_MARK, csvLine } from "./csv-text.ts";
import { type FileRow, type InputFile, REASON_COLUMN, type RowShape, rowsOf } from "./rows.ts";

/**
 * The rows of a file that failed, each with why, in a form that is read again once it is mended: CSV stays CSV, anything
 * else becomes NDJSON.
 */
export async function* rejectedRows<Item>(
  bytes: ByteSource,
  file: InputFile,
  shape: RowShape<Item>,
  { failed, words }: Rejected,
): AsyncGenerator<string> {
  const owners = new Map<string, number>();
  let header: readonly string[] = [];
  let told = false;
  const read = rowsOf(bytes, file, shape, (cells) => {
    header = cells;
  });
  for await (const rows of read) {
    for (const row of rows) {
      const { content, index } = row;
      const owner = "reason" in content ? index : ownerOf(row, owners);
      const reason = ("reason" in content ? content.reason : undefined) ?? failed.get(index) ?? failed.get(owner);
      if (reason === undefined) continue;
      if (typeof row.raw === "string") yield `${rejectedJson(row.raw, words(reason))}\n`;
      else {
        const place = header.findIndex((cell) => cell.trim() === REASON_COLUMN);
        if (!told) yield BYTE_ORDER_MARK + csvLine(place < 0 ? [...header, REASON_COLUMN] : header);
        told = true;
        yield csvLine(withReason(row.raw, header.length, place, words(reason)));
      }
    }
  }
}

/** Why the items under an index failed, and how that is told. */
export interface Rejected {
  readonly failed: ReadonlyMap<number, Reason>;
  readonly words: (reason: Reason) => string;
}

/** The index under which a row's item is reported: that of the first row with the same key. */
function ownerOf<Item>({ index, content: { key } }: FileRow<Item>, owners: Map<string, number>): number {
  if (key === undefined) return index;
  const owner = owners.get(key) ?? index;
  owners.set(key, owner);
  return owner;
}

function withReason(cells: readonly string[], columns: number, place: number, words: string): readonly string[] {
  const row = Array.from({ length: Math.max(columns, place < 0 ? 0 : place + 1) }, (_, at) => cells[at] ?? "");
  if (place < 0) return [...row, words];
  return row.with(place, words);
}

function rejectedJson(text: string, words: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return JSON.stringify({ ...value, [REASON_COLUMN]: words });
    }
  } catch {
    // What is no JSON is given back as it stood.
  }
  return JSON.stringify({ [REASON_COLUMN]: words, row: text });
}

/** Why the items of a run failed, by the index of their row; rows whose item waits for another to be mended too. */
export function failedRows(state: RunState): ReadonlyMap<number, Reason> {
  const failed = new Map<number, Reason>();
  state.objects.forEach(({ index }, object) => {
    const reason = state.reason(object);
    if (reason === undefined || failed.has(index)) return;
    const standing = state.standing(object);
    if (standing === "failed" || (standing === "unattempted" && reason.code === "NEEDS_FAILED")) {
      failed.set(index, reason);
    }
  });
  return failed;
}
