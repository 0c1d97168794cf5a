import { hash } from "node:crypto";
import { type ByteSource, unchanged } from "../../platform/bytes.ts";
import { elsewhere } from "../../runs/elsewhere.ts";
import { LastRead } from "../../runs/last-read.ts";
import { cancelKept, leaseToResume } from "../../runs/reins.ts";
import { restingStatus, summaryOf } from "../../runs/report.ts";
import { type Interrupted, interruptedRuns, type MadeBefore, madeBefore, oneOf } from "../../runs/same-call.ts";
import { orUnreadable, type RunPart, RunStoreError, type RunSummary } from "../../runs/store.ts";
import { type DrivenEvents, drivenEvents } from "./event-drive.ts";
import type { EventRun, EventRunsContext } from "./event-run.ts";
import {
  cancelInterrupted,
  lostIn,
  NothingKeptError,
  type RunReadBack,
  readBack,
  takenUp,
  tidyRun,
} from "./event-run-folder.ts";
import { type EventCall, EventRunState } from "./event-run-state.ts";
import type { EventSource } from "./event-source.ts";

/** Events to be sent: where they are, and how many. */
export interface PlannedEvents {
  readonly source: EventSource;
  readonly items: number;
  readonly onUnknown: "report" | "resend";
  /** The tool that was called; `track_events` where absent. */
  readonly tool?: EventCall["tool"];
}

/** The run of one event, and what it is to the call: `repeat` is absent where the call began it. */
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

/** For so long an equal event is not sent while it is not known what became of the first (contract, `track_event`). */
const SAME_EVENT_MS = 600_000;

/** Starts, resumes, finds and stops runs of events. */
export class EventRuns {
  readonly #context: EventRunsContext;
  /** The runs that this process drives. */
  readonly #driven = new Map<string, EventRun>();
  readonly #lastRead = new LastRead<RunReadBack>();
  /** The runs that other processes drive, and that a call here waits for. */
  readonly #followed = new Map<string, EventRun>();
  readonly #ending = new AbortController();
  #tidied: Promise<void> | undefined;

  constructor(context: EventRunsContext) {
    this.#context = context;
  }

  /** Whether this process drives any run now. */
  get isDriving(): boolean {
    return this.#driven.size > 0;
  }

