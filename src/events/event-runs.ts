import { hash } from "node:crypto";
import type { Clock } from "../api/clock.ts";
import type { EventApi } from "../api/events.ts";
import { elsewhere } from "../bulk/elsewhere.ts";
import { startedBy } from "../bulk/ended-runs.ts";
import { type ByteSource, unchanged } from "../bulk/files/bytes.ts";
import { LastRead } from "../bulk/last-read.ts";
import type { Lease } from "../bulk/lease.ts";
import { ownReason } from "../bulk/reasons.ts";
import { cancelKept, leaseToResume, type Reins, reinsOf } from "../bulk/reins.ts";
import { countsOf, type ReportCounts, type RunStatus, restingStatus, summaryOf } from "../bulk/report.ts";
import { type Interrupted, interruptedRuns, type MadeBefore, madeBefore, oneOf } from "../bulk/same-call.ts";
import {
  orUnreadable,
  type RunHeader,
  type RunJournal,
  type RunPart,
  type RunStore,
  RunStoreError,
  type RunSummary,
} from "../bulk/store.ts";
import type { Reason } from "../bulk/work.ts";
import { endReason } from "./event-reason.ts";
import { recorder } from "./event-recorder.ts";
import {
  bringToRest,
  cancelInterrupted,
  eventsToSend,
  lostIn,
  type RunReadBack,
  readBack,
  tidyRun,
} from "./event-run-folder.ts";
import { type EventCall, type EventEntry, EventRunState, settledEntry } from "./event-run-state.ts";
import type { EventSource } from "./event-source.ts";
import { fencedEvents } from "./fenced-events.ts";
import { sendEvents } from "./send.ts";

/** Events to be sent: where they are, and how many. */
export interface PlannedEvents {
  readonly source: EventSource;
  readonly items: number;
  readonly onUnknown: "report" | "resend";
}

/** What running events needs of the world. */
export interface EventRunsContext {
  readonly api: EventApi;
  readonly store: RunStore<EventCall, EventEntry>;
  readonly clock: Clock;
  readonly newRunId: () => string;
  readonly project: string;
  readonly environment: "live" | "sandbox";
  /** How long one event is retried, in milliseconds. */
  readonly retryBudgetMs: number;
  /** Says in words why something failed, for reject files. */
  readonly words: (reason: Reason) => string;
}

/** A run of events: what it is, where it stands, and when it rests. */
export interface EventRun {
  readonly header: RunHeader<EventCall>;
  readonly state: EventRunState;
  /** Where it stands as a whole. */
  status(): RunStatus;
  /** Resolves when the disk holds the run, so that its ID may be told, or it is clear that it never will. */
  readonly kept: Promise<void>;
  /** Resolves when nobody drives it any more. Never rejects. */
  readonly rest: Promise<void>;
  /** Calls the watcher now and then, until the given function is called. */
  watch(watcher: (counts: ReportCounts) => void): () => void;
  /** Lets it finish the requests under way and send nothing more; false when this process does not drive it. */
  stop(cause: "cancelled" | "interrupted"): boolean;
}

/** What driving a run needs of it. */
interface DrivenParts {
  readonly header: RunHeader<EventCall>;
  readonly state: EventRunState;
  /** What the journal takes first. */
  readonly first: readonly EventEntry[];
  /** How it comes to be driven by this process. */
  readonly begin: () => Promise<Lease>;
}

/** How a driven run is told to stop, and whom it tells where it stands. */
interface Driving {
  readonly reins: Reins;
  readonly held: Held;
  readonly tell: () => void;
}

/** The lease of a driven run, once it is had. */
interface Held {
  lease: Lease | undefined;
}

