import { appendFile, mkdtemp, readFile, rename, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sourceOfEvents } from "../../src/events/run/source.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { fileRunStore } from "../../src/runs/files/run-store.ts";
import { RunCache } from "../../src/runs/kept-runs.ts";
import { countsOf } from "../../src/runs/report.ts";
import type { RunStore } from "../../src/runs/store.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import { sentEvents } from "../support/sent-events.ts";

const newRunId = ulidSource(Date.now, Math.random);

/** Creates runs of events, with a store that counts how many journals are read. */
async function counted() {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const store = fileRunStore(folder, systemClock);
  let reads = 0;
  const counting: RunStore = {
    ...store,
    read: (runId) => {
      reads += 1;
      return store.read(runId);
    },
  };
  const runs = sentEvents({
    api: { track: async () => ({ statusCode: 200, message: "ok" }) },
    store: counting,
    clock: systemClock,
    newRunId,
    project: "project",
    environment: "sandbox",
    retryBudgetMs: 1000,
    words: ({ code }) => code,
  });
  const sent = async (uid: string): Promise<string> => {
    const source = sourceOfEvents([{ uid, eventName: "app_open" }]);
    const run = runs.start({ source, items: 1, onUnknown: "report" }, "me");
    await run.rest;
    return run.header.runId;
  };
  return { folder, runs, sent, readsOf: async (work: () => Promise<unknown>) => work().then(() => reads) };
}

test("a run that is looked at again is not read again, unless it changed", async () => {
  const { folder, runs, sent, readsOf } = await counted();
  const runId = await sent("one");
  const journal = join(folder, runId, "journal.ndjson");
  const before = await readsOf(() => runs.find(runId));
  expect(await readsOf(() => runs.find(runId))).toBe(before);
  await appendFile(journal, `${JSON.stringify({ t: "resume", resend: false, at: 1 })}\n`);
  expect(await readsOf(() => runs.find(runId))).toBe(before + 1);
  expect((await runs.find(runId))?.status()).toBe("interrupted");
  // Replaces the journal by another one of the same size.
  await writeFile(`${journal}.other`, (await readFile(journal, "utf8")).replace('"finished"', '"canceled"'));
  await rename(`${journal}.other`, journal);
  expect(await readsOf(() => runs.find(runId).catch(() => undefined))).toBe(before + 2);
});

test("only a few are kept, the last ones", async () => {
  const { runs, sent, readsOf } = await counted();
  const ids: string[] = [];
  for (const uid of ["a", "b", "c", "d", "e"]) ids.push(await sent(uid));
  const [first = "", , , , last = ""] = ids;
  for (const runId of ids) await runs.find(runId);
  const before = await readsOf(() => runs.find(last));
  expect(await readsOf(() => runs.find(last))).toBe(before);
  expect(await readsOf(() => runs.find(first))).toBe(before + 1);
});

test("what is too large to keep is read each time, and makes no room for itself", async () => {
  const kept = new RunCache<string>();
  let reads = 0;
  const read = async () => {
    reads += 1;
    return "run";
  };
  await kept.get("small", { text: "1", bytes: 10 }, read);
  for (let time = 0; time < 2; time += 1) await kept.get("large", { text: "1", bytes: 1e9 }, read);
  await kept.get("unknown", undefined, read);
  await kept.get("small", { text: "1", bytes: 10 }, read);
  expect(reads).toBe(4);
  for (const name of ["a", "b"]) await kept.get(name, { text: "1", bytes: 20 * 1024 * 1024 }, read);
  await kept.get("a", { text: "1", bytes: 20 * 1024 * 1024 }, read);
  expect(reads).toBe(7);
});

function heldBack() {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

test("what a process answers about a run that it executes is stored first, so that no other process knows less", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const [gate, second] = [heldBack(), heldBack()];
  const store = fileRunStore(folder, systemClock);
  const slow: RunStore = {
    ...store,
    journal: async (runId, lease) => {
      const journal = await store.journal(runId, lease);
      return { ...journal, write: () => gate.opened.then(() => journal.write()) };
    },
  };
  const runsIn = (its: RunStore) =>
    sentEvents({
      api: {
        track: async (event) => {
          if (event.includes("second")) await second.opened;
          return { statusCode: 200, message: "ok" };
        },
      },
      ...{ store: its, clock: systemClock, newRunId, project: "project", environment: "sandbox" },
      ...{ retryBudgetMs: 1000, words: ({ code }) => code },
    });
  const [here, there] = [runsIn(slow), runsIn(store)];
  const source = sourceOfEvents(["first", "second"].map((uid) => ({ uid, eventName: "app_open" })));
  const run = here.start({ source, items: 2, onUnknown: "report" }, "me");
  await expect.poll(() => countsOf(run.state).succeeded).toBe(1);
  const succeeded = async (runs: typeof here) => {
    const found = await runs.find(run.header.runId);
    return found && countsOf(found.state).succeeded;
  };
  let isTold = false;
  const told = succeeded(here).finally(() => {
    isTold = true;
  });
  expect(await succeeded(there)).toBe(0);
  expect(isTold).toBe(false);
  gate.open();
  expect(await told).toBe(1);
  expect(await succeeded(there)).toBe(1);
  second.open();
  await run.rest;
});
