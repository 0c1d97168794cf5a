import { randomUUID } from "node:crypto";
import { createServer, type Server as HttpServer } from "node:http";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import {
  type AuthInfo,
  createMcpHandler,
  isJsonContentType,
  isLegacyRequest,
  type McpServer,
} from "@modelcontextprotocol/server";
import { Hono } from "hono";
import * as z from "zod";
import { SettingsError } from "../settings/error.ts";
import { type Authenticate, type Caller, SCOPES, scopeChallenge } from "./auth.ts";
import { foreignHost, httpError, readBody, slots } from "./http-guards.ts";
import { httpSessions } from "./http-sessions.ts";
import type { Log } from "./log.ts";
import type { ServerParts } from "./mcp-server.ts";

/** Where MCP is served. */
export const MCP_PATH = "/mcp";

/** The largest body that is read, in bytes: twice what one request to the API may hold. */
const LARGEST_BODY = 16 * 1_048_576;
/** For a client to send its headers, and its whole request. */
const HEADERS_TIMEOUT_MS = 15_000;
const REQUEST_TIMEOUT_MS = 120_000;
/** Longer than load balancers keep a connection, so that they never send into one that is just closing. */
const KEEP_ALIVE_MS = 65_000;
const MOST_SUBSCRIPTIONS = 256;

/** What the HTTP face needs. */
export interface HttpOptions {
  /** The names that `Host` and `Origin` may carry. */
  readonly hostnames: string[];
  readonly authenticate: Authenticate;
  /** What a caller's servers are made of. Throws a SettingsError where the caller's keys are of no use here. */
  readonly partsFor: (caller: Caller) => ServerParts;
  /** Makes a server of them: for one request, in which perhaps one tool is called, or for a session. */
  readonly createServer: (parts: ServerParts, called?: string) => McpServer;
  /** Protected-resource metadata (RFC 9728), by path. */
  readonly metadata: ReadonlyMap<string, unknown>;
  readonly resourceMetadataUrl?: string | undefined;
  /** Whether 2025-era clients get sessions. */
  readonly sessions: boolean;
  readonly maxConcurrency: number;
  readonly log: Log;
  /** Aborted when the process is about to end: nothing new is taken. */
  readonly stopping: AbortSignal;
}

/** The HTTP face: give it a port with `server.listen`. */
export interface HttpFace {
  readonly server: HttpServer;
  /** Ends what is left of streams and sessions. */
  close(): Promise<void>;
}

type Env = { Bindings: HttpBindings };

/** A request that may pass: who sent it, what its servers are made of, and what it holds. */
interface Admitted {
  readonly request: Request;
  readonly caller: Caller;
  readonly parts: ServerParts;
  readonly authInfo: AuthInfo;
  readonly body: unknown;
}

/**
 * Serves MCP over Streamable HTTP, both protocol eras from one factory, each request by itself; and `/healthz`. `Host`
 * and `Origin` are looked at before anything else, then who calls, then whether there is room, then the body.
 */
export function httpFace(options: HttpOptions): HttpFace {
  const { log, stopping } = options;
  const app = new Hono<Env>();
  const serve = mcpRoute(options);
  app.use("*", ({ req, env }, next) => {
    const requestId = requestIdOf(req.raw);
    env.outgoing.setHeader("x-request-id", requestId);
    return log.during({ requestId }, async () => {
      const refused = foreignHost(req.raw.headers, options.hostnames);
      if (refused === undefined) return next();
      log.warn("a request was refused for its Host or Origin", { path: req.path });
      return refused;
    });
  });
  app.get("/healthz", () =>
    Response.json({ status: stopping.aborted ? "stopping" : "ok" }, { status: stopping.aborted ? 503 : 200 }),
  );
  for (const [path, document] of options.metadata) app.get(path, () => Response.json(document));
  app.all(MCP_PATH, ({ req, env }) => serve.answer(req.raw, env));
  app.notFound(() => httpError(404, `there is nothing here: MCP is served at ${MCP_PATH}`));
  app.onError((error) => {
    log.error("a request failed unexpectedly", { error });
    return httpError(500, "the request failed for a reason inside this server; its log says more");
  });
  const server = createServer(
    { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: KEEP_ALIVE_MS },
    getRequestListener(app.fetch, { overrideGlobalObjects: false }),
  );
  return { server, close: serve.close };
}

