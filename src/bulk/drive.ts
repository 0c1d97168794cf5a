import * as z from "zod";
import { ulidSource } from "../spec/ulid.ts";
import { targetOf, wantedName } from "./defer.ts";
import type { Driver } from "./driver.ts";
import { ownReason } from "./reasons.ts";
import { existingIds, noteNewest } from "./reconcile.ts";
import { nextRequests, type Requests } from "./requests.ts";
import { type BatchEnd, sendBatch } from "./send.ts";
import { StepMaker } from "./steps.ts";
import { takeBack } from "./take-back.ts";
import type { Reason, Step, StopCause } from "./work.ts";

/**
 * Drives a planned run until nothing is left to try or it has to stop: packs what is ready, sends request by request,
 * tries again what an answer made possible. Gives why it stopped; `cause` says what an aborted signal means. `first` are
 * the requests that come first, where they are known.
 */
export async function drive(
  driver: Driver,
  hold: (work: () => Promise<BatchEnd>) => Promise<BatchEnd>,
  cause: () => "cancelled" | "interrupted",
  first?: Requests,
): Promise<void> {
  const stop = (why: StopCause, reason?: Reason): void =>
    driver.record({ t: "stop", cause: why, at: driver.clock.now(), ...(reason === undefined ? {} : { reason }) });
  await noteNewest(driver);
  let known = first;
  for (;;) {
    const { steps } = driver.state;
    const requests = known ?? nextRequests(steps, driver.state.ready(), driver.apartBy);
    known = undefined;
    if (requests.length === 0) {
      if (retryDeferred(driver)) continue;
      return stop("finished");
    }
    for (const request of requests) {
      if (driver.signal.aborted) return stop(cause());
      const end = await orStopped(
        driver,
        hold(() =>
          sendBatch(
            driver,
            request.flatMap((id) => steps.at(id) ?? []),
          ),
        ),
      );
      if (end === "stopped") return stop(cause());
      if (end.ended) return stop("ended", endReason(end.reason));
    }
    if (driver.signal.aborted) return stop(cause());
  }
}

/** Waiting for one's turn to write ends as soon as the run is stopped. */
async function orStopped(driver: Driver, sending: Promise<BatchEnd>): Promise<BatchEnd | "stopped"> {
  try {
    return await sending;
  } catch (thrown) {
    if (driver.signal.aborted && thrown === driver.signal.reason) return "stopped";
    throw thrown;
  }
}

const SHARED_BY_ALL = new Set(["UNAUTHORIZED", "FORBIDDEN", "WRONG_ROUTE", "REDIRECTED", "PROJECT_NOT_FOUND"]);

/** A wrong key is as wrong for what was not sent; that one request found no answer says nothing about the others. */
function endReason(reason: Reason): Reason {
  return SHARED_BY_ALL.has(reason.code) ? reason : ownReason("RUN_ENDED", { because: reason.code });
}

/**
 * What to do with refused steps that waited for other changes, once nothing else is left to send: try those again for
 * which something changed; break a circle of names; let the rest fail. Whether there is anything to go on with.
 */
function retryDeferred(driver: Driver): boolean {
  const deferred = driver.state.deferredSteps();
  if (deferred.length === 0) return false;
  const again = deferred.filter(({ changedSince }) => changedSince);
  if (again.length > 0) {
    driver.change(again.map(({ step }) => ({ step: step.id, to: "pending" })));
    return true;
  }
  const maker = StepMaker.after(driver.state.steps);
  const temporary = breakCircle(driver, deferred, maker);
  if (temporary !== undefined) {
    driver.change([], { steps: [temporary] });
    return true;
  }
  for (const { step, reason } of deferred) {
    const then = takeBack(driver, step, reason, StepMaker.after(driver.state.steps));
    driver.change(then?.changes ?? [{ step: step.id, to: "failed", reason }], then?.steps ? { steps: then.steps } : {});
  }
  return true;
}

interface Deferred {
  readonly step: Step;
  readonly reason: Reason;
}

/** What an update changes besides the name. */
const otherChanges = z.object({
  parent: z.string().nullable().exactOptional(),
  exposeChildren: z.boolean().exactOptional(),
});

/**
 * Finds renames that wait for each other in a circle, and gives one of them a temporary name first. What else that one
 * changes travels along, so that it is refused before any name has moved; for this reason a circle in which several
 * change more than their names is left alone.
 */
function breakCircle(driver: Driver, deferred: readonly Deferred[], maker: StepMaker): Step | undefined {
  for (const circle of circlesIn(deferred)) {
    const changes = ({ step }: Deferred) => otherChanges.parse(JSON.parse(step.json));
    const withMore = circle.filter((each) => Object.keys(changes(each)).length > 0);
    if (withMore.length > 1) continue;
    const wasTried = ({ step }: Deferred) =>
      driver.state.stepsChanging(targetOf(step) ?? "").some((other) => other.prepares);
    const chosen = (withMore.length > 0 ? withMore : circle).find((each) => !wasTried(each));
    if (chosen === undefined) continue;
    const before = circle.at(circle.indexOf(chosen) - 1);
    const id = targetOf(chosen.step);
    // The old name of each is the one that the rename before it wants.
    const formerName = before === undefined ? undefined : wantedName(before.step);
    if (id === undefined || formerName === undefined) continue;
    const name = `tmp ${ulidSource(() => driver.clock.now(), driver.random)()}`;
    const fields = { objects: chosen.step.objects, prepares: true, formerName } as const;
    return chosen.step.operation === "renameTargetings"
      ? maker.renameTargeting(id, name, fields)
      : maker.updateOption({ id }, { ...changes(chosen), name }, fields);
  }
  return undefined;
}

/** Renames of which each wants the name that the next one has, and the last the first one's. */
function* circlesIn(deferred: readonly Deferred[]): Generator<readonly Deferred[]> {
  const byTarget = new Map(deferred.map((entry) => [targetOf(entry.step), entry]));
  const blockerOf = ({ reason }: Deferred): Deferred | undefined =>
    existingIds(reason)
      .map((id) => byTarget.get(id))
      .find((entry) => entry !== undefined);
  const seen = new Set<Deferred>();
  for (const start of deferred) {
    const path: Deferred[] = [];
    let at: Deferred | undefined = start;
    for (; at !== undefined && !seen.has(at); at = blockerOf(at)) {
      seen.add(at);
      path.push(at);
    }
    // Where the path ends on itself, that part of it is a circle.
    const first = at === undefined ? -1 : path.indexOf(at);
    if (first >= 0) yield path.slice(first);
  }
}
