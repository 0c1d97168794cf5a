import type { Run, RunsContext } from "../../runs/kind.ts";
import { type EarlierRuns, KindRuns, startOrJoin } from "../../runs/kind-runs.ts";
import { unlessNothingKept } from "../../runs/store.ts";
import type { EventWorld } from "./drive.ts";
import { beginOf, eventKind } from "./run-kind.ts";
import { type EventCall, type EventEntry, type EventRunState, resends } from "./run-state.ts";
import type { EventCounts, EventSource } from "./source.ts";

/** Events to be sent: where they are, and how many, where the source does not count them yet. */
export interface PlannedEvents extends Partial<EventCounts> {
  readonly source: EventSource;
  readonly onUnknown: "report" | "resend";
  /** The tool that was called; `track_events` where absent. */
  readonly tool?: EventCall["tool"];
}

/** A run that sends events. */
export type EventRun = Run<EventCall, EventRunState>;

/** The run of one event, and how the call relates to it: `repeat` is absent where the call started it. */
export interface EventRunOfCall {
  readonly run: EventRun;
  /**
   * The run of an equal call before: `attached` where nothing is sent for this call, `takenUp` where the event had not
   * left yet, `resent` where this call sends it again.
   */
  readonly repeat?: "attached" | "takenUp" | "resent";
}

/** How many runs of the same call are looked at for an unfinished one. */
const RECENT_RUNS = 50;

/** Within this time an equal `track_event` is not sent while the outcome of the first is unknown. */
const SAME_EVENT_MS = 600_000;

/** Sends the events of calls, each call as one run. */
export class EventRuns {
  readonly runs: KindRuns<EventCall, EventEntry, EventRunState, EventSource>;
  readonly #context: RunsContext;

  constructor(context: RunsContext & EventWorld) {
    this.#context = context;
    this.runs = new KindRuns(eventKind(context), context);
  }

  /**
   * Starts a run and drives it in the background. The same call of the same caller while its run is under way gives
   * that run: a host that lost its connection makes a call again, and events must not be sent twice for that.
   */
  start(planned: PlannedEvents, caller: string): EventRun {
    const { source, items } = planned;
    const call = callOf(planned);
    const first = items === undefined ? undefined : (at: number) => beginOf({ ...planned, items }, at);
    const input = { bytes: source.bytes, digest: source.kept.digest };
    return (
      this.runs.drivenLike(this.runs.fingerprint(call, caller)) ??
      this.runs.startAtOnce(call, caller, { input, first, given: source })
    );
  }

  /**
   * The earlier run of the same call by the same caller. A run without a final status is resumed, where it was
   * interrupted, or cancelled a short while ago with events left. A run that has ended with events left is only named
   * in the answer: the call means new events.
   */
  findEarlierRun(planned: PlannedEvents, caller: string): Promise<EarlierRuns<EventRun>> {
    return this.runs.findEarlierRun(callOf(planned), caller);
  }

  /**
   * Gives the one run of the same calls that are made at one time, in whatever process: one that was made before and
   * goes on, one that another of them has started since this one arrived, or a new one. `arrivedAt` is milliseconds
   * since 1970.
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
          const run = await unlessNothingKept(this.runs.find(runId));
          const going = run?.status() === "interrupted" ? await unlessNothingKept(this.runs.resume(runId)) : run;
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
   * Sends one event, unless an equal call was made less than ten minutes ago, in any process, whose outcome is
   * unknown: then gives its run, and sends only an event that had not left, or with `resend` an unknown one.
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

  /** Starts a run, unless its events exceed the caller's share: then throws a ShareFullError. */
  async #startWithRoom(planned: PlannedEvents, caller: string): Promise<EventRun> {
    const { store, project, environment } = this.#context;
    await store.sizes.checkRoom?.({ caller, project, environment }, planned.source.size ?? 0);
    return this.start(planned, caller);
  }

  async #sentBefore(planned: PlannedEvents, fingerprint: string): Promise<EventRunOfCall | undefined> {
    const { store, clock } = this.#context;
    const isEqual = ({ header }: EventRun): boolean =>
      header.fingerprint === fingerprint && clock.now() - header.createdAt < SAME_EVENT_MS;
    for (const runId of (await store.list({ unfinished: { fingerprint } })).slice(0, RECENT_RUNS)) {
      const run = await unlessNothingKept(this.runs.find(runId));
      if (run === undefined || !isEqual(run)) continue;
      if (run.status() === "running") return { run, repeat: "attached" };
      const isUnknown = run.state.counts().unknown > 0;
      if (isUnknown && planned.onUnknown === "report") return { run: await this.#endOf(run), repeat: "attached" };
      const again = isUnknown || run.status() === "interrupted";
      const resumed = again ? await this.runs.resume(runId, isUnknown ? planned.source : undefined) : undefined;
      if (resumed !== undefined) return { run: resumed, repeat: isUnknown ? "resent" : "takenUp" };
    }
    const driven = this.runs.drivenLike(fingerprint);
    return driven && { run: driven, repeat: "attached" };
  }

  /** Brings a run to its end whose event is unknown since its process died; nothing is sent for that. */
  async #endOf(run: EventRun): Promise<EventRun> {
    if (run.status() !== "interrupted" || resends(run.header.call, run.state)) return run;
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
