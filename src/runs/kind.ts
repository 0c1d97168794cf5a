import type * as z from "zod";
import type { Clock } from "../platform/clock.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { parseJson } from "../platform/json.ts";
import { type Counts, NO_COUNTS, type Reason, type ReportedObject, type Standing, type StopCause } from "./outcome.ts";
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

export interface RunForm<Call, Entry> {
  readonly name: string;
  readonly tools: readonly string[];
  readonly call: z.ZodType<Call>;
  readonly entry: z.ZodType<Entry>;
  readonly line: (entry: Entry) => Line;
}

export interface RunView<Entry> extends ReportedState {
  apply(entry: Entry): void;
  /** Gives unanswered requests the outcome `unknown`. Called when no process executes the run any more. */
  settleUnanswered?(): unknown;
}

/** The state of a run that has a single object. Subclasses read the state from the entries of the journal. */
export class SingleObjectState {
  objects: readonly ReportedObject[] = [];
  readonly requests = { planned: 0, sent: 0, resent: 0, waitedMs: 0 };
  stopped: ReportedState["stopped"];
  updatedAt = 0;
  protected outcome: Standing = "pending";

  counts(): Counts {
    return { ...NO_COUNTS, [this.outcome]: this.objects.length };
  }

  standing(): Standing {
    return this.outcome;
  }

  idOf(): undefined {
    return undefined;
  }
}

/** How a run ends. `reason` is reported for the objects that were not attempted. */
export interface Ending {
  readonly cause: StopCause;
  readonly reason?: Reason;
}

/**
 * How the runs of one kind are stored, executed and resumed. `Given` is the input of a run that this process starts.
 * `Again` is optional additional input for resuming a stored run.
 */
export interface RunKind<Call extends ToolCall, Entry, State extends RunView<Entry>, Given, Again = Given>
  extends RunForm<Call, Entry> {
  readonly newState: () => State;
  /** Whether runs are planned first. If not, an unstarted run is a dry run, is being started, or lost its process. */
  readonly isPlannedFirst: boolean;
  /** Whether records of ended processes' runs are updated once: at the first list or end of a run. Default: no. */
  readonly recoversOrphans?: boolean;
  /** Reads a stored run. Undefined while another process is just starting it. Throws a RunStoreError. */
  readBack(kept: StoredParts<Call, Entry>): Promise<ReadBack<Entry, State> | undefined>;
  initialState?(call: Call, input: ByteSource): Promise<State>;
  /** Executes a run until it stops, and records why it stopped. The journal is already open. */
  start(run: RunExecution<Call, Entry, State>, given: Given): Promise<void>;
  resume(run: RunExecution<Call, Entry, State>, given: Again | undefined): Promise<void>;
  /** Called when an orphaned run was taken over, before it is read. Waiting for the write lock can start then. */
  takenOver?(): void;
  lost?(state: State): readonly Entry[];
  stop(ending: Ending, at: number): Entry;
  /** Returns the reason to report for an error that stopped a run. Undefined for errors of this machine (full disk). */
  reasonOf?(thrown: unknown): Reason | undefined;
  /** Called when a run has ended, to store what later calls need and to remember the names of targetings. */
  finish?(run: RunAccess<Call, State>): Promise<void>;
  /** Whether `resume_run` can continue an ended run. Default: if an object is pending, not applied or unknown. */
  isOpen?(header: RunHeader<Call>, state: State): boolean;
  /**
   * Called when another process has taken over the run. Returns an entry about requests that this process sent too
   * late, for that other process to read. Undefined if there are none.
   */
  lateEntry?(state: State, at: number): Entry | undefined;
  /** Returns the part of a call that is compared to find identical calls. Default: the whole call. */
  identity?(call: Call): unknown;
  /** Returns whether a repeated call resumes this ended run instead of starting a new one. Default: no. */
  isMeant?(summary: RunSummary, isRecent: boolean): boolean;
  /** Returns whether another process may continue the run although no call asks for it. Default: yes. */
  mayBeClaimed?(run: Pick<RunAccess<Call, State>, "header" | "state">, now: number): boolean;
  /** Returns whether an identical call may resume the run. Default: yes. */
  mayGoOn?(run: Pick<RunAccess<Call, State>, "header" | "state">): boolean;
}

