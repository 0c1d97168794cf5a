import { expect, test } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { KindRuns } from "../../src/runs/kind-runs.ts";
import { Runs } from "../../src/runs/registry.ts";
import { moveRun } from "../../src/runs/store.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import { virtualClock } from "../events/virtual-clock.ts";
import { counting } from "../support/counting-runs.ts";
import { memoryRunStore } from "../support/memory-store.ts";
import { startRun } from "../support/records.ts";

const world = {
  ...{ clock: systemClock, newRunId: ulidSource(Date.now, Math.random), project: "p", environment: "sandbox" as const },
};

test("a kind is one object: its runs are kept, driven, stopped, resumed, listed and ended as all others", async () => {
  const store = memoryRunStore();
  const { kind, finished } = counting("count", (run) => {
    if (run.state.done === 2) run.stop("interrupted");
  });
  const first = new KindRuns(kind, { ...world, store });
  const header = await first.keep({ tool: "count", to: 4 }, "me");
  const all = new Runs({ ...world, store }, [first]);
  expect(await all.find(header.runId)).toMatchObject({ kind: "count kind" });
  const run = await first.start(header, undefined);
  await run?.rest;
  expect({ status: run?.status(), counts: run?.state.counts() }).toMatchObject({
    status: "interrupted",
    counts: { succeeded: 2, pending: 2 },
  });
  expect(await first.start(header, undefined)).toBeUndefined();

  const later = new KindRuns(counting("count").kind, { ...world, store });
  const found = new Runs({ ...world, store }, [later]);
  expect(await found.interrupted("me")).toEqual([{ runId: header.runId, tool: "count", left: 2 }]);
  expect(await found.interrupted("somebody else")).toEqual([]);
  const resumed = await found.resume(header.runId);
  await resumed?.rest;
  expect(resumed?.status()).toBe("succeeded");
  const listed: string[] = [];
  for await (const { runId, status } of found.list("me")) listed.push(`${runId} ${status}`);
  expect(listed).toEqual([`${header.runId} succeeded`]);
  expect(finished).toEqual([header.runId]);
});

test("runs are found by the kind that their header names", async () => {
  const store = memoryRunStore();
  const one = new KindRuns(counting("count").kind, { ...world, store });
  const other = new KindRuns(counting("other").kind, { ...world, store });
  const runs = new Runs({ ...world, store }, [one, other]);
  const theirs = await other.keep({ tool: "other", to: 1 }, "me");
  expect((await runs.find(theirs.runId))?.kind).toBe("other kind");
  expect(await one.find(theirs.runId)).toBeUndefined();
  const alone = new Runs({ ...world, store }, [one]);
  expect(await alone.find(theirs.runId)).toBeUndefined();
  expect(await alone.resume(theirs.runId)).toBeUndefined();
  expect(await alone.cancel(theirs.runId)).toBeUndefined();
});

test("what cannot be put on the disk stops the run, which says so, and another process can take it up", async () => {
  const store = memoryRunStore();
  const full = { ...store, journal: () => Promise.reject(new Error("no space left on device")) };
  const { kind } = counting("count");
  const runs = new KindRuns(kind, { ...world, store: full });
  const header = await runs.keep({ tool: "count", to: 3 }, "me");
  const run = await runs.start(header, undefined);
  await run?.rest;
  expect(run?.status()).toBe("interrupted");
  expect(await store.isDriven(header.runId)).toBe(false);
  const resumed = await new KindRuns(kind, { ...world, store }).resume(header.runId);
  await resumed?.rest;
  expect(resumed?.state.counts()).toMatchObject({ succeeded: 3, pending: 0 });
});

test("a run that is cancelled before it was started cannot be started, nor one that another process has started", async () => {
  const store = memoryRunStore();
  const [here, there] = [1, 2].map(() => new KindRuns(counting("count").kind, { ...world, store }));
  const waiting = await here?.keep({ tool: "count", to: 1 }, "me");
  if (here === undefined || there === undefined || waiting === undefined) throw new RangeError("there are two");
  expect((await there.withdraw(waiting.runId))?.status()).toBe("cancelled");
  expect(await here.start(waiting, undefined)).toBeUndefined();
  const wanted = await here.keep({ tool: "count", to: 1 }, "me");
  const started = await Promise.all([here.start(wanted, undefined), there.start(wanted, undefined)]);
  expect(started.filter((run) => run !== undefined)).toHaveLength(1);
  await Promise.all(started.map((run) => run?.rest));
  expect(await there.withdraw(wanted.runId)).toBeUndefined();
  expect((await there.find(wanted.runId))?.status()).toBe("succeeded");
});

test.each(["interrupted", "cancelled", "finished"] as const)(
  "a run that is %s while another process takes it up is not continued",
  async (status) => {
    const memory = memoryRunStore();
    const { kind } = counting("count");
    const { runId } = await new KindRuns(kind, { ...world, store: memory }).keep({ tool: "count", to: 3 }, "me");
    await startRun(memory, runId);
    const released: string[] = [];
    const store = {
      ...memory,
      lease: async (of: string) => {
        // The process that executes the run stores its end and releases the lease, just before this process takes it.
        await moveRun(memory, of, () => ({ status }));
        const lease = await memory.lease(of);
        return lease && { ...lease, release: async () => void released.push(of) };
      },
    };
    const other = new Runs({ ...world, store }, [new KindRuns(kind, { ...world, store })]);
    expect(await other.claim(runId)).toBeUndefined();
    expect(released).toEqual([runId]);
    expect((await memory.record(runId))?.status).toBe(status);
  },
);

test("the runs of a process that ended are all taken over before the first of them is read", async () => {
  const memory = memoryRunStore();
  const { kind } = counting("count");
  const left = new KindRuns(kind, { ...world, store: memory });
  const headers = [await left.keep({ tool: "count", to: 1 }, "me"), await left.keep({ tool: "count", to: 1 }, "me")];
  for (const { runId } of headers) await startRun(memory, runId);
  const stored = await Promise.all(headers.map(({ runId }) => memory.read(runId)));
  const did: string[] = [];
  async function* read(entries: AsyncIterable<string>) {
    did.push("read");
    yield* entries;
  }
  const clock = virtualClock();
  const store = {
    ...memory,
    lease: async (runId: string) => {
      // The store answers for one run after another.
      await clock.sleep(headers.findIndex((one) => one.runId === runId) * 50);
      const lease = await memory.lease(runId);
      did.push("taken over");
      return lease && { ...lease, isTakenOver: true };
    },
  };
  const runs = new KindRuns(kind, { ...world, clock, store });
  const taken = await Promise.all(stored.map((run) => run && runs.claim({ ...run, entries: read(run.entries) })));
  expect(did.slice(0, 2)).toEqual(["taken over", "taken over"]);
  for (const run of taken) {
    await run?.rest;
    expect(run?.status()).toBe("succeeded");
  }
});
