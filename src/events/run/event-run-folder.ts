import { failedRows, rejectedRows } from "../../files/rejects.ts";
import type { ByteSource } from "../../platform/bytes.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Reason } from "../../runs/outcome.ts";
import { restingStatus, summaryOf } from "../../runs/report.ts";
import { type RunHeader, RunStoreError } from "../../runs/store.ts";
import type { Lease } from "../../runs/turn.ts";
import { eventRows } from "./event-rows.ts";
import type { EventRunStore } from "./event-run.ts";
import { ANSWER_LOST, type EventCall, type EventEntry, EventRunState } from "./event-run-state.ts";
import { eventsIn, objectOf, onlyKept } from "./event-source.ts";
import type { IndexedEvent } from "./send-events.ts";

/** A run as it is read back. */
export interface RunReadBack {
  readonly header: RunHeader<EventCall>;
  readonly state: EventRunState;
  /** What its journal should begin with, where that is empty; `state` knows it. */
  readonly begin?: EventEntry;
}

/** Of a run there is only its call: its server died before the events were kept, and none was sent. */
export class NothingKeptError extends RunStoreError {}

const SEND_ANEW = "Find out which of its events arrived, and send the others in another call.";

/**
 * A run as its journal tells it. One that died while it was started has an empty journal, and perhaps its events: then
 * nothing was sent, and it stands as one of which all events are left. Undefined where there is no run, or one that
 * another process is just starting. Throws a RunStoreError where nothing was kept that could be sent, or where the
 * journal is lost.
 */
export async function readBack(
  store: EventRunStore,
  runId: string,
  isLeased?: "driven here",
): Promise<RunReadBack | undefined> {
  const stored = await store.read(runId);
  if (stored === undefined) return undefined;
  const { header } = stored;
  const state = new EventRunState();
  for await (const entry of stored.entries) state.apply(entry);
  if (state.objects.length > 0) return { header, state };
  const begin = await beginAnew(store, header);
  if (begin === undefined && isLeased === undefined && (await store.isDriven(runId))) return undefined;
  if (begin === undefined) {
    throw new NothingKeptError(
      `run ${runId} was never started: its server ended before its events were kept, and nothing was sent`,
      "Make the call again.",
    );
  }
  state.apply(begin);
  return { header, state, begin };
}

/** The first line of the journal of a run whose journal is empty, by the events that were kept for it; if there are any. */
async function beginAnew(
  store: EventRunStore,
  { runId, call, createdAt }: RunHeader<EventCall>,
): Promise<EventEntry | undefined> {
  const { succeeded = 0, unknown = 0 } = (await store.summary(runId))?.counts ?? {};
  if (succeeded + unknown > 0) {
    throw new RunStoreError(`the journal of run ${runId} is lost: it cannot be resumed`, SEND_ANEW);
  }
  let items = 0;
  const kept = { kept: call.input.events, bytes: store.part(runId, "input") };
  if (await holdsAnything(kept.bytes)) for await (const batch of eventsIn(kept)) items += batch.length;
  return items > 0 ? { t: "begin", items, at: createdAt } : undefined;
}

/** What a run goes on with that is taken up again: what its journal takes first, and its state without that. */
export function takenUp(
  { header, state, begin }: RunReadBack,
  at: number,
): { readonly header: RunHeader<EventCall>; readonly state: EventRunState; readonly first: readonly EventEntry[] } {
  if (begin !== undefined) return { header, state: new EventRunState(), first: [begin] };
  const resend = header.call.input.onUnknown === "resend";
  return { header, state, first: [...lostIn(state), { t: "resume", resend, at }] };
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
  let kept = 0;
  for await (const batch of eventsIn({ kept: call.input.events, bytes: store.part(runId, "input") })) {
    kept += batch.length;
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
  const gone = state.objects.length - kept;
  if (gone > 0) throw new RunStoreError(`${gone} events of run ${runId} were not kept: they cannot be sent`, SEND_ANEW);
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
  if (seen === undefined || told?.updatedAt === seen.state.updatedAt) return;
  const lease = await store.lease(runId);
  if (lease === undefined) return;
  try {
    const found = await readBack(store, runId);
    if (found === undefined) return;
    // What was never started is removed after a while, but of this one there is something left to send.
    await store.start(runId);
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
