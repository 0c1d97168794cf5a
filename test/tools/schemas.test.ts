// Checks what clients see of every tool against test/tools/schemas/, one file for each tool. `npm run snapshots`
// updates these files.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { catalogue } from "../../src/mcp/server-parts.ts";
import { everyTool } from "../../src/tools/registry.ts";

const TOOLS = await everyTool();

test.each(catalogue(TOOLS).map((listed) => [listed.tool.name, listed] as const))(
  "%s is listed as it was: else look at the difference, and run npm run snapshots",
  async (name, { tool, annotations, inputSchema, outputSchema }) => {
    const { title, description, toolset, effect } = tool;
    const shown = { name, title, description, toolset, effect, annotations };
    const schemas = { inputSchema: inputSchema(), outputSchema: outputSchema() };
    await expect(`${JSON.stringify({ ...shown, ...schemas }, null, 2)}\n`).toMatchFileSnapshot(`schemas/${name}.json`);
  },
);

test.each(["schemas", "answers"])("%s of tools that are gone are gone: else remove their files", (folder) => {
  const kept = readdirSync(join(import.meta.dirname, folder)).map((file) => file.replace(/\.\w+$/, ""));
  const names = TOOLS.map(({ name }) => name);
  expect(kept.filter((name) => !names.includes(name))).toEqual([]);
});
