import type { Clock } from "../api/clock.ts";
import type { ByteSource } from "../bulk/files/bytes.ts";
import { failedRows, rejectedRows } from "../bulk/files/rejects.ts";
import type { Lease } from "../bulk/lease.ts";
import { restingStatus, summaryOf } from "../bulk/report.ts";
import type { RunHeader, RunStore } from "../bulk/store.ts";
import type { Reason } from "../bulk/work.ts";
import { eventRows } from "./event-rows.ts";
import { ANSWER_LOST, type EventCall, type EventEntry, EventRunState } from "./event-run-state.ts";
import { eventsIn, objectOf, onlyKept } from "./event-source.ts";
import type { IndexedEvent } from "./send.ts";

type EventRunStore = RunStore<EventCall, EventEntry>;

/** A run as it is read back. */
export interface RunReadBack {
  readonly header: RunHeader<EventCall>;
  readonly state: EventRunState;
}

/** A run as its journal tells it; undefined when there is none, or it never began. */
export async function readBack(store: EventRunStore, runId: string): Promise<RunReadBack | undefined> {
  const stored = await store.read(runId);
  if (stored === undefined || !stored.started) return undefined;
  const state = new EventRunState();
  for await (const entry of stored.entries) state.apply(entry);
  return { header: stored.header, state };
}

/** After a crash the answers about events that had left are lost. */
export function lostIn(state: EventRunState): readonly EventEntry[] {
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

/**
 * The events of a run that have no outcome yet. Tells `record` of what is read for the first time, and that rows which
 * cannot be read as events failed.
 */
export async function* eventsToSend(
  store: EventRunStore,
  { runId, call }: RunHeader<EventCall>,
  state: EventRunState,
  { record, now }: { readonly record: (entry: EventEntry) => void; readonly now: () => number },
): AsyncGenerator<IndexedEvent> {
  if (state.counts().pending === 0) return;
  for await (const batch of eventsIn({ kept: call.input.events, bytes: store.part(runId, "input") })) {
    for (let from = 0; from < batch.length; from += READ_AT_ONCE) {
      const read = batch.slice(from, from + READ_AT_ONCE);
      const objects = read.filter(({ index }) => index >= state.described).map(objectOf);
      if (objects.length > 0) record({ t: "events", objects, at: now() });
      for (const { index, event, text, reason } of read) {
        if (state.standing(index) !== "pending") continue;
        if (reason === undefined) yield { index, event, text, isDoubted: state.isDoubted(index) };
        else record({ t: "settled", object: index, outcome: "failed", reason, attempts: 0, at: now() });
      }
    }
  }
}

/** How many events are described at once: a few, so that sending goes on in between. */
const READ_AT_ONCE = 100;

/** What bringing a run to rest needs. */
interface RestContext {
  readonly store: EventRunStore;
  /** Says in words why something failed, for reject files. */
  readonly words: (reason: Reason) => string;
}

/**
 * Keeps of a run at rest what may be needed: the rows of its file that failed, with their reasons, and of its events
 * those that may still have to be sent. Of the users of all others only hashes remain.
 */
export async function bringToRest(
  { store, words }: RestContext,
  header: RunHeader<EventCall>,
  state: EventRunState,
): Promise<void> {
  const { runId, call } = header;
  const { events, onUnknown } = call.input;
  const { file } = events;
  const bytes = store.part(runId, "input");
  const { pending, unattempted, unknown, failed } = state.counts();
  // Where a crash came between these steps, the events may be gone already.
  const isThere = await holdsAnything(bytes);
  if (isThere && file !== undefined && failed > 0) {
    await store.keep(runId, "rejects", rejectedRows(bytes, file, eventRows, { failed: failedRows(state), words }));
  }
  const left = pending + unattempted + (onUnknown === "resend" ? unknown : 0);
  const isKept = (object: number): boolean => {
    const standing = state.standing(object);
    // As long as anything is left the reject file is written again, from all that failed.
    if (standing === "failed") return file !== undefined;
    return standing === "pending" || standing === "unattempted" || (standing === "unknown" && onUnknown === "resend");
  };
  if (isThere) await store.keep(runId, "input", left > 0 ? onlyKept({ kept: events, bytes }, isKept) : nothing());
  await store.summarise(runId, { ...summaryOf(header, state, restingStatus(state)), open: left > 0 });
}

async function holdsAnything(bytes: ByteSource): Promise<boolean> {
  for await (const chunk of bytes()) if (chunk.length > 0) return true;
  return false;
}

async function* nothing(): AsyncGenerator<never> {}

/** Brings a run to rest that nobody drives, where another process left it behind at a crash. */
export async function tidyRun(context: RestContext, runId: string): Promise<void> {
  const { store } = context;
  const told = await store.summary(runId);
  if (told !== undefined && !told.open) return;
  const seen = await readBack(store, runId);
  // Where the journal is empty another process may be about to take the lease.
  if (seen === undefined || seen.state.objects.length === 0 || told?.updatedAt === seen.state.updatedAt) return;
  const lease = await store.lease(runId);
  if (lease === undefined) return;
  try {
    const found = await readBack(store, runId);
    if (found === undefined) return;
    for (const entry of lostIn(found.state)) found.state.apply(entry);
    await bringToRest(context, found.header, found.state);
  } finally {
    await lease.release();
  }
}

/** Ends a run as cancelled that was cut short, and that nobody drives: to be called with its lease. */
export async function cancelInterrupted(
  context: RestContext & { readonly clock: Clock },
  runId: string,
  lease: Lease,
): Promise<void> {
  const { store, clock } = context;
  const found = await readBack(store, runId);
  if (found === undefined) return;
  const { header, state } = found;
  const entries = [...lostIn(state)];
  for (const entry of entries) state.apply(entry);
  if (restingStatus(state) !== "interrupted") return;
  const stop: EventEntry = { t: "stop", cause: "cancelled", waitedMs: 0, at: clock.now() };
  const journal = await store.journal(runId, lease);
  try {
    for (const entry of [...entries, stop]) journal.append(entry);
    state.apply(stop);
  } finally {
    await journal.close();
  }
  await bringToRest(context, header, state);
}
