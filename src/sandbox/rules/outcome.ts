import { ERROR_CODES, type ErrorCode } from "../../spec/error-codes.ts";
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
  /** Returns whether an item fails. If items are applied together, one failing item makes all fail. */
  hits(index: number): boolean;
  /** If set, the `add` of a failing update with `add` and `remove` is applied (management-api 4.1). */
  readonly addApplied: boolean;
}

/** Applies valid items together or not at all (management-api 4.1). */
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

export function errorFields(error: BusinessError): {
  statusCode: number;
  errorCode: string;
  detail?: Record<string, unknown>;
} {
  const fields = { statusCode: ERROR_CODES[error.errorCode].statusCode, errorCode: error.errorCode };
  return error.detail === undefined ? fields : { ...fields, detail: { ...error.detail } };
}
