import { expect, test } from "vitest";
import type { LeftRuns } from "../../src/runs/backend/store.ts";
import { takeUpRuns } from "../../src/runs/processes/taking-up.ts";
import { virtualClock } from "../events/virtual-clock.ts";

/** How many runs are left by a worker that writes to as many projects as it may by default. */
const LEFT = 50;

test("all runs of a worker that was killed are taken up within half a second, though few are looked for at once", async () => {
  const clock = virtualClock();
  const stopping = new AbortController();
  const taken = new Map<string, number>();
  const project = (n: number): string => `project ${n}`;
  const all = Array.from({ length: LEFT }, (_, n) => ({ runId: `run ${n}`, project: project(n) }));
  const most: number[] = [];
  const left: LeftRuns = {
    drives: () => () => {},
    hasRoomFor: () => true,
    leave: async () => {},
    takesUp: async () => {},
    found: async (_, count) => {
      most.push(count);
      return all.filter(({ runId }) => !taken.has(runId)).slice(0, count);
    },
    decline: async () => {},
  };
  const takeUpLeft = async (runId: string): Promise<undefined> => {
    taken.set(runId, clock.now());
    if (taken.size === LEFT) stopping.abort();
    return undefined;
  };
  const began = clock.now();
  await takeUpRuns({
    left,
    projects: new Map(all.map((one) => [one.project, () => ({ takeUpLeft })])),
    clock,
    stopping: stopping.signal,
    onProblem: (problem) => {
      throw problem;
    },
  });
  await expect.poll(() => taken.size).toBe(LEFT);
  expect(Math.max(...most)).toBeLessThan(LEFT / 2);
  expect(Math.max(...taken.values()) - began).toBeLessThan(500);
});
