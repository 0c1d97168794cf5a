import type * as z from "zod";
import type { Clock } from "../platform/clock.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { parseJson } from "../platform/json.ts";
import type { Reason, StopCause } from "./outcome.ts";
import type { ReportCounts, ReportedState, RunStatus } from "./report.ts";
import {
  DamagedRunError,
  type Line,
  type RunHeader,
  type RunJournal,
  type RunPart,
  type RunStore,
  type RunSummary,
  type StoredRun,
} from "./store.ts";
import type { Intent, Lease } from "./turn.ts";

export interface ToolCall {
  readonly tool: string;
}

/** The format of a kind's runs: how their calls and journal entries are written and read back. */
export interface RunForm<Call, Entry> {
  /** The name of the kind, stored in the header of each run. */
  readonly name: string;
  /** The tools whose calls this kind executes. */
  readonly tools: readonly string[];
  readonly call: z.ZodType<Call>;
  readonly entry: z.ZodType<Entry>;
  /** Encodes an entry as a line of a journal. */
  readonly line: (entry: Entry) => Line;
}

/** The state of a run, derived from all entries of its journal. */
export interface RunView<Entry> extends ReportedState {
  apply(entry: Entry): void;
}

/** How a run stops. `reason` becomes the reason of the objects that were not attempted. */
export interface Ending {
  readonly cause: StopCause;
  readonly reason?: Reason;
}

/**
 * A kind of work that is journaled, leased and reported, such as sending events or changing targetings. This folder
 * contains what all kinds share; a `RunKind` contains what differs. `Given` is the input that a start needs besides the
 * stored parts, and `Again` the optional input of a resume.
 */
export interface RunKind<Call extends ToolCall, Entry, State extends RunView<Entry>, Given, Again = Given>
  extends RunForm<Call, Entry> {
  readonly newState: () => State;
  /**
   * Whether a run is planned before it starts, and may wait for approval. If not, a run that was not started is just
   * being started by a process, or its process died before it could start it.
   */
  readonly isPlannedFirst: boolean;
  /** Whether listing runs brings the runs to rest that crashed processes left. */
  readonly recoversOrphans: boolean;
  /**
   * Reads a run. Returns undefined if another process is starting it now. Throws a RunStoreError if it can be neither
   * shown nor resumed.
   */
  readBack(kept: StoredParts<Call, Entry>): Promise<ReadBack<Entry, State> | undefined>;
  /** Returns the state of a run of which only the call and its input are known. If absent, there is no such state. */
  initialState?(call: Call, input: ByteSource): Promise<State>;
  /** Starts a run whose journal is open, executes it until it stops, and records the stop. */
  start(run: RunExecution<Call, Entry, State>, given: Given): Promise<void>;
  /** Does the same as `start` for a run that continues where it stopped. */
  resume(run: RunExecution<Call, Entry, State>, given: Again | undefined): Promise<void>;
  /**
   * Called when a run was taken over from a process that may still be alive, before the run is read. It starts early
   * what the kind has to wait for in this case.
   */
  takenOver?(): void;
  /** Returns the entries for what a crash left in doubt. If absent, the state derives this by itself. */
  lost?(state: State): readonly Entry[];
  /** Returns the entry that records how a run stopped. */
  stop(ending: Ending, at: number): Entry;
  /**
   * Returns the reason for an error that stopped a run. If it is absent or returns undefined, the error is a local one.
   */
  reasonOf?(thrown: unknown): Reason | undefined;
  /** Stores the parts of a run at rest that may still be needed, and updates the memory of names. */
  finish(run: RunAccess<Call, State>): Promise<void>;
  /** Whether `resume_run` could continue a run at rest. If absent, it can if any object is not known to be done. */
  isOpen?(header: RunHeader<Call>, state: State): boolean;
  /** Returns the entry about requests that were sent too late, for the process that has taken the run over. */
  lateEntry?(state: State, at: number): Entry | undefined;
  /** Returns the part of a call that identifies it. If absent, the whole call does. */
  identity?(call: Call): unknown;
  /**
   * Whether a repeated call resumes a run at rest instead of starting a new one. `isRecent` is whether the run stopped
   * recently.
   */
  isMeant(summary: RunSummary, isRecent: boolean): boolean;
  /** Whether a process may continue a run that another one left, without a call. If absent, it always may. */
  mayBeClaimed?(run: Pick<RunAccess<Call, State>, "header" | "state">, now: number): boolean;
  /** Whether a run may be resumed for the same call. If absent, it always may. */
  mayGoOn?(run: Pick<RunAccess<Call, State>, "header" | "state">): boolean;
}

/** A stored run, for its kind to read. */
export interface StoredParts<Call, Entry> extends StoredRun<Call, Entry> {
  part(name: RunPart): ByteSource;
  isDriven(): Promise<boolean>;
}

