import { isApiError } from "../api/errors.ts";
import type { Lease } from "../bulk/lease.ts";
import { ownReason } from "../bulk/reasons.ts";
import { countsOf, restingStatus } from "../bulk/report.ts";
import type { RunHeader, RunJournal } from "../bulk/store.ts";
import { endReason } from "./event-reason.ts";
import { recorder } from "./event-recorder.ts";
import type { EventRun, EventRunsContext } from "./event-run.ts";
import { bringToRest, eventsToSend } from "./event-run-folder.ts";
import { type EventCall, type EventEntry, type EventRunState, settledEntry } from "./event-run-state.ts";
import { sendEvents } from "./send.ts";
import type { Settlement } from "./settlement.ts";
import { type EventVerdict, verdictOf } from "./verdict-kinds.ts";

/** What driving a run needs of it. */
export interface DrivenEvents {
  readonly header: RunHeader<EventCall>;
  /** As its journal tells it, without `first`. */
  readonly state: EventRunState;
  /** What the journal takes first. */
  readonly first: readonly EventEntry[];
  /** How it comes to be driven by this process. */
  readonly begin: () => Promise<Lease>;
}

/** How a driven run is told to stop, and which watchers it tells where it stands. */
interface Reins {
  readonly signal: AbortSignal;
  readonly cause: () => "cancelled" | "interrupted";
  readonly tell: () => void;
  /** Told once when the run is on the disk, or cannot be put there. */
  readonly isKept: () => void;
}

/** Watchers are told after so many events. */
const TELL_EVERY = 100;

/** Drives a run in the background. It never rejects: what goes wrong on this machine stops the run, and says so in it. */
export function drivenEvents(context: EventRunsContext, parts: DrivenEvents): EventRun {
  const { header, state, first } = parts;
  const watchers = new Set<Parameters<EventRun["watch"]>[0]>();
  const controller = new AbortController();
  let cause: "cancelled" | "interrupted" = "interrupted";
  let isResting = false;
  let isKept = (): void => {};
  const kept = new Promise<void>((resolve) => {
    isKept = resolve;
  });
  const tell = (): void => {
    for (const watcher of watchers) watcher(countsOf(state));
  };
  for (const entry of first) state.apply(entry);
  const driving = driveToRest(context, parts, { signal: controller.signal, cause: () => cause, tell, isKept });
  return {
    header,
    state,
    status: () => (isResting ? restingStatus(state) : "running"),
    kept,
    rest: driving.then(() => {
      isResting = true;
    }),
    watch: (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    stop: (why) => {
      cause = why;
      controller.abort(new DOMException(`the run was ${why}`, "AbortError"));
      return true;
    },
  };
}

/** Never rejects: what goes wrong on this machine stops the run, and says so in it. */
async function driveToRest(context: EventRunsContext, parts: DrivenEvents, reins: Reins): Promise<void> {
  const { store, clock } = context;
  const { header, state, first, begin } = parts;
  let lease: Lease | undefined;
  const steps = [
    async () => {
      lease = await begin();
      const journal = await store.journal(header.runId);
      try {
        for (const entry of first) journal.append(entry);
        await journal.flush();
        // Only now: a run that counts as started has a journal that says what it is about.
        await store.start(header.runId);
        reins.isKept();
        await send(context, parts, journal, reins);
      } finally {
        await journal.close();
      }
    },
    () => (lease === undefined ? undefined : bringToRest(context, header, state)),
    () => lease?.release(),
  ];
  for (const step of steps) {
    try {
      await step();
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown.message : String(thrown);
      const reason = ownReason("STOPPED_BY_ERROR", { error });
      state.apply({ t: "stop", cause: "interrupted", reason, waitedMs: 0, at: clock.now() });
    }
    reins.isKept();
  }
}

/** Sends what is left of a run, and puts what becomes of it into its journal and its state. */
async function send(
  context: EventRunsContext,
  { header, state }: DrivenEvents,
  journal: RunJournal<EventEntry>,
  reins: Reins,
): Promise<void> {
  const { api, clock, retryBudgetMs, store } = context;
  const { record, settle, flush, end } = recorder(journal, state, clock);
  const left = eventsToSend(store, header, state, { record, now: clock.now });
  let settled = 0;
  const look = async (object: number, settlement: Settlement, event: unknown): Promise<void> => {
    const verdict = await verdictSeen(context, event, settlement);
    if (verdict !== undefined) record({ t: "predicted", object, verdict, at: clock.now() });
  };
  const sending = sendEvents(left, {
    api,
    clock,
    onUnknown: header.call.input.onUnknown,
    retryBudgetMs,
    signal: reins.signal,
    async beforeSend(objects) {
      record({ t: "leave", objects, at: clock.now() });
      await flush();
    },
    onSettled(object, settlement, event) {
      // The line that says how the run stopped settles them.
      if (settlement.reason === "stopped" || settlement.reason === "runEnded") return;
      settle(settledEntry(object, settlement, clock.now()));
      settled += 1;
      if (settled % TELL_EVERY === 0) reins.tell();
      return header.call.tool === "track_event" ? look(object, settlement, event) : undefined;
    },
  });
  const { counts, ended } = await sending.finally(end);
  const stopped = reins.signal.aborted ? reins.cause() : "finished";
  record({
    t: "stop",
    cause: ended === undefined ? stopped : "ended",
    ...(ended !== undefined && { reason: endReason(ended) }),
    waitedMs: counts.waitedMs,
    at: clock.now(),
  });
  reins.tell();
}

/** The verdict on an event with what a sandbox made of it; undefined where that cannot be seen. */
async function verdictSeen(
  { observe }: EventRunsContext,
  event: unknown,
  { outcome, predicted, observed }: Settlement,
): Promise<EventVerdict | undefined> {
  if (observe === undefined || outcome !== "succeeded" || observed !== undefined) return undefined;
  try {
    const seen = await observe(event);
    return seen && verdictOf(predicted, seen);
  } catch (thrown) {
    // The event is sent, and that is to be told, whether or not it could be looked at.
    if (isApiError(thrown)) return undefined;
    throw thrown;
  }
}
