import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as z from "zod";
import { shop } from "./shop.ts";

const listed = z.object({ runs: z.array(z.looseObject({ runId: z.string(), status: z.string() })) });

/** A shop in which a file was applied that renames an option and deletes another one; gives the run. */
async function applied() {
  const there = await shop();
  const file = there.at("spring.yaml");
  await there.run(["export", there.targeting, "--to", file]);
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace(/name: "?Running Shoes"?/, "name: Walking Shoes"));
  const before = await there.run(["export", there.targeting]);
  expect(await there.run(["apply", file, "--yes"])).toMatchObject({ code: 0 });
  const { runs } = listed.parse(JSON.parse((await there.run(["runs", "--json"])).text));
  return { ...there, before, runId: runs[0]?.runId ?? "" };
}

test("undo shows the way back, and takes it with --yes alone where there is no terminal", async () => {
  const { run, before, runId, targeting } = await applied();
  const after = await run(["export", targeting]);
  expect(after.text).not.toBe(before.text);
  const refused = await run(["undo", runId]);
  expect(refused.code).toBe(1);
  expect(refused.text).toContain("Walking Shoes");
  expect(refused.text).not.toContain("Next:");
  expect(refused.stderr).toContain("--yes was not given");
  expect(await run(["export", targeting])).toMatchObject({ text: after.text });
  const readOnly = await run(["undo", runId, "--yes"], { TARGETING_MCP_READ_ONLY: "true" });
  expect(readOnly.code).toBe(1);
  expect(await run(["undo", runId, "--yes"])).toMatchObject({ code: 0 });
  expect(await run(["export", targeting])).toMatchObject({ text: before.text });
  const again = await run(["undo", runId, "--yes"]);
  expect(again.code).toBe(1);
  expect(again.stderr).toContain("was undone before");
});

test("a run that is not there, and none at all, are told", async () => {
  const { run } = await shop();
  expect((await run(["undo", "01J0000000000000000000000A", "--yes"])).stderr).toContain(
    "there is no way back from this run",
  );
  expect(await run(["undo"])).toMatchObject({ code: 1 });
});
