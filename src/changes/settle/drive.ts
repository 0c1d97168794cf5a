import { isApiError, orError } from "../../api/errors.ts";
import { defined } from "../../platform/by-key.ts";
import type { OptionList } from "../../reads/pages.ts";
import { ownReason, type Reason, type StopCause } from "../../runs/outcome.ts";
import type { Turn } from "../../runs/turn.ts";
import { LIMITS } from "../../spec/limits.ts";
import { CLOCKS_APART_MS, isUlid, ulidSource, ulidTime } from "../../spec/names-and-contexts.ts";
import type { OptionChanges, OptionPage } from "../../spec/records.ts";
import type { RunState } from "../change-state.ts";
import { nextRequests, type Requests } from "../plan/requests.ts";
import { bindingOf, marksOf, type NewestOptions, type Step, type StepChange, targetOf } from "../rows/entries.ts";
import { StepMaker } from "../rows/steps.ts";
import { type ChangeDriver, orUndefined } from "./evidence.ts";

import { existingIds } from "./reconcile.ts";
import { type BatchEnd, sendBatch, sendingOf } from "./send-request.ts";
import { takeBack } from "./take-back.ts";

/** Executes a planned run and records why it stopped. `cause` returns why the signal was aborted. */
export async function drive(
  driver: ChangeDriver,
  hold: (work: (turn: Turn) => Promise<BatchEnd>) => Promise<BatchEnd>,
  cause: () => "cancelled" | "interrupted",
  first?: Requests,
): Promise<void> {
  const stop = (why: StopCause, reason?: Reason): void => {
    // If another process has taken over the run, only that process records why the run stops.
    driver.lease.lost.throwIfAborted();
    driver.record({ t: "stop", cause: why, at: driver.clock.now(), ...defined({ reason }) });
  };
  let known = first;
  let turns: Turns = new Map();
  const writers: Writers = { haveChanged: true };
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
    let haveEnded = false;
    for (const request of requests) {
      if (driver.signal.aborted) return stop(cause());
      const sending = sendingOf(driver, request);
      const inTurn = () =>
        orStopped(
          driver,
          hold(async (turn) => {
            // Noted while this process has the write lock, so that no other run of the project adds options meanwhile.
            if (!isNoted) await noteNewest(driver);
            isNoted = true;
            haveEnded = await endChangedSteps(driver, turn, writers);
            return haveEnded ? { ended: false } : sendBatch(driver, sending, turn);
          }),
        );
      let end = await inTurn();
      // Not all was sent. The next attempt waits for the write lock, and compares the objects first if that is due.
      while (end !== "stopped" && !end.ended && end.turnLost && !driver.signal.aborted) end = await inTurn();
      if (end === "stopped") return stop(cause());
      if (end.ended) return stop("ended", endReason(end.reason));
      // The steps whose objects others have changed have ended. The requests are formed again without them.
      if (haveEnded) break;
    }
    if (driver.signal.aborted) return stop(cause());
  }
}

/** The maximum number of groups whose sub-options are read before the first request. If there are more, none are. */
const MAX_GROUPS = 20;

/**
 * Records the newest options of each list to which the run adds options, before it adds any. They show later which
 * options the run may have created. If they are not recorded, for example without the read scope, only clocks can show
 * this.
 */
export async function noteNewest(driver: ChangeDriver): Promise<void> {
  const lists = new Map<string, OptionList>();
  const looked = new Set<string>();
  const { state } = driver;
  for (const bindings of state.steps.boundBy("addOptions")) {
    const targeting = bindingOf({ bindings }, "targeting");
    const group = bindingOf({ bindings }, "parent");
    const place = group ?? targeting;
    const id = place && state.idOfBinding(place);
    const targetingId = targeting && state.idOfBinding(targeting);
    if (id === undefined || targetingId === undefined || looked.has(id)) continue;
    looked.add(id);
    const isCreated = group === undefined && place?.object !== undefined && state.isUntouched(place.object);
    const isFirst = place?.object === undefined ? state.requests.sent === 0 : isCreated;
    if (!isFirst || state.newest.has(id)) continue;
    lists.set(id, { targetingId, ...(group !== undefined && { parent: id }) });
  }
  const areFew = [...lists.values()].filter(({ parent }) => parent !== undefined).length <= MAX_GROUPS;
  for (const [id, list] of lists) {
    if (list.parent !== undefined && !areFew) continue;
    const newest = await newestIn(driver, list);
    if (newest !== undefined) driver.record({ t: "newest", targeting: id, ...newest });
  }
}

/**
 * Returns the newest options of a list, if they can be determined. The order of a list is not documented. So a list of
 * up to two pages is read whole. Of a longer list, only the first and the last page are read. If all options on one of
 * them are newer than those on the other, the list counts as sorted by age.
 */
