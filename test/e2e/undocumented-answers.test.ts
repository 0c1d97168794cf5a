import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, call, textOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { startService } from "../support/service.ts";
import { startStub } from "../support/stub-server.ts";

// The API documents do not say in which order a group lists its sub-options, nor what the default of exposeChildren is.
const sent = z.looseObject({
  items: z.array(z.looseObject({ children: z.array(z.looseObject({ name: z.string() })).optional() })),
});
const answered = z.looseObject({
  results: z.array(z.looseObject({ data: z.looseObject({ children: z.array(z.string()).optional() }).optional() })),
});
const undo = z.looseObject({ runId: z.string(), undo: z.record(z.string(), z.number()) });

const GROUPS = [
  { name: "First", children: [{ name: "Ball", contexts: ["b"] }, { name: "Climbing" }] },
  { name: "Second", children: [{ name: "Zoo" }, { name: "Art", contexts: ["a", "c"] }] },
  { name: "Alone" },
];

/** Starts the built command with a service that lists sub-options by name and shows the sub-options of new groups. */
async function session() {
  const sandbox = await startService();
  const lists: { areBroken: boolean; firstIsBroken: boolean; first?: string } = {
    areBroken: false,
    firstIsBroken: false,
  };
  const service = await startStub((request) => (response) => {
    const parent = /parent=(\w+)/.exec(request.url)?.[1];
    if (parent !== undefined) lists.first ??= parent;
    const isBroken = lists.areBroken || (lists.firstIsBroken && parent === lists.first);
    if (isBroken && request.method === "GET" && /\/category\?/.test(request.url)) {
      response.writeHead(503).end("{}");
      return;
    }
    answer(sandbox.url, request)
      .then(({ status, text }) => response.writeHead(status, { "content-type": "application/json" }).end(text))
      .catch(() => response.destroy());
  });
  const env = cleanEnvironment({
    ...{ ...sandbox.live, TARGETING_API_URL: service.url },
    ...{ TARGETING_MCP_CONFIRM: "off", TARGETING_MCP_RETRY_BUDGET_MS: "300" },
  });
  return { sandbox, lists, client: await CLIENTS["2026 client, legacy"]({ args: [COMMAND], env }) };
}

async function answer(service: string, { url, method, body }: { url: string; method: string; body: string }) {
  const headers = { "x-api-key": "sandbox-key", "content-type": "application/json" };
  const isAdd = url.endsWith("/category/bulk/create");
  const items = isAdd ? sent.parse(JSON.parse(body)).items : [];
  const shown = items.map((item) => (item.children === undefined ? item : { exposeChildren: true, ...item }));
  const forwarded = isAdd ? JSON.stringify({ items: shown }) : body;
  const given = await fetch(service + url, { method, headers, ...(method === "GET" ? {} : { body: forwarded }) });
  const text = await given.text();
  if (!isAdd) return { status: given.status, text };
  const whole = answered.parse(JSON.parse(text));
  for (const [at, { data }] of whole.results.entries()) {
    const names = items[at]?.children?.map(({ name }) => name) ?? [];
    const byName = names.map((name, position) => ({ name, id: data?.children?.[position] ?? "" }));
    if (data?.children) data.children = byName.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(({ id }) => id);
  }
  return { status: given.status, text: JSON.stringify(whole) };
}

test("each sub-option is reported with its own ID, although the first group is listed in the sent order", async () => {
  const { sandbox, client } = await session();
  const targetingId = await sandbox.targeting("News");
  const items = [
    { name: "First", children: [{ name: "Ball" }, { name: "Climbing" }] },
    { name: "Second", children: [{ name: "Zoo" }, { name: "Art" }] },
  ];
  const { results } = await call(client, "bulk_add_options", { targetingId, items });
  expect(results).toHaveLength(6);
  for (const { _id, name } of results) {
    const { structuredContent } = await client.callTool("get_option", { optionId: _id });
    expect(structuredContent).toMatchObject({ option: { _id, name } });
  }
});

test("no sub-option gets the ID of another one if the list of one group cannot be read", async () => {
  const { sandbox, lists, client } = await session();
  const targetingId = await sandbox.targeting("News");
  lists.firstIsBroken = true;
  const { results } = await call(client, "bulk_add_options", { targetingId, items: GROUPS });
  const known = results.filter(({ _id }) => _id !== "");
  expect(known.length).toBe(5);
  for (const { _id, name } of known) {
    const { structuredContent } = await client.callTool("get_option", { optionId: _id });
    expect(structuredContent).toMatchObject({ option: { _id, name } });
  }
});

test("a new group is undone, although the service has set exposeChildren by itself", async () => {
  const { sandbox, client } = await session();
  const targetingId = await sandbox.targeting("News");
  const items = [{ name: "Group", children: [{ name: "Inside" }] }];
  const { runId } = await call(client, "bulk_add_options", { targetingId, items });
  const planned = await client.callTool("undo_run", { runId });
  expect(undo.parse(planned.structuredContent).undo).toMatchObject({ exact: 2, notOurs: 0 });
});

test.each([
  { tool: "bulk_add_options", args: (targetingId: string) => ({ targetingId, items: GROUPS }), exact: 7, left: 0 },
  {
    tool: "create_targetings",
    args: () => ({ items: [{ name: "Shop", options: GROUPS }] }),
    exact: 8,
    left: undefined,
  },
])("what was created is undone, although its IDs could not be read: $tool", async ({ tool, args, exact, left }) => {
  const { sandbox, lists, client } = await session();
  const targetingId = await sandbox.targeting("News");
  lists.areBroken = true;
  const { runId, results } = await call(client, tool, args(targetingId));
  expect(results.filter(({ _id }) => _id === "").length).toBeGreaterThan(3);
  lists.areBroken = false;
  const planned = await client.callTool("undo_run", { runId });
  expect(undo.parse(planned.structuredContent).undo).toMatchObject({ exact, notOurs: 0 });
  const { runId: planId } = undo.parse(planned.structuredContent);
  expect(await call(client, "apply_plan", { runId: planId })).toMatchObject({ status: "succeeded" });
  const [made = { _id: "" }] = results;
  const there = await client.callTool("get_targeting", { targetingId: left === undefined ? made._id : targetingId });
  expect(there.structuredContent ?? {}).toMatchObject(left === undefined ? {} : { targeting: { optionCount: left } });
});

test("an undo names a created option whose ID could not be read and whose name has changed", async () => {
  const { sandbox, lists, client } = await session();
  const targetingId = await sandbox.targeting("News");
  lists.areBroken = true;
  const { runId } = await call(client, "bulk_add_options", { targetingId, items: GROUPS });
  lists.areBroken = false;
  await call(client, "update_options", { targetingId, items: [{ currentName: "Ball", name: "Football" }] });
  const planned = await client.callTool("undo_run", { runId });
  const { impossible = 0, notOurs = 0 } = undo.parse(planned.structuredContent).undo;
  // The renamed option is in the group, so the undo keeps the group, too.
  expect({ impossible, notOurs }).toEqual({ impossible: 1, notOurs: 1 });
  expect(textOf(planned)).toMatch(/"Ball".*its ID could not be read, and no single option has its name and group now/s);
  await call(client, "apply_plan", { runId: undo.parse(planned.structuredContent).runId });
  await call(client, "update_options", { targetingId, items: [{ currentName: "Football", name: "Ball" }] });
  const again = await client.callTool("undo_run", { runId });
  expect(undo.parse(again.structuredContent).undo).toMatchObject({ exact: 2, impossible: 0, notOurs: 0 });
});
