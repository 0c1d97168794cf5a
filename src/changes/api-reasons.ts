import { type ApiError, problemOf, RATE_LIMITED, type RejectionKind } from "../api/errors.ts";
import { defined } from "../platform/by-key.ts";
import { OWN_CODES, type OwnCode, type Reason } from "../runs/outcome.ts";
import type { ItemError } from "../spec/records.ts";
import type { BulkOperation } from "../spec/routes.ts";

/**
 * Returns the service's error code as the code of a reason. Undefined if there is none, or if this server itself uses
 * the same code for something else.
 */
function serviceCode(errorCode: string | undefined): string | undefined {
  if (errorCode === undefined || Object.hasOwn(OWN_CODES, errorCode) || errorCode.startsWith("EVENT")) return undefined;
  return errorCode;
}

export function itemReason(operation: BulkOperation, error: ItemError | null | undefined): Reason {
  const { statusCode, errorCode, detail } = error ?? {};
  const code = serviceCode(errorCode) ?? (statusCode === 400 ? "VALIDATION" : "REJECTED");
  return { code, operation, ...defined({ statusCode, detail }) };
}

const REJECTION_CODES = {
  business: "REJECTED",
  validation: "VALIDATION",
  tooLarge: "TOO_LARGE",
  unauthorized: "UNAUTHORIZED",
  forbidden: "FORBIDDEN",
  wrongRoute: "WRONG_ROUTE",
  redirect: "REDIRECTED",
  foreign: "FOREIGN_ANSWER",
  other: "REJECTED",
} as const satisfies Record<string, OwnCode>;

/** Rejections that suggest a wrong address: something other than the service may have answered, such as a proxy. */
export const ADDRESS_REJECTIONS: ReadonlySet<RejectionKind> = new Set(["wrongRoute", "redirect", "foreign"]);

/** Returns the reason for a failed request. `operation`: the operation that the request was sent or read for. */
export function requestReason(operation: BulkOperation | undefined, error: ApiError): Reason {
  const { statusCode } = error;
  const about = defined({ operation, statusCode });
  if (error.effect === "busy") {
    return statusCode === RATE_LIMITED
      ? { code: "RATE_LIMITED", ...about, detail: { retryAfterMs: error.retryAfterMs } }
      : { code: "BUSY", ...about };
  }
  const { route, reason, network, setBy, messages } = problemOf(error);
  if (error.effect !== "rejected") {
    const detail = { reason, ...defined({ network, setBy, messages }) };
    return { code: error.effect === "notSent" ? "NOT_SENT" : "NO_ANSWER", ...about, detail };
  }
  const way = ADDRESS_REJECTIONS.has(error.kind) ? { route, setBy } : {};
  const detail = { ...error.detail, ...defined({ messages, ...way }) };
  return {
    code: serviceCode(error.errorCode) ?? REJECTION_CODES[error.kind],
    ...about,
    ...(Object.keys(detail).length > 0 && { detail }),
  };
}
