import { type ApiError, RATE_LIMITED } from "../../../api/errors.ts";
import { HeldBackError } from "../../../platform/fence.ts";
import { type BulkResult, itemError } from "../../../spec/records.ts";
import type { Step } from "../../rows/entries.ts";
import { requestReason } from "../../state/api-reasons.ts";
import { type Batch, backoff, type Next, SHORTEST_BUSY_WAIT_MS, stepsOf, unlessSuspect } from "../batch.ts";
import type { ChangeDriver } from "../change-driver.ts";
import { settleAnswers } from "../settle-items.ts";

/** How often an item in doubt is sent again although its request is refused as a whole. */
const REFUSED_TRIES = 3;

/** Applies the error of a request that got no results; gives what follows. */
export async function handleError(driver: ChangeDriver, batch: Batch, error: ApiError): Promise<Next> {
  const steps = stepsOf(driver, batch.ids);
  const [first] = steps;
  if (first === undefined) return { kind: "settled" };
  const reason = requestReason(first.operation, error);
  const failures = batch.failures + 1;
  const resend = (waitMs: number, more: Partial<Batch> = {}): Next => ({
    kind: "resend",
    batch: { ...batch, ...more },
    waitMs,
    reason,
  });
  switch (error.effect) {
    case "busy":
      driver.change([]);
      // The lock of the project is held for moments; where requests are limited, waiting longer each time is what helps.
      return error.statusCode === RATE_LIMITED
        ? resend(Math.max(error.retryAfterMs, backoff(driver, failures)), { failures })
        : resend(Math.max(error.retryAfterMs, SHORTEST_BUSY_WAIT_MS));
    case "notSent":
      driver.change([]);
      // A request that was held back has not failed: it is announced anew.
      if (error.cause instanceof HeldBackError) return { kind: "resend", batch, waitMs: 0, reason, isFree: true };
      return resend(backoff(driver, failures), { failures });
    case "ambiguous":
      driver.change(steps.map((step) => ({ step: step.id, to: "suspect" })));
      return resend(backoff(driver, failures), { failures });
    case "rejected":
      if (endsTheRun(error)) {
        driver.change(steps.map((step) => unlessSuspect(driver, step, { step: step.id, to: "refused", reason })));
        return { kind: "end", reason };
      }
      if (steps.length > 1) {
        driver.change([]);
        return { kind: "halve", ids: batch.ids };
      }
      if (isLeftInDoubt(driver, first)) {
        const refused = batch.refused + 1;
        driver.change([]);
        if (refused < REFUSED_TRIES) return resend(backoff(driver, refused), { refused });
        const because = { ...reason, detail: { ...reason.detail, refused: true } };
        driver.change([unlessSuspect(driver, first, { step: first.id, to: "failed", reason: because })]);
      } else await settleAnswers(driver, [first], [{ step: first, result: asResult(error) }]);
      return { kind: "settled" };
  }
}

/**
 * Whether the refusal of a request leaves it open what an earlier attempt of its item did. What is refused once more,
 * by a resumed run, is refused for what it is: then the earlier attempt was, too.
 */
function isLeftInDoubt({ state }: ChangeDriver, { id }: Step): boolean {
  return state.suspectSince(id) !== undefined && !state.wasRefusedInDoubt(id);
}

/** Whether every further request would be rejected in the same way. */
function endsTheRun(error: Extract<ApiError, { readonly effect: "rejected" }>): boolean {
  return (
    error.kind === "unauthorized" ||
    error.kind === "forbidden" ||
    error.kind === "wrongRoute" ||
    error.kind === "redirect" ||
    error.kind === "foreign" ||
    error.errorCode === "PROJECT_NOT_FOUND"
  );
}

/** A request with a single item that was refused as a whole: its error is the item's. */
function asResult(error: Extract<ApiError, { readonly effect: "rejected" }>): BulkResult {
  return {
    index: 0,
    success: false,
    error: itemError.parse({
      statusCode: error.statusCode,
      ...(error.errorCode === undefined ? {} : { errorCode: error.errorCode }),
      detail: { ...error.detail, ...(error.messages.length > 0 ? { messages: error.messages.slice(0, 3) } : {}) },
    }),
  };
}
