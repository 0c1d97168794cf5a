import { expect, test, vi } from "vitest";
import { plantSeed, seedSchema } from "../../../src/sandbox/seed.ts";
import { newWorld } from "../../../src/sandbox/world.ts";
import {
  addFault,
  contextIdsOf,
  faultsMessage,
  findMatchingOptions,
  isTestFormat,
  optionsIn,
  targetingSizes,
  testsForUnseen,
} from "../../../src/web/sandbox-page.ts";

const START = Date.UTC(2026, 0, 2);
const TARGETING = "01HZZZZZZZZZZZZZZZZZZZZZZZ";

function world() {
  const clock = { now: START };
  const sandbox = newWorld({ lockWaitMs: 0, random: () => 0.5, now: () => clock.now }, () => undefined);
  const plant = (seed: unknown) => plantSeed(sandbox, seedSchema.parse(seed));
  return { sandbox, clock, plant };
}

const option = (name: string, contexts: readonly string[] = []) => ({ targeting: TARGETING, name, contexts });

test("targetings have their sizes, and when something in them changed since the sandbox was ready", () => {
  const { sandbox, clock, plant } = world();
  const { options } = plant({
    targetings: [{ _id: TARGETING, name: "Brands" }],
    options: [option("one", ["a", "b"]), option("two")],
  });
  const sizes = targetingSizes(sandbox);
  expect(sizes()).toEqual([{ _id: TARGETING, name: "Brands", project: "sandbox", options: 2, groups: 0, contexts: 2 }]);
  clock.now += 60_000;
  plant({ options: [option("three", ["c"])] });
  expect(sizes()).toMatchObject([{ options: 3, contexts: 3, changedAt: START + 60_000 }]);
  expect(
    optionsIn(sandbox, TARGETING, undefined, { from: 0, limit: 10 })?.options.map(({ createdAt }) => createdAt),
  ).toEqual([undefined, undefined, START + 60_000]);
  clock.now += 60_000;
  plant({ remove: [options[0]] });
  expect(sizes()).toMatchObject([{ options: 2, contexts: 1, changedAt: START + 120_000 }]);
  clock.now += 60_000;
  expect(sizes()).toMatchObject([{ changedAt: START + 120_000 }]);
});

test("a targeting says when it was created, and a group how many Context IDs its sub-options have", () => {
  const { sandbox, clock, plant } = world();
  plant({ targetings: [{ _id: TARGETING, name: "Brands" }] });
  clock.now += 60_000;
  const LATER = "01HZZZZZZZZZZZZZZZZZZZZZN0";
  const GROUP = "01HZZZZZZZZZZZZZZZZZZZZZG0";
  plant({
    targetings: [{ _id: LATER, name: "Later" }],
    options: [
      { _id: GROUP, targeting: LATER, name: "Clothing", type: "collection" },
      { targeting: LATER, name: "Jackets", parent: GROUP, contexts: ["a", "b"] },
      { targeting: LATER, name: "Jeans", parent: GROUP, contexts: ["c"] },
      { targeting: LATER, name: "Bags" },
    ],
  });
  clock.now += 60_000;
  plant({ options: [{ targeting: LATER, name: "Belts" }] });
  const [brands, later] = targetingSizes(sandbox)();
  expect(later).toMatchObject({ options: 5, groups: 1 });
  expect([brands?.createdAt, later?.createdAt, later?.changedAt]).toEqual([undefined, START + 60_000, START + 120_000]);
  const rows = optionsIn(sandbox, LATER, undefined, { from: 0, limit: 10 })?.options;
  expect(rows?.map(({ name, contexts, contextsInside }) => [name, contexts, contextsInside])).toEqual([
    ["Clothing", 0, 3],
    ["Bags", 0, undefined],
    ["Belts", 0, undefined],
  ]);
});

test("the Context IDs of an option are read one option at a time, at most 1,000 of them", () => {
  const { sandbox, plant } = world();
  const ids = Array.from({ length: 1200 }, (_, at) => `sku-${at}`);
  const { options } = plant({ targetings: [{ _id: TARGETING, name: "Brands" }], options: [option("one", ids)] });
  const [one = ""] = options;
  expect(contextIdsOf(sandbox, TARGETING, one)).toEqual({ contextIds: ids.slice(0, 1000), total: 1200 });
  expect(contextIdsOf(sandbox, "01HYYYYYYYYYYYYYYYYYYYYYYY", one)).toBeUndefined();
  expect(findMatchingOptions(sandbox, "sku-1199", { from: 0, limit: 10 }).options).toMatchObject([
    { name: "one", group: "Brands", targeting: TARGETING },
  ]);
});

test("a fault takes the fields of its kind, says what it does, and can remove itself", () => {
  vi.useFakeTimers();
  try {
    const { sandbox } = world();
    const add = (fault: unknown) => addFault(sandbox.faults, fault);
    expect(add({ operation: "write", kind: "reset", applied: true, times: 1 })).toBeUndefined();
    expect(add({ operation: "any", kind: "status", probability: 0.1 })).toBeUndefined();
    expect(add({ operation: "write", kind: "busy", times: 9, forMs: 5000 })).toBeUndefined();
    expect(faultsMessage(sandbox.faults).faults.map(({ says, times }) => `${says} (${times})`)).toEqual([
      "the answer is lost after the request was carried out (1)",
      "answered with status 500 (always, each with a chance of 10 %)",
      "refused, since another writer holds the lock (9)",
    ]);
    vi.advanceTimersByTime(4999);
    expect(sandbox.faults.list()).toHaveLength(3);
    vi.advanceTimersByTime(1);
    expect(sandbox.faults.list().map(({ id }) => id)).toEqual([1, 2]);
    expect(add({ operation: "write", kind: "status", status: 200 })).toContain("status");
    expect(add({ operation: "write", kind: "reset", delayMs: 1 })).toContain("delayMs");
    expect(add({ operation: "write", kind: "nothing" })).toBeDefined();
    for (const { name } of faultsMessage(sandbox.faults).kinds)
      expect(add({ operation: "any", kind: name }), name).toBeUndefined();
  } finally {
    vi.useRealTimers();
  }
});

test("tests are generated for what was not seen: all cases of events that never came, one where a parameter did not", async () => {
  const parameter = (name: string, count: number) => ({ name, required: false, count, missing: 0, doubtful: 0 });
  const coverage = [
    { name: "app_open", count: 3, wrong: 0, parameters: [] },
    { name: "page_view", count: 2, wrong: 0, parameters: [parameter("page_id", 2), parameter("page_url", 0)] },
    { name: "sign_up", count: 0, wrong: 0, parameters: [parameter("method", 0)] },
  ];
  const file = await testsForUnseen(coverage, "json", "http://127.0.0.1:1");
  const ids = [...(file?.text ?? "").matchAll(/"id": "(\w+)\/(\w+)\//g)].map(([, name, kind]) => `${name} ${kind}`);
  expect(ids).toContain("sign_up minimal");
  expect(ids).toContain("sign_up missing");
  expect(ids.filter((id) => !id.startsWith("sign_up"))).toEqual(["page_view full"]);
  for (const format of ["vitest", "playwright", "curl"] as const) {
    expect((await testsForUnseen(coverage, format, "http://127.0.0.1:1"))?.text, format).toContain("sign_up");
  }
  expect(await testsForUnseen(coverage.slice(0, 1), "curl", "http://127.0.0.1:1")).toBeUndefined();
  expect(["vitest", "toString"].map(isTestFormat)).toEqual([true, false]);
});
