import type { Clock } from "../../platform/clock.ts";
import { FileError } from "../../platform/files.ts";
import { type ByteSource, unchanged } from "../../platform/held-folder.ts";
import type { ReadBack, RunAccess, RunExecution, RunForm, RunKind, StoredParts } from "../../runs/kind.ts";
import { ownReason } from "../../runs/outcome.ts";
import { DamagedRunError, NothingStoredError } from "../../runs/store.ts";
import { type EventWorld, sendPending } from "./drive.ts";
import {
  ANSWER_LOST,
  type EventCall,
  type EventEntry,
  EventRunState,
  eventCall,
  eventEntry,
  resendsUnknown,
} from "./run-state.ts";
import { countEvents, type EventCounts, type EventSource, eventsIn, filterEvents, rowsOfEvents } from "./source.ts";

/** The kind of runs that send events. A run is resumed with its `EventSource` to send unknown events again. */
export type EventKind = RunKind<EventCall, EventEntry, EventRunState, EventSource>;

/** Creates the kind of runs that send events. */
export function eventKind(world: EventWorld): EventKind {
  const { clock, words } = world;
  return {
    ...EVENT_FORM,
    newState: () => new EventRunState(),
    isPlannedFirst: false,
    recoversOrphans: true,
    readBack,
    async start(run, { counting }) {
      if (counting === undefined) await run.flush();
      // The journal of a started run must have its first entry before this. A run with an empty journal begins again.
      await run.markStarted();
      if (counting !== undefined) await begin(run, counting, clock);
      await sendPending(run, world);
    },
    async resume(run, again) {
      for (const entry of entriesAfterCrash(run.state)) run.record(entry);
      if (again !== undefined) await run.keep("input", unchanged(again.bytes, again.kept.digest));
      const resend = again !== undefined || resendsUnknown(run.header.call, run.state);
      run.record({ t: "resume", resend, at: clock.now() });
      await run.flush();
      await run.markStarted();
      await sendPending(run, world);
    },
    lost: entriesAfterCrash,
    stop: (ending, at) => ({ t: "stop", ...ending, waitedMs: 0, at }),
    finish: (run) => finish(run, words),
    isOpen: ({ call }, state) => leftOf(call, state) > 0,
    // Calls with the same event are the same call, whatever their `onUnknown`.
    identity: (call) => (call.tool === "track_event" ? { tool: call.tool, events: call.input.events } : call),
    isMeant: ({ open, status }, isRecent) => open && (status === "interrupted" || (status === "cancelled" && isRecent)),
  };
}

/** Creates the first journal entry of a run. */
export function beginOf({ items, skipped = 0 }: EventCounts, at: number): EventEntry {
  return { t: "begin", items, ...(skipped > 0 && { skipped }), at };
}

const NO_ROWS = { message: "there are no events to send", remedy: "Give a file with rows." };

/** Begins a run when its events are counted. A file that is unreadable or empty is recorded as one failed event. */
async function begin(
  run: RunExecution<EventCall, EventEntry, EventRunState>,
  counting: Promise<EventCounts>,
  clock: Pick<Clock, "now">,
): Promise<void> {
  const counted = await counting.catch((thrown: unknown) => {
    if (thrown instanceof FileError) return thrown;
    throw thrown;
  });
  if (!(counted instanceof FileError) && counted.items > 0) {
    run.record(beginOf(counted, clock.now()));
    return run.flush();
  }
  const { message, remedy } = counted instanceof FileError ? counted : NO_ROWS;
  const reason = ownReason("FILE_UNREADABLE", { effect: "file", message, remedy });
  run.record(beginOf({ items: 1 }, clock.now()));
  run.record({ t: "settled", object: 0, outcome: "failed", reason, attempts: 0, at: clock.now() });
  await run.flush();
}

/**
 * Restores a run from its journal. An empty journal means that the process died at the start: nothing was sent, and all
 * stored events are left. Throws a NothingKeptError without stored events, and a DamagedRunError for a lost journal.
 */
