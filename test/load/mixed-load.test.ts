import { expect, test } from "vitest";
import { callerAt, mixedLoad } from "../../bench/mixed-load.ts";
import { startWatched } from "../fuzz/heap.ts";
import { startService } from "../support/service.ts";

const CALLERS = 4;
/** How long the load goes on before the heap is looked at, and while it is. */
const BEFORE_MS = 1500;
const PART_MS = 2500;
/** What the heap may grow by while the load goes on, in bytes; `npm run bench -- load` looks for longer. */
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
