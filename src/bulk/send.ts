import { type ApiError, isApiError } from "../api/errors.ts";
import type { BulkAnswer } from "../api/management.ts";
import { type BulkResult, type ItemError, itemError } from "../spec/records.ts";
import { APPLIED_AS, type BulkOperation } from "../spec/routes.ts";
import { isUlid, ulidTime } from "../spec/ulid.ts";
import type { Driver } from "./driver.ts";
import { itemReason, ownReason, requestReason } from "./reasons.ts";
import { type Answered, metOwnName, settleAnswers } from "./settle.ts";
import { areRows } from "./step-table.ts";
import type { MadeRows, Reason, Step, StepChange } from "./work.ts";

/** The shortest wait after a 409, in milliseconds: the service may say 0. */
const SHORTEST_BUSY_WAIT_MS = 50;
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 10_000;
/** How often `UNCATCHED` is answered by sending the same again before the request is halved. */
const UNCATCHED_TRIES = 3;

/** How often an item in doubt is sent again although its request is refused as a whole. */
const REFUSED_TRIES = 3;

/** What the last attempt of a batch came to. */
type Attempt =
  | { readonly kind: "answer"; readonly answer: BulkAnswer }
  | { readonly kind: "error"; readonly error: ApiError };

/** How sending a batch of steps ended: the run goes on, or it ends for this reason. */
export type BatchEnd = { readonly ended: false } | { readonly ended: true; readonly reason: Reason };

interface Batch {
  /** The steps, by their IDs. */
  readonly ids: readonly number[];
  readonly deadline: number;
  /** Failed attempts so far, for the backoff. */
  readonly failures: number;
  readonly uncatched: number;
  readonly refused: number;
}

const GOES_ON: BatchEnd = { ended: false };

/**
 * Sends one request until every item in it is settled: waits and resends as management-api 4.2 and 4.3 say, halves what
 * the service refuses as a whole, and puts answers into effect. Every request is journaled before it leaves.
 * Ends the run when the retry budget is spent or when no further request could succeed. Stops between requests when
 * the driver's signal is aborted; what is not settled then stays pending.
 */
export async function sendBatch(driver: Driver, steps: readonly number[]): Promise<BatchEnd> {
  const fresh = (ids: readonly number[]): Batch => ({
    ids,
    deadline: driver.clock.now() + driver.retryBudgetMs,
    failures: 0,
    uncatched: 0,
    refused: 0,
  });
  const batches: Batch[] = [fresh(steps)];
  // What comes after the first attempt was all in it.
  let again = false;
  for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
    if (driver.signal.aborted) return GOES_ON;
    const attempt = await attemptOnce(driver, batch.ids, again);
    again = true;
    const next =
      attempt.kind === "answer"
        ? await settleAnswer(driver, batch, attempt.answer)
        : await handleError(driver, batch, attempt.error);
    if (next.kind === "end") return { ended: true, reason: next.reason };
    if (next.kind === "halve") batches.unshift(...halves(next.ids).map(fresh));
    if (next.kind === "resend") {
      const spent = driver.clock.now() + next.waitMs > batch.deadline;
      if (spent) return { ended: true, reason: giveUp(driver, next.batch.ids, next.reason) };
      if (!(await pause(driver, next.waitMs))) return GOES_ON;
      batches.unshift(next.batch);
    }
  }
  return GOES_ON;
}

type Next =
  | { readonly kind: "settled" }
  | { readonly kind: "halve"; readonly ids: readonly number[] }
  | { readonly kind: "end"; readonly reason: Reason }
  | { readonly kind: "resend"; readonly batch: Batch; readonly waitMs: number; readonly reason: Reason };

async function attemptOnce(driver: Driver, steps: readonly number[], again: boolean): Promise<Attempt> {
  const [first] = steps;
  const operation = first === undefined ? undefined : driver.state.steps.operationOf(first);
  if (operation === undefined) throw new RangeError("a request carries at least one item");
  const sentAt = driver.clock.now();
  driver.record({ t: "send", steps, at: sentAt, again });
  await driver.flush();
  try {
    const answer = await driver.send(operation, steps);
    if (answer.serverTime !== undefined) {
      driver.serverClock.observe({
        from: answer.serverTime,
        to: answer.serverTime + 999,
        sentAt,
        receivedAt: driver.clock.now(),
      });
    }
    observeMade(driver, operation, answer, sentAt);
    return { kind: "answer", answer };
  } catch (thrown) {
    if (isApiError(thrown)) return { kind: "error", error: thrown };
    throw thrown;
  }
}

/** What a request has just made carries the service's time in its ID. */
function observeMade(driver: Driver, operation: BulkOperation, answer: BulkAnswer, sentAt: number): void {
  if (operation !== "createTargetings" && operation !== "addOptions") return;
  const id = answer.results.find((result) => result.success)?.data?._id;
  if (typeof id === "string" && isUlid(id)) {
    driver.serverClock.observeMade(ulidTime(id), sentAt, driver.clock.now());
  }
}

