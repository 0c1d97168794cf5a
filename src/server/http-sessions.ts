import { randomUUID } from "node:crypto";
import {
  type HandleRequestOptions,
  isInitializeRequest,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { httpError } from "./http-guards.ts";

/** A session that nobody has used for so long ends. */
const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
const MOST_SESSIONS = 1000;

const HEADER = "mcp-session-id";

interface Session {
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: McpServer;
  /** Only who opened a session may use it. */
  readonly caller: string | undefined;
  usedAt: number;
}

/** Sessions of 2025-era clients: each keeps its server, so that its client can be asked. */
export interface HttpSessions {
  /** Answers a 2025-era request; `createServer` makes the server of a session that it opens. */
  answer(request: Request, options: HandleRequestOptions, createServer: () => McpServer): Promise<Response>;
  close(): Promise<void>;
}

/** Keeps sessions in this process; `onerror` is told what could not be handled. */
export function httpSessions(onerror: (error: Error) => void): HttpSessions {
  const sessions = new Map<string, Session>();
  const end = async (id: string, { transport, server }: Session): Promise<void> => {
    sessions.delete(id);
    await Promise.all([transport.close(), server.close()]);
  };
  const sweep = setInterval(() => {
    for (const [id, session] of sessions) {
      if (Date.now() - session.usedAt > IDLE_MS) end(id, session).catch(onerror);
    }
  }, SWEEP_MS).unref();

  const open = async (request: Request, options: HandleRequestOptions, server: McpServer): Promise<Response> => {
    if (sessions.size >= MOST_SESSIONS) return httpError(503, "too many sessions are open", { "retry-after": "60" });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        sessions.set(id, { transport, server, caller: options.authInfo?.clientId, usedAt: Date.now() });
      },
      onsessionclosed: (id) => void sessions.delete(id),
    });
    transport.onerror = onerror;
    await server.connect(transport);
    return transport.handleRequest(request, options);
  };

  return {
    async answer(request, options, createServer) {
      const id = request.headers.get(HEADER);
      if (id === null) {
        if (isInitializeRequest(options.parsedBody)) return open(request, options, createServer());
        return httpError(400, `the header ${HEADER} is missing: a session begins with initialize`);
      }
      const session = sessions.get(id);
      if (session === undefined || session.caller !== options.authInfo?.clientId) {
        return httpError(404, "there is no such session: begin a new one with initialize", {}, -32_001);
      }
      session.usedAt = Date.now();
      return session.transport.handleRequest(request, options);
    },
    async close() {
      clearInterval(sweep);
      await Promise.all([...sessions].map(([id, session]) => end(id, session)));
    },
  };
}
