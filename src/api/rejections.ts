import { isErrorCode } from "../spec/error-codes.ts";
import { LIMITS } from "../spec/limits.ts";
import type { ItemError } from "../spec/records.ts";
import { isObject, itemErrorOf, jsonIn, messagesOf } from "./answers.ts";
import { AmbiguousError, type ApiError, BusyError, type Purpose, RejectedError, type RejectionKind } from "./errors.ts";
import type { HttpAnswer } from "./http.ts";

/** The longest wait of a Retry-After that is followed. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/** The request that an error is about. */
export interface Asked {
  readonly operation: Purpose;
  /** `METHOD /path` as sent, without the query. */
  readonly route: string;
}

/**
 * The error of an answer that is no 2xx: what it says about the effect of its request (management-api 4 rule 3, 4.2,
 * 7.1, 7.2).
 */
export function errorOf({ operation, route }: Asked, answer: HttpAnswer): ApiError {
  const { statusCode, headers } = answer;
  const body = jsonIn(answer.body);
  const { errorCode, detail } = isObject(body) ? itemErrorOf(body) : {};
  if (statusCode === 409 && errorCode === "CONTEXT_TARGETING_WRITE_IN_PROGRESS") {
    return new BusyError({ operation, statusCode, retryAfterMs: retryAfterIn(detail) });
  }
  if (statusCode === 429) {
    return new BusyError({ operation, statusCode, retryAfterMs: retryAfter(headers) });
  }
  if (statusCode < 300 || statusCode >= 500 || statusCode === 408) {
    return new AmbiguousError({ operation, reason: `the service answered with status ${statusCode}`, statusCode });
  }
  return new RejectedError({
    kind: kindOf(statusCode, errorCode),
    statusCode,
    operation,
    route,
    errorCode,
    detail,
    messages: messagesOf(body),
  });
}

/** The wait that a 409 asks for, in milliseconds: limited to 0 to 2,000 (management-api 4.2, 7.3). */
export function retryAfterIn(detail: ItemError["detail"]): number {
  return within(Number(detail?.retryAfterMs ?? 0), LIMITS.retryAfterMs.value);
}

function kindOf(statusCode: number, errorCode: string | undefined): RejectionKind {
  if (statusCode < 400) return "redirect";
  if (statusCode === 401) return "unauthorized";
  if (statusCode === 403) return "forbidden";
  if (statusCode === 413) return "tooLarge";
  if (statusCode === 404 || statusCode === 405) {
    return errorCode !== undefined && isErrorCode(errorCode) ? "business" : "wrongRoute";
  }
  if (statusCode === 400) return errorCode === undefined ? "validation" : "business";
  return statusCode === 409 && errorCode !== undefined ? "business" : "other";
}

/** Retry-After in milliseconds: seconds, or a date that is measured from the answer's own clock. */
function retryAfter(headers: HttpAnswer["headers"]): number {
  const { "retry-after": given } = headers;
  if (typeof given !== "string") return 0;
  const asDate = Date.parse(given) - (serverTimeOf(headers) ?? Number.NaN);
  return within(/^\s*\d+(\.\d+)?\s*$/.test(given) ? Number(given) * 1000 : asDate, LONGEST_RETRY_AFTER_MS);
}

/** Limits a wait to 0 up to `most`; a value that is no number counts as 0. */
function within(ms: number, most: number): number {
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), most);
}

/** The service's clock when it answered, in milliseconds since 1970; undefined where it does not say. */
export function serverTimeOf({ date }: HttpAnswer["headers"]): number | undefined {
  const time = typeof date === "string" ? Date.parse(date) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}
