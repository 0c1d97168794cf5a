import { mkdtemp, readdir, readFile, rm, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ManagementApi } from "../../src/api/management.ts";
import { CHANGE_FORM } from "../../src/changes/change-run.ts";
import { RunState } from "../../src/changes/change-state.ts";
import { type ChangeHeader, Changes } from "../../src/changes/changes.ts";
import type { JournalEntry } from "../../src/changes/rows/entries.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { targetingMemory } from "../../src/runs/files/backend.ts";
import { processLock } from "../../src/runs/files/lease.ts";
import { fileRunStore } from "../../src/runs/files/run-store.ts";
import { countsOf } from "../../src/runs/report.ts";
import type { RunJournal } from "../../src/runs/store.ts";
import { type Lease, LeaseLostError } from "../../src/runs/turn.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import { ROUTES } from "../../src/spec/routes.ts";
import { memoryRunStore } from "../support/memory-store.ts";
import { startRun } from "../support/records.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "taken-over-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const newRunId = ulidSource(Date.now, Math.random);
const CALL = { tool: "rename_targetings", input: { items: [{ _id: newRunId(), name: "Spring" }] } } as const;
const SENT: JournalEntry = { t: "send", steps: [0], at: 1, again: false };

/** Creates a run that a process executed in part before it was suspended. `lease` is the lease of that process. */
async function halfDriven() {
  const store = fileRunStore(folder, systemClock);
  const header: ChangeHeader = {
    ...{ runId: newRunId(), kind: "changes", call: CALL, project: "p", caller: "c", environment: "sandbox" },
    ...{ createdAt: 1, fingerprint: "f" },
  };
  const { runId } = header;
  await store.create(header);
  await startRun(store, runId);
  const lease = await held(store.lease(runId));
  const journal = writing(await store.journal(runId, lease));
  journal.append({ t: "planned", requests: 1, at: 1 });
  await journal.flush();
  const takeOver = async (): Promise<Lease> => {
    const files = (await readdir(join(folder, runId))).filter((file) => file.startsWith("driver.lease."));
    const long = new Date(Date.now() - 11_000);
    for (const file of files) await utimes(join(folder, runId, file), long, long);
    return held(store.lease(runId));
  };
  const lines = async () => (await readFile(join(folder, runId, "journal.ndjson"), "utf8")).trim().split("\n");
  return { store, runId, lease, journal, takeOver, lines };
}

/** Returns a journal that accepts entries. */
function writing(journal: RunJournal) {
  return {
    ...journal,
    append: (entry: JournalEntry) => journal.append(CHANGE_FORM.line(entry)),
    appendLate: (entry: JournalEntry) => journal.appendLate(CHANGE_FORM.line(entry)),
  };
}

async function held(lease: Promise<Lease | undefined>): Promise<Lease> {
  const got = await lease;
  if (got === undefined) throw new Error("another one holds it");
  return got;
}

test("who has lost a run appends nothing to its journal, however late, but a confession", async () => {
  const { store, runId, lease, journal, takeOver, lines } = await halfDriven();
  const other = await takeOver();
  const theirs = writing(await store.journal(runId, other));
  journal.append(SENT);
  await expect(journal.intend(lease)).rejects.toBeInstanceOf(LeaseLostError);
  journal.append(SENT);
  await expect(journal.flush()).rejects.toBeInstanceOf(LeaseLostError);
  theirs.append({ t: "resume", at: 2 });
  await theirs.flush();
  await journal.appendLate({ t: "late", steps: [0], at: 3 });
  await expect(journal.close()).rejects.toBeInstanceOf(LeaseLostError);
  await theirs.close();
  expect((await lines()).map((line) => JSON.parse(line).t)).toEqual(["planned", "resume", "late"]);
  await other.release();
});

test("a run that was given back is taken up in the same journal, without a wait", async () => {
  const { store, runId, lease, journal } = await halfDriven();
  await journal.close();
  await lease.release();
  const next = await held(store.lease(runId));
  expect(next.isTakenOver).toBe(false);
  await next.release();
});

const STEP: JournalEntry = {
  t: "steps",
  steps: [
    {
      ...{ id: 0, operation: "renameTargetings", objects: [0], item: { name: "Spring" } },
      bindings: [{ field: "_id", id: newRunId() }],
      weight: { items: 1, options: 0, groupItems: 0, contextIds: 0, bytes: 50 },
    },
  ],
};

test("a step that left too late is in doubt again, whatever was told of it; a resumed run takes it up", () => {
  const state = new RunState();
  const apply = (...entries: readonly JournalEntry[]): void => {
    for (const entry of entries) state.apply(entry);
  };
  apply({ t: "objects", objects: [{ index: 0 }] }, STEP, { t: "planned", requests: 1, at: 1 }, SENT);
  apply({ t: "answer", at: 2, changes: [{ step: 0, to: "done" }] }, { t: "stop", cause: "finished", at: 2 });
  expect(state.counts()).toMatchObject({ succeeded: 1, unknown: 0 });
  apply({ t: "late", steps: [0], at: 3 });
  expect(state.counts()).toMatchObject({ succeeded: 0, unknown: 1 });
  expect(state.firstSent(0)?.at).toBe(3);
  apply({ t: "resume", at: 4 });
  expect(state.ready()).toEqual([0]);
  apply({ ...SENT, at: 5 }, { t: "answer", at: 6, changes: [{ step: 0, to: "done" }] });
  expect(state.counts()).toMatchObject({ succeeded: 1, unknown: 0, pending: 0 });
});

test("a request that left too late is confessed in the journal; its answer settles what it carried", async () => {
  let monotonic = 0;
  const clock = { ...systemClock, monotonic: () => monotonic };
  const store = memoryRunStore(clock);
  const none = async (): Promise<never> => {
    throw new Error("nothing else is asked");
  };
  const api: ManagementApi = {
    getTargeting: async (_id: string) => ({ _id, name: "Before" }),
    listOptions: none,
    getOption: none,
    bulk: async (_operation, _items, options) => {
      options?.fence?.mayLeave();
      monotonic += 60_000;
      options?.fence?.hasLeft();
      return { results: [{ index: 0, success: true, data: { _id: "x" } }] };
    },
  };
  const changes = new Changes({
    ...{ api, store, clock, newRunId, routes: ROUTES, lock: processLock(clock), random: () => 0.5 },
    ...{ project: "p", environment: "sandbox", retryBudgetMs: 1000, requestTimeoutMs: 1000, words: ({ code }) => code },
    memory: targetingMemory({ now: Date.now, onProblem: () => {} }),
  });
  const header = await changes.keep(CALL, "c");
  const run = await changes.start(header, await changes.plan(CALL, new AbortController().signal));
  await run?.rest;
  expect(run && countsOf(run.state)).toMatchObject({ succeeded: 1, unknown: 0 });
  const stored = await store.read(header.runId);
  const entries: string[] = [];
  for await (const line of stored?.entries ?? []) entries.push(JSON.parse(line).t);
  expect(entries.slice(-4)).toEqual(["send", "late", "answer", "stop"]);
});
