import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { forCommand } from "../../src/commands/project.ts";
import { shop } from "./shop.ts";

const TOOL = /\b(?:get_run|resume_run|apply_plan with|items of)\b/;

test("a targeting that is to be created and exists is named with the line that takes it, and nothing is applied", async () => {
  const { run, at, targeting, count } = await shop();
  const file = at("new.yaml");
  writeFileSync(file, "version: 1\ntargeting: { name: Spring }\noptions: [{ name: Boots }]\n");
  const applied = await run(["apply", file, "--yes"]);
  expect(applied.code).toBe(1);
  expect(applied.text).toContain(`put _id: "${targeting}" below targeting in the desired state`);
  expect(applied.text).not.toMatch(TOOL);
  expect(await count("addOptions")).toBe(0);
});

test("a run that was refused in the middle is told in the words of commands, and goes on with apply RUN", async () => {
  const { run, at, targeting, group, seed, control } = await shop();
  const [other = ""] = (
    await seed({ options: [{ targeting, name: "Other group", type: "collection", contexts: ["other"] }] })
  ).options;
  const file = at("swap.yaml");
  const rows = [`{_id: ${group}, contexts: [other]}`, `{_id: ${other}, contexts: [season]}`];
  writeFileSync(file, `version: 1\ntargeting: {_id: ${targeting}}\noptions: [${rows.join(", ")}]\n`);
  await control("POST", "/faults", { faults: [{ kind: "status", status: 403, on: "write", nth: 2 }] });
  const refused = await run(["apply", file, "--yes"]);
  expect(refused.code).toBe(1);
  expect(refused.text).not.toMatch(/^Next: .*resume_run/m);
  const [, runId = ""] = /To continue this run: targeting-mcp apply (\w{26})/.exec(refused.stderr) ?? [];
  await control("DELETE", "/faults");
  expect(await run(["apply", runId, "--yes"])).toMatchObject({ code: 0 });
  // Reads an undo and a run as a person. The output has none of the marks that show models where foreign text is.
  const [undone, shown] = [await run(["undo", runId, "--yes"]), await run(["runs", runId])];
  expect(shown.text).toContain('"Other group"');
  for (const { text } of [refused, undone, shown]) expect(text).not.toMatch(/<\/?data|no instructions/);
  expect(await run(["apply", file, "--yes"])).toMatchObject({ code: 0 });
  const { text } = await run(["export", targeting]);
  expect(text).toContain("contexts: [other]");
  expect(text).toContain("contexts: [season]");
  expect(await run(["plan", file])).toMatchObject({ code: 0 });
});

test("a run that does not exist, is no plan or was undone leads to commands, not to tools", async () => {
  const { run, at, targeting } = await shop();
  const [unknown, old] = ["7ZZZZZZZZZ0000000000000099", "01J8ZQ4N3V0000000000000099"];
  const file = at("boots.yaml");
  writeFileSync(file, `version: 1\ntargeting: {_id: ${targeting}}\noptions: [{ name: Boots }]\n`);
  expect(await run(["apply", file, "--yes"])).toMatchObject({ code: 0 });
  const [, listed = ""] = /^(\w{26}) apply_plan/m.exec((await run(["runs"])).text) ?? [];
  expect(await run(["undo", listed, "--yes"])).toMatchObject({ code: 0 });
  for (const args of [
    ["apply", unknown],
    ["undo", unknown],
    ["runs", unknown],
    ["undo", listed],
    ["undo", old],
  ]) {
    const refused = await run([...args, ...(args[0] === "runs" ? [] : ["--yes"])]);
    expect(refused.code, args.join(" ")).toBe(1);
    expect(refused.stderr).toMatch(/targeting-mcp (runs lists|undo \w{26} plans|apply FILE)/);
    expect(refused.stderr).not.toMatch(/\b[a-z]+_(run|plan|targeting)\b/);
  }
});

test("Context IDs that others exchanged for as many are told as other ones", async () => {
  const { run, at, targeting, easter, group, seed } = await shop();
  const file = at("spring.yaml");
  await run(["export", targeting, "--to", file]);
  expect(readFileSync(file, "utf8")).toContain("c7");
  await seed({ options: [{ _id: easter, targeting, parent: group, name: "yes", contexts: ["theirs"] }] });
  const { text } = await run(["drift", file]);
  expect(text).toContain("Context IDs: base 1, service 1, but different ones");
});

test("a name of others cannot control the terminal", async () => {
  const { run, seed } = await shop();
  const [targeting = ""] = (await seed({ targetings: [{ name: "Sale \u009b2J\u202e" }] })).targetings;
  await run(["export", targeting]);
  const { stderr } = await run(["export", "Unknown"]);
  expect(stderr).toContain('"Sale \\u{9B}2J\\u{202E}"');
  expect(stderr).not.toMatch(/[\u009b\u202e]/);
});

test("a plan that cannot be applied leads to what the command has printed", () => {
  expect(forCommand("Fix the desired state and plan it again; get_run shows the plan.")).toBe(
    "Fix the desired state and plan it again.",
  );
  expect(forCommand("get_run shows the plan.")).toBe("The output above shows the plan.");
});

test("an export to an unknown kind of file names the kinds that exist", async () => {
  const { run, at, targeting } = await shop();
  const exported = await run(["export", targeting, "--to", at("boots.txt")]);
  expect(exported.code).toBe(1);
  expect(exported.stderr).toContain("Use a file name that ends in .yaml, .json, .xlsx, .csv, .tsv or .ndjson.");
});
