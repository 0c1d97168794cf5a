import type * as z from "zod";
import type { Pieces } from "../platform/durable-files.ts";
import { FileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import type { keptHeader, keptSummary, Line, RunRecord } from "./lifecycle.ts";
import type { RetentionWatch } from "./retention-clock.ts";
import type { Intent, Lease, Turn } from "./turn.ts";

/** Runs cannot be kept or read: what is wrong, and what to do. */
export class RunStoreError extends Error {
  readonly remedy: string;
  constructor(message: string, remedy: string, options?: ErrorOptions) {
    super(message, options);
    this.remedy = remedy;
  }
}

/** The store has lost entries that it had acknowledged: what was applied since is not in the journal. */
export class LostEntriesError extends RunStoreError {}

/** What is kept of a run is damaged: what it did, or sent, cannot be said. */
export class DamagedRunError extends RunStoreError {
  readonly runId: string;
  /** Whether what it removed is whole. */
  readonly holdsRemoved: boolean;
  /** Undefined where that is damaged as well. */
  readonly header: RunHeader | undefined;
  constructor(runId: string, { holdsRemoved = false, header }: KeptOfDamaged = {}) {
    const sent = "It may have sent all, some or none of its requests, and it cannot be resumed";
    const remedy = holdsRemoved
      ? `${sent}. What it was to remove is whole (targeting://runs/${runId}/removed): undo_run {"runId":"${runId}"} plans to ` +
        "bring back what of it is missing now."
      : `${sent} or undone. Look at the present state with list_options, and make a new call for what is missing.`;
    super(`the journal of run ${runId} is damaged: what it did cannot be read`, remedy);
    this.runId = runId;
    this.holdsRemoved = holdsRemoved;
    this.header = header;
  }
}

/** What is whole of a run that is damaged. */
interface KeptOfDamaged {
  readonly holdsRemoved?: boolean;
  readonly header?: RunHeader | undefined;
}

/** The store cannot be reached now; nothing was sent for the call that needed it. */
export class StoreUnavailableError extends RunStoreError {}

/** The header of a run, with its call as its kind reads it. Written before it starts. */
export interface RunHeader<Call = unknown> extends Readonly<Omit<z.infer<typeof keptHeader>, "version" | "call">> {
  readonly call: Call;
}

/** A run in short, a part of its record at rest. */
export interface RunSummary extends Readonly<z.infer<typeof keptSummary>> {}

/** The journal of one run, open for writing by the lease of the run. */
export interface RunJournal {
  /** Takes an entry; it is on the disk once `flush` has resolved. */
  append(line: Line): void;
  /**
   * Resolves when every entry taken is on the disk and the lease of the run is still held. Throws when that fails:
   * a LeaseLostError where another process drives the run.
   */
  flush(): Promise<void>;
  /**
   * As `flush`, and renews the lease of the run and the turn that a request is to leave by: gives the clocks as they
   * were before that, by which it may leave. Throws a LeaseLostError where another process has the run, or the turn.
   */
  intend(turn: Turn): Promise<Intent>;
  /** Begins to write the entries taken so far to the disk; the next `flush` throws what goes wrong with it. */
  write(): void;
  /**
   * Appends an entry although another process drives the run by now: it tells that process of a request that left too
   * late.
   */
  appendLate(line: Line): Promise<void>;
  /** Closes it; entries that were taken and not flushed are written first, as long as the lease is held. */
  close(): Promise<void>;
}

/** A mark that differs after every change of a run. */
export interface Revision {
  readonly text: string;
  /** How many bytes have to be read to know the run. */
  readonly bytes: number;
}

/** A run as it is kept. Its kind reads its call and its lines, which can be read more than once. */
export interface StoredRun<Call = unknown, Entry = string> {
  readonly header: RunHeader<Call>;
  readonly record: RunRecord;
  /** The entries of the plan that is carried out once a person approves it. */
  readonly proposed: AsyncIterable<Entry>;
  readonly entries: AsyncIterable<Entry>;
}

/**
 * A part of a run beside its journal: the file of the call, the sheet that a plan was made of, what the run would do, the
 * Context IDs and options that it took away, and the rows of the file that failed.
 */
export type RunPart = "input" | "sheet" | "proposed" | "removed" | "former" | "rejects";

/** Which runs are listed: those of a caller from one on, those that may be unfinished, or the last one of a call. */
export type RunQuery =
  | { readonly caller: string; readonly before?: string }
  | { readonly unfinished: Unfinished }
  | { readonly lastOf: string };

/** All runs that may be unfinished, those of one call, or those of one caller in one project. */
export type Unfinished = "all" | { readonly fingerprint: string } | CallerScope;

/**
 * A store of runs of every kind. Every method throws a RunStoreError where the store cannot be used. What is small and
 * separate lies beside it: requests to stop, turns of equal calls, sizes, the clock of the removal, and orphaned runs.
 */
export interface RunStore {
  /** Stores a new run, which is `planning`. */
  create(header: RunHeader): Promise<void>;
  /**
   * Puts a record in the place of the one before it: false where the stored version is not the one before. With a lease,
   * throws a LeaseLostError where another process has that.
   */
  update(runId: string, record: RunRecord, lease?: Lease): Promise<boolean>;
  /** The record of a run; undefined where there is none. It says where what is kept of the run is damaged. */
  record(runId: string): Promise<RunRecord | undefined>;
  /** Reads a run; undefined when there is none with this ID. */
  read(runId: string): Promise<StoredRun | undefined>;
  /** The present revision of a run, to be compared with an earlier one; undefined where it cannot be read. */
  revision(runId: string): Promise<Revision | undefined>;
  /**
   * IDs of runs, the newest first; of a caller the next ones that are older than `before`, and none where there are none.
   * Of those that may be unfinished not all are: it costs about the same, however many runs are stored.
   */
  list(query: RunQuery): Promise<readonly string[]>;
  /**
   * Becomes the one that plans and executes a run; undefined while another one is. What an executor before it, which may
   * still be there, appends from then on is no part of the journal.
   */
  lease(runId: string): Promise<Lease | undefined>;
  /** Whether a process plans or executes the run now. */
  isDriven(runId: string): Promise<boolean>;
  /** Opens a started run's journal for writing, after what it holds, for as long as the lease of the run is held. */
  journal(runId: string, lease: Lease): Promise<RunJournal>;
  /** Stores what belongs to a run beside its journal; what was stored under this name before is replaced. */
  keep(runId: string, part: RunPart, pieces: Pieces): Promise<void>;
  /** Opens what was stored beside a journal; empty where nothing was. */
  part(runId: string, part: RunPart): ByteSource;
  /** Removes a run of which nothing was sent, as if it had never been stored. */
  discard(runId: string): Promise<void>;
  /** Removes runs that need not be kept any longer. */
  tidy(): Promise<void>;
  /**
   * Calls the listener when another process may have changed the run, which is a hint alone, until the given function is
   * called; absent: no process tells.
   */
  watch?(runId: string, listener: () => void): () => void;
  readonly stops: StopStore;
  readonly sizes: SizeStore;
  /** Does some work while no other process, nor another part of this one, does any for the same call. */
  withCallLock<T>(fingerprint: string, work: () => Promise<T>): Promise<T>;
  /** The clock by which runs are removed; absent: none are removed by a clock. */
  readonly retention?: RetentionWatch;
  /** Runs that processes leave to each other; absent: a run whose process ended waits until it is resumed by a call. */
  readonly left?: OrphanedRuns;
}

/** Requests to stop runs, from whatever process. */
export interface StopStore {
  /** Asks the executor of a run to stop it; the request is durable once this has resolved. */
  ask(runId: string): Promise<void>;
  /** The requests that were not taken back, each by a name of its own. */
  asked(runId: string): Promise<readonly string[]>;
  /** Takes back requests. */
  forget(runId: string, asked: readonly string[]): Promise<void>;
  /**
   * Calls the listener when the executor of a run is asked to stop it, which is a hint alone, until the given function is
   * called; absent: no process tells.
   */
  watch?(runId: string, listener: () => void): () => void;
}

/** How much is stored. */
interface SizeStore {
  /** How many bytes the calls of these runs take, with their content and what they would do. */
  of(runIds: readonly string[]): Promise<number>;
  /**
   * Throws a ShareFullError where so many more bytes of a caller's runs would exceed the caller's share; absent: there are
   * no shares.
   */
  checkRoom?(of: CallerScope, bytes: number): Promise<void>;
}

/**
 * Runs that were started, and that no process drives: the process that drove them has ended. A process that takes up
 * runs of their project goes on with them, and as long as there is one, they count as driven.
 */
export interface OrphanedRuns {
  /**
   * Notes that this process drives a run of a project, until the given function is called. Undefined where it is to
   * leave the run once its plan is kept: it drives none, or writes to as many projects as it may.
   */
  drives(project: string): (() => void) | undefined;
  /** Whether a living process would drive runs of a project, this one or another. */
  isTakenUp(project: string): Promise<boolean>;
  /** Whether this process may take up runs of a project now. */
  hasRoomFor(project: string): boolean;
  /** Leaves a run, whose lease was given back, to others. */
  leave(runId: string): Promise<void>;
  /** Tells the others that this process takes up runs of these projects; `wake` is called when one was left, or there is room. */
  takesUp(projects: readonly string[], wake: () => void): Promise<void>;
  /**
   * Some of the runs of these projects that nobody drives: first those of callers of whom runs of the fewest projects are
   * driven, then the oldest; none of `except`.
   */
  found(projects: readonly string[], most: number, except?: readonly string[]): Promise<readonly OrphanedRun[]>;
  /** Tells the others which runs this process may not execute: for its sake alone they do not count as driven. */
  refuses(runIds: readonly string[]): Promise<void>;
}

/** A run that nobody drives. */
export type OrphanedRun = Pick<RunHeader, "runId" | "project">;

/** The runs of one caller in one project. */
export interface CallerScope {
  readonly caller: string;
  readonly project: string;
  readonly environment: string;
}

/** The run that `reading` gives; undefined where it cannot be read: of a newer version, damaged, or being removed. */
export async function orUnreadable<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (thrown) {
    if (thrown instanceof StoreUnavailableError) throw thrown;
    if (thrown instanceof RunStoreError || thrown instanceof FileError) return undefined;
    throw thrown;
  }
}

/** Of a run only its call was kept: its process died before more was written, and nothing was sent. */
export class NothingKeptError extends RunStoreError {}

/** The run that `taking` gives; undefined where nothing of it was kept. */
export async function unlessNothingKept<T>(taking: Promise<T>): Promise<T | undefined> {
  try {
    return await taking;
  } catch (thrown) {
    if (thrown instanceof NothingKeptError) return undefined;
    throw thrown;
  }
}
