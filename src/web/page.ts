import { createHash, timingSafeEqual } from "node:crypto";
import { Hono, type MiddlewareHandler } from "hono";
import * as z from "zod";
import { parseJson } from "../platform/json.ts";
import { originIn } from "../platform/listen.ts";
import { isLoopback } from "../settings/value-types.ts";
import { asset, type PageAbout, pageDocument } from "./assets.ts";
import { type LoginWays, PATHS, type Refusal } from "./wire.ts";

// The application behind the page, for each way in: headers, files, the checks of requests, and error responses.

/** The content security policy of the page: no foreign resources, no inline code, no frames. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join("; ");

/** The headers of every response of the page's routes. */
const PAGE_HEADERS = {
  "Content-Security-Policy": POLICY,
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-store",
} as const;

/** The maximum size of a POST body in bytes: the page sends decisions and short forms. */
const MAX_BYTES = 65_536;

/** The error for a request that is not carried out, with its response. `why` is the reason, or the ways to log in. */
export class RefusedRequest extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Refusal | LoginWays;

  constructor(status: number, why: string | LoginWays, headers: Readonly<Record<string, string>> = {}) {
    const body = typeof why === "string" ? { message: why } : why;
    super(body.message);
    [this.status, this.body, this.headers] = [status, body, headers];
  }
}

/** Returns the value. Throws a RefusedRequest if it is undefined. */
export function orRefused<Found>(
  found: Found | undefined,
  message = "There is nothing at this address.",
  status = 404,
): Found {
  if (found === undefined) throw new RefusedRequest(status, message);
  return found;
}

/** The context of a request to the page: its sender, the JSON that it posted, and, behind `enter`, its session. */
export interface PageEnv<Session> {
  readonly Bindings: { readonly peer?: string };
  readonly Variables: { posted: unknown; session: Session };
}

/** The application of a page. */
export type PageApp<Session> = Hono<PageEnv<Session>>;

/** One of the ways to reach the page. */
interface WayIn<Session> {
  /** The address of the page as people see it. */
  readonly address: string;
  /** The paths that show the page, which contains no data. */
  readonly shownAt: readonly string[];
  /** Returns what the page passes to its script. */
  readonly about: () => PageAbout;
  /** Adds the routes that need no session. */
  readonly openRoutes?: (app: PageApp<Session>) => void;
  /** Returns the session of a request. Throws a RefusedRequest if it has none. */
  readonly enter: (request: Request) => Promise<Session>;
}

/** Returns the application of a page. The routes that are added to it need a session. Callers have checked `Host`. */
export function pageApp<Session>({ address, shownAt, about, openRoutes, enter }: WayIn<Session>): PageApp<Session> {
  const app: PageApp<Session> = new Hono();
  app.use(async (context, next) => {
    await next();
    for (const [name, value] of Object.entries(PAGE_HEADERS)) context.header(name, value);
  });
  app.onError(refusedAnswer);
  app.notFound(() => orRefused<Response>(undefined));
  for (const path of shownAt) app.get(path, () => pageDocument(about()));
  app.get(PATHS.script, () => asset("script"));
  app.get(PATHS.style, () => asset("style"));
  const withScheme: MiddlewareHandler = ({ req }, next) => {
    checkScheme(req.raw, address);
    return next();
  };
  if (openRoutes !== undefined) {
    app.post("*", withScheme);
    openRoutes(app);
  }
  app.use(async (context, next) => {
    context.set("session", await enter(context.req.raw));
    // The router treats HEAD as GET.
    if (!["GET", "POST"].includes(context.req.raw.method)) throw notRead();
    await next();
  });
  app.post("*", withScheme, takePosted);
  return app;
}

/** Returns the error for a method that the page does not have. */
export function notRead(): RefusedRequest {
  return new RefusedRequest(405, "Only GET is allowed here.");
}

/** Returns a JSON response. The application adds the page's headers. */
export function dataAnswer(data: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  const type = { "Content-Type": "application/json; charset=utf-8" };
  return new Response(JSON.stringify(data), { status, headers: { ...type, ...headers } });
}

