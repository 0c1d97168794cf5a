import { isApiError, NotSentError } from "../../api/errors.ts";
import type { EventApi } from "../../api/events.ts";
import type { Clock } from "../../platform/clock.ts";
import { HeldBackError } from "../../platform/fence.ts";
import type { RunExecution } from "../../runs/kind.ts";
import type { Reason } from "../../runs/outcome.ts";
import { RunStoreError } from "../../runs/store.ts";
import { type Intent, requestFence, SEND_WINDOW_MS, type Turn } from "../../runs/turn.ts";
import type { Verdict } from "../catalogue.ts";
import { type EventCall, type EventEntry, type EventRunState, settledEntry } from "./run-state.ts";
import { type IndexedEvent, sendEvents } from "./send.ts";
import { eventsIn, objectOf } from "./source.ts";
import { type EventSettlement, type EventVerdict, endReason, verdictOf } from "./verdicts.ts";

/** The services that runs of events need, in addition to those of all runs. */
export interface EventWorld {
  readonly api: EventApi;
  readonly clock: Clock;
  /** The maximum time for retries of one event, in milliseconds. */
  readonly retryBudgetMs: number;
  readonly words: (reason: Reason) => string;
  /** Looks up the verdict on an event that was just accepted; absent if verdicts cannot be observed. */
  readonly observe?: (event: unknown) => Promise<Verdict | undefined>;
}

/** A run of events that this process executes. */
export type DrivenEvents = RunExecution<EventCall, EventEntry, EventRunState>;

const PROGRESS_INTERVAL = 100;
/** The number of events in one journal line. It is small, because requests are sent between two lines. */
const READ_AT_ONCE = 100;

/** The remedy for a run that cannot be resumed. */
const SEND_AGAIN_REMEDY = "Find out which of its events arrived, and send the others in another call.";

/** Sends the remaining events of a run, and records their outcomes. */
export async function sendPending(run: DrivenEvents, world: EventWorld): Promise<void> {
  const { clock, retryBudgetMs } = world;
  const { header, lease } = run;
  const api = fencedEvents(world.api, lease, () => clock.monotonic());
  const { record, settle, flush, end } = recorder(run, clock);
  let settled = 0;
  const look = async (object: number, settlement: EventSettlement, event: unknown): Promise<void> => {
    const verdict = await observedVerdict(world, event, settlement);
    if (verdict !== undefined) record({ t: "predicted", object, verdict, at: clock.now() });
  };
  const sending = sendEvents(remainingEvents(run, { record, now: clock.now }), {
    api,
    clock,
    onUnknown: run.state.isResent ? "resend" : header.call.input.onUnknown,
    retryBudgetMs,
    signal: run.signal,
    async beforeSend(objects) {
      record({ t: "leave", objects, at: clock.now() });
      // If another process has claimed the run, announced events must not leave this one.
      await flush().finally(() => lease.lost.aborted && run.stop("interrupted"));
      await run.mayLeave();
    },
    onSettled(object, settlement, event) {
      // These events get their outcome from the `stop` entry.
      if (settlement.reason === "stopped" || settlement.reason === "runEnded") return;
      settle(settledEntry(object, settlement, clock.now()));
      settled += 1;
      if (settled % PROGRESS_INTERVAL === 0) run.progress();
      return header.call.tool === "track_event" ? look(object, settlement, event) : undefined;
    },
  });
  const { counts, ended } = await sending.finally(end);
  // The process that has claimed the run records how it stops.
  lease.lost.throwIfAborted();
  const stopped = run.signal.aborted ? run.cause() : "finished";
  record({
    t: "stop",
    cause: ended === undefined ? stopped : "ended",
    ...(ended !== undefined && { reason: endReason(ended) }),
    waitedMs: counts.waitedMs,
    at: clock.now(),
  });
  run.progress();
}

/**
 * Yields the events without an outcome. Calls `record` for events that are read for the first time, and for rows that
 * are not events.
 */
