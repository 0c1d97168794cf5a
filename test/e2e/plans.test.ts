import { copyFile, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { expect, test } from "vitest";
import * as z from "zod";
import { textOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { warmSessions } from "../support/writing.ts";

const startSession = warmSessions();
const allowedFolder = perFile(() => mkdtemp(join(tmpdir(), "targeting-mcp-plans-")));

const answer = z.looseObject({
  runId: z.string().optional(),
  status: z.string().optional(),
  tool: z.string().optional(),
  counts: z.looseObject({ items: z.number() }).optional(),
  conflicts: z.array(z.unknown()).optional(),
  confirmation: z.looseObject({ token: z.string(), effect: z.string() }).optional(),
});

const named = z.object({ results: z.array(z.object({ _id: z.string(), name: z.string() })) });

/** Creates a targeting with options, and saves it as a desired state in an allowed folder. */
async function spring(more: Readonly<Record<string, string>> = {}, name = "Spring") {
  const allowed = await allowedFolder();
  const folder = await mkdtemp(join(allowed, "test-"));
  const { sandbox, client } = await startSession({ env: { TARGETING_MCP_ALLOWED_DIRS: allowed, ...more } });
  const call = async (name: string, args: Readonly<Record<string, unknown>>) => {
    const given = await client.callTool(name, args);
    const text = textOf(given);
    expect(countTokens(JSON.stringify(given.structuredContent)) + countTokens(text)).toBeLessThan(2500);
    return { data: answer.parse(given.structuredContent), text, isError: given.isError === true };
  };
  const targetingId = await sandbox.targeting(name);
  await sandbox.options(targetingId, [
    { name: "Shoes", contexts: ["a", "b"] },
    { name: "Hats", contexts: ["c"] },
    { name: "Season", type: "collection", contexts: ["own"], children: [{ name: "Easter", contexts: ["x"] }] },
  ]);
  const file = join(folder, "spring.yaml");
  await client.callTool("list_options", { targetingId, saveTo: file });
  const edit = async (from: RegExp | string, to: string) =>
    writeFile(file, (await readFile(file, "utf8")).replace(from, to));
  return { folder, sandbox, client, call, targetingId, file, edit };
}

test("a file that was edited is planned, shown, applied, and then has nothing left to do", async () => {
  const { call, client, file, edit, targetingId } = await spring();
  const same = await call("plan_targeting", { file });
  expect(same.data).toMatchObject({ status: "planned", counts: { items: 0 } });
  expect(same.text).toContain("nothing to do");
  await edit(/name: "?Shoes"?/, "name: Running Shoes");
  await edit(/options:\n/, 'options:\n  - name: "New one"\n    contexts: [n1, n2]\n');
  const planned = await call("plan_targeting", { file });
  expect(planned.data).toMatchObject({
    status: "planned",
    tool: "plan_targeting",
    counts: { items: 2, pending: 2 },
    changes: { created: { count: 1, names: ["New one"] }, renamed: { count: 1 } },
    requests: { planned: 2 },
  });
  const { runId } = planned.data;
  expect((await call("get_run", { runId })).data).toMatchObject({ runId, status: "planned", tool: "plan_targeting" });
  const listed = await client.callTool("get_run", {});
  expect(listed.structuredContent).toMatchObject({
    runs: expect.arrayContaining([expect.objectContaining({ runId, tool: "plan_targeting", status: "planned" })]),
  });
  expect((await call("apply_plan", { runId, dryRun: true })).data).toMatchObject({ status: "planned" });
  const applied = await call("apply_plan", { runId });
  expect(applied.data).toMatchObject({
    runId,
    tool: "apply_plan",
    status: "succeeded",
    approval: { decision: "not_needed" },
    counts: { items: 2, succeeded: 2 },
    totals: { targetingId, name: "Spring", optionCount: 5 },
  });
  expect((await call("get_run", { runId })).data).toMatchObject({ tool: "apply_plan", status: "succeeded" });
  expect((await call("apply_plan", { runId })).data).toMatchObject({ runId, status: "succeeded" });
  expect((await call("plan_targeting", { file })).data).toMatchObject({ counts: { items: 0 } });
});

test("what changed since so that it matters is told object by object, and nothing is sent", async () => {
  const { call, client, file, edit, targetingId } = await spring();
  await edit(/name: "?Shoes"?/, "name: Boots");
  await edit(/name: "?Hats"?/, "name: Caps");
  const { data } = await call("plan_targeting", { file });
  await client.callTool("update_options", { targetingId, items: [{ currentName: "Shoes", name: "Sandals" }] });
  const looked = await call("apply_plan", { runId: data.runId, dryRun: true });
  expect(looked.data).toMatchObject({
    status: "failed",
    stale: [{ name: "Sandals", field: "name", planned: "Shoes" }],
  });
  const applied = await call("apply_plan", { runId: data.runId });
  expect(applied.isError).toBe(true);
  expect(applied.data).toMatchObject({
    status: "failed",
    counts: { items: 2, failed: 1, notApplied: 1 },
    requests: { sent: 0 },
    stale: [{ name: "Sandals", field: "name", planned: "Shoes", service: "Sandals" }],
    nextSteps: ["plan_targeting with the same input plans the change again from the current state"],
  });
  expect((await call("apply_plan", { runId: data.runId })).data).toMatchObject({ status: "failed" });
  const options = await client.callTool("list_options", { targetingId });
  expect(JSON.stringify(options.structuredContent)).toContain("Hats");
});

test("what others have already applied is not reported as added, removed or renamed", async () => {
  const { call, client, sandbox } = await spring();
  const targeting = await sandbox.targeting("Shared");
  const [shoes, hats, bags] = await sandbox.options(targeting, [
    { name: "Shoes" },
    { name: "Hats", contexts: ["c", "d"] },
    { name: "Bags" },
  ]);
  const options = [
    { _id: shoes, name: "Boots" },
    { _id: hats, name: "Hats", contexts: ["c", "more"] },
    { _id: bags, name: "Bags", contexts: ["new"] },
  ];
  const { data } = await call("plan_targeting", { desired: { version: 1, targeting: { _id: targeting }, options } });
  await client.callTool("update_options", { items: [{ _id: shoes, name: "Boots" }] });
  await client.callTool("update_contexts", { items: [{ _id: hats, add: ["more"], remove: ["d"] }] });
  const { text } = await call("apply_plan", { runId: data.runId });
  const lines = text.split("\n");
  expect(lines.find((line) => line.startsWith("Already done"))).toBe(
    `Already done (items 1-2): "Boots" ${shoes}, "Hats" ${hats} (1 already there, 1 not there)`,
  );
  expect(text.match(/ added/g)).toHaveLength(1);
});

test("each change that no longer fits says what another person did, whichever object they changed", async () => {
  const { call, client, file, edit, targetingId } = await spring({ TARGETING_MCP_CONFIRM: "off" });
  await edit(/name: "?Spring"?/, "name: Summer");
  await edit(/name: "?Shoes"?/, "name: Boots");
  await edit(/ {2}- _id: (\S+)\n {4}name: "?Hats"?\n {4}contexts:.*\n/, "");
  await edit(/ {4}children:\n/, "    children:\n      - name: Hats\n");
  const { data, text } = await call("plan_targeting", { file });
  expect(text).toContain("2 renamed, 1 moved");
  const whyNot = async () => {
    const { text: said } = await call("apply_plan", { runId: data.runId, dryRun: true });
    expect(said.match(/^Next: .*$/gm)).toEqual([
      "Next: plan_targeting with the same input plans the change again from the current state",
    ]);
    return said;
  };
  await client.callTool("bulk_add_options", { targetingId, items: [{ name: "Boots" }] });
  expect(await whyNot()).toMatch(/"Boots": .* sent: another option has its name\./);
  await client.callTool("rename_targetings", { items: [{ _id: targetingId, name: "Autumn" }] });
  const both = await whyNot();
  expect(both).toMatch(/^PLAN_STALE, item 1 "Summer": .* its name was expected to be "Spring", but is "Autumn"/m);
  expect(both).toMatch(/^PLAN_STALE, line 7 "Boots": .* another option has its name/m);
  await client.callTool("delete_options", { targetingId, names: ["Season"] });
  expect(await whyNot()).toContain("; line 15: its group no longer exists");
});

test("groups that exchange their only sub-options: each is reported under its own ID, and all of it can be undone", async () => {
  const { call, sandbox, targetingId } = await spring();
  const groups = ["Grp A", "Grp B"];
  await sandbox.options(
    targetingId,
    groups.map((name) => ({ name, type: "collection", children: [{ name: `Sub of ${name}` }] })),
  );
  const options = groups.map((name, at) => ({ name, children: [{ name: `Sub of ${groups[1 - at]}` }] }));
  const { data } = await call("plan_targeting", { desired: { version: 1, targeting: { _id: targetingId }, options } });
  const applied = await call("apply_plan", { runId: data.runId });
  expect(applied.data).toMatchObject({ status: "succeeded", results: [{ did: "changed" }, { did: "changed" }] });
  for (const { _id, name } of named.parse(applied.data).results) {
    expect(await call("get_option", { optionId: _id })).toMatchObject({ data: { option: { name } } });
  }
  const undone = await call("undo_run", { runId: data.runId });
  expect(undone.data).toMatchObject({ undo: { exact: 2, caveat: 0, notOurs: 0, impossible: 0 } });
});

test("a copy of an export that names another targeting is not planned for the targeting of its base", async () => {
  const { call, client, folder, file, targetingId } = await spring();
  const clone = join(folder, "clone.yaml");
  const exported = await readFile(file, "utf8");
  await writeFile(clone, exported.replace(/ {2}_id: .*\n {2}name: .*\n/, "  name: Spring 2027\n"));
  await copyFile(join(folder, "spring.base.ndjson"), join(folder, "clone.base.ndjson"));
  const refused = async (base: object = {}) => {
    const { isError, text, data } = await call("plan_targeting", { file: clone, prune: true, ...base });
    expect(isError).toBe(true);
    expect(data.runId).toBeUndefined();
    expect(text).toContain('the file names the targeting "Spring 2027"');
    expect(text).toContain(`but its base was exported from "Spring" (${targetingId})`);
    expect(text).toContain(`add _id: ${targetingId} under targeting in the file`);
    expect(text).toContain("save the file under another name");
    expect(text).toContain("byName: true");
    return text;
  };
  await refused();
  await refused({ base: join(folder, "spring.base.ndjson") });
  const { results } = named.parse(
    (await client.callTool("create_targetings", { items: [{ name: "Spring 2027" }] })).structuredContent,
  );
  expect(await refused()).toContain(`"Spring 2027" (${results[0]?._id})`);
  const byName = await call("plan_targeting", { file: clone, byName: true });
  expect(byName.data).toMatchObject({ targeting: { _id: results[0]?._id }, changes: { created: { count: 4 } } });
  // A file without the ID, but with the targeting's new name, is planned.
  await client.callTool("rename_targetings", { items: [{ _id: targetingId, name: "Summer" }] });
  await writeFile(clone, exported.replace(/ {2}_id: .*\n {2}name: .*\n/, "  name: Summer\n"));
  expect((await call("plan_targeting", { file: clone })).data).toMatchObject({
    targeting: { _id: targetingId },
    counts: { items: 0 },
  });
});

test("a plan by name names the Context IDs that a group of the other targeting holds", async () => {
  const { call, client, folder } = await spring();
  const groups = [{ name: "Clogs", contexts: ["clog-1", "clog-2"], children: [{ name: "Wooden", contexts: ["w-1"] }] }];
  await client.callTool("create_targetings", { items: [{ name: "Here", options: groups }, { name: "There" }] });
  const file = join(folder, "here.yaml");
  await client.callTool("list_options", { targetingName: "Here", saveTo: file });
  const onto = { targetingName: "There", file, byName: true };
  const { data, text } = await call("plan_targeting", onto);
  expect(text).toMatch(/^The plan for "There" \(\w+\) cannot be applied: 1 problem; nothing was sent\./);
  expect(text).toContain('the group "Clogs" would get "clog-1" and 1 more Context ID, which the group "Clogs" of the');
  expect(data.problems).toMatchObject([{ message: expect.stringContaining("already holds") }]);
  await call("update_contexts", { targetingName: "Here", items: [{ name: "Clogs", remove: ["clog-1", "clog-2"] }] });
  const planned = await call("plan_targeting", onto);
  expect(planned.data).toMatchObject({ changes: { created: { count: 2 } } });
});

test("a conflict says what to write into the file, and how to overwrite what others changed", async () => {
  const { call, client, file, edit, targetingId } = await spring();
  await edit(/contexts: \["?a"?, "?b"?\]/, "contexts: [a, q]");
  await edit(/name: "?Hats"?/, "name: Caps");
  await client.callTool("update_contexts", { targetingId, items: [{ name: "Shoes", add: ["z"] }] });
  await client.callTool("update_options", { targetingId, items: [{ currentName: "Hats", name: "Bonnets" }] });
  const { data, text } = await call("plan_targeting", { file });
  expect(text).toMatch(/^The plan for "Spring" \(\w+\) cannot be applied: 2 conflicts; nothing was sent\./);
  expect(text).toContain('in the file, add "b", "z", and remove "q"');
  expect(text).toContain(`in the file, write the service's name: "Bonnets"`);
  expect(text).not.toContain("prune");
  expect(text).toContain("give this base in later calls with the file too");
  expect(data.conflicts).toMatchObject([
    { field: "contexts", contextIds: { onlyService: { count: 2, first: ["b", "z"] }, onlyFile: { first: ["q"] } } },
    { field: "name", service: "Bonnets" },
  ]);
  await client.callTool("bulk_add_options", { targetingId, items: [{ name: "Mine" }] });
  const pruning = await call("plan_targeting", { file, prune: true });
  expect(pruning.text).toContain('.base.ndjson"; options added by others are then deleted, because prune is true');
  await client.callTool("delete_options", { targetingId, names: ["Mine"] });
  const [, save = "{}", base] =
    /list_options (\{.*?\}), then the same call of plan_targeting with "base":"([^"]+)"/.exec(text) ?? [];
  await client.callTool("list_options", z.record(z.string(), z.unknown()).parse(JSON.parse(save)));
  const renewed = await call("plan_targeting", { file, base });
  expect(renewed.data).toMatchObject({ changes: { renamed: { count: 1 }, contexts: { count: 1 } } });
  expect(renewed.text).toMatch(/^Planned for "Spring"/);
});