export interface StoredParts<Call, Entry> extends StoredRun<Call, Entry> {
  part(name: RunPart): ByteSource;
  isDriven(): Promise<boolean>;
}

export interface ReadBack<Entry, State> {
  readonly state: State;
  readonly from?: State;
  /** The entries to write first when the run is resumed. They are already part of `state`. */
  readonly first?: readonly Entry[];
  /** Returns the entries that complete the journal's list of objects, to write if the run ends without a resume. */
  readonly unwritten?: () => AsyncIterable<Entry> | Iterable<Entry>;
}

export interface RunAccess<Call, State> {
  readonly header: RunHeader<Call>;
  readonly state: State;
  part(name: RunPart): ByteSource;
  keep(name: RunPart, pieces: AsyncIterable<string | Uint8Array>): Promise<void>;
}

export interface RunExecution<Call, Entry, State> extends RunAccess<Call, State>, Pick<RunJournal, "flush" | "intend"> {
  readonly signal: AbortSignal;
  cause(): "cancelled" | "interrupted";
  stop(why: "cancelled" | "interrupted"): void;
  readonly meanwhile: State | undefined;
  readonly lease: Lease;
  /** Adds an entry to the journal and applies it to the state. */
  record(entry: Entry): void;
  /** Adds an entry to the journal only, because the state already contains it. */
  append(entry: Entry): void;
  /** Starts to write the added entries to disk. If that fails, the next `flush` throws. */
  write(): void;
  /** Sets a function that adds entries that the journal still lacks. It is called before the run is reported. */
  beforeReport(appendRest: () => void): void;
  markStarted(): Promise<void>;
  mayAnnounce(): boolean;
  /** Returns whether an announced request may be sent. Stops the run if it must stop. Call it right before sending. */
  mayLeave(intent?: Intent): Promise<boolean>;
  progress(waitingMs?: number): void;
}

export type RunWatcher = (counts: ReportCounts, waitingMs: number) => void;

export interface Run<Call extends ToolCall = ToolCall, State extends ReportedState = ReportedState> {
  readonly kind: string;
  readonly header: RunHeader<Call>;
  readonly state: State;
  status(): RunStatus;
  /** Resolves when the run is on disk or could not be written. A call is answered only then. */
  readonly kept: Promise<void>;
  /** Resolves when no process executes the run any more, or this process cannot follow it. Never rejects. */
  readonly rest: Promise<void>;
  watch(watcher: RunWatcher): () => void;
  /** Stops the run after its current request. Returns false if this process does not execute the run. */
  stop(cause: "cancelled" | "interrupted"): boolean;
}

export interface ListedRun extends RunSummary {
  readonly runId: string;
}

export interface RestedRun extends ExecutableRun {
  readonly status: RunStatus;
  readonly counts: ReportCounts;
}

export interface RunsContext {
  readonly store: RunStore;
  readonly clock: Clock;
  readonly newRunId: () => string;
  readonly project: string;
  readonly environment: "live" | "sandbox";
  /** The address of the sandbox, or `embedded` for a sandbox in this process. Absent for the live service. */
  readonly sandbox?: string | undefined;
  readonly around?: AroundRun | undefined;
  /** Called when this process has executed or ended a run. Not called if another process takes over the run. */
  readonly onRest?: ((run: RestedRun) => void) | undefined;
  /** Decides whether a run may be executed. If absent, every run may be. */
  readonly mayExecute?: MayExecute | undefined;
}

