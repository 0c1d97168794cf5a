// Chains, swaps and cycles of renames need only a few requests, however many names there are.
import { expect, test } from "vitest";
import { startService } from "../service.ts";

async function serviceWith(count: number) {
  const service = await startService();
  const targetingId = await service.targeting("Spring");
  const items = Array.from({ length: count }, (_, number) => ({ name: `Option ${number}` }));
  await service.run({ tool: "bulk_add_options", input: { targetingId, items } });
  return { service, targetingId, options: await optionsOf(service, targetingId) };
}

/** Returns the names of options by ID, in the order of their creation. */
async function optionsOf({ api }: Awaited<ReturnType<typeof startService>>, targetingId: string) {
  const names = new Map<string, string>();
  for (let more = true; more; ) {
    const page = await api.listOptions(targetingId, { limit: 1000, offset: names.size });
    for (const { _id, name } of page.items) names.set(_id, name);
    more = page.items.length > 0;
  }
  return names;
}

test.each([
  ["a chain, each the name of the next one", 2000, (at: number) => at + 1, 2],
  ["pairs that swap", 600, (at: number) => at ^ 1, 3],
  ["one circle", 2000, (at: number) => (at + 1) % 2000, 3],
  [
    "two circles and a chain",
    900,
    (at: number) => (at < 300 ? (at + 7) % 300 : at < 600 ? 300 + (at % 300 === 0 ? 299 : (at % 300) - 1) : at + 1),
    3,
  ],
])("%s", async (_, count, next, requests) => {
  const { service, targetingId, options } = await serviceWith(count);
  const items = [...options.keys()].map((_id, at) => ({ _id, name: `Option ${next(at)}` }));
  const result = await service.run({ tool: "update_options", input: { items } });
  expect(result.counts).toEqual({ items: count, succeeded: count });
  expect(result.requests.sent).toBeLessThanOrEqual(requests);
  const now = await optionsOf(service, targetingId);
  for (const { _id, name } of items) expect(now.get(_id)).toBe(name);
});

test("a chain of targetings over several requests", async () => {
  const service = await startService();
  const targetings = Array.from({ length: 250 }, (_, number) => ({ name: `Targeting ${number}` }));
  const made = await service.run({ tool: "create_targetings", input: { items: targetings } });
  const items = made.results.map(({ _id = "" }, at) => ({ _id, name: `Targeting ${at + 1}` }));
  const result = await service.run({ tool: "rename_targetings", input: { items } });
  expect(result.counts).toEqual({ items: 250, succeeded: 250 });
  // The first three show which name is in the way of which. The third also renames the last targeting. Then three
  // rename the others in order.
  expect(result.requests.sent).toBe(6);
});
