import type { Pieces } from "../platform/durable-files.ts";
import { NameIndex, type NameMatch } from "../spec/names.ts";
import { isUnstarted } from "./lifecycle.ts";
import { type CallerScope, orUnreadable, type RunHeader, type RunStore, RunStoreError } from "./store.ts";
import type { Turn } from "./turn.ts";

/**
 * Everything that has to outlive a process or be shared between processes. Files and other stores implement all of it;
 * `test/runs/backend-contract.ts` holds what each of them must do.
 */
export interface Backend {
  readonly runs: RunStore;
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

export interface CallerTexts {
  keep(caller: string, text: string): Promise<void>;
  read(caller: string): Promise<string | undefined>;
}

/** Notes which sessions are over; none is known any more after its time, in milliseconds since 1970. */
export interface EndedSessions {
  add(id: string, until: number): Promise<void>;
  has(id: string): Promise<boolean>;
}

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
  settle(yes: string, text: string): Promise<void>;
  /** The result of a confirmation: an empty text while there is none yet; undefined where it was not taken. */
  settled(yes: string): Promise<string | undefined>;
}

export interface SeenTargeting {
  readonly _id: string;
  readonly name: string;
  readonly seenAt: number;
}

/** The most targetings of a project that are remembered. */
export const MOST_REMEMBERED = 2000;
const CANDIDATES = 5;

/** The targetings of one project that were seen before: the service has no operation that lists them. */
export interface TargetingMemory {
  remember(targetings: readonly { readonly _id: string; readonly name: string }[]): Promise<void>;
  forget(ids: readonly string[]): Promise<void>;
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

const MEGABYTE = 1_048_576;
/** A call whose arguments are smaller is not counted until something else of its run is stored. */
const SMALL_BYTES = 65_536;

/** A caller's share of the store is full: nothing was sent, and nothing of the call stays stored. */
export class ShareFullError extends RunStoreError {}

interface Share {
  readonly bytes: number;
  readonly dryRuns: number;
}

/**
 * The same backend, in which each caller has no more than a share. A new dry run replaces the caller's oldest ones and
 * nothing else; whatever else would exceed the share is removed again, and its call throws a ShareFullError.
 */
export function withShares(backend: Backend, { bytes: mostBytes, dryRuns: mostDryRuns }: Share): Backend {
  const { runs, suites } = backend;
  /** The caller's other dry runs that were not started, the oldest first. */
  const otherDryRuns = async ({ runId, caller, project, environment }: RunHeader): Promise<readonly string[]> => {
    const ids = (await runs.list({ unfinished: { caller, project, environment } })).filter((id) => id !== runId);
    const stored = await Promise.all(ids.map((id) => orUnreadable(runs.read(id))));
    return stored
      .flatMap((run) => (run?.header.dryRun && isUnstarted(run.record.status) ? [run.header.runId] : []))
      .reverse();
  };
  /** Removes a dry run, unless its call is not answered yet, or it is being applied: its lease says so. */
  const removeDryRun = async (runId: string): Promise<void> => {
    const lease = await runs.lease(runId);
    if (lease === undefined) return;
    const record = await runs.record(runId);
    if (record?.status === "planned") await runs.discard(runId);
    await lease.release();
  };
  const checkRoom = async ({ caller, project, environment }: CallerScope, more = 0): Promise<void> => {
    const unfinished = await runs.list({ unfinished: { caller, project, environment } });
    const bytes = (await runs.sizes.of(unfinished)) + (await suites.storedBytes(caller));
    if (bytes + more > mostBytes) throw full(mostBytes);
  };
  /** Does what stores something of a run, and removes the run where that exceeds the share. */
  const within = async (runId: string, store: () => Promise<void>): Promise<void> => {
    try {
      await store();
    } catch (thrown) {
      if (!(thrown instanceof ShareFullError)) throw thrown;
      // A run that is driven already reports the error as its reason.
      if (await runs.isDriven(runId)) await runs.keep(runId, "input", nothing());
      else await runs.discard(runId);
      throw thrown;
    }
  };
  const checkRun = async (runId: string): Promise<void> => {
    const stored = await runs.read(runId);
    if (stored === undefined) return;
    const { header } = stored;
    for (const older of header.dryRun ? await otherDryRuns(header) : []) {
      try {
        return await checkRoom(header);
      } catch (thrown) {
        if (!(thrown instanceof ShareFullError)) throw thrown;
        await removeDryRun(older);
      }
    }
    await checkRoom(header);
  };
  /** Stops at more than the whole share, so that one call never fills the disk before it is counted. */
  async function* atMost(pieces: Pieces): AsyncGenerator<string | Uint8Array> {
    let bytes = 0;
    for await (const piece of pieces) {
      bytes += piece.length;
      if (bytes > mostBytes) throw full(mostBytes);
      yield piece;
    }
  }
  return {
    ...backend,
    runs: {
      ...runs,
      sizes: { ...runs.sizes, checkRoom },
      async create(header) {
        await within(header.runId, async () => {
          await runs.create(header);
          if (header.dryRun) {
            const others = await otherDryRuns(header);
            for (const older of others.slice(0, Math.max(0, others.length + 1 - mostDryRuns)))
              await removeDryRun(older);
          }
          if ((await runs.sizes.of([header.runId])) > SMALL_BYTES) await checkRun(header.runId);
        });
      },
      keep(runId, part, pieces) {
        if (part !== "input" && part !== "sheet" && part !== "proposed") return runs.keep(runId, part, pieces);
        return within(runId, async () => {
          await runs.keep(runId, part, part === "proposed" ? pieces : atMost(pieces));
          await checkRun(runId);
        });
      },
    },
    suites: {
      ...suites,
      async put(caller, id, text) {
        const mine = new Set(await runs.list({ caller }));
        const unfinished = (await runs.list({ unfinished: "all" })).filter((runId) => mine.has(runId));
        const before = (await suites.get(caller, id))?.length ?? 0;
        const others = (await suites.storedBytes(caller)) - before + (await runs.sizes.of(unfinished));
        if (others + text.length > mostBytes) throw full(mostBytes);
        await suites.put(caller, id, text);
      },
    },
  };
}

async function* nothing(): AsyncGenerator<string> {}

function full(mostBytes: number): ShareFullError {
  return new ShareFullError(
    `Your share of the store is full: plans, suites and unfinished runs may take ${mostBytes / MEGABYTE} MB. ` +
      "Nothing was sent, and nothing of this call was stored",
    "Apply or cancel plans and waiting runs (get_run lists them, cancel_run cancels one). " +
      "The person who runs this server can raise TARGETING_MCP_CALLER_MB.",
  );
}
