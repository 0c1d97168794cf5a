/** What a page may read of an answer beside its body. */
const SHOWN = "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after, x-request-id";
/** How long a browser may remember what it was allowed, in seconds. */
const REMEMBERED_S = "600";

/**
 * What tells a browser that a page of an allowed `Origin` may call MCP and read the answers; nothing for programs, which
 * send no `Origin`. Cookies are never asked for: tokens and keys travel in headers.
 */
export function readableBy({ headers }: Request): Readonly<Record<string, string>> {
  const origin = headers.get("origin");
  if (origin === null) return {};
  return { "access-control-allow-origin": origin, "access-control-expose-headers": SHOWN, vary: "Origin" };
}

/** The answer to a browser that asks whether a page may send a request, before it sends it; undefined for any other. */
export function preflightAnswer({ method, headers }: Request): Response | undefined {
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
