import { expect, test } from "vitest";
import * as z from "zod";
import { getOption } from "../../src/tools/get-option.ts";
import { type HeldOption, readingApi, toolContext, ulidOf } from "../support/tool-context.ts";

const structured = z.object({
  option: z.looseObject({ name: z.string() }),
  contexts: z.array(z.string()),
  total: z.number(),
  cursor: z.string().optional(),
});

function caller(option: HeldOption) {
  const { context } = toolContext(readingApi([option]).api);
  return async (given: { optionId: string; limit?: number; cursor?: string }) => {
    const answer = await getOption.handler(getOption.input().parse(given), context);
    return { ...structured.parse(answer.structured), text: answer.text };
  };
}

const optionId = ulidOf(1);

function holding(contexts: readonly string[]): HeldOption {
  return { _id: optionId, name: "One", type: "atomic", contextCount: contexts.length, contexts };
}

async function allOf(option: HeldOption, limit: number) {
  const call = caller(option);
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await call({ optionId, limit, ...(cursor !== undefined && { cursor }) });
    found.push(...page.contexts);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

test("pages through the Context IDs, exactly as they are", async () => {
  const contexts = Array.from({ length: 250 }, (_, index) => `context\u200B ${index}`);
  const call = caller(holding(contexts));
  const first = await call({ optionId });
  expect(first).toMatchObject({ option: { name: "One" }, total: 250 });
  expect(first.contexts[0]).toBe("context\u200B 0");
  expect(first.text).toContain('"context\\u{200B} 0"');
  expect(await allOf(holding(contexts), 100)).toEqual(contexts);
});

test("long Context IDs make short pages", async () => {
  const contexts = Array.from({ length: 40 }, (_, index) => `${index}`.padEnd(256, "x"));
  expect((await caller(holding(contexts))({ optionId })).contexts.length).toBeLessThan(40);
  expect(await allOf(holding(contexts), 100)).toEqual(contexts);
});

test("an option without Context IDs has no cursor", async () => {
  expect(await caller(holding([]))({ optionId })).toMatchObject({ contexts: [], total: 0 });
  expect((await caller(holding([]))({ optionId })).cursor).toBeUndefined();
});

test("a cursor of another option is refused", async () => {
  const call = caller(holding(Array.from({ length: 250 }, (_, index) => `c${index}`)));
  const { cursor = "" } = await call({ optionId });
  await expect(call({ optionId: ulidOf(2), cursor })).rejects.toThrow("cursor does not come from");
});

test.each([
  [["Same", "Same"], "Same", 'several options of the targeting are named "Same"'],
  [["Same", "SAME"], "same", 'several options of the targeting differ from "same" only in case'],
])("of %j, the name %s is ambiguous, with the reason", async (names, name, reason) => {
  const options = names.map((held, index) => ({ ...holding(["a"]), _id: ulidOf(index + 1), name: held }));
  const { context } = toolContext(readingApi(options).api);
  const given = getOption.input().parse({ targetingId: ulidOf(0), name });
  await expect(getOption.handler(given, context)).rejects.toThrow(reason);
});

test.each([
  ["a page", {}],
  ["a comparison", { compareWith: ulidOf(2) }],
])("%s of Context IDs that changed since the first page says that some may be missing", async (_, given) => {
  const all = Array.from({ length: 300 }, (_none, index) => `c${index}`);
  const options = [holding(all), { ...holding(["other"]), _id: ulidOf(2) }];
  const { context } = toolContext(readingApi(options).api);
  const call = async (cursor?: string) => {
    const args = getOption.input().parse({ optionId, ...given, ...(cursor !== undefined && { cursor }) });
    return z.looseObject({ cursor: z.string().optional() }).parse((await getOption.handler(args, context)).structured);
  };
  const changed = { note: expect.stringContaining("some may be missing in these pages") };
  const first = await call();
  expect(await call(first.cursor)).not.toMatchObject(changed);
  options[0] = holding(all.slice(10));
  let { cursor } = first;
  let pages = 0;
  for (; cursor !== undefined; pages += 1) {
    const page = await call(cursor);
    expect(page).toMatchObject(changed);
    cursor = page.cursor;
  }
  expect(pages).toBeGreaterThan(1);
});

test("refuses to save a comparison, which would save one option alone", async () => {
  const { context } = toolContext(readingApi([holding(["a"])]).api);
  const given = { optionId, compareWith: ulidOf(2), saveTo: "difference.csv" };
  await expect(getOption.handler(getOption.input().parse(given), context)).rejects.toThrow(/compareWith/);
});