async function newestIn(
  { api }: ChangeDriver,
  { targetingId, parent }: OptionList,
): Promise<NewestOptions | undefined> {
  const limit = LIMITS.listLimit.value;
  const read = (offset: number) => readWithRetry(() => api.listOptions(targetingId, { limit, parent, offset }));
  const first = await read(0);
  if (first === undefined) return undefined;
  const ids = idsOf(first);
  const { total } = first;
  if (total === undefined ? ids.length < limit : ids.length >= total) return wholeList(ids);
  const last = total === undefined ? undefined : await read(Math.max(limit, total - limit));
  const others = last === undefined ? [] : idsOf(last);
  if (others.length === 0) return undefined;
  if ((total ?? 0) <= 2 * limit) return wholeList([...ids, ...others].sort());
  const newer = isOlder(ids, others) ? others : isOlder(others, ids) ? ids : undefined;
  return newer && newestOf(newer);
}

function idsOf({ items }: OptionPage): readonly string[] {
  return items.map(({ _id }) => _id).sort();
}

function wholeList(ids: readonly string[]): NewestOptions {
  return { _id: ids.at(-1) ?? null, listed: marksOf(ids) };
}

/** Returns the newest of these options. `latest` is omitted if it may be incomplete, or if an ID is not a ULID. */
function newestOf(ids: readonly string[]): NewestOptions {
  const newest = ids.at(-1);
  if (newest === undefined || !ids.every(isUlid)) return { _id: newest ?? null };
  const latest = ids.filter((id) => ulidTime(newest) - ulidTime(id) <= CLOCKS_APART_MS);
  return latest.length === ids.length ? { _id: newest } : { _id: newest, latest };
}

function isOlder(ids: readonly string[], others: readonly string[]): boolean {
  return (ids.at(-1) ?? "") <= (others[0] ?? "");
}

/**
 * Repeats a failed read once, unless the service rejected it. Without this read, it may stay unknown what the first
 * request of the run created.
 */
async function readWithRetry<T>(read: () => Promise<T>): Promise<T | undefined> {
  const first = await orError(isApiError, read());
  if (!isApiError(first)) return first;
  return first.effect === "rejected" ? undefined : orUndefined(read());
}

/**
 * The minimum pause between two comparisons of objects: `ms` milliseconds, or `durations` times as long as the last
 * comparison took, whichever is longer.
 */
export const COMPARE_AGAIN = { ms: 1000, durations: 20 } as const;

/** What a run knows about other holders of the write lock. */
interface Writers {
  /** The epoch of the lock when this run last had it. */
  epoch?: bigint;
  /** Whether this run may have waited for another writer since the last comparison of objects. */
  haveChanged: boolean;
}

/**
 * Ends the steps whose objects others have changed, and the creates that an unanswered request has applied. Returns
 * whether there were any. Also notes which changes of the run others have already made.
 */
async function endChangedSteps(driver: ChangeDriver, { epoch }: Turn, writers: Writers): Promise<boolean> {
  const { clock } = driver;
  const startedAt = clock.monotonic();
  const isDue = startedAt >= driver.compareAt;
  // A run whose first request is sent right after planning has not waited for another writer.
  if (writers.epoch === undefined) writers.haveChanged = isDue;
  else writers.haveChanged ||= epoch > writers.epoch + 1n;
  writers.epoch = epoch;
  const adopted = await adoptLost(driver);
  if (adopted.length > 0) driver.change(adopted);
  if (!isDue) return adopted.length > 0;
  const isResumed = driver.compareAt === Number.NEGATIVE_INFINITY;
  const compared = await driver.changedSince(isResumed || writers.haveChanged);
  writers.haveChanged = false;
  const now = clock.monotonic();
  const pauseMs = Math.max(COMPARE_AGAIN.ms, COMPARE_AGAIN.durations * (now - startedAt));
  driver.compareAt = compared === undefined ? Number.POSITIVE_INFINITY : now + pauseMs;
  const { ends = [], amended = [] } = compared ?? {};
  if (ends.length + amended.length > 0) driver.change(ends, amended.length > 0 ? { amended } : {});
  return ends.length + adopted.length > 0;
}

async function adoptLost(driver: ChangeDriver): Promise<readonly StepChange[]> {
  const { lostCreates } = driver;
  driver.lostCreates = undefined;
  if (lostCreates === undefined || driver.state.inDoubt().size === 0) return [];
  // Imported only when needed, because few answers are lost.
  const { adoptLostCreates } = await import("./adopt-lost.ts");
  return adoptLostCreates(driver, lostCreates);
}

/** Waits for `sending`. Returns "stopped" if the run is stopped while it waits for the write lock. */
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

function endReason(reason: Reason): Reason {
  return SHARED_BY_ALL.has(reason.code) ? reason : ownReason("RUN_ENDED", { because: reason.code });
}

/**
 * Decides about deferred steps, which were refused and wait for other changes. Called when no other step is left. If
 * some need each other's names, adds steps that set temporary names, and retries all. Otherwise retries those that were
 * sent before another step was applied. If there are none, all fail, and parts that were applied are reversed. If
 * several steps need the same name, only the first one is decided now. Returns the order of the retries. Undefined if
 * no step is deferred.
 */
