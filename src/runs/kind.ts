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

/** The format of a kind's runs: how calls and journal entries are written and read. */
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

/** The state of a run. It follows from the entries of its journal alone. */
export interface RunView<Entry> extends ReportedState {
  apply(entry: Entry): void;
}

/** How a run stops. `reason` is reported for the objects that were not attempted. */
export interface Ending {
  readonly cause: StopCause;
  readonly reason?: Reason;
}

/**
 * A kind of run, such as sending events or changing targetings. Its runs have a journal, a lease and a report. This
 * folder has the code that all kinds share; a `RunKind` has the rest. `Given` is the input for starting a run that is
 * not stored, and `Again` is optional input for resuming it.
 */
export interface RunKind<Call extends ToolCall, Entry, State extends RunView<Entry>, Given, Again = Given>
  extends RunForm<Call, Entry> {
  readonly newState: () => State;
  /**
   * Whether a run is planned before it starts, and may wait for approval. If false, a run that was not started yet is
   * just being started, or its process ended before it could start the run.
   */
  readonly isPlannedFirst: boolean;
  /** Whether listing runs also writes the final records of runs whose process crashed. */
  readonly recoversOrphans: boolean;
  /**
   * Reads a run. Returns undefined if another process is just starting it. Throws a RunStoreError if the run can be
   * neither shown nor resumed.
   */
  readBack(kept: StoredParts<Call, Entry>): Promise<ReadBack<Entry, State> | undefined>;
  /** Returns the state of a run that has only a call and its input so far. Absent if runs of this kind have none. */
  initialState?(call: Call, input: ByteSource): Promise<State>;
  /** Executes a run from the beginning until it stops, and records how it stopped. Its journal is already open. */
  start(run: RunExecution<Call, Entry, State>, given: Given): Promise<void>;
  /** Like `start`, for a run that continues where it stopped. */
  resume(run: RunExecution<Call, Entry, State>, given: Again | undefined): Promise<void>;
  /**
   * Called when a run was taken over from a process that may still be alive, before the run is read. The kind can then
   * start a wait that will be needed anyway.
   */
  takenOver?(): void;
  /** Returns entries that mark the requests which a crash left in doubt. Absent if the state needs no such entries. */
  lost?(state: State): readonly Entry[];
  /** Returns the entry that records how a run stopped. */
  stop(ending: Ending, at: number): Entry;
  /** Returns the reason for an error that stopped a run. Without a reason, the error counts as one of this machine. */
  reasonOf?(thrown: unknown): Reason | undefined;
  /** Stores the parts of a run at rest that may be needed later, and updates the remembered names. */
  finish(run: RunAccess<Call, State>): Promise<void>;
  /** Returns whether `resume_run` could continue a run at rest. Default: it can if an object may not be done yet. */
  isOpen?(header: RunHeader<Call>, state: State): boolean;
  /** Returns an entry that tells the process that has taken over the run which requests were sent too late. */
  lateEntry?(state: State, at: number): Entry | undefined;
  /** Returns the part of a call that identifies it. Default: the whole call. */
  identity?(call: Call): unknown;
  /**
   * Returns whether a repeated call resumes this run at rest instead of starting a new one. `isRecent`: it stopped
   * recently.
   */
  isMeant(summary: RunSummary, isRecent: boolean): boolean;
  /** Returns whether another process may continue the run without a call. Default: yes. */
  mayBeClaimed?(run: Pick<RunAccess<Call, State>, "header" | "state">, now: number): boolean;
  /** Returns whether an identical call may resume the run. Default: yes. */
  mayGoOn?(run: Pick<RunAccess<Call, State>, "header" | "state">): boolean;
}

/** A stored run, as its kind reads it. */
export interface StoredParts<Call, Entry> extends StoredRun<Call, Entry> {
  part(name: RunPart): ByteSource;
  isDriven(): Promise<boolean>;
}

/** A run that was read from its journal. */
export interface ReadBack<Entry, State> {
  readonly state: State;
  /** The state with which to resume the run, if it differs from `state`. */
  readonly from?: State;
  /**
   * The entries to write first when the run is resumed. They are already part of `from`, or of `state` without `from`.
   */
  readonly first?: readonly Entry[];
  /** Returns further entries to write if the run ends without being resumed, so that its journal lists all objects. */
  readonly unwritten?: () => AsyncIterable<Entry> | Iterable<Entry>;
}

export interface RunAccess<Call, State> {
  readonly header: RunHeader<Call>;
  readonly state: State;
  part(name: RunPart): ByteSource;
  keep(name: RunPart, pieces: AsyncIterable<string | Uint8Array>): Promise<void>;
}

