import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { textOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { startSession } from "../support/writing.ts";

const contextIds = (count: number) => Array.from({ length: count }, (_, at) => `context-${at}`);

test("a whole targeting is saved as export does, with its base; a part has none", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { sandbox, client } = await startSession({ env: { TARGETING_MCP_ALLOWED_DIRS: folder } });
  const call = async (name: string, args: Readonly<Record<string, unknown>>) => {
    const answer = await client.callTool(name, args);
    return { data: answer.structuredContent, text: textOf(answer), isError: answer.isError === true };
  };
  const targetingId = await sandbox.targeting("Spring");
  const children = [{ name: "Easter", contexts: contextIds(9) }, { name: "Empty" }];
  await sandbox.options(targetingId, [
    { name: "Shoes", contexts: contextIds(4) },
    { name: "Season", type: "collection", children, contexts: ["own"] },
  ]);
  const at = (name: string) => join(folder, name);
  const textAt = (name: string) => readFile(at(name), "utf8");
  const env = cleanEnvironment({ TARGETING_MCP_MODE: "sandbox", TARGETING_MCP_SANDBOX_URL: sandbox.url });
  const bases = new Set<string>();
  for (const ending of ["yaml", "json"]) {
    const to = at(`exported.${ending}`);
    await promisify(execFile)(process.execPath, [COMMAND, "export", targetingId, "--to", to, "--force"], { env });
    const saved = await call("list_options", { targetingId, saveTo: at(`${ending}-saved.${ending}`) });
    expect(saved.data).toMatchObject({
      base: await realpath(at(`${ending}-saved.base.ndjson`)),
      counts: { contextIds: 14 },
    });
    expect(saved.text).toContain(`${ending}-saved.base.ndjson`);
    expect(await textAt(`${ending}-saved.${ending}`)).toBe(await textAt(`exported.${ending}`));
    bases.add(linesOfBase(await textAt("exported.base.ndjson")));
    bases.add(linesOfBase(await textAt(`${ending}-saved.base.ndjson`)));
  }
  for (const ending of ["csv", "ndjson"]) {
    await call("list_options", { targetingId, saveTo: at(`${ending}-rows.${ending}`) });
    bases.add(linesOfBase(await textAt(`${ending}-rows.base.ndjson`)));
  }
  expect(bases.size).toBe(1);
  const part = await call("list_options", { targetingId, search: "Sh", saveTo: at("part.csv") });
  expect(part.data).not.toHaveProperty("base");
  const before = await readdir(folder);
  const refused = await call("list_options", { targetingId, search: "Sh", saveTo: at("part.yaml") });
  expect(refused.text).toContain("holds a whole targeting");
  const taken = await call("list_options", { targetingId, saveTo: at("exported.csv") });
  expect(taken.text).toContain("exported.base.ndjson");
  expect(taken.text).toContain("exists already");
  expect(await readdir(folder)).toEqual(before);
});

/** Returns a base without the time at which it was written, so that two can be compared. */
function linesOfBase(text: string): string {
  return text.replace(/"exportedAt":"[^"]*"/, "");
}