async function* remainingEvents(
  { header: { runId, call }, state, part }: DrivenEvents,
  { record, now }: { readonly record: (entry: EventEntry) => void; readonly now: () => number },
): AsyncGenerator<IndexedEvent> {
  if (state.counts().pending === 0) return;
  let kept = 0;
  for await (const batch of eventsIn({ kept: call.input.events, bytes: part("input") })) {
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
  if (gone > 0)
    throw new RunStoreError(
      `${gone} events of run ${runId} were not stored, so they cannot be sent`,
      SEND_AGAIN_REMEDY,
    );
}

/** Returns the sandbox's verdict on an event; undefined if it cannot be observed. */
async function observedVerdict(
  { observe }: EventWorld,
  event: unknown,
  { outcome, predicted, observed }: EventSettlement,
): Promise<EventVerdict | undefined> {
  if (observe === undefined || outcome !== "succeeded" || observed !== undefined) return undefined;
  try {
    const seen = await observe(event);
    return seen && verdictOf(predicted, seen);
  } catch (thrown) {
    // The event was sent, so its outcome counts even if its verdict cannot be read.
    if (isApiError(thrown)) return undefined;
    throw thrown;
  }
}

/** Writes the journal entries of a run of events, with many outcomes in one line. */
interface EventRecorder {
  readonly record: (entry: EventEntry) => void;
  /** Records the outcome of an event. It is on the disk within 100 ms, unless the disk is slow. */
  readonly settle: (entry: EventEntry) => void;
  readonly flush: () => Promise<void>;
  readonly end: () => void;
}

/** How long outcomes wait to be written together, in milliseconds. The write itself also takes time. */
const SETTLED_WAIT_MS = 50;

/** Creates a recorder that writes one line for many events that were simply accepted. */
function recorder(run: RunExecution<EventCall, EventEntry, EventRunState>, clock: Clock): EventRecorder {
  const ended = new AbortController();
  let accepted: number[] = [];
  /** The time of the first outcome that is not on the disk yet. */
  let settledAt: number | undefined;
  let isWatched = false;
  const writeAccepted = (): void => {
    if (accepted.length > 0) run.append({ t: "accepted", objects: accepted, at: clock.now() });
    accepted = [];
  };
  run.beforeReport(writeAccepted);
  const record = (entry: EventEntry): void => {
    writeAccepted();
    run.record(entry);
  };
  /** Writes the waiting outcomes after their wait, unless another write included them. */
  const writeInTime = async (): Promise<void> => {
    isWatched = true;
    while (settledAt !== undefined) {
      const left = settledAt + SETTLED_WAIT_MS - clock.now();
      if (left > 0) {
        await sleepUntilAborted(ended.signal, clock, left);
        if (ended.signal.aborted) return;
        continue;
      }
      writeAccepted();
      settledAt = undefined;
      // An error of this write is thrown by the next flush.
      run.write();
    }
    isWatched = false;
  };
  return {
    record,
    settle(entry) {
      settledAt ??= clock.now();
      if (!isWatched) void writeInTime();
      if (!isSimplyAccepted(entry)) return record(entry);
      accepted.push(entry.object);
      run.state.apply(entry);
    },
    flush() {
      writeAccepted();
      settledAt = undefined;
      return run.flush();
    },
    end() {
      ended.abort();
      writeAccepted();
    },
  };
}

async function sleepUntilAborted(stopped: AbortSignal, clock: Clock, ms: number): Promise<void> {
  try {
    await clock.sleep(ms, stopped);
  } catch (thrown) {
    if (!stopped.aborted) throw thrown;
  }
}

type Settled = Extract<EventEntry, { readonly t: "settled" }>;

/** Returns whether an entry only states that an event was accepted at the first attempt. */
function isSimplyAccepted(entry: EventEntry): entry is Settled {
  if (entry.t !== "settled" || entry.outcome !== "succeeded" || entry.attempts !== 1) return false;
  return entry.verdict === undefined && entry.maybeTwice === undefined && entry.reason === undefined;
}

/** The lease is renewed for the next events if its clock readings are older than this, in milliseconds. */
const RENEW_AFTER_MS = SEND_WINDOW_MS / 2;
/** The number of immediate further tries of a held-back event. A machine that is always too slow never sends it. */
const HELD_BACK_TRIES = 10;

/**
 * Wraps an API so that events are sent only while the lease of their run is held. Events are announced before they are
 * sent. If another process claims the run, it counts announced events without an answer as unknown. `track` throws a
 * LeaseLostError if the lease is lost.
 */
export function fencedEvents(api: EventApi, lease: Turn, monotonic: () => number): EventApi {
  let renewing: { readonly since: number; readonly intent: Promise<Intent> } | undefined;
  const renewed = async (): Promise<Intent> => {
    // If no connection can be made, sending the event throws the error.
    await api.connect?.().catch(() => undefined);
    return lease.renew();
  };
  const latest = (): Promise<Intent> => {
    if (renewing === undefined || monotonic() - renewing.since > RENEW_AFTER_MS) {
      renewing = { since: monotonic(), intent: renewed() };
    }
    return renewing.intent;
  };
  return {
    ...api,
    async track(body, options) {
      for (let tries = 1; ; tries += 1) {
        const intent = await latest();
        const fence = requestFence([lease], intent, { renew: () => lease.renew(), onLate: () => {} });
        try {
          return await api.track(body, { ...options, fence });
        } catch (thrown) {
          const isHeldBack = thrown instanceof NotSentError && thrown.cause instanceof HeldBackError;
          if (!isHeldBack || tries === HELD_BACK_TRIES) throw thrown;
          renewing = undefined;
        }
      }
    },
  };
}
