import { describe, expect, inject, test } from "vitest";
import { diePlanning, type PlanDeath } from "./plan-death.ts";
import { PLAN_SCENARIOS, type PlanScenario } from "./plan-scenarios.ts";

/** `npm run test:kill` kills processes at every step of every plan, `npm run test:kill:some` at a few steps of each. */
const isEvery = inject("deaths") === "every";

/** How many processes are tested at the same time. */
const AT_ONCE = 4;

/**
 * Kills a process at the first moment of a kind, the next at the second, and so on, until one ends before its moment.
 */
async function dieEverywhere(scenario: PlanScenario, at: PlanDeath["at"]): Promise<number> {
  for (let first = 1; ; first += AT_ONCE) {
    const deaths = Array.from({ length: AT_ONCE }, (_, more): PlanDeath => ({ at, nth: first + more }));
    const ends = await Promise.all(deaths.map((death) => plannedAfter(scenario, death)));
    const survived = ends.indexOf(false);
    if (survived >= 0) return first + survived - 1;
  }
}

async function plannedAfter(scenario: PlanScenario, death: PlanDeath): Promise<boolean> {
  try {
    return await diePlanning(scenario, death);
  } catch (thrown) {
    throw new Error(`after a death at ${JSON.stringify(death)}`, { cause: thrown });
  }
}

describe.each(PLAN_SCENARIOS)("killed while it plans: $name", (scenario) => {
  test.runIf(isEvery).each([
    ["operation", 8],
    ["read", 2],
  ] as const)("at every %s", async (at, least) => {
    expect(await dieEverywhere(scenario, at)).toBeGreaterThanOrEqual(least);
  });

  test.skipIf(isEvery)("here and there", async () => {
    const some: readonly PlanDeath[] = [
      { at: "read", nth: 2 },
      { at: "operation", nth: 4 },
      { at: "operation", nth: 8 },
    ];
    expect(await Promise.all(some.map((death) => plannedAfter(scenario, death)))).toEqual([true, true, true]);
  });
});
