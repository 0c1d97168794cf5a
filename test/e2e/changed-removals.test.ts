import { expect, test } from "vitest";
import { checkedReport, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const env = {
  TARGETING_MCP_CONFIRM: "off",
  TARGETING_MCP_RETRY_BUDGET_MS: "300",
  TARGETING_MCP_REQUEST_TIMEOUT_MS: "500",
};
const ids = (count: number) => Array.from({ length: count }, (_, at) => `c${at}`);

/** Makes a call while the service takes no write, changes something, and resumes the run. */
async function resumed(tool: string, args: object, change: Change, fault: object) {
  const session = await startSession({ env });
  const { client, sandbox, control } = session;
  const targetingId = await sandbox.targeting("Shop");
  const [one = "", two = ""] = await sandbox.options(targetingId, [
    { name: "One", contexts: ids(2) },
    { name: "Two", contexts: ids(150) },
  ]);
  const call = JSON.parse(
    JSON.stringify(args, (_, value) => ({ $one: one, $two: two, $shop: targetingId })[String(value)] ?? value),
  );
  await control("/faults", { faults: [{ on: "write", nth: 1, times: 1000, ...fault }] });
  const first = checkedReport(await client.callTool(tool, call));
  expect(first.counts.succeeded).toBe(0);
  await fetch(`${sandbox.url}/_sandbox/faults`, { method: "DELETE" });
  await change({ ...session, targetingId });
  const again = checkedReport(await client.callTool("resume_run", { runId: first.runId }));
  const there = await client.callTool("list_options", { targetingId });
  return { again, there: there.structuredContent };
}

type Session = Awaited<ReturnType<typeof startSession>> & { readonly targetingId: string };
type Change = (session: Session) => Promise<void>;

const add = (name: string, count: number) => async (session: Session) => {
  const contexts = Array.from({ length: count }, (_, at) => `new${at}`);
  const report = checkedReport(
    await session.client.callTool("bulk_add_options", {
      targetingId: session.targetingId,
      items: [{ name, contexts }],
      onExisting: "addContexts",
    }),
  );
  expect(report.status).toBe("succeeded");
};

const BUSY = { kind: "status", status: 503, applied: false };
const LOST = { kind: "reset", applied: false };

test.each([BUSY, LOST])("a resumed deletion leaves what has changed since, and says so (%o)", async (fault) => {
  const { again, there } = await resumed("delete_options", { ids: ["$one", "$two"] }, add("One", 200), fault);
  expect(again).toMatchObject({ status: "partial", counts: { items: 2, succeeded: 1, failed: 1 } });
  expect(again.failures).toMatchObject([
    {
      errorCode: "PLAN_STALE",
      message: expect.stringContaining("expected to have 2 Context IDs, but has 202"),
      remedy: expect.stringContaining("Make the same call again"),
    },
  ]);
  expect(there).toMatchObject({ options: [{ name: "One", contextCount: 202 }] });
});

test.each([BUSY, LOST])("so does a resumed replacement of Context IDs (%o)", async (fault) => {
  const items = [{ _id: "$two", set: ["s1", "s2"] }];
  const { again, there } = await resumed("update_contexts", { items }, add("Two", 400), fault);
  expect(again).toMatchObject({ status: "failed", failures: [{ errorCode: "PLAN_STALE" }] });
  expect(there).toMatchObject({ options: [{}, { name: "Two", contextCount: 550 }] });
});

test("and a resumed deletion of a targeting", async () => {
  const more = async ({ client, targetingId }: Session) => {
    await client.callTool("bulk_add_options", { targetingId, items: [{ name: "Three" }] });
  };
  const { again, there } = await resumed("delete_targeting", { targetingId: "$shop" }, more, BUSY);
  expect(again.failures).toMatchObject([{ message: expect.stringContaining("have 2 options, but has 3") }]);
  expect(there).toMatchObject({ options: [{}, {}, { name: "Three" }] });
});

test("what has not changed is removed as it was approved", async () => {
  const { again, there } = await resumed("delete_options", { ids: ["$one", "$two"] }, async () => undefined, BUSY);
  expect(again).toMatchObject({ status: "succeeded", counts: { succeeded: 2 } });
  expect(there).toMatchObject({ options: [] });
});
