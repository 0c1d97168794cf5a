import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as z from "zod";
import { runCommand } from "../support/server-process.ts";
import { startService } from "../support/service.ts";
import { startInTerminal } from "../support/terminal.ts";
import { shop } from "./shop.ts";

const idRow = z.looseObject({ _id: z.string() });
const PLAN_SCHEMA = z.fromJSONSchema(
  z
    .record(z.string(), z.unknown())
    .parse(JSON.parse(readFileSync(new URL("../../docs/plan.schema.json", import.meta.url), "utf8"))),
);
test.each(["yaml", "json", "csv", "ndjson"])(
  "export to .%s, and plan finds nothing; again, the same bytes",
  async (ending) => {
    const { run, targeting, at, count } = await shop();
    const file = at(`spring.${ending}`);
    expect(await run(["export", targeting, "--to", file])).toMatchObject({ code: 0, text: "" });
    const planned = await run(["plan", file, "--prune"]);
    expect(planned).toMatchObject({ code: 0, stderr: "" });
    expect(planned.text).toContain("nothing to do");
    expect(planned.text).not.toContain("\u001b");
    const written = readFileSync(file, "utf8");
    const base = readFileSync(at("spring.base.ndjson"), "utf8");
    expect(await run(["export", targeting, "--to", file, "--force"])).toMatchObject({ code: 0 });
    expect(readFileSync(file, "utf8")).toBe(written);
    const later = readFileSync(at("spring.base.ndjson"), "utf8");
    expect(later.replace(/"exportedAt":"[^"]*"/, "")).toBe(base.replace(/"exportedAt":"[^"]*"/, ""));
    expect(await count("updateOptions")).toBe(0);
  },
);

