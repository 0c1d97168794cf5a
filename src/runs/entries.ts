import { parseJson } from "../platform/json.ts";
import type { RunForm } from "./kind.ts";
import { DamagedRunError, type KeptOfDamaged, type StoredRun } from "./store.ts";

/** The error about a run of which only this can be read. */
export function damaged(runId: string, kept: KeptOfDamaged = {}): DamagedRunError {
  const sent = "It may have sent all, some or none of its requests, and it cannot be resumed";
  const look = "Look at the present state with list_options, and make a new call for what is missing.";
  const remedy = kept.holdsRemoved
    ? `${sent}. What it was to remove is whole (targeting://runs/${runId}/removed): undo_run {"runId":"${runId}"} plans to ` +
      "bring back what of it is missing now."
    : `${sent} or undone. ${look}`;
  return new DamagedRunError(runId, remedy, kept);
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