/** A run after reading. */
export interface ReadBack<Entry, State> {
  readonly state: State;
  /** The state from which the run is resumed, if it differs from `state`. */
  readonly from?: State;
  /**
   * The entries that are written to the journal first when the run is resumed. `state`, or `from` if present, contains
   * them already.
   */
  readonly first?: readonly Entry[];
  /** Returns the entries that the journal needs besides `first` if the run ends now, so that it names all objects. */
  readonly unwritten?: () => AsyncIterable<Entry> | Iterable<Entry>;
}

export interface RunAccess<Call, State> {
  readonly header: RunHeader<Call>;
  readonly state: State;
  part(name: RunPart): ByteSource;
  keep(name: RunPart, pieces: AsyncIterable<string | Uint8Array>): Promise<void>;
}

export interface RunExecution<Call, Entry, State> extends RunAccess<Call, State>, Pick<RunJournal, "flush" | "intend"> {
  /** Aborted when nothing new may start. */
  readonly signal: AbortSignal;
  /** Returns why the run was stopped. */
  cause(): "cancelled" | "interrupted";
  stop(why: "cancelled" | "interrupted"): void;
  /** The state that is shown while `state` has no objects. */
  readonly meanwhile: State | undefined;
  /** The right of this process to execute the run. */
  readonly lease: Lease;
  /** Appends an entry to the journal and applies it to the state. */
  record(entry: Entry): void;
  /** Appends an entry that the state contains already. */
  append(entry: Entry): void;
  /** Starts writing the appended entries to the disk. The next `flush` throws if that fails. */
  write(): void;
  /**
   * Receives a function that appends the entries that the state contains and the journal lacks. The function is called
   * before a report.
   */
  beforeReport(appendRest: () => void): void;
  /** Marks the run as started, if that was not done before. */
  markStarted(): Promise<void>;
  /** Returns whether a request may be announced. False as soon as this process knows that the run is to stop. */
  mayAnnounce(): boolean;
  /**
   * Returns whether a request may be sent whose announcement is on the disk. Must be called right before it is sent.
   */
  mayLeave(intent?: Intent): Promise<boolean>;
  /** Calls the watchers with the counts and with the time that the run waits, in milliseconds. */
  progress(waitingMs?: number): void;
}

/**
 * Watches a run. It is called from time to time with the counts of the run and with the milliseconds that the run
 * waits.
 */
export type RunWatcher = (counts: ReportCounts, waitingMs: number) => void;

/** A run of any kind: its header, its state, and when it rests. */
export interface Run<Call extends ToolCall = ToolCall, State extends ReportedState = ReportedState> {
  readonly kind: string;
  readonly header: RunHeader<Call>;
  readonly state: State;
  status(): RunStatus;
  /** Resolves when the run is on the disk, so that its ID may be shown, or when writing it failed. */
  readonly kept: Promise<void>;
  /** Resolves when no process executes the run any more. Never rejects. */
  readonly rest: Promise<void>;
  /** Calls the watcher until the returned function is called. */
  watch(watcher: RunWatcher): () => void;
  /** Stops the run between two requests. Returns false if this process does not execute it. */
  stop(cause: "cancelled" | "interrupted"): boolean;
}

/** A run in the list of runs. */
export interface ListedRun extends RunSummary {
  readonly runId: string;
}

/** A run that came to rest, with its status and counts. */
export interface RestedRun extends ExecutableRun {
  readonly status: RunStatus;
  readonly counts: ReportCounts;
}

export interface RunsContext {
  readonly store: RunStore;
  readonly clock: Clock;
  readonly newRunId: () => string;
  /** The project that the API key belongs to. */
  readonly project: string;
  readonly environment: "live" | "sandbox";
  /** The address of the sandbox, or `embedded` for a sandbox inside this process. Absent if there is no sandbox. */
  readonly sandbox?: string | undefined;
  /** Wraps the execution of each run, to observe it. */
  readonly around?: AroundRun | undefined;
  /** Called when this process has ended a run or brought it to rest. */
  readonly onRest?: ((run: RestedRun) => void) | undefined;
  /** Called before this process executes a run. If absent, every run may be executed. */
  readonly mayExecute?: MayExecute | undefined;
}

/** Observes some work: its duration and its result. Returns what the work returns, and throws what it throws. */
export type Wrapper<About, Result> = (about: About, work: () => Promise<Result>) => Promise<Result>;

/**
 * Wraps the execution of a run, to observe it. The result is the status of the run, or undefined if another process has
 * it now.
 */
export type AroundRun = Wrapper<Pick<RunAccess<ToolCall, ReportedState>, "header" | "state">, RunStatus | undefined>;

