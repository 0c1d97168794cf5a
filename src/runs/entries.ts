import { parseJson } from "../platform/json.ts";
import { DamagedRunError, type StoredRun } from "./backend/store.ts";
import type { RunForm } from "./kind.ts";

/** What is kept of a run cannot be read; `holdsRemoved` says whether what it removed is whole. */
export function damaged(runId: string, holdsRemoved = false): DamagedRunError {
  const look =
    "It may have sent all, some or none of its requests, and it can be neither resumed nor undone. Look at the present " +
    "state with list_options, and make a new call for what is missing.";
  const removed =
    `What it was to remove is whole: read targeting://runs/${runId}/removed, and add what is missing again with ` +
    "bulk_add_options or update_contexts.";
  return new DamagedRunError(runId, holdsRemoved ? `${look} ${removed}` : look);
}

/**
 * A stored run as its kind understands it; undefined where it is of another kind. Throws a RunStoreError where its call
 * cannot be read; reading its entries throws one, too.
 */
export function understood<Call, Entry>(
  form: RunForm<Call, Entry>,
  { header, record, proposed, entries }: StoredRun,
): StoredRun<Call, Entry> | undefined {
  if (!isOfKind(form, header)) return undefined;
  const { runId } = header;
  const call = form.call.safeParse(header.call);
  if (!call.success) throw damaged(runId);
  const read = (lines: AsyncIterable<string>) => ({
    [Symbol.asyncIterator]: () => entriesIn(form, runId, lines),
  });
  return { header: { ...header, call: call.data }, record, proposed: read(proposed), entries: read(entries) };
}

/** Whether a run is of a kind. Headers of versions before name none: then the tool of the call decides. */
export function isOfKind(
  { name, tools }: Pick<RunForm<unknown, unknown>, "name" | "tools">,
  { kind, call }: StoredRun["header"],
): boolean {
  return kind === undefined ? tools.includes(toolOf(call) ?? "") : kind === name;
}

/** The tool of a call of any kind; undefined where the call names none. */
export function toolOf(call: unknown): string | undefined {
  return typeof call === "object" && call !== null && "tool" in call && typeof call.tool === "string"
    ? call.tool
    : undefined;
}

async function* entriesIn<Entry>(
  { entry }: Pick<RunForm<unknown, Entry>, "entry">,
  runId: string,
  lines: AsyncIterable<string>,
): AsyncGenerator<Entry> {
  for await (const line of lines) {
    const read = entry.safeParse(parseJson(line));
    if (!read.success) throw damaged(runId);
    yield read.data;
  }
}
