import { expect, test } from "vitest";
import * as z from "zod";
import { baseOf } from "../../src/plans/base.ts";
import { planOf } from "../../src/plans/diff.ts";
import { textOf } from "../../src/plans/look-again.ts";
import { readTargeting } from "../../src/plans/read-targeting.ts";
import { startService } from "../changes/service.ts";
import { apply } from "./applied-properties.ts";
import { AT, desiredOf, LOOSE } from "./plan-properties.ts";

const requests = z.object({ requests: z.array(z.object({ operation: z.string(), path: z.string() })) });

test("what a plan deletes is read once when it is applied, and all of it is kept", async () => {
  const service = await startService();
  const targetingId = await service.targeting("Spring");
  const items = [
    { name: "Red", contexts: ["r", "s"] },
    { name: "Group", type: "collection", contexts: ["g"], children: [{ name: "Inside", contexts: ["i"] }] },
  ] as const;
  await service.run({ tool: "bulk_add_options", input: { targetingId, items } });
  const { signal } = new AbortController();
  const there = await readTargeting(service.api, targetingId, { signal });
  const desired = await desiredOf(JSON.stringify({ version: 1, targeting: { _id: targetingId }, options: [] }));
  const plan = planOf({ desired, base: baseOf(there, AT), there, prune: true, byName: false, thresholds: LOOSE });
  await service.control("POST", "/reset", { only: ["requests"] });
  const run = await apply(plan, there, service);
  expect(run.status()).toBe("succeeded");
  const sent = requests.parse(await service.control("GET", "/requests?limit=1000"));
  const reads = sent.requests.filter(({ operation }) => operation === "getOption").map(({ path }) => path);
  expect(reads).toHaveLength(3);
  expect(new Set(reads).size).toBe(3);
  const kept = await textOf(service.runs.part(run.header.runId, "removed"));
  const rows = kept
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
  expect(rows).toEqual(
    expect.arrayContaining([
      { name: "Red", type: "atomic", contexts: ["r", "s"] },
      { name: "Group", type: "collection", exposeChildren: false, contexts: ["g"] },
      { name: "Inside", parentName: "Group", contexts: ["i"] },
    ]),
  );
  const former = await textOf(service.runs.part(run.header.runId, "former"));
  const held = former
    .trim()
    .split("\n")
    .map((line) => z.object({ held: z.array(z.string()) }).parse(JSON.parse(line)).held);
  expect(held.map((ids) => ids.join(" ")).sort()).toEqual(["g", "i", "r s"]);
});
