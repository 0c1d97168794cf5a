import { expect, test } from "vitest";
import { ExecutionRefusedError } from "../../src/runs/kind.ts";
import { claimOrphans } from "../../src/runs/orphaned-runs.ts";
import { orphanedRuns } from "../../src/runs/postgres/backend.ts";
import type { Database } from "../../src/runs/postgres/database.ts";
import type { Member } from "../../src/runs/postgres/member.ts";
import { type OrphanedRuns, StoreUnavailableError } from "../../src/runs/store.ts";
import { virtualClock } from "../events/virtual-clock.ts";

/** How many runs a worker leaves that writes to as many projects at a time as is allowed by default. */
const LEFT = 50;
/** How long a run takes, in milliseconds. */
const RUN_MS = 190;

const ALONE: Member = {
  number: async () => 1,
  drives: async () => {},
  refuses: async () => {},
  notifyOfOrphans: async () => {},
  changed: () => {},
  watch: () => () => {},
  watchStops: () => () => {},
  close: async () => {},
};
const EMPTY: Database = {
  rows: async () => [],
  direct: () => Promise.reject(new Error("there is none")),
  close: async () => {},
};

test("all runs of a worker that was killed are taken up within half a second, though few are looked for at once", async () => {
  const clock = virtualClock();
  const stopping = new AbortController();
  const taken = new Map<string, number>();
  const project = (n: number): string => `project ${n}`;
  const all = Array.from({ length: LEFT }, (_, n) => ({ runId: `run ${n}`, project: project(n) }));
  const most: number[] = [];
  const left: OrphanedRuns = {
    drives: () => () => {},
    hasWorker: async () => true,
    hasRoomFor: () => true,
    leave: async () => {},
    refuses: async () => {},
    startClaiming: async () => {},
    found: async (_, count) => {
      most.push(count);
      return all.filter(({ runId }) => !taken.has(runId)).slice(0, count);
    },
  };
  const claim = async (runId: string): Promise<undefined> => {
    taken.set(runId, clock.now());
    if (taken.size === LEFT) stopping.abort();
    return undefined;
  };
  const began = clock.now();
  await claimOrphans({
    left,
    projects: new Map(all.map((one) => [one.project, () => ({ claim, leaveToCalls: async () => {} })])),
    clock,
    stopping: stopping.signal,
    onProblem: (problem) => {
      throw problem;
    },
    onRefused: (refused) => {
      throw refused;
    },
  });
  await expect.poll(() => taken.size).toBe(LEFT);
  expect(Math.max(...most)).toBeLessThan(LEFT / 2);
  expect(Math.max(...taken.values()) - began).toBeLessThan(500);
});

test("a process with room for one project takes the next one as soon as it is done with one, and is not told in vain", async () => {
  const clock = virtualClock();
  const stopping = new AbortController();
  const runs = ["one", "two", "three"].map((project) => ({ runId: `run of ${project}`, project }));
  const waiting = new Set(runs);
  const began: number[] = [];
  const ended: number[] = [];
  let looks = 0;
  const left: OrphanedRuns = {
    ...orphanedRuns({ member: ALONE, database: EMPTY }, { drives: true, parallelProjects: 1 }),
    found: async (projects) => {
      looks += 1;
      return [...waiting].filter(({ project }) => projects.includes(project));
    },
  };
  const claim = async (runId: string) => {
    for (const run of runs) if (run.runId === runId) waiting.delete(run);
    began.push(clock.now());
    const rest = clock.sleep(RUN_MS).then(() => {
      ended.push(clock.now());
      if (ended.length === runs.length) stopping.abort();
    });
    return { rest };
  };
  await claimOrphans({
    left,
    projects: new Map(runs.map(({ project }) => [project, () => ({ claim, leaveToCalls: async () => {} })])),
    clock,
    stopping: stopping.signal,
    onProblem: (problem) => {
      throw problem;
    },
    onRefused: (refused) => {
      throw refused;
    },
  });
  await expect.poll(() => ended.length).toBe(runs.length);
  const waits = began.slice(1).map((at, n) => at - (ended[n] ?? Number.NaN));
  expect(Math.max(...waits)).toBeLessThanOrEqual(20);
  expect(looks).toBeLessThan(20);
});

test("a process that is told of runs again and again looks for a third of the time at most", async () => {
  const clock = virtualClock();
  const stopping = new AbortController();
  let wake = (): void => {};
  let looks = 0;
  const left: OrphanedRuns = {
    ...orphanedRuns({ member: ALONE, database: EMPTY }, { drives: true, parallelProjects: 1 }),
    startClaiming: async (_, given) => {
      wake = given;
    },
    found: async () => {
      looks += 1;
      wake();
      await clock.sleep(60);
      if (looks === 10) stopping.abort();
      wake();
      return [];
    },
  };
  const projects = new Map([["one", () => ({ claim: async () => undefined, leaveToCalls: async () => {} })]]);
  const began = clock.now();
  await claimOrphans({ left, projects, clock, stopping: stopping.signal, onProblem: () => {}, onRefused: () => {} });
  await expect.poll(() => looks).toBe(10);
  expect(clock.now() - began).toBeGreaterThanOrEqual(9 * 180);
});

test("a run that is taken up after all is not left to calls, although others cannot be told of it", async () => {
  const clock = virtualClock();
  const stopping = new AbortController();
  const run = { runId: "run", project: "one" };
  const left: OrphanedRuns = {
    ...orphanedRuns({ member: ALONE, database: EMPTY }, { drives: true, parallelProjects: 1 }),
    found: async (_projects, _most, except = []) => (except.includes(run.runId) ? [] : [run]),
    refuses: async (runIds) => {
      if (runIds.length === 0) throw new StoreUnavailableError("the store is away", "Try again.");
    },
  };
  const problems: unknown[] = [];
  let tries = 0;
  let isLeft = false;
  const claim = async () => {
    tries += 1;
    if (tries === 1) throw new ExecutionRefusedError({ code: "READ_ONLY", message: "not yet", remedy: "Wait." });
    stopping.abort();
    return { rest: Promise.resolve() };
  };
  const leaveToCalls = async (): Promise<void> => {
    isLeft = true;
  };
  await claimOrphans({
    ...{ left, clock, stopping: stopping.signal, onRefused: () => {} },
    projects: new Map([[run.project, () => ({ claim, leaveToCalls })]]),
    onProblem: (problem) => void problems.push(problem),
  });
  await expect.poll(() => problems.length).toBe(1);
  expect(tries).toBe(2);
  expect(isLeft).toBe(false);
});
