import { expect, test } from "vitest";
import { checkedReport, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

test("what was created without an answer, and then renamed or deleted by others, is not created again", async () => {
  const env = { TARGETING_MCP_CONFIRM: "off", TARGETING_MCP_RETRY_BUDGET_MS: "300" };
  const { client, sandbox, control } = await startSession({ env });
  const targetingId = await sandbox.targeting("Shop");
  const reset = { on: "addOptions", kind: "reset" };
  await control("/faults", {
    faults: [
      { ...reset, nth: 1, applied: true },
      { ...reset, nth: 2, times: 1000, applied: false },
    ],
  });
  const items = Array.from({ length: 40 }, (_, at) => ({ name: `Option ${at}`, contexts: [`c${at}`] }));
  const first = checkedReport(await client.callTool("bulk_add_options", { targetingId, items }));
  expect(first.counts).toMatchObject({ unknown: 40 });
  await sandbox.control("DELETE", "/faults");
  const listed = await client.callTool("list_options", { targetingId, search: "Option 1" });
  const ids =
    JSON.stringify(listed.structuredContent).match(/[0-9A-HJKMNP-TV-Z]{26}(?=","name":"Option 1[0-9]?")/g) ?? [];
  const send = (path: string, body: object) =>
    fetch(`${sandbox.url}/context-targeting/category/bulk/${path}`, {
      method: "POST",
      headers: { "x-api-key": "sandbox-key", "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  expect(ids.length).toBe(11);
  await send("update", { items: [{ _id: ids[0], name: "Renamed" }] });
  await send("delete", { ids: [ids[1]] });
  for (let times = 0; times < 2; times += 1) {
    const again = checkedReport(await client.callTool("resume_run", { runId: first.runId }));
    expect(again).toMatchObject({ status: "partial", counts: { succeeded: 38, unknown: 2 } });
    expect(again.failures).toMatchObject([
      { outcome: "unknown", count: 2, message: expect.stringContaining("it was renamed or deleted since") },
    ]);
  }
  const there = await client.callTool("get_targeting", { targetingId });
  expect(there.structuredContent).toMatchObject({ targeting: { optionCount: 39 } });
});
