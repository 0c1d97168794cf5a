import { type IncomingMessage, STATUS_CODES } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { jsonPieces } from "../platform/json.ts";
import { LIMITS } from "../spec/limits.ts";
import { type BusinessError, errorFields } from "./rules/outcome.ts";

/** An answer, or its failure. "reset": a broken connection. "silence": no answer. */
export type Reply = Answer | "reset" | "silence";

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Returns the answer to an invalid request. `message` is a list of problems or one sentence (management-api 2.2). */
export function validationAnswer(message: readonly string[] | string): Answer {
  return { status: 400, body: { statusCode: 400, message, error: "Bad Request" } };
}

/**
 * Returns the answer for a business error of a whole request (management-api 2.2). `now` is in milliseconds since 1970.
 */
export function businessAnswer(error: BusinessError, now: number): Answer {
  // An unexpected error of a request for a single object is a 502 (management-api 4 rule 5).
  if (error.errorCode === "UNCATCHED") return statusAnswer(502);
  const fields = errorFields(error);
  const timestamp = new Date(now).toISOString().replace("Z", "+00:00");
  return { status: fields.statusCode, body: { ...fields, timestamp } };
}

/** Returns an answer with a status. Only server errors have the field `error` (management-api 2.2). */
export function statusAnswer(status: number, message: string = STATUS_CODES[status] ?? "Error"): Answer {
  const error = STATUS_CODES[status] ?? "Error";
  return { status, body: { statusCode: status, message, ...(status >= 500 ? { error } : {}) } };
}

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
  // The body is converted in pieces, because one long string would stay in memory next to its bytes.
  const body = Buffer.concat([...jsonPieces(reply.body)].map((piece) => Buffer.from(piece)));
  return new Response(body, { status: reply.status, headers });
}

/** The body of a request. `tooLarge` is the size of a body that exceeds the limit (management-api 7.1, 413). */
export type RequestBody = { readonly text: string; readonly bytes: number } | { readonly tooLarge: number };

/** If a body exceeds the limit by more than this factor, the rest is not read. */
const PATIENCE = 8;

/** Reads a body. One over the limit is not stored but read, as a client that still sends cannot get the answer. */
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
