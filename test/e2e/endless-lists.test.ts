import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { startStub } from "../support/stub-server.ts";

const ID = "01JABCDEFGHJKMNPQRSTVWXYZ0";
const failed = z.object({ error: z.object({ message: z.string(), remedy: z.string().optional() }) });

/**
 * A full page of List Options (management-api 8.1: 1,000) without a total. The fake service answers each request with
 * it, so the list never ends.
 */
const PAGE = Array.from({ length: 1000 }, (_, number) => ({
  _id: `01JABCDEFGHJKMNPQR0000${String(number).padStart(4, "0")}`,
  name: `Option ${number}`,
  type: "atomic",
  contextCount: 1,
}));

/** Starts a server whose live service is at `url`. Returns its client. */
async function clientOf(url: string) {
  const env = cleanEnvironment({
    TARGETING_API_URL: url,
    TARGETING_API_KEY: "some-key",
    TARGETING_MCP_STATE_DIR: await mkdtemp(join(tmpdir(), "targeting-mcp-")),
    TARGETING_MCP_MODE: "live",
    TARGETING_MCP_LOG_LEVEL: "error",
  });
  return CLIENTS["2025 client"]({ args: [COMMAND], env });
}

test("a service that ignores offset and gives no total is told to the agent after a few reads", async () => {
  const stub = await startStub(() => ({ status: 200, json: { items: PAGE } }));
  const client = await clientOf(stub.url);
  const calls = [
    ["update_contexts", { targetingId: ID, items: [{ name: "Nowhere", add: ["x"] }] }],
    ["bulk_add_options", { targetingId: ID, items: [{ name: "New" }], onExisting: "skip" }],
    ["bulk_add_options", { targetingId: ID, items: [{ name: "New", parentName: "Nowhere" }] }],
    ["delete_options", { targetingId: ID, names: ["Nowhere"] }],
    ["list_options", { targetingId: ID, search: "Nowhere" }],
  ] as const;
  for (const [tool, args] of calls) {
    const before = stub.received.length;
    const result = await client.callTool(tool, args);
    expect(result.isError).toBe(true);
    const { error } = failed.parse(result.structuredContent);
    expect(error.message).toContain("the same page of a list again");
    expect(error.remedy).toContain("TARGETING_MCP_ROUTES");
    expect(stub.received.length - before).toBeLessThanOrEqual(3);
  }
  expect(stub.received.every(({ method }) => method === "GET")).toBe(true);
});

const listed = z.object({ options: z.array(z.object({ _id: z.string() })), cursor: z.string().optional() });

test("a list whose IDs end alike is read to its end, page by page", async () => {
  const options = Array.from({ length: 6 }, (_, number) => ({
    _id: `01JABCDEFGHJKMNPQ${number}QRSTVWXY`,
    name: `Option ${number}`,
    type: "atomic",
    contextCount: 1,
  }));
  const stub = await startStub(({ url }) => {
    const { searchParams } = new URL(url, "http://localhost");
    const [offset, limit] = [Number(searchParams.get("offset")), Number(searchParams.get("limit"))];
    return { status: 200, json: { items: options.slice(offset, offset + limit), total: options.length } };
  });
  const client = await clientOf(stub.url);
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.callTool("list_options", { targetingId: ID, limit: 2, ...(cursor && { cursor }) });
    expect(page.isError).toBeFalsy();
    const part = listed.parse(page.structuredContent);
    found.push(...part.options.map(({ _id }) => _id));
    cursor = part.cursor;
  } while (cursor !== undefined);
  expect(found).toEqual(options.map(({ _id }) => _id));
});

test("a plain list that gives the same page for every offset is told to the agent with the second page", async () => {
  const stub = await startStub(() => ({ status: 200, json: { items: PAGE.slice(0, 2), total: 6 } }));
  const client = await clientOf(stub.url);
  const first = listed.parse((await client.callTool("list_options", { targetingId: ID, limit: 2 })).structuredContent);
  const again = await client.callTool("list_options", { targetingId: ID, limit: 2, cursor: first.cursor });
  expect(again.isError).toBe(true);
  expect(failed.parse(again.structuredContent).error.message).toContain("the same page of a list again");
});
