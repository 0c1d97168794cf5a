import { isSheet } from "../../files/input-file.ts";
import type { Clock } from "../../platform/clock.ts";
import { FileError } from "../../platform/files.ts";
import { type ByteSource, unchanged } from "../../platform/held-folder.ts";
import type {
  ReadBack,
  Run,
  RunAccess,
  RunExecution,
  RunForm,
  RunKind,
  RunsContext,
  StoredParts,
} from "../../runs/kind.ts";
import { type EarlierRuns, KindRuns, type Requested, SAME_CALL_MS, startOrJoin } from "../../runs/kind-runs.ts";
import { ownReason } from "../../runs/outcome.ts";
import {
  DamagedRunError,
  NothingStoredError,
  RunStoreError,
  undefinedIfNothingStored,
  undefinedIfUnreadable,
} from "../../runs/store.ts";
import { ulidTime } from "../../spec/names-and-contexts.ts";
import { type EventWorld, sendPending } from "./drive.ts";
import {
  type EventCall,
  type EventEntry,
  EventRunState,
  eventCall,
  eventEntry,
  leftOf,
  resendsUnknown,
  SAME_EVENT_MS,
  SENDING_ENDED,
} from "./run-state.ts";
import type { ContinuedRun, SentWithoutResult } from "./sent-before.ts";
import { countEvents, type EventCounts, type EventSource, eventsIn, filterEvents, rowsOfEvents } from "./source.ts";

/** The events that a call wants to send. Their counts are absent as long as the events have not been counted. */
export interface PlannedEvents extends Partial<EventCounts> {
  readonly source: EventSource;
  readonly onUnknown: "report" | "resend";
  readonly tool?: EventCall["tool"];
  readonly requested?: Requested | undefined;
}

export type EventRun = Run<EventCall, EventRunState>;

interface EventRunOfCall {
  readonly run: EventRun;
  /**
   * Set if a recent identical call has no clear result. `attached`: this call sends nothing, and returns the earlier
   * run. `resumed`: it continues that run, which had not yet sent the event. `resent`: it sends the event again.
   */
  readonly repeat?: "attached" | "resumed" | "resent";
}

/** How many unfinished runs are searched for one of an identical call, or for one with unknown results. */
const RECENT_RUNS = 50;

/** The result of a dry run: which outcome each event would have. */
export interface EventDryRun {
  readonly entries: readonly EventEntry[];
  readonly state: EventRunState;
}

export class EventRuns {
  readonly runs: KindRuns<EventCall, EventEntry, EventRunState, EventSource>;
  readonly #context: RunsContext & Pick<EventWorld, "words">;

  constructor(context: RunsContext & EventWorld) {
    this.#context = context;
    this.runs = new KindRuns(eventKind(context), context);
  }

  /** Starts a run in the background. If this process already executes one of an identical call, returns that one. */
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

  /** Finds or resumes an unfinished run of an identical call (`going`). Otherwise finds one to mention (`ended`). */
  findEarlierRun(planned: PlannedEvents, caller: string): Promise<EarlierRuns<EventRun>> {
    return this.runs.findEarlierRun(callOf(planned), caller);
  }