test("a plan with problems begins with them, and names arguments, not flags", async () => {
  const { call, targetingId } = await spring();
  const options = [{ _id: "01J0000000000000000000000X", name: "Boots" }, { name: "New" }];
  const { text } = await call("plan_targeting", { desired: { version: 1, targeting: { _id: targetingId }, options } });
  expect(text).toMatch(
    /^The plan for "Spring" \(\w+\) cannot be applied: 1 problem; nothing was sent\..*\nIt has 1 created\.\n/,
  );
  expect(text).toContain("use byName: true.");
  expect(text).not.toContain("--");
});

test("problems with the same words are one line, and get_run shows all of them", async () => {
  const { call, folder, targetingId } = await spring();
  const file = join(folder, "rows.csv");
  const rows = Array.from({ length: 60 }, (_, at) => `New ${at},Nope`);
  await writeFile(file, ["Option,Group", ...rows].join("\n"));
  const { data, text } = await call("plan_targeting", { file, targetingId });
  expect(text).toMatch(
    /- file:2:\d+: no option has the name "Nope".* 59 more rows with the same problem\.\n(?!- file)/,
  );
  const shown = await call("get_run", { runId: data.runId, cursor: data.cursor, limit: 10 });
  expect(shown.text).toContain("problem: file:2:");
});

