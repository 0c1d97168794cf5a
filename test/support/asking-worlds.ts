import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { startHttp } from "./http-server.ts";
import { loggedIn, TOKENS, writeAccess } from "./page-http.ts";
import { browserOfTest, personAt } from "./page-person.ts";
import { COMMAND, cleanEnvironment } from "./server-process.ts";
import { startService } from "./service.ts";
import { connected, type Era, type Given } from "./view-hosts.ts";

/** Settings of servers, by how they ask for approval: not at all, by token, on the page, or only through the client. */
const SERVERS = {
  off: { TARGETING_MCP_CONFIRM: "off", TARGETING_MCP_PAGE: "off" },
  token: { TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_PAGE: "off" },
  page: { TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_PAGE: "on" },
  strict: { TARGETING_MCP_CONFIRM: "strict", TARGETING_MCP_PAGE: "off" },
} as const satisfies Record<string, Readonly<Record<string, string>>>;

type Client = Awaited<ReturnType<typeof connected>>;
type Person = Awaited<ReturnType<typeof personAt>>;

/** Servers that ask for approval in different ways, but share one service and one state folder. */
export interface AskingWorld {
  readonly service: Awaited<ReturnType<typeof startService>>;
  readonly stateDir: string;
  readonly isHttp: boolean;
  /** Connects a new client to one of the servers. For the servers, all clients of a world are the same caller. */
  readonly connect: (
    server: keyof typeof SERVERS,
    given?: Pick<Given, "extensions" | "answer" | "elicitation">,
  ) => Promise<Client>;
  /**
   * Returns a person who has logged in to the page. Over stdio, waits until the server of the client has opened the
   * page in a browser.
   */
  readonly person: (client: Client) => Promise<Person>;
}

async function overStdio(era: Era): Promise<AskingWorld> {
  const service = await startService();
  const browsers = new Map<Client, ReturnType<typeof browserOfTest>>();
  const env = cleanEnvironment({ ...service.live, TARGETING_MCP_WAIT_MS: "120000" });
  return {
    service,
    isHttp: false,
    stateDir: env.TARGETING_MCP_STATE_DIR ?? "",
    async connect(server, given = {}) {
      const browser = browserOfTest();
      const settings = { ...env, ...browser.env, ...SERVERS[server] };
      const command = { command: process.execPath, args: [COMMAND], env: settings };
      const transport = new StdioClientTransport({ ...command, stderr: "ignore" });
      const client = await connected(transport, era, { extensions: {}, ...given });
      browsers.set(client, browser);
      return client;
    },
    person: async (client) => personAt((await browsers.get(client)?.address()) ?? ""),
  };
}

/** Starts one HTTP server for each way of asking for approval. */
export async function startAskingServers() {
  const service = await startService();
  const env = cleanEnvironment({ ...service.live, TARGETING_MCP_WAIT_MS: "120000" });
  const stateDir = env.TARGETING_MCP_STATE_DIR ?? "";
  const file = `${stateDir}-access.json`;
  writeAccess(file, [{ name: "agent" }, { name: "boss", approves: true }]);
  const start = (server: keyof typeof SERVERS) =>
    startHttp({ ...env, ...SERVERS[server], TARGETING_MCP_ACCESS_FILE: file, TARGETING_MCP_SESSIONS: "on" });
  const [off, token, page, strict] = await Promise.all([start("off"), start("token"), start("page"), start("strict")]);
  return { service, stateDir, servers: { off, token, page, strict } };
}

function overHttp(
  era: Era,
  { service, stateDir, servers }: Awaited<ReturnType<typeof startAskingServers>>,
): AskingWorld {
  return {
    service,
    stateDir,
    isHttp: true,
    connect(server, given = {}) {
      const requestInit = { headers: { authorization: `Bearer ${TOKENS.agent}` } };
      const transport = new StreamableHTTPClientTransport(new URL(servers[server].url), { requestInit });
      return connected(transport, era, { extensions: {}, ...given });
    },
    person: () => loggedIn(new URL(servers.page.url).origin, "boss"),
  };
}

type StartServers = typeof startAskingServers;

/** The worlds of all transports and protocol eras. Tests may share the servers over HTTP. */
export const ASKING_WORLDS = {
  "stdio, 2026 era": () => overStdio("auto"),
  "stdio, 2025 era": () => overStdio("legacy"),
  "HTTP, 2026 era": async (servers: StartServers) => overHttp("auto", await servers()),
  "HTTP sessions, 2025 era": async (servers: StartServers) => overHttp("legacy", await servers()),
} as const;
