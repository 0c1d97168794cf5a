import { createHash, timingSafeEqual } from "node:crypto";
import { originIn } from "../platform/origins.ts";
import { isLoopback } from "../settings/value-types.ts";
import { refusalAnswer } from "./answers.ts";

/** The most bytes of a POST's body: the page sends decisions and short forms. */
const MOST_BYTES = 65_536;

/**
 * The refusal of a POST that does not come from the page itself: no `Origin`, or one of another server; undefined where
 * it may be carried out. `Host`, and the session where one is needed, have been checked before.
 */
export function refusedPost(request: Request): Response | undefined {
  if (!isSameOrigin(request)) return notOfPage();
  const isJson = /^application\/json\s*(;|$)/i.test(request.headers.get("content-type") ?? "");
  return isJson ? undefined : refusalAnswer(415, "the page sends JSON");
}

/** Whether the browser says that a page of this very host and port sent the request. */
function isSameOrigin({ headers }: Request): boolean {
  const origin = headers.get("origin");
  const site = headers.get("sec-fetch-site");
  if (origin === null || (site !== null && site !== "same-origin")) return false;
  const from = originIn(origin);
  const to = from && addressed(headers, from.protocol);
  return to !== undefined && to.host === from?.host;
}

/**
 * The refusal of a POST that a page of this host sent by another scheme than this server has there: that of its
 * `address` for the host of it, `http` at this machine, and the one of its address elsewhere.
 */
export function refusedScheme({ method, headers }: Request, address: string): Response | undefined {
  if (method !== "POST") return undefined;
  const { protocol, host } = new URL(address);
  const to = addressed(headers, protocol);
  const isHere = to !== undefined && to.host !== host && isLoopback(to.href);
  const from = originIn(headers.get("origin") ?? "");
  return from?.protocol === (isHere ? "http:" : protocol) ? undefined : notOfPage();
}

/** Where a request was sent to; the port that goes without saying is left out, whether or not `Host` names it. */
function addressed(headers: Headers, protocol: string): URL | undefined {
  const url = `${protocol}//${headers.get("host") ?? ""}`;
  return URL.canParse(url) ? new URL(url) : undefined;
}

function notOfPage(): Response {
  return refusalAnswer(403, "only the page of this server may send this");
}

/** Compares two secrets in a time that says nothing about them. */
export function isSame(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

/** The body of a POST as data, `{}` where it is empty; a refusal where it is too long or no JSON. */
export async function bodyOf(request: Request): Promise<{ readonly data: unknown } | Response> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MOST_BYTES) return refusalAnswer(413, "that is more than the page ever sends");
    text += decoder.decode(chunk, { stream: true });
  }
  try {
    return { data: text === "" ? {} : JSON.parse(text) };
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    return refusalAnswer(400, "the page sends JSON");
  }
}
