import { expect, test } from "vitest";
import { call, optionItems, reportOf, restOf, runOf, startReplica, withService } from "./cluster.ts";
import { statement } from "./postgres.ts";
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

/** Delays each statement of one kind in the store, until the returned function is called. */
async function delayed(event: string, on: string, condition: string): Promise<() => Promise<unknown>> {
  await statement(
    cluster.store,
    `create function delay_statement() returns trigger language plpgsql as 'begin perform pg_sleep(3); return new; end';
     create trigger delayed before ${event} on ${on} for each row when (${condition}) execute function delay_statement()`,
  );
  return () => statement(cluster.store, `drop trigger delayed on ${on}; drop function delay_statement`);
}

test("a call that a slow store answers too late names its run, which is removed unless it has started", async () => {
  const one = await startReplica({ ...cluster.settings, TARGETING_MCP_WAIT_MS: "1000" });
  const targetingId = await cluster.service.targeting("Slow");
  const add = async (prefix: string): Promise<string> => {
    const answer = await call(one.url, "bulk_add_options", { targetingId, items: optionItems(3, prefix) });
    expect(answer).toMatchObject({ isError: true, structuredContent: { error: { errorCode: "STORE_UNAVAILABLE" } } });
    const text = JSON.stringify(answer.content);
    expect(text).not.toContain("nothing was sent");
    return /run (\w{26}) may have started/.exec(text)?.[1] ?? "no run";
  };
  const runs = async () => (await statement(cluster.store, "select id, status from targeting_mcp.run")).rows;
  const end = await delayed("insert", "targeting_mcp.lease", "new.name like 'run:%'");
  const unstarted = await add("unstarted");
  await expect.poll(runs).toEqual([]);
  await end();
  expect((await call(one.url, "get_run", { runId: unstarted })).isError).toBe(true);
  await delayed("update", "targeting_mcp.run", "new.status = 'running'");
  const started = await add("started");
  await expect.poll(runs).toEqual([{ id: started, status: "finished" }]);
  expect(await restOf(one.url, started)).toMatchObject({ status: "succeeded", counts: { succeeded: 3 } });
  expect(await cluster.service.options(targetingId)).toEqual(optionItems(3, "started").map(({ name }) => name));
});

test("a run that a further call has joined is not removed, although the call that created it was answered too late", async () => {
  const one = await startReplica({ ...cluster.settings, TARGETING_MCP_WAIT_MS: "1000" });
  const other = await startReplica({ ...cluster.settings, TARGETING_MCP_WAIT_MS: "1000" });
  const targetingId = await cluster.service.targeting("Joined");
  const adding = { targetingId, items: optionItems(3) };
  const end = await delayed("insert or update", "targeting_mcp.lease", "new.name like 'run:%'");
  const text = JSON.stringify((await call(one.url, "bulk_add_options", adding)).content);
  const [, runId = ""] = /run (\w{26}) may have started/.exec(text) ?? [];
  // Until its useless lease is released, the run seems to be planned.
  const leased = "select from targeting_mcp.lease where name like 'run:%' and not released";
  await expect.poll(async () => (await statement(cluster.store, leased)).rows.length).toBe(1);
  expect(reportOf(await call(other.url, "bulk_add_options", adding)).runId).toBe(runId);
  await expect.poll(async () => (await statement(cluster.store, leased)).rows.length).toBe(0);
  await end();
  expect((await restOf(other.url, runId)).status).toBe("interrupted");
  const again = await runOf(other.url, "bulk_add_options", adding);
  expect(await restOf(other.url, again.runId)).toMatchObject({ status: "succeeded", counts: { succeeded: 3 } });
  expect((await restOf(one.url, runId)).status).toBe("interrupted");
});

test("a run whose process ended before it was planned says so", async () => {
  const one = await startReplica(cluster.settings);
  const targetingId = await cluster.service.targeting("Ended");
  const { runId } = reportOf(await call(one.url, "bulk_add_options", { targetingId, items: optionItems(3) }));
  const left = `${runId.slice(0, -1)}${runId.endsWith("0") ? "1" : "0"}`;
  const columns = "project, caller, environment, fingerprint";
  await statement(
    cluster.store,
    `insert into targeting_mcp.run (id, ${columns}, header)
     select '${left}', ${columns}, replace(header, id, '${left}') from targeting_mcp.run where id = '${runId}'`,
  );
  const { structuredContent } = await call(one.url, "get_run", { runId: left });
  expect(structuredContent).toMatchObject({
    status: "interrupted",
    nextSteps: ["make the call again: the server ended before the call was planned, and nothing was sent"],
  });
});
