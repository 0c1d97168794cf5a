import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { BlockList, isIPv4, isIPv6 } from "node:net";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { createMcpHandler, isLegacyRequest, type McpServer, type McpServerFactory } from "@modelcontextprotocol/server";
import { Hono } from "hono";
import { showsViews } from "../mcp/elicitation.ts";
import type { ServerParts } from "../mcp/server-parts.ts";
import type { Log } from "../observe/log.ts";
import { systemClock } from "../platform/clock.ts";
import { SettingsError } from "../settings/value-types.ts";
import { once } from "../tools/define-tool.ts";
import { httpError, onResponseClosed, rejectForeignHost, TooBusyError } from "../web/http-errors.ts";
import { type Authenticate, type Caller, SCOPES, scopeChallenge } from "./auth.ts";
import { bodyReader, callerQuota, type Held, type Message, type ReadBody } from "./bodies.ts";
import { type Probed, probes } from "./process.ts";
import { httpSessions, type SessionCall } from "./sessions.ts";

export const MCP_PATH = "/mcp";

const HEADERS_TIMEOUT_MS = 15_000;
const REQUEST_TIMEOUT_MS = 30_000;
const TIMEOUTS_EVERY_MS = 5000;
/**
 * How long an idle connection stays open, in milliseconds. Load balancers close idle connections earlier, so they never
 * use a connection that this server is just closing.
 */
const KEEP_ALIVE_MS = 65_000;
const MAX_SUBSCRIPTIONS = 256;

type Era = Parameters<McpServerFactory>[0]["era"];

export interface HttpOptions extends Probed {
  readonly hostnames: string[];
  readonly authenticate: Authenticate;
  /** Returns a caller's services. Throws a SettingsError for unusable keys, a TooBusyError for too many keys. */
  readonly partsFor: (caller: Caller) => CallerParts;
  /** Creates an MCP server for a session or for a single request. `called` is the tool that this request calls. */
  readonly createServer: (parts: ServerParts, era: Era, called?: string) => McpServer;
  readonly toolsWithLists: ReadonlySet<string>;
  readonly metadata: ReadonlyMap<string, unknown>;
  readonly resourceMetadataUrl?: string | undefined;
  readonly sessions: boolean;
  readonly waitMs: number;
  /** The maximum number of MCP messages in progress at a time. One caller gets at most half. */
  readonly maxConcurrency: number;
  readonly log: Log;
  readonly page?: (request: Request, peer: string) => Promise<Response | undefined>;
}

interface CallerParts extends ServerParts {
  readonly use: () => () => void;
  readonly forgotten?: AbortSignal | undefined;
}

type Env = { Bindings: HttpBindings };

interface Admitted extends SessionCall, ReadBody, Pick<Caller, "missingScope"> {
  readonly parts: CallerParts;
}

/** Serves MCP, health probes and the web page. Checks MCP requests in this order: `Host`, caller, body, limits. */
export function createHttpServer(options: HttpOptions) {
  const { log } = options;
  const app = new Hono<Env>();
  const serve = mcpRoute(options);
  app.use("*", ({ req, env }, next) => {
    const requestId = requestIdOf(req.raw);
    env.outgoing.setHeader("x-request-id", requestId);
    return log.during({ requestId }, async () => {
      const refused = rejectForeignHost(req.raw.headers, options.hostnames);
      if (refused === undefined) return next();
      log.warn("a request was refused for its Host or Origin", {
        // The path below `/open/` is the code of a one-time link, so it is not logged.
        path: req.path.replace(/^\/open\/.*/, "/open/"),
      });
      return refused;
    });
  });
  app.route("/", probes(options));
  for (const [path, document] of options.metadata) app.get(path, () => Response.json(document));
  app.all(MCP_PATH, ({ req, env }) => {
    for (const [name, value] of Object.entries(readableBy(req.raw))) env.outgoing.setHeader(name, value);
    return preflightAnswer(req.raw) ?? serve.answer(req.raw, env);
  });
  app.all("*", async ({ req, env }) => {
    return (
      (await options.page?.(req.raw, peerOf(env.incoming))) ??
      httpError(404, `Not found. MCP is served at ${MCP_PATH}.`)
    );
  });
  app.onError((error) => {
    log.error("a request failed unexpectedly", { error });
    return httpError(500, "The request failed because of an error in this server. The server's log has the reason.");
  });
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUTS_EVERY_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    getRequestListener(app.fetch, { overrideGlobalObjects: false }),
  );
  return { server, close: serve.close };
}

