import type { Refusal } from "./wire.ts";

/** The policy of the page: nothing from elsewhere, nothing inline, and never inside a frame. */
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

/** The headers of every answer of the page's routes. */
const PAGE_HEADERS = {
  "Content-Security-Policy": POLICY,
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-store",
} as const;

/** An answer of the page's routes with its headers; `headers` come on top. */
export function pageAnswer(
  body: string | ReadableStream<Uint8Array> | null,
  { status = 200, headers = {} }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> },
): Response {
  return new Response(body, { status, headers: { ...PAGE_HEADERS, ...headers } });
}

/** Data for the page. */
export function dataAnswer(data: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  const type = { "Content-Type": "application/json; charset=utf-8" };
  return pageAnswer(JSON.stringify(data), { status, headers: { ...type, ...headers } });
}

/** A file to be saved; a browser never shows it, whatever it holds. */
export function fileAnswer(name: string, content: string | AsyncIterable<Uint8Array>): Response {
  return pageAnswer(typeof content === "string" ? content : ReadableStream.from(content), {
    headers: { "Content-Type": "application/octet-stream", "Content-Disposition": `attachment; filename="${name}"` },
  });
}

/** What is refused, with one sentence that says why. */
export function refusalAnswer(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const refusal: Refusal = { message };
  return dataAnswer(refusal, status, headers);
}
