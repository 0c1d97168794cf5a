import { once } from "node:events";
import { createServer } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { isJsonObject } from "../platform/json.ts";
import { openPort, originOf } from "../platform/listen.ts";
import { type Operation, ROUTES } from "../spec/routes.ts";
import { answerEvent, answerManagement, checkForward } from "./apis.ts";
import { callerOf, isFromLoopback, isServed, type ServedNames } from "./callers.ts";
import { controlPlane } from "./control-plane.ts";
import type { ArrivedEvent, RequestEntry } from "./logs.ts";
import { type ManagementOperation, OPERATIONS } from "./rules/operations.ts";
import { deliver, type Reply, type RequestBody, readBody, statusAnswer } from "./rules/outcome.ts";
import { plantSeed, type Seed, SeedError } from "./seed.ts";
import { dataFile, dumpWorld, loadWorld, noState, readDataFile } from "./state-dump.ts";
import { newWorld, type World, type WorldOptions } from "./world.ts";

export interface SandboxOptions extends WorldOptions {
  /** The address to listen on. Default: 127.0.0.1. */
  readonly host?: string;
  /** The port to listen on. Default: 0, which means any free port. */
  readonly port?: number;
  /** Further host names of the APIs. `localhost` and IP addresses are always accepted. */
  readonly allowedHosts?: readonly string[];
  readonly dataFile?: string | undefined;
  /** Not used if the data file exists. */
  readonly seed?: Seed | undefined;
  /** The base address of a real event endpoint, to which clients' events are sent as well. */
  readonly forward?: string | undefined;
  /** Creates the handler of the web page. Called when a browser opens the page for the first time. */
  readonly page?: (world: World, url: string) => Promise<(request: Request) => Promise<Response>>;
  readonly failed?: ((request: FailedRequest) => void) | undefined;
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

const KEEP_ALIVE_MS = 65_000;

/**
 * Starts a sandbox of both APIs at one address. Throws a DataFileError if the data file cannot be used, a RangeError if
 * `forward` is no address, a SeedError if the seed contradicts itself, or the system's error if the port cannot be
 * opened.
 */
export async function startSandbox(options: SandboxOptions = {}) {
  if (options.forward !== undefined) checkForward(options.forward);
  const world = newWorld(options, () => data?.touch());
  const data = options.dataFile === undefined ? undefined : dataFile(options.dataFile, () => dumpWorld(world));
  const isLoaded = options.dataFile !== undefined && (await loadFrom(world, options.dataFile));
  if (options.seed !== undefined && !isLoaded) plant(world, options.seed);
  world.readyAt = world.sources.now();
  await data?.flush();
  const host = options.host ?? "127.0.0.1";
  const allowed = (options.allowedHosts ?? []).map((name) => name.toLowerCase());
  let serving: Promise<(request: Request) => Promise<Response>> | undefined;
  const { page: makePage } = options;
  const page =
    makePage &&
    (async (request: Request) => {
      serving ??= makePage(world, originOf(host, listening.port));
      return (await serving)(request);
    });
  const app = sandboxApp(world, { forward: options.forward, names: { host, allowed }, page, failed: options.failed });
  const listening = await listen(app, host, options.port ?? 0);
  let closing: Promise<void> | undefined;
  return {
    /** The address of both APIs, without a slash at its end. */
    url: originOf(host, listening.port),
    port: listening.port,
    /** Closes all connections and saves the state in the data file, if any. Throws if it cannot be written. */
    close: (): Promise<void> => {
      closing ??= listening.stop().then(() => data?.flush());
      return closing;
    },
    /** Lets the process end even while the server is listening. */
    unref: listening.unref,
    events: (): readonly ArrivedEvent[] => world.events.read({}, Number.POSITIVE_INFINITY).events,
    onEvent(arrived: (event: ArrivedEvent) => void): void {
      let last = world.events.newest();
      world.watch("events", () => {
        for (; last < world.events.newest(); last += 1) {
          const event = world.events.at(last + 1);
          if (event !== undefined) arrived(event);
        }
      });
    },
    targetings: (): readonly { readonly _id: string; readonly name: string }[] =>
      [...world.projects.values()].flatMap(({ targetings }) => [...targetings.values()]),
    shutdownSummary: (): string => {
      const { recorded, ignored, rejected } = world.events.counts();
      const { dropped } = world.events.read({}, 0);
      const forgotten = dropped === 0 ? "" : `; the oldest ${dropped} were dropped for space`;
      return `events: ${recorded} recorded, ${ignored} ignored, ${rejected} rejected${forgotten}`;
    },
  };
}

function plant(world: World, seed: Seed): void {
  try {
    plantSeed(world, seed);
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new SeedError(`the seed is inconsistent: ${thrown.message}`, { cause: thrown });
  }
}

async function loadFrom(world: World, file: string): Promise<boolean> {
  const saved = await readDataFile(file);
  if (saved === undefined) return false;
  try {
    loadWorld(world, saved);
    return true;
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw noState(file, thrown.message, thrown);
  }
}

/** Opens a port. Throws the system's error if that fails. */
async function listen(app: Hono<{ Bindings: HttpBindings }>, host: string, port: number) {
  // A client would lose a request that it sends while its idle connection closes. So idle connections stay open long.
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, getRequestListener(app.fetch));
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return {
    port: await openPort(server, host, port),
    async stop(): Promise<void> {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
    unref() {
      server.unref();
      for (const socket of sockets) socket.unref();
      server.on("connection", (socket: Socket) => socket.unref());
    },
  };
}

const NOT_SERVED =
  "this sandbox does not accept the host name in the Host or Origin header; " +
  "to accept it, add the name to TARGETING_MCP_ALLOWED_HOSTS";

type NodeContext = Context<{ Bindings: HttpBindings }>;

const CORS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Allow-Methods": "POST, OPTIONS",
  "Access-Control-Allow-Headers": "Authorization, Content-Type",
  "Access-Control-Max-Age": "600",
};