function mcpRoute(options: HttpOptions) {
  const { log, stopping } = options;
  const { pass, close } = serving(options);
  const places = callerQuota(options.maxConcurrency);
  const subscriptions = callerQuota(MAX_SUBSCRIPTIONS);
  const read = bodyReader(options.toolsWithLists, options.waitMs);
  const refusedFor = (outgoing: ServerResponse, name: string, messages: readonly Message[]) => {
    const claim = (isSubscription(messages) ? subscriptions : places).claim(name);
    onResponseClosed(outgoing, claim.end);
    const count = messages.length;
    if (count > places.forOne)
      return httpError(
        400,
        `A caller may have at most ${places.forOne} requests in progress, but this batch contains ${count}.`,
      );
    if (claim.more(count)) return undefined;
    return httpError(503, "Too many requests are in progress. Try again in a second.", { "retry-after": "1" });
  };
  const admitted = async (request: Request, at: HttpBindings): Promise<Admitted | Response> => {
    const { outgoing } = at;
    const caller = await options.authenticate(request);
    if (caller instanceof Response) return caller;
    const { name, missingScope } = caller;
    const held = await read(request, at, name);
    if (held instanceof Response) return held;
    const refused = refusedFor(outgoing, name, held.messages);
    if (refused !== undefined) return refused;
    const parts = partsOrRefusal(options, caller);
    if (parts instanceof Response) return parts;
    if (held.messages.length > 0 && !isSubscription(held.messages)) onResponseClosed(outgoing, parts.use());
    const authInfo = { token: "", clientId: caller.owner, scopes: [caller.readOnly ? SCOPES.read : SCOPES.write] };
    return { request, outgoing, caller: name, missingScope, authInfo, forgotten: parts.forgotten, parts, ...held };
  };
  return {
    async answer(request: Request, at: HttpBindings): Promise<Response> {
      if (stopping.aborted)
        return httpError(503, "This server is stopping. Try again in a second.", {
          connection: "close",
          "retry-after": "1",
        });
      const call = await admitted(request, at);
      if (call instanceof Response) log.info("a request was refused", { status: call.status });
      else log.debug("a request", { caller: call.caller, method: request.method });
      return call instanceof Response ? call : pass(call);
    },
    close,
  };
}

function serving(options: HttpOptions) {
  const { log, authenticate, createServer: makeServer, resourceMetadataUrl } = options;
  const serverOf = new WeakMap<Request, (era: Era) => McpServer>();
  const onerror = (error: Error): void => log.debug("a message could not be handled", { error });
  const handler = createMcpHandler(
    ({ requestInfo, era }) => {
      const create = requestInfo && serverOf.get(requestInfo);
      if (create === undefined) throw new Error("a request was passed on before its checks");
      return create(era);
    },
    { maxSubscriptions: MAX_SUBSCRIPTIONS, onerror },
  );
  const sessions = options.sessions ? httpSessions(onerror) : undefined;
  const subscriptions = once(async () => {
    const { runSubscriptions } = await import("./subscriptions.ts");
    return runSubscriptions(systemClock);
  });
  /** Opens a stream of notifications. It ends at the next one about a run if the caller has lost access. */
  const listen = async (admitted: Admitted, parts: ServerParts): Promise<Response> => {
    const { request, outgoing, authInfo, body, forgotten } = admitted;
    const over = new AbortController();
    onResponseClosed(outgoing, () => over.abort());
    forgotten?.addEventListener("abort", () => over.abort(), { signal: over.signal });
    serverOf.set(request, (era) => makeServer(parts, era));
    return (await subscriptions())(body, {
      parts,
      over,
      open: (message) => handler.fetch(request, { authInfo, parsedBody: message }),
      async isLetIn() {
        const caller = await authenticate(request);
        return !(caller instanceof Response) && caller.owner === authInfo.clientId;
      },
    });
  };
  const pass = async (admitted: Admitted): Promise<Response> => {
    const { request, authInfo, body, messages, missingScope: scope, held } = admitted;
    const own = held === undefined ? admitted.parts : { ...admitted.parts, ...holding(held, admitted.parts) };
    const parts = showsViews(body) ? { ...own, views: await own.loadViews?.() } : own;
    const writes = messages.some(({ tool }) => tool !== undefined && parts.writingTools.has(tool));
    if (writes && scope !== undefined) return scopeChallenge(scope, resourceMetadataUrl);
    if (sessions !== undefined && (await isLegacyRequest(request, body))) {
      return sessions.answer(admitted, () => makeServer(parts, "legacy"));
    }
    if (isSubscription(messages)) return listen(admitted, parts);
    const only = Array.isArray(body) ? undefined : messages[0]?.tool;
    serverOf.set(request, (era) => makeServer(parts, era, only));
    return handler.fetch(request, { authInfo, parsedBody: body });
  };
  return { pass, close: () => Promise.all([handler.close(), sessions?.close()]) };
}

