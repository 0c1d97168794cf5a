import type { BulkAnswer } from "../../api/management.ts";
import { retryAfterIn } from "../../api/rejections.ts";
import { ownReason } from "../../runs/reasons.ts";
import type { ItemError } from "../../spec/records.ts";
import { APPLIED_AS } from "../../spec/routes.ts";
import type { MadeRows, Step } from "../rows/entries.ts";
import { itemReason } from "../state/api-reasons.ts";
import { type Batch, backoff, idsOf, type Next, SHORTEST_BUSY_WAIT_MS, stepsOf, unlessSuspect } from "./batch.ts";
import type { ChangeDriver } from "./change-driver.ts";
import { type Answered, metOwnName, settleAnswers } from "./settle-items.ts";

/** How often `UNCATCHED` is answered by sending the same again before the request is halved. */
const UNCATCHED_TRIES = 3;

/** Applies an answer, item by item; gives what is to be sent again, as management-api 4.2 and 4.3 say. */
export async function settleAnswer(driver: ChangeDriver, batch: Batch, answer: BulkAnswer): Promise<Next> {
  if (settleMade(driver, batch, answer)) return { kind: "settled" };
  const request = stepsOf(driver, batch.ids);
  const answered: Answered[] = [];
  // Whether a taken name is our own may be known only once the other items of the unit are answered: it is resent with
  // them.
  const met: Answered[] = [];
  const busy: Step[] = [];
  const uncatched: Step[] = [];
  let retryAfterMs = 0;
  for (const result of answer.results) {
    const step = request[result.index];
    if (step === undefined) continue;
    const code = result.error?.errorCode;
    if (!result.success && code === "CONTEXT_TARGETING_WRITE_IN_PROGRESS") {
      busy.push(step);
      retryAfterMs = Math.max(retryAfterMs, retryAfterIn(result.error?.detail));
    } else if (!result.success && (code === "UNCATCHED" || (code === undefined && isServerFault(result.error)))) {
      uncatched.push(step);
    } else {
      (metOwnName(driver, step, result) ? met : answered).push({ step, result });
    }
  }
  const isWhole = busy.length + uncatched.length === 0;
  await settleAnswers(driver, request, isWhole ? [...answered, ...met] : answered);
  return isWhole ? { kind: "settled" } : afterAnswer(driver, batch, { request, busy, uncatched, met, retryAfterMs });
}

/** Applies an answer that says no more than that all rows of its request were added; gives whether it does. */
export function settleMade(driver: ChangeDriver, { ids }: Batch, answer: BulkAnswer): boolean {
  const made = madeRows(driver, ids, answer);
  if (made === undefined) return false;
  driver.change([], { made });
  return true;
}

/** What a request added, where it carried rows that follow each other and all of them succeeded: most of an import. */
function madeRows({ state }: ChangeDriver, ids: readonly number[], { results }: BulkAnswer): MadeRows | undefined {
  const [from = 0] = ids;
  if (!state.steps.areRows(ids)) return undefined;
  const made: (string | null)[] = [];
  for (const [position, { success, data }] of results.entries()) {
    const count = data?.contextCount;
    const isExpected = typeof count !== "number" || count === state.steps.weightOf(from + position).contextIds;
    if (!success || !isExpected) return undefined;
    made.push(typeof data?._id === "string" ? data._id : null);
  }
  return { from, ids: made };
}

async function afterAnswer(
  driver: ChangeDriver,
  batch: Batch,
  left: {
    readonly request: readonly Step[];
    readonly busy: readonly Step[];
    readonly uncatched: readonly Step[];
    readonly met: readonly Answered[];
    readonly retryAfterMs: number;
  },
): Promise<Next> {
  const { request, busy, uncatched } = left;
  const met = left.met.map(({ step }) => step);
  const operation = (busy[0] ?? uncatched[0])?.operation;
  if (operation === undefined) return { kind: "settled" };
  const tries = uncatched.length > 0 ? batch.uncatched + 1 : 0;
  if (tries > UNCATCHED_TRIES) {
    if (APPLIED_AS[operation] === "unit" && uncatched.length > 1) {
      return { kind: "halve", ids: idsOf(inOrder([...uncatched, ...met])) };
    }
    await giveUpOnUncatched(driver, request, uncatched);
    if (busy.length === 0) {
      // An item that failed unexpectedly had found its name free: the unit of the first attempt was not applied.
      await settleAnswers(driver, request, left.met, true);
      return { kind: "settled" };
    }
  }
  const resent = inOrder([...busy, ...met, ...(tries > UNCATCHED_TRIES ? [] : uncatched)]);
  // Their `add` may be applied even if the run stops before they are sent again.
  const halfDone = resent.filter((step) => uncatched.includes(step) && addsAndRemoves(step));
  if (halfDone.length > 0) driver.change(halfDone.map((step) => ({ step: step.id, to: "suspect" })));
  const failures = batch.failures + (uncatched.length > 0 ? 1 : 0);
  const waitMs = Math.max(
    busy.length > 0 ? Math.max(left.retryAfterMs, SHORTEST_BUSY_WAIT_MS) : 0,
    uncatched.length > 0 ? backoff(driver, failures) : 0,
  );
  return {
    kind: "resend",
    batch: { ...batch, ids: idsOf(resent), failures, uncatched: tries },
    waitMs,
    reason: itemReason(operation, {
      statusCode: busy.length > 0 ? 409 : 500,
      errorCode: busy.length > 0 ? "CONTEXT_TARGETING_WRITE_IN_PROGRESS" : "UNCATCHED",
    }),
  };
}

function inOrder(steps: readonly Step[]): readonly Step[] {
  return steps.toSorted((one, other) => one.id - other.id);
}

/**
 * Items that fail unexpectedly every time have failed: nothing was applied for them, but for the `add` of an update
 * that also removes (management-api 4.1), and for what an earlier attempt may have done.
 */
async function giveUpOnUncatched(
  driver: ChangeDriver,
  request: readonly Step[],
  uncatched: readonly Step[],
): Promise<void> {
  const error = { statusCode: 500, errorCode: "UNCATCHED" };
  const isOpen = (step: Step): boolean => driver.state.suspectSince(step.id) !== undefined || addsAndRemoves(step);
  const open = uncatched.filter(isOpen);
  const because = ownReason("PARTLY_APPLIED", { because: error.errorCode });
  const asUnknown = (step: Step) => ({ step: step.id, to: "unknown", reason: because }) as const;
  driver.change(
    open.map((step) => (addsAndRemoves(step) ? asUnknown(step) : unlessSuspect(driver, step, asUnknown(step)))),
  );
  const failed = uncatched.filter((step) => !open.includes(step));
  const answered = failed.map((step, index) => ({ step, result: { index, success: false, error } }));
  await settleAnswers(driver, request, answered);
}

function addsAndRemoves({ operation, item }: Step): boolean {
  return operation === "updateOptions" && item.contexts?.add !== undefined && item.contexts.remove !== undefined;
}

function isServerFault(error: ItemError | null | undefined): boolean {
  return (error?.statusCode ?? 500) >= 500;
}