test("prune without a base names a way with files and one without them", async () => {
  const { client, targetingId } = await spring();
  const desired = { version: 1, targeting: { _id: targetingId }, options: [] };
  const text = textOf(await client.callTool("plan_targeting", { desired, prune: true }));
  expect(text).toContain("list_options with saveTo");
  expect(text).toContain("Without files, leave prune out and delete the unwanted options with delete_options.");
});

test("a plan that deletes needs a yes, given by a token that stands for it alone", async () => {
  const { call, client, file, edit, targetingId } = await spring();
  await edit(/ {2}- _id: \S+\n {4}name: "?Hats"?\n(?: {4}.*\n)*/, "");
  const { data } = await call("plan_targeting", { file, prune: true });
  expect(data).toMatchObject({ changes: { deleted: { count: 1, names: ["Hats"] } } });
  const asked = await call("apply_plan", { runId: data.runId });
  expect(asked.data).toMatchObject({ status: "needs_confirmation", runId: data.runId });
  expect(asked.data.confirmation?.effect).toContain("deletes 1 option with 1 Context ID");
  expect((await call("get_run", { runId: data.runId })).data).toMatchObject({
    status: "planned",
    tool: "plan_targeting",
  });
  const applied = await call("apply_plan", { confirmation: asked.data.confirmation?.token });
  expect(applied.data).toMatchObject({
    status: "succeeded",
    approval: { decision: "approved", channel: "token" },
    counts: { items: 1, succeeded: 1 },
  });
  const options = await client.callTool("list_options", { targetingId });
  expect(JSON.stringify(options.structuredContent)).not.toContain("Hats");
});

