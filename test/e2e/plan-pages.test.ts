import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { expect, test } from "vitest";
import * as z from "zod";
import { type TestClient, textOf } from "../support/clients.ts";
import { warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const answer = z.looseObject({
  runId: z.string().default(""),
  status: z.string().optional(),
  cursor: z.string().optional(),
  total: z.number().optional(),
  results: z.array(z.looseObject({ name: z.string() })).default([]),
});

const OPTIONS = 300;
const items = Array.from({ length: OPTIONS }, (_, n) => ({ name: `Toy Line ${n}`, contexts: [`tl-${n}`] }));
const names = items.map(({ name }) => name);

/** Reads all further pages of a plan whose answer is cut. Uses only tools, for agents that cannot read resources. */
async function pagesOf(client: TestClient, runId: string, first: string | undefined) {
  const rows: { readonly name: string }[] = [];
  const texts: string[] = [];
  for (let cursor = first; cursor !== undefined; ) {
    const told = await client.callTool("get_run", { runId, cursor });
    const text = textOf(told);
    expect(countTokens(JSON.stringify(told.structuredContent)) + countTokens(text)).toBeLessThanOrEqual(3500);
    const page = answer.parse(told.structuredContent);
    for (const { name } of page.results) expect(text).toContain(name);
    rows.push(...page.results);
    texts.push(text);
    if (page.cursor !== undefined) expect(text).toContain(page.cursor);
    cursor = page.cursor;
  }
  return { rows, texts };
}

test("what does not fit the answer of a plan, or of a way back, is read page by page with tools alone", async () => {
  const { client, sandbox } = await startSession({});
  const targetingId = await sandbox.targeting("Kids and Toys");
  const options = [...items.map((item) => ({ ...item })), { name: "Blocks" }];
  const planned = await client.callTool("plan_targeting", {
    desired: { version: 1, targeting: { _id: targetingId }, options },
  });
  const { runId, cursor } = answer.parse(planned.structuredContent);
  expect(textOf(planned)).toContain(`all: get_run {"runId":"${runId}","cursor":"${cursor}"}`);
  const { rows } = await pagesOf(client, runId, cursor);
  expect(rows.map(({ name }) => name)).toEqual([...names, "Blocks"]);
  const again = answer.parse((await client.callTool("get_run", { runId })).structuredContent);
  expect(again.cursor).toBe(cursor);

  const applied = await client.callTool("apply_plan", { runId });
  expect(applied.structuredContent).toMatchObject({ status: "succeeded" });
  const all = (await client.callTool("list_options", { targetingId, search: "Toy Line 7" })).structuredContent;
  const { options: found } = z.object({ options: z.array(z.looseObject({ _id: z.string() })) }).parse(all);
  const changed = await client.callTool("update_options", { items: [{ _id: found[0]?._id, name: "Of Mina" }] });
  expect(changed.structuredContent).toMatchObject({ status: "succeeded" });
  const undo = await client.callTool("undo_run", { runId });
  expect(textOf(undo)).toContain(`Changes to make: ${OPTIONS} deleted.`);
  const back = answer.parse(undo.structuredContent);
  const way = await pagesOf(client, back.runId, back.cursor);
  expect(way.rows).toHaveLength(OPTIONS + 1);
  expect(way.rows[0]).toMatchObject({ name: "Of Mina", undo: "notOurs" });
  expect(way.texts.join("\n")).toContain('will be undone exactly: delete "Toy Line 299"');

  const wrong = await client.callTool("get_run", { runId: back.runId, cursor });
  expect(wrong.isError).toBe(true);
  expect(textOf(wrong)).toContain("cursor does not come from this run");
});

test("a plan that fits its answer has no further page", async () => {
  const { client, sandbox } = await startSession({});
  const targetingId = await sandbox.targeting("Small");
  const desired = { version: 1, targeting: { _id: targetingId }, options: [{ name: "One" }] };
  const planned = await client.callTool("plan_targeting", { desired });
  expect(planned.structuredContent).not.toHaveProperty("cursor");
});

test("a state that cannot be read counts nothing, and says where in it each problem stands", async () => {
  const { client } = await startSession({});
  const options = [{ name: "Clothing", children: [{ nam: "Shirts" }] }, { name: "Clothing" }];
  const told = await client.callTool("plan_targeting", {
    desired: { version: 1, targeting: { name: "Shop" }, options },
  });
  expect(told.isError).toBe(true);
  expect(told.structuredContent).toMatchObject({
    status: "failed",
    counts: { items: 0, pending: 0 },
    problems: [
      { path: "options[0].children[0]" },
      { path: "options[0].children[0].nam" },
      { path: "options[1].name", message: 'the name "Clothing" occurs twice' },
    ],
  });
  expect(told.structuredContent).not.toHaveProperty("changes");
  expect(textOf(told)).toMatch(/^The desired state has 3 problems and was not planned; nothing was sent/);
  expect(textOf(told)).toContain('options[1].name: the name "Clothing" occurs twice. ');
});
