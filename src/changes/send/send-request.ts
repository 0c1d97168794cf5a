import { type ApiError, isApiError } from "../../api/errors.ts";
import type { BulkAnswer } from "../../api/management.ts";
import type { Reason } from "../../runs/outcome.ts";
import { fenceOf, type Intent, LeaseLostError, type Turn } from "../../runs/turn.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import { isUlid, ulidTime } from "../../spec/ulid.ts";
import { settleAnswer } from "../settle/answered.ts";
import { type Batch, stepsOf, unlessSuspect } from "../settle/batch.ts";
import type { ChangeDriver } from "../settle/change-driver.ts";
import { handleError } from "../settle/lost-answers/unanswered.ts";

/** How an attempt of a batch ended. */
type Attempt =
  | { readonly kind: "answer"; readonly answer: BulkAnswer }
  | { readonly kind: "error"; readonly error: ApiError }
  /** The request did not leave, since the run was asked to stop. */
  | { readonly kind: "withheld" }
  /** The request did not leave, since another process has the turn. */
  | { readonly kind: "turnLost" };

/**
 * How sending a batch of steps ended: the run goes on, it ends for this reason, or it goes on with the batch once it is
 * this process's turn again.
 */
export type BatchEnd =
  | { readonly ended: false; readonly turnLost?: true }
  | { readonly ended: true; readonly reason: Reason };

const GOES_ON: BatchEnd = { ended: false };
const TURN_LOST: BatchEnd = { ended: false, turnLost: true };

/** The unsent rest of one batch of steps. */
export interface Sending {
  batches: readonly Batch[];
  /** Whether a first attempt has left: all further ones repeat its steps. */
  again: boolean;
  /**
   * How long it may still be retried, in milliseconds. Halves of a request share it, so that what is halved and fails
   * on fails for no longer than a whole one does; to lose the turn is no failed attempt and costs nothing of it.
   */
  budgetMs: number;
}

/** All of a batch of steps. */
export function sendingOf(driver: ChangeDriver, steps: readonly number[]): Sending {
  return { batches: [fresh(steps)], again: false, budgetMs: driver.retryBudgetMs };
}

function fresh(ids: readonly number[]): Batch {
  return { ids, failures: 0, uncatched: 0, refused: 0 };
}

/**
 * Sends one request until every item in it is settled: waits and resends as management-api 4.2 and 4.3 say, halves what
 * the service refuses as a whole, and applies answers. Every request is journaled before it leaves, and leaves
 * only while this process has its turn. Ends the run when the retry budget is spent or when no further request could
 * succeed. Stops between requests when the driver's signal is aborted, or the turn is lost; what is not settled then
 * stays pending. Throws a LeaseLostError where another process drives the run.
 */
export async function sendBatch(driver: ChangeDriver, sending: Sending, turn: Turn): Promise<BatchEnd> {
  const batches = [...sending.batches];
  for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
    if (!driver.mayAnnounce()) return GOES_ON;
    const startedAt = driver.clock.now();
    const attempt = await attemptOnce(driver, batch.ids, sending.again, turn);
    if (attempt.kind === "withheld") return GOES_ON;
    if (attempt.kind === "turnLost") {
      sending.batches = [batch, ...batches];
      return TURN_LOST;
    }
    sending.again = true;
    const next =
      attempt.kind === "answer"
        ? await settleAnswer(driver, batch, attempt.answer)
        : await handleError(driver, batch, attempt.error);
    if (next.kind === "end") return { ended: true, reason: next.reason };
    if (next.kind === "halve") batches.unshift(...halves(next.ids).map(fresh));
    if (next.kind === "resend") {
      // Otherwise a crash during the pause would put the answered items in doubt.
      if (attempt.kind === "answer") await driver.flush();
      // A refusal of an item in doubt is counted by itself; a request that was held back is no failed attempt.
      const isFailing = !next.isFree && next.batch.refused === batch.refused;
      if (isFailing) sending.budgetMs -= driver.clock.now() - startedAt + next.waitMs;
      if (sending.budgetMs < 0) return { ended: true, reason: giveUp(driver, next.batch.ids, next.reason) };
      if (!(await pause(driver, next.waitMs))) return GOES_ON;
      batches.unshift(next.batch);
    }
  }
  return GOES_ON;
}