function retryDeferred(driver: ChangeDriver): Turns | undefined {
  const deferred = withoutRivals(driver.state.deferredSteps());
  if (deferred.length === 0) return undefined;
  const temporary = breakCycles(driver, deferred);
  if (temporary.length > 0) driver.change([], { steps: temporary });
  const turns = retryOrderOf(driver.state);
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

interface Deferred {
  readonly step: Step;
  readonly reason: Reason;
}

/** Keeps only the first of several changes that need the same name. The others wait until it is applied or fails. */
function withoutRivals<Each extends Deferred>(deferred: readonly Each[]): readonly Each[] {
  const wanted = new Set<string>();
  return deferred.filter(({ step, reason }) => {
    const key = `${existingIds(reason)[0]} ${step.item?.name}`;
    const isRival = existingIds(reason).length > 0 && wanted.has(key);
    wanted.add(key);
    return !isRival;
  });
}

type Turns = ReadonlyMap<number, number>;

/** Returns the order of retries: a change comes after the one that gives up the name it needs (management-api 4.1). */
function retryOrderOf(state: RunState): Turns {
  const deferred = state.deferredSteps();
  // A change whose object has a temporary name begins a path, because its old name is already free.
  const starts = [...deferred.filter((each) => hasTemporaryName(state, each)), ...deferred];
  const turns = new Map<number, number>();
  for (const path of pathsIn(deferred, starts)) {
    for (const { step } of path.members.toReversed()) turns.set(step.id, turns.size);
  }
  return turns;
}

function hasTemporaryName(state: RunState, { step }: Deferred): boolean {
  return state.stepsChanging(targetOf(step) ?? "").some(({ prepares }) => prepares);
}

/** Sorts steps for sending, by their position in `turns`. Steps without a position come first. */
function inTurn(steps: readonly number[], turns: Turns): readonly number[] {
  if (turns.size === 0) return steps;
  return steps.toSorted((one, other) => (turns.get(one) ?? -1) - (turns.get(other) ?? -1));
}

function otherChanges({ step }: Deferred): OptionChanges {
  if (step.operation !== "updateOptions") return {};
  const { parent, exposeChildren } = step.item;
  return defined({ parent, exposeChildren });
}

/**
 * Returns steps that break cycles of renames, in which each object needs the name of the next. In each cycle, one
 * object first gets a temporary name. This step also makes the other changes of that object, so that a refusal leaves
 * all names unchanged. A cycle in which several objects have other changes is not broken.
 */
export function breakCycles(driver: ChangeDriver, deferred: readonly Deferred[]): readonly Step[] {
  const maker = StepMaker.after(driver.state.steps);
  const newId = ulidSource(() => driver.clock.now(), driver.random);
  return pathsIn(deferred, deferred).flatMap(({ members, circleFrom }) => {
    if (circleFrom === undefined) return [];
    return temporaryName(driver.state, members.slice(circleFrom), maker, () => `tmp ${newId()}`) ?? [];
  });
}

function temporaryName(
  state: RunState,
  circle: readonly Deferred[],
  maker: StepMaker,
  newName: () => string,
): Step | undefined {
  const withMore = circle.filter((each) => Object.keys(otherChanges(each)).length > 0);
  if (withMore.length > 1) return undefined;
  const chosen = (withMore.length > 0 ? withMore : circle).find((each) => !hasTemporaryName(state, each));
  if (chosen === undefined) return undefined;
  const before = circle.at(circle.indexOf(chosen) - 1);
  const id = targetOf(chosen.step);
  // In the cycle, each object needs the current name of the next one. So the name that the previous object needs is the
  // current name of the chosen one.
  const formerName = before?.step.item?.name;
  if (id === undefined || formerName === undefined) return undefined;
  const name = newName();
  const fields = { objects: chosen.step.objects, prepares: true, formerName } as const;
  return chosen.step.operation === "renameTargetings"
    ? maker.renameTargeting(id, name, fields)
    : maker.updateOption({ id }, { ...otherChanges(chosen), name }, fields);
}

/**
 * Changes that each need the name of the next one. If the last one needs a name in the path as well, `circleFrom` is
 * the index of the change that gives up that name.
 */
interface Path {
  readonly members: readonly Deferred[];
  readonly circleFrom?: number;
}

/** Divides changes into paths. Each belongs to one path. `starts`: where paths may begin, by priority. */
function pathsIn(deferred: readonly Deferred[], starts: readonly Deferred[]): readonly Path[] {
  const byTarget = new Map(deferred.map((each) => [targetOf(each.step), each]));
  const blockerOf = ({ reason }: Deferred): Deferred | undefined =>
    existingIds(reason)
      .map((id) => byTarget.get(id))
      .find((each) => each !== undefined);
  const seen = new Set<Deferred>();
  return starts.flatMap((start): Path[] => {
    const members: Deferred[] = [];
    let next: Deferred | undefined = start;
    for (; next !== undefined && !seen.has(next); next = blockerOf(next)) {
      seen.add(next);
      members.push(next);
    }
    if (members.length === 0) return [];
    const circleFrom = next === undefined ? -1 : members.indexOf(next);
    return [circleFrom < 0 ? { members } : { members, circleFrom }];
  });
}
