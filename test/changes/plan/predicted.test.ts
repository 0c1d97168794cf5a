import { expect, test } from "vitest";
import { startService } from "../service.ts";

const MOST_OF_OPTION = 50_000;

test("a dry run says that an existing option has no room for more Context IDs", async () => {
  const { changes, run, targeting } = await startService();
  const targetingId = await targeting("News");
  const full = Array.from({ length: MOST_OF_OPTION }, (_, at) => `c${at}`);
  await run({ tool: "bulk_add_options", input: { targetingId, items: [{ name: "Full", contexts: full }] } });
  const items = [{ name: "Full", contexts: ["one more"] }];
  const call = { tool: "bulk_add_options", input: { targetingId, items, onExisting: "addContexts" } } as const;
  const { signal } = new AbortController();
  const predicted = await changes.preflight(await changes.plan(call, signal), { call }, signal);
  expect(predicted).toMatchObject([
    { object: 0, outcome: "failed", reason: { code: "TARGETING_CONTEXT_LIMIT_EXCEEDED" } },
  ]);
});

test("a group fails if a regular option has its name, and its sub-options are not sent", async () => {
  const { run, targeting } = await startService();
  const targetingId = await targeting("News");
  const before = [{ name: "Plain" }, { name: "Other" }, { name: "Third" }];
  await run({ tool: "bulk_add_options", input: { targetingId, items: before } });
  const items = [
    { name: "Plain", type: "collection", children: [{ name: "New" }, { name: "Other" }] },
    { name: "Third", contexts: ["a"] },
  ] as const;
  const { results } = await run({
    tool: "bulk_add_options",
    input: { targetingId, items, onExisting: "addContexts" },
  });
  expect(results).toMatchObject([
    { outcome: "failed", reason: { code: "INVALID_ITEM", detail: { problem: "notGroup" } } },
    { outcome: "notApplied", reason: { code: "NEEDS_FAILED" } },
    { outcome: "notApplied", reason: { code: "NEEDS_FAILED" } },
    { outcome: "succeeded" },
  ]);
});
