// Starts our HTTP server on a free port, with the tools that the official conformance suite calls by name.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createRequestStateCodec, McpServer } from "@modelcontextprotocol/server";
import { redactorFor } from "../../src/answers/fence.ts";
import { authenticator } from "../../src/http/auth.ts";
import { createHttpServer, MCP_PATH } from "../../src/http/server.ts";
import { questionSeal } from "../../src/mcp/elicitation.ts";
import { callsUnderWay } from "../../src/mcp/server-parts.ts";
import { createLog, followWork } from "../../src/observe/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { allowedHostnames } from "../../src/web/http-errors.ts";
import { testServices } from "../support/tool-context.ts";
import { type RoundState, registerAskingTools } from "./asking-fixtures.ts";
import { registerPlainPrompts, registerPlainTools, registerTestResources } from "./plain-fixtures.ts";
import { registerPushingTools } from "./pushing-fixtures.ts";

const seal = createRequestStateCodec<RoundState>({ key: randomBytes(32) });

function createServer(): McpServer {
  const server = new McpServer(
    { name: "conformance-fixtures", version: "1.0.0" },
    {
      capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, logging: {}, completions: {} },
      requestState: { verify: seal.verify },
    },
  );
  registerPlainTools(server);
  registerAskingTools(server, seal);
  registerPushingTools(server);
  registerTestResources(server);
  registerPlainPrompts(server);
  return server;
}

const redactor = redactorFor([]);
const log = createLog({
  level: "info",
  write: (line) => process.stderr.write(line),
  redact: redactor.text,
  now: Date.now,
  work: followWork(),
});
const services = testServices(systemClock);
const parts = {
  version: "1.0.0",
  tools: [],
  environment: "sandbox" as const,
  services: async () => services,
  seal: questionSeal(randomBytes(32)),
  redactor,
  log,
  calls: callsUnderWay(),
  caller: "local",
  audit: () => undefined,
  writingTools: new Set<string>(),
};
const { server } = createHttpServer({
  hostnames: allowedHostnames([]),
  authenticate: authenticator({ access: { projects: new Map(), tokens: [] }, addresses: [], ownKeys: false }),
  partsFor: () => ({ ...parts, use: () => () => undefined }),
  createServer,
  toolsWithLists: new Set(),
  metadata: new Map(),
  sessions: process.env.TARGETING_MCP_SESSIONS === "on",
  waitMs: 45_000,
  maxConcurrency: 64,
  log,
  stopping: new AbortController().signal,
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const address = server.address();
if (address === null || typeof address === "string") throw new TypeError("the server listens on no port");
log.info("serving", { url: `http://127.0.0.1:${address.port}${MCP_PATH}` });
