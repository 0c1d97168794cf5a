import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, type ToolResult, textOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

/** The most tokens of an answer that reads, data and text together. */
const PAGE_TOKENS = 3500;

const rows = z.looseObject({
  options: z.array(z.looseObject({ _id: z.string(), name: z.string() })),
  note: z.string().optional(),
  cursor: z.string().optional(),
});

const started = perFile(async (folder?: string) => {
  const sandbox = await startService();
  const client = await CLIENTS["2026 client, modern"]({
    args: [COMMAND],
    env: cleanEnvironment({
      TARGETING_MCP_SANDBOX_URL: sandbox.url,
      ...(folder !== undefined && { TARGETING_MCP_ALLOWED_DIRS: folder }),
    }),
  });
  const call = async (name: string, args: Readonly<Record<string, unknown>>) => {
    const result = await client.callTool(name, args);
    expect(result.isError, textOf(result)).not.toBe(true);
    expect(tokensOf(result)).toBeLessThanOrEqual(PAGE_TOKENS);
    return { ...result.structuredContent, text: textOf(result) };
  };
  return { sandbox, call };
});

/** Returns the server that tests share, with an empty sandbox. */
async function connected(...of: Parameters<typeof started>) {
  const { sandbox, call } = await started(...of);
  await sandbox.control("POST", "/reset", {});
  return { sandbox, call };
}

function tokensOf(result: ToolResult): number {
  return countTokens(JSON.stringify(result.structuredContent)) + countTokens(textOf(result));
}

const range = <Item>(count: number, make: (at: number) => Item): Item[] =>
  Array.from({ length: count }, (_, at) => make(at));
const contextIds = (count: number, from = 0) => range(count, (at) => `context-${from + at}`);

test("two options of 8,000 Context IDs are compared in one call, by ID or by name", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Streaming");
  const [here] = await sandbox.options(targetingId, [{ name: "Viewers Web", contexts: contextIds(8000) }]);
  const [there] = await sandbox.options(targetingId, [{ name: "Viewers App", contexts: contextIds(8000, 7997) }]);
  const expected = {
    shared: { total: 3 },
    onlyHere: { total: 7997, complete: false },
    onlyThere: { total: 7997, complete: false },
  };
  const byId = await call("get_option", { optionId: here, compareWith: there });
  expect(byId).toMatchObject(expected);
  expect(byId.text).toContain("7,997 Context IDs only in the first option, 7,997 only in the second, 3 in both.");
  const byName = { targetingId, name: "viewers web", compareWith: "Viewers App " };
  const named = await call("get_option", byName);
  expect(named).toMatchObject(expected);
  expect(named.text).toContain('"viewers web" matched "Viewers Web", which differs in case or outer spaces.');
  const { cursor } = z.looseObject({ cursor: z.string() }).parse(named);
  expect(await call("get_option", { ...byName, cursor })).toMatchObject(expected);
  const detailed = { shared: { total: 3, contexts: ["context-7997", "context-7998", "context-7999"], complete: true } };
  expect(await call("get_option", { ...byName, detail: "detailed" })).toMatchObject(detailed);
});

test("all empty options of 3,000, the five largest, and a summary, each in one call", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Travel");
  const hasNone = (at: number) => at % 100 === 7;
  const items = range(2900, (at) => ({ name: `Trip ${at}`, contexts: hasNone(at) ? [] : contextIds(1 + (at % 7)) }));
  const children = range(99, (at) => ({
    name: `Child ${at}`,
    contexts: at === 50 ? [] : contextIds(at === 3 ? 40 : 2),
  }));
  const group = { name: "Group", type: "collection", children };
  await sandbox.options(targetingId, [...items.slice(0, 1000), group]);
  await sandbox.options(targetingId, items.slice(1000));
  const empty = [...range(29, (at) => `Trip ${at * 100 + 7}`), "Child 50"].sort();
  const found = await call("list_options", { targetingId, empty: true });
  expect(found).toMatchObject({ total: 30, topLevel: 2901, subOptions: 99, complete: true });
  expect(found).not.toHaveProperty("cursor");
  expect(
    rows
      .parse(found)
      .options.map(({ name }) => name)
      .sort(),
  ).toEqual(empty);

  const largest = await call("list_options", { targetingId, sortBy: "contextCount", limit: 5 });
  expect(rows.parse(largest).options.map(({ name }) => name)).toEqual([
    "Child 3",
    "Trip 6",
    "Trip 13",
    "Trip 20",
    "Trip 27",
  ]);
  expect(largest).toMatchObject({
    total: 3000,
    complete: true,
    options: [{ parentName: "Group", contextCount: 40 }, {}, {}, {}, {}],
  });

  const summary = { topLevel: 2901, groups: 1, subOptions: 99, withoutContexts: 30, complete: true };
  expect(await call("get_targeting", { targetingId, summary: true })).toMatchObject({ summary });
});