/** Returns the response of a refused request. Throws other errors again. */
export function refusedAnswer(thrown: unknown): Response {
  if (!(thrown instanceof RefusedRequest)) throw thrown;
  return dataAnswer(thrown.body, thrown.status, { ...PAGE_HEADERS, ...thrown.headers });
}

/** Characters that are not allowed in file names, or are drawn as nothing. */
const NOT_IN_FILE_NAMES = /[\\/:*?"<>|\p{C}]+/gu;

/**
 * Returns a file as a download. The browser never displays it, whatever it contains. A name that is not ASCII is given
 * a second time, as RFC 8187 encodes it.
 */
export function fileAnswer(name: string, content: string | AsyncIterable<Uint8Array>): Response {
  const safe = name.replaceAll(NOT_IN_FILE_NAMES, "_");
  const ascii = safe.replaceAll(/[^ -~]+|%/g, "_");
  const encoded = encodeURIComponent(safe).replaceAll(/['()*]/g, (one) => `%${one.charCodeAt(0).toString(16)}`);
  const more = ascii === safe ? "" : `; filename*=UTF-8''${encoded}`;
  return new Response(typeof content === "string" ? content : ReadableStream.from(content), {
    headers: {
      "Content-Type": "application/octet-stream",
      "Content-Disposition": `attachment; filename="${ascii}"${more}`,
    },
  });
}

/** Takes the JSON body of a POST that the page itself has sent; `{}` if it is empty. Refuses all other POSTs. */
export const takePosted: MiddlewareHandler<Pick<PageEnv<unknown>, "Variables">> = async (context, next) => {
  const request = context.req.raw;
  checkPost(request);
  // The body limit of hono fails for a chunked body of the listener that serves the page.
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw new RefusedRequest(413, "the request is too large");
    text += decoder.decode(chunk, { stream: true });
  }
  context.set("posted", text === "" ? {} : orRefused(parseJson(text), "the request must contain JSON", 400));
  await next();
};

/** Returns the texts that the page posted under these names. */
export function postedTexts<Name extends string>(posted: unknown, names: readonly Name[]): Record<Name, string> {
  const { data } = z.record(z.enum(names), z.string()).safeParse(posted);
  return orRefused(data, `the page sends ${names.join(" and ")}`, 400);
}

/**
 * Refuses a POST that does not come from the page itself: `Origin` is missing or names another server, or the body is
 * not JSON.
 */
function checkPost({ headers }: Request): void {
  const from = originIn(headers.get("origin") ?? "");
  const to = from && addressed(headers, from.protocol);
  const site = headers.get("sec-fetch-site") ?? "same-origin";
  if (to === undefined || to.host !== from?.host || site !== "same-origin") throw notOfPage();
  const isJson = /^application\/json\s*(;|$)/i.test(headers.get("content-type") ?? "");
  if (!isJson) throw new RefusedRequest(415, "the request must contain JSON");
}

/**
 * Refuses a POST from a page with the wrong scheme. The right scheme is `http` if the request was sent to a loopback
 * address that is not the host of `address`, and the scheme of `address` in all other cases.
 */
function checkScheme({ headers }: Request, address: string): void {
  const { protocol, host } = new URL(address);
  const to = addressed(headers, protocol);
  const isHere = to !== undefined && to.host !== host && isLoopback(to.href);
  const from = originIn(headers.get("origin") ?? "");
  if (from?.protocol !== (isHere ? "http:" : protocol)) throw notOfPage();
}

/** Returns the URL that a request was sent to. The default port is omitted, even if `Host` names it. */
function addressed(headers: Headers, protocol: string): URL | undefined {
  const url = `${protocol}//${headers.get("host") ?? ""}`;
  return URL.canParse(url) ? new URL(url) : undefined;
}

function notOfPage(): RefusedRequest {
  return new RefusedRequest(403, "only this server's own page may send this request");
}

/** Compares two secrets in constant time. */
export function isSame(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
