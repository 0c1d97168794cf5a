import { ERROR_CODES, type ErrorCode } from "../../spec/error-codes.ts";
import type { BulkResult } from "../../spec/records.ts";

/** A business error of an item or of a whole request (management-api 7.2), with the `detail` of 7.3. */
export interface BusinessError {
  readonly errorCode: ErrorCode;
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** Creates a business error. */
export function businessError(errorCode: ErrorCode, detail?: Readonly<Record<string, unknown>>): BusinessError {
  return detail === undefined ? { errorCode } : { errorCode, detail };
}

/** The outcome of an operation: a body for HTTP 200, or a business error of the whole request. */
export type Outcome = { readonly body: Readonly<Record<string, unknown>> } | { readonly error: BusinessError };

/** The outcome of one item: the data of its `results` entry, or its error. */
export type ItemOutcome = { readonly data: Readonly<Record<string, unknown>> } | { readonly error: BusinessError };

/** A checked item: it can be written, or it failed. */
export type Checked = { readonly write: () => Readonly<Record<string, unknown>> } | { readonly error: BusinessError };

/** An unexpected failure inside the service during a write, as a fault requests it (management-api 4.1, 4.2). */
export interface Interference {
  readonly error: BusinessError;
  /** Returns whether an item fails, if items are applied one by one. If any item of a unit fails, the unit fails. */
  hits(index: number): boolean;
  /** An update that fails with both `add` and `remove` has its `add` applied (management-api 4.1). */
  readonly addApplied: boolean;
}

/**
 * Applies checked items as one unit (management-api 4.1): failed items keep their errors, and the others are written,
 * or fail together if there is interference.
 */
export function applyUnit(items: readonly Checked[], interference: Interference | undefined): readonly ItemOutcome[] {
  const struck = interference !== undefined && items.some((_, index) => interference.hits(index));
  return items.map((item) => {
    if ("error" in item) return item;
    return struck ? { error: interference.error } : { data: item.write() };
  });
}

/** Returns the bulk response (management-api 2.3). */
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

/** Returns the fields of a business error in an answer (management-api 2.2). */
export function errorFields(error: BusinessError): {
  statusCode: number;
  errorCode: string;
  detail?: Record<string, unknown>;
} {
  const fields = { statusCode: ERROR_CODES[error.errorCode].statusCode, errorCode: error.errorCode };
  return error.detail === undefined ? fields : { ...fields, detail: { ...error.detail } };
}
