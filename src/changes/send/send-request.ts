import type { Reason } from "../../runs/outcome.ts";
import type { Turn } from "../../runs/turn.ts";
import { settleAnswer } from "../settle/answered.ts";
import { type Batch, stepsOf, unlessSuspect } from "../settle/batch.ts";
import type { ChangeDriver } from "../settle/change-driver.ts";
import { handleError } from "../settle/lost-answers/unanswered.ts";
import { attemptOnce } from "./attempt.ts";
import { type Unread, unreadAnswer } from "./unread.ts";

/**
 * How sending a batch of steps ended: the run goes on, it ends for this reason, or it goes on with the batch once it is
 * this process's turn again.
 */
export type BatchEnd =
  | { readonly ended: false; readonly turnLost?: true; readonly unread?: Unread }
  | { readonly ended: true; readonly reason: Reason };

/** The requests before and after a batch, where they follow each other without a pause. */
export interface Neighbours {
  /** The answer of the one before, which is read once a request of this batch has left. */
  readonly before?: Unread | undefined;
  /** Whether another request follows, so that the answer of this one may be read once that has left. */
  readonly isFollowed?: boolean;
}

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
export async function sendBatch(
  driver: ChangeDriver,
  sending: Sending,
  turn: Turn,
  { before, isFollowed = false }: Neighbours = {},
): Promise<BatchEnd> {
  const batches = [...sending.batches];
  for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
    if (!driver.mayAnnounce()) return GOES_ON;
    const startedAt = driver.clock.now();
    const mayStayUnread = isFollowed && batches.length === 0 && driver.state.steps.areRows(batch.ids);
    const attempt = await attemptOnce(driver, batch.ids, { turn, again: sending.again, before, mayStayUnread });
    await before?.read();
    if (attempt.kind === "withheld") return GOES_ON;
    if (attempt.kind === "turnLost") {
      sending.batches = [batch, ...batches];
      return TURN_LOST;
    }
    if (attempt.kind === "unread") return { ended: false, unread: unreadAnswer(driver, batch, attempt.reading) };
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

/** The retry budget is spent: what may have been applied is unknown, the rest was never applied. */
function giveUp(driver: ChangeDriver, ids: readonly number[], reason: Reason): Reason {
  driver.change(
    stepsOf(driver, ids).map((step) => unlessSuspect(driver, step, { step: step.id, to: "unattempted", reason })),
  );
  return reason;
}

async function pause(driver: ChangeDriver, ms: number): Promise<boolean> {
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

function halves(ids: readonly number[]): readonly (readonly number[])[] {
  const middle = Math.ceil(ids.length / 2);
  return [ids.slice(0, middle), ids.slice(middle)];
}
