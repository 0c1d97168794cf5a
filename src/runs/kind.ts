import type * as z from "zod";
import type { ByteSource } from "../platform/bytes.ts";
import type { Clock } from "../platform/clock.ts";
import type { Line, RunHeader, RunPart, RunStore, RunSummary, StoredRun } from "./backend/store.ts";
import type { Reason, StopCause } from "./outcome.ts";
import type { ReportCounts, ReportedState, RunStatus } from "./report.ts";
import type { Intent, Lease, Turn } from "./turn.ts";

/** A call that a run carries out. */
export interface ToolCall {
  readonly tool: string;
}

/** What the runs of a kind are like: how their calls and the entries of their journals are kept and read back. */
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
  /** Puts one entry into effect. */
  apply(entry: Entry): void;
}

/** How a run stops: `reason` is of what it did not attempt. */
export interface Ending {
  readonly cause: StopCause;
  readonly reason?: Reason;
}

/**
 * A kind of work that is journaled, leased and reported: sending events, changing targetings. All that the runs of
 * different kinds do in the same way is in this room; what they do differently is here. `Given` is what a run is begun
 * or taken up with besides what is kept of it.
 */
export interface RunKind<Call extends ToolCall, Entry, State extends RunView<Entry>, Given>
  extends RunForm<Call, Entry> {
  readonly newState: () => State;
  /**
   * Whether a run that is not started waits for something, such as a person's yes. Where not, it is just being started,
   * or its process died before it was.
   */
  readonly mayWait: boolean;
  /** Whether runs that other processes left behind at a crash are brought to rest by those that look at the list. */
  readonly tidies: boolean;
  /**
   * Reads a run; undefined where it is just being started by another process. Throws a RunStoreError where it can
   * neither be told nor taken up.
   */
  readBack(kept: KeptParts<Call, Entry>): Promise<ReadBack<Entry, State> | undefined>;
  /** How a run stands of which only the call is known, with the content that was given with it; absent: it never does. */
  initialState?(call: Call, input: ByteSource): Promise<State>;
  /** Begins a run whose log is open, and drives it until it stops, which it records. */
  start(run: Driving<Call, Entry, State>, given: Given): Promise<void>;
  /** As `start`, for a run that goes on where it stopped. */
  resume(run: Driving<Call, Entry, State>, given: Given | undefined): Promise<void>;
  /** What a crash left in doubt; absent: the state itself knows. */
  lost?(state: State): readonly Entry[];
  /** The line that says how a run stopped. */
  stop(ending: Ending, at: number): Entry;
  /** Why an error stopped a run; absent or undefined: it is one of this machine. */
  reasonOf?(thrown: unknown): Reason | undefined;
  /** Keeps of a run that came to rest what may be needed, and lets others know what it did. */
  finish(run: Finishing<Call, State>): Promise<void>;
  /** Whether `resume_run` could take anything up of a run at rest; absent: what is not known to be done. */
  isOpen?(header: RunHeader<Call>, state: State): boolean;
  /** What was done too late, for the process that has taken the run over. */
  lateEntry?(state: State, at: number): Entry | undefined;
  /** What makes a call the same as another one; absent: all of it. */
  identity?(call: Call): unknown;
  /** Whether the same call, made again, means a run that came to rest, a short while ago or not, rather than a new one. */
  isMeant(told: RunSummary, isRecent: boolean): boolean;
  /** Whether a run may go on for the same call; absent: always. */
  mayGoOn?(run: Pick<Finishing<Call, State>, "header" | "state">): boolean;
}

/** A run as it is kept, for its kind to read. */
export interface KeptParts<Call, Entry> extends StoredRun<Call, Entry> {
  part(name: RunPart): ByteSource;
  summary(): Promise<RunSummary | undefined>;
  /** Whether somebody else drives it. */
  isDriven(): Promise<boolean>;
}

/** A run as it was read. */
export interface ReadBack<Entry, State> {
  /** As it stands. */
  readonly state: State;
  /** Where it was not started: whether what it would do is known. */
  readonly isProposed?: boolean;
  /** What it goes on from, where that is not as it stands. */
  readonly from?: State;
  /** What its journal takes first when it goes on; `state`, or `from`, knows it already. */
  readonly first?: readonly Entry[];
  /** What its journal lacks besides `first`, so that it tells of what is not attempted. */
  readonly unwritten?: () => AsyncIterable<Entry> | Iterable<Entry>;
}

/** What is left to do for a run that came to rest. */
export interface Finishing<Call, State> {
  readonly header: RunHeader<Call>;
  readonly state: State;
  part(name: RunPart): ByteSource;
  keep(name: RunPart, pieces: AsyncIterable<string | Uint8Array>): Promise<void>;
}

/** What driving a run gives to its kind. */
export interface Driving<Call, Entry, State> extends Finishing<Call, State> {
  /** How it stands as long as `state` has no objects. */
  readonly meanwhile: State | undefined;
  /** The right of this process to drive the run. */
  readonly lease: Lease;
  /** Aborted when nothing new may start. */
  readonly signal: AbortSignal;
  /** What it means when it is. */
  cause(): "cancelled" | "interrupted";
  /** Puts an entry into the journal and into effect. */
  record(entry: Entry): void;
  /** Puts an entry into the journal that the state knows already. */
  append(entry: Entry): void;
  /** Resolves when everything recorded is on the disk; throws a LeaseLostError where another process has the run. */
  flush(): Promise<void>;
  /** As `flush`, for a request that is to leave by a turn; throws a LeaseLostError where another process has that, too. */
  intend(turn: Turn): Promise<Intent>;
  /** Begins to put on the disk what was recorded. */
  write(): void;
  /** Marks the run as one that is started, where that was not done before. */
  markStarted(): Promise<void>;
  /** Whether a request may leave whose intent is on the disk. To be asked right before it leaves. */
  mayLeave(): Promise<boolean>;
  /** Stops it by itself. */
  stop(cause: "cancelled" | "interrupted"): void;
  /** Tells those who watch where it stands, and for how long it waits. */
  progress(waitingMs?: number): void;
}

/** Who watches a run: told now and then, and when the run waits for so many milliseconds. */
export type RunWatcher = (counts: ReportCounts, waitingMs: number) => void;

/** A run: what it is, where it stands, and when it rests. */
export interface Run<Call extends ToolCall = ToolCall, State extends ReportedState = ReportedState> {
  /** The name of its kind. */
  readonly kind: string;
  readonly header: RunHeader<Call>;
  /** What is known of it by now. */
  readonly state: State;
  /** Where it stands as a whole. */
  status(): RunStatus;
  /** Resolves when its ID may be told, since the disk holds it, or when it is clear that it never will. */
  readonly kept: Promise<void>;
  /** Resolves when nobody drives it any more. Never rejects. */
  readonly rest: Promise<void>;
  /** Calls the watcher until the given function is called. */
  watch(watcher: RunWatcher): () => void;
  /** Stops it between two requests; false when this process does not drive it. */
  stop(cause: "cancelled" | "interrupted"): boolean;
}

/** What listing the runs tells about each. */
export interface ListedRun extends RunSummary {
  readonly runId: string;
}

/** What keeping and driving runs needs of the world. */
export interface RunsContext {
  readonly store: RunStore;
  readonly clock: Clock;
  readonly newRunId: () => string;
  /** The project behind the key. */
  readonly project: string;
  readonly environment: "live" | "sandbox";
}
