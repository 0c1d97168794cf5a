import { describe, expect, test } from "vitest";
import * as z from "zod";
import { cutAtIssueLimit } from "../../src/mcp/read-arguments.ts";
import { advertised } from "../../src/mcp/server-parts.ts";

const schema = z.strictObject({
  kinds: z.array(z.enum(["one", "two"])).optional(),
  items: z.array(
    z.strictObject({
      name: z.string(),
      parent: z.string().nullable().optional(),
      price: z.union([z.number(), z.string()]).optional(),
      contexts: z.array(z.string()).optional(),
    }),
  ),
});
const json = advertised(schema, "input");
const MOST = 100;
const MANY = 500_000;

const listOf = (count: number, make: (n: number) => unknown) => Array.from({ length: count }, (_, n) => make(n));
const good = (n: number) => ({ name: `N${n}`, parent: null, price: n % 2 === 0 ? n : "5", contexts: ["a", "b"] });

test("arguments that fit, or hardly do not, stay as they are", () => {
  for (const given of [
    { items: listOf(5000, good) },
    { items: listOf(5000, (n) => (n % 100 === 0 ? { name: n } : good(n))) },
    { items: [], more: 1 },
    "no object",
  ]) {
    expect(cutAtIssueLimit(given, json)).toBe(given);
  }
});

describe("of a great many misfits the first are left, where they were", () => {
  test.each([
    ["other types", { items: listOf(MANY, () => 1) }, MOST],
    ["missing members", { items: listOf(MANY, () => ({})) }, MOST],
    ["unknown members", { items: listOf(MANY, (n) => ({ ...good(n), x: 1 })) }, MOST],
    ["words that are not allowed", { items: [], kinds: listOf(MANY, () => "three") }, MOST],
    ["a list inside", { items: [{ name: "a", contexts: listOf(MANY, () => 1) }] }, MOST],
    ["late ones", { items: [...listOf(1000, good), ...listOf(MANY, () => null)] }, MOST],
  ])("%s", (_what, given, count) => {
    const cut = cutAtIssueLimit(given, json);
    const { error } = schema.safeParse(cut);
    expect(error?.issues).toHaveLength(count);
    for (const issue of error?.issues ?? []) expect(at(cut, issue.path)).toEqual(at(given, issue.path));
  });

  function at(value: unknown, path: readonly PropertyKey[]): unknown {
    return path.reduce<unknown>((inner, step) => Reflect.get(Object(inner), step), value);
  }
});
