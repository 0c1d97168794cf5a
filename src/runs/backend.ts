import { NameIndex, type NameMatch } from "../spec/names.ts";
import type { RunStore } from "./store.ts";
import type { Turn } from "./turn.ts";

/**
 * Everything that has to outlive a process or be shared between processes. Files and other stores implement all of it;
 * `test/runs/backend-contract.ts` holds what each of them must do.
 */
export interface Backend {
  /** Runs of every kind. */
  readonly runs: RunStore;
  /** One write of a project at a time. */
  readonly lock: ProjectLock;
  readonly suites: SuiteTexts;
  /** The targetings of a project that were seen before. */
  names(project: string, options: NamesOptions): TargetingMemory;
  /** The Context IDs of a project that were read before; `onProblem` is told what could not be kept or found again. */
  contents(project: string, onProblem: (problem: unknown) => void): ContentsStore;
  /** Appends a line to the audit log of writes. */
  readonly audit: (line: string) => Promise<void>;
  /**
   * A key of at least 32 bytes, the same for all who share the backend. Throws a RunStoreError where it can be neither
   * read nor made.
   */
  readonly sealKey: () => Promise<Uint8Array>;
  /** The sessions of the page that were ended before their time, for all who share the backend. */
  readonly endedSessions: EndedSessions;
  /** What is known of the rights of callers, for all who share the backend. */
  readonly callerRights: CallerTexts;
  /** Resolves where the backend can be reached and holds all that it needs; absent: it can always be used. */
  readonly ready?: () => Promise<void>;
  /** Closes what it holds open; leases have to be given back before. */
  readonly close: () => Promise<void>;
}

/** Keeps one text for each caller. */
export interface CallerTexts {
  keep(caller: string, text: string): Promise<void>;
  /** Undefined where none is kept. */
  read(caller: string): Promise<string | undefined>;
}

/** Notes which sessions are over; none is known any more after its time, in milliseconds since 1970. */
export interface EndedSessions {
  add(id: string, until: number): Promise<void>;
  has(id: string): Promise<boolean>;
}

/** How the names of targetings are remembered. */
export interface NamesOptions {
  /** Whether names outlive this process: those of a sandbox inside this process end with it. */
  readonly lasting: boolean;
  /** Targetings that are known from the beginning. Read once, when the memory is first used. */
  readonly known?: (() => Promise<readonly { readonly _id: string; readonly name: string }[]>) | undefined;
  /** Called when the names could not be read or written; the memory then works without the stored ones. */
  readonly onProblem: (problem: unknown) => void;
}

/** An option, and what its record said when its Context IDs were read. */
export interface SeenOption {
  readonly targetingId: string;
  readonly optionId: string;
  readonly updatedAt: string;
  readonly contextCount: number;
}

/**
 * Context IDs that were read before, so that they need not be read again while the option's record says that nothing
 * changed. Only for what an answer shows or a file holds: whatever takes something away reads afresh.
 */
export interface ContentsStore {
  /** Takes note of what was kept meanwhile, by this process and others: before many are looked for. */
  refresh(): Promise<void>;
  /** The Context IDs that were kept of an option with exactly this record; undefined where there are none. */
  get(option: SeenOption): Promise<readonly string[] | undefined>;
  /** Keeps the Context IDs of an option. What cannot be kept is not: that costs another read, and no more. */
  put(option: SeenOption, contexts: readonly string[]): Promise<void>;
}

/** Lets one write of a project leave at a time (management-api 4.2). */
export interface ProjectLock {
  /**
   * Does some work while this process has the turn to write to the project; gives the result of the work. Where the
   * turn is lost during the work, only requests stop: each one asks the turn before it leaves. Rejects with the
   * signal's reason when it is aborted while waiting. Callers take turns, however much work of each waits.
   */
  hold<T>(project: string, work: (turn: Turn) => Promise<T>, signal: AbortSignal, caller?: string): Promise<T>;
}

/**
 * Where suites of event tests are kept as text, each for the caller who made it, and the result of each confirmation by
 * a person. Everything throws a RunStoreError where the place cannot be used.
 */
export interface SuiteTexts {
  /**
   * Keeps a text under an ID of letters and digits, in place of the one before. Of each caller the newest hundred stay.
   */
  put(caller: string, id: string, text: string): Promise<void>;
  get(caller: string, id: string): Promise<string | undefined>;
  /** The caller's texts, those kept last first. */
  list(caller: string): Promise<readonly string[]>;
  /** How many bytes the caller's texts take. */
  storedBytes(caller: string): Promise<number>;
  /** Takes a confirmation: true for the first call in any process, which may act on it, and false for all others. */
  claim(yes: string): Promise<boolean>;
  /** Keeps the result of a confirmation. */
  settle(yes: string, text: string): Promise<void>;
  /** The result of a confirmation: an empty text while there is none yet; undefined where it was not taken. */
  settled(yes: string): Promise<string | undefined>;
}

/** A targeting that was seen: its name may have changed since. */
export interface SeenTargeting {
  readonly _id: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly seenAt: number;
}

/** The most targetings of a project that are remembered. */
export const MOST_REMEMBERED = 2000;
const CANDIDATES = 5;

/** The targetings of one project that were seen before: the service has no operation that lists them. */
export interface TargetingMemory {
  /** Stores targetings under their present names. */
  remember(targetings: readonly { readonly _id: string; readonly name: string }[]): Promise<void>;
  /** Removes targetings that were deleted. */
  forget(ids: readonly string[]): Promise<void>;
  /** All of them, the last seen first. */
  recent(): Promise<readonly SeenTargeting[]>;
  /** Finds the targeting of a name, as a `NameIndex` does; of an unknown one the last seen are candidates, too. */
  resolve(name: string): Promise<NameMatch<SeenTargeting>>;
}

/** The targeting of a name among those that were seen, the last seen first. */
export function namedAmong(seen: readonly SeenTargeting[], name: string): NameMatch<SeenTargeting> {
  const found = new NameIndex(seen).find(name);
  if (found.kind !== "unknown") return found;
  const near = new Set([...found.candidates, ...seen]);
  return { kind: "unknown", candidates: [...near].slice(0, CANDIDATES) };
}
