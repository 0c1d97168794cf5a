// A request is announced, sent, waited for and sent again in an order in which a crash does no damage.
import { describe, expect, test } from "vitest";
import { AmbiguousError, NotSentError, RejectedError } from "../../../src/api/errors.ts";
import type { BulkAnswer } from "../../../src/api/management.ts";
import { StepMaker } from "../../../src/changes/rows/steps.ts";
import type { ChangeDriver } from "../../../src/changes/settle/evidence.ts";
import { sendBatch, sendingOf } from "../../../src/changes/settle/send-request.ts";
import { LeaseLostError, permitWithoutLease } from "../../../src/runs/turn.ts";
import { changesIn, entriesOf, fakeDriver, idAt, START } from "../fake-driver.ts";

const operation = "renameTargetings" as const;
const done = (count: number): BulkAnswer => ({
  results: Array.from({ length: count }, (_, index) => ({ index, success: true })),
});
const lost = (): never => {
  throw new AmbiguousError({ operation, reason: "reset" });
};
const tooLarge = (): never => {
  throw new RejectedError({ kind: "tooLarge", statusCode: 413, operation, route: "POST /x" });
};

type Given = Parameters<typeof fakeDriver>[1];

/** Creates a run that renames targetings, and the request that contains all renames. */
function renaming(count: number, given: Given) {
  const make = StepMaker.after({ length: 0 });
  const steps = Array.from({ length: count }, (_, object) =>
    make.renameTargeting(idAt(object), `Name ${object}`, { objects: [object] }),
  );
  const faked = fakeDriver(entriesOf(steps), given);
  const { driver } = faked;
  const sending = sendingOf(
    driver,
    steps.map(({ id }) => id),
  );
  return { ...faked, sending, send: () => sendBatch(driver, sending, permitWithoutLease(driver.clock)) };
}

test("a request is announced on the disk before it leaves, and its answer is journaled before the next one", async () => {
  const { send, log, state } = renaming(2, { answers: [() => done(2)] });
  expect(await send()).toEqual({ ended: false });
  expect(log).toEqual(["send", "intend", `${operation} 0 1`, "answer"]);
  expect(state.counts()).toMatchObject({ succeeded: 2, pending: 0 });
});

test("what is too large is halved until it fits; a resend is counted as one", async () => {
  const one = () => done(1);
  const { send, log, state } = renaming(4, { answers: [tooLarge, () => done(2), tooLarge, one, one] });
  await send();
  expect(log.filter((line) => line.startsWith(operation))).toEqual([
    `${operation} 0 1 2 3`,
    `${operation} 0 1`,
    `${operation} 2 3`,
    `${operation} 2`,
    `${operation} 3`,
  ]);
  expect(state.requests).toMatchObject({ sent: 5, resent: 4 });
  expect(state.counts()).toMatchObject({ succeeded: 4 });
});

describe("a lost answer", () => {
  test("is followed by the same request after a pause, which is journaled", async () => {
    const { send, log, journal } = renaming(1, { answers: [lost, () => done(1)] });
    await send();
    expect(log).toEqual([
      "send",
      "intend",
      `${operation} 0`,
      "answer",
      "waits 225",
      "waited",
      "send",
      "intend",
      `${operation} 0`,
      "answer",
    ]);
    expect(changesIn(journal)).toEqual(["0 suspect", "0 done"]);
  });

  test("leaves the item unknown once the retry budget is spent", async () => {
    const { send, journal, time } = renaming(1, { answers: Array.from({ length: 50 }, () => lost) });
    const end = await send();
    expect(end).toMatchObject({ ended: true, reason: { code: "NO_ANSWER" } });
    expect(changesIn(journal).at(-1)).toBe("0 unknown NO_ANSWER");
    expect(time.now() - START).toBeLessThanOrEqual(10_000);
  });
});

test("what never left is notApplied once the budget is spent", async () => {
  const unreachable = (): never => {
    throw new NotSentError({ operation, reason: "refused" });
  };
  const { send, state } = renaming(3, { answers: Array.from({ length: 50 }, () => unreachable) });
  expect(await send()).toMatchObject({ ended: true, reason: { code: "NOT_SENT" } });
  expect(state.counts()).toMatchObject({ notApplied: 3 });
});

describe("a run that is to stop", () => {
  test("sends nothing more", async () => {
    const { send, stop, log } = renaming(1, {});
    stop.abort();
    expect(await send()).toEqual({ ended: false });
    expect(log).toEqual([]);
  });

  test("withholds a request that it has announced, so that nothing is in flight", async () => {
    const mayLeave: ChangeDriver["mayLeave"] = async () => false;
    const { send, log, state } = renaming(1, { mayLeave });
    expect(await send()).toEqual({ ended: false });
    expect(log).toEqual(["send", "intend", "withheld"]);
    expect(state.lostInFlight()).toEqual([]);
    expect(state.requests.sent).toBe(0);
  });
});

describe("a lost turn", () => {
  const loses = (): ChangeDriver["intend"] => {
    let first = true;
    return async (turn) => {
      if (!first) return turn.renew();
      first = false;
      throw new LeaseLostError("another process has it");
    };
  };

  test("keeps the batch for the next turn of this process, and costs nothing of the budget", async () => {
    const { send, sending, log, state, driver } = renaming(2, { intend: loses(), answers: [() => done(2)] });
    expect(await send()).toEqual({ ended: false, turnLost: true });
    expect(log).toEqual(["send", "withheld"]);
    expect(sending.budgetMs).toBe(driver.retryBudgetMs);
    expect(await send()).toEqual({ ended: false });
    expect(state.counts()).toMatchObject({ succeeded: 2 });
  });

  test("ends in an error where the run itself is another process's", async () => {
    const gone = new AbortController();
    const lease = {
      ...permitWithoutLease({ now: () => 0, monotonic: () => 0, sleep: async () => {} }),
      lost: gone.signal,
    };
    const { send } = renaming(1, { intend: loses(), lease });
    gone.abort();
    await expect(send()).rejects.toThrow(LeaseLostError);
  });
});
