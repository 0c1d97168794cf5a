import { expect, test } from "vitest";
import { call, optionItems, reportOf, restOf, runOf, startReplica, withService } from "./cluster.ts";

/**
 * How long a read takes while plans are made. This is longer than a call waits, so planning continues in the
 * background.
 */
const SLOW_MS = 3000;

const cluster = withService({ TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_WAIT_MS: "500" });

/**
 * Starts two replicas, and adds options to a targeting through one of them. From then on, reads of the service are
 * slow.
 */
async function slowlyPlanned() {
  const [one, other] = [await startReplica(cluster.settings), await startReplica(cluster.settings)];
  const targetingId = await cluster.service.targeting("Spring");
  const { runId: added } = await runOf(one.url, "bulk_add_options", { targetingId, items: optionItems(3) });
  expect(await restOf(one.url, added)).toMatchObject({ status: "succeeded" });
  await cluster.service.faults({ kind: "slow", on: "listOptions", delayMs: SLOW_MS, times: 100 });
  const desired = { version: 1, targeting: { _id: targetingId }, options: [{ name: "New", contexts: ["new"] }] };
  return { one, other, added, desired };
}

test("a plan that one replica makes is running on another one, until it is there; a way back as well", async () => {
  const { one, other, added, desired } = await slowlyPlanned();
  for (const [tool, args] of [
    ["plan_targeting", { desired }],
    ["undo_run", { runId: added }],
  ] as const) {
    const { runId, status } = await runOf(one.url, tool, args);
    expect(status).toBe("running");
    expect(reportOf(await call(other.url, "get_run", { runId })).status).toBe("running");
    const listed = await call(other.url, "get_run", { limit: 1 });
    expect(listed.structuredContent).toMatchObject({ runs: [{ runId, tool, status: "running" }] });
    const early = await call(other.url, "apply_plan", { runId });
    expect(JSON.stringify(early.content)).toContain("is still being made");
    expect((await restOf(other.url, runId)).status).toBe("planned");
    expect((await restOf(one.url, runId)).status).toBe("planned");
    await call(other.url, "cancel_run", { runId });
  }
});

test("a plan that one replica makes is cancelled by another one", async () => {
  const { one, other, desired } = await slowlyPlanned();
  const { runId } = await runOf(one.url, "plan_targeting", { desired });
  expect(reportOf(await call(other.url, "cancel_run", { runId })).status).toBe("cancelled");
  expect((await restOf(one.url, runId)).status).toBe("cancelled");
});

test("a plan whose replica was killed is interrupted, and made again by another one", async () => {
  const { one, other, desired } = await slowlyPlanned();
  const { runId } = await runOf(one.url, "plan_targeting", { desired });
  one.child.kill("SIGKILL");
  expect((await restOf(other.url, runId)).status).toBe("interrupted");
  expect(reportOf(await call(other.url, "resume_run", { runId })).status).toBe("running");
  expect((await restOf(other.url, runId)).status).toBe("planned");
});