  /**
   * Starts a run and drives it in the background. The same call of the same caller while its run is under way gives
   * that run: a host that lost its connection makes a call again, and events must not be sent twice for that.
   */
  start(planned: PlannedEvents, caller: string): EventRun {
    const { store, clock, newRunId, project, environment } = this.#context;
    const { source, items } = planned;
    const call = callOf(planned);
    const fingerprint = this.#fingerprint(call, caller);
    const driven = this.#drivenLike(fingerprint);
    if (driven !== undefined) return driven;
    const createdAt = clock.now();
    const runId = newRunId();
    const header = { runId, call, project, caller, environment, createdAt, fingerprint };
    const begin = async () => {
      await store.create(header);
      const lease = await store.lease(runId);
      if (lease === undefined) throw new RunStoreError("another process drives this run", "Look at it with get_run.");
      try {
        await store.keep(runId, "input", unchanged(source.bytes, source.kept.digest));
        return lease;
      } catch (thrown) {
        await lease.release();
        throw thrown;
      }
    };
    return this.#drive({
      header,
      state: new EventRunState(),
      first: [{ t: "begin", items, at: createdAt }],
      begin,
    });
  }

  /**
   * What there is of the same call by the same caller. A run that has no final status yet is taken up again, where it
   * was interrupted or a short while ago cancelled with events left: whoever lost the connection makes the call again,
   * and nothing is to be sent twice for that. A run that has ended with something left is only named: the call means new
   * events.
   */
  async madeBefore(planned: PlannedEvents, caller: string): Promise<MadeBefore<EventRun>> {
    const { store, clock } = this.#context;
    const fingerprint = this.#fingerprint(callOf(planned), caller);
    const driven = this.#drivenLike(fingerprint);
    if (driven !== undefined) return { going: driven };
    const isMeant = ({ open, status }: RunSummary, isRecent: boolean): boolean =>
      open && (status === "interrupted" || (status === "cancelled" && isRecent));
    const takeUp = (runId: string) => unlessNothingKept(this.resume(runId));
    return madeBefore(store, fingerprint, { now: clock.now, isMeant, unstartedWaits: false, takeUp });
  }

  /**
   * Gives the one run of the same calls that are made at one time, in whatever process: one that was made before and goes
   * on, one that another of them has started since this one arrived, or a new one. `arrivedAt` is milliseconds since
   * 1970.
   */
  async once(
    planned: PlannedEvents,
    caller: string,
    arrivedAt: number,
  ): Promise<{ readonly run: EventRun; readonly before: MadeBefore<EventRun> }> {
    const fingerprint = this.#fingerprint(callOf(planned), caller);
    return oneOf(
      this.#context.store,
      { fingerprint, arrivedAt },
      {
        attach: async (runId) => {
          const going = await unlessNothingKept(this.#resumeInterrupted(runId));
          return going && { run: going, before: { going } };
        },
        make: async () => {
          const before = await this.madeBefore(planned, caller);
          const run = before.going ?? this.start(planned, caller);
          await run.kept;
          return { run, before };
        },
      },
    );
  }

  /**
   * Sends one event, unless an equal call was made less than ten minutes ago, in whatever process, of which is not known
   * what it came to: then gives its run, and sends only what had not left, or with `resend` what is unknown.
   */
  async sendOne(planned: PlannedEvents, caller: string): Promise<EventRunOfCall> {
    const { store } = this.#context;
    const fingerprint = this.#fingerprint(callOf(planned), caller);
    return store.alone(fingerprint, async () => {
      const sent = await this.#sentBefore(planned, fingerprint);
      const of = sent ?? { run: this.start(planned, caller) };
      await of.run.kept;
      return of;
    });
  }

  async #sentBefore(planned: PlannedEvents, fingerprint: string): Promise<EventRunOfCall | undefined> {
    const { store, clock } = this.#context;
    const isEqual = ({ header }: EventRun): boolean =>
      header.fingerprint === fingerprint && clock.now() - header.createdAt < SAME_EVENT_MS;
    for (const runId of (await store.unfinished({ fingerprint })).slice(0, RECENT_RUNS)) {
      const run = await unlessNothingKept(this.find(runId));
      if (run === undefined || !isEqual(run)) continue;
      if (run.status() === "running") return { run, repeat: "attached" };
      const isUnknown = run.state.counts().unknown > 0;
      if (isUnknown && planned.onUnknown === "report") return { run: await this.#endOf(run), repeat: "attached" };
      const again = isUnknown || run.status() === "interrupted";
      const resumed = again ? await this.resume(runId, isUnknown ? planned.source : undefined) : undefined;
      if (resumed !== undefined) return { run: resumed, repeat: isUnknown ? "resent" : "takenUp" };
    }
    const driven = this.#drivenLike(fingerprint);
    return driven && { run: driven, repeat: "attached" };
  }

  /** The runs of a caller that were cut short and that nobody goes on with, the newest first; a few of them. */
  async interrupted(caller: string): Promise<readonly Interrupted[]> {
    const { store, project, environment } = this.#context;
    return (await interruptedRuns(store, { caller, project, environment })).filter(
      ({ runId }) => !this.#driven.has(runId),
    );
  }

  /**
   * Cancels a run, whoever drives it: it sends nothing more once this has resolved, but for events whose intent is on the
   * disk. Gives the run; undefined when there is none.
   */
  async cancel(runId: string): Promise<EventRun | undefined> {
    const { store } = this.#context;
    const driven = this.#driven.get(runId);
    if (driven?.stop("cancelled")) return driven;
    if ((await store.read(runId)) !== undefined)
      await cancelKept(store, runId, (lease) => cancelInterrupted(this.#context, runId, lease));
    return this.find(runId);
  }

  /** A run as it stands; one that was cut short is taken up again. */
  async #resumeInterrupted(runId: string): Promise<EventRun | undefined> {
    const run = await this.find(runId);
    return run?.status() === "interrupted" ? this.resume(runId) : run;
  }

  /**
   * Goes on with what was not attempted, and where the call says `resend` also with what is unknown. Gives the run as
   * it is when another driver has it already; undefined when there is none. Throws a NothingKeptError where it died before
   * its events were kept, and a RunStoreError where it cannot be read. With its events given anew, the run's call says
   * `resend` from now on.
   */
  async resume(runId: string, resend?: EventSource): Promise<EventRun | undefined> {
    const { store, clock } = this.#context;
    const stored = this.#driven.has(runId) ? undefined : await store.read(runId);
    // Another process may be just starting it, and about to take the lease.
    if (stored?.started === false && (await readBack(store, runId)) === undefined) return undefined;
    const lease = stored === undefined ? undefined : await leaseToResume(store, runId);
    if (lease === undefined) return this.find(runId);
    try {
      const found = await readBack(store, runId, "driven here");
      if (found === undefined) throw new RunStoreError(`run ${runId} is gone`, "Look for it with get_run.");
      await store.reopen(found.header);
      const header = resend === undefined ? found.header : await this.#toResend(found.header, resend);
      return this.#drive({ ...takenUp({ ...found, header }, clock.now()), begin: async () => lease });
    } catch (thrown) {
      await lease.release();
      throw thrown;
    }
  }

  /** A run by its ID, driven or at rest; undefined when there is none. */
  async find(runId: string): Promise<EventRun | undefined> {
    const { store } = this.#context;
    const known = this.#driven.get(runId) ?? this.#followed.get(runId);
    if (known !== undefined) return known;
    const found = await this.#read(runId);
    if (found === undefined) return undefined;
    const isDriven = () => store.isDriven(runId);
    if (await isDriven()) return this.#follow(found, isDriven);
    // It may have come to rest in between.
    const { header, state } = (await this.#read(runId)) ?? found;
    for (const entry of lostIn(state)) state.apply(entry);
    return {
      header,
      state,
      status: () => restingStatus(state),
      kept: Promise.resolve(),
      rest: Promise.resolve(),
      watch: () => () => {},
      stop: () => false,
    };
  }

  async #read(runId: string): Promise<RunReadBack | undefined> {
    const { store } = this.#context;
    return this.#lastRead.get(runId, await store.revision(runId), () => readBack(store, runId));
  }

  /** A run that another process drives; looked at by one for all who wait for it. */
  #follow({ header, state }: RunReadBack, isDriven: () => Promise<boolean>): EventRun {
    const driven = elsewhere(state, {
      clock: this.#context.clock,
      signal: this.#ending.signal,
      isDriven,
      read: async () => (await this.#read(header.runId))?.state,
      whileFollowed: async (rest) => {
        this.#followed.set(header.runId, run);
        await rest;
        this.#followed.delete(header.runId);
      },
    });
    const run: EventRun = {
      header,
      get state() {
        return driven.state();
      },
      status: () => (driven.isDriven() ? "running" : restingStatus(driven.state())),
      kept: Promise.resolve(),
      get rest() {
        return driven.rest();
      },
      watch: (watcher) => driven.watch(watcher),
      stop: () => false,
    };
    return run;
  }

  /** The runs of a caller, the newest first. */
  async *list(caller: string): AsyncGenerator<RunSummary & { readonly runId: string }> {
    const { store } = this.#context;
    await this.#tidyOnce();
    for (const runId of await store.list(caller)) {
      const told = this.#driven.has(runId) ? undefined : await store.summary(runId);
      const run = told === undefined ? await orUnreadable(this.find(runId)) : undefined;
      const summary = told ?? (run && summaryOf(run.header, run.state, run.status()));
      if (summary?.caller === caller) yield { runId, ...summary };
    }
  }

  /** What was kept of a run beside its journal. */
  part(runId: string, part: RunPart): ByteSource {
    return this.#context.store.part(runId, part);
  }

  /** Removes runs that need not be kept any longer. */
  tidy(): Promise<void> {
    return this.#context.store.tidy();
  }

  /** Stops all runs and resolves when the requests under way are answered and journalled. */
  async stopAll(): Promise<void> {
    const runs = [...this.#driven.values()];
    this.#ending.abort();
    for (const run of runs) run.stop("interrupted");
    await Promise.all(runs.map((run) => run.rest));
  }

  /** A run whose event is unknown since its process died is brought to its end, where nothing is sent for that. */
  async #endOf(run: EventRun): Promise<EventRun> {
    const { runId, call } = run.header;
    if (run.status() !== "interrupted" || call.input.onUnknown === "resend") return run;
    return (await this.resume(runId)) ?? run;
  }

  /** Keeps a run's events again, and that its call wants what is unknown to be sent again. */
  async #toResend({ call, ...header }: EventRun["header"], { bytes, kept }: EventSource): Promise<EventRun["header"]> {
    const { store } = this.#context;
    const resending: EventCall = { ...call, input: { ...call.input, onUnknown: "resend" } };
    await store.keep(header.runId, "input", unchanged(bytes, kept.digest));
    await store.keepCall(header.runId, resending);
    return { ...header, call: resending };
  }

  #drivenLike(fingerprint: string): EventRun | undefined {
    return [...this.#driven.values()].find(({ header }) => header.fingerprint === fingerprint);
  }

  #fingerprint(call: EventCall, caller: string): string {
    const { project, environment } = this.#context;
    // One event is the same whatever is to become of it when its answer is lost.
    const asked = call.tool === "track_event" ? { tool: call.tool, events: call.input.events } : call;
    return hash("sha256", JSON.stringify([asked, caller, project, environment]), "base64url");
  }

  #drive(parts: DrivenEvents): EventRun {
    const { runId } = parts.header;
    const run = drivenEvents(this.#context, parts);
    /** What another process makes of it that has taken it over. */
    let other: EventRun | undefined;
    let isLookedFor = true;
    const rest = run.rest.then(async () => {
      this.#driven.delete(runId);
      // No call waits for what other processes left; what cannot be tidied now is tried again.
      void this.#tidyOnce().catch(() => undefined);
      if (!run.isTakenOver()) return;
      other = await this.find(runId).catch(() => undefined);
      isLookedFor = false;
      await other?.rest;
    });
    const known: EventRun = {
      ...run,
      get state() {
        return other?.state ?? run.state;
      },
      // Until it is known what the other process makes of it, it goes on.
      status: () => (run.isTakenOver() && isLookedFor ? "running" : (other ?? run).status()),
      rest,
    };
    this.#driven.set(runId, known);
    return known;
  }

  #tidyOnce(): Promise<void> {
    this.#tidied ??= this.#tidy().catch((thrown: unknown) => {
      this.#tidied = undefined;
      throw thrown;
    });
    return this.#tidied;
  }

  /** Brings to rest what other processes left when they crashed, so that nothing is kept longer than it is needed. */
  async #tidy(): Promise<void> {
    for (const runId of await this.#context.store.unfinished()) {
      if (!this.#driven.has(runId)) await orUnreadable(tidyRun(this.#context, runId));
    }
  }
}

function callOf({ tool = "track_events", source, onUnknown }: PlannedEvents): EventCall {
  return { tool, input: { events: source.kept, onUnknown } };
}

async function unlessNothingKept<T>(taking: Promise<T>): Promise<T | undefined> {
  try {
    return await taking;
  } catch (thrown) {
    if (thrown instanceof NothingKeptError) return undefined;
    throw thrown;
  }
}
