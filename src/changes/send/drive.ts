import type { Reason, StopCause } from "../../runs/outcome.ts";
import { ownReason } from "../../runs/reasons.ts";
import type { Turn } from "../../runs/turn.ts";
import { nextRequests, type Requests } from "../pack/requests.ts";
import { StepMaker } from "../rows/step-maker.ts";
import type { ChangeDriver } from "../settle/change-driver.ts";
import { noteNewest } from "../settle/lost-answers/evidence.ts";
import { takeBack } from "../settle/take-back.ts";
import { breakCircles, inTurn, type Turns, turnsOf } from "./rename-order.ts";
import { type BatchEnd, sendBatch, sendingOf } from "./send-request.ts";

/**
 * Drives a planned run until nothing is left to try or it has to stop: packs what is ready, sends request by request,
 * tries deferred steps again. Gives why it stopped; `cause` says what an aborted signal means. `first`
 * are the requests that come first, where they are known.
 */
export async function drive(
  driver: ChangeDriver,
  hold: (work: (turn: Turn) => Promise<BatchEnd>) => Promise<BatchEnd>,
  cause: () => "cancelled" | "interrupted",
  first?: Requests,
): Promise<void> {
  const stop = (why: StopCause, reason?: Reason): void => {
    // The process that has taken the run over records how it stops.
    driver.lease.lost.throwIfAborted();
    driver.record({ t: "stop", cause: why, at: driver.clock.now(), ...(reason === undefined ? {} : { reason }) });
  };
  let known = first;
  let turns: Turns = new Map();
  for (;;) {
    const { steps } = driver.state;
    const requests = known ?? nextRequests(steps, inTurn(driver.state.ready(), turns), driver.apartBy);
    known = undefined;
    if (requests.length === 0) {
      const next = retryDeferred(driver);
      if (next === undefined) return stop("finished");
      turns = next;
      continue;
    }
    let isNoted = false;
    for (const request of requests) {
      if (driver.signal.aborted) return stop(cause());
      const sending = sendingOf(driver, request);
      const inTurn = () =>
        orStopped(
          driver,
          hold(async (turn) => {
            // Not before nobody else of this project writes.
            if (!isNoted) await noteNewest(driver);
            isNoted = true;
            return sendBatch(driver, sending, turn);
          }),
        );
      let end = await inTurn();
      // Another process has had its turn since: steps in doubt are settled first, then the rest is sent.
      while (end !== "stopped" && !end.ended && end.turnLost && !driver.signal.aborted) end = await inTurn();
      if (end === "stopped") return stop(cause());
      if (end.ended) return stop("ended", endReason(end.reason));
    }
    if (driver.signal.aborted) return stop(cause());
  }
}

/** Waits for the sending, but ends as soon as the run is stopped while it waits for its turn. */
async function orStopped(driver: ChangeDriver, sending: Promise<BatchEnd>): Promise<BatchEnd | "stopped"> {
  try {
    return await sending;
  } catch (thrown) {
    if (driver.signal.aborted && thrown === driver.signal.reason) return "stopped";
    throw thrown;
  }
}

const SHARED_BY_ALL = new Set([
  ...["UNAUTHORIZED", "FORBIDDEN", "WRONG_ROUTE", "REDIRECTED", "FOREIGN_ANSWER", "PROJECT_NOT_FOUND"],
  "RATE_LIMITED",
]);

/** A wrong key stops unsent steps for the same reason; a request without an answer says nothing about other steps. */
function endReason(reason: Reason): Reason {
  return SHARED_BY_ALL.has(reason.code) ? reason : ownReason("RUN_ENDED", { because: reason.code });
}

/**
 * What to do with refused steps that waited for other changes, once nothing else is left to send: break circles of
 * names, and try those again for which something changed; let the rest fail. Gives the turns in which they leave;
 * undefined where there is nothing to go on with.
 */
function retryDeferred(driver: ChangeDriver): Turns | undefined {
  const deferred = driver.state.deferredSteps();
  if (deferred.length === 0) return undefined;
  const temporary = breakCircles(driver, deferred);
  if (temporary.length > 0) driver.change([], { steps: temporary });
  const turns = turnsOf(driver.state);
  const again = temporary.length > 0 ? deferred : deferred.filter(({ changedSince }) => changedSince);
  if (again.length > 0) {
    driver.change(again.map(({ step }) => ({ step: step.id, to: "pending" })));
    return turns;
  }
  for (const { step, reason } of deferred) {
    const then = takeBack(driver, step, reason, StepMaker.after(driver.state.steps));
    driver.change(then?.changes ?? [{ step: step.id, to: "failed", reason }], then?.steps ? { steps: then.steps } : {});
  }
  return turns;
}
