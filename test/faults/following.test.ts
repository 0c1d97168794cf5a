// Requests of rows that follow each other: each leaves before the answer of the one before is read.
import { expect, inject, test } from "vitest";
import type { WriteCall } from "../../src/changes/call.ts";
import { DOCUMENTED_LIMITS } from "./model/facts.ts";
import { type Random, randomFrom } from "./random.ts";
import { type Schedule, scheduleOf, worldOf } from "./schedule.ts";
import { violationsOf } from "./shrink.ts";
import { contextTargetings, OPTION_NAMES } from "./world.ts";

const { from, count } = inject("faultSchedules") ?? { from: 1, count: 500 };
/** Each of these schedules takes as long as several small ones. */
const SHARE = 10;
const SEEDS_PER_TEST = 10;
const schedules = Math.ceil(count / SHARE);

/** As many Context IDs as a row may have: a hundred rows fill a request (management-api 8.1). */
const CONTEXT_IDS = Array.from({ length: 100 }, (_, number) => `article-${number}`);

/** Rows that take three to five requests; now and then one whose name exists. */
function rows(random: Random, targetingId: string): WriteCall {
  const items = Array.from({ length: random.between(201, 450) }, (_, row) => ({
    name: random.chance(0.005) ? random.pick(OPTION_NAMES) : `Row ${row}`,
    contexts: CONTEXT_IDS,
  }));
  return { tool: "bulk_add_options", input: { targetingId, items } };
}

/** The schedule of a seed with a long call in the place of its own. */
function longSchedule(seed: number): Schedule {
  const schedule = scheduleOf(seed);
  const settings = { ...schedule.settings, bodyBytes: 8_000_000, limits: DOCUMENTED_LIMITS };
  const [targeting] = contextTargetings(worldOf(seed, settings.skewMs).project);
  const random = randomFrom(seed * 887 + 29);
  const call = rows(random, targeting?.id ?? "");
  // Within the first few requests, each of which takes five to seven of the things that are counted.
  const kills = Array.from({ length: random.below(4) }, () => random.between(8, 40));
  return { ...schedule, settings, call, kills, rival: undefined };
}

const firsts = Array.from({ length: Math.ceil(schedules / SEEDS_PER_TEST) }, (_, test) => from + test * SEEDS_PER_TEST);
test.each(firsts)("long calls end as their reports say: 10 schedules from seed %i", async (first) => {
  for (let seed = first; seed < Math.min(first + SEEDS_PER_TEST, from + schedules); seed += 1) {
    expect(await violationsOf(longSchedule(seed)), `seed ${seed}`).toEqual([]);
  }
});
