import type { ServerResponse } from "node:http";
import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from "@modelcontextprotocol/server";
import { originIn } from "../platform/listen.ts";

/** Calls `give` when the response is closed for any reason. Calls it at once if the client has already disconnected. */
export function onResponseClosed(outgoing: ServerResponse, give: () => void): void {
  if (outgoing.destroyed) give();
  else outgoing.once("close", give);
}

/** Thrown if all places for further pairs of API keys are in use. The client should try again later. */
export class TooBusyError extends Error {}

/** Returns a JSON-RPC error with an HTTP status, for requests that are refused before an MCP server handles them. */
export function httpError(
  status: number,
  message: string,
  headers: Record<string, string> = {},
  code = -32_000,
): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status, headers });
}

/** Returns the host names that are allowed in `Host` and `Origin`: those of this machine, and `more`. */
export function allowedHostnames(more: readonly string[]): string[] {
  return [...new Set([...localhostAllowedHostnames(), ...more.map((name) => name.toLowerCase())])];
}

/**
 * Rejects a request whose `Host` or `Origin` is not allowed, which a website may have sent through a person's browser
 * (DNS rebinding, cross-site requests). Programs send no `Origin`. Returns undefined if the request is allowed.
 */
export function rejectForeignHost(headers: Headers, hostnames: string[]): Response | undefined {
  const host = validateHostHeader(headers.get("host"), hostnames);
  if (!host.ok) return httpError(403, `${host.message}; TARGETING_MCP_ALLOWED_HOSTS must list this host name`);
  const from = headers.get("origin");
  if (from !== null && originIn(from) === undefined) return httpError(403, `Invalid Origin: ${from}`);
  const origin = validateOriginHeader(from, hostnames);
  return origin.ok ? undefined : httpError(403, origin.message);
}
