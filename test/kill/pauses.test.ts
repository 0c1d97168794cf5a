import { expect, inject, test } from "vitest";
import { PAUSES, pauseAll } from "./pauses.ts";

const SAMPLE: ReadonlySet<string> = new Set(["another busy", "same upload", "events anywhere"]);

/** `npm run test:kill` suspends 200 processes for longer than a lease lasts, `npm run test:kill:some` a few. */
const isEvery = inject("deaths") === "every";
const KINDS = isEvery ? PAUSES : PAUSES.filter(({ run, moment }) => SAMPLE.has(`${run} ${moment}`));
const COUNT = Number(process.env.TARGETING_MCP_TEST_PAUSES ?? (isEvery ? 200 : KINDS.length));
/** How many processes are tested at the same time. They mostly wait, so there can be many. */
const AT_ONCE = Number(process.env.TARGETING_MCP_TEST_AT_ONCE ?? (isEvery ? 20 : KINDS.length));

test("a process that stands still for longer than its lease lasts sends nothing beside its follower", async () => {
  const { ends, takenOver } = await pauseAll({ kinds: KINDS, count: COUNT, atOnce: AT_ONCE });
  expect(ends).toEqual([]);
  expect(takenOver).toBeGreaterThan(COUNT / 2);
}, 3_600_000);
