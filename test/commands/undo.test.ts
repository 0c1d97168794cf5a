import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as z from "zod";
import { runCommand } from "../support/server-process.ts";
import { shop } from "./shop.ts";

const listed = z.object({ runs: z.array(z.looseObject({ runId: z.string(), status: z.string() })) });

/** Applies a file in a shop that renames an option and deletes another one. Returns the run. */
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
  expect(refused.stderr).toContain("use --yes");
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
    "this run can no longer be undone",
  );
  expect(await run(["undo"])).toMatchObject({ code: 1 });
});

test("runs are shown without any key, and undo says what to set", async () => {
  const { runId, settings } = await applied();
  const state = { TARGETING_MCP_STATE_DIR: settings.TARGETING_MCP_STATE_DIR };
  const bare = (args: readonly string[], environment: Record<string, string> = {}) =>
    runCommand(args, { ...state, ...environment });
  for (const environment of [{}, { TARGETING_MCP_MODE: "live" }, { TARGETING_API_KEY: "two words" }]) {
    expect((await bare(["runs"], environment)).text).toContain(runId);
  }
  const one = await bare(["runs", runId, "--json"]);
  expect(one.code).toBe(0);
  expect(JSON.parse(one.text)).toMatchObject({ environment: "live", runId, status: "succeeded" });
  expect(await bare(["undo", runId])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      `run ${runId} was made with the live service: set TARGETING_API_URL and TARGETING_API_KEY`,
    ),
  });
});

test("undo names the sandbox that a run was made in", async () => {
  const { url, settings, targeting, at, run } = await shop();
  const sandbox = {
    TARGETING_MCP_STATE_DIR: settings.TARGETING_MCP_STATE_DIR,
    TARGETING_MCP_MODE: "sandbox",
    TARGETING_MCP_SANDBOX_URL: url,
  };
  const file = at("spring.yaml");
  await run(["export", targeting, "--to", file]);
  writeFileSync(file, readFileSync(file, "utf8").replace(/name: "?Running Shoes"?/, "name: Walking Shoes"));
  expect(await runCommand(["apply", file, "--yes"], sandbox)).toMatchObject({ code: 0 });
  const { text } = await runCommand(["runs", "--json"], sandbox);
  const [{ runId = "" } = {}] = listed.parse(JSON.parse(text)).runs;
  const named = `run ${runId} was made in a sandbox: set TARGETING_MCP_MODE=sandbox and TARGETING_MCP_SANDBOX_URL=${url}`;
  const state = { TARGETING_MCP_STATE_DIR: settings.TARGETING_MCP_STATE_DIR };
  for (const environment of [state, settings, { ...sandbox, TARGETING_MCP_SANDBOX_URL: "" }]) {
    expect(await runCommand(["undo", runId], environment)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(named),
    });
  }
});
