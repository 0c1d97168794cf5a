import { type ApiError, isApiError } from "../../api/errors.ts";
import type { BulkAnswer } from "../../api/management.ts";
import type { Fence } from "../../platform/fence.ts";
import { fenceOf, type Intent, LeaseLostError, type Turn } from "../../runs/turn.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import { isUlid, ulidTime } from "../../spec/ulid.ts";
import type { ChangeDriver, SendOptions } from "../settle/change-driver.ts";
import type { Answered, Unread } from "./unread.ts";

/** How an attempt of a batch ended. */
export type Attempt =
  | Answered
  /** The answer is there, and is read once the next request has left. */
  | { readonly kind: "unread"; readonly reading: () => Promise<Answered> }
  /** The request did not leave, since the run was asked to stop. */
  | { readonly kind: "withheld" }
  /** The request did not leave, since another process has the turn. */
  | { readonly kind: "turnLost" };

/** How a request is attempted. */
interface Attempting {
  readonly turn: Turn;
  /** Whether a request before carried the same steps. */
  readonly again: boolean;
  /** The answer of the request before, which is read once this one has left. */
  readonly before: Unread | undefined;
  /** Whether the answer may stay unread where it says that all items succeeded. */
  readonly mayStayUnread: boolean;
}

/** Announces one request in the journal, and sends it while this process has its turn. Never throws an ApiError. */
export async function attemptOnce(
  driver: ChangeDriver,
  steps: readonly number[],
  { turn, again, before, mayStayUnread }: Attempting,
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
  let leaves = (): void => {};
  const left = new Promise<void>((resolve) => {
    leaves = resolve;
  });
  const hasLeft = (): void => {
    fence.hasLeft();
    leaves();
  };
  const answered = sent(driver, operation, steps, { fence: { ...fence, hasLeft }, mayStayUnread });
  if (before !== undefined) {
    await Promise.race([left, answered]);
    await before.read();
  }
  return answered;
}

/** Sends a request that may leave, as far as its fence lets it. */
function sent(
  driver: ChangeDriver,
  operation: BulkOperation,
  steps: readonly number[],
  { fence, mayStayUnread }: { readonly fence: Fence; readonly mayStayUnread: boolean },
): Promise<Attempt> {
  // Read again after the write to the disk: the closer to the request, the more its answer tells about the clock.
  const leftAt = driver.clock.now();
  return new Promise((resolve, reject) => {
    let receivedAt: number | undefined;
    const beforeReading = async (allSucceeded: boolean): Promise<void> => {
      receivedAt = driver.clock.now();
      if (!mayStayUnread || !allSucceeded) return;
      await new Promise<void>((read) => {
        resolve({
          kind: "unread",
          reading: () => {
            read();
            return answered;
          },
        });
      });
    };
    const answered = answerOf(driver, operation, steps, { fence, beforeReading }).then((answer) => {
      if (answer.kind === "answer") observe(driver, operation, answer.answer, leftAt, receivedAt ?? driver.clock.now());
      return answer;
    });
    answered.then(resolve, reject);
  });
}

async function answerOf(
  driver: ChangeDriver,
  operation: BulkOperation,
  steps: readonly number[],
  options: SendOptions,
): Promise<Answered> {
  try {
    return { kind: "answer", answer: await driver.send(operation, steps, options) };
  } catch (thrown) {
    if (isApiError(thrown)) return { kind: "error", error: thrown };
    throw thrown;
  }
}

/** Learns from an answer how the service's clock stands to ours. */
function observe(
  { serverClock }: ChangeDriver,
  operation: BulkOperation,
  answer: BulkAnswer,
  sentAt: number,
  receivedAt: number,
): void {
  const { serverTime } = answer;
  if (serverTime !== undefined) {
    serverClock.observe({ from: serverTime, to: serverTime + 999, sentAt, receivedAt });
  }
  serverClock.observeMade(madeTimes(operation, answer), sentAt, receivedAt);
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
