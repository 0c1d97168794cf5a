import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { fileAt } from "../../scripts/packaging/generated.ts";
import { catalogue } from "../../src/mcp/server-parts.ts";
import { everyTool } from "../../src/tools/registry.ts";
import { OPENING, startCommand } from "../support/server-process.ts";

const TOOLS = await everyTool();

test("the schemas that the build puts into the command are those that the code makes", async () => {
  const command = startCommand([]);
  for (const message of OPENING) command.send(message);
  command.send({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const made = catalogue(TOOLS).map(({ tool, inputSchema, outputSchema }) => ({
    name: tool.name,
    inputSchema: inputSchema(),
    outputSchema: outputSchema(),
  }));
  expect(await command.answer(1)).toMatchObject({ result: { tools: made } });
});

test("the bundle contains no JSON Schema validator: the SDK still asks for it where the build replaces it", () => {
  const chunks = readdirSync(fileAt("dist")).filter((file) => file.endsWith(".js"));
  const texts = chunks.map((file) => readFileSync(fileAt(`dist/${file}`), "utf8"));
  expect(texts.filter((text) => text.includes("this bundle contains no JSON Schema validator"))).toHaveLength(1);
  expect(texts.filter((text) => text.includes("allErrors"))).toEqual([]);
});
