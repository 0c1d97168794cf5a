// If thousands of items are refused for the same reason, the engine must not read a list or search the plan for each of
// them.
import { expect, test } from "vitest";
import * as z from "zod";
import { startService } from "../service.ts";

const journal = z.object({ requests: z.array(z.object({ operation: z.string() })) });

test("100 groups that each hold a name that is taken: the names are read once", async () => {
  const service = await startService();
  const targetingId = await service.targeting("Spring");
  const taken = Array.from({ length: 100 }, (_, group) => ({ name: `Taken ${group}` }));
  await service.run({ tool: "bulk_add_options", input: { targetingId, items: taken } });
  const items = taken.map(({ name }, group) => ({
    name: `Group ${group}`,
    children: [{ name: `Fine ${group}` }, { name }],
  }));
  const before = await reads();
  const result = await service.run({ tool: "bulk_add_options", input: { targetingId, items } });
  expect(result.counts).toEqual({ items: 300, succeeded: 200, failed: 100 });
  // One read for the newest option before the run, and one for the names.
  expect((await reads()) - before).toBe(2);

  async function reads(): Promise<number> {
    const { requests } = journal.parse(await service.control("GET", "/requests"));
    return requests.filter(({ operation }) => operation === "listOptions").length;
  }
});

test("a chain of 3,000 renames whose last name is taken fails as it is", async () => {
  const service = await startService();
  const targetingId = await service.targeting("Spring");
  const names = Array.from({ length: 3001 }, (_, number) => `Option ${number}`);
  await service.run({ tool: "bulk_add_options", input: { targetingId, items: names.map((name) => ({ name })) } });
  const options: string[] = [];
  for (let offset = 0; offset < names.length; offset += 1000) {
    const page = await service.api.listOptions(targetingId, { limit: 1000, offset });
    options.push(...page.items.map(({ _id }) => _id));
  }
  const items = options.slice(0, -1).map((_id, number) => ({ _id, name: `Option ${number + 1}` }));
  const result = await service.run({ tool: "update_options", input: { items } });
  expect(result.counts).toEqual({ items: 3000, failed: 3000 });
  expect(result.failures.map(({ reason }) => reason.code)).toEqual(["TARGETING_CATEGORY_NAME_DUPLICATE"]);
  expect(result.requests.sent).toBe(1);
});