async function attemptOnce(
  driver: ChangeDriver,
  steps: readonly number[],
  again: boolean,
  turn: Turn,
): Promise<Attempt> {
  const [first] = steps;
  const operation = first === undefined ? undefined : driver.state.steps.partAt(first)?.operation;
  if (operation === undefined) throw new RangeError("a request carries at least one item");
  const unconnected = await failureToConnect(driver, operation);
  const sentAt = driver.clock.now();
  driver.record({ t: "send", steps, at: sentAt, again });
  const intent = await intendOrUndo(driver, turn);
  if (intent === undefined) return { kind: "turnLost" };
  if (!(await driver.mayLeave(intent))) {
    driver.withhold();
    return { kind: "withheld" };
  }
  if (unconnected !== undefined) return { kind: "error", error: unconnected };
  const fence = fenceOf([turn, driver.lease], intent, {
    renew: () => driver.intend(turn),
    onLate: () => driver.record({ t: "late", steps, at: driver.clock.now() }),
  });
  // Read again after the write to the disk: the closer to the request, the more its answer tells about the clock.
  const leftAt = driver.clock.now();
  try {
    const answer = await driver.send(operation, steps, fence);
    const receivedAt = driver.clock.now();
    if (answer.serverTime !== undefined) {
      const { serverTime } = answer;
      driver.serverClock.observe({ from: serverTime, to: serverTime + 999, sentAt: leftAt, receivedAt });
    }
    driver.serverClock.observeMade(madeTimes(operation, answer), leftAt, receivedAt);
    return { kind: "answer", answer };
  } catch (thrown) {
    if (isApiError(thrown)) return { kind: "error", error: thrown };
    throw thrown;
  }
}

/** Connects first, so that no time passes for it between the announcement of a request and the request. */
async function failureToConnect(driver: ChangeDriver, operation: BulkOperation): Promise<ApiError | undefined> {
  try {
    await driver.connect(operation);
    return undefined;
  } catch (thrown) {
    if (isApiError(thrown)) return thrown;
    throw thrown;
  }
}

/** Undefined where the turn is lost: the recorded request is then marked as withheld. */
async function intendOrUndo(driver: ChangeDriver, turn: Turn): Promise<Intent | undefined> {
  try {
    return await driver.intend(turn);
  } catch (thrown) {
    if (!(thrown instanceof LeaseLostError) || driver.lease.lost.aborted) throw thrown;
    driver.withhold();
    return undefined;
  }
}

/** The times inside the first and the last ID that a request has just made: those between them tell no more. */
function madeTimes(operation: BulkOperation, { results }: BulkAnswer): readonly number[] {
  if (operation !== "createTargetings" && operation !== "addOptions") return [];
  let first: string | undefined;
  let last: string | undefined;
  for (const { success, data } of results) {
    const id = data?._id;
    if (!success || typeof id !== "string") continue;
    if (first === undefined || id < first) first = id;
    if (last === undefined || id > last) last = id;
  }
  return [first, last].flatMap((id) => (id !== undefined && isUlid(id) ? ulidTime(id) : []));
}

/** The retry budget is spent: what may have been applied is unknown, the rest was never applied. */
function giveUp(driver: ChangeDriver, ids: readonly number[], reason: Reason): Reason {
  driver.change(
    stepsOf(driver, ids).map((step) => unlessSuspect(driver, step, { step: step.id, to: "notApplied", reason })),
  );
  return reason;
}

async function pause(driver: ChangeDriver, ms: number): Promise<boolean> {
  const began = driver.clock.monotonic();
  driver.waiting(ms);
  try {
    await driver.clock.sleep(ms, driver.signal);
    driver.record({ t: "waited", ms: Math.round(driver.clock.monotonic() - began) });
    return true;
  } catch (thrown) {
    if (driver.signal.aborted) return false;
    throw thrown;
  }
}

function halves(ids: readonly number[]): readonly (readonly number[])[] {
  const middle = Math.ceil(ids.length / 2);
  return [ids.slice(0, middle), ids.slice(middle)];
}
