import { describe, expect, inject, test } from "vitest";
import { type Death, dieAndResume } from "./death.ts";
import { SCENARIOS, type Scenario } from "./scenarios.ts";

/** `npm run test:kill` kills processes at every step of every call, `npm run test:kill:some` at a few steps of each. */
const isEvery = inject("deaths") === "every";

/** How many processes are tested at the same time. */
const AT_ONCE = 4;

/**
 * Kills a process at the first moment of a kind, the next at the second, and so on, until one ends before its moment.
 */
async function dieEverywhere(scenario: Scenario, deathAt: (nth: number) => Death): Promise<number> {
  for (let first = 1; ; first += AT_ONCE) {
    const next = Array.from({ length: AT_ONCE }, (_, more) => deathAt(first + more));
    const ends = await Promise.all(next.map((death) => resumedAfter(scenario, death)));
    const survived = ends.indexOf(false);
    if (survived >= 0) return first + survived - 1;
  }
}

async function resumedAfter(scenario: Scenario, death: Death): Promise<boolean> {
  try {
    return await dieAndResume(scenario, death);
  } catch (thrown) {
    throw new Error(`after a death at ${JSON.stringify(death)}`, { cause: thrown });
  }
}

const MOMENTS: readonly (readonly [string, (nth: number) => Death, number])[] = [
  ["in every line of its journal", (nth) => ({ at: "line", nth }), 6],
  ["before every change to the file system", (nth) => ({ at: "operation", nth }), 15],
  ["when a request has left", (nth) => ({ at: "request", request: { nth, moment: "arrived" } }), 1],
  ["when a request is applied", (nth) => ({ at: "request", request: { nth, moment: "applied" } }), 1],
  ["when a request has left that is applied later", (nth) => ({ at: "lateRequest", nth }), 1],
];

describe.each(SCENARIOS)("killed and resumed: $name", (scenario) => {
  test.runIf(isEvery).each(MOMENTS)("%s", async (_, deathAt, least) => {
    expect(await dieEverywhere(scenario, deathAt)).toBeGreaterThanOrEqual(least);
  });

  test.skipIf(isEvery)("here and there", async () => {
    const some: readonly Death[] = [
      { at: "line", nth: 6 },
      { at: "request", request: { nth: 1, moment: "arrived" } },
      { at: "request", request: { nth: 1, moment: "applied" } },
    ];
    expect(await Promise.all(some.map((death) => resumedAfter(scenario, death)))).toEqual([true, true, true]);
  });
});

describe("found by the deaths", () => {
  const find = (start: string): Scenario => {
    const found = SCENARIOS.find(({ name }) => name.startsWith(start));
    if (found === undefined) throw new RangeError(start);
    return found;
  };

  test("a run that died after its last answer was journaled comes to its end", async () => {
    expect(await resumedAfter(find("targetings that are deleted"), { at: "line", nth: 7 })).toBe(true);
  });

  test("a lease whose holder died while it made it hinders nobody", async () => {
    const some = [6, 7, 8, 9, 10].map((nth) => ({ at: "operation", nth }) as const);
    const ends = await Promise.all(some.map((death) => resumedAfter(find("targetings that are deleted"), death)));
    expect(ends).toEqual(some.map(() => true));
  });
});
