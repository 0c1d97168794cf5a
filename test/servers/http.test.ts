import { readFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, call, type TestClient, textOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { post, startHttp } from "../support/http-server.ts";
import { runCommand } from "../support/server-process.ts";
import { groupItems, startService } from "../support/service.ts";

/** The setting with which clients that cannot ask a person get a token instead. */
const ASKING = { TARGETING_MCP_CONFIRM: "ask" } as const;

let targetings = 0;

async function newTargeting(client: TestClient): Promise<string> {
  targetings += 1;
  const { results } = await call(client, "create_targetings", { items: [{ name: `Spring ${targetings}` }] });
  return results[0]?._id ?? "";
}

/** Sends a request with any headers, even `Host`. Returns the status. */
function statusOf(url: string, headers: Record<string, string>, method = "GET"): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.on("error", reject);
    sent.end();
  });
}

/** The server and service that all clients of this file share. */
const shared = perFile(async (more: Readonly<Record<string, string>>) => {
  const service = await startService();
  return { service, url: (await startHttp({ ...service.live, ...more })).url };
});

describe.each(Object.entries(CLIENTS))("%s", (_name, connect) => {
  test("lists and calls tools, and hears of progress before the answer", async () => {
    const { url, service } = await shared(ASKING);
    const client = await connect({ url });
    expect(await client.toolNames()).toEqual(expect.arrayContaining(["get_targeting", "track_event"]));
    const targetingId = await newTargeting(client);
    const sent = await service.count("addOptions");
    const release = await service.hold("addOptions", { nth: 2 });
    const heard: number[] = [];
    const calling = client.callTool(
      "bulk_add_options",
      { targetingId, items: groupItems(200, targetingId) },
      ({ progress }) => heard.push(progress),
    );
    await expect.poll(() => heard).toContain(150);
    await expect.poll(() => service.count("addOptions")).toBe(sent + 2);
    await release();
    expect((await calling).structuredContent).toMatchObject({ status: "succeeded" });
  });

  test("a client that cannot be asked gets a token, which is good once, here, and unchanged", async () => {
    const { url, service } = await shared(ASKING);
    const client = await connect({ url });
    const targetingId = await newTargeting(client);
    const deletions = await service.count("deleteTargetings");
    const planned = await call(client, "delete_targeting", { ids: [targetingId] });
    expect(planned.status).toBe("needs_confirmation");
    const { token } = planned.confirmation;
    const altered = [0, 10, 22, 28].map(
      (at) => `${token.slice(0, at)}${token[at] === "B" ? "C" : "B"}${token.slice(at + 1)}`,
    );
    for (const bad of [
      ...altered,
      "x",
      ".",
      "made.up",
      "\u0000",
      token.slice(0, -1),
      token.slice(1),
      `${token}A`,
      `${token}.x`,
    ]) {
      const refused = await client.callTool("delete_targeting", { confirmation: bad });
      expect(textOf(refused)).toContain("not a token that this server gave");
    }
    expect(await service.count("deleteTargetings")).toBe(deletions);
    const done = await call(client, "delete_targeting", { confirmation: token });
    expect(done.status).toBe("succeeded");
    const again = await call(client, "delete_targeting", { confirmation: token });
    expect(again).toMatchObject({ status: "succeeded", runId: done.runId });
    expect(await service.count("deleteTargetings")).toBe(deletions + 1);
  });
});

test("a confirmation outlives the server that gave it", async () => {
  const service = await startService();
  const first = await startHttp({ ...service.live, ...ASKING });
  const client = await CLIENTS["2025 client"]({ url: first.url });
  const targetingId = await newTargeting(client);
  const { confirmation } = await call(client, "delete_targeting", { ids: [targetingId] });
  first.child.kill("SIGKILL");
  const second = await startHttp({ ...service.live, ...ASKING, TARGETING_MCP_STATE_DIR: first.stateDir });
  const later = await CLIENTS["2025 client"]({ url: second.url });
  expect(await call(later, "delete_targeting", { confirmation: confirmation.token })).toMatchObject({
    status: "succeeded",
  });
});

