import { hasCode } from "../../platform/file-error.ts";
import type { RunStore } from "../backend/store.ts";
import { onceDone } from "../same-call.ts";
import { usable } from "./files.ts";
import { runsIn } from "./run-folder.ts";

/**
 * A store beside which a version before kept some runs in a folder of their own: these stay there, and new ones go to
 * `main`. The IDs of the earlier runs are read once.
 */
export function withEarlier(main: RunStore, earlier: RunStore, folder: string): RunStore {
  const ids = onceDone(async (): Promise<ReadonlySet<string>> => {
    try {
      return new Set(await usable(folder, () => runsIn(folder)));
    } catch (thrown) {
      // Where the state folder is no folder, the main store throws the error for it.
      if (thrown instanceof Error && hasCode(thrown.cause, "ENOTDIR")) return new Set();
      throw thrown;
    }
  });
  const of = async (runId: string): Promise<RunStore> => ((await ids()).has(runId) ? earlier : main);
  const both = async (list: (store: RunStore) => Promise<readonly string[]>): Promise<readonly string[]> => {
    if ((await ids()).size === 0) return list(main);
    const [mine, theirs] = await Promise.all([list(main), list(earlier)]);
    return theirs.length === 0 ? mine : [...mine, ...theirs].sort().reverse();
  };
  return {
    create: (header) => main.create(header),
    update: async (runId, record, lease) => (await of(runId)).update(runId, record, lease),
    record: async (runId) => (await of(runId)).record(runId),
    journal: async (runId, lease) => (await of(runId)).journal(runId, lease),
    keep: async (runId, part, pieces) => (await of(runId)).keep(runId, part, pieces),
    part: (runId, part) =>
      async function* (pieceBytes) {
        yield* (await of(runId)).part(runId, part)(pieceBytes);
      },
    read: async (runId) => (await of(runId)).read(runId),
    sizes: main.sizes,
    discard: (runId) => main.discard(runId),
    revision: async (runId) => (await of(runId)).revision(runId),
    async list(query) {
      const found = await both((store) => store.list(query));
      return "lastOf" in query ? found.slice(0, 1) : found;
    },
    withCallLock: (fingerprint, work) => main.withCallLock(fingerprint, work),
    lease: async (runId) => (await of(runId)).lease(runId),
    isDriven: async (runId) => (await of(runId)).isDriven(runId),
    stops: {
      ask: async (runId) => (await of(runId)).stops.ask(runId),
      asked: async (runId) => (await of(runId)).stops.asked(runId),
      forget: async (runId, asked) => (await of(runId)).stops.forget(runId, asked),
    },
    async tidy() {
      await main.tidy();
      if ((await ids()).size > 0) await earlier.tidy();
    },
    ...(main.retention && {
      retention: {
        ...main.retention,
        noteService(time) {
          main.retention?.noteService(time);
          earlier.retention?.noteService(time);
        },
      },
    }),
  };
}
