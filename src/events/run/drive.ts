import { isApiError, NotSentError } from "../../api/errors.ts";
import type { EventApi } from "../../api/events.ts";
import type { Clock } from "../../platform/clock.ts";
import type { RunExecution } from "../../runs/kind.ts";
import type { Reason } from "../../runs/outcome.ts";
import { RunStoreError } from "../../runs/store.ts";
import { HeldBackError, type Intent, requestFence, SEND_WINDOW_MS, type Turn } from "../../runs/turn.ts";
import type { Verdict } from "../catalogue.ts";
import { autocorrects, type EventCall, type EventEntry, type EventRunState, settledEntry } from "./run-state.ts";
import { type IndexedEvent, sendEvents } from "./send.ts";
import { eventsIn, objectOf } from "./source.ts";
import { type EventSettlement, type EventVerdict, endReason, verdictOf, withUncorrected } from "./verdicts.ts";

export interface EventWorld {
  readonly api: EventApi;
  readonly clock: Clock;
  readonly retryBudgetMs: number;
  /** Returns the sentence for a reason. The file of failed rows contains it. */
  readonly words: (reason: Reason) => string | Promise<string>;
  /** Looks up the verdict on an accepted event. Absent for a live service, which does not show it. */
  readonly observe?: (event: unknown) => Promise<Verdict | undefined>;
}

type DrivenEvents = RunExecution<EventCall, EventEntry, EventRunState>;

const PROGRESS_INTERVAL = 100;
/** The most events that one `events` entry of the journal describes. */
const READ_AT_ONCE = 100;

const SEND_AGAIN_REMEDY = "Find out which events of the run arrived, and send the others in another call.";

/** Sends the events of a run that have no outcome yet. Records their outcomes and the end of the run. */
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
      // If another process has taken the run, this process stops. The other one sends these events.
      await flush().finally(() => lease.lost.aborted && run.stop("interrupted"));
      await run.mayLeave();
    },
    onSettled(object, settlement, event) {
      // If the event was not sent because the run stopped, the entry `stop` gives it its outcome.
      const hasStopped = settlement.reason === "stopped" || settlement.reason === "runEnded";
      if (hasStopped && settlement.attempts === 0) return;
      const explained = autocorrects(header.call) ? withUncorrected(settlement, event) : settlement;
      settle(settledEntry(object, explained, clock.now()));
      settled += 1;
      if (settled % PROGRESS_INTERVAL === 0) run.progress();
      return header.call.tool === "track_event" ? look(object, settlement, event) : undefined;
    },
  });
  const { waitedMs, ended } = await sending.finally(end);
  // If another process has taken the run, only that process records the stop.
  lease.lost.throwIfAborted();
  const stopped = run.signal.aborted ? run.cause() : "finished";
  record({
    t: "stop",
    cause: ended === undefined ? stopped : "ended",
    ...(ended !== undefined && { reason: endReason(ended) }),
    waitedMs,
    at: clock.now(),
  });
  run.progress();
}

/** Yields the events without an outcome. Records those that are read for the first time, and rows without an event. */
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

/** Returns the sandbox's verdict on an accepted event, with the predicted one. Undefined if it cannot be read. */
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
    // The event was accepted, so it has succeeded even if its verdict cannot be read.
    if (isApiError(thrown)) return undefined;
    throw thrown;
  }
}

/** How long an outcome waits for others that are written together with it, in milliseconds. */
const SETTLED_WAIT_MS = 50;

function recorder(run: RunExecution<EventCall, EventEntry, EventRunState>, clock: Clock) {
  const ended = new AbortController();
  let accepted: number[] = [];
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
      // If writing fails, the next `flush` throws the error.
      run.write();
    }
    isWatched = false;
  };
  return {
    record,
    /** Records an outcome. It is written at most about 50 ms later, together with others. */
    settle(entry: EventEntry) {
      settledAt ??= clock.now();
      if (!isWatched) void writeInTime();
      if (!isSimplyAccepted(entry)) return record(entry);
      accepted.push(entry.object);
      run.state.apply(entry);
    },
    flush(): Promise<void> {
      writeAccepted();
      settledAt = undefined;
      return run.flush();
    },
    end(): void {
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

/** Returns whether an entry only says that the first attempt was accepted. Such entries are written as one entry. */
function isSimplyAccepted(entry: EventEntry): entry is Settled {
  if (entry.t !== "settled" || entry.outcome !== "succeeded" || entry.attempts !== 1) return false;
  return entry.verdict === undefined && entry.maybeTwice === undefined && entry.reason === undefined;
}

/** A lease that was renewed longer ago than this (in milliseconds) is renewed before the next event is sent. */
const RENEW_AFTER_MS = SEND_WINDOW_MS / 2;
/** How often sending an event is tried if its lease is too old each time, as may happen on a slow machine. */
const HELD_BACK_TRIES = 10;

/** Sends events only while this process holds the lease of the run. Otherwise, `track` throws a LeaseLostError. */
export function fencedEvents(api: EventApi, lease: Turn, monotonic: () => number): EventApi {
  let renewing: { readonly since: number; readonly intent: Promise<Intent> } | undefined;
  const renewed = async (): Promise<Intent> => {
    // The error is ignored here, because sending the event then fails with it as well.
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