const CONTROL_PLANE = "/_sandbox";

/** A request that failed. `status` is undefined if it got no answer. */
interface FailedRequest {
  readonly at: string;
  readonly method: string;
  readonly path: string;
  readonly status: number | undefined;
  readonly message: string;
}

interface AppOptions {
  readonly forward: string | undefined;
  readonly names: ServedNames;
  /** Answers requests for the web page, which only browsers on this machine can open. */
  readonly page?: ((request: Request) => Promise<Response>) | undefined;
  readonly failed?: ((request: FailedRequest) => void) | undefined;
}

const isOfPage = (path: string): boolean => path === "/" || path.startsWith("/page/");

/** Serves the event API, the management API and, to requests from this machine, the control plane and the web page. */
function sandboxApp(world: World, options: AppOptions): Hono<{ Bindings: HttpBindings }> {
  const { forward, names, page, failed } = options;
  const app = new Hono<{ Bindings: HttpBindings }>();
  const send = (c: NodeContext, reply: Reply, headers = dated(world)): Promise<Response> => {
    if (failed !== undefined) reportFailure(world, c, reply, failed);
    return deliver(reply, c.env.incoming, headers);
  };
  app.route(CONTROL_PLANE, controlPlane(world));
  app.use(async (c, next) => {
    if (isServed(callerOf(c.env.incoming), names, c.req.path === ROUTES.trackEvent.path)) return next();
    return send(c, statusAnswer(403, NOT_SERVED));
  });
  app.use(async (c, next) => {
    const { incoming } = c.env;
    if (page === undefined || !isOfPage(c.req.path) || !isFromLoopback(callerOf(incoming))) return next();
    return page(c.req.raw);
  });
  app.options(ROUTES.trackEvent.path, (c) => c.body(null, 204, CORS));
  app.post(ROUTES.trackEvent.path, async (c) => {
    const { reply, isLogged } = await serveEvent(world, c, forward);
    const headers = dated(world);
    for (const [name, value] of Object.entries(CORS)) headers.set(name, value);
    return isLogged ? deliver(reply, c.env.incoming, headers) : send(c, reply, headers);
  });
  for (const operation of Object.keys(OPERATIONS).filter(isManagementOperation)) {
    const { method, path } = ROUTES[operation];
    app.on(method, honoPath(path), async (c) => send(c, await serveManagement(world, c, operation)));
  }
  const refuse = (status: number) => (c: NodeContext) =>
    send(c, statusAnswer(status, `Cannot ${c.req.method} ${c.req.path}`));
  for (const { path } of Object.values(ROUTES)) app.all(honoPath(path), refuse(405));
  app.notFound((c) => {
    const { method, path } = c.req;
    if (method === "POST") world.events.addUnknownPath(new Date(world.sources.now()).toISOString(), path);
    return refuse(404)(c);
  });
  app.onError((error, c) => send(c, statusAnswer(500, error.message)));
  return app;
}

