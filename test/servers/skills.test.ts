import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { everyTool } from "../../src/tools/registry.ts";
import { startHttp } from "../support/http-server.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";

const TOOLS = await everyTool();

const FOLDER = join(import.meta.dirname, "..", "..", "skills");
const NAMES = ["clean-up-safely", "spreadsheet-to-targetings", "test-my-tracking", "why-conversions-are-missing"];
const fileOf = (name: string): string => readFileSync(join(FOLDER, name, "SKILL.md"), "utf8");
const bodyOf = (name: string): string => fileOf(name).split("\n---\n\n")[1] ?? "";

async function overStdio(): Promise<Client> {
  const client = new Client({ name: "skills", version: "0" });
  onTestFinished(() => client.close());
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [COMMAND], env: cleanEnvironment(), stderr: "ignore" }),
  );
  return client;
}

async function overHttp(): Promise<Client> {
  const { url } = await startHttp();
  const client = new Client({ name: "skills", version: "0" }, { versionNegotiation: { mode: "auto" } });
  onTestFinished(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

test.each([
  ["stdio", overStdio],
  ["HTTP", overHttp],
])("over %s the extension serves every skill of the repository, to the letter", async (_name, connect) => {
  const skills = new SkillsClient(await connect());
  expect(skills.supported).toBe(true);
  const listed = await skills.list();
  const read = await Promise.all(listed.skills.map(async (skill) => (await skills.read(skill)).text));
  expect(read.toSorted()).toEqual(NAMES.map(fileOf).toSorted());
});

test("each skill is a prompt, too, without its head", async () => {
  const client = await overStdio();
  for (const name of NAMES) {
    const { messages } = await client.getPrompt({ name: name.replaceAll("-", "_") });
    expect(messages).toEqual([{ role: "user", content: { type: "text", text: bodyOf(name) } }]);
    expect(bodyOf(name)).toContain("1. ");
  }
});

test("skills name only tools and arguments that exist", () => {
  expect(readdirSync(FOLDER).sort()).toEqual(NAMES);
  const properties = TOOLS.flatMap(({ name, input }) => [
    name,
    ...Object.keys(propertiesOf(z.toJSONSchema(input(), { io: "input", unrepresentable: "any" }))),
  ]);
  const known = new Set(properties);
  const named = NAMES.flatMap((name) => [...fileOf(name).matchAll(/`([a-z]+(?:_[a-z]+)+|[a-z]+[A-Z]\w+)`/g)]);
  const inside = new Set(["contextId", "parentName", "addFrom", "contextsAtLeast"]);
  expect(named.length).toBeGreaterThan(20);
  expect(named.map(([, word = ""]) => word).filter((word) => !known.has(word) && !inside.has(word))).toEqual([]);
});

function propertiesOf({ properties = {} }: { readonly properties?: object | undefined }): object {
  return properties;
}
