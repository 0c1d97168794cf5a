import { expect, test } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { KindRuns } from "../../src/runs/kind-runs.ts";
import { Runs } from "../../src/runs/registry.ts";
import { type OrphanedRuns, type RunStore, StoreUnavailableError } from "../../src/runs/store.ts";
import { LeaseLostError } from "../../src/runs/turn.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import { counting } from "../support/counting-runs.ts";
import { memoryRunStore } from "../support/memory-store.ts";

const world = {
  ...{ clock: systemClock, newRunId: ulidSource(Date.now, Math.random), project: "p", environment: "sandbox" as const },
};
const CALL = { tool: "count", to: 3 };

/** A store whose runs other processes continue. */
function sharedStore() {
  const memory = memoryRunStore();
  const left: OrphanedRuns = {
    drives: () => () => {},
    hasWorker: async () => true,
    hasRoomFor: () => true,
    leave: async () => {},
    startClaiming: async () => {},
    found: async () => [],
    refuses: async () => {},
  };
  return { ...memory, left };
}

function gate() {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open: () => open(), opened };
}

/** Starts a run that waits after its first step until the test lets it continue. */
async function halfway(store: RunStore) {
  const [reached, go] = [gate(), gate()];
  const { kind } = counting("count", async () => {
    reached.open();
    await go.opened;
  });
  const here = new KindRuns(kind, { ...world, store });
  const header = await here.keep(CALL, "me");
  const run = await here.start(header, undefined);
  await reached.opened;
  if (run === undefined) throw new RangeError("it was not started before");
  return { here, run, runId: header.runId, go: go.open };
}

/** Continues a run in another process. Returns its status and how many steps it has done. */
async function continued(store: RunStore, runId: string) {
  const runs = new KindRuns(counting("count").kind, { ...world, store });
  await (await new Runs({ ...world, store }, [runs]).claim(runId))?.rest;
  const found = await runs.find(runId);
  return { status: found?.status(), done: found?.state.done };
}

test("a run that is cancelled and then interrupted stays cancelled", async () => {
  const store = sharedStore();
  const { run, runId, go } = await halfway(store);
  run.stop("cancelled");
  run.stop("interrupted");
  go();
  await run.rest;
  expect((await store.record(runId))?.status).toBe("cancelled");
  expect(await continued(store, runId)).toEqual({ status: "cancelled", done: 1 });
});

test("a run that another process cancels while this process leaves it is not continued", async () => {
  const store = sharedStore();
  const { run, runId, go } = await halfway(store);
  run.stop("interrupted");
  const there = new KindRuns(counting("count").kind, { ...world, store });
  expect((await there.cancel(runId))?.status()).toBe("running");
  go();
  await run.rest;
  expect((await store.record(runId))?.status).toBe("running");
  expect(await continued(store, runId)).toEqual({ status: "cancelled", done: 1 });
});

test("a run that is cancelled by a process that has lost it is not continued by another process", async () => {
  const memory = sharedStore();
  const losing = new AbortController();
  let free = async (): Promise<void> => {};
  const store = {
    ...memory,
    lease: async (runId: string) => {
      const lease = await memory.lease(runId);
      free = async () => lease?.release();
      return lease && { ...lease, lost: losing.signal, check: async () => losing.signal.throwIfAborted() };
    },
  };
  const { here, runId, run, go } = await halfway(store);
  expect(await here.cancel(runId)).toBe(run);
  // The lease had expired before. This process notices it only now.
  losing.abort(new LeaseLostError("taken over"));
  await free();
  go();
  await expect.poll(() => here.driven(runId)).toBeUndefined();
  expect(await continued(memory, runId)).toEqual({ status: "cancelled", done: 1 });
});

test("a run that was cancelled before its process was killed is not continued", async () => {
  const memory = sharedStore();
  let free = async (): Promise<void> => {};
  const store = {
    ...memory,
    lease: async (runId: string) => {
      const lease = await memory.lease(runId);
      free = async () => lease?.release();
      return lease;
    },
  };
  const { here, runId } = await halfway(store);
  await here.cancel(runId);
  await free();
  expect(await continued(memory, runId)).toEqual({ status: "cancelled", done: 1 });
});

/** Throws the error of a store that cannot be reached. */
function away(): never {
  throw new StoreUnavailableError("away", "wait");
}

test.each(["another process continues it", "this process stops executing it"] as const)(
  "a cancel that cannot be stored at first is stored when the store is back, although %s",
  async (fate) => {
    const memory = sharedStore();
    const losing = new AbortController();
    let isAway = false;
    let free = async (): Promise<void> => {};
    const whileThere = async <T>(work: () => Promise<T>): Promise<T> => (isAway ? away() : work());
    const store: RunStore = {
      ...memory,
      record: (runId) => whileThere(() => memory.record(runId)),
      update: (...given) => whileThere(() => memory.update(...given)),
      read: (runId) => whileThere(() => memory.read(runId)),
      stops: { ...memory.stops, ask: (runId) => whileThere(() => memory.stops.ask(runId)) },
      lease: async (runId) => {
        const lease = await memory.lease(runId);
        free = async () => lease?.release();
        const check = () => whileThere(async () => losing.signal.throwIfAborted());
        return lease && { ...lease, lost: losing.signal, check, stillHeld: async () => !losing.signal.aborted };
      },
    };
    const { here, runId, go, run } = await halfway(store);
    isAway = true;
    const notStored: string[] = [];
    expect(await here.cancel(runId, () => notStored.push(runId))).toBe(run);
    expect(notStored).toEqual([runId]);
    if (fate === "another process continues it") losing.abort(new LeaseLostError("taken over"));
    go();
    await expect.poll(() => here.driven(runId)).toBeUndefined();
    await free();
    isAway = false;
    await expect.poll(() => memory.stops.asked(runId)).not.toEqual([]);
    expect(await continued(memory, runId)).toEqual({ status: "cancelled", done: 1 });
  },
);

test("a run that loses the store before its journal is open is left to the process that reaches the store", async () => {
  const memory = sharedStore();
  const store: RunStore = { ...memory, journal: async () => away() };
  const here = new KindRuns(counting("count").kind, { ...world, store });
  const { runId } = await here.keep(CALL, "me").then((header) => here.start(header, undefined).then(() => header));
  await expect.poll(() => here.driven(runId)).toBeUndefined();
  expect((await memory.record(runId))?.status).toBe("running");
  expect(await continued(memory, runId)).toEqual({ status: "succeeded", done: 3 });
});

test("a run that starts while the process stops is interrupted, and the process waits for it", async () => {
  const store = memoryRunStore();
  const going = gate();
  const slow = {
    ...store,
    update: async (...given: Parameters<RunStore["update"]>) => {
      await going.opened;
      return store.update(...given);
    },
  };
  const runs = new KindRuns(counting("count").kind, { ...world, store: slow });
  const header = await runs.keep(CALL, "me");
  const starting = runs.start(header, undefined);
  await expect.poll(() => store.isDriven(header.runId)).toBe(true);
  const stopping = runs.stopAll();
  going.open();
  await stopping;
  expect((await starting)?.status()).toBe("interrupted");
  expect(await store.record(header.runId)).toMatchObject({ status: "interrupted", rest: { counts: { succeeded: 0 } } });
});