  /**
   * Starts the run of a call, or returns or resumes that of an identical call. Identical calls made at the same time
   * get the same run, even in different processes. `arrivedAt`: when this call arrived, in milliseconds since 1970.
   */
  async once(
    planned: PlannedEvents,
    caller: string,
    arrivedAt: number,
  ): Promise<EventRunOfCall & { readonly before: EarlierRuns<EventRun> }> {
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
          const before = await this.#runsBefore(planned, caller);
          const sent = before.going === undefined ? await this.#sentBefore(planned, fingerprint) : undefined;
          const of = sent ?? { run: before.going ?? (await this.#startWithRoom(planned, caller)) };
          await of.run.kept;
          return { ...of, before };
        },
      },
    );
  }

  /** Returns the run that a call would continue or return, instead of starting a new one. It is not resumed here. */
  async runToContinue(planned: PlannedEvents, caller: string): Promise<ContinuedRun | undefined> {
    const runs = await this.#unfinishedLike(planned, this.runs.fingerprint(callOf(planned), caller));
    if (runs.length === 0) return undefined;
    // Imported only when needed, because few calls repeat an unfinished one.
    const { continuedRun } = await import("./sent-before.ts");
    return continuedRun(runs, this.#context.clock.now(), planned.onUnknown);
  }

  async #unfinishedLike(planned: PlannedEvents, fingerprint: string): Promise<readonly EventRun[]> {
    const runIds = await this.#context.store.list({ unfinished: { fingerprint } });
    const runs: EventRun[] = [];
    for (const runId of runIds.slice(0, RECENT_RUNS)) {
      const run = await undefinedIfNothingStored(this.runs.find(runId)).catch((thrown: unknown) =>
        this.#checkMaySendAgain(thrown, planned, fingerprint),
      );
      if (run?.header.fingerprint === fingerprint) runs.push(run);
    }
    return runs;
  }

  /** Throws the error of reading an identical run, unless that run is damaged and its events may be sent again. */
  async #checkMaySendAgain(
    thrown: unknown,
    { tool, onUnknown }: PlannedEvents,
    fingerprint: string,
  ): Promise<undefined> {
    if (!(thrown instanceof DamagedRunError)) throw thrown;
    const { runId } = thrown;
    const { store, clock } = this.#context;
    const [last = runId] = await store.list({ lastOf: fingerprint });
    const isOld = tool === "track_event" && clock.now() - ulidTime(runId) >= SAME_EVENT_MS;
    // If there is a later run, a call has already sent the events again.
    if (onUnknown === "report" && last <= runId && !isOld) throw new DamagedRunError(runId, { kind: "events" });
  }

  /** Finds or resumes an earlier run of an identical call. Also finds one that recently ended with no events left. */
  async #runsBefore(planned: PlannedEvents, caller: string): Promise<EarlierRuns<EventRun>> {
    const before = await this.findEarlierRun(planned, caller);
    if (before.going !== undefined || before.ended !== undefined) return before;
    const { store, clock } = this.#context;
    const [runId] = await store.list({ lastOf: this.runs.fingerprint(callOf(planned), caller) });
    const rest = runId === undefined ? undefined : (await store.record(runId))?.rest;
    if (runId === undefined || rest === undefined || rest.open) return before;
    const isRecent = clock.now() - rest.updatedAt < SAME_CALL_MS;
    return isRecent ? { ended: { runId, status: rest.status, open: false } } : before;
  }

  /** Sends one event. If an identical recent call has no clear result yet, returns or resumes the run of that call. */
  async sendOne(planned: PlannedEvents, caller: string): Promise<EventRunOfCall> {
    const fingerprint = this.runs.fingerprint(callOf(planned), caller);
    return this.#context.store.withCallLock(fingerprint, async () => {
      const sent = await this.#sentBefore(planned, fingerprint);
      const of = sent ?? { run: await this.#startWithRoom(planned, caller) };
      await of.run.kept;
      return of;
    });
  }

  /**
   * Returns the events of a call that another recent call of the same caller has sent with an unknown result. Undefined
   * if there are none, or if the call joins its own earlier run, and therefore does not send them again.
   */
  async sentWithoutResult(planned: PlannedEvents, caller: string): Promise<SentWithoutResult | undefined> {
    const own = this.runs.fingerprint(callOf(planned), caller);
    const recent = await this.#recentWithUnknown(caller);
    const isJoined = ({ header, state }: EventRun): boolean =>
      header.fingerprint === own &&
      this.#context.clock.now() - header.createdAt < SAME_EVENT_MS &&
      leftOf(header.call, state) === 0;
    if (recent.some(isJoined)) return undefined;
    const others = recent.filter(({ header }) => header.fingerprint !== own);
    if (others.length === 0) return undefined;
    // Imported only when needed, because few results are unknown.
    const { findSentBefore } = await import("./sent-before.ts");
    return findSentBefore(others, planned.source, (runId) => this.#context.store.parts.read(runId, "input"));
  }

  async #recentWithUnknown(caller: string): Promise<readonly EventRun[]> {
    const { store, clock, project, environment } = this.#context;
    const found: EventRun[] = [];
    for (const runId of (await store.list({ unfinished: { caller, project, environment } })).slice(0, RECENT_RUNS)) {
      const { rest } = (await store.record(runId)) ?? {};
      const isRecent = rest !== undefined && clock.now() - rest.updatedAt < SAME_EVENT_MS;
      const isOfEvents = eventCall.shape.tool.options.some((one) => one === rest?.tool);
      if (!isRecent || (rest.counts.unknown ?? 0) === 0 || !isOfEvents) continue;
      // A damaged run concerns only calls that are identical with its own.
      const run = await undefinedIfUnreadable(this.runs.find(runId));
      if (run !== undefined) found.push(run);
    }
    return found;
  }

  /** Stores a dry run with its result. Returns its ID. Throws a RunStoreError if it cannot be stored. */
  async keepDryRun(planned: PlannedEvents, caller: string, { entries, state }: EventDryRun): Promise<string> {
    const { store, words } = this.#context;
    const { bytes, kept } = planned.source;
    const call = callOf(planned);
    const marks = { ...planned.requested, dryRun: true } as const;
    const { runId } = await this.runs.keep(call, caller, { bytes, digest: kept.digest }, marks);
    try {
      const rejects = await failedRowsOf({ kept, bytes }, state, words);
      if (rejects !== undefined) await store.parts.keep(runId, "rejects", rejects);
      await this.runs.propose(runId, entries, "planned");
    } catch (thrown) {
      await store.discard(runId);
      throw thrown;
    }
    return runId;
  }

  /**
   * Starts a run. If there is no room, first removes the dry run of the same events. Throws a ShareFullError if there
   * is still no room.
   */
  async #startWithRoom(planned: PlannedEvents, caller: string): Promise<EventRun> {
    const { store } = this.#context;
    const checkRoom = async () => store.sizes.checkRoom?.(caller, planned.source.size ?? 0);
    try {
      await checkRoom();
    } catch (thrown) {
      if (!(thrown instanceof RunStoreError)) throw thrown;
      const [dryRun] = await store.list({ lastOf: this.runs.fingerprint(callOf(planned), caller, true) });
      if (dryRun === undefined || !(await this.runs.removeDryRun(dryRun))) throw thrown;
      await checkRoom();
    }
    return this.start(planned, caller);
  }

  async #sentBefore(planned: PlannedEvents, fingerprint: string): Promise<EventRunOfCall | undefined> {
    for (const run of await this.#unfinishedLike(planned, fingerprint)) {
      const { runId, createdAt } = run.header;
      if (this.#context.clock.now() - createdAt >= SAME_EVENT_MS) continue;
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

  /** Ends a run whose process ended before a result was known, unless it resends such events. The result is unknown. */
  async #endOf(run: EventRun): Promise<EventRun> {
    if (run.status() !== "interrupted" || resendsUnknown(run.header.call, run.state)) return run;
    return (await this.runs.resume(run.header.runId)) ?? run;
  }
}

