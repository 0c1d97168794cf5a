import type * as z from "zod";
import type { Wrapper } from "../platform/around.ts";
import type { Clock } from "../platform/clock.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { parseJson } from "../platform/json.ts";
import type { Line } from "./lifecycle.ts";
import type { Reason, StopCause } from "./outcome.ts";
import type { ReportCounts, ReportedState, RunStatus } from "./report.ts";
import {
  DamagedRunError,
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

/** The form of the runs of a kind: how their calls and the entries of their journals are written and read back. */
export interface RunForm<Call, Entry> {
  /** In the header of a run. */
  readonly name: string;
  /** The tools whose calls it carries out. */
  readonly tools: readonly string[];
  readonly call: z.ZodType<Call>;
  readonly entry: z.ZodType<Entry>;
  /** An entry as a line of a journal. */
  readonly line: (entry: Entry) => Line;
}

/** Everything that is known about a run, as the sum of its journal. */
export interface RunView<Entry> extends ReportedState {
  apply(entry: Entry): void;
}

/** How a run stops; `reason` becomes that of the objects that were not attempted. */
export interface Ending {
  readonly cause: StopCause;
  readonly reason?: Reason;
}

/**
 * A kind of work that is journaled, leased and reported: sending events, changing targetings. This room holds what is
 * the same for all kinds; a kind holds what differs. `Given` is what a run is started with besides its kept parts, and
 * `Again` what it may be resumed with.
 */
export interface RunKind<Call extends ToolCall, Entry, State extends RunView<Entry>, Given, Again = Given>
  extends RunForm<Call, Entry> {
  readonly newState: () => State;
  /**
   * Whether a run is planned before it is started, and may wait for an approval. Where not, a process is starting a run
   * that is not started, or died before it could.
   */
  readonly isPlannedFirst: boolean;
  /** Whether listing runs brings those to rest that crashed processes left behind. */
  readonly recoversOrphans: boolean;
  /**
   * Reads a run; undefined where another process is starting it now. Throws a RunStoreError where it can neither be
   * shown nor resumed.
   */
  readBack(kept: KeptParts<Call, Entry>): Promise<ReadBack<Entry, State> | undefined>;
  /** The state of a run of which only the call and its content are known; absent: there is no such state. */
  initialState?(call: Call, input: ByteSource): Promise<State>;
  /** Begins a run whose log is open, and drives it until it stops, which it records. */
  start(run: Driving<Call, Entry, State>, given: Given): Promise<void>;
  /** As `start`, for a run that continues where it stopped. */
  resume(run: Driving<Call, Entry, State>, given: Again | undefined): Promise<void>;
  /**
   * Called before a run is read that was taken over from a process that may still be there: what has to be waited for
   * for that reason begins meanwhile.
   */
  takenOver?(): void;
  /** The entries that say what a crash left in doubt; absent: the state derives that by itself. */
  lost?(state: State): readonly Entry[];
  /** The line that says how a run stopped. */
  stop(ending: Ending, at: number): Entry;
  /** Why an error stopped a run; absent or undefined: it is one of this machine. */
  reasonOf?(thrown: unknown): Reason | undefined;
  /** Keeps the parts of a run at rest that may still be needed, and updates the memory of names. */
  finish(run: Finishing<Call, State>): Promise<void>;
  /** Whether `resume_run` could continue a run at rest; absent: it can where an object is not known to be done. */
  isOpen?(header: RunHeader<Call>, state: State): boolean;
  /** The entry about requests that left too late, for the process that has taken the run over. */
  lateEntry?(state: State, at: number): Entry | undefined;
  /** The part of a call by which two calls are the same; absent: the whole call. */
  identity?(call: Call): unknown;
  /**
   * Whether the same call, made again, resumes a run at rest instead of starting a new one. `isRecent`: it stopped a
   * short while ago.
   */
  isMeant(told: RunSummary, isRecent: boolean): boolean;
  /** Whether a process may go on with a run that another one left, without being asked to; absent: always. */
  mayBeTakenUp?(run: Pick<Finishing<Call, State>, "header" | "state">, now: number): boolean;
  /** Whether a run may be resumed for the same call; absent: always. */
  mayGoOn?(run: Pick<Finishing<Call, State>, "header" | "state">): boolean;
}

/** A run as it is kept, for its kind to read. */
export interface KeptParts<Call, Entry> extends StoredRun<Call, Entry> {
  part(name: RunPart): ByteSource;
  isDriven(): Promise<boolean>;
}

/** A run as it was read. */
export interface ReadBack<Entry, State> {
  readonly state: State;
  /** The state from which it is resumed, where that differs from `state`. */
  readonly from?: State;
  /** The entries that its journal takes first when it is resumed; `state`, or `from`, contains them already. */
  readonly first?: readonly Entry[];
  /** Entries that the journal needs besides `first` when the run ends now, so that it names all objects. */
  readonly unwritten?: () => AsyncIterable<Entry> | Iterable<Entry>;
}

export interface Finishing<Call, State> {
  readonly header: RunHeader<Call>;
  readonly state: State;
  part(name: RunPart): ByteSource;
  keep(name: RunPart, pieces: AsyncIterable<string | Uint8Array>): Promise<void>;
}

export interface Driving<Call, Entry, State>
  extends Finishing<Call, State>,
    Pick<RunJournal, "flush" | "intend" | "write"> {
  /** Aborted when nothing new may start. */
  readonly signal: AbortSignal;
  /** Why the run was stopped. */
  cause(): "cancelled" | "interrupted";
  stop(why: "cancelled" | "interrupted"): void;
  /** The state that is shown as long as `state` has no objects. */
  readonly meanwhile: State | undefined;
  /** The right of this process to drive the run. */
  readonly lease: Lease;
  /** Appends an entry to the journal, and applies it to the state. */
  record(entry: Entry): void;
  /** Appends an entry that the state contains already. */
  append(entry: Entry): void;
  /** Marks the run as one that is started, where that was not done before. */
  markStarted(): Promise<void>;
  /** Whether a request may be announced: false once this process knows that the run is to stop. */
  mayAnnounce(): boolean;
  /** Whether a request may leave whose intent is on the disk. To be asked right before it leaves. */
  mayLeave(intent?: Intent): Promise<boolean>;
  /** Calls the watchers with the counts, and with how long the run waits. */
  progress(waitingMs?: number): void;
}

/** Watches a run: called now and then with its counts, and with the milliseconds that the run waits. */
export type RunWatcher = (counts: ReportCounts, waitingMs: number) => void;

/** A run: its kind, its state, and when it rests. */
export interface Run<Call extends ToolCall = ToolCall, State extends ReportedState = ReportedState> {
  readonly kind: string;
  readonly header: RunHeader<Call>;
  readonly state: State;
  status(): RunStatus;
  /** Resolves when its ID may be shown, since it is on the disk, or when it could not be written. */
  readonly kept: Promise<void>;
  /** Resolves when no process drives it any more. Never rejects. */
  readonly rest: Promise<void>;
  /** Calls the watcher until the given function is called. */
  watch(watcher: RunWatcher): () => void;
  /** Stops it between two requests; false when this process does not drive it. */
  stop(cause: "cancelled" | "interrupted"): boolean;
}

/** A run as the list of runs gives it. */
export interface ListedRun extends RunSummary {
  readonly runId: string;
}

/** A run that came to rest, and how. */
export interface RestedRun extends ExecutableRun {
  readonly status: RunStatus;
  readonly counts: ReportCounts;
}

export interface RunsContext {
  readonly store: RunStore;
  readonly clock: Clock;
  readonly newRunId: () => string;
  /** The project behind the key. */
  readonly project: string;
  readonly environment: "live" | "sandbox";
  /** The address of the sandbox; `embedded` for one inside this process; absent where there is none. */
  readonly sandbox?: string | undefined;
  /** Looks at the driving of each run from outside. */
  readonly around?: AroundRun | undefined;
  /** Called when this process has ended a run, or brought it to rest. */
  readonly onRest?: ((run: RestedRun) => void) | undefined;
  /** Asked before a process becomes the executor of a run; absent: every run may be executed. */
  readonly mayExecute?: MayExecute | undefined;
}

/** Looks at the driving of a run; its result is the status of the run, undefined where another process has it now. */
export type AroundRun = Wrapper<Pick<Finishing<ToolCall, ReportedState>, "header" | "state">, RunStatus | undefined>;

/**
 * What a run did to things of the service, as plain data: what it changed, as far as it is known to have been applied,
 * and what was there before. The way back is planned from it.
 */
export interface Done {
  readonly targetings: readonly DoneTargeting[];
  readonly options: readonly DoneOption[];
  /** Objects of which it cannot be told whether the run changed them. */
  readonly unknown: readonly DoubtedObject[];
  /** Objects whose requests were announced and not answered: whether the run changed them can still be found out. */
  readonly unresolved: readonly DoubtedObject[];
}

/** An object that a run may have changed. `targeting` is absent where it is not known. */
export interface DoubtedObject {
  readonly _id?: string;
  readonly name?: string;
  readonly targeting?: string;
}

export type DoneTargeting =
  | { readonly did: "created"; readonly _id: string; readonly name: string }
  | { readonly did: "changed"; readonly _id: string; readonly name: Went<string> }
  /** `name` is absent where it was not kept. */
  | { readonly did: "deleted"; readonly _id: string; readonly name?: string | undefined };

/** A field that a run wrote: its value before, where that is known, and the one that the run left. */
export interface Went<Value> {
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

/** What a run did to one option; `targeting` is absent where it is not known. */
export type DoneOption =
  /** As the run left it. */
  | { readonly did: "created"; readonly _id: string; readonly targeting: string; readonly left: OptionState }
  | ChangedOption
  /** `before` is absent where it was not kept. */
  | {
      readonly did: "deleted";
      readonly _id: string;
      readonly targeting?: string | undefined;
      readonly before?: OptionState | undefined;
    };

/** An option that was there before a run and is there after it. */
export interface ChangedOption {
  readonly did: "changed";
  readonly _id: string;
  readonly targeting?: string | undefined;
  readonly name?: Went<string> | undefined;
  readonly parent?: Went<string | null> | undefined;
  readonly exposeChildren?: Went<boolean> | undefined;
  /** Context IDs that the run really added and removed, and how many of which it is not known whether they were there. */
  readonly contexts?:
    | { readonly added: readonly string[]; readonly removed: readonly string[]; readonly unsure: number }
    | undefined;
}

/** Why a run may not be executed: a code for programs, what is wrong, and what can be done about it. */
export interface Refusal {
  readonly code: "PROJECT" | "READ_ONLY" | "TOOLSET" | "CALLER" | "FOLDERS" | "TARGETINGS" | "LIMITS" | "NOT_CHECKED";
  readonly message: string;
  readonly remedy: string;
}

/** A run as far as it decides who may execute it. */
export interface ExecutableRun {
  readonly kind: string;
  readonly header: RunHeader<{ readonly tool: string }>;
}

/**
 * The guard through which every run gets its executor, however it starts: gives the reason why this process may not
 * execute a run now, by its settings and by the rights that the caller has now; undefined where it may.
 */
export type MayExecute = (run: ExecutableRun) => Promise<Refusal | undefined>;

/** A run that this process may not execute now. No lease was taken, and nothing was sent. */
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
 * A stored run as its kind understands it; undefined where it is of another kind. Throws a RunStoreError where its call
 * cannot be read; reading its entries throws one, too.
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