function mcpRoute(options: HttpOptions) {
  const { log, stopping } = options;
  const free = slots(options.maxConcurrency);
  const serverOf = new WeakMap<Request, () => McpServer>();
  const onerror = (error: Error): void => log.debug("a message could not be handled", { error });
  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const create = requestInfo && serverOf.get(requestInfo);
      if (create === undefined) throw new Error("a request came in without having been let in");
      return create();
    },
    { maxSubscriptions: MOST_SUBSCRIPTIONS, onerror },
  );
  const sessions = options.sessions ? httpSessions(onerror) : undefined;
  const pass = async ({ request, caller, parts, authInfo, body }: Admitted): Promise<Response> => {
    const called = calledTool(body);
    const scope = called !== undefined && parts.writingTools.has(called) ? caller.missingScope : undefined;
    if (scope !== undefined) return scopeChallenge(scope, options.resourceMetadataUrl);
    if (sessions !== undefined && (await isLegacyRequest(request, body))) {
      return sessions.answer(request, { authInfo, parsedBody: body }, () => options.createServer(parts));
    }
    serverOf.set(request, () => options.createServer(parts, called));
    return handler.fetch(request, { authInfo, parsedBody: body });
  };
  return {
    async answer(request: Request, { incoming, outgoing }: HttpBindings): Promise<Response> {
      if (stopping.aborted)
        return httpError(503, "this server is stopping", { connection: "close", "retry-after": "1" });
      const caller = await options.authenticate(request);
      if (caller instanceof Response) return told(caller, log);
      const give = free.take(outgoing);
      if (give === undefined) {
        return told(httpError(503, "too many requests are under way; try again", { "retry-after": "1" }), log);
      }
      const body = await bodyOf(request, incoming);
      if (body instanceof Response) return told(body, log);
      if (isOpenEnded(request, body)) give();
      const parts = partsOrRefusal(options, caller);
      if (parts instanceof Response) return told(parts, log);
      const authInfo = { token: "", clientId: caller.name, scopes: [] };
      log.debug("a request", { caller: caller.name, method: request.method });
      // A caller with other keys has a log of their own, which knows them and takes them out.
      return parts.log.during(log.facts(), () => pass({ request, caller, parts, authInfo, body }));
    },
    async close() {
      await Promise.all([handler.close(), sessions?.close()]);
    },
  };
}

function partsOrRefusal({ partsFor }: HttpOptions, caller: Caller): ServerParts | Response {
  try {
    return partsFor(caller);
  } catch (thrown) {
    if (!(thrown instanceof SettingsError)) throw thrown;
    return httpError(403, "a key was given for an API of which this server has no address");
  }
}

function told(response: Response, log: Log): Response {
  log.info("a request was refused", { status: response.status });
  return response;
}

/** The ID of the client or proxy where it is fit for a log, else a new one. */
function requestIdOf(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && /^[\w.:-]{1,64}$/.test(given) ? given : randomUUID();
}

/** The body as data; undefined where there is none to be read here, since the method or media type is refused later. */
async function bodyOf(request: Request, incoming: HttpBindings["incoming"]): Promise<unknown> {
  if (request.method !== "POST" || !isJsonContentType(request.headers.get("content-type"))) return undefined;
  const read = await readBody(incoming, LARGEST_BODY);
  if ("broken" in read) return httpError(400, "the body did not arrive whole");
  if ("tooLarge" in read) {
    const message = `the body is larger than ${LARGEST_BODY} bytes: send the items in several calls`;
    return httpError(413, message, { connection: "close" });
  }
  try {
    return JSON.parse(read.text);
  } catch {
    return httpError(400, "the body is no JSON", {}, -32_700);
  }
}

const message = z.object({ method: z.string(), params: z.object({ name: z.string().optional() }).optional() });

/** A stream on which a client waits for news takes no place: it may stay open for hours. */
function isOpenEnded(request: Request, body: unknown): boolean {
  return request.method === "GET" || message.safeParse(body).data?.method === "subscriptions/listen";
}

/** The name of the tool that a message calls. */
function calledTool(body: unknown): string | undefined {
  const { data } = message.safeParse(body);
  return data?.method === "tools/call" ? data.params?.name : undefined;
}

/** What clients find out about who may call (RFC 9728), by the paths at which they look. */
export function protectedResource(publicUrl: string, issuer: string) {
  const { origin, pathname } = new URL(publicUrl);
  const base = "/.well-known/oauth-protected-resource";
  const path = `${base}${pathname === "/" ? "" : pathname}`;
  const document = {
    resource: publicUrl,
    authorization_servers: [issuer],
    scopes_supported: Object.values(SCOPES),
    bearer_methods_supported: ["header"],
    resource_name: "targeting-mcp",
  };
  return { url: `${origin}${path}`, metadata: new Map([base, path].map((at) => [at, document])) };
}
