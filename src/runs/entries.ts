import { parseJson } from "../platform/json.ts";
import { RunStoreError, type StoredRun } from "./backend/store.ts";
import type { RunForm } from "./kind.ts";

const START_ANEW = "Look at what was applied with list_options, and start anew.";

/** What is kept of a run cannot be read. */
export function damaged(runId: string): RunStoreError {
  return new RunStoreError(`what is kept of run ${runId} is damaged: it cannot be resumed`, START_ANEW);
}

/**
 * A stored run as its kind understands it; undefined where it is of another kind. Throws a RunStoreError where its call
 * cannot be read; reading its entries throws one, too.
 */
export function understood<Call, Entry>(
  form: RunForm<Call, Entry>,
  { header, started, proposed, entries }: StoredRun,
): StoredRun<Call, Entry> | undefined {
  if (!isOfKind(form, header)) return undefined;
  const { runId } = header;
  const call = form.call.safeParse(header.call);
  if (!call.success) throw damaged(runId);
  const read = (lines: AsyncIterable<string>) => ({
    [Symbol.asyncIterator]: () => entriesIn(form, runId, lines),
  });
  return { header: { ...header, call: call.data }, started, proposed: read(proposed), entries: read(entries) };
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

/** A damaged last line was cut off by a crash, and never took effect; a damaged line before it is an error. */
async function* entriesIn<Entry>(
  { entry }: Pick<RunForm<unknown, Entry>, "entry">,
  runId: string,
  lines: AsyncIterable<string>,
): AsyncGenerator<Entry> {
  let isDamaged = false;
  for await (const line of lines) {
    if (isDamaged) {
      throw new RunStoreError(`the journal of run ${runId} is damaged: it cannot be resumed`, START_ANEW);
    }
    const read = entry.safeParse(parseJson(line));
    if (read.success) yield read.data;
    else isDamaged = true;
  }
}
