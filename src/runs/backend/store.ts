import type { ByteSource } from "../../platform/bytes.ts";
import { FileError } from "../../platform/file-error.ts";
import type { Intent, Lease, Turn } from "../turn.ts";

/** Runs cannot be kept or read: what is wrong, and what to do. */
export class RunStoreError extends Error {
  readonly remedy: string;
  constructor(message: string, remedy: string, options?: ErrorOptions) {
    super(message, options);
    this.remedy = remedy;
  }
}

/** What is known of a run before it starts; kept so that it can be finished without its caller. */
export interface RunHeader<Call = unknown> {
  readonly runId: string;
  /** The name of its kind. Versions before wrote none: then the tool of the call says it. */
  readonly kind?: string;
  readonly call: Call;
  /** The project behind the key: what the write lock is held for. */
  readonly project: string;
  /** Who made the call; only they see the run. */
  readonly caller: string;
  readonly environment: "live" | "sandbox";
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** The same for the same call of the same caller. */
  readonly fingerprint: string;
  /** Its call had answered before it was planned, so that nobody was asked anything yet. */
  readonly unplanned?: true;
}

/** A run in short, written whenever it comes to rest. */
export interface RunSummary {
  readonly tool: string;
  readonly caller: string;
  readonly fingerprint: string;
  readonly status: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly startedAt: number;
  readonly updatedAt: number;
  /** Whether there is anything left that `resume_run` could take up. */
  readonly open: boolean;
}

/** An entry of a journal as its kind writes it: JSON without a line break, in pieces. */
export type Line = readonly (string | Uint8Array)[];

/** The journal of one run, open for writing by the lease of the run. */
export interface RunJournal {
  /** Takes an entry; it is on the disk once `flush` has resolved. */
  append(line: Line): void;
  /**
   * Resolves when every entry taken is on the disk and the lease of the run is still held. Throws when that cannot be had:
   * a LeaseLostError where another process drives the run.
   */
  flush(): Promise<void>;
  /**
   * As `flush`, and renews the lease of the run and the turn that a request is to leave by: gives the clocks as they were
   * before that, by which it may leave. Throws a LeaseLostError where another process has the run, or the turn.
   */
  intend(turn: Turn): Promise<Intent>;
  /** Begins to put on the disk what was taken; whoever flushes next learns how that went. */
  write(): void;
  /**
   * Puts an entry into the journal as it is now, although another process drives the run: what this one did too late is
   * not to stay unknown.
   */
  appendLate(line: Line): Promise<void>;
  /** Closes it; entries that were taken and not flushed are written first, as long as the lease is held. */
  close(): Promise<void>;
}

/** Changes whenever anything of a run does. */
export interface Revision {
  readonly text: string;
  /** How much is read to know the run. */
  readonly bytes: number;
}

/** A run as it is kept: what its call and its lines, which can be read again, mean is for its kind to say. */
export interface StoredRun<Call = unknown, Entry = string> {
  readonly header: RunHeader<Call>;
  /** Whether it was ever started. */
  readonly started: boolean;
  /** What is to be done once a person agrees. */
  readonly proposed: AsyncIterable<Entry>;
  readonly entries: AsyncIterable<Entry>;
}

/**
 * What belongs to a run beside its journal: the file that it was given, what it took away, and the rows of the file that
 * failed.
 */
export type RunPart = "input" | "removed" | "rejects";

/** Where runs of every kind are kept. Everything throws a RunStoreError where the place cannot be used. */
export interface RunStore {
  /** Keeps a run that is planned but not started. */
  create(header: RunHeader): Promise<void>;
  /** Notes that a run which came to rest is about to be driven again: until it rests it has no summary. */
  reopen(header: RunHeader): Promise<void>;
  /** Keeps what a run that is not started would do, for those who look at it. */
  propose(runId: string, lines: Iterable<Line>): Promise<void>;
  /** Starts a run: true for the one caller who may drive it first, false when it was started before. */
  start(runId: string): Promise<boolean>;
  /** Opens a started run's journal for writing, after what it holds, for as long as the lease of the run is held. */
  journal(runId: string, lease: Lease): Promise<RunJournal>;
  /** Keeps what belongs to a run beside its journal; what was kept under this name before is replaced. */
  keep(runId: string, part: RunPart, pieces: AsyncIterable<string | Uint8Array>): Promise<void>;
  /** Opens what was kept beside a journal. Nothing where nothing was. */
  part(runId: string, part: RunPart): ByteSource;
  /** Reads a run; undefined when there is none with this ID. */
  read(runId: string): Promise<StoredRun | undefined>;
  /** Tells whether a run has changed since it was read; undefined where that cannot be told. */
  revision(runId: string): Promise<Revision | undefined>;
  /** IDs of the runs of a caller, the newest first. */
  list(caller: string): Promise<readonly string[]>;
  /**
   * IDs of the runs that may be unfinished, the newest first: all of them, those of one call, or those of one caller in
   * one project. Not all of them are unfinished: it costs about the same, however many runs are kept.
   */
  unfinished(which?: Which): Promise<readonly string[]>;
  /** The run that was made last of a call; undefined where there is none. */
  last(fingerprint: string): Promise<string | undefined>;
  /** Does some work while no other process, nor another part of this one, does any for the same call. */
  alone<T>(fingerprint: string, work: () => Promise<T>): Promise<T>;
  summarise(runId: string, summary: RunSummary): Promise<void>;
  summary(runId: string): Promise<RunSummary | undefined>;
  /**
   * Becomes the one driver of a run; undefined while another one is. What a driver before it, which may still be there,
   * appends from then on is no part of the journal.
   */
  lease(runId: string): Promise<Lease | undefined>;
  /** Whether somebody drives the run now. */
  isDriven(runId: string): Promise<boolean>;
  /** Asks the driver of a run, in whatever process, to stop it; it is on the disk once this has resolved. */
  askToStop(runId: string): Promise<void>;
  /** What was asked so and not taken back, each by a name of its own. */
  stopAsked(runId: string): Promise<readonly string[]>;
  /** Takes back what was asked. */
  forgetStop(runId: string, asked: readonly string[]): Promise<void>;
  /** Removes runs that need not be kept any longer. */
  tidy(): Promise<void>;
}

/** Runs of one call, or of one caller in one project. */
export type Which =
  | { readonly fingerprint: string }
  | { readonly caller: string; readonly project: string; readonly environment: string };

/** What is read of a run that may be one of a newer version, damaged, or just being removed: undefined where it cannot be. */
export async function orUnreadable<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (thrown) {
    if (thrown instanceof RunStoreError || thrown instanceof FileError) return undefined;
    throw thrown;
  }
}
