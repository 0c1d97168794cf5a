import type { IncomingMessage } from "node:http";
import { LIMITS } from "../../spec/limits.ts";

/** A body that was read, or how many bytes of one that is too large (management-api 7.1, 413). */
export type RequestBody = { readonly text: string; readonly bytes: number } | { readonly tooLarge: number };

/** A body this many times the limit is not read to its end: the connection is closed instead. */
const PATIENCE = 8;

/**
 * Reads a request's body. One over the limit is read on without being kept, so that a client that is still sending
 * can take the answer. Throws what the connection throws when it breaks.
 */
export async function readBody(request: IncomingMessage): Promise<RequestBody> {
  const limit = LIMITS.bodyBytes.value;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue;
    bytes += chunk.length;
    if (bytes <= limit) chunks.push(chunk);
    else chunks.length = 0;
    if (bytes > limit * PATIENCE) break;
  }
  return bytes > limit ? { tooLarge: bytes } : { text: Buffer.concat(chunks).toString("utf8"), bytes };
}
