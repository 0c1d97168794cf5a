import { mkdir, mkdtemp, readFile, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS } from "../support/clients.ts";
import { COMMAND } from "../support/server-process.ts";
import { startSession } from "../support/writing.ts";

const planned = z.looseObject({ runId: z.string(), drift: z.array(z.looseObject({})).optional() });
const state = z.looseObject({ options: z.array(z.looseObject({ name: z.string() })) });
const line = z.looseObject({ _id: z.string(), name: z.string(), contexts: z.number() });

test("apply_plan of a file renews of its base what it wrote, and what others changed stays drift", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-base-"));
  const { sandbox, client } = await startSession({ env: { TARGETING_MCP_ALLOWED_DIRS: folder } });
  const targetingId = await sandbox.targeting("Spring");
  await sandbox.options(targetingId, [
    { name: "Shoes", contexts: ["a"] },
    { name: "Hats", contexts: ["b"] },
  ]);
  const file = join(folder, "spring.json");
  await client.callTool("list_options", { targetingId, saveTo: file });
  const base = async () => {
    const [, ...lines] = (await readFile(join(folder, "spring.base.ndjson"), "utf8")).trim().split("\n");
    return lines.map((text) => line.parse(JSON.parse(text))).map(({ name, contexts }) => [name, contexts]);
  };
  expect(await base()).toEqual([
    ["Shoes", 1],
    ["Hats", 1],
  ]);
  const { options, ...rest } = state.parse(JSON.parse(await readFile(file, "utf8")));
  const edited = options.map((option) => (option.name === "Shoes" ? { ...option, name: "Boots" } : option));
  await writeFile(file, JSON.stringify({ ...rest, options: [...edited, { name: "Scarves", contexts: ["c"] }] }));
  // Another user adds a Context ID to the option that the file renames, and renames another option. The plan must keep
  // both.
  await client.callTool("update_contexts", { targetingId, items: [{ name: "Shoes", add: ["theirs"] }] });
  await client.callTool("update_options", { targetingId, items: [{ currentName: "Hats", name: "Caps" }] });
  const first = planned.parse((await client.callTool("plan_targeting", { file })).structuredContent);
  expect(first.drift).toHaveLength(2);
  const applied = await client.callTool("apply_plan", { runId: first.runId });
  expect(applied.structuredContent).toMatchObject({ status: "succeeded", tool: "apply_plan" });
  expect(await base()).toEqual([
    ["Boots", 1],
    ["Hats", 1],
    ["Scarves", 1],
  ]);
  const second = planned.parse((await client.callTool("plan_targeting", { file })).structuredContent);
  expect(second).toMatchObject({ counts: { items: 0 } });
  expect(second.drift).toHaveLength(2);
});

test("apply_plan refuses to renew a base in a folder that is no longer allowed, also over stdio", async () => {
  const parent = await mkdtemp(join(tmpdir(), "targeting-mcp-base-"));
  const [folder, other] = [join(parent, "was"), join(parent, "is")];
  for (const one of [folder, other]) await mkdir(one);
  await symlink(folder, join(parent, "link"));
  const { sandbox, client, environment } = await startSession({ env: { TARGETING_MCP_ALLOWED_DIRS: folder } });
  const targetingId = await sandbox.targeting("Spring");
  const file = join(folder, "spring.json");
  await client.callTool("list_options", { targetingId, saveTo: file });
  const { options, ...rest } = state.parse(JSON.parse(await readFile(file, "utf8")));
  await writeFile(file, JSON.stringify({ ...rest, options: [...options, { name: "Scarves", contexts: ["c"] }] }));
  const { runId } = planned.parse((await client.callTool("plan_targeting", { file })).structuredContent);
  const base = () => readFile(join(folder, "spring.base.ndjson"), "utf8");
  const before = await base();
  await client.close();
  const applied = async (allowed: string) => {
    const env = { ...environment, TARGETING_MCP_ALLOWED_DIRS: allowed };
    const next = await CLIENTS["2026 client, legacy"]({ args: [COMMAND], env });
    return next.callTool("apply_plan", { runId });
  };
  const refused = await applied(other);
  expect(refused.isError).toBe(true);
  expect(JSON.stringify(refused)).toContain("may no longer use");
  expect(await sandbox.count("addOptions")).toBe(0);
  expect(await base()).toBe(before);
  // The base has a real path. A link to its folder is the same folder.
  expect((await applied(join(parent, "link"))).structuredContent).toMatchObject({ status: "succeeded" });
  expect(await base()).not.toBe(before);
});