function reportFailure(world: World, c: NodeContext, reply: Reply, failed: (request: FailedRequest) => void): void {
  const { method, path } = c.req;
  const request = { at: new Date(world.sources.now()).toISOString(), method, path };
  if (typeof reply === "string") {
    const message =
      reply === "reset" ? "a simulated failure broke the connection" : "a simulated failure gave no answer";
    failed({ ...request, status: undefined, message });
  } else if (reply.status >= 400) {
    failed({ ...request, status: reply.status, message: messageOf(reply.body) });
  }
}

function messageOf(body: unknown): string {
  const { message = "" } = isJsonObject(body) ? body : {};
  return Array.isArray(message) ? message.join("; ") : String(message);
}

async function serveManagement(world: World, c: NodeContext, operation: ManagementOperation): Promise<Reply> {
  const body = await readBody(c.env.incoming);
  const entry = begin(world, c, operation, body);
  const reply = await answerManagement(world, {
    operation,
    key: c.req.header("x-api-key"),
    pathId: c.req.param("id") ?? "",
    query: queryOf(c.req.queries()),
    body,
    entry,
  });
  entry.status = typeof reply === "string" ? null : reply.status;
  return reply;
}

/** Answers an event. `isLogged`: false if it was too large or hit by a fault, and so may not be in the log. */
async function serveEvent(
  world: World,
  c: NodeContext,
  forward: string | undefined,
): Promise<{ readonly reply: Reply; readonly isLogged: boolean }> {
  const body = await readBody(c.env.incoming);
  const entry = begin(world, c, "trackEvent", body);
  const [authorization, contentType] = [c.req.header("authorization"), c.req.header("content-type")];
  const reply = await answerEvent(world, { authorization, contentType, body, entry }, forward);
  entry.status = typeof reply === "string" ? null : reply.status;
  return { reply, isLogged: entry.fault === undefined && !("tooLarge" in body) };
}

/** Adds a request to the request log. Its status follows when it is answered. */
function begin(world: World, c: NodeContext, operation: Operation, body: RequestBody): RequestEntry {
  const entry: RequestEntry = {
    at: new Date(world.sources.now()).toISOString(),
    operation,
    method: c.req.method,
    // A copy of the path: the original text would keep the whole request line in memory.
    path: Buffer.from(c.req.path).toString("utf8"),
    status: null,
    applied: false,
    bytes: "tooLarge" in body ? body.tooLarge : body.bytes,
    items: null,
  };
  world.requests.add(entry);
  return entry;
}

/** Returns the header `Date` with the sandbox's time, from which clients estimate the clock of the service. */
function dated(world: World): Headers {
  return new Headers({ Date: new Date(world.sources.now()).toUTCString() });
}

/** Returns the query of a request. A repeated parameter gets a list of its values, which validation then rejects. */
function queryOf(queries: Record<string, string[]>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(queries).map(([key, values]) => [key, values.length === 1 ? values[0] : values]),
  );
}

function isManagementOperation(name: string): name is ManagementOperation {
  return Object.hasOwn(OPERATIONS, name);
}

/** Returns the path of a route in the syntax of Hono. A route has at most one parameter. */
function honoPath(path: string): string {
  return path.replace(/\{\w+\}/, ":id");
}
