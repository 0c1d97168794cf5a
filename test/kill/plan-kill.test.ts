import { describe, expect, inject, test } from "vitest";
import { diePlanning, type PlanDeath } from "./plan-death.ts";
import { PLAN_SCENARIOS, type PlanScenario } from "./plan-scenarios.ts";

/** `npm run test:kill` has a death at every step of every plan, `npm run test:kill:some` a few in each of them. */
const isEvery = inject("deaths") === "every";

/** Deaths that are looked at side by side. */
const AT_ONCE = 4;

/** Lets a process die at the first, the second and every further moment of a kind, until it lives through all. */
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