export type Wrapper<About, Result> = (about: About, work: () => Promise<Result>) => Promise<Result>;

export type AroundRun = Wrapper<Pick<RunAccess<ToolCall, ReportedState>, "header" | "state">, RunStatus | undefined>;

export interface Done {
  readonly targetings: readonly TargetingEffect[];
  readonly options: readonly OptionEffect[];
  /** Created options whose IDs could not be read. An undo looks for them by name. */
  readonly withoutId?: readonly CreatedWithoutId[];
  readonly unknown: readonly UncertainObject[];
  /** Objects whose requests were sent but not answered. Reading them can still show whether they were changed. */
  readonly unresolved: readonly UncertainObject[];
}

export interface CreatedWithoutId {
  readonly targeting: string;
  readonly left: OptionState;
  /** The name of the option's group. Only set if the ID of the group could not be read either. */
  readonly group?: string;
}

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

/** A field that a run wrote. `from` is its previous value, if known. */
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

export type OptionEffect =
  | { readonly did: "created"; readonly _id: string; readonly targeting: string; readonly left: OptionState }
  | ChangedOption
  /** `before` contains the previous values. Absent if they were not stored. */
  | {
      readonly did: "deleted";
      readonly _id: string;
      /** The name of the option, if it is known although `before` is absent. */
      readonly called?: string | undefined;
      readonly targeting?: string | undefined;
      readonly before?: OptionState | undefined;
    };

export interface ChangedOption {
  readonly did: "changed";
  readonly _id: string;
  readonly called?: string | undefined;
  readonly targeting?: string | undefined;
  readonly name?: FieldChange<string> | undefined;
  readonly parent?: FieldChange<string | null> | undefined;
  readonly exposeChildren?: FieldChange<boolean> | undefined;
  /** `unsure`: for how many Context IDs of the run it is unknown whether the option held them before. */
  readonly contexts?:
    | { readonly added: readonly string[]; readonly removed: readonly string[]; readonly unsure: number }
    | undefined;
}

export interface Refusal {
  readonly code: "PROJECT" | "READ_ONLY" | "TOOLSET" | "CALLER" | "FOLDERS" | "TARGETINGS" | "LIMITS" | "NOT_CHECKED";
  readonly message: string;
  readonly remedy: string;
}

export interface ExecutableRun {
  readonly kind: string;
  readonly header: RunHeader<{ readonly tool: string }>;
}

/** Returns why a run may not be executed now: settings or rights forbid it or are unknown. Undefined if it may. */
export type MayExecute = (run: ExecutableRun) => Promise<Refusal | undefined>;

/** Thrown if this process may not execute a run. Thrown before it starts or resumes the run, so nothing was sent. */
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
 * Parses a stored run. Undefined if it is of another kind than `form`. Throws a DamagedRunError if its call is invalid.
 * Entries are parsed only when they are read, and an invalid one throws then.
 */
export function understood<Call, Entry>(
  form: RunForm<Call, Entry>,
  { header, record, proposed, entries }: StoredRun,
): StoredRun<Call, Entry> | undefined {
  if (header.kind !== form.name) return undefined;
  const { runId } = header;
  const call = form.call.safeParse(header.call);
  if (!call.success) throw new DamagedRunError(runId, { header });
  const read = (lines: AsyncIterable<string>) => ({
    [Symbol.asyncIterator]: () => entriesIn(form, runId, lines),
  });
  return { header: { ...header, call: call.data }, record, proposed: read(proposed), entries: read(entries) };
}

async function* entriesIn<Entry>(
  { entry, name }: Pick<RunForm<unknown, Entry>, "entry" | "name">,
  runId: string,
  lines: AsyncIterable<string>,
): AsyncGenerator<Entry> {
  for await (const line of lines) {
    const read = entry.safeParse(parseJson(line));
    if (!read.success) throw new DamagedRunError(runId, { kind: name });
    yield read.data;
  }
}