test("a sheet that only removes single Context IDs is applied", async () => {
  const { call, folder, targetingId } = await spring();
  const file = join(folder, "remove.csv");
  await writeFile(file, "Option,Context ID,Context Action\nShoes,a,Remove\nHats,d,Add\nHats,c,Remove\n");
  const planned = await call("plan_targeting", { file, targetingId });
  expect(planned.text).toContain('line 3: "Hats", add 1 Context ID ("d"), remove 1 Context ID ("c").');
  expect(planned.text).toMatch(/"Shoes".*: \+0 −1\n- "Hats".*: \+1 −1\n/);
  const applied = await call("apply_plan", { runId: planned.data.runId });
  expect(applied.data).toMatchObject({ status: "succeeded", counts: { succeeded: 2, alreadyDone: 0 } });
  expect((await call("plan_targeting", { file, targetingId })).data).toMatchObject({ counts: { items: 0 } });
});

test("groups exchange their Context IDs, options their names, in one plan", async () => {
  const { call, sandbox } = await spring();
  const targetingId = await sandbox.targeting("Exchange");
  const [one, two, left, right] = await sandbox.options(targetingId, [
    { name: "One", type: "collection", contexts: ["g1"] },
    { name: "Two", type: "collection", contexts: ["g2"] },
    { name: "Left" },
    { name: "Right" },
  ]);
  const desired = {
    version: 1,
    targeting: { _id: targetingId },
    options: [
      { _id: one, name: "One", contexts: ["g2"], children: [] },
      { _id: two, name: "Two", contexts: ["g1"], children: [] },
      { _id: left, name: "Right" },
      { _id: right, name: "Left" },
    ],
  };
  const { data } = await call("plan_targeting", { desired });
  const asked = await call("apply_plan", { runId: data.runId });
  const applied =
    asked.data.confirmation === undefined
      ? asked
      : await call("apply_plan", { confirmation: asked.data.confirmation.token });
  expect(applied.data).toMatchObject({ status: "succeeded", counts: { items: 4, succeeded: 4 } });
  expect((await call("plan_targeting", { desired })).data).toMatchObject({ counts: { items: 0 } });
});

