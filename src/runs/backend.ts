import { type Named, NameIndex, type NameMatch } from "../platform/by-key.ts";
import { DAY_MS } from "../platform/clock.ts";
import type { Pieces } from "../platform/files.ts";
import {
  callerName,
  isUnstarted,
  type RunHeader,
  type RunStore,
  RunStoreError,
  undefinedIfUnreadable,
} from "./store.ts";
import type { Turn } from "./turn.ts";

/** Everything that outlives a process. `test/runs/backend-contract.ts` tests every implementation. */
export interface Backend {
  readonly runs: RunStore;
  readonly lock: ProjectLock;
  readonly suites: SuiteTexts;
  names(project: string, options: NamesOptions): TargetingMemory;
  contents(project: string, onProblem: (problem: unknown) => void): ContentsStore;
  readonly audit: (line: string) => Promise<void>;
  /** Returns the key (at least 32 bytes) with which all processes sign and verify tokens. Throws a RunStoreError. */
  readonly sealKey: () => Promise<Uint8Array>;
  readonly endedSessions: EndedSessions;
  readonly callerRights: CallerTexts;
  readonly ready?: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface CallerTexts {
  keep(caller: string, text: string): Promise<void>;
  read(caller: string): Promise<string | undefined>;
}

/** How many milliseconds an ended session stays stored after its tokens expire. Long, because a clock may be wrong. */
export const ENDED_FOR_MS = 30 * DAY_MS;

/** Ended sessions of the web page. Their tokens are refused. `until`: when the tokens expire, in ms since 1970. */
export interface EndedSessions {
  add(id: string, until: number): Promise<void>;
  has(id: string): Promise<boolean>;
}

export interface NamesOptions {
  readonly lasting: boolean;
  readonly known?: (() => Promise<readonly Named[]>) | undefined;
  readonly onProblem: (problem: unknown) => void;
}

export interface SeenOption {
  readonly targetingId: string;
  readonly optionId: string;
  readonly updatedAt: string;
  readonly contextCount: number;
}

/** Caches the Context IDs of options for answers, exported files and new plans. Applying a plan never relies on it. */
export interface ContentsStore {
  refresh(): Promise<void>;
  get(option: SeenOption): Promise<readonly string[] | undefined>;
  /** Stores the Context IDs of an option. Never throws: what is not stored is read from the service again. */
  put(option: SeenOption, contexts: readonly string[]): Promise<void>;
}

/** Ensures that each project sends only one write request at a time, as the service requires (management-api 4.2). */
export interface ProjectLock {
  /**
   * Runs `work` while this process holds the write lock of the project. `work` must await `turn.settled` before it
   * sends. Once the lock is lost, `work` can send no more requests. Waiting callers get the lock in turn.
   */
  hold<T>(project: string, work: (turn: Turn) => Promise<T>, signal: AbortSignal, caller?: string): Promise<T>;
}

/** Stores suites of event tests, and the results of confirmed tests. Throws a RunStoreError. */
export interface SuiteTexts {
  /** Stores a text under an ID of letters and digits. Each caller keeps only the newest 100 texts. */
  put(caller: string, id: string, text: string): Promise<void>;
  get(caller: string, id: string): Promise<string | undefined>;
  list(caller: string): Promise<readonly string[]>;
  storedBytes(callerName: string): Promise<number>;
  /**
   * Returns true only for the first claim of a confirmation, in any process. Only its caller may act on it. At least
   * the newest 1,000 claims are remembered.
   */
  claim(confirmation: string): Promise<boolean>;
  settle(confirmation: string, text: string): Promise<void>;
  /** Returns the result of a confirmation. Empty if it is claimed but has none yet. Undefined if it is not claimed. */
  settled(confirmation: string): Promise<string | undefined>;
}

export interface SeenTargeting extends Named {
  readonly seenAt: number;
}

export const MAX_REMEMBERED_TARGETINGS = 2000;
const CANDIDATES = 5;

export interface TargetingMemory {
  remember(targetings: readonly Named[]): Promise<void>;
  forget(ids: readonly string[]): Promise<void>;
  recent(): Promise<readonly SeenTargeting[]>;
  /** Finds a targeting as `NameIndex` does. For an unknown name, the targetings seen last are also candidates. */
  resolve(name: string): Promise<NameMatch<SeenTargeting>>;
}

export function findSeenTargeting(seen: readonly SeenTargeting[], name: string): NameMatch<SeenTargeting> {
  const found = new NameIndex(seen).find(name);
  if (found.kind !== "unknown") return found;
  const near = new Set([...found.candidates, ...seen]);
  return { kind: "unknown", candidates: [...near].slice(0, CANDIDATES) };
}

const MEGABYTE = 1_048_576;
/** A call of at most this many bytes is stored even if its `Share` is full. Files and plans must always fit into it. */
const SMALL_BYTES = 65_536;
/** In how many of a caller's newest unfinished runs dry runs are looked for, because each run has to be read. */
const MAX_READ = 1000;

export class ShareFullError extends RunStoreError {}

interface Share {
  readonly bytes: number;
  readonly dryRuns: number;
}

/**
 * Limits how many bytes of suites and unfinished runs, and how many dry runs, all callers with the same name may store
 * together (`callerName`). If a new dry run needs room, their oldest dry runs are removed. Anything else that exceeds
 * the limit is not stored or is removed again, and its call gets a ShareFullError.
 */
export function withShares(backend: Backend, { bytes: mostBytes, dryRuns: mostDryRuns }: Share): Backend {
  const { runs, suites } = backend;
  const unfinishedOf = (caller: string) => runs.list({ unfinished: { callerName: callerName(caller) } });
  const otherDryRuns = async ({ runId, caller }: RunHeader): Promise<readonly string[]> => {
    const ids = (await unfinishedOf(caller)).slice(0, MAX_READ).filter((id) => id !== runId);
    const stored = await Promise.all(ids.map((id) => undefinedIfUnreadable(runs.read(id))));
    return stored
      .flatMap((run) => (run?.header.dryRun && isUnstarted(run.record.status) ? [run.header.runId] : []))
      .reverse();
  };
  /** Removes an old dry run. While its lease is held, it stays: it is still being planned or applied. */
  const removeDryRun = async (runId: string): Promise<void> => {
    const lease = await runs.lease(runId);
    if (lease === undefined) return;
    try {
      const record = await runs.record(runId);
      if (record?.status === "planned") await runs.discard(runId);
    } finally {
      await lease.release();
    }
  };
  const checkRoom = async (caller: string, more = 0): Promise<void> => {
    const bytes = await runs.sizes.of(await unfinishedOf(caller));
    if (bytes + (await suites.storedBytes(callerName(caller))) + more > mostBytes) throw full(mostBytes);
  };
  const within = async (runId: string, store: () => Promise<void>): Promise<void> => {
    try {
      await store();
    } catch (thrown) {
      if (!(thrown instanceof ShareFullError)) throw thrown;
      // A run that is being executed stops with this error and reports it. So only its input is removed.
      if (await runs.isDriven(runId)) await runs.parts.keep(runId, "input", []);
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
        return await checkRoom(header.caller);
      } catch (thrown) {
        if (!(thrown instanceof ShareFullError)) throw thrown;
        await removeDryRun(older);
      }
    }
    await checkRoom(header.caller);
  };
  /** Yields the pieces. Throws once they exceed the whole share, so that one call cannot fill the disk. */
  async function* atMost(pieces: Pieces): AsyncGenerator<string | Uint8Array> {
    let bytes = 0;
    for await (const piece of pieces) {
      bytes += Buffer.byteLength(piece);
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
      parts: {
        ...runs.parts,
        keep(runId, part, pieces) {
          if (part !== "input" && part !== "sheet" && part !== "proposed") return runs.parts.keep(runId, part, pieces);
          return within(runId, async () => {
            await runs.parts.keep(runId, part, part === "proposed" ? pieces : atMost(pieces));
            await checkRun(runId);
          });
        },
      },
    },
    suites: {
      ...suites,
      async put(caller, id, text) {
        const before = Buffer.byteLength((await suites.get(caller, id)) ?? "");
        await checkRoom(caller, Buffer.byteLength(text) - before);
        await suites.put(caller, id, text);
      },
    },
  };
}

function full(mostBytes: number): ShareFullError {
  return new ShareFullError(
    `Your share of the store is full: plans, suites and unfinished runs may take ${mostBytes / MEGABYTE} MB. ` +
      "Nothing was sent, and the data of this call was not stored",
    "Apply or cancel plans and waiting runs (get_run lists them, cancel_run cancels one). " +
      "The person who runs this server can raise TARGETING_MCP_CALLER_MB.",
  );
}
