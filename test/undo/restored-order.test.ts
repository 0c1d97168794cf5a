import { expect, test } from "vitest";
import * as z from "zod";
import { callsOf } from "../support/clients.ts";
import { warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const listed = z.object({ options: z.array(z.object({ name: z.string() })) });

test("the undo of a deleted targeting creates its options in their old order", async () => {
  const { client, sandbox } = await startSession({ env: { TARGETING_MCP_CONFIRM: "off" } });
  const call = callsOf(client);
  const names = async (targetingId: string) => {
    const given = await client.callTool("list_options", { targetingId, all: true });
    return listed.parse(given.structuredContent).options.map(({ name }) => name);
  };
  const targetingId = await sandbox.targeting("Shop");
  const children = [{ name: "In 1", contexts: ["i"] }, { name: "In empty" }, { name: "In 2", contexts: ["j"] }];
  await sandbox.options(targetingId, [
    { name: "Top 1", contexts: ["a"] },
    { name: "Empty 1" },
    { name: "Group", type: "collection", contexts: ["g"], children },
    { name: "Top 2", contexts: ["b"] },
    { name: "Empty 2" },
  ]);
  const order = ["Top 1", "Empty 1", "Group", "In 1", "In empty", "In 2", "Top 2", "Empty 2"];
  expect(await names(targetingId)).toEqual(order);
  await sandbox.slow("getOption", 300);
  let { runId } = await call("delete_targeting", { ids: [targetingId] });
  // The undo of the undo deletes the targeting again, so there are two undos that create it.
  for (const created of [true, false, true]) {
    ({ runId } = await call("undo_run", { runId }));
    const { status, results } = await call("apply_plan", { runId });
    expect(status).toBe("succeeded");
    if (created) expect(await names(results.find(({ name }) => name === "Shop")?._id ?? "")).toEqual(order);
  }
});
