import { describe, expect, test } from "vitest";
import { startService } from "./service.ts";

const names = (count: number, prefix = "Option"): string[] =>
  Array.from({ length: count }, (_, number) => `${prefix} ${number + 1}`);
const ids = (count: number, prefix = "article"): string[] =>
  Array.from({ length: count }, (_, number) => `${prefix}-${number + 1}`);

describe("adding options", () => {
  test("12,000 options leave in 3 requests, and bad ones fail alone", async () => {
    const service = await startService();
    const targetingId = await service.targeting("Spring");
    const items = names(12_000).map((name) => ({ name, contexts: [] as string[] }));
    items.push({ name: "Option 7", contexts: [] }, { name: "bad_name", contexts: [] });
    const result = await service.run({ tool: "bulk_add_options", input: { targetingId, items } });
    expect(result.counts).toEqual({ items: 12_002, succeeded: 12_000, failed: 2 });
    expect(result.status).toBe("partial");
    expect(result.requests).toMatchObject({ planned: 3, sent: 3, resent: 0 });
    expect(result.failures.map(({ reason, indexes }) => [reason.code, indexes])).toEqual([
      ["DUPLICATE_IN_INPUT", [12_000]],
      ["INVALID_NAME", [12_001]],
    ]);
    const page = await service.api.listOptions(targetingId, { limit: 1 });
    expect(page.total).toBe(12_000);
  });

  test("23,000 Context IDs of one option arrive completely", async () => {
    const service = await startService();
    const targetingId = await service.targeting("Spring");
    const items = [{ name: "Articles", contexts: ids(23_000) }];
    const result = await service.run({ tool: "bulk_add_options", input: { targetingId, items } });
    expect(result).toMatchObject({ status: "succeeded", counts: { items: 1, succeeded: 1 }, requests: { sent: 3 } });
    const page = await service.api.listOptions(targetingId, {});
    expect(page.items[0]).toMatchObject({ name: "Articles", contextCount: 23_000 });
  });

  test("a group travels with its sub-options, those that name it included; what does not fit follows", async () => {
    const service = await startService();
    const targetingId = await service.targeting("Spring");
    const items = [
      { name: "Late child", parentName: "Seasonal" },
      { name: "Seasonal", children: names(5100, "Child").map((name) => ({ name })) },
      { name: "Alone" },
    ];
    const result = await service.run({ tool: "bulk_add_options", input: { targetingId, items } });
    expect(result.counts).toEqual({ items: 5103, succeeded: 5103 });
    const page = await service.api.listOptions(targetingId, {});
    expect(page.items.map(({ name, childCount }) => [name, childCount])).toEqual([
      ["Seasonal", 5101],
      ["Alone", undefined],
    ]);
    expect(result.results.every(({ _id }) => _id !== undefined)).toBe(true);
  });
});

describe("changes that depend on each other", () => {
  test("a long set keeps what stays and crosses no limit", async () => {
    const service = await startService();
    const targetingId = await service.targeting("Spring");
    const items = [{ name: "Articles", contexts: ids(30_000, "old") }];
    const made = await service.run({ tool: "bulk_add_options", input: { targetingId, items } });
    const _id = made.results[0]?._id ?? "";
    const set = [...ids(5000, "old"), ...ids(44_000, "new")];
    const result = await service.run({ tool: "update_contexts", input: { items: [{ _id, set }] } });
    expect(result.counts).toEqual({ items: 1, succeeded: 1 });
    const after = await service.api.getOption(_id, { limit: 1 });
    expect(after.option.contextCount).toBe(49_000);
  });

  test("groups are deleted with their sub-options, more than a request takes", async () => {
    const service = await startService();
    const targetingId = await service.targeting("Spring");
    const items = [{ name: "Group", children: names(200, "Child").map((name) => ({ name })) }];
    const made = await service.run({ tool: "bulk_add_options", input: { targetingId, items } });
    const all = made.results.flatMap(({ _id }) => _id ?? []);
    const result = await service.run({ tool: "delete_options", input: { ids: all } });
    expect(result.counts).toEqual({ items: 201, succeeded: 201 });
    expect(result.requests.sent).toBe(2);
  });

  test("a targeting with more options than a create request takes", async () => {
    const service = await startService();
    const items = [{ name: "Big", options: names(250).map((name) => ({ name })) }, { name: "Small" }];
    const result = await service.run({ tool: "create_targetings", input: { items } });
    expect(result.counts).toEqual({ items: 252, succeeded: 252 });
    expect(result.requests.sent).toBe(2);
  });

  test("what is made inside a targeting or a group is told by its ID", async () => {
    const service = await startService();
    const group = (name: string, count: number) => ({
      name,
      children: names(count).map((child) => ({ name: `${name} ${child}` })),
    });
    const options = [{ name: "Plain" }, group("Small", 2), group("One", 1)];
    const targetings = await service.run({
      tool: "create_targetings",
      input: { items: [{ name: "Spring", options }, { name: "Bare" }] },
    });
    const targetingId = targetings.results[0]?._id ?? "";
    const items = [group("Large", 60), group("Middle", 3), group("Another", 3), group("Lonely", 1)];
    const groups = await service.run({ tool: "bulk_add_options", input: { targetingId, items } });
    expect([targetings.counts, groups.counts]).toMatchObject([{ succeeded: 8 }, { succeeded: 71 }]);
    for (const { _id = "", name, child } of [...targetings.results, ...groups.results]) {
      const isOption = child !== undefined || groups.results.some((result) => result._id === _id);
      const there = isOption ? (await service.api.getOption(_id)).option : await service.api.getTargeting(_id);
      expect(there.name).toBe(name);
    }
  });
});