export function isEventRun(run: Run): run is EventRun {
  return run.kind === "events";
}

function callOf({ tool = "track_events", source, onUnknown }: PlannedEvents): EventCall {
  return { tool, input: { events: source.kept, onUnknown } };
}

/**
 * Returns the kind of runs that send events. `start` gets the events as an `EventSource`. So does `resume`, if a later
 * call sends events with an unknown result again.
 */
function eventKind(world: EventWorld): RunKind<EventCall, EventEntry, EventRunState, EventSource> {
  const { clock, words } = world;
  return {
    ...EVENT_FORM,
    newState: () => new EventRunState(),
    isPlannedFirst: false,
    recoversOrphans: true,
    readBack,
    async start(run, { counting }) {
      if (counting === undefined) await run.flush();
      // The first entry is written before anything is sent. After a crash, a run with an empty journal would start
      // again and send the events twice.
      await run.markStarted();
      if (counting !== undefined) await begin(run, counting, clock);
      await sendPending(run, world);
    },
    async resume(run, again) {
      for (const entry of entriesAfterCrash(run.state)) run.record(entry);
      if (again !== undefined) await run.keep("input", unchanged(again.bytes, again.kept.digest));
      const resend = again !== undefined || resendsUnknown(run.header.call, run.state);
      run.record({ t: "resume", resend, at: clock.now() });
      await run.flush();
      await run.markStarted();
      await sendPending(run, world);
    },
    lost: entriesAfterCrash,
    stop: (ending, at) => ({ t: "stop", ...ending, waitedMs: 0, at }),
    finish: (run) => finish(run, words),
    isOpen: ({ call }, state) => leftOf(call, state) > 0,
    // `onUnknown` is not compared: a call with the same events and another `onUnknown` still repeats the earlier one.
    identity: ({ tool, input }) => ({ tool, events: input.events }),
    isMeant: ({ open, status }, isRecent) => open && (status === "interrupted" || (status === "cancelled" && isRecent)),
  };
}

function beginOf({ items, skipped = 0 }: EventCounts, at: number): EventEntry {
  return { t: "begin", items, ...(skipped > 0 && { skipped }), at };
}

const NO_ROWS = { message: "there are no events to send", remedy: "Give at least one event, or a file with rows." };

/** Records a run's first entry after its events are counted. An empty or unreadable file counts as one failed event. */
async function begin(
  run: RunExecution<EventCall, EventEntry, EventRunState>,
  counting: Promise<EventCounts>,
  clock: Pick<Clock, "now">,
): Promise<void> {
  const counted = await counting.catch((thrown: unknown) => {
    if (thrown instanceof FileError) return thrown;
    throw thrown;
  });
  if (!(counted instanceof FileError) && counted.items > 0) {
    run.record(beginOf(counted, clock.now()));
    return run.flush();
  }
  const { message, remedy } = counted instanceof FileError ? counted : NO_ROWS;
  const reason = ownReason("FILE_UNREADABLE", { effect: "file", message, remedy });
  run.record(beginOf({ items: 1 }, clock.now()));
  run.record({ t: "settled", object: 0, outcome: "failed", reason, attempts: 0, at: clock.now() });
  await run.flush();
}

