import { createHash, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { Hono, type MiddlewareHandler } from "hono";
import * as z from "zod";
import { parseJson } from "../platform/json.ts";
import { originIn } from "../platform/listen.ts";
import { isLoopback } from "../settings/value-types.ts";
import { type LoginWays, PATHS, type Refusal } from "./wire.ts";

// The HTTP application that every server of the web page uses: headers, files, checks of requests, and error responses.

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

const PAGE_HEADERS = {
  "Content-Security-Policy": POLICY,
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-store",
} as const;

/** The maximum bytes of a POST body. The page sends only decisions and short forms. */
const MAX_BYTES = 65_536;

/** Thrown to refuse a request. The body of the response is a reason, or how to log in. */
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

export function orRefused<Found>(
  found: Found | undefined,
  message = "There is nothing at this address.",
  status = 404,
): Found {
  if (found === undefined) throw new RefusedRequest(status, message);
  return found;
}

/**
 * What handlers can read about a request: the address of the sender, the posted JSON and, once `enter` has succeeded,
 * the session.
 */
export interface PageEnv<Session> {
  readonly Bindings: { readonly peer?: string };
  readonly Variables: { posted: unknown; session: Session };
}

export type PageApp<Session> = Hono<PageEnv<Session>>;

/** What differs between the servers that show the web page: addresses, login and sessions. */
interface WayIn<Session> {
  readonly address: string;
  readonly shownAt: readonly string[];
  readonly about: () => PageAbout;
  readonly openRoutes?: (app: PageApp<Session>) => void;
  /** Returns the session of a request. Throws a RefusedRequest if there is none. */
  readonly enter: (request: Request) => Promise<Session>;
}

/**
 * Creates the application of the web page. The routes that the caller adds to it require a session. The caller must
 * check `Host` before it passes a request on.
 */
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
    // Only GET and POST are allowed. Hono would handle HEAD like GET.
    if (!["GET", "POST"].includes(context.req.raw.method)) throw notRead();
    await next();
  });
  app.post("*", withScheme, takePosted);
  return app;
}

export function notRead(): RefusedRequest {
  return new RefusedRequest(405, "This method is not allowed at this address.");
}

/** Returns a JSON response. The web application adds the security headers that all its responses have. */
export function dataAnswer(data: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  const type = { "Content-Type": "application/json; charset=utf-8" };
  return new Response(JSON.stringify(data), { status, headers: { ...type, ...headers } });
}

/** Returns the response for a RefusedRequest. Throws all other errors again. */
export function refusedAnswer(thrown: unknown): Response {
  if (!(thrown instanceof RefusedRequest)) throw thrown;
  return dataAnswer(thrown.body, thrown.status, { ...PAGE_HEADERS, ...thrown.headers });
}

/** Characters that are not allowed in file names, or that are invisible. */
const NOT_IN_FILE_NAMES = /[\\/:*?"<>|\p{C}]+/gu;

/**
 * Returns a file that the browser always saves and never displays. If the name is not ASCII or has a `%`, the header
 * also contains it in the encoding of RFC 8187.
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

/** Reads the JSON body of a POST that the page itself sent. An empty body counts as `{}`. Refuses any other POST. */
export const takePosted: MiddlewareHandler<Pick<PageEnv<unknown>, "Variables">> = async (context, next) => {
  const request = context.req.raw;
  checkPost(request);
  // The size is limited here, because Hono's own limit fails on chunked bodies with the Node listener of the page.
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw new RefusedRequest(413, "The request is too large.");
    text += decoder.decode(chunk, { stream: true });
  }
  context.set("posted", text === "" ? {} : orRefused(parseJson(text), "The request must contain JSON.", 400));
  await next();
};

/** Returns the texts with these names from a posted body. Refuses the request if one is missing. */
export function postedTexts<Name extends string>(posted: unknown, names: readonly Name[]): Record<Name, string> {
  const { data } = z.record(z.enum(names), z.string()).safeParse(posted);
  return orRefused(data, `The request must contain ${names.join(" and ")} as text.`, 400);
}

/** Refuses a POST that the page did not send (`Origin`, `Sec-Fetch-Site`), or whose content type is not JSON. */
function checkPost({ headers }: Request): void {
  const from = originIn(headers.get("origin") ?? "");
  const to = from && addressed(headers, from.protocol);
  const site = headers.get("sec-fetch-site") ?? "same-origin";
  if (to === undefined || to.host !== from?.host || site !== "same-origin") throw notOfPage();
  const isJson = /^application\/json\s*(;|$)/i.test(headers.get("content-type") ?? "");
  if (!isJson) throw new RefusedRequest(415, "The request must contain JSON.");
}

/**
 * Refuses a POST from a page that was loaded with the wrong scheme. The right scheme is that of `address`. At any other
 * loopback address, it is `http`.
 */
function checkScheme({ headers }: Request, address: string): void {
  const { protocol, host } = new URL(address);
  const to = addressed(headers, protocol);
  const isHere = to !== undefined && to.host !== host && isLoopback(to.href);
  const from = originIn(headers.get("origin") ?? "");
  if (from?.protocol !== (isHere ? "http:" : protocol)) throw notOfPage();
}

/** Returns the URL of a request without its path and without a default port. Undefined if `Host` is invalid. */
function addressed(headers: Headers, protocol: string): URL | undefined {
  const url = `${protocol}//${headers.get("host") ?? ""}`;
  return URL.canParse(url) ? new URL(url) : undefined;
}

function notOfPage(): RefusedRequest {
  return new RefusedRequest(403, "Only this server's own page may send this request.");
}

export function isSame(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

const FILES = {
  page: { name: "page.html", type: "text/html; charset=utf-8" },
  script: { name: "page.js", type: "text/javascript; charset=utf-8" },
  style: { name: "page.css", type: "text/css; charset=utf-8" },
  viewScript: { name: "view.js", type: "text/javascript; charset=utf-8" },
  viewStyle: { name: "view.css", type: "text/css; charset=utf-8" },
} as const;

/** The folder of the built files. If the code runs from source, the files of the last build are used. */
const FOLDER = new URL(import.meta.url.endsWith(".ts") ? "../../dist/" : "./", import.meta.url);

/** Returns a file of the web page. The files contain no data of runs. `change` edits the text of the file. */
async function asset(file: keyof typeof FILES, change = (text: string): string => text): Promise<Response> {
  return new Response(change(await contentOf(file)), { headers: { "Content-Type": FILES[file].type } });
}

/** The data in the HTML for its script: how to log in, or the token of a new session. */
type PageAbout = { readonly login: LoginWays } | { readonly session: string };

/** Returns the HTML of the web page. It contains no data of runs. */
function pageDocument(about: PageAbout): Promise<Response> {
  const metas = Object.entries(about).map(
    ([name, content]) => `<meta name="${name}" content="${encodeURIComponent(JSON.stringify(content))}">`,
  );
  return asset("page", (text) => text.replace("</head>", () => `${metas.join("")}</head>`));
}

/** Returns the view that agents' hosts embed: an HTML document that loads nothing. The host passes a run to it. */
export async function viewDocument(): Promise<string> {
  const [page, script, style] = await Promise.all([contentOf("page"), contentOf("viewScript"), contentOf("viewStyle")]);
  return page
    .replace("<html", "<html data-view")
    .replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${style}</style>`)
    .replace(/<script [^>]*><\/script>/, () => `<script type="module">${script}</script>`);
}

function contentOf(file: keyof typeof FILES): Promise<string> {
  return readFile(new URL(FILES[file].name, FOLDER), "utf8");
}
