import { expect, test } from "vitest";
import * as z from "zod";
import { describeIssues, parseStringifiedArguments } from "../../src/mcp/read-arguments.ts";
import { advertised } from "../../src/mcp/server-parts.ts";

const schema = z.strictObject({
  targetingId: z.string(),
  limit: z.int().min(1).max(1000).default(50),
  dryRun: z.boolean().optional(),
  detail: z.enum(["concise", "detailed"]).optional(),
  items: z
    .array(
      z.strictObject({
        name: z.string(),
        type: z.string().optional(),
        parent: z.string().nullable().optional(),
        contexts: z.array(z.string()).optional(),
        price: z.number().optional(),
      }),
    )
    .optional(),
});
const json = advertised(schema, "input");

function words(given: unknown): string {
  const parsed = schema.safeParse(parseStringifiedArguments(given, json));
  return parsed.success ? "fits" : describeIssues(parsed.error.issues, given, json);
}

function read(given: unknown): unknown {
  return schema.parse(parseStringifiedArguments(given, json));
}

const targetingId = "T";

test("texts are read as what they hold, where the schema takes no text", () => {
  expect(read({ targetingId, items: '[{"name":"a"}]' })).toMatchObject({ items: [{ name: "a" }] });
  expect(read({ targetingId, items: ['{"name":"a"}', { name: "b" }] })).toMatchObject({
    items: [{ name: "a" }, { name: "b" }],
  });
  expect(read({ targetingId, items: [{ name: "a", contexts: '["x"]', price: "1.5" }] })).toMatchObject({
    items: [{ contexts: ["x"], price: 1.5 }],
  });
  expect(read({ targetingId, limit: "5", dryRun: "true" })).toMatchObject({ limit: 5, dryRun: true });
});

test("texts stay texts where the schema takes them", () => {
  const given = { targetingId: "5", items: [{ name: "true", type: "[]", parent: "null", contexts: ["{}", "1"] }] };
  expect(read(given)).toMatchObject(given);
});

test.each([
  [{}, "targetingId is missing: a string is needed"],
  [{ targetingId: 5 }, "targetingId must be a string, not 5"],
  [{ targetingId, limit: 0 }, "limit must be at least 1, not 0"],
  [{ targetingId, limit: 5000 }, "limit must be at most 1000, not 5000"],
  [{ targetingId, limit: 1.5 }, "limit must be a whole number, not 1.5"],
  [{ targetingId, limit: "many" }, 'limit must be a number, not the text "many"'],
  [{ targetingId, dryRun: "perhaps" }, 'dryRun must be true or false, not the text "perhaps"'],
  [{ targetingId, items: "nothing" }, 'items must be an array, not the text "nothing"'],
  [{ targetingId, items: [{ name: "a" }, { name: 3 }] }, "items[1].name must be a string, not 3"],
  [{ targetingId, detail: "full" }, 'detail must be one of "concise", "detailed", not the text "full"'],
])("%j: %s", (given, sentence) => {
  expect(words(given)).toBe(sentence);
});

test("an unknown argument is answered with the valid ones and the nearest", () => {
  expect(words({ targetingId, dry_run: true })).toBe(
    'unknown argument "dry_run", did you mean dryRun? (valid arguments: targetingId, limit, dryRun, detail, items)',
  );
  expect(words({ targetingId, items: [{ name: "a", context: [] }] })).toBe(
    'unknown field "items[0].context", did you mean contexts? (valid fields: name, type, parent, contexts, price)',
  );
  expect(words({ targetingId, "\u202Eevil": 1 })).toContain('"\\u{202E}evil"');
});

test("many problems are counted", () => {
  const items = Array.from({ length: 50 }, () => ({ name: 1 }));
  expect(words({ targetingId, items })).toMatch(/items\[2\]\.name .*; and 47 more problems$/);
});

test("the advertised schema is small and plain", () => {
  expect(json).not.toHaveProperty("$schema");
  expect(JSON.stringify(json)).not.toMatch(/9007199254740991|"type":\[/);
  const open = advertised(z.looseObject({ a: z.looseObject({}), either: z.union([z.string(), z.number()]) }), "output");
  expect(open).toEqual({
    type: "object",
    properties: {
      a: { type: "object", additionalProperties: true },
      either: { anyOf: [{ type: "string" }, { type: "number" }] },
    },
    required: ["a", "either"],
  });
});

test("a field may be called like a keyword", () => {
  const odd = z.strictObject({ properties: z.looseObject({}), type: z.string(), minimum: z.int().optional() });
  expect(Object.keys(z.record(z.string(), z.unknown()).parse(advertised(odd, "input").properties))).toEqual([
    "properties",
    "type",
    "minimum",
  ]);
});
