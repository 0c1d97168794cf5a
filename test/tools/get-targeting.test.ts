import { describe, expect, test } from "vitest";
import * as z from "zod";
import { getTargeting } from "../../src/tools/get-targeting.ts";
import { type HeldOption, readingApi, toolContext, ulidOf } from "../support/tool-context.ts";

const targetingId = ulidOf(0);
const answered = z.object({
  targeting: z.looseObject({ name: z.string() }),
  summary: z
    .strictObject({
      topLevel: z.number(),
      groups: z.number(),
      subOptions: z.number(),
      withoutContexts: z.number(),
      contextIds: z.number(),
      complete: z.boolean(),
    })
    .optional(),
  cursor: z.string().optional(),
});

const groups: readonly HeldOption[] = Array.from({ length: 40 }, (_, index) => ({
  _id: ulidOf(1000 + index),
  name: `Group ${index}`,
  type: "collection",
  contextCount: 0,
  childCount: 3,
  subOptions: Array.from({ length: 3 }, (_none, child) => ({
    _id: ulidOf(2000 + 3 * index + child),
    name: `Child ${index} ${child}`,
    type: "atomic",
    contextCount: child,
  })),
}));

function caller(readMs: number, options = groups) {
  const { api } = readingApi(options, () => pass(readMs));
  const { context, pass } = toolContext(api);
  return async (given: z.input<ReturnType<typeof getTargeting.input>>) => {
    const answer = await getTargeting.handler(getTargeting.input().parse(given), context);
    return { ...answered.parse(answer.structured), text: answer.text };
  };
}

const WHOLE = { topLevel: 40, groups: 40, subOptions: 120, withoutContexts: 40, contextIds: 120, complete: true };

describe("the summary of a targeting", () => {
  test("counts all of it where there is time", async () => {
    expect((await caller(0)({ targetingId, summary: true })).summary).toEqual(WHOLE);
    expect(await caller(0)({ targetingId })).not.toHaveProperty("summary");
  });

  test("cut short by the wait goes on with its cursor, and counts each option once", async () => {
    const call = caller(60);
    let { summary, cursor, text } = await call({ targetingId, summary: true });
    expect(summary).toMatchObject({ complete: false });
    expect(summary?.subOptions).toBeLessThan(120);
    expect(text).toContain(`cursor ${cursor}`);
    for (let calls = 1; cursor !== undefined; calls += 1) {
      // In this context, the time of each later call is enough for only one read.
      expect(calls).toBeLessThan(200);
      ({ summary, cursor, text } = await call({ targetingId, cursor }));
    }
    expect(summary).toEqual(WHOLE);
    expect(text).not.toContain("cursor");
  });

  test("counts every option that is left, also if others delete one that was counted before", async () => {
    const options = [...groups];
    const call = caller(60, options);
    let { summary, cursor } = await call({ targetingId, summary: true });
    expect(summary?.topLevel).toBeGreaterThan(1);
    options.shift();
    while (cursor !== undefined) ({ summary, cursor } = await call({ targetingId, cursor }));
    expect(summary).toEqual(WHOLE);
  });

  test("starts again if the option that was counted last is gone", async () => {
    const options = [...groups];
    const call = caller(60, options);
    let { summary, cursor } = await call({ targetingId, summary: true });
    options.splice(0, (summary?.topLevel ?? 0) + 1);
    const left = options.length;
    while (cursor !== undefined) ({ summary, cursor } = await call({ targetingId, cursor }));
    expect(summary).toEqual({
      ...WHOLE,
      topLevel: left,
      groups: left,
      subOptions: 3 * left,
      withoutContexts: left,
      contextIds: 3 * left,
    });
  });

  test("of another targeting refuses the cursor", async () => {
    const call = caller(60);
    const { cursor = "" } = await call({ targetingId, summary: true });
    await expect(call({ targetingId: ulidOf(9), cursor })).rejects.toThrow("cursor does not come from");
  });
});
