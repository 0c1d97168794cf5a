import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { unzipSync } from "fflate";
import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, textOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment, startCommand } from "../support/server-process.ts";
import { startService } from "../support/service.ts";
import { startInTerminal } from "../support/terminal.ts";
import { shop } from "./shop.ts";

const listedRuns = z.object({
  environment: z.string(),
  runs: z.array(z.looseObject({ runId: z.string(), tool: z.string(), status: z.string() })),
});

/** Returns the runs that the command `runs` lists. */
async function runsOf({ run }: Awaited<ReturnType<typeof shop>>) {
  const { code, text } = await run(["runs", "--json"]);
  expect(code).toBe(0);
  return listedRuns.parse(JSON.parse(text)).runs;
}

/**
 * Creates a shop and a file that renames an option, adds a Context ID, and adds two options. One of these two was
 * created by hand in the meantime.
 */
async function edited(ending = "yaml") {
  const there = await shop();
  const file = there.at(`spring.${ending}`);
  await there.run(["export", there.targeting, "--to", file]);
  const text = readFileSync(file, "utf8");
  const changed = text
    .replace('name: "Running Shoes"', 'name: "Walking Shoes"')
    .replace("name: Running Shoes", "name: Walking Shoes")
    .replace('contexts: ["c7"]', 'contexts: ["c7", "c8"]')
    .replace("contexts: [c7]", "contexts: [c7, c8]");
  expect(changed).not.toBe(text);
  writeFileSync(file, `${changed}  # new ones\n  - name: Sandals\n    contexts: [s1]\n  - name: Adopted\n`);
  const [adopted = ""] = (await there.seed({ options: [{ targeting: there.targeting, name: "Adopted" }] })).options;
  return { ...there, file, adopted };
}

test("apply plans, applies, renews the base and writes the new IDs; then nothing is to be done", async () => {
  const there = await edited();
  const { run, file, at, adopted, shoes } = there;
  chmodSync(file, 0o640);
  const before = readFileSync(file, "utf8");
  const base = readFileSync(at("spring.base.ndjson"), "utf8");
  const applied = await run(["apply", file, "--yes", "--write-ids"]);
  expect(applied).toMatchObject({ code: 0 });
  expect(applied.text).toContain('"Running Shoes" → "Walking Shoes"');
  expect(applied.text).toMatch(/^Applied \d+ changes/m);
  const after = readFileSync(file, "utf8");
  const written = [...after.matchAll(/^ {2}- _id: "([0-9A-Z]{26})"\n {4}name: (Sandals|Adopted)$/gm)];
  expect(written.map(([, id, name]) => [name, name === "Adopted" ? id : "new"])).toEqual([
    ["Sandals", "new"],
    ["Adopted", adopted],
  ]);
  expect(after.replace(/_id: "[0-9A-Z]{26}"\n {4}(?=name: (Sandals|Adopted))/g, "")).toBe(before);
  expect(statSync(file).mode & 0o777).toBe(0o640);
  const renewed = readFileSync(at("spring.base.ndjson"), "utf8");
  expect(renewed.split("\n").length).toBe(base.split("\n").length + 1);
  expect(renewed).toContain(`{"_id":"${shoes}","name":"Walking Shoes"`);
  expect(renewed).not.toContain(adopted);
  expect(await run(["plan", file])).toMatchObject({ code: 0 });
  const again = await run(["apply", file, "--yes"]);
  expect(again).toMatchObject({ code: 0, stderr: "" });
  expect(again.text).toContain("nothing to do");
  expect(await runsOf(there)).toMatchObject([{ tool: "apply_plan", status: "succeeded" }]);
});

test("without a terminal and without --yes nothing is sent; a read-only caller applies nothing", async () => {
  const { run, file, control } = await edited();
  const before = await control("GET", "/state");
  const refused = await run(["apply", file]);
  expect(refused.code).toBe(1);
  expect(refused.text).toContain("1 created, 1 renamed");
  expect(refused.stderr).toContain("use --yes");
  const readOnly = await run(["apply", file, "--yes"], { TARGETING_MCP_READ_ONLY: "true" });
  expect(readOnly).toMatchObject({ code: 1, text: "" });
  expect(readOnly.stderr).toContain("TARGETING_MCP_READ_ONLY");
  expect(await control("GET", "/state")).toEqual(before);
});

