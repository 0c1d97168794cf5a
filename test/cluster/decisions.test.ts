import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import * as z from "zod";
import { call, isLong, optionItems, reportOf, restOf, startReplica, startWorker, withService } from "./cluster.ts";
import { statement } from "./postgres.ts";

const CANCELLED_RUNS = 6;

const cluster = withService({ TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_WAIT_MS: "10000" });

const asked = z.looseObject({ confirmation: z.looseObject({ token: z.string() }) });

/** Requests the deletion of a targeting. Returns the confirmation token. */
async function tokenFrom(url: string, targetingId: string): Promise<string> {
  const { structuredContent } = await call(url, "delete_targeting", { ids: [targetingId] });
  return asked.parse(structuredContent).confirmation.token;
}

test("two confirmations at one instant on two replicas start one run, and both get its report", async () => {
  const [one, other] = [await startReplica(cluster.settings), await startReplica(cluster.settings)];
  for (let round = 0; round < 5; round += 1) {
    const confirmation = await tokenFrom(one.url, await cluster.service.targeting(`Gone ${round}`));
    const before = cluster.gate.writes.length;
    const both = await Promise.all([one, other].map(({ url }) => call(url, "delete_targeting", { confirmation })));
    const told = both.map((answer) => reportOf(answer));
    expect(told.map(({ status }) => status)).toEqual(["succeeded", "succeeded"]);
    expect(new Set(told.map(({ runId }) => runId)).size).toBe(1);
    expect(cluster.gate.writes.length - before).toBe(1);
  }
});

test("a token of a replica that is dead by now acts on any, and is used once", async () => {
  const [one, other, third] = await Promise.all([1, 2, 3].map(() => startReplica(cluster.settings)));
  if (one === undefined || other === undefined || third === undefined) throw new Error("three were started");
  const confirmation = await tokenFrom(one.url, await cluster.service.targeting("Gone"));
  one.child.kill("SIGKILL");
  const first = reportOf(await call(other.url, "delete_targeting", { confirmation }));
  const again = reportOf(await call(third.url, "delete_targeting", { confirmation }));
  expect([first.status, again.status, again.runId]).toEqual(["succeeded", "succeeded", first.runId]);
  expect(cluster.gate.writes).toHaveLength(1);
});

test.runIf(isLong)(
  "once cancel_run has answered on any replica, no request leaves whose intent was not in the store before",
  async () => {
    const replicas = [
      await startReplica({ ...cluster.settings, TARGETING_MCP_WAIT_MS: "500" }),
      await startReplica({ ...cluster.settings, TARGETING_MCP_DRIVE: "off" }),
    ];
    await startWorker(cluster.settings);
    await cluster.service.faults({ kind: "slow", delayMs: 400, on: "write", probability: 1 });
    const since: number[] = [];
    for (let run = 0; run < CANCELLED_RUNS; run += 1) {
      const targetingId = await cluster.service.targeting(`Cancelled ${run}`);
      const items = optionItems(3000, `${run}-`).map((item) => ({ ...item, type: "collection" }));
      const [one, other] = run % 2 === 0 ? replicas : replicas.toReversed();
      const before = cluster.gate.writes.length;
      const starting = call(one?.url ?? "", "bulk_add_options", { targetingId, items });
      await expect.poll(() => cluster.gate.writes.length, { interval: 5 }).toBeGreaterThan(before + 1);
      await delay(run * 67);
      const listed = z
        .looseObject({ runs: z.array(z.looseObject({ runId: z.string() })) })
        .parse((await call(other?.url ?? "", "get_run", { limit: 1 })).structuredContent);
      const runId = listed.runs[0]?.runId ?? "";
      await call(other?.url ?? "", "cancel_run", { runId });
      const answeredAt = new Date();
      await starting;
      const rest = await restOf(other?.url ?? "", runId);
      expect(rest.status).toBe("cancelled");
      const there = await cluster.service.options(targetingId);
      expect(there.length).toBe(rest.counts.succeeded);
      // Each entry that announces a request was stored before cancel_run answered, so no request was announced after
      // that.
      const announced = await statement(
        cluster.store,
        `select count(*)::int as n from targeting_mcp.entry, regexp_matches(convert_from(body, 'UTF8'), '"t":"send"', 'g')
       where run = '${runId}' and at <= '${answeredAt.toISOString()}'`,
      );
      const sent = cluster.gate.writes.length - before;
      expect(sent).toBeLessThanOrEqual(announced.rows[0]?.n);
      since.push(cluster.gate.writes.filter(({ at }) => at > answeredAt.getTime()).length);
    }
    process.stdout.write(
      `after the answer of cancel_run arrived: ${since.join(", ")} requests, all announced before\n`,
    );
  },
);
