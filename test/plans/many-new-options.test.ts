import { expect, test } from "vitest";
import { planDesired } from "../../src/changes/plan/plan-desired.ts";
import { RowBlock } from "../../src/changes/rows/row-block.ts";
import { planOf } from "../../src/plans/diff.ts";
import { asPlanned } from "../../src/plans/planned-undo.ts";
import { readTargeting } from "../../src/plans/read-targeting.ts";
import { startService } from "../changes/service.ts";
import { apply } from "./applied-properties.ts";
import { desiredOf, LOOSE } from "./plan-properties.ts";

const MANY = 5001;

/** Creates a targeting with two options and a group. Returns a plan that renames Spring and adds many options. */
async function planMany() {
  const service = await startService();
  const targetingId = await service.targeting("Seasons");
  const first = await service.option({ targeting: targetingId, name: "Spring", contexts: ["a"] });
  const read = () => readTargeting(service.api, targetingId, { signal: new AbortController().signal });
  const options = [
    { _id: first, name: "Old spring" },
    { name: "Spring", contexts: ["b"] },
    { name: "Group", type: "collection", children: [{ name: "Inside", contexts: ["c"] }] },
    ...Array.from({ length: MANY }, (_, at) => ({ name: `Option ${at}`, contexts: [`id ${at}`, "shared"] })),
  ];
  const desired = await desiredOf(JSON.stringify({ version: 1, targeting: { _id: targetingId }, options }));
  const there = await read();
  const plan = planOf({ desired, there, prune: false, byName: false, thresholds: LOOSE });
  return { service, read, there, plan, desired };
}

/** Returns the name, group and Context IDs of each option. */
function shown({ options }: Awaited<ReturnType<typeof readTargeting>>) {
  const names = new Map(options.map(({ _id, name }) => [_id, name]));
  return options.map(({ name, parent, contexts }) => [name, names.get(parent ?? "") ?? null, [...contexts].sort()]);
}

const WANTED = [
  ["Old spring", null, ["a"]],
  ["Spring", null, ["b"]],
  ["Group", null, []],
  ["Inside", "Group", ["c"]],
  ...Array.from({ length: MANY }, (_, at) => [`Option ${at}`, null, [`id ${at}`, "shared"]]),
];

test("many new options are planned as rows beside changes that depend on each other, and all are made", async () => {
  const { service, read, there, plan, desired } = await planMany();
  const parts = [...planDesired(asPlanned(plan, there)).steps.parts()];
  const rows = parts.reduce((sum, part) => sum + (part instanceof RowBlock ? part.length : 0), 0);
  expect(rows).toBe(MANY);
  expect(parts.filter((part) => !(part instanceof RowBlock))).toHaveLength(3);
  const run = await apply(plan, there, service);
  expect(run.status()).toBe("succeeded");
  expect(run.state.requests.sent).toBe(run.state.requests.planned);
  const after = await read();
  expect(new Set(shown(after).map((one) => JSON.stringify(one)))).toEqual(
    new Set(WANTED.map((one) => JSON.stringify(one))),
  );
  expect(planOf({ desired, there: after, prune: false, byName: false, thresholds: LOOSE }).items).toEqual([]);
});

test("a name that another change frees or gives is not planned as a row", async () => {
  const { there, plan } = await planMany();
  const changes = asPlanned(plan, there);
  const clash = plan.items.map((item) =>
    item.kind === "create" && item.name === "Option 7" ? { ...item, name: "Spring" } : item,
  );
  const rowsOf = (items: typeof clash) =>
    [...planDesired({ ...changes, items }).steps.parts()].flatMap((part) =>
      part instanceof RowBlock ? [...part.steps()].map(({ item }) => item.name) : [],
    );
  expect(rowsOf(plan.items.slice())).not.toContain("Spring");
  expect(rowsOf(clash)).not.toContain("Spring");
});

test("if the options may only fit after others are deleted, none is planned as a row", async () => {
  const { there, plan } = await planMany();
  const some = Array.from({ length: 100_000 - MANY }, (_, at) => [`${at}`, { name: `There ${at}` }] as const);
  const [option] = there.options;
  if (option === undefined) throw new Error("no option");
  const full = new Map(some.map(([id, { name }]) => [id, { ...option, name }]));
  const steps = planDesired({ ...asPlanned(plan, there), there: full }).steps;
  expect([...steps.parts()].some((part) => part instanceof RowBlock)).toBe(false);
});

test("lost answers and errors in the middle lose none and make none twice", async () => {
  const { service, read, there, plan } = await planMany();
  await service.faults([
    { on: "write", nth: 1, times: 1, kind: "status", status: 502, applied: true },
    { on: "write", nth: 3, times: 1, kind: "reset", applied: false },
  ]);
  let run = await apply(plan, there, service);
  for (let tries = 0; tries < 3 && run.status() !== "succeeded"; tries += 1) {
    run = (await service.changes.runs.resume(run.header.runId)) ?? run;
    await run.rest;
  }
  expect(run.status()).toBe("succeeded");
  const names = (await read()).options.map(({ name }) => name);
  expect(names).toHaveLength(MANY + 4);
  expect(new Set(names).size).toBe(MANY + 4);
});
