import { isApiError, NotSentError } from "../../api/errors.ts";
import type { EventApi } from "../../api/events.ts";
import type { Clock } from "../../platform/clock.ts";
import { HeldBackError } from "../../platform/fence.ts";
import type { Driving } from "../../runs/kind.ts";
import type { Reason } from "../../runs/outcome.ts";
import { RunStoreError } from "../../runs/store.ts";
import { fenceOf, type Intent, SEND_WINDOW_MS, type Turn } from "../../runs/turn.ts";
import type { Verdict } from "../catalogue.ts";
import { type EventCall, type EventEntry, type EventRunState, settledEntry } from "./run-state.ts";
import { type IndexedEvent, sendEvents } from "./send.ts";
import { eventsIn, objectOf } from "./source.ts";
import { type EventSettlement, type EventVerdict, endReason, verdictOf } from "./verdicts.ts";

/** What runs of events need besides what all runs need. */
export interface EventWorld {
  readonly api: EventApi;
  readonly clock: Clock;
  /** How long one event is retried, in milliseconds. */
  readonly retryBudgetMs: number;
  /** Gives the sentence for a reason, for reject files. */
  readonly words: (reason: Reason) => string;
  /** Looks for the verdict on an event that was accepted a moment ago; absent where verdicts cannot be seen. */
  readonly observe?: (event: unknown) => Promise<Verdict | undefined>;
}

/** A run of events that this process drives. */
export type DrivenEvents = Driving<EventCall, EventEntry, EventRunState>;

/** Watchers are called after this many events. */
const TELL_EVERY = 100;
/** How many events are described at once: few, so that requests are sent in between. */
const READ_AT_ONCE = 100;

/** The remedy for a run that cannot be resumed. */
const SEND_AGAIN_REMEDY = "Find out which of its events arrived, and send the others in another call.";

/** Sends the events of a run that are left, and records their outcomes. */
export async function sendPending(run: DrivenEvents, world: EventWorld): Promise<void> {
  const { clock, retryBudgetMs } = world;
  const { header, lease } = run;
  const api = fencedEvents(world.api, lease, () => clock.monotonic());
  const { record, settle, flush, end } = recorder(run, clock);
  let settled = 0;
  const look = async (object: number, settlement: EventSettlement, event: unknown): Promise<void> => {
    const verdict = await verdictSeen(world, event, settlement);
    if (verdict !== undefined) record({ t: "predicted", object, verdict, at: clock.now() });
  };
  const sending = sendEvents(eventsLeft(run, { record, now: clock.now }), {
    api,
    clock,
    onUnknown: run.state.isResent ? "resend" : header.call.input.onUnknown,
    retryBudgetMs,
    signal: run.signal,
    async beforeSend(objects) {
      record({ t: "leave", objects, at: clock.now() });
      // Announced events must not leave either once another process has taken the run over.
      await flush().finally(() => lease.lost.aborted && run.stop("interrupted"));
      await run.mayLeave();
    },
    onSettled(object, settlement, event) {
      // The line that says how the run stopped settles them.
      if (settlement.reason === "stopped" || settlement.reason === "runEnded") return;
      settle(settledEntry(object, settlement, clock.now()));
      settled += 1;
      if (settled % TELL_EVERY === 0) run.progress();
      return header.call.tool === "track_event" ? look(object, settlement, event) : undefined;
    },
  });
  const { counts, ended } = await sending.finally(end);
  // The process that has taken the run over records how it stops.
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
 * The events of a run that have no outcome yet. Calls `record` for events that are read for the first time, and for
 * rows that fail since they are no events.
 */
async function* eventsLeft(
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
    throw new RunStoreError(`${gone} events of run ${runId} were not kept: they cannot be sent`, SEND_AGAIN_REMEDY);
}

/** The verdict on an event including the one of a sandbox; undefined where that cannot be seen. */
async function verdictSeen(
  { observe }: EventWorld,
  event: unknown,
  { outcome, predicted, observed }: EventSettlement,
): Promise<EventVerdict | undefined> {
  if (observe === undefined || outcome !== "succeeded" || observed !== undefined) return undefined;
  try {
    const seen = await observe(event);
    return seen && verdictOf(predicted, seen);
  } catch (thrown) {
    // The event was sent, and its outcome counts even if its verdict cannot be read.
    if (isApiError(thrown)) return undefined;
    throw thrown;
  }
}

/** Records the entries of a run of events, many outcomes in one line. */
interface EventRecorder {
  readonly record: (entry: EventEntry) => void;
  /** Records the outcome of an event. It is on the disk 100 ms later, unless the disk takes long. */
  readonly settle: (entry: EventEntry) => void;
  /** Resolves when all that was recorded is on the disk. Throws when that fails. */
  readonly flush: () => Promise<void>;
  /** Appends the outcomes that still wait, and ends the writing by itself. */
  readonly end: () => void;
}

/** How long outcomes wait for others to be written with them, in milliseconds; the disk takes some time, too. */
const SETTLED_WAIT_MS = 50;

/** Makes a recorder for which events that were simply accepted take one line for many. */
function recorder(run: Driving<EventCall, EventEntry, EventRunState>, clock: Clock): EventRecorder {
  const ended = new AbortController();
  let accepted: number[] = [];
  /** When the first event was settled whose outcome is not on the disk yet. */
  let settledAt: number | undefined;
  let isWatched = false;
  const writeAccepted = (): void => {
    if (accepted.length > 0) run.append({ t: "accepted", objects: accepted, at: clock.now() });
    accepted = [];
  };
  const record = (entry: EventEntry): void => {
    writeAccepted();
    run.record(entry);
  };
  /** Writes what was settled once it has waited long enough, unless it was written with something else. */
  const writeInTime = async (): Promise<void> => {
    isWatched = true;
    while (settledAt !== undefined) {
      const left = settledAt + SETTLED_WAIT_MS - clock.now();
      if (left > 0) {
        await sleepUnless(ended.signal, clock, left);
        if (ended.signal.aborted) return;
        continue;
      }
      writeAccepted();
      settledAt = undefined;
      // The next flush throws what goes wrong here.
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

async function sleepUnless(stopped: AbortSignal, clock: Clock, ms: number): Promise<void> {
  try {
    await clock.sleep(ms, stopped);
  } catch (thrown) {
    if (!stopped.aborted) throw thrown;
  }
}

type Settled = Extract<EventEntry, { readonly t: "settled" }>;

/** Whether an entry says no more than that an event was accepted at the first attempt. */
function isSimplyAccepted(entry: EventEntry): entry is Settled {
  if (entry.t !== "settled" || entry.outcome !== "succeeded" || entry.attempts !== 1) return false;
  return entry.verdict === undefined && entry.maybeTwice === undefined && entry.reason === undefined;
}

/** The lease is renewed for the next events when its readings are this old, in milliseconds. */
const RENEW_AFTER_MS = SEND_WINDOW_MS / 2;
/**
 * How often an event that was held back is tried again at once: on a machine that is always too slow it cannot be sent.
 */
const HELD_BACK_TRIES = 10;

/**
 * The same API, whose events leave only while the lease of their run is held. They were announced before, so that an
 * event which leaves too late is in doubt for the process that has taken the run over. `track` throws a LeaseLostError
 * there.
 */
export function fencedEvents(api: EventApi, lease: Turn, monotonic: () => number): EventApi {
  let renewing: { readonly since: number; readonly intent: Promise<Intent> } | undefined;
  const renewed = async (): Promise<Intent> => {
    // Where no connection can be made, sending the event throws the error.
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
        const fence = fenceOf([lease], intent, { renew: () => lease.renew(), onLate: () => {} });
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
