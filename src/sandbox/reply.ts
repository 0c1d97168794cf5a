import { type IncomingMessage, STATUS_CODES } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { jsonPieces } from "../platform/json.ts";
import { LIMITS } from "../spec/limits.ts";
import { type BusinessError, errorFields } from "./rules/outcome.ts";

/** How a request ends for its client: with an answer, with a broken connection, or never. */
export type Reply = Answer | "reset" | "silence";

/** An HTTP answer with a JSON body. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Returns an answer with 200. */
export function ok(body: unknown): Answer {
  return { status: 200, body };
}

/** Returns a validation error: all problems in a list, or one sentence (management-api 2.2). */
export function validationAnswer(message: readonly string[] | string): Answer {
  return { status: 400, body: { statusCode: 400, message, error: "Bad Request" } };
}

/** Returns a business error of a whole request (management-api 2.2). `now` in milliseconds since 1970. */
export function businessAnswer(error: BusinessError, now: number): Answer {
  // A single item that fails unexpectedly is a 502: management-api 4 rule 5.
  if (error.errorCode === "UNCATCHED") return statusAnswer(502);
  const fields = errorFields(error);
  const timestamp = new Date(now).toISOString().replace("Z", "+00:00");
  return { status: fields.statusCode, body: { ...fields, timestamp } };
}

/** Returns an answer that contains only its status; server errors have `error` as well (management-api 2.2). */
export function statusAnswer(status: number, message: string = STATUS_CODES[status] ?? "Error"): Answer {
  const error = STATUS_CODES[status] ?? "Error";
  return { status, body: { statusCode: status, message, ...(status >= 500 ? { error } : {}) } };
}

/** Sends a reply. */
export async function deliver(reply: Reply, request: IncomingMessage, headers: Headers): Promise<Response> {
  if (reply === "reset") {
    request.socket.resetAndDestroy();
    return RESPONSE_ALREADY_SENT;
  }
  if (reply === "silence") {
    await new Promise((resolve) => request.socket.once("close", resolve));
    return RESPONSE_ALREADY_SENT;
  }
  headers.set("Content-Type", "application/json; charset=utf-8");
  // As one text a long answer would stay in memory until the next full collection, next to its bytes.
  const body = Buffer.concat([...jsonPieces(reply.body)].map((piece) => Buffer.from(piece)));
  return new Response(body, { status: reply.status, headers });
}

/** A received body, or the size of one that is too large (management-api 7.1, 413). */
export type RequestBody = { readonly text: string; readonly bytes: number } | { readonly tooLarge: number };

/** A body that exceeds the limit by this factor is not read to its end: the connection is closed. */
const PATIENCE = 8;

/**
 * Reads a request's body. A body over the limit is read and dropped, so that a client that is still sending can receive
 * the answer. Throws what the connection throws if it breaks.
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
