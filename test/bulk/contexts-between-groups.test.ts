// A Context ID may be in one option group at a time: what leaves one group in a call is free for the others of the call.
import { expect, test } from "vitest";
import { startService } from "./service.ts";

async function serviceWith(count: number, contextsOf: (group: number) => string[], children = false) {
  const service = await startService();
  const targetingId = await service.targeting("Spring");
  const items = Array.from({ length: count }, (_, group) => ({
    name: `Group ${group}`,
    type: "collection" as const,
    contexts: contextsOf(group),
    ...(children && { children: [{ name: `Inside ${group}` }] }),
  }));
  const made = await service.run({ tool: "bulk_add_options", input: { targetingId, items } });
  const groups = made.results.flatMap(({ _id, child }) => (child === undefined ? [_id ?? ""] : []));
  const holdings = () =>
    Promise.all(groups.map(async (id) => [...(await service.api.getOption(id, { limit: 100 })).contexts].sort()));
  return { service, groups, holdings };
}

test.each(["add and remove", "set"])("groups pass Context IDs round, by %s", async (how) => {
  const { service, groups, holdings } = await serviceWith(60, (group) => [`x${group}`, `own${group}`]);
  const items = groups.map((_id, group) => {
    const next = `x${(group + 1) % 60}`;
    return how === "set" ? { _id, set: [next, `own${group}`] } : { _id, add: [next], remove: [`x${group}`] };
  });
  const result = await service.run({ tool: "update_contexts", input: { items } });
  expect(result.counts).toEqual({ items: 60, succeeded: 60 });
  expect(result.requests).toMatchObject({ planned: 2, sent: 2 });
  expect(await holdings()).toEqual(groups.map((_, group) => [`own${group}`, `x${(group + 1) % 60}`]));
});

test("two groups with sub-options swap all that they hold", async () => {
  const { service, groups, holdings } = await serviceWith(2, (group) => [`x${group}`], true);
  const items = groups.map((_id, group) => ({ _id, set: [`x${1 - group}`] }));
  const result = await service.run({ tool: "update_contexts", input: { items } });
  expect(result.counts).toEqual({ items: 2, succeeded: 2 });
  expect(await holdings()).toEqual([["x1"], ["x0"]]);
});

test("two groups that may not be empty cannot swap all that they hold, and keep it", async () => {
  const { service, groups, holdings } = await serviceWith(2, (group) => [`x${group}`]);
  const items = groups.map((_id, group) => ({ _id, set: [`x${1 - group}`] }));
  const result = await service.run({ tool: "update_contexts", input: { items } });
  expect(result.counts).toEqual({ items: 2, failed: 2 });
  expect(await holdings()).toEqual([["x0"], ["x1"]]);
});

test("where one of them is refused after the other took what it gave, nobody calls that failed", async () => {
  const { service, groups, holdings } = await serviceWith(3, (group) => [`x${group}`, `own${group}`]);
  const items = [
    { _id: groups[0] ?? "", add: ["x1"], remove: ["x0"] },
    // What the third one holds is not given away.
    { _id: groups[1] ?? "", add: ["x0", "own2"], remove: ["x1"] },
  ];
  const result = await service.run({ tool: "update_contexts", input: { items } });
  expect(result.results.map(({ outcome }) => outcome)).toEqual(["succeeded", "unknown"]);
  expect(await holdings()).toEqual([["own0", "x1"], ["own1"], ["own2", "x2"]]);
});
