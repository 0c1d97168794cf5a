import type { Removed } from "./plan/plan.ts";
import type { RunHeader, RunStore } from "./store.ts";
import type { JournalEntry } from "./work.ts";

interface Kept {
  readonly header: RunHeader;
  readonly entries: JournalEntry[];
  readonly removed: Removed[];
  started: boolean;
}

/** Keeps runs for as long as the process lives: for dry runs, for tests, and where there is no state folder. */
export function memoryRunStore(): RunStore {
  const runs = new Map<string, Kept>();
  const kept = (runId: string): Kept => {
    const run = runs.get(runId);
    if (run === undefined) throw new RangeError(`there is no run ${runId}`);
    return run;
  };
  return {
    create: async (header) => {
      runs.set(header.runId, { header, entries: [], removed: [], started: false });
    },
    start: async (runId) => {
      const run = kept(runId);
      const first = !run.started;
      run.started = true;
      return first;
    },
    journal: async (runId) => {
      const { entries } = kept(runId);
      return { append: (entry) => void entries.push(entry), flush: async () => {}, close: async () => {} };
    },
    keepRemoved: async (runId, removed) => {
      kept(runId).removed.push(...removed);
    },
    read: async (runId) => {
      const run = runs.get(runId);
      return run === undefined ? undefined : { header: run.header, started: run.started, entries: each(run.entries) };
    },
    list: async () => [...runs.keys()].sort().reverse(),
  };
}

async function* each(entries: readonly JournalEntry[]): AsyncGenerator<JournalEntry> {
  yield* entries;
}
