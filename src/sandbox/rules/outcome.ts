import { type IncomingMessage, STATUS_CODES } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { jsonPieces } from "../../platform/json.ts";
import { ERROR_CODES, type ErrorCode } from "../../spec/error-codes.ts";
import { LIMITS } from "../../spec/limits.ts";
import type { BulkResult } from "../../spec/records.ts";

/** The error of an item or a whole request (management-api 7.2). `detail` has the fields of 7.3. */
export interface BusinessError {
  readonly errorCode: ErrorCode;
  readonly detail?: Readonly<Record<string, unknown>>;
}

export function businessError(errorCode: ErrorCode, detail?: Readonly<Record<string, unknown>>): BusinessError {
  return detail === undefined ? { errorCode } : { errorCode, detail };
}

export type Outcome = { readonly body: Readonly<Record<string, unknown>> } | { readonly error: BusinessError };

export type ItemOutcome = { readonly data: Readonly<Record<string, unknown>> } | { readonly error: BusinessError };

export type Checked = { readonly write: () => Readonly<Record<string, unknown>> } | { readonly error: BusinessError };

export interface Interference {
  readonly error: BusinessError;
  /**
   * Returns whether a fault makes an item fail. If all items are applied together, one failing item makes all of them
   * fail.
   */
  hits(index: number): boolean;
  /** Whether the `add` of a failing update is applied although its `remove` is not (management-api 4.1). */
  readonly addApplied: boolean;
}

/** Applies the items without an error, all of them or none (management-api 4.1). */
export function applyUnit(items: readonly Checked[], interference: Interference | undefined): readonly ItemOutcome[] {
  const struck = interference !== undefined && items.some((_, index) => interference.hits(index));
  return items.map((item) => {
    if ("error" in item) return item;
    return struck ? { error: interference.error } : { data: item.write() };
  });
}

export function bulkBody(outcomes: readonly ItemOutcome[]): Readonly<Record<string, unknown>> {
  const results = outcomes.map(
    (outcome, index): BulkResult =>
      "data" in outcome
        ? { index, success: true, data: outcome.data }
        : { index, success: false, error: errorFields(outcome.error) },
  );
  const succeeded = results.filter((result) => result.success).length;
  return { results, succeeded, failed: results.length - succeeded };
}

function errorFields(error: BusinessError): {
  statusCode: number;
  errorCode: string;
  detail?: Record<string, unknown>;
} {
  const fields = { statusCode: ERROR_CODES[error.errorCode].statusCode, errorCode: error.errorCode };
  return error.detail === undefined ? fields : { ...fields, detail: { ...error.detail } };
}

/**
 * The answer to a request, or what the client gets instead. "reset": the connection breaks. "silence": there is no
 * answer.
 */
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

/** Returns the answer with a status. Only the answers of server errors have the field `error` (management-api 2.2). */
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
  // The body is converted to bytes in pieces. Otherwise, a large answer would be in memory as one long string as well.
  const body = Buffer.concat([...jsonPieces(reply.body)].map((piece) => Buffer.from(piece)));
  return new Response(body, { status: reply.status, headers });
}

/** The body of a request. `tooLarge` is the size of a body that exceeds the limit (management-api 7.1, 413). */
export type RequestBody = { readonly text: string; readonly bytes: number } | { readonly tooLarge: number };

/** If a body is more than this many times as large as the limit, the rest of it is not read. */
const PATIENCE = 8;

/**
 * Reads a body. A body over the limit is read to its end but not stored, because a client that is still sending cannot
 * receive the answer.
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
