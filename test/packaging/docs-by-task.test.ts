import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { fileAt } from "../../scripts/packaging/generated.ts";
import { startSandbox } from "../../src/sandbox/index.ts";
import { CLIENTS, textOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment, startCommand } from "../support/server-process.ts";

const page = (name: string): string => readFileSync(fileAt(`docs/${name}`), "utf8");
const blocks = (name: string, language: string): readonly string[] =>
  [...page(name).matchAll(new RegExp(`^\`\`\`${language}\\b[^\\n]*\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
    ([, text = ""]) => text,
  );

const call = z.strictObject({ tool: z.string(), arguments: z.record(z.string(), z.unknown()) });

/** Guides whose calls are made, one after another. */
const GUIDES = [
  "import-a-spreadsheet",
  "clean-up-safely",
  "undo-a-change",
  "test-tracking",
  "find-lost-conversions",
].map((name) => `guides/${name}.md`);

test.each(GUIDES)("the calls of %s succeed with the sample data", async (guide) => {
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-guides-"));
  writeFileSync(join(folder, "prices.csv"), blocks(guide, "csv")[0] ?? "");
  const client = await CLIENTS["2026 client, modern"]({
    args: [COMMAND],
    env: cleanEnvironment({ TARGETING_MCP_SANDBOX_SEED: "sample", TARGETING_MCP_ALLOWED_DIRS: folder }),
    answer: () => ({ action: "accept", content: { confirm: true } }),
  });
  const calls = blocks(guide, "json").map((text) => call.parse(JSON.parse(text)));
  expect(calls.length).toBeGreaterThan(0);
  for (const { tool, arguments: given } of calls) {
    const result = await client.callTool(tool, given);
    const { status } = z.looseObject({ status: z.string().optional() }).parse(result.structuredContent);
    expect({ isError: result.isError === true, text: textOf(result) }, tool).toMatchObject({ isError: false });
    expect(["succeeded", "planned", "partial", undefined], `${tool}: ${textOf(result)}`).toContain(status);
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

const SPRING = {
  targetings: [{ _id: "01J8ZQ4N3V0000000000000001", name: "Spring" }],
  options: [
    {
      _id: "01J8ZQ4N3V0000000000000002",
      targeting: "01J8ZQ4N3V0000000000000001",
      name: "Running Shoes",
      contexts: ["c1", "c2"],
    },
    { _id: "01J8ZQ4N3V0000000000000003", targeting: "01J8ZQ4N3V0000000000000001", name: "Boots", contexts: ["c3"] },
  ],
};

test("the terminal session of the guide to reviews prints what the guide shows", async () => {
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  const made = await fetch(`${sandbox.url}/_sandbox/seed`, { method: "POST", body: JSON.stringify(SPRING) });
  expect(made.status).toBe(200);
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-review-"));
  const file = join(folder, "spring.yaml");
  const guide = "guides/review-a-change.md";
  const [before = "", after = ""] = blocks(guide, "console");
  const sessions = [before, after].map((text) => text.split(/^\$ targeting-mcp /m).slice(1));
  expect(sessions.map(({ length }) => length)).toEqual([2, 1]);
  for (const [at, session] of sessions.entries()) {
    if (at === 1) writeFileSync(file, blocks(guide, "yaml")[0] ?? "");
    for (const step of session) {
      const [line = "", ...shown] = step.split("\n");
      const command = startCommand(line.replace("spring.yaml", file).split(" "), {
        TARGETING_MCP_MODE: "sandbox",
        TARGETING_MCP_SANDBOX_URL: sandbox.url,
      });
      command.child.stdin.end();
      await command.exited;
      const printed = `${command.lines.join("\n")}${command.stderr()}`.replaceAll(`${folder}/`, "");
      expect(printed).toContain(shown.join("\n").split("…")[0]?.trim());
    }
  }
});

test("every message that the page of troubles quotes stands in the built command", () => {
  const rows = page("guides/troubleshooting.md")
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