async function settleAnswer(driver: Driver, batch: Batch, answer: BulkAnswer): Promise<Next> {
  const made = madeRows(driver, batch.ids, answer);
  if (made !== undefined) {
    driver.change([], { made });
    return { kind: "settled" };
  }
  const request = stepsOf(driver, batch.ids);
  const answered: Answered[] = [];
  // Whose name is there may be known only once the others of the unit have an answer: then it is sent with them again.
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
      retryAfterMs = Math.max(retryAfterMs, retryAfter(result.error));
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

/** What a request added, where it carried rows that follow each other and all of them succeeded: most of an import. */
function madeRows({ state }: Driver, ids: readonly number[], { results }: BulkAnswer): MadeRows | undefined {
  const [from = 0] = ids;
  if (!areRows(state.steps, ids)) return undefined;
  const made: (string | null)[] = [];
  for (const { success, data } of results) {
    if (!success) return undefined;
    made.push(typeof data?._id === "string" ? data._id : null);
  }
  return { from, ids: made };
}

function stepsOf({ state }: Driver, ids: readonly number[]): readonly Step[] {
  return ids.flatMap((id) => state.steps.at(id) ?? []);
}

function idsOf(steps: readonly Step[]): readonly number[] {
  return steps.map(({ id }) => id);
}

async function afterAnswer(
  driver: Driver,
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
      // What failed unexpectedly was free: the unit of the first attempt was not applied.
      await settleAnswers(driver, request, left.met, true);
      return { kind: "settled" };
    }
  }
  const resent = inOrder([...busy, ...met, ...(tries > UNCATCHED_TRIES ? [] : uncatched)]);
  // Their `add` may be applied, whatever stops the run before they are sent again.
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
 * Items that fail unexpectedly every time have failed: nothing was applied for them, but for the `add` of an update that
 * also removes (management-api 4.1), and for what an earlier attempt may have done.
 */
async function giveUpOnUncatched(driver: Driver, request: readonly Step[], uncatched: readonly Step[]): Promise<void> {
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

function addsAndRemoves({ json }: Step): boolean {
  return json.includes('"add":[') && json.includes('"remove":[');
}

async function handleError(driver: Driver, batch: Batch, error: ApiError): Promise<Next> {
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
      return resend(Math.max(error.retryAfterMs, SHORTEST_BUSY_WAIT_MS));
    case "notSent":
      driver.change([]);
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
 * Whether the refusal of a request leaves it open what an earlier attempt of its item did. What is refused once more, by
 * a resumed run, is refused for what it is: then the earlier attempt was, too.
 */
function isLeftInDoubt({ state }: Driver, { id }: Step): boolean {
  return state.suspectSince(id) !== undefined && !state.wasRefusedInDoubt(id);
}

/** Rejections that every further request would meet too (architecture, step 5). */
function endsTheRun(error: Extract<ApiError, { readonly effect: "rejected" }>): boolean {
  return (
    error.kind === "unauthorized" ||
    error.kind === "forbidden" ||
    error.kind === "wrongRoute" ||
    error.kind === "redirect" ||
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

/** The retry budget is spent: what may have been applied is unknown, the rest was never applied. */
function giveUp(driver: Driver, ids: readonly number[], reason: Reason): Reason {
  driver.change(
    stepsOf(driver, ids).map((step) => unlessSuspect(driver, step, { step: step.id, to: "unattempted", reason })),
  );
  return reason;
}

/** What is said of a step that was not applied this time, unless an earlier attempt may have been. */
function unlessSuspect(
  driver: Driver,
  step: Step,
  change: Extract<
    StepChange,
    { readonly reason: Reason; readonly to: "failed" | "refused" | "unattempted" | "unknown" }
  >,
): StepChange {
  if (driver.state.suspectSince(step.id) === undefined) return change;
  const { code, detail } = change.reason;
  return { step: step.id, to: "unknown", reason: ownReason("NO_ANSWER", { because: code, ...detail }) };
}

async function pause(driver: Driver, ms: number): Promise<boolean> {
  driver.record({ t: "waited", ms });
  driver.waiting(ms);
  try {
    await driver.clock.sleep(ms, driver.signal);
    return true;
  } catch (thrown) {
    if (driver.signal.aborted) return false;
    throw thrown;
  }
}

/** Exponential, with up to a fifth taken off at random, so that two servers do not resend in step. */
function backoff(driver: Driver, failures: number): number {
  const full = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
  return Math.round(full * (1 - driver.random() / 5));
}

function retryAfter(error: ItemError | null | undefined): number {
  const value = error?.detail?.retryAfterMs;
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}

function isServerFault(error: ItemError | null | undefined): boolean {
  return (error?.statusCode ?? 500) >= 500;
}

function halves(ids: readonly number[]): readonly (readonly number[])[] {
  const middle = Math.ceil(ids.length / 2);
  return [ids.slice(0, middle), ids.slice(middle)];
}
