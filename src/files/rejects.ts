import { addTo } from "../platform/by-key.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { isJsonObject, parseJson } from "../platform/json.ts";
import type { Reason } from "../runs/outcome.ts";
import type { ReportedState } from "../runs/report.ts";
import { REASON_COLUMN } from "./columns.ts";
import { NO_VALUE } from "./damage.ts";
import { BYTE_ORDER_MARK, csvLine } from "./delimited.ts";
import type { InputFile } from "./input-file.ts";
import { type FailedObject, type FileRow, type RestRow, type RowContent, type RowShape, rowsOf } from "./rows.ts";

export interface Rejected {
  readonly failed: ReadonlyMap<number, readonly FailedObject[]>;
  /** Returns the sentence that explains a reason. */
  readonly words: (reason: Reason) => string | Promise<string>;
}

/** Yields the failed rows with their reasons: those of a sheet as CSV, others as NDJSON of only the failed parts. */
export async function* rejectedRows<Item>(
  bytes: ByteSource,
  file: InputFile,
  shape: RowShape<Item>,
  { failed, words }: Rejected,
): AsyncGenerator<string> {
  const owners = new Map<string, number>();
  let header: readonly string[] = [];
  let told = false;
  const read = rowsOf(bytes, file, shape, ({ cells }) => {
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
          yield `${JSON.stringify({ ...rest.row, [REASON_COLUMN]: await words(rest.reason) })}\n`;
        }
        continue;
      }
      const place = header.findIndex((cell) => cell.trim() === REASON_COLUMN);
      if (!told) yield BYTE_ORDER_MARK + csvLine(place < 0 ? [...header, REASON_COLUMN] : header);
      told = true;
      yield csvLine(withReason(raw, header.length, place, await words(first.reason)));
    }
  }
}

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
  const value = parseJson(text);
  return failed.map(({ reason }) => ({ row: isJsonObject(value) ? value : { row: text }, reason }));
}

function withReason(cells: readonly string[], columns: number, place: number, words: string): readonly string[] {
  const row = Array.from({ length: columns }, (_, at) => cells[at] ?? "").map((cell) =>
    cell === NO_VALUE ? "" : cell,
  );
  return place < 0 ? [...row, words] : row.with(place, words);
}

/** Returns the failed objects of a run by the index of their row, also those not sent because another one failed. */
export function failedRows(state: ReportedState): ReadonlyMap<number, readonly FailedObject[]> {
  const failed = new Map<number, FailedObject[]>();
  const counts = state.counts();
  if (counts.failed + counts.notApplied === 0) return failed;
  for (let object = 0; object < state.objects.length; object += 1) {
    const reason = state.reason(object);
    const standing = state.standing(object);
    if (reason === undefined) continue;
    if (standing !== "failed" && (standing !== "notApplied" || reason.code !== "NEEDS_FAILED")) continue;
    const about = state.objects.at(object);
    if (about === undefined) continue;
    addTo(failed, about.index, { about, reason });
  }
  return failed;
}
