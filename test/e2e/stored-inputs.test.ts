import { mkdtemp, readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { perFile } from "../support/ends.ts";
import { startSession } from "../support/writing.ts";

const stateDir = perFile(() => mkdtemp(join(tmpdir(), "targeting-mcp-")));
const warm = perFile(async () => startSession({ env: { TARGETING_MCP_STATE_DIR: await stateDir() } }));

/**
 * Arguments that are not stored, because they say how to make a call or how to find its input. What the server found is
 * stored under other names.
 */
const NOT_STORED = [
  ...["dryRun", "confirmation", "targetingName"],
  ...["file", "encoding", "sheet", "columns", "separator", "fillDown"],
  ...["addFile", "removeFile", "setFile", "removeEverywhere"],
];

const listed = z.looseObject({ name: z.string(), inputSchema: z.unknown() });
const schema = z.looseObject({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  enum: z.array(z.string()).optional(),
  anyOf: z.array(z.looseObject({})).optional(),
  properties: z.record(z.string(), z.looseObject({})).optional(),
  items: z.looseObject({}).optional(),
});

/** Returns a value for each field of a schema. A text value is its own path in the schema. */
function filled(given: unknown, path: string): unknown {
  const { type, enum: names, anyOf, properties, items } = schema.parse(given);
  if (names !== undefined) return names.at(-1);
  if (anyOf !== undefined) return filled(anyOf[0], path);
  if (properties !== undefined) {
    const wanted = Object.entries(properties).filter(([name]) => !NOT_STORED.includes(name));
    return Object.fromEntries(wanted.map(([name, one]) => [name, filled(one, `${path} ${name}`)]));
  }
  if (items !== undefined) return [filled(items, path)];
  if ([type].flat().includes("boolean")) return true;
  return path.endsWith(" _id") ? "01ARZ3NDEKTSV4RRFFQ69G5FAV" : path;
}

const stored = z.looseObject({ runId: z.string(), call: z.object({ tool: z.string(), input: z.looseObject({}) }) });

/** Returns the call of the run that was stored last. */
async function lastStored() {
  const runs = join(await stateDir(), "runs");
  const files = await readdir(runs, { recursive: true });
  const headers = files.filter((file) => file.endsWith("run.json")).map((file) => readFile(join(runs, file), "utf8"));
  const read = (await Promise.all(headers)).map((text) => stored.parse(JSON.parse(text)));
  return read.sort((one, other) => (one.runId < other.runId ? 1 : -1))[0]?.call;
}

const TOOLS = [
  ...["create_targetings", "rename_targetings", "delete_targeting", "bulk_add_options"],
  ...["update_options", "update_contexts", "delete_options"],
];

/** Returns the stored input of a deletion. The ID in `targetingId` is stored with the other IDs. */
function deleted(targetingId: string) {
  return { ids: ["a ids", targetingId], names: [{ currentName: "a names" }] };
}

test.for(TOOLS)("all that %s is given is stored with its run", async (tool) => {
  const { client, sandbox } = await warm();
  const targetingId = await sandbox.targeting(`For ${tool.replaceAll("_", " ")}`);
  const { inputSchema } = listed.parse((await client.listTools()).find(({ name }) => name === tool));
  const args = z.looseObject({}).parse(filled(inputSchema, "a"));
  const given = "targetingId" in args ? { ...args, targetingId } : args;
  await client.callTool(tool, { ...given, dryRun: true });
  const call = await lastStored();
  expect(call).toMatchObject({ tool, input: tool === "delete_targeting" ? deleted(targetingId) : given });
});