test("a whole targeting is created, and a broken state is told with its places", async () => {
  const { call } = await spring();
  const desired = {
    version: 1,
    targeting: { name: "Brand new" },
    options: [
      { name: "First", contexts: ["1"] },
      { name: "Group", children: [{ name: "Inside", contexts: ["2"] }] },
    ],
  };
  const { data } = await call("plan_targeting", { desired });
  const applied = await call("apply_plan", { runId: data.runId });
  expect(applied.data).toMatchObject({ status: "succeeded", counts: { items: 4, succeeded: 4 } });
  expect((await call("plan_targeting", { desired })).data).toMatchObject({ counts: { items: 0 } });
  const broken = await call("plan_targeting", { desired: { version: 2, options: [{ name: 7 }] } });
  expect(broken.isError).toBe(true);
  expect(broken.data).toMatchObject({
    status: "failed",
    problems: expect.arrayContaining([expect.objectContaining({ line: 1 })]),
  });
});

test("a ring of names takes as many requests as its plan says, wherever that is read", async () => {
  const { call, client, sandbox } = await spring();
  const targetingId = await sandbox.targeting("Autumn");
  const [red, blue, green, group] = await sandbox.options(targetingId, [
    { name: "Red", contexts: ["r", "s"] },
    { name: "Blue" },
    { name: "Green" },
    { name: "Group", type: "collection", contexts: ["g"] },
  ]);
  const options = [
    { _id: red, name: "Blue", contexts: ["r"] },
    { _id: blue, name: "Green" },
    { _id: green, name: "Red" },
    { _id: group, name: "Group", contexts: ["h"] },
  ];
  const desired = { version: 1, targeting: { _id: targetingId }, options };
  const planned = await call("plan_targeting", { desired });
  // Three requests: other changes, then the renames (one to a temporary name), then the rename from the temporary name.
  expect(planned.data).toMatchObject({ requests: { planned: 3 }, plan: [{ items: 2 }, { items: 3 }, { items: 1 }] });
  const { runId } = planned.data;
  const { plan, requests } = planned.data;
  expect((await call("get_run", { runId })).data).toMatchObject({ plan, requests });
  expect(JSON.parse(await client.readResource(`targeting://runs/${runId}/plan`))).toMatchObject({ requests: plan });
  expect((await call("apply_plan", { runId })).data).toMatchObject({
    status: "succeeded",
    requests: { planned: 3, sent: 3, resent: 0 },
    counts: { items: 4, succeeded: 4 },
  });
  expect((await call("plan_targeting", { desired })).data).toMatchObject({ counts: { items: 0 } });
});