async function readBack(
  kept: StoredParts<EventCall, EventEntry>,
): Promise<ReadBack<EventEntry, EventRunState> | undefined> {
  const state = new EventRunState();
  for await (const entry of kept.entries) state.apply(entry);
  if (state.objects.length > 0) return { state };
  const { runId } = kept.header;
  const begin = await restoreBeginEntry(kept);
  if (begin !== undefined) {
    const begun = new EventRunState();
    begun.apply(begin);
    return { state: begun, first: [begin] };
  }
  if (await kept.isDriven()) return undefined;
  throw new NothingStoredError(
    `run ${runId} was never started: its server ended before its events were kept, and nothing was sent`,
    "Make the call again.",
  );
}

/** Creates the first journal entry of a run with an empty journal from its stored events, if any. */
async function restoreBeginEntry({
  header: { runId, call, createdAt },
  record: { rest },
  part,
}: StoredParts<EventCall, EventEntry>): Promise<EventEntry | undefined> {
  const { succeeded = 0, unknown = 0 } = rest?.counts ?? {};
  if (succeeded + unknown > 0) {
    throw new DamagedRunError(runId);
  }
  const kept = { kept: call.input.events, bytes: part("input") };
  const counts: EventCounts = (await hasBytes(kept.bytes)) ? await countEvents(eventsIn(kept)) : { items: 0 };
  return counts.items > 0 ? beginOf(counts, createdAt) : undefined;
}

/** Creates the entries for events that were sent before a crash and whose answers are lost. */
function entriesAfterCrash(state: EventRunState): readonly EventEntry[] {
  const { updatedAt: at } = state;
  return state.lost().map((object) => ({
    t: "settled",
    object,
    outcome: "unknown",
    reason: ANSWER_LOST,
    attempts: 1,
    afterCrash: true,
    at,
  }));
}

/** Returns how many events may still have to be sent. */
function leftOf(call: EventCall, state: EventRunState): number {
  const { pending, notApplied, unknown } = state.counts();
  return pending + notApplied + (resendsUnknown(call, state) ? unknown : 0);
}

/**
 * Stores what may still be needed of a finished run: the failed rows of its file with reasons, and the events that
 * failed, may still have to be sent, or have an unknown outcome. Users of other events remain only as hashes.
 */
async function finish(
  { header, state, part, keep }: RunAccess<EventCall, EventRunState>,
  words: EventWorld["words"],
): Promise<void> {
  const { events } = header.call.input;
  const { file } = events;
  const bytes = part("input");
  // After a crash between these steps, the events may already be deleted.
  if (!(await hasBytes(bytes))) return;
  const { failed, unknown } = state.counts();
  if (file !== undefined && failed > 0 && state.reason(0)?.code !== "FILE_UNREADABLE") {
    const { failedRows, rejectedRows } = await import("../../files/rejects.ts");
    await keep("rejects", rejectedRows(bytes, file, rowsOfEvents(events), { failed: failedRows(state), words }));
  }
  const hasLeft = leftOf(header.call, state) > 0;
  // Failed rows of a sheet are returned in their original form.
  const keepsFailed = file === undefined || file.format === "csv" || file.format === "xlsx";
  const isKept = (object: number): boolean => {
    const standing = state.standing(object);
    // Failed entries of other files are in the reject file. It is rewritten from all failures while events are left.
    if (standing === "failed") return hasLeft || keepsFailed;
    return standing === "pending" || standing === "notApplied" || standing === "unknown";
  };
  const keepsAny = hasLeft || unknown > 0 || (failed > 0 && keepsFailed);
  await keep("input", keepsAny ? filterEvents({ kept: events, bytes }, isKept) : nothing());
}

async function hasBytes(bytes: ByteSource): Promise<boolean> {
  for await (const chunk of bytes()) if (chunk.length > 0) return true;
  return false;
}

async function* nothing(): AsyncGenerator<never> {}

/** The name, tools and stored form of runs that send events. */
const EVENT_FORM: RunForm<EventCall, EventEntry> = {
  name: "events",
  tools: eventCall.shape.tool.options,
  call: eventCall,
  entry: eventEntry,
  line: (entry) => [JSON.stringify(entry)],
};
