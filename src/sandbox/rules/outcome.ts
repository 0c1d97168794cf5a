import { type IncomingMessage, STATUS_CODES } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { jsonPieces } from "../../platform/json.ts";
import { ERROR_CODES, type ErrorCode } from "../../spec/error-codes.ts";
import { LIMITS } from "../../spec/limits.ts";
import type { BulkResult } from "../../spec/records.ts";
import type { Project } from "./store.ts";

/** The error of an item or of a whole request (management-api 7.2). `detail` contains the fields of 7.3. */
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
  /** Whether a fault makes this item fail. Items that are applied together then all fail with it. */
  hits(index: number): boolean;
  /** Whether the `add` of an update is applied although the update fails (management-api 4.1). */
  readonly addApplied: boolean;
}

/** Where times and IDs come from. `now` returns milliseconds since 1970. Each new ID sorts after all earlier ones. */
export interface Sources {
  now(): number;
  newId(): string;
}

/** A function that applies the items of a request. Returns one outcome for each item (management-api 4.1). */
export type ItemsRule<Item> = (
  project: Project,
  items: readonly Item[],
  interference: Interference | undefined,
  sources: Sources,
) => readonly ItemOutcome[];

/** Applies all items without an error, or none (management-api 4.1). */
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

function errorFields({ errorCode, detail }: BusinessError) {
  const { statusCode } = ERROR_CODES[errorCode];
  return { statusCode, errorCode, ...(detail && { detail: { ...detail } }) };
}

/** The answer to a request, or what happens instead. "reset": the connection breaks. "silence": no answer comes. */
export type Reply = Answer | "reset" | "silence";

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Returns the answer to an invalid request. `message` is a list of problems or one sentence (management-api 2.2). */
export function validationAnswer(message: readonly string[] | string): Answer {
  return { status: 400, body: { statusCode: 400, message, error: "Bad Request" } };
}

/** Returns the answer to a request that fails as a whole (management-api 2.2). `now`: milliseconds since 1970. */
export function businessAnswer(error: BusinessError, now: number): Answer {
  // For a request about a single object, an unexpected error is a 502 (management-api 4 rule 5).
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
  // Converted in pieces. As one text, a large answer would need twice the memory.
  const body = Buffer.concat([...jsonPieces(reply.body)].map((piece) => Buffer.from(piece)));
  return new Response(body, { status: reply.status, headers });
}

/** The body of a request. `tooLarge`: the bytes read of a body over the limit, which are dropped (7.1, 413). */
export type RequestBody = { readonly text: string; readonly bytes: number } | { readonly tooLarge: number };

/** If a body is this many times as large as the limit, the rest of it is not read. */
const PATIENCE = 8;

/** Reads a body, even beyond the limit, because a client may read the answer only after it has sent everything. */
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
