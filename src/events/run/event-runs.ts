import type { Run, RunsContext } from "../../runs/kind.ts";
import { type EarlierRuns, KindRuns, type Requested, startOrJoin } from "../../runs/kind-runs.ts";
import { undefinedIfNothingStored } from "../../runs/store.ts";
import type { EventWorld } from "./drive.ts";
import { beginOf, eventKind } from "./run-kind.ts";
import { type EventCall, type EventEntry, type EventRunState, resendsUnknown } from "./run-state.ts";
import type { EventCounts, EventSource } from "./source.ts";

/** Events to send: their source, and their number if it is known yet. */
export interface PlannedEvents extends Partial<EventCounts> {
  readonly source: EventSource;
  readonly onUnknown: "report" | "resend";
  readonly tool?: EventCall["tool"];
  readonly requested?: Requested | undefined;
}

/** A run that sends events. */
export type EventRun = Run<EventCall, EventRunState>;

/** The run of one event, and how the call relates to it. `repeat` is absent if the call started the run. */
export interface EventRunOfCall {
  readonly run: EventRun;
  /**
   * The relation to an earlier equal call. `attached`: this call sends nothing. `resumed`: it sends an event that had
   * not been sent. `resent`: it sends it again.
   */
  readonly repeat?: "attached" | "resumed" | "resent";
}

/** How many runs of the same call are searched for an unfinished one. */
const RECENT_RUNS = 50;

/** For this time, an equal `track_event` is not sent while the outcome of the first is unknown. In milliseconds. */
const SAME_EVENT_MS = 600_000;

/** Sends the events of calls. Each call is one run. */
export class EventRuns {
  readonly runs: KindRuns<EventCall, EventEntry, EventRunState, EventSource>;
  readonly #context: RunsContext;

  constructor(context: RunsContext & EventWorld) {
    this.#context = context;
    this.runs = new KindRuns(eventKind(context), context);
  }

  /**
   * Starts a run in the background, or returns the same caller's run of the same call in progress: a host that lost its
   * connection repeats the call, and events must not be sent twice.
   */
  start(planned: PlannedEvents, caller: string): EventRun {
    const { source, items } = planned;
    const call = callOf(planned);
    const first = items === undefined ? undefined : (at: number) => beginOf({ ...planned, items }, at);
    const input = { bytes: source.bytes, digest: source.kept.digest };
    return (
      this.runs.drivenLike(this.runs.fingerprint(call, caller)) ??
      this.runs.startAtOnce(call, caller, { input, first, given: source, requested: planned.requested })
    );
  }

  /**
   * Returns the earlier run of the same call and caller. One without a final status is resumed if it was interrupted,
   * or recently cancelled with events left. A finished run with events left is only mentioned, because the call
   * requests new events.
   */
  findEarlierRun(planned: PlannedEvents, caller: string): Promise<EarlierRuns<EventRun>> {
    return this.runs.findEarlierRun(callOf(planned), caller);
  }

  /**
   * Returns one run for equal calls made at the same time, in any process: an earlier one that continues, one that
   * another of these calls started, or a new one. `arrivedAt` is milliseconds since 1970.
   */
  async once(
    planned: PlannedEvents,
    caller: string,
    arrivedAt: number,
  ): Promise<{ readonly run: EventRun; readonly before: EarlierRuns<EventRun> }> {
    const fingerprint = this.runs.fingerprint(callOf(planned), caller);
    return startOrJoin(
      this.#context.store,
      { fingerprint, arrivedAt },
      {
        attach: async (runId) => {
          const run = await undefinedIfNothingStored(this.runs.find(runId));
          const going = run?.status() === "interrupted" ? await undefinedIfNothingStored(this.runs.resume(runId)) : run;
          return going && { run: going, before: { going } };
        },
        make: async () => {
          const before = await this.findEarlierRun(planned, caller);
          const run = before.going ?? (await this.#startWithRoom(planned, caller));
          await run.kept;
          return { run, before };
        },
      },
    );
  }

  /**
   * Sends one event. If an equal call less than ten minutes ago has an unknown outcome, returns its run instead. That
   * run sends the event only if it had not been sent, or with `resend`.
   */
  async sendOne(planned: PlannedEvents, caller: string): Promise<EventRunOfCall> {
    const fingerprint = this.runs.fingerprint(callOf(planned), caller);
    return this.#context.store.withCallLock(fingerprint, async () => {
      const sent = await this.#sentBefore(planned, fingerprint);
      const of = sent ?? { run: await this.#startWithRoom(planned, caller) };
      await of.run.kept;
      return of;
    });
  }

  /** Starts a run. Throws a ShareFullError if its events exceed the caller's storage quota. */
  async #startWithRoom(planned: PlannedEvents, caller: string): Promise<EventRun> {
    await this.#context.store.sizes.checkRoom?.(caller, planned.source.size ?? 0);
    return this.start(planned, caller);
  }

  async #sentBefore(planned: PlannedEvents, fingerprint: string): Promise<EventRunOfCall | undefined> {
    const { store, clock } = this.#context;
    const isEqual = ({ header }: EventRun): boolean =>
      header.fingerprint === fingerprint && clock.now() - header.createdAt < SAME_EVENT_MS;
    for (const runId of (await store.list({ unfinished: { fingerprint } })).slice(0, RECENT_RUNS)) {
      const run = await undefinedIfNothingStored(this.runs.find(runId));
      if (run === undefined || !isEqual(run)) continue;
      if (run.status() === "running") return { run, repeat: "attached" };
      const isUnknown = run.state.counts().unknown > 0;
      if (isUnknown && planned.onUnknown === "report") return { run: await this.#endOf(run), repeat: "attached" };
      const again = isUnknown || run.status() === "interrupted";
      const resumed = again ? await this.runs.resume(runId, isUnknown ? planned.source : undefined) : undefined;
      if (resumed !== undefined) return { run: resumed, repeat: isUnknown ? "resent" : "resumed" };
    }
    const driven = this.runs.drivenLike(fingerprint);
    return driven && { run: driven, repeat: "attached" };
  }

  /** Ends a run whose process died while the outcome of its event was unknown. Sends nothing. */
  async #endOf(run: EventRun): Promise<EventRun> {
    if (run.status() !== "interrupted" || resendsUnknown(run.header.call, run.state)) return run;
    return (await this.runs.resume(run.header.runId)) ?? run;
  }
}

/** Whether a run sends events. */
export function isEventRun(run: Run): run is EventRun {
  return run.kind === "events";
}

function callOf({ tool = "track_events", source, onUnknown }: PlannedEvents): EventCall {
  return { tool, input: { events: source.kept, onUnknown } };
}
