import { isApiError } from "../../api/errors.ts";
import type { EventApi } from "../../api/events.ts";
import type { Clock } from "../../platform/clock.ts";
import { RunStoreError } from "../../runs/backend/store.ts";
import type { Driving } from "../../runs/kind.ts";
import type { Reason } from "../../runs/outcome.ts";
import type { Verdict } from "../check/rules.ts";
import { endReason } from "./event-reason.ts";
import { recorder } from "./event-recorder.ts";
import { type EventCall, type EventEntry, type EventRunState, settledEntry } from "./event-run-state.ts";
import type { EventSettlement } from "./event-settlement.ts";
import { eventsIn, objectOf } from "./event-source.ts";
import { fencedEvents } from "./send/fenced-events.ts";
import { type IndexedEvent, sendEvents } from "./send/send-events.ts";
import { type EventVerdict, verdictOf } from "./verdict-kinds.ts";

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
const SEND_ANEW = "Find out which of its events arrived, and send the others in another call.";

/** Sends the events of a run that are left, and records their outcomes. */
export async function sendLeft(run: DrivenEvents, world: EventWorld): Promise<void> {
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
  if (gone > 0) throw new RunStoreError(`${gone} events of run ${runId} were not kept: they cannot be sent`, SEND_ANEW);
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
