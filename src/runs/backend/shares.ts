import type { Backend } from "./backend.ts";
import { type CallerScope, RunStoreError } from "./store.ts";

const MEGABYTE = 1_048_576;
/** A call whose arguments are smaller is not counted until something else of its run is stored. */
const SMALL_BYTES = 65_536;

/** A caller's share of the store is full: nothing was sent, and nothing of the call stays stored. */
export class ShareFullError extends RunStoreError {}

/**
 * The same backend, in which the plans, suites and unfinished runs of one caller take at most `mostBytes` bytes. What
 * would exceed that is removed again, and its call throws a ShareFullError.
 */
export function withShares(backend: Backend, mostBytes: number): Backend {
  const { runs, suites } = backend;
  const checkRoom = async ({ caller, project, environment }: CallerScope, more = 0): Promise<void> => {
    const unfinished = await runs.unfinished({ caller, project, environment });
    const bytes = (await runs.storedBytes(unfinished)) + (await suites.storedBytes(caller));
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
    if (stored !== undefined) await checkRoom(stored.header);
  };
  /** Stops at more than the whole share, so that one call never fills the disk before it is counted. */
  async function* atMost(pieces: AsyncIterable<string | Uint8Array>): AsyncGenerator<string | Uint8Array> {
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
      checkRoom,
      async create(header) {
        await within(header.runId, async () => {
          await runs.create(header);
          if ((await runs.storedBytes([header.runId])) > SMALL_BYTES) await checkRoom(header);
        });
      },
      keep(runId, part, pieces) {
        if (part !== "input") return runs.keep(runId, part, pieces);
        return within(runId, async () => {
          await runs.keep(runId, part, atMost(pieces));
          await checkRun(runId);
        });
      },
      propose: (runId, lines) =>
        within(runId, async () => {
          await runs.propose(runId, lines);
          await checkRun(runId);
        }),
    },
    suites: {
      ...suites,
      async put(caller, id, text) {
        const mine = new Set(await runs.list(caller));
        const unfinished = (await runs.unfinished()).filter((runId) => mine.has(runId));
        const before = (await suites.get(caller, id))?.length ?? 0;
        const others = (await suites.storedBytes(caller)) - before + (await runs.storedBytes(unfinished));
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
    "Apply or cancel plans and waiting runs that are no longer needed (get_run lists them, cancel_run cancels one). " +
      "The person who runs this server can raise TARGETING_MCP_CALLER_MB.",
  );
}
