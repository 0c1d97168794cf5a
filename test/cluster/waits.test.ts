import { expect, test } from "vitest";
import { call, optionItems, reportOf, restOf, startReplica, withService } from "./cluster.ts";
import { type StoreProxy, storeProxy } from "./store-proxy.ts";

const cluster = withService({ TARGETING_MCP_CONFIRM: "ask" });

/** How the connection to the store is lost. */
const AWAY = {
  hung: (way: StoreProxy) => way.hang(),
  "cut off": (way: StoreProxy) => way.cut(),
} as const;

test.for(["hung", "cut off"] as const)(
  "every call of a replica whose store is %s answers with its wait, before any that may wait for longer",
  async (how) => {
    const way = await storeProxy(cluster.postgres.port);
    cluster.closing.push(way.close);
    const behind = { ...cluster.settings, TARGETING_MCP_STORE: way.through(cluster.store) };
    const short = await startReplica({ ...behind, TARGETING_MCP_WAIT_MS: "1000" });
    const long = await startReplica({ ...behind, TARGETING_MCP_WAIT_MS: "4000" });
    const targetingId = await cluster.service.targeting("Away");
    const made = reportOf(await call(short.url, "bulk_add_options", { targetingId, items: optionItems(3) }));
    const { runId } = made.status === "running" ? await restOf(short.url, made.runId) : made;
    AWAY[how](way);
    const answered: string[] = [];
    const calls: readonly [string, Record<string, unknown>][] = [
      ["bulk_add_options", { targetingId, items: optionItems(3, "later") }],
      ["delete_targeting", { ids: [targetingId] }],
      ["get_run", { runId }],
      ["get_run", {}],
      ["cancel_run", { runId }],
      ["resume_run", { runId }],
      ["undo_run", { runId }],
    ];
    const asked = ([wait, url]: readonly [string, string]) =>
      calls.map(async ([name, args]) => {
        const answer = await call(url, name, args);
        answered.push(wait);
        return answer;
      });
    const both = [["long", long.url] as const, ["short", short.url] as const];
    for (const answer of await Promise.all(both.flatMap(asked))) {
      expect(answer).toMatchObject({ isError: true, structuredContent: { error: { errorCode: "STORE_UNAVAILABLE" } } });
    }
    expect(answered).toEqual([...calls.map(() => "short"), ...calls.map(() => "long")]);
  },
);

test("a call whose run goes on answers running, although the store is away by the end of its wait", async () => {
  const way = await storeProxy(cluster.postgres.port);
  cluster.closing.push(way.close);
  const settings = { ...cluster.settings, TARGETING_MCP_STORE: way.through(cluster.store) };
  const one = await startReplica({ ...settings, TARGETING_MCP_WAIT_MS: "4000" });
  const targetingId = await cluster.service.targeting("Running");
  await cluster.service.faults({ kind: "slow", delayMs: 20_000, on: "write", probability: 1 });
  const calling = call(one.url, "bulk_add_options", { targetingId, items: optionItems(3) });
  await expect.poll(() => cluster.gate.writes.length).toBe(1);
  way.hang();
  expect(reportOf(await calling).status).toBe("running");
});
