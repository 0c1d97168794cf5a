import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { runOf, startReplica, startService, withPostgres } from "../cluster.ts";
import { statement } from "../postgres.ts";
import { transactionPooler } from "./pooler.ts";

const cluster = withPostgres();

/** How many targetings one request can create (management-api 8.1). */
const AT_ONCE = 100;

/**
 * Starts a run of this many requests at one replica. Returns what another replica, whose store `otherStore` gives,
 * reports to a client as progress.
 */
async function followed(requests: number, delayMs: number, otherStore: (url: string) => Promise<string>) {
  const service = await startService();
  cluster.closing.push(service.close);
  const store = await cluster.postgres.database();
  const settings = {
    TARGETING_MCP_STORE: store,
    TARGETING_MCP_MODE: "sandbox",
    TARGETING_MCP_SANDBOX_URL: service.url,
    TARGETING_MCP_WAIT_MS: "300",
  };
  const one = await startReplica(settings);
  const other = await startReplica({
    ...settings,
    TARGETING_MCP_STORE: await otherStore(store),
    TARGETING_MCP_WAIT_MS: "25000",
    TARGETING_MCP_DRIVE: "off",
  });
  const notices: number[] = [];
  const listening = new pg.Client({ connectionString: store });
  await listening.connect();
  listening.on("notification", () => void notices.push(Date.now()));
  await listening.query("listen targeting_mcp_changed");
  onTestFinished(() => listening.end());
  await service.faults({ kind: "slow", delayMs, on: "write", probability: 1 });
  const items = Array.from({ length: requests * AT_ONCE }, (_, n) => ({ name: `targeting ${n}` }));
  const { runId } = await runOf(one.url, "create_targetings", { items });
  const client = new Client({ name: "progress", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(other.url)));
  onTestFinished(() => client.close());
  const told: { readonly at: number; readonly done: number }[] = [];
  const answer = await client.callTool(
    { name: "get_run", arguments: { runId, waitMs: 25_000 } },
    { onprogress: ({ progress }) => void told.push({ at: Date.now(), done: progress }) },
  );
  const finishedAt = Date.now();
  const query = `select (extract(epoch from at) * 1000)::float8 as at from targeting_mcp.entry where run = '${runId}' order by seq`;
  const entries = (await statement(store, query)).rows.map(({ at }) => Number(at));
  return { status: answer.structuredContent, told, notices, entries, finishedAt };
}

/** Returns the longest time between two progress reports, in milliseconds. */
function longestPause({ told }: { readonly told: readonly { readonly at: number }[] }): number {
  return Math.max(...told.slice(1).map(({ at }, n) => at - (told[n]?.at ?? at)));
}

/**
 * Returns how long a pause may last, in milliseconds: `ms`, or on a busy machine, where the run itself takes longer, a
 * third of the run.
 */
function most(
  ms: number,
  { entries, finishedAt }: { readonly entries: readonly number[]; readonly finishedAt: number },
) {
  return Math.max(ms, (finishedAt - (entries[0] ?? finishedAt)) / 3);
}

test("another replica tells of the steps of a run, and of its end, soon after they are journaled", async () => {
  const seen = await followed(12, 600, async (url) => url);
  expect(seen.status).toMatchObject({ status: "succeeded" });
  expect(seen.told.length).toBeGreaterThan(3);
  expect(longestPause(seen)).toBeLessThan(most(2600, seen));
  expect(seen.finishedAt - (seen.entries.at(-1) ?? 0)).toBeLessThan(most(2000, seen));
  expect(seen.notices.length).toBeGreaterThan(5);
});

test("many entries a second make at most four notices a second", async () => {
  const { notices, entries } = await followed(40, 20, async (url) => url);
  const [first = 0, last = 0] = [entries[0], entries.at(-1)];
  expect(entries.length).toBeGreaterThan(20);
  // Counted over the whole run, because on a busy machine two notices that were sent 250 ms apart may arrive together.
  expect(notices.length).toBeLessThanOrEqual(Math.ceil((last - first) / 250) + 2);
});

test("where no notice arrives, it looks by itself every two seconds at the latest", async () => {
  const seen = await followed(12, 600, transactionPooler);
  expect(seen.status).toMatchObject({ status: "succeeded" });
  expect(seen.told.length).toBeGreaterThan(3);
  expect(longestPause(seen)).toBeLessThan(most(2600, seen));
  expect(seen.finishedAt - (seen.entries.at(-1) ?? 0)).toBeLessThan(most(2500, seen));
});
