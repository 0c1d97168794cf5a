import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import {
  call,
  isLong,
  optionItems,
  reportOf,
  restOf,
  runOf,
  startReplica,
  startService,
  startWorker,
  withPostgres,
} from "./cluster.ts";
import { openServiceGate } from "./service-gate.ts";
import { type StoreProxy, storeProxy } from "./store-proxy.ts";

/** Longer than a lease lasts, and longer than a failed statement is retried. */
const AWAY_MS = 11_000;
/** How long after the loss of the store a request that was already sent may still arrive. */
const IN_FLIGHT_MS = 700;

const cluster = withPostgres();

/** How the connection to the store is lost, and how it is restored. */
type Away = Readonly<Record<"go" | "back", (way: StoreProxy) => Promise<void> | void>>;
const AWAY: Readonly<Record<string, Away>> = {
  killed: { go: () => cluster.postgres.kill(), back: () => cluster.postgres.start() },
  "cut off": { go: (way) => way.cut(), back: (way) => way.pass() },
  hanging: { go: (way) => way.hang(), back: (way) => way.pass() },
};

const statusOf = async (url: string, path: string): Promise<number> =>
  (await fetch(new URL(path, url), { signal: AbortSignal.timeout(10_000) })).status;

describe.runIf(isLong).each(Object.entries(AWAY))("a store that is %s", (_, { go, back }) => {
  test("lets no request leave, is told within ten seconds, and harms no run", async () => {
    const service = await startService();
    const gate = await openServiceGate(service.url);
    const way = await storeProxy(cluster.postgres.port);
    cluster.closing.push(way.close, gate.close, service.close);
    const settings = {
      TARGETING_MCP_STORE: way.through(await cluster.postgres.database()),
      TARGETING_MCP_MODE: "live",
      TARGETING_API_URL: gate.url,
      TARGETING_API_KEY: "sandbox-key",
      TARGETING_MCP_WAIT_MS: "20000",
    };
    const other = await startReplica({ ...settings, TARGETING_MCP_DRIVE: "off", TARGETING_MCP_WAIT_MS: "1000" });
    await startWorker(settings);
    const [mine, its] = [await service.targeting("Of the replica"), await service.targeting("Of the worker")];
    await service.faults({ kind: "slow", delayMs: 300, on: "write", probability: 1 });
    const [ofReplica, ofWorker] = [groups("Replica"), groups("Worker")];
    const driven = await runOf(other.url, "bulk_add_options", { targetingId: its, items: ofWorker });
    await expect.poll(() => gate.writes.length).toBeGreaterThan(1);
    // The replica starts only now, so that the worker executes the first run. A replica cancels its own runs even
    // without the store.
    const replica = await startReplica(settings);
    const isDoneByReplica = () => service.options(mine).then(({ length }) => length > 0);
    const waiting = call(replica.url, "bulk_add_options", { targetingId: mine, items: ofReplica });
    await expect.poll(isDoneByReplica).toBe(true);

    let isAway = true;
    // Restores the store for the next test even if this one fails.
    cluster.closing.unshift(() => isAway && back(way));
    await go(way);
    await delay(IN_FLIGHT_MS);
    const sent = gate.writes.length;
    const begin = Date.now();
    const calls: readonly [string, Record<string, unknown>][] = [
      ["bulk_add_options", { targetingId: mine, items: optionItems(3, "Later") }],
      ["get_run", { runId: driven.runId }],
      ["cancel_run", { runId: driven.runId }],
    ];
    for (const answer of await Promise.all(calls.map(([name, args]) => call(replica.url, name, args)))) {
      expect(answer).toMatchObject({ isError: true, structuredContent: { error: { errorCode: "STORE_UNAVAILABLE" } } });
      expect(JSON.stringify(answer.content)).toMatch(/TARGETING_MCP_STORE.*nothing was sent for this call/);
    }
    const answeredMs = Date.now() - begin;
    expect(answeredMs).toBeLessThan(10_000);
    expect([await statusOf(replica.url, "/healthz"), await statusOf(replica.url, "/readyz")]).toEqual([200, 503]);
    expect((await call(replica.url, "list_options", { targetingId: mine })).isError).not.toBe(true);
    await delay(AWAY_MS - (Date.now() - begin));
    expect(gate.writes.length).toBe(sent);

    await back(way);
    isAway = false;
    const begun = reportOf(await waiting);
    for (const [runId, targetingId, items] of [
      [begun.runId, mine, ofReplica],
      [driven.runId, its, ofWorker],
    ] as const) {
      expect(await restOf(other.url, runId)).toMatchObject({
        status: "succeeded",
        counts: { succeeded: items.length },
      });
      expect([...(await service.options(targetingId))].sort()).toEqual(items.map(({ name }) => name).sort());
    }
    await expect.poll(() => statusOf(replica.url, "/readyz"), { timeout: 10_000 }).toBe(200);
    process.stdout.write(`told after ${answeredMs} ms; ${sent} writes before, none meanwhile\n`);
  });
});

/** Returns groups that need six requests, each with its own Context ID. */
function groups(prefix: string) {
  return Array.from({ length: 900 }, (_, at) => {
    const name = `${prefix} ${at}`;
    return { name, type: "collection", contexts: [name] };
  });
}
