import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { shop } from "./shop.ts";

const READER = { TARGETING_API_KEY: "sandbox-read-key" };

/**
 * Creates a shop and an exported file that renames an option and adds one. A reader has saved the plan of it in another
 * state folder.
 */
async function keptPlan() {
  const there = await shop();
  const file = there.at("spring.yaml");
  await there.run(["export", there.targeting, "--to", file]);
  const text = readFileSync(file, "utf8").replace("Running Shoes", "Walking Shoes");
  writeFileSync(file, `${text}  - name: Sandals\n    contexts: [s1]\n`);
  mkdirSync(there.at("plans"));
  const plan = there.at("plans/spring.plan.json");
  const planned = await there.run(["plan", file, "--out", plan], READER);
  expect(planned.code).toBe(2);
  const base = there.at("spring.base.ndjson");
  return { ...there, file, plan, planned, base, baseText: () => readFileSync(base, "utf8") };
}

test("after an apply of a kept plan the base is what it is after an apply of the file", async () => {
  const there = await keptPlan();
  const { run, plan, file, shoes, plain, targeting, baseText, seed } = there;
  const before = baseText();
  // Changes by others, in the same option and in another one, still count as drift.
  await seed({
    options: [
      { _id: shoes, targeting, name: "Running Shoes", contexts: ["theirs"] },
      { _id: plain, targeting, name: "Their 0123" },
    ],
  });
  const applied = await run(["apply", plan, "--yes"]);
  expect(applied).toMatchObject({ code: 0, stderr: "" });
  expect(applied.text).toContain(/Plan (\w+)/.exec(there.planned.text)?.[1] ?? "no digest");
  const linesOf = (text: string) => text.split("\n").filter((line) => !line.includes("exportedAt"));
  const old = linesOf(before);
  const renewed = linesOf(baseText());
  expect(renewed.filter((line) => !old.includes(line))).toEqual([
    old.find((line) => line.includes(shoes))?.replace("Running Shoes", "Walking Shoes"),
    expect.stringContaining('"name":"Sandals"'),
  ]);
  expect(renewed).toHaveLength(old.length + 1);
  const again = await run(["plan", file]);
  expect(again).toMatchObject({ code: 0 });
  expect(again.text).toContain("Changed in the service since the base, and kept (2)");
});

test("a kept plan that lies elsewhere applies as well, and says that it renews no base there", async () => {
  const { run, plan, file, baseText, folder } = await keptPlan();
  const before = baseText();
  const elsewhere = join(folder, "far", "away");
  mkdirSync(elsewhere, { recursive: true });
  cpSync(plan, join(elsewhere, "spring.plan.json"));
  const applied = await run(["apply", join(elsewhere, "spring.plan.json"), "--yes"]);
  expect(applied.code).toBe(0);
  expect(applied.stderr).toContain("spring.base.ndjson is not in the folder of the plan");
  expect(baseText()).toBe(before);
  // Both sides have made the same change, so nothing is left to do.
  expect(await run(["plan", file])).toMatchObject({ code: 0 });
});

test("a plan by a base that was named renews none", async () => {
  const { run, plan, file, base, baseText, at } = await keptPlan();
  cpSync(base, at("other.base.ndjson"));
  expect(await run(["plan", file, "--base", at("other.base.ndjson"), "--out", plan])).toMatchObject({ code: 2 });
  expect(JSON.parse(readFileSync(plan, "utf8"))).not.toHaveProperty("file");
  const before = baseText();
  expect(await run(["apply", plan, "--yes"])).toMatchObject({ code: 0, stderr: "" });
  expect([baseText(), readFileSync(at("other.base.ndjson"), "utf8")]).toEqual([before, before]);
});

test("a plan without a base is applied as well", async () => {
  const { run, plan, file, base } = await keptPlan();
  rmSync(base);
  expect(await run(["plan", file, "--out", plan])).toMatchObject({ code: 2 });
  expect(await run(["apply", plan, "--yes"])).toMatchObject({ code: 0, stderr: "" });
});
