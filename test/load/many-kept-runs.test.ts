import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test, vi } from "vitest";
import { sourceOfEvents } from "../../src/events/run/source.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { fileRunStore } from "../../src/runs/files/run-store.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import { sentEvents } from "../support/sent-events.ts";

const operations = vi.hoisted(() => ({ count: 0 }));

// All access of runs to the file system goes through this module, so its calls are counted.
vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  const counted = Object.entries(real).map(([name, value]) => {
    if (typeof value !== "function") return [name, value];
    const counting = (...given: unknown[]): unknown => {
      operations.count += 1;
      return Reflect.apply(value, undefined, given);
    };
    return [name, counting];
  });
  return Object.fromEntries(counted);
});

const newRunId = ulidSource(Date.now, Math.random);

type Sent = ReturnType<typeof sentEvents>;

function runsIn(folder: string): Sent {
  return sentEvents({
    api: { track: async () => ({ statusCode: 200, message: "ok" }) },
    store: fileRunStore(folder, systemClock),
    clock: systemClock,
    newRunId,
    project: "project",
    environment: "sandbox",
    retryBudgetMs: 1000,
    words: ({ code }) => code,
  });
}

/** Sends one event in the same way as `track_events`. */
async function call(runs: Sent, uid: string): Promise<void> {
  const planned = { source: sourceOfEvents([{ uid, eventName: "app_open" }]), items: 1, onUnknown: "report" } as const;
  const { going } = await runs.findEarlierRun(planned, "me");
  const run = going ?? runs.start(planned, "me");
  await run.rest;
}

/**
 * Returns how many file operations a call needs while nothing else runs. This is the fewest of three calls, because a
 * slow call on a busy machine also renews its leases.
 */
async function costOf(work: (uid: string) => Promise<void>): Promise<number> {
  const costs: number[] = [];
  for (const time of [1, 2, 3]) costs.push(await costOnce(() => work(`user-${operations.count}-${time}`)));
  return Math.min(...costs);
}

async function costOnce(work: () => Promise<void>): Promise<number> {
  await untilQuiet();
  const before = operations.count;
  await work();
  return operations.count - before;
}

async function untilQuiet(): Promise<void> {
  let before: number;
  do {
    before = operations.count;
    await new Promise((resolve) => setTimeout(resolve, 50));
  } while (operations.count !== before);
}

async function keptRuns(folder: string, count: number): Promise<Sent> {
  const runs = runsIn(folder);
  for (let made = 0; made < count; made += 1) await call(runs, `user-${made}`);
  return runs;
}

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
});

test("a call costs no more with many kept runs than with few, in the same process and in a new one", async () => {
  const few = await keptRuns(folder, 3);
  const withFew = await costOf((uid) => call(few, uid));
  const anewWithFew = await costOf((uid) => call(runsIn(folder), uid));
  const many = await keptRuns(folder, 120);
  const withMany = await costOf((uid) => call(many, uid));
  const anewWithMany = await costOf((uid) => call(runsIn(folder), uid));
  expect(withFew).toBeGreaterThan(5);
  expect(withMany).toBeLessThanOrEqual(withFew + 5);
  expect(anewWithMany).toBeLessThanOrEqual(anewWithFew + 5);
});

test("the same call again, too", async () => {
  const runs = runsIn(folder);
  await call(runs, "same");
  const first = await costOf(() => call(runs, "same"));
  for (let made = 0; made < 50; made += 1) await call(runs, "same");
  expect(await costOf(() => call(runs, "same"))).toBeLessThanOrEqual(first + 5);
});

test("runs of an earlier version, without marks, are looked at once, by a process that starts anew", async () => {
  const runs = await keptRuns(folder, 40);
  const usual = await costOf((uid) => call(runs, uid));
  await untilQuiet();
  await rm(join(folder, "calls"), { recursive: true });
  const anew = runsIn(folder);
  expect(await costOnce(() => call(anew, "first"))).toBeGreaterThan(usual + 40);
  expect(await costOf((uid) => call(anew, uid))).toBeLessThanOrEqual(usual + 5);
  const listed: string[] = [];
  for await (const { runId } of anew.list("me")) listed.push(runId);
  expect(listed).toHaveLength(47);
});
