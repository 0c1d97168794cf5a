import { expect, test } from "vitest";
import { callerAt, mixedLoad } from "../../bench/mixed-load.ts";
import { startWatched } from "../fuzz/heap.ts";
import { startService } from "../support/service.ts";

const CALLERS = 4;
const PART_MS = 5000;
/** What the heap may grow by while the load goes on, in bytes; `npm run bench -- load` looks for longer. */
const MOST_GROWTH = 12 * 1_048_576;

test("a mixed load ends without errors, and leaves nothing in memory", { timeout: 300_000 }, async () => {
  const service = await startService();
  const { url, heap, logged } = await startWatched({ ...service.live, TARGETING_MCP_CONFIRM: "ask" });
  const callers = Array.from({ length: CALLERS }, (_, n) => callerAt(url, `caller-${n}`));
  const load = async (part: string) => {
    const { calls, errors } = await mixedLoad(callers, Date.now() + PART_MS, part);
    expect(errors).toEqual([]);
    expect(calls).toBeGreaterThan(0);
    return heap();
  };
  await load("Warm-up");
  const before = await load("First");
  const after = await load("Second");
  expect(after - before).toBeLessThan(MOST_GROWTH);
  expect(logged().filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
});
