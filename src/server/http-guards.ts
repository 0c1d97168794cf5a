import type { IncomingMessage, ServerResponse } from "node:http";
import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from "@modelcontextprotocol/server";

/** An answer before any MCP server has seen the request: a JSON-RPC error under an HTTP status. */
export function httpError(
  status: number,
  message: string,
  headers: Record<string, string> = {},
  code = -32_000,
): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status, headers });
}

/** The host names that `Host` and `Origin` may carry: this machine's, and the given ones. */
export function allowedHostnames(more: readonly string[]): string[] {
  return [...new Set([...localhostAllowedHostnames(), ...more.map((name) => name.toLowerCase())])];
}

/**
 * Refuses what a page of another site sends through a browser (DNS rebinding, cross-site requests): a `Host` or
 * `Origin` that is not allowed. Programs send no `Origin`.
 */
export function foreignHost(headers: Headers, hostnames: string[]): Response | undefined {
  const host = validateHostHeader(headers.get("host"), hostnames);
  if (!host.ok) return httpError(403, `${host.message}; TARGETING_MCP_ALLOWED_HOSTS lists the names to be served`);
  const origin = validateOriginHeader(headers.get("origin"), hostnames);
  return origin.ok ? undefined : httpError(403, origin.message);
}

/** A body as text, or the reason why there is none. */
export type BodyRead = { readonly text: string } | { readonly tooLarge: true } | { readonly broken: true };

/**
 * Reads a body of at most so many bytes. Of a larger one nothing is kept: the rest is let run out, so that whoever is
 * still sending gets to read the answer.
 */
export async function readBody(incoming: IncomingMessage, mostBytes: number): Promise<BodyRead> {
  const chunks: Buffer[] = [];
  let bytes = Number(incoming.headers["content-length"] ?? 0) > mostBytes ? Number.POSITIVE_INFINITY : 0;
  return new Promise((resolve) => {
    incoming.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= mostBytes) chunks.push(chunk);
      else resolve({ tooLarge: true });
    });
    incoming.once("end", () => resolve({ text: Buffer.concat(chunks).toString("utf8") }));
    incoming.once("error", () => resolve({ broken: true }));
    incoming.once("close", () => resolve({ broken: true }));
    if (bytes > mostBytes) {
      incoming.resume();
      resolve({ tooLarge: true });
    }
  });
}

/** Counts requests under way. */
export interface Slots {
  /** Takes a place until the response is over, or until the given function is called; undefined where none is free. */
  take(response: ServerResponse): (() => void) | undefined;
}

/** So many places. */
export function slots(most: number): Slots {
  let taken = 0;
  return {
    take(response) {
      if (taken >= most) return undefined;
      taken += 1;
      let isMine = true;
      const give = (): void => {
        if (isMine) taken -= 1;
        isMine = false;
      };
      response.once("close", give);
      return give;
    },
  };
}
