import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import {
  type AuthInfo,
  isInitializeRequest,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { httpError, onResponseClosed } from "../web/http-errors.ts";

const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
const MAX_SESSIONS = 1000;
const MAX_OF_ONE = MAX_SESSIONS / 2;

const HEADER = "mcp-session-id";

interface Session extends Pick<SessionCall, "caller" | "authInfo"> {
  readonly id: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: McpServer;
  readonly release: () => void;
  requests: number;
  usedAt: number;
}

export interface SessionCall {
  readonly request: Request;
  readonly outgoing: ServerResponse;
  readonly body: unknown;
  /** The caller and their rights. A session accepts only requests with the caller and rights that opened it. */
  readonly authInfo: AuthInfo;
  readonly caller: string;
  /** Aborted when the session must end. */
  readonly forgotten?: AbortSignal | undefined;
}

function sessionTable(onerror: (error: Error) => void) {
  const sessions = new Map<string, Session>();
  const remove = (id: string): void => {
    sessions.get(id)?.release();
    sessions.delete(id);
  };
  const end = async ({ id, transport, server }: Session): Promise<void> => {
    remove(id);
    await Promise.all([transport.close(), server.close()]);
  };
  const sweep = setInterval(() => {
    for (const session of sessions.values()) {
      if (isIdle(session) && Date.now() - session.usedAt > IDLE_MS) end(session).catch(onerror);
    }
  }, SWEEP_MS).unref();
  /** Returns sessions, one of which must end before this caller can open another. Empty below the limits. */
  const crowd = (caller: string): readonly Session[] => {
    const all = [...sessions.values()];
    const own = all.filter((session) => session.caller === caller);
    if (own.length >= MAX_OF_ONE) return own;
    return all.length >= MAX_SESSIONS ? all : [];
  };
  return {
    remove,
    end,
    hasRoom(caller: string): boolean {
      const inTheWay = crowd(caller);
      return inTheWay.length === 0 || inTheWay.some(isIdle);
    },
    /** Adds a session. If a limit is reached, ends the idle session that was used least recently. */
    add(session: Session): void {
      const oldest = crowd(session.caller).find(isIdle);
      if (oldest !== undefined) end(oldest).catch(onerror);
      sessions.set(session.id, session);
    },
    /** Returns the session with this ID and marks it as used. Undefined if unknown, or if caller or rights differ. */
    use(id: string, { clientId, scopes }: AuthInfo): Session | undefined {
      const session = sessions.get(id);
      if (session?.authInfo.clientId !== clientId || session.authInfo.scopes.join() !== scopes.join()) return undefined;
      session.usedAt = Date.now();
      sessions.delete(id);
      sessions.set(id, session);
      return session;
    },
    async close() {
      clearInterval(sweep);
      await Promise.all([...sessions.values()].map(end));
    },
  };
}

/** Answers requests in sessions. Each has its own MCP server, which can ask its client questions. */
export function httpSessions(onerror: (error: Error) => void) {
  const table = sessionTable(onerror);
  const answerIn = (session: Session, { request, outgoing, body, authInfo }: SessionCall): Promise<Response> => {
    // A GET opens a stream that may stay open for hours, so the session can become idle in the meantime.
    if (request.method !== "GET") {
      session.requests += 1;
      onResponseClosed(outgoing, () => {
        session.requests -= 1;
        session.usedAt = Date.now();
      });
    }
    return session.transport.handleRequest(request, { authInfo, parsedBody: body });
  };

  const open = async (call: SessionCall, server: McpServer): Promise<Response> => {
    const { caller, authInfo, forgotten } = call;
    if (!table.hasRoom(caller))
      return httpError(503, "Too many sessions are open. Try again in a minute.", { "retry-after": "60" });
    const id = randomUUID();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessioninitialized: () => {
        table.add(session);
        forgotten?.addEventListener("abort", endNow, { once: true });
      },
      onsessionclosed: table.remove,
    });
    const endNow = (): void => void table.end(session).catch(onerror);
    const release = (): void => forgotten?.removeEventListener("abort", endNow);
    const session: Session = { id, transport, server, caller, authInfo, release, requests: 0, usedAt: Date.now() };
    transport.onerror = onerror;
    await server.connect(transport);
    return answerIn(session, call);
  };

  return {
    /** Answers a request of a session. If the request opens a session, `createServer` creates its MCP server. */
    async answer(call: SessionCall, createServer: () => McpServer): Promise<Response> {
      const id = call.request.headers.get(HEADER);
      if (id === null) {
        if (isInitializeRequest(call.body)) return open(call, createServer());
        return httpError(400, `The header ${HEADER} is missing. To open a session, send initialize.`);
      }
      const session = table.use(id, call.authInfo);
      if (session !== undefined) return answerIn(session, call);
      return httpError(404, "There is no such session. To open a new one, send initialize.", {}, -32_001);
    },
    close: table.close,
  };
}

function isIdle({ requests }: Session): boolean {
  return requests === 0;
}
