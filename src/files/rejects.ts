import type { ByteSource } from "../platform/bytes.ts";
import type { Reason } from "../runs/outcome.ts";
import type { ReportedState } from "../runs/report.ts";
import { BYTE_ORDER_MARK, csvLine } from "./csv-text.ts";
import {
  type FailedObject,
  type FileRow,
  type InputFile,
  REASON_COLUMN,
  type RestRow,
  type RowContent,
  type RowShape,
  rowsOf,
} from "./rows.ts";

/** What failed, by the index of its row, and how that is told. */
export interface Rejected {
  readonly failed: ReadonlyMap<number, readonly FailedObject[]>;
  readonly words: (reason: Reason) => string;
}

/**
 * The rows of a file that failed, each with why, in a form that is read again once it is mended: CSV stays CSV, anything
 * else becomes NDJSON, where a row keeps only what of it failed.
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
      const { raw, content } = row;
      const objects = failedIn(row, failed, owners);
      const [first] = objects;
      if (first === undefined) continue;
      if (typeof raw === "string") {
        for (const rest of restOf(raw, content, objects, shape)) {
          yield `${JSON.stringify({ ...rest.row, [REASON_COLUMN]: words(rest.reason) })}\n`;
        }
        continue;
      }
      const place = header.findIndex((cell) => cell.trim() === REASON_COLUMN);
      if (!told) yield BYTE_ORDER_MARK + csvLine(place < 0 ? [...header, REASON_COLUMN] : header);
      told = true;
      yield csvLine(withReason(raw, header.length, place, words(first.reason)));
    }
  }
}

/** What failed of a row: the row itself, or the item that it belongs to, which is reported under its first row. */
function failedIn<Item>(
  { index, content }: FileRow<Item>,
  failed: Rejected["failed"],
  owners: Map<string, number>,
): readonly FailedObject[] {
  if ("reason" in content) return [{ about: { index }, reason: content.reason }];
  const { key } = content;
  const owner = (key === undefined ? undefined : owners.get(key)) ?? index;
  if (key !== undefined) owners.set(key, owner);
  return failed.get(index) ?? failed.get(owner) ?? [];
}

function restOf<Item>(
  text: string,
  content: RowContent<Item>,
  failed: readonly FailedObject[],
  shape: RowShape<Item>,
): readonly RestRow[] {
  if ("item" in content) return shape.rest(content.item, failed);
  return failed.map(({ reason }) => ({ row: objectIn(text) ?? { row: text }, reason }));
}

/** What is no JSON object is given back as it stood. */
function objectIn(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function withReason(cells: readonly string[], columns: number, place: number, words: string): readonly string[] {
  const row = Array.from({ length: columns }, (_, at) => cells[at] ?? "");
  return place < 0 ? [...row, words] : row.with(place, words);
}

/** What failed in a run, and what was not attempted because of that, by the index of its row. */
export function failedRows(state: ReportedState): ReadonlyMap<number, readonly FailedObject[]> {
  const failed = new Map<number, FailedObject[]>();
  const counts = state.counts();
  if (counts.failed + counts.unattempted === 0) return failed;
  for (let object = 0; object < state.objects.length; object += 1) {
    const reason = state.reason(object);
    const standing = state.standing(object);
    if (reason === undefined) continue;
    if (standing !== "failed" && (standing !== "unattempted" || reason.code !== "NEEDS_FAILED")) continue;
    const about = state.objects.at(object);
    if (about === undefined) continue;
    const before = failed.get(about.index);
    if (before === undefined) failed.set(about.index, [{ about, reason }]);
    else before.push({ about, reason });
  }
  return failed;
}
