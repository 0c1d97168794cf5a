import { createHash } from "node:crypto";
import type { Clock } from "../api/clock.ts";
import type { EventApi } from "../api/events.ts";
import type { Lease } from "../bulk/lease.ts";
import { ownReason } from "../bulk/reasons.ts";
import { countsOf, type ReportCounts, type RunStatus, restingStatus, summaryOf } from "../bulk/report.ts";
import type { RunHeader, RunJournal, RunStore, RunSummary } from "../bulk/store.ts";
import type { Reason, ReportedObject } from "../bulk/work.ts";
import { isJsonObject } from "./catalogue.ts";
import { endReason, eventReason } from "./event-reason.ts";
import { type EventEntry, EventRunState, verdictOf } from "./event-run-state.ts";
import { type IndexedEvent, sendEvents } from "./send.ts";
import type { Settlement } from "./settlement.ts";

/** A call that sends events. At rest only the events that may still have to be sent are kept; the others are null. */
export interface EventCall {
  readonly tool: "track_events";
  readonly input: { readonly events: readonly unknown[]; readonly onUnknown: "report" | "resend" };
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
}

/** A run of events: what it is, where it stands, and when it rests. */
export interface EventRun {
  readonly header: RunHeader<EventCall>;
  readonly state: EventRunState;
  /** Where it stands as a whole. */
  status(): RunStatus;
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
  /** Absent for a run that is not kept yet. */
  readonly lease?: Lease;
}

/** How a driven run is told to stop, and whom it tells where it stands. */
interface Reins {
  readonly signal: AbortSignal;
  readonly cause: () => "cancelled" | "interrupted";
  readonly tell: () => void;
}

/** Whoever watches is told after so many events. */
const TELL_EVERY = 100;

const ANSWER_LOST: Reason = { code: "EVENT_ANSWER_LOST" };

