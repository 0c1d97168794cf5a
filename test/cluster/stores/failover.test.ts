import { afterEach, expect, onTestFinished, test } from "vitest";
import { addFault, hold } from "../../support/hold.ts";
import { call, killAll, reportOf, restOf, runOf, startReplica, startService } from "../cluster.ts";
import { statement, testPostgres } from "../postgres.ts";

afterEach(killAll);

const stops =
  "a failover that lost entries stops the run as interrupted, with that reason, and no process goes on by itself";

test.each(["goes on", "dies with the primary", "is stopped after it"] as const)(
  `${stops}: its process %s`,
  async (fate) => {
    const postgres = await testPostgres();
    onTestFinished(() => postgres.stop());
    const service = await startService();
    onTestFinished(() => service.close());
    const store = await postgres.database();
    const settings = {
      TARGETING_MCP_STORE: store,
      TARGETING_MCP_MODE: "sandbox",
      TARGETING_MCP_SANDBOX_URL: service.url,
      TARGETING_MCP_WAIT_MS: "10000",
    };
    const [one, other] = [await startReplica(settings), await startReplica(settings)];
    const targetingId = await service.targeting("slow");
    const hurry = await addFault(service.url, { kind: "slow", delayMs: 500, on: "write", probability: 1 });
    const items = Array.from({ length: 400 }, (_, n) => ({
      name: `option ${n}`,
      contexts: Array.from({ length: 800 }, (_, at) => `${n}-${at}`),
    }));
    const { runId } = await runOf(one.url, "bulk_add_options", { targetingId, items });
    const entries = async (): Promise<number> =>
      (await statement(store, `select seq::int from targeting_mcp.run where id = '${runId}'`)).rows[0]?.seq ?? 0;
    await expect.poll(entries).toBeGreaterThan(3);
    await postgres.cutOffStandby();
    const copied = await entries();
    await expect.poll(entries, { timeout: 30_000 }).toBeGreaterThan(copied + 3);
    // Holds all writes, so that the run cannot end before the failover, even on a slow machine.
    const release = await hold(service.url, "write");
    await hurry();
    if (fate === "dies with the primary") one.child.kill("SIGKILL");
    await postgres.failOver();
    if (fate === "is stopped after it") one.child.kill("SIGTERM");
    await release();
    for (const { url } of fate === "goes on" ? [one, other] : [other]) {
      const rest = await restOf(url, runId);
      expect(rest.status, JSON.stringify(rest)).toBe("interrupted");
      expect(JSON.stringify(rest)).toContain("lost confirmed entries");
      expect(JSON.stringify(rest)).toContain("look at what was applied");
    }
    expect(await entries()).toBeLessThan(copied + 3);
    // Another run, whose process dies, is taken up. So by then the processes have looked for runs to take up, and had the
    // right to take one.
    const third = await startReplica({ ...settings, TARGETING_MCP_WAIT_MS: "300" });
    // Whether a lone targeting was created by a request without an answer cannot always be told, so this adds an option.
    const another = await service.targeting("another");
    const releaseAgain = await hold(service.url, "write");
    const left = await runOf(third.url, "bulk_add_options", { targetingId: another, items: [{ name: "left" }] });
    third.child.kill("SIGKILL");
    await releaseAgain();
    await expect.poll(async () => (await restOf(other.url, left.runId)).status, { timeout: 60_000 }).toBe("succeeded");
    expect(reportOf(await call(other.url, "get_run", { runId })).status).toBe("interrupted");
  },
);
