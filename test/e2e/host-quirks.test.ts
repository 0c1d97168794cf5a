import { expect, test } from "vitest";
import * as z from "zod";
import { OPENING, startCommand, toolCall } from "../support/server-process.ts";

// Hosts begin with a byte order mark, send null and empty texts for what was not given, and change the case of IDs.

const answered = z.object({
  result: z.object({ isError: z.boolean().optional(), structuredContent: z.looseObject({}) }),
});
const created = z.object({ results: z.array(z.object({ _id: z.string() })) });

test("a host that fills every argument is served as one that fills those it means", async () => {
  const command = startCommand([]);
  const [open, ...others] = OPENING;
  command.send(`\uFEFF${JSON.stringify(open)}`);
  for (const message of others) command.send(message);
  let calls = 0;
  const call = async (name: string, args: unknown) => {
    calls += 1;
    command.send(toolCall(calls, name, args));
    return answered.parse(await command.answer(calls)).result;
  };
  const targetings = await call("create_targetings", { items: [{ name: "Spring", options: null }], dryRun: null });
  const [targeting] = created.parse(targetings.structuredContent).results;
  const targetingId = targeting?._id.toLowerCase();
  const items = [
    { name: "Shoes", type: "Collection", children: [{ name: "Boots", contexts: null }], contexts: null, parent: null },
    { name: "Hats", type: "ATOMIC", contexts: ["hat"], children: null, exposeChildren: null, parentName: null },
  ];
  const added = await call("bulk_add_options", { targetingId, targetingName: "", items, file: "", onExisting: null });
  expect(added.structuredContent).toMatchObject({ status: "succeeded", counts: { items: 3 } });
  const all = { targetingId, targetingName: null, parent: "", search: "", contextIds: [], cursor: null, saveTo: "" };
  const listed = await call("list_options", { ...all, all: true, detail: "CONCISE", sortBy: null, empty: null });
  expect(listed.structuredContent).toMatchObject({ options: [{ name: "Shoes" }, { name: "Boots" }, { name: "Hats" }] });

  // Null for everything leaves Boots in its group; null by itself takes it out.
  const nothing = { _id: null, parent: null, parentName: null, exposeChildren: null };
  const renamed = { ...nothing, currentName: "Boots", name: "High boots" };
  await call("update_options", { targetingId, items: [renamed] });
  expect((await call("list_options", all)).structuredContent).toMatchObject({ options: [{ childCount: 1 }, {}] });
  const refused = await call("delete_options", { targetingId, ids: [], names: null, onlyEmpty: true });
  expect(refused.isError).toBe(true);
});
