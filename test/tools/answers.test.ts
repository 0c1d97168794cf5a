// Checks a typical answer of every tool, as text and as data, against test/tools/answers/. `npm run snapshots` updates
// these files.
import { expect, test } from "vitest";
import { everyTool } from "../../src/tools/registry.ts";
import { fixedTools } from "../support/fixed-tools.ts";
import { TYPICAL_CALLS } from "./typical-calls.ts";

const TOOLS = await everyTool();

test("every tool has a typical call: else add one to test/tools/typical-calls.ts", () => {
  expect(TYPICAL_CALLS.map(({ tool }) => tool).sort()).toEqual(TOOLS.map(({ name }) => name).sort());
});

test("typical answers are what they were: else look at the difference, and run npm run snapshots", async () => {
  const { context, url } = await fixedTools();
  const given = new Map<string, unknown>();
  for (const { tool: name, args } of TYPICAL_CALLS) {
    const tool = TOOLS.find((one) => one.name === name);
    const prepared = tool?.prepare(args((other) => given.get(other)));
    if (tool === undefined || !prepared?.fits) throw new Error(`${name} does not take its typical call`);
    const outcome = await prepared.run(context);
    if ("ask" in outcome) throw new Error(`${name} asks a person`);
    const { text, structured } = outcome;
    given.set(name, structured);
    expect(tool.output().safeParse(structured).error, `${name} answers as its schema says`).toBeUndefined();
    const input = JSON.stringify(prepared.input, null, 2);
    const shown = [`# ${name}`, input, "## Text", text, "## Data", JSON.stringify(structured, null, 2), ""].join(
      "\n\n",
    );
    await expect(masked(shown, url)).toMatchFileSnapshot(`answers/${name}.txt`);
  }
});

/** Replaces what differs each time: the port of the sandbox, tokens and the marks around foreign text. */
function masked(text: string, url: string): string {
  return text
    .replaceAll(url, "http://127.0.0.1:4010")
    .replaceAll(/(?<="confirmation\\?":\\?"|"token": ")[\w-]{40}/g, "SEALED")
    .replaceAll(/\buntrusted-[0-9a-f]{4}\b/g, "untrusted-MARK");
}
