import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { fileAt } from "../../scripts/packaging/generated.ts";
import { writtenSheet } from "../../src/files/save-file.ts";
import { sheetRecords } from "../../src/files/sheet-rows.ts";
import { startSandbox } from "../../src/sandbox/index.ts";
import { CLIENTS, textOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment, runCommand } from "../support/server-process.ts";

const page = (name: string): string => readFileSync(fileAt(`docs/${name}`), "utf8");
const blocks = (name: string, language: string): readonly string[] =>
  [...page(name).matchAll(new RegExp(`^\`\`\`${language}\\b[^\\n]*\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
    ([, text = ""]) => text,
  );

const call = z.strictObject({ tool: z.string(), arguments: z.record(z.string(), z.unknown()) });

/** Guides whose calls this test makes, in order. */
const GUIDES = ["clean-up-safely", "undo-a-change", "test-tracking", "find-lost-conversions"].map(
  (name) => `guides/${name}.md`,
);

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
  // Without settings, the server starts with sample data, as for a new user.
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
      const { text, stderr } = await runCommand(line.replace("spring.yaml", file).split(" "), {
        TARGETING_MCP_MODE: "sandbox",
        TARGETING_MCP_SANDBOX_URL: sandbox.url,
      });
      const printed = `${text}${stderr}`.replaceAll(`${folder}/`, "");
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

/** Returns the longest part of a message without inserted values, so that it can be searched for in the source. */
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

const IMPORT = "guides/import-a-spreadsheet.md";

test("a price list goes into a targeting in three messages, as the guide to spreadsheets says", async () => {
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-guide-"));
  // The file as a European Excel saves it.
  writeFileSync(join(folder, "prices.csv"), Buffer.from(blocks(IMPORT, "csv")[0] ?? "", "latin1"));
  const client = await CLIENTS["2026 client, modern"]({
    args: [COMMAND],
    env: cleanEnvironment({ TARGETING_MCP_SANDBOX_SEED: "sample", TARGETING_MCP_ALLOWED_DIRS: folder }),
  });
  const [look, apply, save, again, replace] = blocks(IMPORT, "json").map((text) => call.parse(JSON.parse(text)));
  const answer = async (of: z.infer<typeof call> | undefined, runId?: string) => {
    const given = { ...of?.arguments, ...(runId !== undefined && { runId }) };
    const result = await client.callTool(of?.tool ?? "", given);
    const known = z.looseObject({ runId: z.string(), counts: z.record(z.string(), z.number()).optional() });
    return { text: textOf(result), ...known.parse(result.structuredContent) };
  };
  const first = await answer(look);
  expect(first.counts).toMatchObject({ items: 6, failed: 3 });
  for (const words of ["Windows-1252", "semicolons", '"Größe"', "First rows as understood"]) {
    expect(first.text).toContain(words);
  }
  expect((await answer(apply, first.runId)).counts).toMatchObject({ succeeded: 3, failed: 3 });
  expect((await answer(save, first.runId)).text).toContain("3 done, 3 failed");
  const returned = join(folder, "prices-results.xlsx");
  const fixes = { Road_Runner: "Road Runner", X: "Xyz Cap", "4,01235E+12": "4012345000042" } as const;
  await fixCells(returned, fixes);
  expect((await answer(again)).counts).toMatchObject({ items: 6, alreadyDone: 3, succeeded: 3 });
  expect((await answer(replace)).counts).toMatchObject({ items: 1, succeeded: 1 });
});

/** Replaces cells of a workbook, as a person does with a spreadsheet program. */
async function fixCells(path: string, fixes: Readonly<Record<string, string>>): Promise<void> {
  const bytes = readFileSync(path);
  const rows = async function* () {
    const source = async function* () {
      yield bytes;
    };
    for await (const batch of sheetRecords({ bytes: source, file: { format: "xlsx", encoding: "utf-8" } })) {
      for (const { cells } of batch) yield { cells: cells.map((cell) => fixes[cell] ?? cell) };
    }
  };
  const pieces: Uint8Array[] = [];
  for await (const piece of writtenSheet({ name: "Prices", above: 0, rows: rows() }, { format: "xlsx" })) {
    pieces.push(Buffer.from(piece));
  }
  writeFileSync(path, Buffer.concat(pieces));
}
