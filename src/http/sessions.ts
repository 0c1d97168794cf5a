import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import {
  type AuthInfo,
  isInitializeRequest,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { httpError, onResponseClosed } from "../web/http-errors.ts";

/** A session ends after this time without a request. */
const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
/** The maximum number of sessions of all callers together, and of one. */
const MAX_SESSIONS = 1000;
const MAX_OF_ONE = MAX_SESSIONS / 2;

const HEADER = "mcp-session-id";

/** A session, and the caller that owns it. */
interface Session extends Pick<SessionCall, "caller" | "authInfo"> {
  readonly id: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: McpServer;
  /** Called once it has ended. */
  readonly release: () => void;
  /** The requests in progress. */
  requests: number;
  usedAt: number;
}

/** A request of a client of the 2025 era. */
export interface SessionCall {
  readonly request: Request;
  readonly outgoing: ServerResponse;
  readonly body: unknown;
  /** The caller and the rights of its token. A session may only be used with the same ones. */
  readonly authInfo: AuthInfo;
  /** The caller, who gets at most half of all sessions. */
  readonly caller: string;
  /** Aborted when a session that this request opens must end; absent: it need not. */
  readonly forgotten?: AbortSignal | undefined;
}

/** The sessions of clients of the 2025 era. Each keeps its server, so that its client can be asked. */
export interface HttpSessions {
  /** Answers a request of the 2025 era. `createServer` creates the server of a session that the request opens. */
  answer(call: SessionCall, createServer: () => McpServer): Promise<Response>;
  close(): Promise<void>;
}

/** Creates the table of open sessions; the most recently used one comes last. */
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
  /** Returns the sessions of which one must end before this caller can open another; none if there is room. */
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
    /** Adds a session. If there is no room, the session that has been idle longest is ended. */
    add(session: Session): void {
      const oldest = crowd(session.caller).find(isIdle);
      if (oldest !== undefined) end(oldest).catch(onerror);
      sessions.set(session.id, session);
    },
    /** Returns the session with this ID, marked as used; undefined if none was opened with the same rights. */
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

/** Keeps sessions in this process. `onerror` receives the errors that no answer to a request can report. */
export function httpSessions(onerror: (error: Error) => void): HttpSessions {
  const table = sessionTable(onerror);
  const answerIn = (session: Session, { request, outgoing, body, authInfo }: SessionCall): Promise<Response> => {
    // A stream of notifications may stay open for hours without any work in it.
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
    if (!table.hasRoom(caller)) return httpError(503, "too many sessions are open", { "retry-after": "60" });
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
    async answer(call, createServer) {
      const id = call.request.headers.get(HEADER);
      if (id === null) {
        if (isInitializeRequest(call.body)) return open(call, createServer());
        return httpError(400, `the header ${HEADER} is missing: a session begins with initialize`);
      }
      const session = table.use(id, call.authInfo);
      if (session !== undefined) return answerIn(session, call);
      return httpError(404, "there is no such session: begin a new one with initialize", {}, -32_001);
    },
    close: table.close,
  };
}

function isIdle({ requests }: Session): boolean {
  return requests === 0;
}
