import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { startIssuer } from "../support/issuer.ts";
import { TOKENS, writeAccess } from "../support/page-http.ts";
import {
  call,
  optionItems,
  reportOf,
  restOf,
  runOf,
  startMember,
  startReplica,
  startWorker,
  withService,
} from "./cluster.ts";
import { statement } from "./postgres.ts";

const cluster = withService({ TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_WAIT_MS: "1500" });
const blocked = z.looseObject({ blocked: z.looseObject({ code: z.string() }).optional() });

/** Groups that need six requests. */
const GROUPS = optionItems(900).map((item) => ({ ...item, type: "collection" }));

/**
 * Creates a run whose process was killed before it could send a second request. `token` is that of the run's caller.
 */
async function orphaned(env: Readonly<Record<string, string>> = {}, token?: string) {
  const one = await startReplica({ ...cluster.settings, ...env });
  const [targetingId, otherId] = [await cluster.service.targeting("One"), await cluster.service.targeting("Other")];
  await cluster.service.faults({ kind: "slow", delayMs: 3000, on: "write", probability: 1 });
  const { runId } = await runOf(one.url, "bulk_add_options", { targetingId, items: GROUPS }, token);
  await expect.poll(() => cluster.gate.writes.length).toBe(1);
  one.child.kill("SIGKILL");
  await one.exited;
  await cluster.service.calm();
  return { runId, targetingId, otherId, pid: one.child.pid };
}

/** Waits until the run's lease has ended, as far as another process can see. */
async function leaseIsOver(runId: string): Promise<void> {
  const query = `select until < clock_timestamp() as is_over from targeting_mcp.lease where name = 'run:${runId}'`;
  await expect.poll(async () => (await statement(cluster.store, query)).rows[0]?.is_over).toBe(true);
}

test.for([
  ["READ_ONLY", () => ({ TARGETING_MCP_READ_ONLY: "on" })],
  ["TOOLSET", () => ({ TARGETING_MCP_TOOLSETS: "events" })],
  ["TARGETINGS", (otherId: string) => ({ TARGETING_MCP_ALLOWED_TARGETINGS: otherId })],
] as const)("a replica and a worker that may not execute a run leave it to others: %s", async ([code, envOf]) => {
  const { runId, targetingId, otherId, pid } = await orphaned();
  const events = { EVENT_API_URL: cluster.gate.url, EVENT_APP_KEY: "sandbox-app-key" };
  const guarded = { ...cluster.settings, ...events, ...envOf(otherId) };
  const [replica] = [await startReplica(guarded), await startWorker(guarded)];
  await leaseIsOver(runId);
  const seen = async () => (await call(replica.url, "get_run", { runId })).structuredContent;
  // After a process has died, the others assume for 30 seconds that it may come back.
  const past = `update targeting_mcp.worker set seen_at = seen_at - interval '30 seconds' where name like '%:${pid}'`;
  expect((await statement(cluster.store, past)).rowCount).toBe(1);
  await expect.poll(async () => reportOf(await call(replica.url, "get_run", { runId })).status).toBe("interrupted");
  expect(blocked.parse(await seen()).blocked?.code).toBe(code);
  expect(cluster.gate.writes).toHaveLength(1);
  const free = await startWorker(cluster.settings);
  expect(await restOf(replica.url, runId)).toMatchObject({ status: "succeeded", counts: { succeeded: GROUPS.length } });
  expect(await cluster.service.options(targetingId)).toHaveLength(GROUPS.length);
  free.child.kill("SIGTERM");
});

test("a run that may not be executed by any process is cancelled by one that only reads", async () => {
  const { runId } = await orphaned();
  const reading = await startReplica({ ...cluster.settings, TARGETING_MCP_READ_ONLY: "on" });
  await leaseIsOver(runId);
  expect((await runOf(reading.url, "cancel_run", { runId })).status).toBe("cancelled");
  const free = await startWorker(cluster.settings);
  free.child.kill("SIGTERM");
  await free.exited;
  expect(cluster.gate.writes).toHaveLength(1);
});

test("a worker does not go on for a caller whose last token of the issuer may only read", async () => {
  const issuer = await startIssuer();
  const token = (scope: string) => issuer.token({ aud: "the-server", scope });
  const env = { TARGETING_MCP_OAUTH_ISSUER: issuer.url, TARGETING_MCP_OAUTH_AUDIENCE: "the-server" };
  const { runId } = await orphaned(env, await token("targeting:write"));
  const replica = await startReplica({ ...cluster.settings, ...env, TARGETING_MCP_DRIVE: "off" });
  await call(replica.url, "get_run", { runId }, await token("targeting:read"));
  const worker = startMember(["worker"], cluster.settings);
  const { runId: refused, reason } = await worker.logged("an orphaned run may not be executed by this process");
  expect(refused).toBe(runId);
  expect(String(reason)).toMatch(/no longer has the right to make changes/);
  expect(cluster.gate.writes).toHaveLength(1);
  const writing = await token("targeting:write");
  expect(await restOf(replica.url, runId, 60_000, writing)).toMatchObject({ status: "succeeded" });
});

test.for([
  ["was removed", []],
  ["may only read", [{ name: "agent", readOnly: true }]],
  ["was removed, of which the worker knows by the servers alone", [], "without tokens"],
] as const)("a worker does not go on for a caller whose token %s", async ([, entries, without]) => {
  const file = join(mkdtempSync(join(tmpdir(), "targeting-mcp-")), "access.json");
  writeAccess(file, [{ name: "agent" }, { name: "other" }]);
  const env = { TARGETING_MCP_ACCESS_FILE: file };
  const { runId } = await orphaned(env, TOKENS.agent);
  writeAccess(file, [...entries, { name: "other" }]);
  const started = () => startReplica({ ...cluster.settings, ...env, TARGETING_MCP_DRIVE: "off" });
  if (without !== undefined) await started();
  const worker = startMember(["worker"], { ...cluster.settings, ...(without === undefined && env) });
  const { runId: refused, reason } = await worker.logged("an orphaned run may not be executed by this process");
  expect(refused).toBe(runId);
  expect(String(reason)).toMatch(without === undefined ? /caller/ : /no longer valid/);
  expect(cluster.gate.writes).toHaveLength(1);
  if (without !== undefined) return;
  // Once the caller may write again, the run continues by itself.
  writeAccess(file, [{ name: "agent" }, { name: "other" }]);
  const { url } = await started();
  expect(await restOf(url, runId, 60_000, TOKENS.agent)).toMatchObject({ status: "succeeded" });
});
