import { isApiError } from "../../api/errors.ts";
import { ownReason } from "../../runs/reasons.ts";
import { type Reins, reinsOf } from "../../runs/reins.ts";
import { countsOf, restingStatus } from "../../runs/report.ts";
import type { RunHeader, RunJournal } from "../../runs/store.ts";
import type { Lease } from "../../runs/turn.ts";
import { endReason } from "./event-reason.ts";
import { recorder } from "./event-recorder.ts";
import type { EventRun, EventRunsContext } from "./event-run.ts";
import { bringToRest, eventsToSend } from "./event-run-folder.ts";
import { type EventCall, type EventEntry, type EventRunState, settledEntry } from "./event-run-state.ts";
import { fencedEvents } from "./fenced-events.ts";
import { sendEvents } from "./send-events.ts";
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
interface Driving {
  readonly reins: Reins;
  /** The lease of the run, once it is had. */
  readonly held: { lease: Lease | undefined };
  readonly tell: () => void;
  /** Told once when the run is on the disk, or cannot be put there. */
  readonly isKept: () => void;
}

/** A run that this process drives. */
export interface DrivenEventRun extends EventRun {
  /** Whether another process has taken it over: then that one knows how it stands. */
  isTakenOver(): boolean;
}

/** Watchers are told after so many events. */
const TELL_EVERY = 100;

/** Drives a run in the background. It never rejects: what goes wrong on this machine stops the run, and says so in it. */
export function drivenEvents(context: EventRunsContext, parts: DrivenEvents): DrivenEventRun {
  const { header, state, first } = parts;
  const watchers = new Set<Parameters<EventRun["watch"]>[0]>();
  const held: Driving["held"] = { lease: undefined };
  const reins = reinsOf(context.store, header.runId, () => held.lease);
  const isTakenOver = (): boolean => held.lease?.lost.aborted === true;
  let isResting = false;
  let isKept = (): void => {};
  const kept = new Promise<void>((resolve) => {
    isKept = resolve;
  });
  const tell = (): void => {
    for (const watcher of watchers) watcher(countsOf(state));
  };
  for (const entry of first) state.apply(entry);
  const driving = driveToRest(context, parts, { reins, held, tell, isKept });
  return {
    header,
    state,
    isTakenOver,
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
      reins.stop(why);
      return !isTakenOver();
    },
  };
}

/** Never rejects: what goes wrong on this machine stops the run, and says so in it. */
async function driveToRest(context: EventRunsContext, parts: DrivenEvents, driving: Driving): Promise<void> {
  const { store, clock } = context;
  const { header, state, first, begin } = parts;
  const { reins, held } = driving;
  const isLost = (): boolean => held.lease?.lost.aborted === true;
  // What belongs to a run that another process has taken over is for that one.
  const unlessLost = (work: () => unknown) => () => (isLost() ? undefined : work());
  const steps = [
    async () => {
      const lease = await begin();
      held.lease = lease;
      const journal = await store.journal(header.runId, lease);
      try {
        for (const entry of first) journal.append(entry);
        await journal.flush();
        // Only now: a run that counts as started has a journal that says what it is about.
        await store.start(header.runId);
        driving.isKept();
        await send(context, parts, { journal, lease }, driving);
      } finally {
        await journal.close();
      }
    },
    () => reins.end(),
    unlessLost(() => (held.lease === undefined ? undefined : bringToRest(context, header, state))),
    unlessLost(() => held.lease?.release()),
  ];
  for (const step of steps) {
    try {
      await step();
    } catch (thrown) {
      if (!isLost()) {
        const error = thrown instanceof Error ? thrown.message : String(thrown);
        const reason = ownReason("STOPPED_BY_ERROR", { error });
        state.apply({ t: "stop", cause: "interrupted", reason, waitedMs: 0, at: clock.now() });
      }
    }
    driving.isKept();
  }
}

/** Sends what is left of a run, and puts what becomes of it into its journal and its state. */
async function send(
  context: EventRunsContext,
  { header, state }: DrivenEvents,
  { journal, lease }: { readonly journal: RunJournal<EventEntry>; readonly lease: Lease },
  { reins, tell }: Driving,
): Promise<void> {
  const { clock, retryBudgetMs, store } = context;
  const api = fencedEvents(context.api, lease, () => clock.monotonic());
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
      // What was announced before is not to leave either, once another process has taken the run over.
      await flush().finally(() => lease.lost.aborted && reins.stop("interrupted"));
      await reins.mayLeave();
    },
    onSettled(object, settlement, event) {
      // The line that says how the run stopped settles them.
      if (settlement.reason === "stopped" || settlement.reason === "runEnded") return;
      settle(settledEntry(object, settlement, clock.now()));
      settled += 1;
      if (settled % TELL_EVERY === 0) tell();
      return header.call.tool === "track_event" ? look(object, settlement, event) : undefined;
    },
  });
  const { counts, ended } = await sending.finally(end);
  // How a run stops that another process has taken over is for that one to say.
  lease.lost.throwIfAborted();
  const stopped = reins.signal.aborted ? reins.cause() : "finished";
  record({
    t: "stop",
    cause: ended === undefined ? stopped : "ended",
    ...(ended !== undefined && { reason: endReason(ended) }),
    waitedMs: counts.waitedMs,
    at: clock.now(),
  });
  tell();
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