/** Restores a run's state. Throws a NothingStoredError, or a DamagedRunError if it sent events but has no journal. */
async function readBack(
  kept: StoredParts<EventCall, EventEntry>,
): Promise<ReadBack<EventEntry, EventRunState> | undefined> {
  const state = new EventRunState();
  const { runId, dryRun } = kept.header;
  for await (const entry of dryRun ? kept.proposed : kept.entries) state.apply(entry);
  if (state.objects.length > 0) return { state };
  if (dryRun) {
    throw new NothingStoredError(
      `the dry run ${runId} was not stored completely; nothing was sent`,
      "Make the call with dryRun again.",
    );
  }
  const begin = await restoreBeginEntry(kept);
  if (begin !== undefined) {
    const begun = new EventRunState();
    begun.apply(begin);
    return { state: begun, first: [begin] };
  }
  if (await kept.isDriven()) return undefined;
  throw new NothingStoredError(
    `run ${runId} was never started: its server ended before its events were stored, and nothing was sent`,
    "Make the call again.",
  );
}

async function restoreBeginEntry({
  header: { runId, call, createdAt },
  record: { rest },
  part,
}: StoredParts<EventCall, EventEntry>): Promise<EventEntry | undefined> {
  const { succeeded = 0, unknown = 0 } = rest?.counts ?? {};
  if (succeeded + unknown > 0) throw new DamagedRunError(runId, { kind: "events" });
  const kept = { kept: call.input.events, bytes: part("input") };
  const counts: EventCounts = (await hasBytes(kept.bytes)) ? await countEvents(eventsIn(kept)) : { items: 0 };
  return counts.items > 0 ? beginOf(counts, createdAt) : undefined;
}

/** Returns an entry with the outcome unknown for each event that was announced before a crash but not answered. */
function entriesAfterCrash(state: EventRunState): readonly EventEntry[] {
  const lost = { t: "settled", outcome: "unknown", reason: SENDING_ENDED, attempts: 1, afterCrash: true } as const;
  return state.lost().map((object) => ({ ...lost, object, at: state.updatedAt }));
}

/** Returns the failed rows of a file with their reasons. Undefined without failed rows or a readable file. */
async function failedRowsOf(
  { kept, bytes }: EventSource,
  state: EventRunState,
  words: EventWorld["words"],
): Promise<AsyncIterable<string | Uint8Array> | undefined> {
  const { file } = kept;
  if (file === undefined || state.counts().failed === 0 || state.isUnread) return undefined;
  const { failedRows, rejectedRows } = await import("../../files/result-sheet.ts");
  return rejectedRows(bytes, file, rowsOfEvents(kept), { failed: failedRows(state), words });
}

/** Called when a run has ended. Removes events that are no longer needed, and stores the failed rows with reasons. */
async function finish(
  { header, state, part, keep }: RunAccess<EventCall, EventRunState>,
  words: EventWorld["words"],
): Promise<void> {
  const { events } = header.call.input;
  const { file } = events;
  const bytes = part("input");
  // If no events are stored, nothing is left to do. Mostly, this function already removed them before a crash.
  if (!(await hasBytes(bytes))) return;
  const { failed, unknown } = state.counts();
  const rejects = await failedRowsOf({ kept: events, bytes }, state, words);
  if (rejects !== undefined) await keep("rejects", rejects);
  const hasLeft = leftOf(header.call, state) > 0;
  // Failed events without a file are kept. So are failed rows of a sheet, to be returned with the original columns.
  const keepsFailed = !state.isUnread && (file === undefined || isSheet(file));
  const isKept = (object: number): boolean => {
    const standing = state.standing(object);
    // In other formats, failed events are kept only while there are events left to send: the file of failed rows may
    // then be written again.
    if (standing === "failed") return hasLeft || keepsFailed;
    return standing === "pending" || standing === "notApplied" || standing === "unknown";
  };
  const keepsAny = hasLeft || unknown > 0 || (failed > 0 && keepsFailed);
  await keep("input", keepsAny ? filterEvents({ kept: events, bytes }, isKept) : nothing());
}

async function hasBytes(bytes: ByteSource): Promise<boolean> {
  for await (const chunk of bytes()) if (chunk.length > 0) return true;
  return false;
}

async function* nothing(): AsyncGenerator<never> {}

const EVENT_FORM: RunForm<EventCall, EventEntry> = {
  name: "events",
  tools: eventCall.shape.tool.options,
  call: eventCall,
  entry: eventEntry,
  line: (entry) => [JSON.stringify(entry)],
};
