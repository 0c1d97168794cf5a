import type { ApiError } from "../../api/errors.ts";
import type { Reason } from "../../runs/outcome.ts";
import { OWN_CODES, type OwnCode } from "../../runs/reasons.ts";
import type { ItemError } from "../../spec/records.ts";
import type { BulkOperation } from "../../spec/routes.ts";

/**
 * The code that the service gave. A code that equals one of ours, or one of the events, does not count: the service
 * cannot say that a person declined.
 */
function codeGiven(errorCode: string | undefined): string | undefined {
  if (errorCode === undefined || Object.hasOwn(OWN_CODES, errorCode) || errorCode.startsWith("EVENT")) return undefined;
  return errorCode;
}

/** The reason that an item's error in `results` gives (management-api 2.3). */
export function itemReason(operation: BulkOperation, error: ItemError | null | undefined): Reason {
  const { statusCode, errorCode, detail } = error ?? {};
  return {
    code: codeGiven(errorCode) ?? (statusCode === 400 ? "VALIDATION" : "REJECTED"),
    operation,
    ...(statusCode === undefined ? {} : { statusCode }),
    ...(detail === undefined ? {} : { detail }),
  };
}

const REJECTION_CODES = {
  business: "REJECTED",
  validation: "VALIDATION",
  tooLarge: "TOO_LARGE",
  unauthorized: "UNAUTHORIZED",
  forbidden: "FORBIDDEN",
  wrongRoute: "WRONG_ROUTE",
  redirect: "REDIRECTED",
  other: "REJECTED",
} as const satisfies Record<string, OwnCode>;

/** The reason that a failed request gives for every item in it. */
export function requestReason(operation: BulkOperation, error: ApiError): Reason {
  switch (error.effect) {
    case "rejected": {
      const detail = {
        ...error.detail,
        ...(error.messages.length > 0 ? { messages: error.messages.slice(0, 3) } : {}),
        ...(error.kind === "wrongRoute" || error.kind === "redirect" ? { route: error.route } : {}),
      };
      return {
        code: codeGiven(error.errorCode) ?? REJECTION_CODES[error.kind],
        statusCode: error.statusCode,
        operation,
        ...(Object.keys(detail).length > 0 ? { detail } : {}),
      };
    }
    case "busy":
      return { code: "BUSY", statusCode: error.statusCode, operation };
    case "notSent":
      return { code: "NOT_SENT", operation, detail: { reason: error.reason } };
    case "ambiguous":
      return {
        code: "NO_ANSWER",
        operation,
        detail: { reason: error.reason },
        ...(error.statusCode === undefined ? {} : { statusCode: error.statusCode }),
      };
  }
}