test("the targeting of a state that names none is given by ID or by name, and not by both", async () => {
  const { call, client, targetingId } = await spring({}, "Unique name");
  await client.callTool("get_targeting", { targetingId });
  const desired = { version: 1, options: [{ name: "Boots", contexts: ["n"] }] };
  for (const named of [{ targetingId }, { targetingName: "Unique name" }]) {
    const { data } = await call("plan_targeting", { desired, ...named });
    expect(data).toMatchObject({
      status: "planned",
      targeting: { _id: targetingId },
      changes: { created: { count: 1 } },
    });
  }
  const both = await call("plan_targeting", { desired, targetingId, targetingName: "Unique name" });
  expect(both).toMatchObject({
    isError: true,
    text: "targetingId and targetingName were both given\nGive only one of them.",
  });
  expect((await call("plan_targeting", { desired, targetingName: "Unique name" })).text).toContain('"Unique name"');
});

test("a problem of a state in the arguments is said of `desired`, not of a line of a file", async () => {
  const { call, targetingId } = await spring();
  const options = [{ name: "Season", type: "collection", contexts: [] }, { name: "Easter" }];
  const { text } = await call("plan_targeting", { desired: { version: 1, options }, byName: true, targetingId });
  expect(text).toContain('- desired: the group "Season" would have neither sub-options nor own Context IDs.');
  expect(text).toContain("Next: resolve the problem as this answer says");
});

test("a plan that nobody has applied is not resumed: the answer shows it, and asks nobody", async () => {
  const { call, file, edit } = await spring({ TARGETING_MCP_CONFIRM: "ask" });
  await edit(/ {2}- _id: .*\n {4}name: "?Hats"?\n(?: {4}.*\n)*/, "");
  const planned = await call("plan_targeting", { file, prune: true });
  expect(planned.data).toMatchObject({ status: "planned", counts: { items: 1 } });
  const resumed = await call("resume_run", { runId: planned.data.runId });
  expect(resumed.data).toMatchObject({ status: "planned", counts: { items: 1 } });
  expect(resumed.data.confirmation).toBeUndefined();
  expect(resumed.text).toContain(`apply_plan {"runId":"${planned.data.runId}"}`);
  expect((await call("plan_targeting", { file, prune: true })).data).toMatchObject({ counts: { items: 1 } });
});
