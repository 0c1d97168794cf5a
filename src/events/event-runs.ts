import { hash } from "node:crypto";
import { type ByteSource, unchanged } from "../bulk/files/bytes.ts";
import { LastRead } from "../bulk/last-read.ts";
import { restingStatus, summaryOf } from "../bulk/report.ts";
import { orUnreadable, type RunPart, RunStoreError, type RunSummary } from "../bulk/store.ts";
import { type DrivenEvents, drivenEvents } from "./event-drive.ts";
import type { EventRun, EventRunsContext } from "./event-run.ts";
import { lostIn, NothingKeptError, type RunReadBack, readBack, takenUp, tidyRun } from "./event-run-folder.ts";
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

/** What there is of a call that is made again: its run that goes on, or the newest that ended with something left. */
export interface MadeBefore {
  readonly going?: EventRun;
  readonly ended?: Pick<RunSummary, "status" | "open"> & { readonly runId: string };
}

/** How many runs of the same call are looked at for an unfinished one. */
const RECENT_RUNS = 50;
/** For so long a call that is made again is taken for another try of a cancelled one, and an ended one is named. */
const SAME_CALL_MS = 3_600_000;

/** For so long an equal event is not sent while it is not known what became of the first (contract, `track_event`). */
const SAME_EVENT_MS = 600_000;

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
  async madeBefore(planned: PlannedEvents, caller: string): Promise<MadeBefore> {
    const { store } = this.#context;
    const fingerprint = this.#fingerprint(callOf(planned), caller);
    const driven = this.#drivenLike(fingerprint);
    if (driven !== undefined) return { going: driven };
    let ended: MadeBefore["ended"];
    for (const runId of (await store.unfinished(fingerprint)).slice(0, RECENT_RUNS)) {
      const told = await store.summary(runId);
      if (told !== undefined && !this.#isUnfinished(told)) {
        if (this.#isRecent(told)) ended ??= { runId, status: told.status, open: told.open };
        continue;
      }
      const stored = await orUnreadable(store.read(runId));
      if (stored?.header.fingerprint !== fingerprint) continue;
      const going = await unlessNothingKept(this.resume(runId));
      if (going !== undefined) return { going };
    }
    return ended === undefined ? {} : { ended };
  }

  /**
   * Sends one event, unless an equal call was made less than ten minutes ago of which is not known what it came to:
   * then gives its run, and sends only what had not left, or with `resend` what is unknown.
   */
  async sendOne(planned: PlannedEvents, caller: string): Promise<EventRunOfCall> {
    const { store, clock } = this.#context;
    const fingerprint = this.#fingerprint(callOf(planned), caller);
    const isEqual = ({ header }: EventRun): boolean =>
      header.fingerprint === fingerprint && clock.now() - header.createdAt < SAME_EVENT_MS;
    for (const runId of (await store.unfinished(fingerprint)).slice(0, RECENT_RUNS)) {
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
    return driven === undefined ? { run: this.start(planned, caller) } : { run: driven, repeat: "attached" };
  }

  /**
   * Goes on with what was not attempted, and where the call says `resend` also with what is unknown. Gives the run as
   * it is when somebody drives it already; undefined when there is none. Throws a NothingKeptError where it died before
   * its events were kept, and a RunStoreError where it cannot be read. With its events given anew, the run's call says
   * `resend` from now on.
   */
  async resume(runId: string, resend?: EventSource): Promise<EventRun | undefined> {
    const { store, clock } = this.#context;
    const stored = this.#driven.has(runId) ? undefined : await store.read(runId);
    // Another process may be just starting it, and about to take the lease.
    if (stored?.started === false && (await readBack(store, runId)) === undefined) return undefined;
    const lease = stored === undefined ? undefined : await store.lease(runId);
    if (lease === undefined) return this.find(runId);
    try {
      const found = await readBack(store, runId, "driven here");
      if (found === undefined) throw new RunStoreError(`run ${runId} is gone`, "Look for it with get_run.");
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

  #isRecent({ updatedAt }: RunSummary): boolean {
    return this.#context.clock.now() - updatedAt < SAME_CALL_MS;
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
    const rest = run.rest.then(() => {
      this.#driven.delete(runId);
      // No call waits for what other processes left; what cannot be tidied now is tried again.
      void this.#tidyOnce().catch(() => undefined);
    });
    const known = { ...run, rest };
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
