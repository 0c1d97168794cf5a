import type { WriteCall } from "../changes/call.ts";
import { fileOf } from "../changes/change-kinds.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import { contextRows, optionRows } from "../changes/rows/input-rows.ts";
import { type EventRun, isEventRun } from "../events/run/event-runs.ts";
import { type EventSource, readUncorrected } from "../events/run/source.ts";
import { type InputFile, isSheet } from "../files/input-file.ts";
import { originalText, type RowShape, rowsOf } from "../files/rows.ts";
import { FileError, undefinedIfFileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import type { Run } from "../runs/kind.ts";
import type { ReportedObject } from "../runs/outcome.ts";
import type { ToolContext } from "./define-tool.ts";

type GivenOf = ReadonlyMap<number, unknown>;

/** Returns what the caller sent for the objects that did not succeed. Objects whose input is not stored are missing. */
export async function originalItemsOf(run: Run, objects: readonly number[], context: ToolContext): Promise<GivenOf> {
  const wanted = objects.filter((object) => {
    const standing = run.state.standing(object);
    return standing !== "succeeded" && standing !== "alreadyDone" && standing !== "skipped";
  });
  if (wanted.length === 0) return new Map();
  // If the run failed because its file cannot be read, it has no items.
  if (isChangeRun(run)) return (await undefinedIfFileError(givenItems(run, wanted, context))) ?? new Map();
  return isEventRun(run) ? ((await undefinedIfFileError(givenEvents(run, wanted, context))) ?? new Map()) : new Map();
}

async function givenEvents(
  { header, state }: EventRun,
  wanted: readonly number[],
  { runs }: Pick<ToolContext, "runs">,
): Promise<GivenOf> {
  const { runId, call } = header;
  const given = new Map(await eventsAt({ kept: call.input.events, bytes: runs.part(runId, "input") }, wanted));
  const { file } = call.input.events;
  const open = new Set(wanted.filter((object) => !given.has(object)));
  if (file === undefined || open.size === 0) return given;
  // After the run, its failed events may be only in the part `rejects`, one row for each, in the order of the input.
  const { delimiter: _, ...sheet } = file.sheet ?? {};
  const rejects: InputFile = { ...file, format: isSheet(file) ? "csv" : "ndjson", encoding: "utf-8", sheet };
  const failed = failedObjects(state);
  let next = failed.next();
  const kept = { ...call.input.events, file: rejects };
  for await (const rows of readUncorrected({ kept, bytes: runs.part(runId, "rejects") })) {
    for (const { event, row = event } of rows) {
      if (next.done) return given;
      if (open.has(next.value)) given.set(next.value, row);
      next = failed.next();
    }
  }
  return given;
}

export async function eventsAt(source: EventSource, indexes: readonly number[]): Promise<GivenOf> {
  const given = new Map<number, unknown>();
  const open = new Set(indexes);
  if (open.size === 0) return given;
  try {
    for await (const batch of readUncorrected(source)) {
      for (const { index, event, row = event } of batch) {
        if (open.delete(index) && !isGone(row)) given.set(index, row);
      }
      if (open.size === 0) break;
    }
  } catch (thrown) {
    // If all events were deleted from the stored input, it is empty. Some formats then throw a FileError.
    if (!(thrown instanceof FileError)) throw thrown;
  }
  return given;
}

function isGone(event: unknown): boolean {
  const values: readonly unknown[] = typeof event === "object" && event !== null ? Object.values(event) : [];
  return values.length === 0 || (values.length === 1 && values[0] === "-");
}

function* failedObjects(state: EventRun["state"]): Generator<number> {
  for (let object = 0; object < state.objects.length; object += 1) {
    const isNotApplied = state.standing(object) === "notApplied" && state.reason(object)?.code === "NEEDS_FAILED";
    if (state.standing(object) === "failed" || isNotApplied) yield object;
  }
}

async function givenItems(
  { header, state }: ChangeRun,
  wanted: readonly number[],
  { runs }: Pick<ToolContext, "runs">,
): Promise<GivenOf> {
  const { call, runId } = header;
  const file = fileOf(call);
  const about = new Map<number, ReportedObject>();
  for (const object of wanted) {
    const place = state.objects.at(object);
    if (place !== undefined) about.set(object, place);
  }
  const indexes = new Set([...about.values()].map(({ index }) => index));
  const items =
    file === undefined ? itemsOf(call, indexes) : await itemsInFile(call, file, runs.part(runId, "input"), indexes);
  const given = new Map<number, unknown>();
  for (const [object, place] of about) {
    const item = items.get(place.index);
    if (item !== undefined) given.set(object, insideOf(item, place));
  }
  return given;
}

function itemsOf({ input }: WriteCall, indexes: ReadonlySet<number>): ReadonlyMap<number, unknown> {
  // The caller of a plan did not send its items. `get_run` shows them as the changes of the plan.
  if ("plannedBy" in input) return new Map();
  const items: readonly unknown[] =
    "items" in input ? input.items : [...(input.ids ?? []), ...("names" in input ? (input.names ?? []) : [])];
  return new Map([...indexes].map((index) => [index, items[index]]));
}

async function itemsInFile(
  call: WriteCall,
  file: InputFile,
  bytes: ByteSource,
  indexes: ReadonlySet<number>,
): Promise<ReadonlyMap<number, unknown>> {
  if (call.tool === "bulk_add_options") return rowsAt(bytes, file, optionRows, indexes);
  if (call.tool !== "update_contexts") return new Map();
  const rows = await rowsAt(bytes, file, contextRows, indexes);
  return new Map([...rows].map(([index, row]) => [index, withoutSplit(row)]));
}

function withoutSplit(row: unknown): unknown {
  if (typeof row !== "object" || row === null || !("split" in row)) return row;
  const { split: _, ...shown } = row;
  return shown;
}

/** Returns the items of rows. Rows of one item are merged. A row that cannot be read is returned as cells or text. */
async function rowsAt<Item>(
  bytes: ByteSource,
  file: InputFile,
  shape: RowShape<Item>,
  indexes: ReadonlySet<number>,
): Promise<ReadonlyMap<number, unknown>> {
  const given = new Map<number, unknown>();
  const byKey = new Map<string, Item>();
  for await (const rows of rowsOf(bytes, file, shape)) {
    for (const { index, content, raw } of rows) {
      const { key } = content;
      const before = key === undefined ? undefined : byKey.get(key);
      if ("reason" in content) {
        if (indexes.has(index)) given.set(index, typeof raw === "string" ? originalText(raw) : raw);
      } else if (before !== undefined) shape.merge(before, content.item);
      else if (indexes.has(index)) {
        given.set(index, content.item);
        if (key !== undefined) byKey.set(key, content.item);
      }
    }
  }
  return given;
}

function insideOf(item: unknown, { child, grandchild }: ReportedObject): unknown {
  const inner = child === undefined ? item : entryOf(item, ["children", "options"], child);
  return grandchild === undefined ? inner : entryOf(inner, ["children"], grandchild);
}

function entryOf(item: unknown, fields: readonly string[], position: number): unknown {
  if (typeof item !== "object" || item === null) return item;
  for (const [field, list] of Object.entries(item)) {
    if (fields.includes(field) && Array.isArray(list)) return list[position];
  }
  return item;
}