/**
 * The changes that a run made in the service, as plain data: what is known to have been applied, with the previous
 * values. The undo plan is made from it.
 */
export interface Done {
  readonly targetings: readonly TargetingEffect[];
  readonly options: readonly OptionEffect[];
  /** Objects for which it cannot be determined whether the run changed them. */
  readonly unknown: readonly UncertainObject[];
  /** Objects whose requests were announced but not answered. Whether the run changed them can still be determined. */
  readonly unresolved: readonly UncertainObject[];
}

/** An object that a run may have changed. `targeting` is absent if it is unknown. */
export interface UncertainObject {
  readonly _id?: string;
  readonly name?: string;
  readonly targeting?: string;
}

export type TargetingEffect =
  | { readonly did: "created"; readonly _id: string; readonly name: string }
  | { readonly did: "changed"; readonly _id: string; readonly name: FieldChange<string> }
  /** `name` is absent if it was not stored. */
  | { readonly did: "deleted"; readonly _id: string; readonly name?: string | undefined };

/** A field that a run wrote, with its new value and, if known, its previous value. */
export interface FieldChange<Value> {
  readonly from?: Value | undefined;
  readonly to: Value;
}

export interface OptionState {
  readonly name: string;
  readonly type: "atomic" | "collection";
  readonly parent: string | null;
  readonly exposeChildren?: boolean | undefined;
  readonly contexts: readonly string[];
}

/** What a run did to one option. `targeting` is absent if it is unknown. */
export type OptionEffect =
  /** `left` is the state after the run. */
  | { readonly did: "created"; readonly _id: string; readonly targeting: string; readonly left: OptionState }
  | ChangedOption
  /** `before` is absent if it was not stored. */
  | {
      readonly did: "deleted";
      readonly _id: string;
      readonly targeting?: string | undefined;
      readonly before?: OptionState | undefined;
    };

/** An option that existed before a run and still exists after it. */
export interface ChangedOption {
  readonly did: "changed";
  readonly _id: string;
  readonly targeting?: string | undefined;
  readonly name?: FieldChange<string> | undefined;
  readonly parent?: FieldChange<string | null> | undefined;
  readonly exposeChildren?: FieldChange<boolean> | undefined;
  /**
   * Context IDs that the run added and removed, and the number for which it is unknown whether they were present
   * before.
   */
  readonly contexts?:
    | { readonly added: readonly string[]; readonly removed: readonly string[]; readonly unsure: number }
    | undefined;
}

/** Why a run may not be executed: a code for programs, the problem, and how to fix it. */
export interface Refusal {
  readonly code: "PROJECT" | "READ_ONLY" | "TOOLSET" | "CALLER" | "FOLDERS" | "TARGETINGS" | "LIMITS" | "NOT_CHECKED";
  readonly message: string;
  readonly remedy: string;
}

/** The parts of a run that decide who may execute it. */
export interface ExecutableRun {
  readonly kind: string;
  readonly header: RunHeader<{ readonly tool: string }>;
}

/**
 * Returns the reason why this process may not execute a run now, or undefined if it may. The reason follows from the
 * settings and the caller's current rights. Every run passes this check before it is executed, however it starts.
 */
export type MayExecute = (run: ExecutableRun) => Promise<Refusal | undefined>;

/** This process may not execute the run now. No lease was taken, and nothing was sent. */
export class ExecutionRefusedError extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(`${refusal.message}; nothing was sent`);
    this.refusal = refusal;
  }

  get remedy(): string {
    return this.refusal.remedy;
  }
}

/**
 * Parses a stored run as one of this kind. Returns undefined if it is of another kind. Throws a DamagedRunError if its
 * call cannot be parsed; so does reading an entry that cannot be parsed.
 */
export function understood<Call, Entry>(
  form: RunForm<Call, Entry>,
  { header, record, proposed, entries }: StoredRun,
): StoredRun<Call, Entry> | undefined {
  if (header.kind !== form.name) return undefined;
  const { runId } = header;
  const call = form.call.safeParse(header.call);
  if (!call.success) throw new DamagedRunError(runId);
  const read = (lines: AsyncIterable<string>) => ({
    [Symbol.asyncIterator]: () => entriesIn(form, runId, lines),
  });
  return { header: { ...header, call: call.data }, record, proposed: read(proposed), entries: read(entries) };
}

async function* entriesIn<Entry>(
  { entry }: Pick<RunForm<unknown, Entry>, "entry">,
  runId: string,
  lines: AsyncIterable<string>,
): AsyncGenerator<Entry> {
  for await (const line of lines) {
    const read = entry.safeParse(parseJson(line));
    if (!read.success) throw new DamagedRunError(runId);
    yield read.data;
  }
}
