import { mkdtemp, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CLIENTS, callsOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

const LONG = "x".repeat(1_100_000);

/** A server that refuses lines longer than 1 MB, and a targeting for it to change. */
async function service(more: Record<string, string> = {}) {
  const sandbox = await startService();
  const folder = await realpath(await mkdtemp(join(tmpdir(), "targeting-files-")));
  const env = cleanEnvironment({
    TARGETING_MCP_SANDBOX_URL: sandbox.url,
    TARGETING_MCP_ALLOWED_DIRS: folder,
    TARGETING_MCP_LOG_LEVEL: "silent",
    TARGETING_MCP_MAX_LINE_MB: "1",
    ...more,
  });
  const client = await CLIENTS["2025 client"]({ args: [COMMAND], env });
  const targetingId = await sandbox.targeting("Shoes");
  const call = callsOf(client);
  return { call, targetingId, write: (name: string, content: string) => writeFile(join(folder, name), content) };
}

const FILES: readonly (readonly [name: string, content: string, line: number])[] = [
  ["options.ndjson", `{"name":"Boots"}\n{"name":"${LONG}"}\n`, 2],
  ["options.csv", `name,contexts\nBoots,a\nSandals,"${LONG}\n`, 3],
  ["options.json", `[{"name":"Boots"},\n{"name":"Sandals",\n"contexts":["${LONG}"]}]`, 2],
];

test("a line or value that is too long is refused by its line, in every file, and nothing is sent", async () => {
  const { call, targetingId, write } = await service();
  for (const [file, content, line] of FILES) {
    await write(file, content);
    const expected = `the line or JSON value on line ${line} of the file is longer than 1 MB; nothing was sent`;
    for (const tool of ["bulk_add_options", "plan_targeting"]) {
      // This JSON file has an array of rows, which plan_targeting does not read.
      if (tool === "plan_targeting" && file.endsWith(".json")) continue;
      const { text, isError } = await call(tool, { targetingId, file });
      expect({ file, tool, isError }).toEqual({ file, tool, isError: true });
      expect(text).toContain(expected);
      expect(text).toContain("TARGETING_MCP_MAX_LINE_MB");
    }
  }
  const { text } = await call("get_run", {});
  expect(text).not.toContain("bulk_add_options");
});

test("a file is as long as it likes, in lines that are not too long", async () => {
  const { call, targetingId, write } = await service();
  const rows = Array.from({ length: 20 }, (_, at) => JSON.stringify({ name: `Option ${at}`, note: "" }));
  await write("options.ndjson", rows.map((row) => row.replace('"note":""', `"contexts":["${at100k()}"]`)).join("\n"));
  const { text } = await call("bulk_add_options", { targetingId, file: "options.ndjson" });
  // Every row is read. Its Context ID is too long for the service, so it fails.
  expect(text).toContain("20 failed");
});

function at100k(): string {
  return "y".repeat(100_000);
}

test("a file whose rows cannot be counted within the wait is answered as a run, which then goes on", async () => {
  const { call, targetingId, write } = await service({ TARGETING_MCP_WAIT_MS: "0" });
  await write("options.csv", `name\n${Array.from({ length: 3000 }, (_, at) => `Option ${at}`).join("\n")}\n`);
  const given = { targetingId, file: "options.csv" };
  const { text } = await call("bulk_add_options", given);
  const [runId] = /01[0-9A-Z]{24}/.exec(text) ?? [];
  expect(text).toMatch(/^Still /);
  await expect.poll(async () => (await call("get_run", { runId })).text).toContain("Created 3,000 options");
});
