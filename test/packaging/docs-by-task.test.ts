import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { fileAt } from "../../scripts/packaging/generated.ts";
import { startSandbox } from "../../src/sandbox/index.ts";
import { readSeed } from "../../src/sandbox/read-seed.ts";
import { CLIENTS, textOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment, startCommand } from "../support/server-process.ts";

const page = (name: string): string => readFileSync(fileAt(`docs/${name}`), "utf8");
const blocks = (name: string, language: string): readonly string[] =>
  [...page(name).matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(([, text = ""]) => text);

const call = z.strictObject({ tool: z.string(), arguments: z.record(z.string(), z.unknown()) });

test("the calls of the cookbook succeed, one after another, with the sample data", async () => {
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-cookbook-"));
  writeFileSync(join(folder, "prices.csv"), blocks("cookbook.md", "csv")[0] ?? "");
  const client = await CLIENTS["2026 client, modern"]({
    args: [COMMAND],
    env: cleanEnvironment({ TARGETING_MCP_SANDBOX_SEED: "sample", TARGETING_MCP_ALLOWED_DIRS: folder }),
    answer: () => ({ action: "accept", content: { confirm: true } }),
  });
  const calls = blocks("cookbook.md", "json").map((text) => call.parse(JSON.parse(text)));
  expect(calls.length).toBeGreaterThan(9);
  for (const { tool, arguments: given } of calls) {
    const result = await client.callTool(tool, given);
    const { status } = z.looseObject({ status: z.string().optional() }).parse(result.structuredContent);
    expect({ isError: result.isError === true, text: textOf(result) }, tool).toMatchObject({ isError: false });
    expect(["succeeded", "planned", undefined], `${tool}: ${textOf(result)}`).toContain(status);
  }
});

test("the call that the quickstart makes from a shell changes a targeting of the sandbox", async () => {
  const [line = ""] = blocks("quickstart.md", "sh").filter((text) => text.includes("--tool-name"));
  const given = [...line.matchAll(/--tool-arg '(\w+)=([^']*)'/g)].map(([, name = "", value = ""]) => [name, value]);
  const { items, ...rest } = z.looseObject({ items: z.string() }).parse(Object.fromEntries(given));
  // Nothing is set: the server has the sample data by itself, as it does for a new user.
  const env = cleanEnvironment({ TARGETING_MCP_SANDBOX_SEED: "" });
  const client = await CLIENTS["2026 client, modern"]({ args: [COMMAND], env });
  const tool = /--tool-name (\w+)/.exec(line)?.[1] ?? "";
  const result = await client.callTool(tool, { ...rest, items: JSON.parse(items) });
  expect(result.structuredContent).toMatchObject({ status: "succeeded", counts: { items: 1, succeeded: 1 } });
});

test("export, plan and drift of the cookbook find nothing to do right after each other", async () => {
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  const seed = await readSeed("sample");
  const made = await fetch(`${sandbox.url}/_sandbox/seed`, { method: "POST", body: JSON.stringify(seed) });
  expect(made.status).toBe(200);
  const brands = seed?.targetings.find(({ name }) => name === "Shop Brands")?._id ?? "";
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-cookbook-"));
  const lines = blocks("cookbook.md", "sh").flatMap((text) =>
    text.split("\n").filter((line) => / brands.yaml$/.test(line)),
  );
  expect(lines.map((line) => line.split(" ")[3])).toEqual(["export", "plan", "drift"]);
  for (const line of lines) {
    const words = line
      .replace("01J8ZQ4N3V0000000000000001", brands)
      .replace("brands.yaml", join(folder, "brands.yaml"));
    const command = startCommand(words.split(" ").slice(3), {
      TARGETING_MCP_MODE: "sandbox",
      TARGETING_MCP_SANDBOX_URL: sandbox.url,
    });
    command.child.stdin.end();
    expect({ line, ...(await command.exited), said: command.stderr() }).toMatchObject({ code: 0 });
  }
});

test("every message that the page of troubles quotes stands in the built command", () => {
  const rows = page("troubleshooting.md")
    .split("\n")
    .filter((line) => line.startsWith("| `"));
  const quoted = rows.flatMap((row) => /^\| `([^`]+)`/.exec(row)?.[1] ?? []);
  expect(quoted.length).toBeGreaterThan(7);
  const plain = (text: string): string => text.replaceAll(/["'`]\s*\+\s*["'`]/g, "").replaceAll(/\s+/g, " ");
  const text = plain(builtText());
  expect(quoted.filter((message) => message.split("…").some((part) => !text.includes(plain(wordsIn(part)))))).toEqual(
    [],
  );
});

/** The longest run of plain words in a message: what stands in the sources around it is put in. */
function wordsIn(message: string): string {
  return message
    .split(/["`:,]/)
    .reduce((longest, part) => (part.length > longest.length ? part : longest), "")
    .trim();
}

function builtText(): string {
  const dist = fileAt("dist/");
  return readdirSync(dist)
    .filter((name) => name.endsWith(".js"))
    .map((name) => readFileSync(new URL(name, dist), "utf8"))
    .join("\n");
}
