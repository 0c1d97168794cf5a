import type { WriteCall } from "./call.ts";
import type { Removed } from "./plan/plan.ts";
import type { JournalEntry } from "./work.ts";

/** What is known of a run before it starts; kept so that it can be finished without its caller. */
export interface RunHeader {
  readonly runId: string;
  readonly call: WriteCall;
  /** The project behind the key: what the write lock is held for. */
  readonly project: string;
  /** Who made the call; only they see the run. */
  readonly caller: string;
  readonly environment: "live" | "sandbox";
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

/** The journal of one run, open for writing. */
export interface RunJournal {
  /** Takes an entry; it is on the disk once `flush` has resolved. */
  append(entry: JournalEntry): void;
  /** Resolves when every entry taken is on the disk. Throws when that cannot be had: then nothing may be sent. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** A run as it is read back. */
export interface StoredRun {
  readonly header: RunHeader;
  /** Whether it was ever started. */
  readonly started: boolean;
  readonly entries: AsyncIterable<JournalEntry>;
}

/** Where runs are kept. */
export interface RunStore {
  /** Keeps a run that is planned but not started: its call, and what it would take away. */
  create(header: RunHeader): Promise<void>;
  /** Starts a run: true for the one caller who may drive it first, false when it was started before. */
  start(runId: string): Promise<boolean>;
  /** Opens a started run's journal for writing, after what it holds. */
  journal(runId: string): Promise<RunJournal>;
  /** Keeps what a run takes away. */
  keepRemoved(runId: string, removed: readonly Removed[]): Promise<void>;
  /** Reads a run; undefined when there is none with this ID. */
  read(runId: string): Promise<StoredRun | undefined>;
  /** IDs of all runs, the newest first. */
  list(): Promise<readonly string[]>;
}
