import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { digestOfContexts, type ServiceTargeting } from "../../src/plans/base.ts";
import { readDesired } from "../../src/plans/file/read-desired.ts";
import { desiredText } from "../../src/plans/file/write-desired.ts";

const schema = z.fromJSONSchema(
  z
    .record(z.string(), z.unknown())
    .parse(JSON.parse(readFileSync(new URL("../../docs/desired-state.schema.json", import.meta.url), "utf8"))),
);

/** Texts that some YAML readers interpret as other types if they are not in quotes. */
const TRICKY = [
  ..."007 1e3 0x1F 0o17 no Yes off null true y 1_000 12:30:45 2024-01-01 NaN - +1 ~ %a &a".split(" "),
  "a b",
];
const SIGNS = [
  ...["#a", "a: b", "a #b", "- a", "[a]", "{a}", "*a", "!a", "|", ">", "'", '"', "a,b"],
  ...["\u0085", "\u2028", "\uFEFFx", "가나다", "a\nb", "=", "<<", "@a", "`a"],
].filter((one) => one.trim() !== "");

const contexts = [...TRICKY, ...SIGNS];
const there: ServiceTargeting = {
  targeting: { _id: "01J0000000000000000000000T", name: "0123" },
  options: TRICKY.filter((name) => /^[\w ~%&+-]{2,}$/.test(name) && !name.includes("_")).map((name, at) => ({
    _id: `0123456789012345678901${String(at).padStart(4, "0")}`,
    name,
    type: at % 2 === 0 ? ("collection" as const) : ("atomic" as const),
    parent: null,
    ...(at % 2 === 0 && { exposeChildren: at % 4 === 0 }),
    contexts: at % 2 === 0 ? [`own ${at}`] : contexts,
    digest: digestOfContexts([`own ${at}`]),
  })),
};

const state = z.object({ options: z.array(z.looseObject({ name: z.unknown(), contexts: z.array(z.unknown()) })) });

test.each(["1.1", "1.2"] as const)("what export writes as YAML %s has texts for every other reader, too", (version) => {
  const text = [...desiredText(there, "yaml")].join("");
  const read = state.parse(parse(text, { version }));
  expect(read.options.map(({ name }) => name)).toEqual(there.options.map(({ name }) => name));
  expect(read.options[1]?.contexts).toEqual(contexts.toSorted());
});

test.each(["yaml", "json", "csv", "ndjson"] as const)("what export writes as %s is read as it was", async (format) => {
  const text = [...desiredText(there, format)].join("");
  const { desired, problems } = await readDesired({ bytes: Buffer.from(text), format, folder: undefined });
  expect(problems).toEqual([]);
  expect(desired.options.map(({ name }) => name)).toEqual(there.options.map(({ name }) => name));
  expect(new Set(desired.options[1]?.contexts?.ids)).toEqual(new Set(contexts.map((one) => one.trim())));
});

test("the published schema takes what export writes, and refuses what the reader refuses", () => {
  expect(schema.safeParse(JSON.parse([...desiredText(there, "json")].join(""))).error).toBeUndefined();
  const option = { name: "One" };
  for (const broken of [
    { options: [] },
    { version: 2, options: [] },
    { version: 1 },
    { version: 1, options: [{ ...option, colour: "red" }] },
    { version: 1, options: [{ name: "x" }] },
    { version: 1, options: [{ ...option, contexts: null }] },
    { version: 1, options: [{ ...option, contexts: [7] }] },
    { version: 1, options: [{ ...option, _id: "01J" }] },
    { version: 1, options: [{ ...option, children: [{ name: "Two", children: [] }] }] },
  ]) {
    expect(schema.safeParse(broken).success, JSON.stringify(broken)).toBe(false);
  }
});
