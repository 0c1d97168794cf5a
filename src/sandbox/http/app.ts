import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { type Operation, ROUTES } from "../../spec/routes.ts";
import { answerEvent } from "../events/event-endpoint.ts";
import { answerManagement } from "../management/management.ts";
import { type ManagementOperation, OPERATIONS } from "../management/operations.ts";
import type { World } from "../world.ts";
import { callerOf, isFromLoopback, isServed, type ServedNames } from "./callers.ts";
import { controlPlane } from "./control-plane.ts";
import { deliver, statusAnswer } from "./reply.ts";
import { type RequestBody, readBody } from "./request-body.ts";
import type { RequestEntry } from "./request-journal.ts";

const NOT_SERVED =
  "this sandbox is not served under the name in Host, or not to pages of the Origin; " +
  "TARGETING_MCP_ALLOWED_HOSTS lists names to be served";

/** A hono context over Node's own requests. */
type NodeContext = Context<{ Bindings: HttpBindings }>;

const CORS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Allow-Methods": "POST, OPTIONS",
  "Access-Control-Allow-Headers": "Authorization, Content-Type",
  "Access-Control-Max-Age": "600",
};

const CONTROL_PLANE = "/_sandbox";

/** How a sandbox is served. */
interface AppOptions {
  /** Base address of a real event endpoint to which events are passed on. */
  readonly forward: string | undefined;
  readonly names: ServedNames;
  /** Serves the page for people, which only this machine gets. */
  readonly page?: ((request: Request) => Promise<Response>) | undefined;
}

/** The page's routes; the APIs and the control plane have none of them. */
const isOfPage = (path: string): boolean => path === "/" || path.startsWith("/page/");

/** The HTTP face of a sandbox: both APIs, and the control plane under `/_sandbox`, which checks callers by itself. */
export function sandboxApp(world: World, { forward, names, page }: AppOptions): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.route(CONTROL_PLANE, controlPlane(world));
  app.use(async (c, next) => {
    if (isServed(callerOf(c.env.incoming), names, c.req.path === ROUTES.trackEvent.path)) return next();
    return deliver(statusAnswer(403, NOT_SERVED), c.env.incoming, dated(world));
  });
  app.use(async (c, next) => {
    const { incoming } = c.env;
    if (page === undefined || !isOfPage(c.req.path) || !isFromLoopback(callerOf(incoming))) return next();
    return page(c.req.raw);
  });
  app.options(ROUTES.trackEvent.path, (c) => c.body(null, 204, CORS));
  app.post(ROUTES.trackEvent.path, (c) => serveEvent(world, c, forward));
  for (const operation of managementOperations()) {
    const { method, path } = ROUTES[operation];
    app.on(method, honoPath(path), (c) => serveManagement(world, c, operation));
  }
  const refuse = (status: number) => (c: NodeContext) =>
    deliver(statusAnswer(status, `Cannot ${c.req.method} ${c.req.path}`), c.env.incoming, dated(world));
  for (const { path } of Object.values(ROUTES)) app.all(honoPath(path), refuse(405));
  app.notFound(refuse(404));
  app.onError((error, c) => deliver(statusAnswer(500, error.message), c.env.incoming, dated(world)));
  return app;
}

async function serveManagement(world: World, c: NodeContext, operation: ManagementOperation): Promise<Response> {
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
  return deliver(reply, c.env.incoming, dated(world));
}

async function serveEvent(world: World, c: NodeContext, forward: string | undefined): Promise<Response> {
  const body = await readBody(c.env.incoming);
  const entry = begin(world, c, "trackEvent", body);
  const request = {
    authorization: c.req.header("authorization"),
    contentType: c.req.header("content-type"),
    body,
    entry,
  };
  const reply = await answerEvent(world, request, forward);
  entry.status = typeof reply === "string" ? null : reply.status;
  const headers = dated(world);
  for (const [name, value] of Object.entries(CORS)) headers.set(name, value);
  return deliver(reply, c.env.incoming, headers);
}

/** Notes a request in the journal; its entry is completed as the request is answered. */
function begin(world: World, c: NodeContext, operation: Operation, body: RequestBody): RequestEntry {
  const entry: RequestEntry = {
    at: new Date(world.sources.now()).toISOString(),
    operation,
    method: c.req.method,
    // A copy, since a slice of the request line would keep the whole line in memory.
    path: Buffer.from(c.req.path).toString("utf8"),
    status: null,
    applied: false,
    bytes: "tooLarge" in body ? body.tooLarge : body.bytes,
    items: null,
  };
  world.requests.add(entry);
  return entry;
}

/** The service's clock, by which clients date what it created. */
function dated(world: World): Headers {
  return new Headers({ Date: new Date(world.sources.now()).toUTCString() });
}

/** A parameter that is given several times stays a list, which no rule accepts. */
function queryOf(queries: Record<string, string[]>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(queries).map(([key, values]) => [key, values.length === 1 ? values[0] : values]),
  );
}

function managementOperations(): readonly ManagementOperation[] {
  return Object.keys(OPERATIONS).filter((name): name is ManagementOperation => Object.hasOwn(OPERATIONS, name));
}

/** A route's path as hono writes it; each has one parameter at most. */
function honoPath(path: string): string {
  return path.replace(/\{\w+\}/, ":id");
}
