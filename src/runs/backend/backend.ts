import type { ContentsStore } from "./contents-store.ts";
import type { ProjectLock } from "./project-lock.ts";
import type { RunStore } from "./store.ts";
import type { SuiteTexts } from "./suite-texts.ts";
import type { TargetingMemory } from "./targeting-names.ts";

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
