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

/** A full page of List Options (management-api 8.1: 1,000), whatever is asked for, and no total. */
const PAGE = Array.from({ length: 1000 }, (_, number) => ({
  _id: `01JABCDEFGHJKMNPQR0000${String(number).padStart(4, "0")}`,
  name: `Option ${number}`,
  type: "atomic",
  contextCount: 1,
}));

test("a service that ignores offset and gives no total is told to the agent after a few reads", async () => {
  const stub = await startStub(() => ({ status: 200, json: { items: PAGE } }));
  const env = cleanEnvironment({
    TARGETING_API_URL: stub.url,
    TARGETING_API_KEY: "some-key",
    TARGETING_MCP_STATE_DIR: await mkdtemp(join(tmpdir(), "targeting-mcp-")),
    TARGETING_MCP_MODE: "live",
    TARGETING_MCP_LOG_LEVEL: "error",
  });
  const client = await CLIENTS["2025 client"]({ args: [COMMAND], env });
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