/** Whoever watches is told after so many events. */
const TELL_EVERY = 100;
/** Starts, resumes, finds and stops runs of events. */
export class EventRuns {
  readonly #context: EventRunsContext;
  /** The runs that this process drives. */
  readonly #driven = new Map<string, EventRun>();
  readonly #lastRead = new LastRead<RunReadBack>();
  /** The runs that other processes drive, and that somebody here waits for. */
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
  start({ source, items, onUnknown }: PlannedEvents, caller: string): EventRun {
    const { store, clock, newRunId, project, environment } = this.#context;
    const call = callOf({ source, onUnknown });
    const fingerprint = this.#fingerprint(call, caller);
    for (const run of this.#driven.values()) if (run.header.fingerprint === fingerprint) return run;
    const createdAt = clock.now();
    const runId = newRunId();
    const header = { runId, call, project, caller, environment, createdAt, fingerprint };
    const begin = async (): Promise<Lease> => {
      await store.create(header);
      const [leased, kept] = await Promise.allSettled([
        startedBy(this.#context, runId),
        store.keep(runId, "input", unchanged(source.bytes, source.kept.digest)),
      ]);
      if (leased.status === "rejected") throw leased.reason;
      if (kept.status === "rejected") await leased.value?.release();
      if (kept.status === "rejected") throw kept.reason;
      if (leased.value !== undefined) return leased.value;
      throw new RunStoreError("another process drives this run", "Look at it with get_run.");
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
    for (const run of this.#driven.values()) if (run.header.fingerprint === fingerprint) return { going: run };
    const isMeant = ({ open, status }: RunSummary, isRecent: boolean): boolean =>
      open && (status === "interrupted" || (status === "cancelled" && isRecent));
    return madeBefore(store, fingerprint, { now: clock.now, isMeant, takeUp: (runId) => this.resume(runId) });
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
    const { store } = this.#context;
    const fingerprint = this.#fingerprint(callOf(planned), caller);
    return oneOf(
      store,
      { fingerprint, arrivedAt },
      {
        attach: async (runId) => {
          const going = (await store.read(runId))?.started ? await this.resumeInterrupted(runId) : undefined;
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
    if ((await store.read(runId))?.started)
      await cancelKept(store, runId, (lease) => cancelInterrupted(this.#context, runId, lease));
    return this.find(runId);
  }

  /** A run as it stands; one that was cut short is taken up again. */
  async resumeInterrupted(runId: string): Promise<EventRun | undefined> {
    const run = await this.find(runId);
    return run?.status() === "interrupted" ? this.resume(runId) : run;
  }

  /**
   * Goes on with what was not attempted, and where the call says `resend` also with what is unknown. Gives the run as
   * it is when somebody drives it already; undefined when there is none.
   */
  async resume(runId: string): Promise<EventRun | undefined> {
    const { store, clock } = this.#context;
    const isKept = !this.#driven.has(runId) && (await store.read(runId))?.started === true;
    const lease = isKept ? await leaseToResume(store, runId) : undefined;
    if (lease === undefined) return this.find(runId);
    try {
      const found = await readBack(store, runId);
      if (found === undefined) throw new RunStoreError(`run ${runId} is gone`, "Look for it with get_run.");
      await store.reopen(found.header);
      const resend = found.header.call.input.onUnknown === "resend";
      const first: readonly EventEntry[] = [...lostIn(found.state), { t: "resume", resend, at: clock.now() }];
      return this.#drive({ ...found, first, begin: async () => lease });
    } catch (thrown) {
      await lease.release();
      throw thrown;
    }
  }

  /** A run by its ID, driven or at rest; undefined when there is none. */
  async find(runId: string): Promise<EventRun | undefined> {
    const { store } = this.#context;
    const driven = this.#driven.get(runId);
    const known = driven ?? this.#followed.get(runId);
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

  #fingerprint(call: EventCall, caller: string): string {
    const { project, environment } = this.#context;
    return hash("sha256", JSON.stringify([call, caller, project, environment]), "base64url");
  }

  #drive(parts: DrivenParts): EventRun {
    const { header, state, first } = parts;
    const { runId } = header;
    const watchers = new Set<Parameters<EventRun["watch"]>[0]>();
    const tell = (): void => {
      for (const watcher of watchers) watcher(countsOf(state));
    };
    for (const entry of first) state.apply(entry);
    const held: Held = { lease: undefined };
    const reins = reinsOf(this.#context.store, runId, () => held.lease);
    const begun = parts.begin();
    const begin = (): Promise<Lease> => begun;
    /** What another process makes of it that has taken it over. */
    let other: EventRun | undefined;
    const rest = this.#driveToRest({ ...parts, begin }, { reins, held, tell }).then(async () => {
      if (!held.lease?.lost.aborted) return;
      other = await this.find(runId).catch(() => undefined);
      await other?.rest;
    });
    const run: EventRun = {
      header,
      get state() {
        return other?.state ?? state;
      },
      status: () => (this.#driven.has(runId) ? "running" : (other?.status() ?? restingStatus(state))),
      kept: settled(begun),
      rest,
      watch: (watcher) => {
        watchers.add(watcher);
        return () => watchers.delete(watcher);
      },
      stop: (why) => {
        reins.stop(why);
        return held.lease?.lost.aborted !== true;
      },
    };
    this.#driven.set(runId, run);
    return run;
  }

  /** Never rejects: what goes wrong on this machine stops the run, and says so in it. */
  async #driveToRest(parts: DrivenParts, driving: Driving): Promise<void> {
    const { store, clock } = this.#context;
    const { header, state, first, begin } = parts;
    const { reins, held } = driving;
    let lease: Lease | undefined;
    // What belongs to a run that another process has taken over is for that one.
    const unlessLost = (work: () => unknown) => () => (lease?.lost.aborted ? undefined : work());
    const steps = [
      async () => {
        lease = await begin();
        held.lease = lease;
        const journal = await store.journal(header.runId, lease);
        try {
          for (const entry of first) journal.append(entry);
          await this.#send(parts, journal, driving, lease);
        } finally {
          await journal.close();
        }
      },
      () => reins.end(),
      unlessLost(() => (lease === undefined ? undefined : bringToRest(this.#context, header, state))),
      unlessLost(() => lease?.release()),
    ];
    for (const step of steps) {
      try {
        await step();
      } catch (thrown) {
        if (lease?.lost.aborted) continue;
        const error = thrown instanceof Error ? thrown.message : String(thrown);
        const reason = ownReason("STOPPED_BY_ERROR", { error });
        state.apply({ t: "stop", cause: "interrupted", reason, waitedMs: 0, at: clock.now() });
      }
    }
    this.#driven.delete(header.runId);
    // No call waits for what other processes left; what cannot be tidied now is tried again.
    if (lease !== undefined) void this.#tidyOnce().catch(() => undefined);
  }

  async #send(
    { header, state }: DrivenParts,
    journal: RunJournal<EventEntry>,
    { reins, tell }: Driving,
    lease: Lease,
  ): Promise<void> {
    const { clock, retryBudgetMs, store } = this.#context;
    const api = fencedEvents(this.#context.api, lease, () => clock.monotonic());
    const { record, settle, end } = recorder(journal, state, clock);
    const left = eventsToSend(store, header, state, { record, now: clock.now });
    let settled = 0;
    const sending = sendEvents(left, {
      api,
      clock,
      onUnknown: header.call.input.onUnknown,
      retryBudgetMs,
      signal: reins.signal,
      async beforeSend(objects) {
        record({ t: "leave", objects, at: clock.now() });
        // What was announced before is not to leave either, once another process has taken the run over.
        await journal.flush().finally(() => lease.lost.aborted && reins.stop("interrupted"));
        await reins.mayLeave();
      },
      onSettled(object, settlement) {
        // The line that says how the run stopped settles them.
        if (settlement.reason === "stopped" || settlement.reason === "runEnded") return;
        settle(settledEntry(object, settlement, clock.now()));
        settled += 1;
        if (settled % TELL_EVERY === 0) tell();
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
    tell();
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

function callOf({ source, onUnknown }: Pick<PlannedEvents, "source" | "onUnknown">): EventCall {
  return { tool: "track_events", input: { events: source.kept, onUnknown } };
}

/** Resolves when work has ended, however. */
async function settled(work: Promise<unknown>): Promise<void> {
  await Promise.allSettled([work]);
}
