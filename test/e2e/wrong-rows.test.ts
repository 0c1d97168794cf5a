import { mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call } from "../support/clients.ts";
import { warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

/** A session with the empty targeting Spring. `given` writes a file and gives it to a tool. */
async function withFiles() {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "targeting-mcp-")));
  const { client, sandbox } = await startSession({ env: { TARGETING_MCP_ALLOWED_DIRS: folder } });
  const targetingId = await sandbox.targeting("Spring");
  const written = (name: string, content: string | Uint8Array) => writeFileSync(join(folder, name), content);
  const given = (tool: string, name: string, content: string | Uint8Array, more: object = {}) => {
    written(name, content);
    return call(client, tool, { ...(tool !== "track_events" && { targetingId }), file: name, ...more });
  };
  return { client, folder, targetingId, written, given };
}

test.each([
  ["Option,Group,Context IDs", "Beta,Alpha,#REF!"],
  ["Option,Group,Context IDs", "Beta,Alpha,4.01235E+12"],
  ["Option,Group,Context IDs", "Beta,Alpha,b\u200B1"],
  ["Option,Group,Context IDs", "#N/A,Alpha,b1"],
  ["Option,Group,Context IDs", "Be_ta,Alpha,b1"],
  ["Option,Group,Context IDs", "Beta,Alpha,b1,more"],
  ["Option,Group,Context IDs,Action", "Beta,Alpha,b1,Perhaps"],
  ["Option,Group,Context IDs,Context Action", "Beta,Alpha,b1,Perhaps"],
  ["Option,Group,Context ID", "Be_ta,,b1\nBe_ta,Alpha,b2"],
])("an option that a failed row names as its group is created as a group: %s / %s", async (header, failed) => {
  const { client, targetingId, given } = await withFiles();
  const made = await given("bulk_add_options", "groups.csv", `${header}\nAlpha,,g1\n${failed}\n`);
  expect(made.counts).toMatchObject({ succeeded: 1 });
  const corrected = await given("bulk_add_options", "fixed.csv", "Option,Group,Context IDs\nBeta,Alpha,b1\n");
  expect(corrected.counts).toMatchObject({ succeeded: 1, failed: 0 });
  const { text } = await call(client, "list_options", { targetingId });
  expect(text).toContain("Alpha");
});

test("an option that a failed line of NDJSON names as its group is created as a group", async () => {
  const { given } = await withFiles();
  const lines = ['{"name":"Alpha","contexts":["g1"]}', '{"name":"Beta","parentName":"Alpha","contexts":"b1"}'];
  const made = await given("bulk_add_options", "groups.ndjson", `${lines.join("\n")}\n`);
  expect(made.counts).toMatchObject({ succeeded: 1, failed: 1 });
  const corrected = await given("bulk_add_options", "fixed.csv", "Option,Group,Context IDs\nBeta,Alpha,b1\n");
  expect(corrected.counts).toMatchObject({ succeeded: 1, failed: 0 });
});
