import { mkdtempSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CLIENTS, callsOf } from "../support/clients.ts";
import { startHttp } from "../support/http-server.ts";
import { optionItems, startService } from "../support/service.ts";

const connect = CLIENTS["2026 client, modern"];
/** Requests a path of the server with any headers, even `Host`, which fetch does not allow. */
function asked(url: string, path: string, headers: Record<string, string> = {}) {
  return new Promise<{ status: number | undefined; type: string | undefined; text: string }>((resolve, reject) => {
    const sent = httpRequest(new URL(path, url), { headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
      response.on("end", () => resolve({ status: response.statusCode, type: response.headers["content-type"], text }));
    });
    sent.on("error", reject).end();
  });
}

/** Returns the value of a metric; undefined if the text has no such metric. */
function sampleOf(text: string, figure: string): number | undefined {
  const line = text.split("\n").find((one) => one.startsWith(`${figure} `));
  return line === undefined ? undefined : Number(line.slice(figure.length + 1));
}

test("tells that it lives and that it is ready", async () => {
  const service = await startService();
  const { url } = await startHttp(service.live);
  for (const path of ["/healthz", "/readyz"]) {
    expect(await asked(url, path)).toMatchObject({ status: 200, text: '{"status":"ok"}' });
  }
  expect(await asked(url, "/metrics")).toMatchObject({ status: 404 });
});

test("figures count calls, runs, items, requests, appends and turns, and name nobody", async () => {
  const service = await startService();
  const { url } = await startHttp({ ...service.live, TARGETING_MCP_METRICS: "on" });
  const before = await asked(url, "/metrics");
  expect(before).toMatchObject({ status: 200, type: "text/plain; version=0.0.4; charset=utf-8" });
  expect(sampleOf(before.text, "targeting_mcp_runs_driven")).toBe(0);
  expect(sampleOf(before.text, "targeting_mcp_journal_appends_total")).toBe(0);

  const client = await connect({ url });
  const call = callsOf(client);
  const { results } = await call("create_targetings", { items: [{ name: "Secret spring" }] });
  const [{ _id: targetingId } = { _id: "" }] = results;
  await service.control("POST", "/faults", { faults: [{ kind: "busy", on: "addOptions", nth: 1, times: 1 }] });
  expect((await call("bulk_add_options", { targetingId, items: optionItems(3) })).status).toBe("succeeded");
  await client.callTool("get_targeting", { targetingId: "no such one" });

  const { text } = await asked(url, "/metrics");
  const figures = {
    'calls_total{tool="bulk_add_options",result="ok"}': 1,
    'calls_total{tool="get_targeting",result="error"}': 1,
    'runs_total{tool="create_targetings",status="succeeded"}': 1,
    'runs_total{tool="bulk_add_options",status="succeeded"}': 1,
    'items_total{tool="bulk_add_options",outcome="succeeded"}': 3,
    'api_requests_total{operation="createTargetings",result="200"}': 1,
    'api_requests_total{operation="addOptions",result="200"}': 1,
    'api_requests_total{operation="addOptions",result="409"}': 1,
    runs_driven: 0,
    projects_waiting: 0,
  };
  for (const [figure, value] of Object.entries(figures)) {
    expect(sampleOf(text, `targeting_mcp_${figure}`), figure).toBe(value);
  }
  // The server takes the write permit for the request that creates the targeting, and for each try to add options.
  expect(sampleOf(text, "targeting_mcp_write_turns_total")).toBeGreaterThanOrEqual(2);
  expect(sampleOf(text, "targeting_mcp_journal_appends_total")).toBeGreaterThanOrEqual(4);
  for (const name of ["Secret spring", targetingId, "Option 1"]) expect(text).not.toContain(name);
  // Each line of the metrics is a comment, or a name with optional labels and a value.
  for (const line of text.trimEnd().split("\n")) {
    expect(line).toMatch(/^# (?:HELP|TYPE) [a-z_]+ |^[a-z_]+(?:\{(?:[a-z_]+="[^"]*",?)+\})? -?[\d.e+-]+$/);
  }
});

test("figures are for this machine, and for tokens of the access file", async () => {
  const service = await startService();
  const file = join(mkdtempSync(join(tmpdir(), "targeting-mcp-")), "access.json");
  const token = "a-token-of-a-scraper";
  await writeFile(file, JSON.stringify({ tokens: [{ name: "scraper", token, readOnly: true }] }));
  const settings = {
    ...service.live,
    TARGETING_MCP_METRICS: "on",
    TARGETING_MCP_PUBLIC_URL: "https://mcp.example.com/mcp",
  };
  const open = await startHttp(settings);
  const closed = await startHttp({ ...settings, TARGETING_MCP_ACCESS_FILE: file });
  expect((await asked(open.url, "/metrics")).status).toBe(200);
  expect((await asked(closed.url, "/metrics")).status).toBe(200);
  // A proxy on this machine names the client that it forwards for, or passes on the host name that the client used. In
  // both cases the request is not local.
  for (const headers of [{ "x-forwarded-for": "203.0.113.7" }, { host: "mcp.example.com" }]) {
    expect((await asked(open.url, "/metrics", headers)).status).toBe(403);
    expect((await asked(closed.url, "/metrics", headers)).status).toBe(401);
    const wrong = { ...headers, authorization: "Bearer another-token-0001" };
    expect((await asked(closed.url, "/metrics", wrong)).status).toBe(401);
    const right = { ...headers, authorization: `Bearer ${token}` };
    expect((await asked(closed.url, "/metrics", right)).status).toBe(200);
  }
  await writeFile(file, JSON.stringify({ tokens: [{ name: "other", token: "a-token-of-another" }] }));
  const removed = { "x-forwarded-for": "203.0.113.7", authorization: `Bearer ${token}` };
  expect((await asked(closed.url, "/metrics", removed)).status).toBe(401);
});