export interface RunExecution<Call, Entry, State> extends RunAccess<Call, State>, Pick<RunJournal, "flush" | "intend"> {
  /** Aborted when no further request may be sent. */
  readonly signal: AbortSignal;
  /** Returns why the run was stopped. */
  cause(): "cancelled" | "interrupted";
  stop(why: "cancelled" | "interrupted"): void;
  /** The state to show while `state` has no objects. */
  readonly meanwhile: State | undefined;
  /** The right of this process to execute the run. */
  readonly lease: Lease;
  /** Appends an entry to the journal and applies it to the state. */
  record(entry: Entry): void;
  /** Appends an entry that is already part of the state. */
  append(entry: Entry): void;
  /** Starts writing the appended entries to disk. If that fails, the next `flush` throws. */
  write(): void;
  /**
   * Sets a function that appends the entries that are in the state but not yet in the journal. It is called before the
   * run is reported.
   */
  beforeReport(appendRest: () => void): void;
  /** Marks the run as started, unless it already is. */
  markStarted(): Promise<void>;
  /**
   * Returns whether a request may be announced in the journal. False once this process knows that the run must stop.
   */
  mayAnnounce(): boolean;
  /**
   * Returns whether an announced request may be sent. Call it right before sending, when the announcement is on disk.
   */
  mayLeave(intent?: Intent): Promise<boolean>;
  /** Notifies the watchers of the counts, and of the milliseconds for which the run now pauses. */
  progress(waitingMs?: number): void;
}

/** Receives the counts of a run from time to time, and the milliseconds for which the run pauses. */
export type RunWatcher = (counts: ReportCounts, waitingMs: number) => void;

export interface Run<Call extends ToolCall = ToolCall, State extends ReportedState = ReportedState> {
  readonly kind: string;
  readonly header: RunHeader<Call>;
  readonly state: State;
  status(): RunStatus;
  /** Resolves when the run is on disk, so that its ID may be shown. Also resolves if writing it failed. */
  readonly kept: Promise<void>;
  /** Resolves when no process executes the run any more. Never rejects. */
  readonly rest: Promise<void>;
  /** Notifies the watcher until the returned function is called. */
  watch(watcher: RunWatcher): () => void;
  /** Stops the run between two requests. Returns false if this process does not execute it. */
  stop(cause: "cancelled" | "interrupted"): boolean;
}

export interface ListedRun extends RunSummary {
  readonly runId: string;
}

/** A run that has come to rest. */
export interface RestedRun extends ExecutableRun {
  readonly status: RunStatus;
  readonly counts: ReportCounts;
}

export interface RunsContext {
  readonly store: RunStore;
  readonly clock: Clock;
  readonly newRunId: () => string;
  /** The project of the API key. */
  readonly project: string;
  readonly environment: "live" | "sandbox";
  /** The address of the sandbox, or `embedded` for a sandbox in this process. Absent for the live service. */
  readonly sandbox?: string | undefined;
  /** Wraps the execution of each run, for logs and metrics. */
  readonly around?: AroundRun | undefined;
  /** Called when this process has ended a run, or when its execution is over. */
  readonly onRest?: ((run: RestedRun) => void) | undefined;
  /** Called before this process executes a run. If absent, every run may be executed. */
  readonly mayExecute?: MayExecute | undefined;
}

/**
 * Runs some work and observes it, for example its duration. Returns what the work returns, and throws what it throws.
 */
export type Wrapper<About, Result> = (about: About, work: () => Promise<Result>) => Promise<Result>;

/**
 * Wraps the execution of a run. The result is the status of the run; undefined if another process has taken it over.
 */
export type AroundRun = Wrapper<Pick<RunAccess<ToolCall, ReportedState>, "header" | "state">, RunStatus | undefined>;

/** The changes that a run made on the service, with the previous values. An undo plan is made from them. */
export interface Done {
  readonly targetings: readonly TargetingEffect[];
  readonly options: readonly OptionEffect[];
  /** Objects that the run may have changed. No read can show whether it did. */
  readonly unknown: readonly UncertainObject[];
  /** Objects whose requests were announced but not answered. A read can still show whether the run changed them. */
  readonly unresolved: readonly UncertainObject[];
}

/** An object that a run may have changed. `targeting` is absent if unknown. */
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

/** The new value of a field that a run wrote. `from` is its previous value, if known. */
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

/** The effect of a run on one option. `targeting` is absent if unknown. */
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

/** An option that existed before the run and still exists after it. */
export interface ChangedOption {
  readonly did: "changed";
  readonly _id: string;
  readonly targeting?: string | undefined;
  readonly name?: FieldChange<string> | undefined;
  readonly parent?: FieldChange<string | null> | undefined;
  readonly exposeChildren?: FieldChange<boolean> | undefined;
  /**
   * Context IDs that the run added and removed. `unsure` counts those for which it is unknown whether the option held
   * them before.
   */
  readonly contexts?:
    | { readonly added: readonly string[]; readonly removed: readonly string[]; readonly unsure: number }
    | undefined;
}

/** Why this process may not execute a run. */
export interface Refusal {
  readonly code: "PROJECT" | "READ_ONLY" | "TOOLSET" | "CALLER" | "FOLDERS" | "TARGETINGS" | "LIMITS" | "NOT_CHECKED";
  readonly message: string;
  readonly remedy: string;
}

/** The facts about a run that decide whether a process may execute it. */
export interface ExecutableRun {
  readonly kind: string;
  readonly header: RunHeader<{ readonly tool: string }>;
}

/**
 * Returns why this process may not execute a run now, or undefined if it may. That depends on the settings and on the
 * caller's current rights. It is checked before every execution of a run.
 */
export type MayExecute = (run: ExecutableRun) => Promise<Refusal | undefined>;

/** This process may not execute the run now. It has taken no lease and sent nothing. */
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
 * Parses a stored run. Returns undefined if it belongs to another kind. Throws a DamagedRunError if its call cannot be
 * parsed. Reading an invalid journal entry throws this error, too.
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