test("on a terminal apply asks, and a no sends nothing", async () => {
  const { settings, file, control, run } = await edited();
  const before = await control("GET", "/state");
  const no = startInTerminal(["apply", file], settings);
  await no.answer("Apply this?", "n");
  expect(await no.exited).toBe(1);
  expect(await control("GET", "/state")).toEqual(before);
  const yes = startInTerminal(["apply", file], settings);
  await yes.answer("Apply this?", "y");
  expect(await yes.exited).toBe(0);
  expect(await run(["plan", file])).toMatchObject({ code: 0 });
});

test("a reader's plan is applied by a writer; what was edited, or made for another address, is refused", async () => {
  const { run, file, at, count } = await edited();
  const plan = at("spring.plan");
  await run(["plan", file, "--out", plan], { TARGETING_API_KEY: "sandbox-read-key" });
  const other = await startService();
  const elsewhere = await run(["apply", plan, "--yes"], { TARGETING_API_URL: other.url });
  expect(elsewhere).toMatchObject({ code: 1, text: "" });
  expect(elsewhere.stderr).toContain("another environment or address");
  writeFileSync(at("edited.plan"), readFileSync(plan, "utf8").replace("Walking", "Talking"));
  expect((await run(["apply", at("edited.plan"), "--yes"])).stderr).toContain("was changed after it was planned");
  const flag = await run(["apply", plan, "--yes", "--prune"]);
  expect(flag).toMatchObject({ code: 1, text: "" });
  expect(flag.stderr).toContain("--prune works only with the file of a desired state");
  const few = await run(["apply", plan, "--yes"], { TARGETING_MCP_ALLOWED_TARGETINGS: "01J8ZQ4N3V0000000000000001" });
  expect(few.code).toBe(1);
  expect(await count("updateOptions")).toBe(0);
  expect(await run(["apply", plan, "--yes"])).toMatchObject({ code: 0 });
  expect(await run(["plan", file])).toMatchObject({ code: 0 });
});

test("a plan that no longer fits tells each object and sends nothing, and neither does it the next time", async () => {
  const there = await edited();
  const { run, file, at, seed, shoes, targeting, count } = there;
  const plan = at("spring.plan");
  await run(["plan", file, "--out", plan]);
  await seed({ options: [{ _id: shoes, targeting, name: "Their Shoes" }] });
  const stale = await run(["apply", plan, "--yes"]);
  expect(stale.code).toBe(1);
  expect(stale.text).toContain("Their Shoes");
  expect(await count("updateOptions")).toBe(0);
  const [{ runId, status } = { runId: "", status: "" }] = await runsOf(there);
  expect(status).toBe("failed");
  const again = await run(["apply", runId, "--yes"]);
  expect(again.code).toBe(1);
  expect((await run(["runs", runId])).text).toContain("Their Shoes");
});

test.each(["SIGKILL", "SIGINT"] as const)("a run that %s cut short goes on with apply RUN", async (signal) => {
  const there = await edited();
  const { settings, file, hold, run, count, at, shoes } = there;
  const release = await hold("updateOptions");
  const cut = startCommand(["apply", file, "--yes"], settings);
  await expect.poll(() => count("updateOptions")).toBe(1);
  cut.child.kill(signal);
  await release();
  await cut.exited;
  const [{ runId, status } = { runId: "", status: "" }] = await runsOf(there);
  expect(status).toBe("interrupted");
  if (signal === "SIGINT") expect(cut.stderr()).toContain(`To continue this run: targeting-mcp apply ${runId}`);
  expect(await run(["apply", runId])).toMatchObject({ code: 1 });
  expect(await run(["apply", runId, "--yes"])).toMatchObject({ code: 0 });
  expect(await run(["plan", file])).toMatchObject({ code: 0 });
  expect(readFileSync(at("spring.base.ndjson"), "utf8")).toContain(`{"_id":"${shoes}","name":"Walking Shoes"`);
});