/** Starts, resumes, finds and stops runs of events. */
export class EventRuns {
  readonly #context: EventRunsContext;
  /** The runs that this process drives. */
  readonly #driven = new Map<string, EventRun>();

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
  start(call: EventCall, caller: string): EventRun {
    const { clock, newRunId, project, environment } = this.#context;
    const identity = JSON.stringify([call, caller, project, environment]);
    const fingerprint = createHash("sha256").update(identity).digest("base64url");
    for (const run of this.#driven.values()) if (run.header.fingerprint === fingerprint) return run;
    const createdAt = clock.now();
    const header = { runId: newRunId(), call, project, caller, environment, createdAt, fingerprint };
    const objects = call.input.events.map(objectOf);
    return this.#drive({ header, state: new EventRunState(), first: [{ t: "events", objects, at: createdAt }] });
  }

  /**
   * Goes on with what was not attempted, and where the call says `resend` also with what is unknown. Gives the run as
   * it is when somebody drives it already; undefined when there is none.
   */
  async resume(runId: string): Promise<EventRun | undefined> {
    const { store, clock } = this.#context;
    const isKept = !this.#driven.has(runId) && (await store.read(runId)) !== undefined;
    const lease = isKept ? await store.lease(runId) : undefined;
    const found = await this.#readBack(runId);
    if (lease === undefined || found === undefined) return this.find(runId);
    const resend = found.header.call.input.onUnknown === "resend";
    const first: readonly EventEntry[] = [...lostIn(found.state), { t: "resume", resend, at: clock.now() }];
    return this.#drive({ ...found, first, lease });
  }

  /** A run by its ID, driven or at rest; undefined when there is none. */
  async find(runId: string): Promise<EventRun | undefined> {
    const driven = this.#driven.get(runId);
    if (driven !== undefined) return driven;
    const found = await this.#readBack(runId);
    if (found === undefined) return undefined;
    const { header, state } = found;
    const elsewhere = await this.#context.store.isDriven(runId);
    if (!elsewhere) for (const entry of lostIn(state)) state.apply(entry);
    return {
      header,
      state,
      status: () => (elsewhere ? "running" : restingStatus(state)),
      rest: Promise.resolve(),
      watch: () => () => {},
      stop: () => false,
    };
  }

  /** The runs of a caller, the newest first. */
  async *list(caller: string): AsyncGenerator<RunSummary & { readonly runId: string }> {
    for (const runId of await this.#context.store.list()) {
      const told = this.#driven.has(runId) ? undefined : await this.#context.store.summary(runId);
      const run = told === undefined ? await this.find(runId) : undefined;
      const summary = told ?? (run && summaryOf(run.header, run.state, run.status()));
      if (summary?.caller === caller) yield { runId, ...summary };
    }
  }

  /** Stops all runs and resolves when the requests under way are answered and journalled. */
  async stopAll(): Promise<void> {
    const runs = [...this.#driven.values()];
    for (const run of runs) run.stop("interrupted");
    await Promise.all(runs.map((run) => run.rest));
  }

  async #readBack(runId: string): Promise<Pick<EventRun, "header" | "state"> | undefined> {
    const stored = await this.#context.store.read(runId);
    if (stored === undefined) return undefined;
    const state = new EventRunState();
    for await (const entry of stored.entries) state.apply(entry);
    return { header: stored.header, state };
  }

  #drive(parts: DrivenParts): EventRun {
    const { header, state, first } = parts;
    const watchers = new Set<Parameters<EventRun["watch"]>[0]>();
    const controller = new AbortController();
    let cause: "cancelled" | "interrupted" = "interrupted";
    const tell = (): void => {
      for (const watcher of watchers) watcher(countsOf(state));
    };
    for (const entry of first) state.apply(entry);
    const run: EventRun = {
      header,
      state,
      status: () => (this.#driven.has(header.runId) ? "running" : restingStatus(state)),
      rest: this.#driveToRest(parts, { signal: controller.signal, cause: () => cause, tell }),
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
    this.#driven.set(header.runId, run);
    return run;
  }

  /** Never rejects: what goes wrong on this machine stops the run, and says so in it. */
  async #driveToRest(parts: DrivenParts, reins: Reins): Promise<void> {
    const { store, clock } = this.#context;
    const { header, state } = parts;
    const { runId, call } = header;
    try {
      if (parts.lease === undefined) {
        await store.create(header);
        await store.start(runId);
      }
      const lease = parts.lease ?? (await store.lease(runId));
      const journal = await store.journal(runId);
      try {
        for (const entry of parts.first) journal.append(entry);
        await this.#send(parts, journal, reins);
      } finally {
        await journal.close();
      }
      const events = call.input.events.map((event, object) => (state.isOpen(object) ? event : null));
      await store.keepCall(runId, { ...call, input: { ...call.input, events } });
      await store.summarise(runId, summaryOf(header, state, restingStatus(state)));
      await lease?.release();
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown.message : String(thrown);
      const reason = ownReason("STOPPED_BY_ERROR", { error });
      state.apply({ t: "stop", cause: "interrupted", reason, waitedMs: 0, at: clock.now() });
    }
    this.#driven.delete(runId);
  }

  async #send({ header, state }: DrivenParts, journal: RunJournal<EventEntry>, reins: Reins): Promise<void> {
    const { api, clock, retryBudgetMs } = this.#context;
    const { events, onUnknown } = header.call.input;
    const record = (entry: EventEntry): void => {
      journal.append(entry);
      state.apply(entry);
    };
    let settled = 0;
    const { counts, ended } = await sendEvents(openEvents(events, state), {
      api,
      clock,
      onUnknown,
      retryBudgetMs,
      signal: reins.signal,
      async beforeSend(objects) {
        record({ t: "leave", objects, at: clock.now() });
        await journal.flush();
      },
      onSettled(object, settlement) {
        // The line that says how the run stopped settles them.
        if (settlement.reason === "stopped" || settlement.reason === "runEnded") return;
        record(settledEntry(object, settlement, clock.now()));
        settled += 1;
        if (settled % TELL_EVERY === 0) reins.tell();
      },
    });
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
}

/** What became of an event, as a line of the journal. */
export function settledEntry(object: number, settlement: Settlement, at: number): EventEntry {
  const { outcome, attempts, predicted, observed, maybeTwice } = settlement;
  const reason = eventReason(settlement);
  const verdict = verdictOf(predicted, observed);
  return {
    ...{ t: "settled", object, outcome, attempts, at },
    ...(reason && { reason }),
    ...(verdict && { verdict }),
    ...(maybeTwice && { maybeTwice }),
  };
}

/** An event as runs report it: the identifier of its user only as the hash that the service keeps, too. */
export function objectOf(event: unknown, index: number): ReportedObject {
  if (!isJsonObject(event)) return { index };
  const { eventName, uid } = event;
  return {
    index,
    ...(typeof eventName === "string" && { name: eventName.slice(0, LONGEST_NAME) }),
    ...(typeof uid === "string" && { uid: createHash("sha256").update(uid).digest("hex") }),
  };
}

const LONGEST_NAME = 100;

function* openEvents(events: readonly unknown[], state: EventRunState): Generator<IndexedEvent> {
  for (const [index, event] of events.entries()) if (state.standing(index) === "pending") yield { index, event };
}

/** After a crash the answers about events that had left are lost. */
function lostIn(state: EventRunState): readonly EventEntry[] {
  const { updatedAt: at } = state;
  return state.lost().map((object) => ({
    t: "settled",
    object,
    outcome: "unknown",
    reason: ANSWER_LOST,
    attempts: 1,
    at,
  }));
}
