// Measures calls per second over HTTP, compared with a bare SDK handler that has one small tool.
import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getRequestListener } from "@hono/node-server";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { Pool } from "undici";
import * as z from "zod";
import { redactorFor } from "../src/answers/fence.ts";
import { Approvals } from "../src/changes/approvals.ts";
import { SuiteStore } from "../src/events/suites/suite-store.ts";
import { authenticator } from "../src/http/auth.ts";
import { createHttpServer } from "../src/http/server.ts";
import { questionSeal } from "../src/mcp/elicitation.ts";
import { createMcpServer } from "../src/mcp/server.ts";
import { callsUnderWay, catalogue, listedTools, toolsThatWrite } from "../src/mcp/server-parts.ts";

import { createLog, followWork } from "../src/observe/log.ts";
import { systemClock } from "../src/platform/clock.ts";
import { fileSuites, targetingMemory } from "../src/runs/files/backend.ts";
import { fileRunStore } from "../src/runs/files/run-store.ts";

import { Runs } from "../src/runs/registry.ts";
import { ulidSource } from "../src/spec/names-and-contexts.ts";
import { everyTool } from "../src/tools/registry.ts";
import { allowedHostnames } from "../src/web/http-errors.ts";
import { median } from "./server-process.ts";

const TOOLS = await everyTool();

const CONNECTIONS = 16;
const ROUND_MS = 2000;
const ROUNDS = 5;
const REVISION = "2026-07-28";
const TOOL = "get_targeting";

const input = z.object({});

function bare(): Server {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "bare", version: "1" });
    server.registerTool(TOOL, { inputSchema: input }, () => ({
      content: [{ type: "text", text: "nothing" }],
    }));
    return server;
  });
  return createServer(getRequestListener((request) => handler.fetch(request)));
}

function ours(): Server {
  const redactor = redactorFor(["some-secret-key", "some-other-key"]);
  const log = createLog({
    level: "info",
    write: () => undefined,
    redact: redactor.text,
    now: Date.now,
    work: followWork(),
  });
  const key = randomBytes(32);
  const world = {
    store: fileRunStore(join(tmpdir(), "targeting-mcp-bench-runs"), systemClock),
    project: "bench",
    environment: "sandbox",
    newRunId: ulidSource(Date.now, Math.random),
    clock: systemClock,
  } as const;
  const tools = catalogue(TOOLS);
  const parts = {
    version: "0.0.0",
    tools: listedTools(tools, {
      readOnly: false,
      toolsets: ["targeting", "events"],
      configured: ["targeting", "events"],
      hasSandbox: true,
    }),
    environment: "sandbox" as const,
    services: async () => ({
      environment: "sandbox" as const,
      runs: new Runs(world, []),
      memory: targetingMemory({ now: Date.now, onProblem: (error) => log.error("memory", { error }) }),
      suites: new SuiteStore(fileSuites(join(tmpdir(), "targeting-mcp-bench-suites"))),
      approvals: new Approvals(world),
      readOnly: false,
      confirm: "ask" as const,
      trustViews: false,
      project: { id: "project", name: "project" },
      sealKey: async () => key,
      maxDeletes: 500,
      maxChangePercent: 100,
      keep: { days: 30, runs: 500 },
      apiUrl: "sandbox",
      maxLineBytes: 16 * 1_048_576,
      allowedDirs: [],
      clock: systemClock,
      waitMs: 1000,
      stopping: new AbortController().signal,
    }),
    seal: questionSeal(key),
    redactor,
    log,
    calls: callsUnderWay(),
    caller: "local",
    audit: () => undefined,
    writingTools: toolsThatWrite(tools),
  };
  return createHttpServer({
    hostnames: allowedHostnames([]),
    authenticate: authenticator({ access: { projects: new Map(), tokens: [] }, addresses: [], ownKeys: false }),
    partsFor: () => ({ ...parts, use: () => () => undefined }),
    createServer: createMcpServer,
    toolsWithLists: new Set(),
    metadata: new Map(),
    sessions: false,
    waitMs: 45_000,
    maxConcurrency: 64,
    log,
    stopping: new AbortController().signal,
  }).server;
}

const _meta = {
  "io.modelcontextprotocol/protocolVersion": REVISION,
  "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

const CALLS = {
  "2025 era": { method: "tools/call", params: { name: TOOL, arguments: {} } },
  "2026 era": { method: "tools/call", params: { name: TOOL, arguments: {}, _meta } },
} as const;

async function callsPerSecond(port: number, { method, params }: (typeof CALLS)[keyof typeof CALLS]): Promise<number> {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS });
  const modern = "_meta" in params ? { "mcp-protocol-version": REVISION, "mcp-method": method, "mcp-name": TOOL } : {};
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", ...modern };
  const end = performance.now() + ROUND_MS;
  let done = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() < end) {
      const response = await pool.request({ path: "/mcp", method: "POST", headers, body });
      const text = await response.body.text();
      if (response.statusCode !== 200 || !text.includes('"content"')) throw new Error(`${response.statusCode} ${text}`);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, caller));
  await pool.close();
  return (done * 1000) / ROUND_MS;
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === "string") throw new Error("the server listens on no port");
  return address.port;
}

const servers = { bare: bare(), ours: ours() };
const ports = { bare: await listening(servers.bare), ours: await listening(servers.ours) };
for (const [name, call] of Object.entries(CALLS)) {
  const rates: { bare: number[]; ours: number[] } = { bare: [], ours: [] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const which of ["bare", "ours"] as const) {
      const rate = await callsPerSecond(ports[which], call);
      // The first round is a warm-up.
      if (round > 0) rates[which].push(rate);
    }
  }
  const [plain, full] = [median(rates.bare), median(rates.ours)];
  console.log(`${name}, ${CONNECTIONS} connections: bare ${plain.toFixed(0)}/s, ours ${full.toFixed(0)}/s`);
  console.log(
    `calls per second over HTTP, ${name}, compared with a bare handler: ${(full / plain).toFixed(2)} (at least 0.8)`,
  );
}
for (const server of Object.values(servers)) {
  server.closeAllConnections();
  server.close();
}
