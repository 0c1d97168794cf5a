import { expect, test } from "vitest";
import { readTargeting } from "../../src/plans/read-targeting.ts";
import { type HeldOption, readingApi, toolContext, ulidOf } from "../support/tool-context.ts";

const targetingId = ulidOf(0);
/** Long before the present time of the service. */
const old = "2025-01-01T00:00:00Z";

const held = (id: number, contexts: readonly string[], more: Partial<HeldOption> = {}): HeldOption => ({
  ...{ _id: ulidOf(id), name: `Option ${id}`, type: "atomic", updatedAt: old },
  ...{ contexts: [...contexts], contextCount: contexts.length, ...more },
});

function shop() {
  const group = held(2, ["own"], {
    type: "collection",
    childCount: 2,
    subOptions: [held(3, ["x"]), held(4, [])],
  });
  const { api, reads } = readingApi([held(1, ["a", "b"]), group, held(5, ["z"])]);
  const store = toolContext(api).context.contents;
  const { signal } = new AbortController();
  const read = (fresh = false) => readTargeting(api, targetingId, { signal, store, fresh });
  return { read, gets: () => reads.filter((one) => one.startsWith("get")).length };
}

test("every option is read once, in the order of the service, each group before its sub-options", async () => {
  const { read } = shop();
  const { options } = await read();
  expect(options.map(({ name, parent, contexts }) => [name, parent, contexts])).toEqual([
    ["Option 1", null, ["a", "b"]],
    ["Option 2", null, ["own"]],
    ["Option 3", ulidOf(2), ["x"]],
    ["Option 4", ulidOf(2), []],
    ["Option 5", null, ["z"]],
  ]);
});

test("Context IDs of unchanged options are not read again, unless fresh", async () => {
  const { read, gets } = shop();
  const first = await read();
  const once = gets();
  expect(await read()).toEqual(first);
  const again = gets() - once;
  expect(again).toBe(once - 4);
  expect(await read(true)).toEqual(first);
  expect(gets()).toBe(2 * once + again);
});
