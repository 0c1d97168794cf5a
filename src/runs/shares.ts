import type { Pieces } from "../platform/durable-files.ts";
import type { Backend } from "./backend.ts";
import { isUnstarted } from "./lifecycle.ts";
import { type CallerScope, orUnreadable, type RunHeader, RunStoreError } from "./store.ts";

const MEGABYTE = 1_048_576;
/** A call whose arguments are smaller is not counted until something else of its run is stored. */
const SMALL_BYTES = 65_536;

/** A caller's share of the store is full: nothing was sent, and nothing of the call stays stored. */
export class ShareFullError extends RunStoreError {}

/** How much is stored for one caller. */
export interface Share {
  /** The most bytes of plans, suites and unfinished runs. */
  readonly bytes: number;
  /** The most dry runs. */
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
  /** Removes a dry run, unless it is being applied: its lease says so. */
  const removeDryRun = async (runId: string): Promise<void> => {
    const lease = await runs.lease(runId);
    if (lease === undefined) return;
    const record = await runs.record(runId);
    if (record !== undefined && isUnstarted(record.status)) await runs.discard(runId);
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