/** Keeps a large body's memory reserved during its calls, and while their runs continue after the answer. */
function holding({ until, planned }: Held, { calls }: ServerParts): Pick<ServerParts, "calls" | "goesOn"> {
  return {
    calls: {
      idle: calls.idle,
      during(call) {
        const answer = calls.during(call);
        until(answer);
        return answer;
      },
    },
    goesOn(rest) {
      until(rest);
      planned();
    },
  };
}

function partsOrRefusal({ partsFor }: HttpOptions, caller: Caller): CallerParts | Response {
  try {
    return partsFor(caller);
  } catch (thrown) {
    if (thrown instanceof TooBusyError) return httpError(503, thrown.message, { "retry-after": "5" });
    if (!(thrown instanceof SettingsError)) throw thrown;
    return httpError(403, "This caller has an API key, but this server has no address of that API.");
  }
}

function requestIdOf(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && /^[\w.:-]{1,64}$/.test(given) ? given : randomUUID();
}

/** Returns whether a request opens a stream of notifications, which may last for hours and has its own limit. */
function isSubscription(messages: readonly Message[]): boolean {
  return messages.length === 1 && messages[0]?.method === "subscriptions/listen";
}

/** Returns the metadata about authorization (RFC 9728), by the paths at which clients look for it. */
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

const SHOWN = "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after, x-request-id";
const REMEMBERED_S = "600";

/** Returns the headers that let a web page read answers. `Origin` was checked; cookies are never used. */
function readableBy({ headers }: Request): Readonly<Record<string, string>> {
  const origin = headers.get("origin");
  if (origin === null) return {};
  return { "access-control-allow-origin": origin, "access-control-expose-headers": SHOWN, vary: "Origin" };
}

function preflightAnswer({ method, headers }: Request): Response | undefined {
  const wanted = headers.get("access-control-request-method");
  if (method !== "OPTIONS" || wanted === null || headers.get("origin") === null) return undefined;
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-methods": "GET, POST, DELETE",
      "access-control-allow-headers": headers.get("access-control-request-headers") ?? "",
      "access-control-max-age": REMEMBERED_S,
    },
  });
}

/** The addresses of this machine and of private networks, where a reverse proxy may run. */
const NEAR = new BlockList();
for (const [network, bits] of Object.entries({
  "127.0.0.0": 8,
  "10.0.0.0": 8,
  "172.16.0.0": 12,
  "192.168.0.0": 16,
  "::1": 128,
  "fc00::": 7,
  "fe80::": 10,
})) {
  NEAR.addSubnet(network, bits, isIPv4(network) ? "ipv4" : "ipv6");
}

/**
 * Returns the network address to which limits apply. For IPv6, this is the /64 network, because one machine may use all
 * addresses in it. If the request came from this machine or a private network, it is the last address, if any, in
 * X-Forwarded-For, which a proxy there has written.
 */
export function peerOf({
  socket,
  headers,
}: Pick<IncomingMessage, "headers"> & { socket: { remoteAddress?: string | undefined } }) {
  const from = plain(socket.remoteAddress ?? "");
  const forwarded = plain([headers["x-forwarded-for"] ?? ""].flat().join().split(",").at(-1)?.trim() ?? "");
  const isNear = (isIPv4(from) && NEAR.check(from)) || (isIPv6(from) && NEAR.check(from, "ipv6"));
  return networkOf(isNear && (isIPv4(forwarded) || isIPv6(forwarded)) ? forwarded : from);
}

/** Returns an address without zone, brackets and port. An IPv4-mapped IPv6 address becomes an IPv4 address. */
function plain(address: string): string {
  const bare = address.replace(/^\[([^\]]*)\](?::\d+)?$/, "$1").replace(/%.*$/, "");
  const mapped = bare.replace(/^::ffff:(?=\d+\.)/i, "");
  return isIPv6(mapped) ? mapped : mapped.replace(/:\d+$/, "");
}

function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.toLowerCase().split("::");
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const whole =
    tail === undefined ? groups : [...groups, ...Array(8 - groups.length - after.length).fill("0"), ...after];
  return whole
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