test("which of 25 Context IDs are held by which of 400 options, in one call", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("News");
  await sandbox.options(
    targetingId,
    range(400, (at) => ({ name: `Option ${at}`, contexts: [`own-${at}`, `shared-${at % 100}`] })),
  );
  const wanted = [...range(20, (at) => `own-${at * 20}`), "shared-7", "nowhere-1", "nowhere-2", "nowhere-3", "x,y"];
  const found = await call("list_options", { targetingId, contextIds: wanted });
  const expected = new Map<string, readonly string[]>(range(20, (at) => [`Option ${at * 20}`, [`own-${at * 20}`]]));
  for (const at of [7, 107, 207, 307]) expected.set(`Option ${at}`, ["shared-7"]);
  expect(new Map(rows.parse(found).options.map(({ name, matched }) => [name, matched]))).toEqual(expected);
  expect(found).toMatchObject({ complete: true, total: 24, scanned: 400 });
  expect(found).toMatchObject({ note: expect.stringContaining('No option holds "nowhere-1", "nowhere-2"') });
});

test("a page holds many options, names their groups, and says why it ends", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Large");
  const children = (at: number) => range(40, (child) => ({ name: `Child ${at} ${child}`, contexts: contextIds(3) }));
  await sandbox.options(
    targetingId,
    range(200, (at) => ({ name: `Trip ${at}`, contexts: contextIds(at % 60) })),
  );
  const [group] = await sandbox.options(
    targetingId,
    range(40, (at) => ({ name: `Group ${at}`, type: "collection", children: children(at) })),
  );
  const page = async (args: object) => rows.parse(await call("list_options", { targetingId, limit: 1000, ...args }));
  const top = await page({});
  // The sandbox's IDs are random, and some take more tokens than others. list-options.test.ts checks the exact number.
  expect(top.options.length).toBeGreaterThanOrEqual(50);
  expect(top.note).toContain(`Only ${top.options.length} of the 240 requested options fit`);
  for (const args of [{ parent: group }, { search: "Child" }, { search: "Child", sortBy: "name" }]) {
    const { options } = await page(args);
    expect(options.length, JSON.stringify(args)).toBeGreaterThanOrEqual(28);
    for (const option of options) expect(option).toMatchObject({ parentName: expect.stringMatching(/^Group \d+$/) });
  }
});

test("saving tells what is in the file", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { sandbox, call } = await connected(folder);
  const targetingId = await sandbox.targeting("Spring");
  const children = [{ name: "Easter", contexts: contextIds(9) }, { name: "Empty" }];
  await sandbox.options(targetingId, [
    { name: "Shoes", contexts: contextIds(4) },
    { name: "Season", type: "collection", children },
  ]);
  const saved = await call("list_options", { targetingId, saveTo: join(folder, "all.csv") });
  expect(saved).toMatchObject({
    counts: { options: 4, groups: 1, subOptions: 2, withoutContexts: 1, contextIds: 13 },
    largest: [{ name: "Easter", contextCount: 9 }, { name: "Shoes" }],
  });
  expect(saved.text).toContain(
    "Of these: 1 group, 2 sub-options, 1 empty (no Context IDs; groups: no sub-options either).",
  );
  expect((await readFile(join(folder, "all.csv"), "utf8")).trim().split("\r\n")).toHaveLength(1 + 4);
});

test("a part of a targeting's name gives the candidates, and another case is understood and said", async () => {
  const { sandbox, call } = await connected();
  for (const name of ["Spring Sale", "Summer Sale", "Brands"]) {
    await call("get_targeting", { targetingId: await sandbox.targeting(name) });
  }
  const part = await call("get_targeting", { targetingName: "sale" });
  expect(part).toMatchObject({ targetings: [{ name: "Summer Sale" }, { name: "Spring Sale" }] });
  const other = await call("get_targeting", { targetingName: "brands" });
  expect(other).toMatchObject({
    targeting: { name: "Brands" },
    note: '"brands" matched "Brands", which differs in case or outer spaces.',
  });
});