describe("a person is asked", () => {
  const yes = () => ({ action: "accept" as const, content: { confirm: true } });

  test.each([
    ["2026 client, modern", ASKING],
    ["2026 client, legacy", { TARGETING_MCP_SESSIONS: "on" }],
    ["2025 client", { TARGETING_MCP_SESSIONS: "on" }],
  ] as const)("%s %j", async (name, more) => {
    const { url } = await shared(more);
    const asked: string[] = [];
    const answer = (message: string) => {
      asked.push(message);
      return yes();
    };
    const client = await CLIENTS[name]({ url, answer });
    const targetingId = await newTargeting(client);
    const deleted = await client.callTool("delete_targeting", { ids: [targetingId] });
    expect(deleted.structuredContent).toMatchObject({
      status: "succeeded",
      // Without authentication, the server does not know who approved. It must not name the account that runs the
      // server.
      approval: { decision: "approved", channel: "client" },
    });
    expect(textOf(deleted)).toContain("\nApproved in the client.\n");
    expect(asked).toHaveLength(1);
    expect(asked[0]).toContain("Spring");
  });

  test("a session is of use to nobody else, and ends when it is closed", async () => {
    const { url } = await startHttp({ TARGETING_MCP_SESSIONS: "on" });
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
    const opened = await fetch(url, { method: "POST", headers, body });
    const session = { ...headers, "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
    const list = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/list" });
    const listing = (given: Record<string, string>) => fetch(url, { method: "POST", headers: given, body: list });
    expect((await listing(session)).status).toBe(200);
    expect((await listing({ ...session, "mcp-session-id": "made-up" })).status).toBe(404);
    expect((await listing(headers)).status).toBe(400);
    expect((await fetch(url, { method: "DELETE", headers: session })).status).toBe(200);
    expect((await listing(session)).status).toBe(404);
  });
});

describe("what is refused before anything else", () => {
  test("a Host or Origin of another site", async () => {
    const { url, logged } = await startHttp({ TARGETING_MCP_ALLOWED_HOSTS: "mcp.example.com" });
    const { port } = new URL(url);
    for (const path of ["/mcp", "/healthz", "/nothing"]) {
      const at = `http://127.0.0.1:${port}${path}`;
      expect(await statusOf(at, { host: "evil.example" })).toBe(403);
      expect(await statusOf(at, { host: `evil.example:${port}` })).toBe(403);
      expect(await statusOf(at, { origin: "https://evil.example" })).toBe(403);
      for (const origin of ["null", "ftp://localhost", "http://localhost/", "HTTP://localhost", "http://a@localhost"]) {
        expect(await statusOf(at, { origin }), origin).toBe(403);
      }
      expect(await statusOf(at, { host: "evil.example", "x-request-id": "from-evil" })).toBe(403);
    }
    const refused = () => logged().filter(({ requestId }) => requestId === "from-evil");
    // The log is a separate stream, so its lines may arrive after the answers.
    await expect.poll(() => refused().map(({ path }) => path)).toEqual(["/mcp", "/healthz", "/nothing"]);
    const health = `http://127.0.0.1:${port}/healthz`;
    for (const host of [`localhost:${port}`, `[::1]:${port}`, "mcp.example.com"]) {
      expect(await statusOf(health, { host })).toBe(200);
    }
    expect(await statusOf(health, { origin: `http://localhost:${port}` })).toBe(200);
  });

  test("a browser learns before it sends what becomes of a page's request", async () => {
    const { url } = await startHttp({ TARGETING_MCP_ALLOWED_HOSTS: "app.example.com", TARGETING_MCP_OWN_KEYS: "on" });
    const headers = "content-type,mcp-protocol-version,x-targeting-api-key";
    const ask = (origin: string) =>
      fetch(url, {
        method: "OPTIONS",
        headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": headers },
      });
    const send = (origin: string) =>
      fetch(url, { method: "POST", headers: { origin, "content-type": "application/json" }, body: "{" });
    for (const origin of ["https://app.example.com", "http://localhost:6274"]) {
      const asked = await ask(origin);
      expect(asked.status).toBe(204);
      expect(asked.headers.get("access-control-allow-origin")).toBe(origin);
      expect(asked.headers.get("access-control-allow-methods")).toContain("POST");
      expect(asked.headers.get("access-control-allow-headers")).toBe(headers);
      expect(asked.headers.get("access-control-allow-credentials")).toBeNull();
      const sent = await send(origin);
      // The request has no token, and the page may read that it was refused.
      expect(sent.status).toBe(401);
      expect(sent.headers.get("access-control-allow-origin")).toBe(origin);
      expect(sent.headers.get("vary")).toContain("Origin");
    }
    for (const request of [ask, send]) {
      const refused = await request("https://evil.example");
      expect(refused.status).toBe(403);
      expect(refused.headers.get("access-control-allow-origin")).toBeNull();
    }
  });

  test("bodies that are too large, no JSON, or of another kind", async () => {
    const { url } = await startHttp();
    const send = async (body: string, type = "application/json") => {
      const headers = { "content-type": type, accept: "application/json, text/event-stream" };
      return (await fetch(url, { method: "POST", headers, body })).status;
    };
    expect(await send(`"${"a".repeat(16 * 1_048_576)}"`)).toBe(413);
    expect(await send("{")).toBe(400);
    expect(await send("{}", "text/plain")).toBe(415);
    expect(await statusOf(url, {}, "PUT")).toBe(405);
    const large = await post(url, "tools/call", { name: "bulk_add_options", arguments: { x: "a".repeat(450_000) } });
    expect(large.status).toBe(200);
  });

  test("one request more than there is room for", async () => {
    const service = await startService();
    const release = await service.hold("getTargeting");
    const { url } = await startHttp({ ...service.live, TARGETING_MCP_MAX_CONCURRENCY: "1" });
    const targetingId = "01JABCDEFGHJKMNPQRSTVWXYZ0";
    const first = post(url, "tools/call", { name: "get_targeting", arguments: { targetingId } });
    await expect.poll(() => service.count("getTargeting")).toBe(1);
    const second = await post(url, "tools/list", {});
    expect(second.status).toBe(503);
    expect(second.headers.get("retry-after")).toBe("1");
    expect(await second.text()).toContain("Too many requests");
    await release();
    expect((await first).status).toBe(200);
    expect((await post(url, "tools/list", {})).status).toBe(200);
  });

  test.each([["0.0.0.0"], ["::"], ["192.0.2.1"]])("serving on %s without knowing who calls", async (host) => {
    const refused = { code: 2, stderr: expect.stringContaining("TARGETING_MCP_ACCESS_FILE") };
    expect(await runCommand(["http", "--port", "0", "--host", host])).toMatchObject(refused);
  });
});

test("every line about a request carries its ID, and so does the audit", async () => {
  const service = await startService();
  const server = await startHttp({ ...service.live, TARGETING_MCP_LOG_LEVEL: "debug" });
  const args = { name: "create_targetings", arguments: { items: [{ name: "Spring" }] } };
  const made = await post(server.url, "tools/call", args, { headers: { "x-request-id": "given-by-proxy" } });
  expect(made.headers.get("x-request-id")).toBe("given-by-proxy");
  expect((await post(server.url, "tools/list", {})).headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  // The ID of the request is also in the log line about the request to the API.
  for (const message of ["a request", "a request to an API"]) {
    const line = server.logged().find((one) => one.message === message && one.requestId === "given-by-proxy");
    expect(line, message).toBeDefined();
  }
  expect(server.logged()).toContainEqual(
    expect.objectContaining({
      requestId: "given-by-proxy",
      tool: "create_targetings",
      operation: "createTargetings",
      statusCode: 200,
    }),
  );
  const audit = () => readFile(join(server.stateDir, "audit.ndjson"), "utf8").catch(() => "");
  await expect.poll(audit).toContain("\n");
  expect(JSON.parse(await audit())).toMatchObject({
    requestId: "given-by-proxy",
    caller: "local",
    environment: "live",
    tool: "create_targetings",
    runId: expect.any(String),
    outcome: "succeeded",
    counts: { items: 1, succeeded: 1 },
  });
});

describe("stopping", () => {
  test("SIGTERM ends an idle server at once, kept-alive connections included", async () => {
    const { url, child, exited } = await startHttp();
    expect((await post(url, "tools/list", {})).status).toBe(200);
    child.kill("SIGTERM");
    expect(await exited).toEqual({ code: 0, signal: null });
  });

  test("what is in flight is finished and answered, the rest is kept for later", async () => {
    const service = await startService();
    const first = await startHttp(service.live);
    const client = await CLIENTS["2026 client, modern"]({ url: first.url });
    const targetingId = await newTargeting(client);
    const release = await service.hold("addOptions");
    const adding = call(client, "bulk_add_options", { targetingId, items: groupItems(450) });
    await expect.poll(() => service.count("addOptions")).toBe(1);
    await first.stop();
    await release();
    const { status, runId } = await adding;
    expect(status).toBe("interrupted");
    expect((await first.exited).code).toBe(0);
    expect(await service.count("addOptions")).toBe(1);

    const second = await startHttp({ ...service.live, TARGETING_MCP_STATE_DIR: first.stateDir });
    const later = await CLIENTS["2026 client, modern"]({ url: second.url });
    expect(await call(later, "resume_run", { runId })).toMatchObject({
      status: "succeeded",
      counts: { items: 450, succeeded: 450 },
    });
  });
});

test.each([["2026-07-28"], ["2025-06-18"]])(
  "a client of %s that vanishes leaves no lock, no orphan and no write that is not journaled",
  async (revision) => {
    const service = await startService();
    const { url } = await startHttp(service.live);
    const client = await CLIENTS["2026 client, modern"]({ url });
    const targetingId = await newTargeting(client);
    const release = await service.hold("addOptions");
    const gone = new AbortController();
    const params = { name: "bulk_add_options", arguments: { targetingId, items: groupItems(450) } };
    const sent =
      revision === "2026-07-28"
        ? post(url, "tools/call", params, { signal: gone.signal })
        : fetch(url, {
            method: "POST",
            signal: gone.signal,
            headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
            body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
          }).then((response) => response.text());
    const dropped = expect(sent).rejects.toThrow();
    await expect.poll(() => service.count("addOptions")).toBe(1);
    gone.abort();
    await dropped;
    await release();
    const stopped = async () => {
      const list = await client.callTool("get_run", {});
      const runs = z.object({
        runs: z.array(z.looseObject({ runId: z.string(), tool: z.string(), status: z.string() })),
      });
      return runs.parse(list.structuredContent).runs.find(({ tool }) => tool === "bulk_add_options");
    };
    await expect.poll(async () => (await stopped())?.status).not.toBe("running");
    expect(await service.count("addOptions")).toBe(1);
    const runId = (await stopped())?.runId;
    expect(await call(client, "resume_run", { runId })).toMatchObject({
      status: "succeeded",
      counts: { items: 450, succeeded: 450 },
    });
  },
);
