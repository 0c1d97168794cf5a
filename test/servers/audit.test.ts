// The audit has one line for each run that ended, written by the process that ended the run.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS } from "../support/clients.ts";
import { startHttp } from "../support/http-server.ts";
import { clientOf, loggedIn, startApproved } from "../support/page-http.ts";
import { groupItems, optionItems, startService } from "../support/service.ts";
import { checkedReport } from "../support/writing.ts";

/** The fields that every line has. */
const line = z.looseObject({
  at: z.iso.datetime(),
  caller: z.string(),
  project: z.string().min(1),
  runId: z.string().optional(),
  outcome: z.string().optional(),
  decision: z.string().optional(),
});

async function auditOf(stateDir: string, runId: string) {
  const text = await readFile(join(stateDir, "audit.ndjson"), "utf8").catch(() => "");
  const lines = text.split("\n").filter((one) => one.endsWith("}"));
  return lines.map((one) => line.parse(JSON.parse(one))).filter((one) => one.runId === runId);
}

test("a deletion that is approved after its call has answered leaves its outcome", async () => {
  const entries = [{ name: "agent" }, { name: "boss", approves: true }] as const;
  const server = await startApproved(entries, { env: { TARGETING_MCP_WAIT_MS: "500" } });
  const agent = await clientOf(server.url, "agent");
  const targetingId = await server.sandbox.targeting("Sports fans");
  const asked = checkedReport(await agent.callTool("delete_targeting", { ids: [targetingId] }));
  expect(["needs_confirmation", "running"]).toContain(asked.status);
  const runId = asked.runId ?? "";
  const boss = await loggedIn(server.origin, "boss");
  await boss.waiting();
  expect((await boss.press(runId, "approve")).status).toBe(200);
  const outcomes = async () =>
    (await auditOf(server.stateDir, runId)).map(({ outcome, decision }) => outcome ?? decision);
  await expect.poll(outcomes).toEqual([asked.status, "approved", "succeeded"]);
  const lines = await auditOf(server.stateDir, runId);
  expect(new Set(lines.map(({ caller, project }) => `${caller} ${project}`)).size).toBe(1);
  expect(lines.at(-1)).toMatchObject({ tool: "delete_targeting", caller: "token:agent", counts: { succeeded: 1 } });
  expect(lines.some((one) => "time" in one)).toBe(false);
});

test("a run whose client has gone leaves its outcome, once", async () => {
  const service = await startService();
  const server = await startHttp(service.live);
  const other = await CLIENTS["2026 client, modern"]({ url: server.url });
  const made = checkedReport(await other.callTool("create_targetings", { items: [{ name: "Spring" }] }));
  const args = { targetingId: made.results[0]?._id ?? "", items: groupItems(450) };
  const release = await service.hold("addOptions");
  const client = new Client({ name: "gone", version: "1" }, { versionNegotiation: { mode: "auto" } });
  const gone = new AbortController();
  await client.connect(new StreamableHTTPClientTransport(new URL(server.url)));
  const calling = client.callTool({ name: "bulk_add_options", arguments: args }, { signal: gone.signal });
  await expect.poll(() => service.count("addOptions")).toBe(1);
  gone.abort();
  await expect(calling).rejects.toThrow();
  const listed = z.looseObject({ runs: z.array(z.looseObject({ runId: z.string(), tool: z.string() })) });
  const { runs } = listed.parse((await other.callTool("get_run", { tool: "bulk_add_options" })).structuredContent);
  const runId = runs[0]?.runId ?? "";
  await release();
  const outcomes = async () => (await auditOf(server.stateDir, runId)).map(({ outcome }) => outcome);
  await expect.poll(outcomes).toEqual(["cancelled"]);
});

test("a run that one server began and another one ends has one line, of the one that ends it", async () => {
  const service = await startService();
  const first = await startHttp({ ...service.live, TARGETING_MCP_WAIT_MS: "2000" });
  const client = await CLIENTS["2026 client, modern"]({ url: first.url });
  const release = await service.hold("addOptions");
  const args = { targetingId: await service.targeting("Spring"), items: optionItems(10) };
  const answered = await client.callTool("bulk_add_options", args);
  const { runId, status } = z.object({ runId: z.string(), status: z.string() }).parse(answered.structuredContent);
  expect(status).toBe("running");
  await expect.poll(() => auditOf(first.stateDir, runId)).toHaveLength(1);
  first.child.kill("SIGKILL");
  await first.exited;
  await release();
  const second = await startHttp({ ...service.live, TARGETING_MCP_STATE_DIR: first.stateDir });
  const other = await CLIENTS["2026 client, modern"]({ url: second.url });
  expect(checkedReport(await other.callTool("cancel_run", { runId }))).toMatchObject({ status: "cancelled" });
  const outcomes = async () => (await auditOf(first.stateDir, runId)).map(({ outcome }) => outcome);
  await expect.poll(outcomes).toEqual(["running", "cancelled"]);
});
