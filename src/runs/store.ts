import type * as z from "zod";
import type { Pieces } from "../platform/durable-files.ts";
import { FileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import type { RunRecord, runHeaderSchema, runSummarySchema } from "./lifecycle.ts";
import type { RetentionWatch } from "./retention-clock.ts";
import type { Intent, Lease, Turn } from "./turn.ts";

/** Runs cannot be stored or read. The message has the problem, and `remedy` how to fix it. */
export class RunStoreError extends Error {
  readonly remedy: string;
  constructor(message: string, remedy: string, options?: ErrorOptions) {
    super(message, options);
    this.remedy = remedy;
  }
}

/** The store has lost entries that it had acknowledged. The journal does not show what was applied since. */
export class LostEntriesError extends RunStoreError {}

/** The stored data of a run is damaged. It is unknown what the run did or sent. */
export class DamagedRunError extends RunStoreError {
  readonly runId: string;
  /** Whether the stored data that the run removed is complete. */
  readonly holdsRemoved: boolean;
  /** Undefined if the header is damaged as well. */
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

/** The readable parts of a damaged run. */
interface KeptOfDamaged {
  readonly holdsRemoved?: boolean;
  readonly header?: RunHeader | undefined;
}

/** The store cannot be reached now. Nothing was sent for the call that needed it. */
export class StoreUnavailableError extends RunStoreError {}

/** The header of a run, with its call as its kind parses it. It is written before the run starts. */
export interface RunHeader<Call = unknown> extends Readonly<Omit<z.infer<typeof runHeaderSchema>, "version" | "call">> {
  readonly call: Call;
}

/** The summary of a run, a part of its record at rest. */
export interface RunSummary extends Readonly<z.infer<typeof runSummarySchema>> {}

/** The journal of one run, open for writing with the lease of the run. */
export interface RunJournal {
  /** Adds an entry. It is on the disk once `flush` has resolved. */
  append(line: Line): void;
  /**
   * Resolves when every added entry is on the disk and the lease of the run is still held. Throws if that fails: a
   * LeaseLostError if another process executes the run.
   */
  flush(): Promise<void>;
  /**
   * Does the same as `flush`, and renews the lease of the run and the write lease that a request is sent with. Returns
   * the clock readings from before that; the request may be sent while they are fresh. Throws a LeaseLostError if
   * another process holds one of the leases.
   */
  intend(turn: Turn): Promise<Intent>;
  /**
   * Writes the added entries to the disk. The next `flush` throws if that fails; this resolves in any case, or throws a
   * StoreUnavailableError if the call that waits must be answered first.
   */
  write(): Promise<void>;
  /**
   * Appends an entry although another process executes the run by now. It informs that process of a request that was
   * sent too late.
   */
  appendLate(line: Line): Promise<void>;
  /** Closes the journal. If the lease is still held, added entries that were not flushed are written first. */
  close(): Promise<void>;
}

/** A mark that differs after every change of a run. */
export interface Revision {
  readonly text: string;
  /** How many bytes have to be read to load the run. */
  readonly bytes: number;
}

/** A run as it is stored. Its kind parses its call and its lines, which can be read more than once. */
export interface StoredRun<Call = unknown, Entry = string> {
  readonly header: RunHeader<Call>;
  readonly record: RunRecord;
  /** The entries of the plan that is executed once a person approves it. */
  readonly proposed: AsyncIterable<Entry>;
  readonly entries: AsyncIterable<Entry>;
}

/**
 * A part of a run besides its journal: the input file of the call, the sheet that a plan was made of, the proposed
 * plan, the Context IDs and options that the run removed, the previous values, and the rows of the file that failed.
 */
export type RunPart = "input" | "sheet" | "proposed" | "removed" | "former" | "rejects";

/**
 * Which runs to list: those of a caller that are older than `before`, those that may be unfinished, or the last run of
 * a call.
 */
export type RunQuery =
  | { readonly caller: string; readonly before?: string }
  | { readonly unfinished: Unfinished }
  | { readonly lastOf: string };

/**
 * All runs that may be unfinished, those of one call, those of one caller in one project, or those of the callers with
 * one name, whichever keys they bring.
 */
export type Unfinished = "all" | { readonly fingerprint: string } | { readonly callerName: string } | CallerScope;

/**
 * A store of runs of every kind. Every method throws a RunStoreError if the store cannot be used. Smaller independent
 * parts are objects of their own, such as requests to stop, sizes, the retention clock and orphaned runs.
 */
export interface RunStore {
  /** Stores a new run. Its status is `planning`. */
  create(header: RunHeader): Promise<void>;
  /**
   * Replaces the record of a run. Returns false if the stored version is not the previous version. If a lease is passed
   * and another process holds it, throws a LeaseLostError.
   */
  update(runId: string, record: RunRecord, lease?: Lease): Promise<boolean>;
  /**
   * Returns the record of a run, or undefined if there is none. The record says if the stored data of the run is
   * damaged.
   */
  record(runId: string): Promise<RunRecord | undefined>;
  /** Reads a run. Returns undefined if there is none with this ID. */
  read(runId: string): Promise<StoredRun | undefined>;
  /** Returns the current revision of a run, to compare it with an earlier one, or undefined if it cannot be read. */
  revision(runId: string): Promise<Revision | undefined>;
  /**
   * Returns IDs of runs, the newest first. For a caller, returns the next page older than `before`; after the last page
   * it is empty. Not all runs of an unfinished query are really unfinished. The cost is about the same for any number
   * of stored runs.
   */
  list(query: RunQuery): Promise<readonly string[]>;
  /**
   * Takes the lease to plan and execute a run. Returns undefined while another executor holds it. If a previous
   * executor is still alive, the entries that it appends from then on do not belong to the journal.
   */
  lease(runId: string): Promise<Lease | undefined>;
  /** Returns whether a process plans or executes the run now. */
  isDriven(runId: string): Promise<boolean>;
  /** Opens the journal of a started run to append to it, as long as the lease of the run is held. */
  journal(runId: string, lease: Lease): Promise<RunJournal>;
  /** Stores a part of a run. It replaces the part that was stored under this name before. */
  keep(runId: string, part: RunPart, pieces: Pieces): Promise<void>;
  /** Opens a stored part of a run. It is empty if nothing was stored. */
  part(runId: string, part: RunPart): ByteSource;
  /** Removes a run that has sent nothing, as if it had never been stored. */
  discard(runId: string): Promise<void>;
  /** Removes runs that need not be stored any longer. */
  tidy(): Promise<void>;
  /**
   * Calls the listener when another process may have changed the run, until the returned function is called. The calls
   * are only hints. If absent, no process notifies.
   */
  watch?(runId: string, listener: () => void): () => void;
  readonly stops: StopStore;
  readonly sizes: SizeStore;
  /** Runs `work` while no other work for the same call runs, in this process or another. */
  withCallLock<T>(fingerprint: string, work: () => Promise<T>): Promise<T>;
  /** The clock by which runs are removed. If absent, no clock decides this. */
  readonly retention?: RetentionWatch;
  /** Runs that processes leave to each other. If absent, a run whose process ended waits until a call resumes it. */
  readonly left?: OrphanedRuns;
}

/** Requests to stop runs, from any process. */
export interface StopStore {
  /** Asks the executor of a run to stop it. The request is durable once this has resolved. */
  ask(runId: string): Promise<void>;
  /** Returns the names of the requests that were not withdrawn. Each request has its own name. */
  asked(runId: string): Promise<readonly string[]>;
  /** Withdraws requests. */
  forget(runId: string, asked: readonly string[]): Promise<void>;
  /**
   * Calls the listener when the executor of a run is asked to stop it, until the returned function is called. The calls
   * are only hints. If absent, no process notifies.
   */
  watch?(runId: string, listener: () => void): () => void;
}

/** The sizes of stored runs. */
interface SizeStore {
  /** Returns how many bytes the calls of these runs take, with their input and their proposed plans. */
  of(runIds: readonly string[]): Promise<number>;
  /**
   * Throws a ShareFullError if this many more bytes would exceed the caller's share. If absent, there are no shares.
   */
  checkRoom?(caller: string, bytes: number): Promise<void>;
}

/**
 * Runs that were started and whose process has ended. A worker, a process that claims runs of their project, continues
 * them. As long as there is a worker, they count as executed.
 */
export interface OrphanedRuns {
  /**
   * Notes that this process executes a run of a project, until the returned function is called. Returns undefined if it
   * must leave the run to others once its plan is stored: it is not a worker, or it writes to the maximum number of
   * projects.
   */
  drives(project: string): (() => void) | undefined;
  /** Returns whether any live process executes runs of the project, this one or another. */
  isTakenUp(project: string): Promise<boolean>;
  /** Returns whether this process may claim runs of a project now. */
  hasRoomFor(project: string): boolean;
  /** Leaves a run to other processes. Its lease was released before. */
  leave(runId: string): Promise<void>;
  /**
   * Announces that this process claims runs of these projects. `wake` is called when a run was left or a slot is free.
   */
  takesUp(projects: readonly string[], wake: () => void): Promise<void>;
  /**
   * Returns some runs of these projects that no process executes, except `except`: first those of the callers with the
   * fewest projects in execution, then the oldest.
   */
  found(projects: readonly string[], most: number, except?: readonly string[]): Promise<readonly OrphanedRun[]>;
  /** Announces which runs this process may not execute. They do not count as executed because of this process. */
  refuses(runIds: readonly string[]): Promise<void>;
}

/** A run that no process executes. */
export type OrphanedRun = Pick<RunHeader, "runId" | "project">;

/**
 * Returns the name of a caller without the digest of its keys, which precedes it in the owner of runs of another
 * project.
 */
export function callerName(owner: string): string {
  return owner.replace(/^keys:\w+ /, "");
}

/** The runs of one caller in one project. */
interface CallerScope {
  readonly caller: string;
  readonly project: string;
  readonly environment: string;
}

/**
 * Returns the result of `reading`, or undefined if the run cannot be read: it has a newer version, is damaged, or is
 * being removed.
 */
export async function undefinedIfUnreadable<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (thrown) {
    if (thrown instanceof StoreUnavailableError) throw thrown;
    if (thrown instanceof RunStoreError || thrown instanceof FileError) return undefined;
    throw thrown;
  }
}

/** Only the call of a run was stored: its process died before it wrote more. Nothing was sent. */
export class NothingStoredError extends RunStoreError {}

/** Returns the result of `taking`, or undefined if only the call of the run was stored. */
export async function undefinedIfNothingStored<T>(taking: Promise<T>): Promise<T | undefined> {
  try {
    return await taking;
  } catch (thrown) {
    if (thrown instanceof NothingStoredError) return undefined;
    throw thrown;
  }
}

/** The number of groups of calls. Calls of one group wait for each other. */
const CALL_GROUPS = 64;

/** Returns the group of a call. Calls of the same group run one after another. */
export function callGroupOf(fingerprint: string): string {
  return String([...fingerprint].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % CALL_GROUPS);
}

/** A journal entry as its kind writes it: JSON without a line break, in pieces. */
export type Line = readonly (string | Uint8Array)[];

const NEWLINE = Buffer.from("\n");
const LINE_FEED = 0x0a;

/** Returns an entry as bytes, with its line break. */
export function lineBytes(line: Line): Uint8Array[] {
  return [...line.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)), NEWLINE];
}

/** Yields entries one after another, each with its line break. */
export function* inLines(lines: Iterable<Line>): Generator<string | Uint8Array> {
  for (const line of lines) {
    yield* line;
    yield "\n";
  }
}

/** Yields the lines that end with a line break. */
export async function* wholeLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest: Uint8Array[] = [];
  for await (const piece of pieces) {
    let from = 0;
    for (let end = piece.indexOf(LINE_FEED); end !== -1; end = piece.indexOf(LINE_FEED, from)) {
      yield Buffer.concat([...rest, piece.subarray(from, end)]).toString("utf8");
      rest = [];
      from = end + 1;
    }
    if (from < piece.length) rest.push(piece.subarray(from));
  }
}