test("a name that was never seen becomes a targeting; the next plan finds it", async () => {
  const { run, at } = await shop();
  writeFileSync(at("new.yaml"), "version: 1\ntargeting: {name: Autumn}\noptions:\n  - {name: Leaves, contexts: [l]}\n");
  expect(await run(["apply", at("new.yaml"), "--yes"])).toMatchObject({ code: 0 });
  const again = await run(["plan", at("new.yaml")]);
  expect(again.code).toBe(0);
  expect(again.text).toContain("1 found by name");
  const ids = await run(["apply", at("new.yaml"), "--write-ids"]);
  expect(ids).toMatchObject({ code: 0 });
  expect(readFileSync(at("new.yaml"), "utf8")).toMatch(/- \{_id: "[0-9A-Z]{26}", name: Leaves, contexts: \[l\]\}/);
});

test("a workbook of several sheets works from the terminal, and gets its new IDs", async () => {
  const there = await shop();
  const { run, at, targeting } = there;
  const file = at("lists.xlsx");
  const given = readFileSync(join(import.meta.dirname, "..", "files", "sheets", "two-sheets-openpyxl.xlsx"));
  writeFileSync(file, given);
  const how = ["--targeting", targeting, "--sheet", "spring"];
  expect(await run(["drift", file, ...how])).toMatchObject({ code: 2, text: expect.stringContaining("Sandals") });
  const applied = await run(["apply", file, ...how, "--yes", "--write-ids"]);
  expect(applied).toMatchObject({ code: 0, text: expect.stringContaining('"Boots"') });
  expect(applied.text).not.toContain("Scarves");
  expect(applied.stderr).toContain('read from the sheet "Spring"');
  expect(applied.stderr).toContain("2 _ids written");
  expect(await run(["plan", file, ...how])).toMatchObject({ code: 0, text: expect.stringContaining("nothing to do") });
  expect((await run(["drift", file, ...how])).code).toBe(0);
  const parts = Object.keys(unzipSync(given));
  const before = unzipSync(given);
  const after = unzipSync(readFileSync(file));
  const changed = parts.filter((name) => !Buffer.from(before[name] ?? []).equals(Buffer.from(after[name] ?? [])));
  expect(changed).toEqual(["xl/worksheets/sheet2.xml"]);

  // The command does not read the file again, because the run is already planned. The run's results can be saved as a
  // sheet.
  const [{ runId = "" } = {}] = await runsOf(there);
  expect((await run(["apply", runId, "--sheet", "Spring"])).stderr).toContain("--sheet works only with the file");
  expect(await run(["runs", runId, "--to", at("results.xlsx")])).toMatchObject({ code: 0 });
});

test("a dry run of a tool is applied with apply RUN, unless it would do something else by now", async () => {
  const { run, settings, targeting, seed, folder, count } = await edited();
  const client = await CLIENTS["2025 client"]({
    args: [COMMAND],
    env: cleanEnvironment({ ...settings, TARGETING_MCP_ALLOWED_DIRS: folder }),
  });
  const planned = async (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    const args = { targetingId: targeting, file: name, dryRun: true };
    const dry = await client.callTool("bulk_add_options", args);
    return { runId: z.object({ runId: z.string() }).parse(dry.structuredContent).runId, text: textOf(dry) };
  };
  const first = await planned("new.csv", "Option;Context IDs;Note\nSummer Shoes;s1|s2;x\nWinter Shoes;;y\n");
  expect(first.text).toContain("Read as UTF-8, separated by semicolons.");
  expect(first.text).toContain('1 column ignored: "Note".');
  expect(first.text).toContain('Columns: "Option" as Option, "Context IDs" as Context IDs.');
  expect(first.text).toContain(
    'First rows as understood: line 2: "Summer Shoes", add 2 Context IDs ("s1", "s2"); line 3: "Winter Shoes", add no Context IDs.',
  );
  expect(await run(["apply", first.runId])).toMatchObject({ code: 1 });
  expect(await count("addOptions")).toBe(0);
  const applied = await run(["apply", first.runId, "--yes"]);
  expect(applied).toMatchObject({ code: 0 });
  expect(applied.text).toContain("Summer Shoes");
  expect(await count("addOptions")).toBe(1);

  const second = await planned("more.csv", "name\nAutumn Shoes\n");
  await seed({ options: [{ targeting, name: "Autumn Shoes" }] });
  const changed = await run(["apply", second.runId, "--yes"]);
  expect(changed.code).toBe(1);
  expect(changed.text).toContain("has changed since it was shown, so nothing was sent");
  expect(await count("addOptions")).toBe(1);
});
