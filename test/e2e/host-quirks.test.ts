import { expect, test } from "vitest";
import * as z from "zod";
import { OPENING, startCommand, toolCall } from "../support/server-process.ts";

// Some hosts send a byte order mark first, null or an empty text for arguments that were not set, and IDs in another
// case.

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

  // If all fields are null, they count as not set, so Boots stays in its group. A `parent` that alone is null moves it
  // out.
  const nothing = { _id: null, parent: null, parentName: null, exposeChildren: null };
  const renamed = { ...nothing, currentName: "Boots", name: "High boots" };
  await call("update_options", { targetingId, items: [renamed] });
  expect((await call("list_options", all)).structuredContent).toMatchObject({ options: [{ childCount: 1 }, {}] });
  const refused = await call("delete_options", { targetingId, ids: [], names: null, onlyEmpty: true });
  expect(refused.isError).toBe(true);
});

test.each([
  ["a broken number as its ID", 1.5, { method: "ping" }],
  ["a list as its parameters", 9, { method: "ping", params: [] }],
  ["a number as its method", "9", { method: 5 }],
  ["a broken progress token", 9, { method: "tools/list", params: { _meta: { progressToken: 1.5 } } }],
  ["an unreadable request to listen", 9, { method: "subscriptions/listen", params: 5 }],
])("a request with %s is answered with what is wrong", async (_what, id, rest) => {
  const command = startCommand([]);
  for (const message of OPENING) command.send(message);
  command.send({ jsonrpc: "2.0", id, ...rest });
  const error = { code: -32_600, message: expect.stringContaining("a text or a whole number") };
  expect(await command.answer(id)).toMatchObject({ error });
  command.send({ jsonrpc: "2.0", id: 10, method: "ping" });
  expect(await command.answer(10)).toMatchObject({ result: {} });
});

test("a request to listen that comes first and is cancelled at once has no effect", async () => {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "by-hand", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const command = startCommand([]);
  const notifications = { toolsListChanged: true };
  command.send({ jsonrpc: "2.0", id: 1, method: "subscriptions/listen", params: { notifications, _meta } });
  command.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
  for (const id of [2, 3]) {
    command.send({ jsonrpc: "2.0", id, method: "tools/list", params: { _meta } });
    expect(await command.answer(id)).toMatchObject({ result: { resultType: "complete" } });
  }
  expect(command.lines.join("\n")).not.toContain("notifications/subscriptions");
});

test("each request of a batch is answered", async () => {
  const command = startCommand([]);
  for (const message of OPENING) command.send(message);
  command.send([8, 9].map((id) => ({ jsonrpc: "2.0", id, method: "ping" })));
  for (const id of [8, 9]) expect(await command.answer(id)).toMatchObject({ result: {} });
});
