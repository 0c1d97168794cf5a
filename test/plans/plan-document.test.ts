import { expect, test } from "vitest";
import { planMarkdown } from "../../src/answers/plan-words.ts";
import { digestOfContexts, type ServiceTargeting } from "../../src/plans/base.ts";
import { planOf } from "../../src/plans/diff.ts";
import { readDesired } from "../../src/plans/file/read-desired.ts";
import { planDocument, readPlan } from "../../src/plans/plan-document.ts";
import { whichTargeting } from "../../src/plans/read-targeting.ts";

const T = "01J0000000000000000000000T";
const U = "01J0000000000000000000000V";
const A = "01J0000000000000000000000A";
const EVIL = "<img src=x>|@team `x` [a](b) **b**";

const there: ServiceTargeting = {
  targeting: { _id: T, name: "Spring" },
  options: [{ _id: A, name: EVIL, type: "atomic", parent: null, contexts: ["a"], digest: digestOfContexts(["a"]) }],
};

async function document() {
  const text = `{"version":1,"targeting":{"_id":"${T}"}}\n{"_id":"${A}","contexts":["b"]}\n{"name":"G","type":"collection"}\n{"name":"New Group","type":"collection","contexts":["g"]}\n{"name":"New","parentName":"New Group"}`;
  const { desired } = await readDesired({
    bytes: Buffer.from(text.replace('{"name":"G","type":"collection"}\n', "")),
    format: "ndjson",
    folder: undefined,
  });
  const plan = planOf({
    desired,
    there,
    prune: false,
    byName: false,
    thresholds: { maxChangePercent: 30, maxDeletes: 500 },
  });
  const origin = {
    environment: "live" as const,
    apiUrl: "https://api.example.com",
    fileDigest: "d",
    prune: false,
    byName: false,
  };
  return planDocument(plan, origin, {});
}

test("a plan is read as it was written, and one that was changed is refused", async () => {
  const written = await document();
  const text = JSON.stringify(written);
  expect(written.plan.items).toHaveLength(3);
  expect(readPlan(text, "spring.plan")).toEqual(JSON.parse(text));
  const { environment, apiUrl, fileDigest, prune, byName, plan } = written;
  const difference = {
    _id: A,
    name: "One",
    field: "parent" as const,
    base: null,
    file: "Group",
    service: null,
    line: 3,
  };
  const full = planDocument(
    {
      ...plan,
      drift: [difference],
      conflicts: [{ name: "New", field: "contexts", service: 3, planned: 2 }],
      onlyThere: [{ _id: U, name: "Extra" }],
      adopted: [{ _id: U, name: "Extra", line: 4 }],
      limits: [{ limit: "TARGETING_MCP_MAX_DELETES", of: "deleted options", there: 9, wanted: 5, fits: 2 }],
      problems: [{ line: 1, column: 2, lines: [1, 3], message: "twice", remedy: "once" }],
    },
    { environment, apiUrl, fileDigest, prune, byName },
    { [U]: "Group" },
  );
  expect(readPlan(JSON.stringify(full), "spring.plan")).toEqual(full);
  expect(() => readPlan(text.replace('"add":["b"]', '"add":["c"]'), "spring.plan")).toThrow(
    /was changed after it was planned/,
  );
  expect(() => readPlan(text.replace("api.example.com", "api.example.org"), "x")).toThrow(/was changed/);
  expect(() => readPlan("{}", "x")).toThrow(/is not a plan/);
});

test("names of others are no Markdown, no HTML and no new cell", async () => {
  const { plan, digest } = await document();
  const markdown = planMarkdown({ plan, file: "spring.ndjson", digest, groupName: (id) => id });
  const line = markdown.split("\n").find((one) => one.includes("img"));
  expect(line).toBe(
    `| with other Context IDs | "&lt;img src=x\\>\\|&#64;team \\\`x\\\` \\[a\\]\\(b\\) \\*\\*b\\*\\*" \\(${A}\\): \\+1 −1 |`,
  );
});

const memory = (names: Readonly<Record<string, readonly string[]>>) => ({
  resolve: async (name: string) => {
    const [first, ...others] = names[name] ?? [];
    if (first === undefined) return { kind: "unknown" as const, candidates: [] };
    const candidates = [first, ...others].map((_id) => ({ _id, name, seenAt: 0 }));
    const thing = { _id: first, name, seenAt: 0 };
    return others.length === 0
      ? { kind: "one" as const, thing, isExact: true }
      : { kind: "ambiguous" as const, candidates };
  },
});

test("which targeting is meant: what was asked for, the file, the base, and a name that was seen", async () => {
  const base = { targeting: { _id: T, name: "Spring" }, exportedAt: "", options: new Map() };
  const file = (fields: { _id?: string; name?: string }) => ({ line: 1, column: 1, ...fields });
  const known = memory({ Spring: [T], Twice: [T, U] });
  const which = (hints: Partial<Parameters<typeof whichTargeting>[0]>) =>
    whichTargeting({ byName: false, memory: known, ...hints });
  expect(await which({ given: T.toLowerCase() })).toBe(T);
  expect(await which({ given: "Spring", file: file({ name: "Other" }) })).toBe(T);
  expect(await which({ file: file({ _id: U }) })).toBe(U);
  expect(await which({ base })).toBe(T);
  expect(await which({ file: file({ name: "Spring" }) })).toBe(T);
  expect(await which({ file: file({ name: "New" }) })).toBeUndefined();
  expect(await which({ given: T, file: file({ _id: U }), byName: true })).toBe(T);
  await expect(which({ given: T, file: file({ _id: U }) })).rejects.toThrow(/the file describes the targeting/);
  await expect(which({ file: file({ _id: U }), base })).rejects.toThrow(/the base describes the targeting/);
  await expect(which({ given: "Unknown" })).rejects.toThrow(/no targeting named "Unknown"/);
  await expect(which({ file: file({ name: "Twice" }) })).rejects.toThrow(/several targetings/);
  await expect(which({})).rejects.toThrow(/neither the file nor the call names the targeting/);
});
