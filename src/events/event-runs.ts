import { hash } from "node:crypto";
import type { Clock } from "../api/clock.ts";
import type { EventApi } from "../api/events.ts";
import { type ByteSource, unchanged } from "../bulk/files/bytes.ts";
import { follow } from "../bulk/follow.ts";
import { LastRead } from "../bulk/last-read.ts";
import type { Lease } from "../bulk/lease.ts";
import { ownReason } from "../bulk/reasons.ts";
import { countsOf, type ReportCounts, type RunStatus, restingStatus, summaryOf } from "../bulk/report.ts";
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
import { bringToRest, eventsToSend, lostIn, type RunReadBack, readBack, tidyRun } from "./event-run-folder.ts";
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

/** What there is of a call that is made again: its run that goes on, or the newest that ended with something left. */
export interface MadeBefore {
  readonly going?: EventRun;
  readonly ended?: Pick<RunSummary, "status" | "open"> & { readonly runId: string };
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
interface Reins {
  readonly signal: AbortSignal;
  readonly cause: () => "cancelled" | "interrupted";
  readonly tell: () => void;
  /** Takes how the run stands where another process drives it. */
  readonly follows: (state: EventRunState) => void;
}

/** Whoever watches is told after so many events. */
const TELL_EVERY = 100;
/** How many runs of the same call are looked at for an unfinished one. */
const RECENT_RUNS = 50;
/** For so long a call that is made again is taken for another try of a cancelled one, and an ended one is named. */
const SAME_CALL_MS = 3_600_000;

/** Starts, resumes, finds and stops runs of events. */
export class EventRuns {
  readonly #context: EventRunsContext;
  /** The runs that this process drives. */
  readonly #driven = new Map<string, EventRun>();
  readonly #lastRead = new LastRead<RunReadBack>();
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
    const call: EventCall = { tool: "track_events", input: { events: source.kept, onUnknown } };
    const fingerprint = this.#fingerprint(call, caller);
    for (const run of this.#driven.values()) if (run.header.fingerprint === fingerprint) return run;
    const createdAt = clock.now();
    const runId = newRunId();
    const header = { runId, call, project, caller, environment, createdAt, fingerprint };
    const begin = async (): Promise<Lease> => {
      await store.create(header);
      const [leased, kept] = await Promise.allSettled([
        store.start(runId).then(() => store.lease(runId)),
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
  async madeBefore({ source, onUnknown }: PlannedEvents, caller: string): Promise<MadeBefore> {
    const { store } = this.#context;
    const call: EventCall = { tool: "track_events", input: { events: source.kept, onUnknown } };
    const fingerprint = this.#fingerprint(call, caller);
    for (const run of this.#driven.values()) if (run.header.fingerprint === fingerprint) return { going: run };
    let ended: MadeBefore["ended"];
    for (const runId of (await store.unfinished(fingerprint)).slice(0, RECENT_RUNS)) {
      const told = await store.summary(runId);
      if (told !== undefined && !this.#isUnfinished(told)) {
        if (this.#isRecent(told)) ended ??= { runId, status: told.status, open: told.open };
        continue;
      }
      const stored = await orUnreadable(store.read(runId));
      if (!stored?.started || stored.header.fingerprint !== fingerprint) continue;
      const going = await this.resume(runId);
      if (going !== undefined) return { going };
    }
    return ended === undefined ? {} : { ended };
  }

  /**
   * Goes on with what was not attempted, and where the call says `resend` also with what is unknown. Gives the run as
   * it is when somebody drives it already; undefined when there is none.
   */
  async resume(runId: string): Promise<EventRun | undefined> {
    const { store, clock } = this.#context;
    const isKept = !this.#driven.has(runId) && (await store.read(runId))?.started === true;
    const lease = isKept ? await store.lease(runId) : undefined;
    if (lease === undefined) return this.find(runId);
    try {
      const found = await readBack(store, runId);
      if (found === undefined) throw new RunStoreError(`run ${runId} is gone`, "Look for it with get_run.");
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
    if (driven !== undefined) return driven;
    const found = await this.#lastRead.get(runId, await store.revision(runId), () => readBack(store, runId));
    if (found === undefined) return undefined;
    const { header, state } = found;
    const elsewhere = await store.isDriven(runId);
    if (!elsewhere) for (const entry of lostIn(state)) state.apply(entry);
    return {
      header,
      state,
      status: () => (elsewhere ? "running" : restingStatus(state)),
      kept: Promise.resolve(),
      rest: Promise.resolve(),
      watch: () => () => {},
      stop: () => false,
    };
  }

  /** The runs of a caller, the newest first. */
  async *list(caller: string): AsyncGenerator<RunSummary & { readonly runId: string }> {
    const { store } = this.#context;
    await this.#tidyOnce();
    for (const runId of await store.list()) {
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

  /** Stops all runs and resolves when the requests under way are answered and journalled. */
  async stopAll(): Promise<void> {
    const runs = [...this.#driven.values()];
    for (const run of runs) run.stop("interrupted");
    await Promise.all(runs.map((run) => run.rest));
  }

  /** Whether a call that is made again means this run, rather than to send all of it anew. */
  #isUnfinished(told: RunSummary): boolean {
    return told.open && (told.status === "interrupted" || (told.status === "cancelled" && this.#isRecent(told)));
  }

  #isRecent({ updatedAt }: RunSummary): boolean {
    return this.#context.clock.now() - updatedAt < SAME_CALL_MS;
  }

  #fingerprint(call: EventCall, caller: string): string {
    const { project, environment } = this.#context;
    return hash("sha256", JSON.stringify([call, caller, project, environment]), "base64url");
  }

  #drive(parts: DrivenParts): EventRun {
    const { header, state, first } = parts;
    const watchers = new Set<Parameters<EventRun["watch"]>[0]>();
    const controller = new AbortController();
    let cause: "cancelled" | "interrupted" = "interrupted";
    let current = state;
    const tell = (): void => {
      for (const watcher of watchers) watcher(countsOf(current));
    };
    const follows = (elsewhere: EventRunState): void => {
      current = elsewhere;
      tell();
    };
    for (const entry of first) state.apply(entry);
    const begun = parts.begin();
    const begin = (): Promise<Lease> => begun;
    const run: EventRun = {
      header,
      get state() {
        return current;
      },
      status: () => (this.#driven.has(header.runId) ? "running" : restingStatus(current)),
      kept: settled(begun),
      rest: this.#driveToRest({ ...parts, begin }, { signal: controller.signal, cause: () => cause, tell, follows }),
      watch: (watcher) => {
        watchers.add(watcher);
        return () => watchers.delete(watcher);
      },
      stop: (why) => {
        // What another process drives is only followed here, until this process ends.
        if (current !== state && why === "cancelled") return false;
        cause = why;
        controller.abort(new DOMException(`the run was ${why}`, "AbortError"));
        return current === state;
      },
    };
    this.#driven.set(header.runId, run);
    return run;
  }

  /** Never rejects: what goes wrong on this machine stops the run, and says so in it. */
  async #driveToRest(parts: DrivenParts, reins: Reins): Promise<void> {
    const { store, clock } = this.#context;
    const { header, state, first, begin } = parts;
    let lease: Lease | undefined;
    const steps = [
      async () => {
        lease = await begin();
        const journal = await store.journal(header.runId, lease);
        try {
          for (const entry of first) journal.append(entry);
          const api = fencedEvents(this.#context.api, lease, () => clock.monotonic());
          await this.#send(parts, journal, reins, api);
        } finally {
          await journal.close();
        }
      },
      () => (lease === undefined ? undefined : bringToRest(this.#context, header, state)),
      () => lease?.release(),
    ];
    for (const step of steps) {
      try {
        await step();
      } catch (thrown) {
        if (lease?.lost.aborted) break;
        const error = thrown instanceof Error ? thrown.message : String(thrown);
        const reason = ownReason("STOPPED_BY_ERROR", { error });
        state.apply({ t: "stop", cause: "interrupted", reason, waitedMs: 0, at: clock.now() });
      }
    }
    if (lease?.lost.aborted) await this.#follow(header.runId, reins);
    this.#driven.delete(header.runId);
    // No call waits for what other processes left; what cannot be tidied now is tried again.
    if (lease !== undefined) void this.#tidyOnce().catch(() => undefined);
  }

  /** Another process has taken the run over: what it does is told. */
  async #follow(runId: string, { signal, follows }: Reins): Promise<void> {
    const { store, clock } = this.#context;
    const read = async () => (await readBack(store, runId))?.state;
    await follow({ store, clock, runId, read, signal }, follows).catch(() => undefined);
  }

  async #send(
    { header, state }: DrivenParts,
    journal: RunJournal<EventEntry>,
    reins: Reins,
    api: EventApi,
  ): Promise<void> {
    const { clock, retryBudgetMs, store } = this.#context;
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
        await journal.flush();
      },
      onSettled(object, settlement) {
        // The line that says how the run stopped settles them.
        if (settlement.reason === "stopped" || settlement.reason === "runEnded") return;
        settle(settledEntry(object, settlement, clock.now()));
        settled += 1;
        if (settled % TELL_EVERY === 0) reins.tell();
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

/** Resolves when work has ended, however. */
async function settled(work: Promise<unknown>): Promise<void> {
  await Promise.allSettled([work]);
}
