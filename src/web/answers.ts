import { createHash, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { originIn } from "../platform/listen.ts";
import { isLoopback } from "../settings/value-types.ts";
import { type LoginWays, PATHS, type Refusal } from "./wire.ts";

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

/** Returns a response with the page's headers. `headers` are added to them, or replace them. */
export function pageAnswer(
  body: string | ReadableStream<Uint8Array> | null,
  { status = 200, headers = {} }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> },
): Response {
  return new Response(body, { status, headers: { ...PAGE_HEADERS, ...headers } });
}

/** Returns a JSON response. */
export function dataAnswer(data: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  const type = { "Content-Type": "application/json; charset=utf-8" };
  return pageAnswer(JSON.stringify(data), { status, headers: { ...type, ...headers } });
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
  return pageAnswer(typeof content === "string" ? content : ReadableStream.from(content), {
    headers: {
      "Content-Type": "application/octet-stream",
      "Content-Disposition": `attachment; filename="${ascii}"${more}`,
    },
  });
}

/** Returns an error response with one sentence that states the reason. */
export function refusalAnswer(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const refusal: Refusal = { message };
  return dataAnswer(refusal, status, headers);
}

/** The files of the page that the build makes, with their types. */
const FILES = {
  page: { name: "page.html", type: "text/html; charset=utf-8" },
  script: { name: "page.js", type: "text/javascript; charset=utf-8" },
  style: { name: "page.css", type: "text/css; charset=utf-8" },
  viewScript: { name: "view.js", type: "text/javascript; charset=utf-8" },
  viewStyle: { name: "view.css", type: "text/css; charset=utf-8" },
} as const;

/** Built code is in the same folder as these files. Code that runs from source uses the files of the last build. */
const FOLDER = new URL(import.meta.url.endsWith(".ts") ? "../../dist/" : "./", import.meta.url);

/**
 * Returns the page. It contains no data of runs: its script has a session or none. With `login`, the page receives
 * the ways to log in; with `session`, the token of a new session.
 */
export async function pageDocument(
  about: { readonly login: LoginWays } | { readonly session: string },
  { isHead = false }: { readonly isHead?: boolean } = {},
): Promise<Response> {
  const metas = Object.entries(about).map(
    ([name, content]) => `<meta name="${name}" content="${encodeURIComponent(JSON.stringify(content))}">`,
  );
  const text = (await contentOf("page")).replace("</head>", () => `${metas.join("")}</head>`);
  return pageAnswer(isHead ? null : text, { headers: { "Content-Type": FILES.page.type } });
}

/**
 * Returns the page's script or style, which need no session because they contain no data; undefined for other paths.
 */
export async function pageAsset(path: string): Promise<Response | undefined> {
  const file = path === PATHS.script ? "script" : path === PATHS.style ? "style" : undefined;
  if (file === undefined) return undefined;
  return pageAnswer(await contentOf(file), { headers: { "Content-Type": FILES[file].type } });
}

/** Returns the view for hosts: one document that loads nothing and shows the run that the host passes to it. */
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

/** The maximum size of a POST body in bytes: the page sends decisions and short forms. */
const MAX_BYTES = 65_536;

/**
 * Returns an error response if a POST does not come from the page itself: `Origin` is missing or names another server,
 * or the body is not JSON. Returns undefined if the POST is allowed. Callers have checked `Host` and, if needed, the
 * session.
 */
export function rejectForeignPost(request: Request): Response | undefined {
  if (!isSameOrigin(request)) return notOfPage();
  const isJson = /^application\/json\s*(;|$)/i.test(request.headers.get("content-type") ?? "");
  return isJson ? undefined : refusalAnswer(415, "the page sends JSON");
}

/** Returns whether the browser states that a page of the same host and port sent the request. */
function isSameOrigin({ headers }: Request): boolean {
  const origin = headers.get("origin");
  const site = headers.get("sec-fetch-site");
  if (origin === null || (site !== null && site !== "same-origin")) return false;
  const from = originIn(origin);
  const to = from && addressed(headers, from.protocol);
  return to !== undefined && to.host === from?.host;
}

/**
 * Returns an error response if a POST comes from a page with the wrong scheme; undefined otherwise. The right scheme
 * is `http` if the request was sent to a loopback address that is not the host of `address`, and the scheme of
 * `address` in all other cases.
 */
export function rejectForeignScheme({ method, headers }: Request, address: string): Response | undefined {
  if (method !== "POST") return undefined;
  const { protocol, host } = new URL(address);
  const to = addressed(headers, protocol);
  const isHere = to !== undefined && to.host !== host && isLoopback(to.href);
  const from = originIn(headers.get("origin") ?? "");
  return from?.protocol === (isHere ? "http:" : protocol) ? undefined : notOfPage();
}

/** Returns the URL that a request was sent to. The default port is omitted, even if `Host` names it. */
function addressed(headers: Headers, protocol: string): URL | undefined {
  const url = `${protocol}//${headers.get("host") ?? ""}`;
  return URL.canParse(url) ? new URL(url) : undefined;
}

function notOfPage(): Response {
  return refusalAnswer(403, "only the page of this server may send this");
}

/** Compares two secrets in constant time. */
export function isSame(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

/** Returns the JSON body of a POST, `{}` if it is empty; an error response if it is too long or not JSON. */
export async function bodyOf(request: Request): Promise<{ readonly data: unknown } | Response> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) return refusalAnswer(413, "that is more than the page ever sends");
    text += decoder.decode(chunk, { stream: true });
  }
  try {
    return { data: text === "" ? {} : JSON.parse(text) };
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    return refusalAnswer(400, "the page sends JSON");
  }
}