test("a workbook is planned: its sheet, and headings that are mapped", async () => {
  const { run, targeting, at } = await shop();
  copyFileSync(new URL("../files/sheets/korean-merged.xlsx", import.meta.url), at("prices.xlsx"));
  const given = ["plan", at("prices.xlsx"), "--targeting", targeting];
  const planned = await run(given);
  expect(planned).toMatchObject({ code: 2 });
  expect(planned.stderr).toContain(
    'read from the sheet "Options" (the workbook has 1 other sheet: "Read me"), with the header on line 3',
  );
  expect(planned.text).toContain("Football");
  const mapped = await run([...given, "--sheet", "2", "--columns", '{"contextId":"Clicks"}']);
  expect(mapped.text).toContain("Total");
  expect(await run([...given, "--columns", "{name}"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("--columns"),
  });
  expect((await run([...given, "--sheet", "Nothing"])).text).toContain('"Read me", "Options"');
});

test.each(["export", "plan", "drift"])(
  "a remembered name that its targeting no longer has is refused: %s",
  async (command) => {
    const { run, targeting, at, url } = await shop();
    await run(["export", targeting]);
    const answer = await fetch(`${url}/context-targeting/bulk/update`, {
      method: "POST",
      headers: { "x-api-key": "sandbox-key", "content-type": "application/json" },
      body: JSON.stringify({ items: [{ _id: targeting, name: "Autumn" }] }),
    });
    expect(answer.ok).toBe(true);
    const file = at("named.yaml");
    writeFileSync(file, "version: 1\ntargeting: {name: Spring}\noptions:\n  - name: Boots\n");
    const { code, stderr } = await run([command, command === "export" ? "Spring" : file]);
    expect(code).toBe(1);
    expect(stderr).toContain(`the targeting that was named "Spring" (${targeting}) is now named "Autumn"`);
  },
);

test("export to standard output is YAML without a base; a targeting that was seen has a name", async () => {
  const { run, targeting } = await shop();
  const first = await run(["export", targeting]);
  expect(first).toMatchObject({ code: 0, stderr: "" });
  expect(first.text).toContain('    contexts: ["007", "1e3", "2024-01-01", "[x", "a|b", "no", "null", "quo\\"te, x"]');
  expect((await run(["export", "Spring"])).text).toBe(first.text);
  const unknown = await run(["export", "Summer"]);
  expect(unknown).toMatchObject({ code: 1, text: "" });
  expect(unknown.stderr).toContain(`"Spring" (${targeting})`);
});

test("a plan shows every change as text, JSON, Markdown and a file, and sends nothing that writes", async () => {
  const { run, targeting, shoes, group, at, control } = await shop();
  const file = at("spring.ndjson");
  await run(["export", targeting, "--to", file]);
  const rows = readFileSync(file, "utf8")
    .replace('"name":"Running Shoes"', '"name":"Walking Shoes"')
    .replace('"name":"0123","parentName":null', '"name":"0123","parentName":"Seasonal"')
    .replace('"exposeChildren":true', '"exposeChildren":false')
    .replace('["c7"]', '["c7","c8"]');
  writeFileSync(file, `${rows}{"name":"New 100%"}\n`);
  const before = await control("GET", "/state");
  const key = { TARGETING_API_KEY: "sandbox-read-key" };
  const planned = await run(["plan", file], key);
  expect(planned.code).toBe(2);
  expect(planned.text).toContain(`"Running Shoes" (${shoes}) → "Walking Shoes"`);
  expect(planned.text).toContain("1 created, 1 renamed, 1 moved, 1 with other Context IDs, 1 with other settings");
  const json = await run(["plan", file, "--json"], key);
  expect(json.code).toBe(2);
  expect(PLAN_SCHEMA.safeParse(JSON.parse(json.text)).error).toBeUndefined();
  expect(JSON.parse(json.text)).toMatchObject({
    version: 1,
    targeting: { _id: targeting, name: "Spring" },
    changes: [
      { kind: "created", name: "New 100%", added: 0 },
      { kind: "renamed", from: "Running Shoes", to: "Walking Shoes" },
      { kind: "moved", name: "0123", from: null, to: "Seasonal" },
      { kind: "contexts", name: "yes", added: 1, removed: 0 },
      { kind: "settings", _id: group, from: true, to: false },
    ],
    drift: [],
    conflicts: [],
    limits: [],
    problems: [],
    exitCode: 2,
  });
  const markdown = await run(["plan", file, "--markdown", "--out", at("spring.plan")], key);
  expect(markdown.text).toContain('| created | "New 100%", with 0 Context IDs |');
  const digest = z.object({ digest: z.string() }).parse(JSON.parse(json.text)).digest;
  expect(markdown.text).toContain(`Plan \`${digest}\``);
  expect(JSON.parse(readFileSync(at("spring.plan"), "utf8"))).toMatchObject({
    kind: "targeting-mcp-plan",
    version: 1,
    environment: "live",
    digest,
    plan: { targeting: { _id: targeting }, items: [{ kind: "create" }, {}, {}, {}, {}] },
  });
  expect(await control("GET", "/state")).toEqual(before);
});

test("what others changed is drift, told and kept; what both changed is a conflict", async () => {
  const { run, targeting, shoes, plain, at, seed } = await shop();
  const file = at("spring.yaml");
  await run(["export", targeting, "--to", file]);
  expect(await run(["drift", file])).toMatchObject({ code: 0 });
  await seed({
    options: [
      { _id: shoes, targeting, name: "Their Shoes", contexts: ["theirs"] },
      { _id: plain, targeting, name: "Their 0123" },
    ],
  });
  const drift = await run(["drift", file]);
  expect(drift.code).toBe(2);
  expect(drift.text).toContain(`"Their Shoes" (${shoes}): name: base "Running Shoes", service "Their Shoes"`);
  expect(drift.text).toContain("Context IDs: base 8, service 1");
  const kept = await run(["plan", file]);
  expect(kept.code).toBe(0);
  expect(kept.text).toContain("Changed in the service since the base, and kept (3):");
  writeFileSync(file, readFileSync(file, "utf8").replace('name: "0123"', "name: Our 0123"));
  const conflict = await run(["plan", file]);
  expect(conflict.code).toBe(1);
  expect(conflict.text).toContain(
    `"Their 0123" (${plain}), line 18: name: base "0123", file "Our 0123", service "Their 0123"`,
  );
  // If only the base is replaced, changes by others no longer count as conflicts, and the file overwrites them.
  const refused = await run(["export", targeting, "--to", file, "--base-only"]);
  expect(refused).toMatchObject({ code: 1 });
  expect(refused.stderr).toContain("3 changes were made in the service. If you replace the file, you accept them");
  expect(await run(["export", targeting, "--to", file, "--base-only", "--force"])).toMatchObject({ code: 0 });
  expect((await run(["plan", file])).text).toMatch(/"Their 0123" \(\w+\) → "Our 0123"/);
});

test("without a base, drift is against the file", async () => {
  const { run, targeting, at, seed, shoes } = await shop();
  const file = at("spring.json");
  writeFileSync(file, (await run(["export", targeting])).text);
  const yaml = at("spring.yaml");
  writeFileSync(yaml, readFileSync(file, "utf8"));
  expect(await run(["drift", yaml])).toMatchObject({ code: 0 });
  await seed({ remove: [shoes] });
  const drift = await run(["drift", yaml]);
  expect(drift.code).toBe(2);
  expect(drift.text).toContain(`"Running Shoes" (${shoes}), line 15: no longer exists`);
});

test("prune needs a base, and deletes what is gone from the file", async () => {
  const { run, targeting, at, easter } = await shop();
  const file = at("spring.ndjson");
  await run(["export", targeting, "--to", file]);
  const lines = readFileSync(file, "utf8").split("\n");
  const rows = lines.filter((line) => line !== "" && idRow.safeParse(JSON.parse(line)).data?._id !== easter);
  writeFileSync(file, rows.join("\n"));
  expect(await run(["plan", file])).toMatchObject({ code: 0 });
  const pruned = await run(["plan", file, "--prune"]);
  expect(pruned.code).toBe(2);
  expect(pruned.text).toContain(`- "yes" (${easter}), with 1 Context ID`);
  writeFileSync(at("alone.ndjson"), rows.join("\n"));
  const refused = await run(["plan", at("alone.ndjson"), "--prune"]);
  expect(refused).toMatchObject({ code: 1, text: "" });
  expect(refused.stderr).toContain("this targeting has no base");
  expect(refused.stderr).toContain(
    "targeting-mcp export TARGETING --to FILE writes its base, NAME.base.ndjson. Then give that file with --base.",
  );
  expect(refused.stderr).not.toMatch(/saveTo|delete_options/);
});

test("a file of another targeting is planned by names", async () => {
  const { run, targeting, at, seed } = await shop();
  const [other = ""] = (await seed({ targetings: [{ name: "Staging" }] })).targetings;
  await seed({
    options: [
      { targeting: other, name: "0123", contexts: ["x"] },
      { targeting: other, name: "Extra" },
    ],
  });
  const file = at("spring.json");
  await run(["export", targeting, "--to", file]);
  const refused = await run(["plan", file, "--targeting", other]);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("--by-name");
  const held = await run(["plan", file, "--targeting", other, "--by-name"]);
  expect(held.code).toBe(1);
  expect(held.text).toContain(
    'the group "Seasonal" would get "season", which the group "Seasonal" of the targeting "Spring" already holds',
  );
  writeFileSync(file, readFileSync(file, "utf8").replace('"season"', ""));
  const planned = await run(["plan", file, "--targeting", other, "--by-name"]);
  expect(planned.code).toBe(2);
  expect(planned.text).toContain("3 created, 1 with other Context IDs");
  expect(planned.text).toMatch(/Not in the file, and kept \(1\):\n {4}"Extra"/);
});

test("a name that was never seen creates a targeting, and the plan says so first", async () => {
  const { run, at } = await shop();
  writeFileSync(at("new.yaml"), "version: 1\ntargeting: {name: Autumn}\noptions:\n  - {name: Leaves, contexts: [l]}\n");
  const planned = await run(["plan", at("new.yaml")]);
  expect(planned.code).toBe(2);
  expect(planned.text).toMatch(
    /^Targeting "Autumn" \(a new targeting\): 2 created\n\nCreated \(2\):\n {2}\+ the targeting "Autumn"/,
  );
});

test("problems are told as FILE:LINE:COLUMN, all at once, and nothing is sent", async () => {
  const { run, at, control } = await shop();
  const file = at("bad.yaml");
  writeFileSync(file, "version: 1\noptions:\n  - name: x\n  - name: Good\n    contexts: 7\n");
  const requests = await control("GET", "/requests");
  const planned = await run(["plan", file]);
  expect(planned.code).toBe(1);
  expect(planned.text.split("\n").map((line) => line.replace(file, "FILE").slice(0, 30))).toEqual([
    'FILE:3:5: the name "x" has 1 c',
    "FILE:5:5: contexts must be a l",
  ]);
  const json = await run(["plan", file, "--json"]);
  expect(json.code).toBe(1);
  expect(JSON.parse(json.text)).toMatchObject({ changes: [], problems: [{ line: 3 }, { line: 5 }], exitCode: 1 });
  expect(await control("GET", "/requests")).toEqual(requests);
});

test.each([
  ["nothing set", {}, "TARGETING_API_URL and TARGETING_API_KEY"],
  ["sandbox without an address", { TARGETING_MCP_MODE: "sandbox" }, "TARGETING_MCP_SANDBOX_URL"],
  [
    "an address of a sandbox alone",
    { TARGETING_MCP_SANDBOX_URL: "http://127.0.0.1:1" },
    "uses a sandbox only if these settings name it",
  ],
  ["the event API alone", { EVENT_API_URL: "http://127.0.0.1:1", EVENT_APP_KEY: "k" }, "TARGETING_API_URL"],
  ["an address without its key", { TARGETING_API_URL: "http://127.0.0.1:1" }, "TARGETING_API_KEY is missing"],
])("%s: no command runs against a sandbox by accident", async (_name, environment, words) => {
  const refused = { code: 1, text: "", stderr: expect.stringContaining(words) };
  for (const command of ["export", "plan", "apply", "drift"]) {
    expect(await runCommand([command, "spring.yaml"], environment)).toEqual(refused);
  }
});

test("a sandbox that is named by mode and address is used", async () => {
  const { run, targeting, url } = await shop();
  const asked = await runCommand(["export", targeting], {
    TARGETING_MCP_MODE: "sandbox",
    TARGETING_MCP_SANDBOX_URL: url,
  });
  expect(asked).toMatchObject({ code: 0, text: (await run(["export", targeting])).text });
});

test.each([
  [["plan"], "is missing"],
  [["plan", "a.yaml", "b.yaml"], "unexpected argument"],
  [["plan", "a.yaml", "--json", "--markdown"], "cannot be combined"],
  [["plan", "a.yaml", "--prun"], "unknown flag --prun"],
  [["plan", "missing.yaml"], "no file"],
  [["plan", "table.ods"], "Save As, Excel"],
  [["apply"], "is missing"],
  [["apply", "missing.yaml"], "no file"],
  [["drift"], "is missing"],
  [["runs", "01J8ZQ4N3V0000000000000001"], "no run"],
  [["export"], "is missing"],
  [["export", "X", "--base-only"], "--to"],
  [["export", "X", "--to", "x.txt"], "extension"],
])("%j ends with 1, since 2 says that something would change", async (args, words) => {
  const { live } = await startService();
  expect(await runCommand(args, live)).toEqual({ code: 1, text: "", stderr: expect.stringContaining(words) });
});

test("on a terminal, export asks before it replaces a file, and a no leaves it", async () => {
  const { run, live, targeting, at, seed, shoes } = await shop();
  const file = at("spring.yaml");
  await run(["export", targeting, "--to", file]);
  await seed({ remove: [shoes] });
  const before = readFileSync(file, "utf8");
  const no = startInTerminal(["export", targeting, "--to", file], live);
  expect(
    await no.answer("1 change was made in the service. If you replace the file, you accept it. Replace?", "n"),
  ).toContain("exist already");
  expect(await no.exited).toBe(1);
  expect(readFileSync(file, "utf8")).toBe(before);
  const yes = startInTerminal(["export", targeting, "--to", file], live);
  await yes.answer("Replace?", "y");
  expect(await yes.exited).toBe(0);
  expect(readFileSync(file, "utf8")).not.toContain("Running Shoes");
  expect(existsSync(at("spring.base.ndjson"))).toBe(true);
});

test("on a terminal a plan has colours, unless NO_COLOR is set", async () => {
  const { live, at } = await shop();
  writeFileSync(at("new.yaml"), "version: 1\ntargeting: {name: Autumn}\noptions: []\n");
  const colored = startInTerminal(["plan", at("new.yaml")], live);
  expect(await colored.exited).toBe(2);
  expect(colored.said()).toContain('\u001b[32m  + the targeting "Autumn"\u001b[0m');
  const plain = startInTerminal(["plan", at("new.yaml")], { ...live, NO_COLOR: "1" });
  expect(await plain.exited).toBe(2);
  expect(plain.said()).not.toContain("\u001b[32m");
});
