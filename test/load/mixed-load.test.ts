import { expect, test } from "vitest";
import { callerAt, mixedLoad } from "../../bench/mixed-load.ts";
import { startWatched } from "../fuzz/heap.ts";
import { startService } from "../support/service.ts";

const CALLERS = 4;
/** How long the load runs before the heap is measured, and between the measurements. */
const BEFORE_MS = 1500;
const PART_MS = 2500;
/** By how many bytes the heap may grow during the load. `npm run bench -- load` measures for longer. */
const MAX_GROWTH = 6 * 1_048_576;

test("a mixed load ends without errors, and leaves nothing in memory", async () => {
  const service = await startService();
  const { url, heap, logged } = await startWatched({ ...service.live, TARGETING_MCP_CONFIRM: "ask" });
  const callers = Array.from({ length: CALLERS }, (_, n) => callerAt(url, `caller-${n}`));
  const load = async (part: string, ms: number) => {
    const { calls, errors } = await mixedLoad(callers, Date.now() + ms, part);
    expect(errors).toEqual([]);
    expect(calls).toBeGreaterThan(0);
    return heap();
  };
  await load("Warm-up", BEFORE_MS);
  const before = await load("First", BEFORE_MS);
  const after = await load("Second", PART_MS);
  expect(after - before).toBeLessThan(MAX_GROWTH);
  expect(logged().filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
});
