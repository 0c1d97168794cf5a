import { isApiError } from "../../api/errors.ts";
import type { BulkAnswer, ManagementApi } from "../../api/management.ts";
import type { Clock } from "../../platform/clock.ts";
import { undefinedIf } from "../../platform/files.ts";
import { mapConcurrently } from "../../reads/option-contents.ts";
import { readOptionNames } from "../../reads/option-lists.ts";
import type { RunExecution } from "../../runs/kind.ts";
import type { Fence, Turn } from "../../runs/turn.ts";
import { CLOCKS_APART_MS, isUlid, ulidTime } from "../../spec/names-and-contexts.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import type { OnExisting, WriteCall } from "../call.ts";
import type { RunState } from "../change-state.ts";
import type {
  AmendedObject,
  JournalEntry,
  MadeRows,
  OptionItem,
  Settlement,
  Step,
  StepChange,
} from "../rows/entries.ts";

export interface Consequences {
  readonly changes: readonly StepChange[];
  readonly steps?: readonly Step[];
  readonly settlements?: readonly Settlement[];
  readonly made?: MadeRows;
  readonly amended?: readonly AmendedObject[];
}

type Execution = RunExecution<WriteCall, JournalEntry, RunState>;

/** A run whose objects are compared with their previous values. */
export type ComparedRun = Pick<Execution, "state" | "part" | "keep" | "lease">;

export interface Comparison {
  /** The outcomes of the open steps whose objects others have changed. */
  readonly ends: readonly StepChange[];
  /** What the report says about objects that others have already changed as the run would. */
  readonly amended: readonly AmendedObject[];
}

export type LostCreates = "now" | "before";

export interface ChangeDriver
  extends Pick<
    Execution,
    "state" | "signal" | "record" | "flush" | "intend" | "mayAnnounce" | "mayLeave" | "progress"
  > {
  readonly api: ManagementApi;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
  readonly random: () => number;
  /** The maximum time for the retries of one request, in milliseconds. */
  readonly retryBudgetMs: number;
  readonly onExisting: OnExisting;
  change(changes: readonly StepChange[], more?: Omit<Consequences, "changes">): void;
  madeBefore(object: number): Promise<{ readonly _id?: string | undefined } | undefined>;
  readonly lease: Turn;
  connect(operation: BulkOperation): Promise<void>;
  /** Sends one request, if the fence still permits it right before the last bytes. Throws an ApiError. */
  send(operation: BulkOperation, steps: readonly number[], fence: Fence): Promise<BulkAnswer>;
  /** Returns a key for a step. Only steps with the same key may be sent in one request. Absent if all steps may. */
  readonly apartBy?: (step: number) => string;
  /**
   * The monotonic time in milliseconds after which `changedSince` must be called before the next request is sent:
   * others may have changed the objects meanwhile.
   */
  compareAt: number;
  /**
   * Set while `adoptLostCreates` must be called before the next request: an answer about new options was lost, in this
   * process ("now") or in an earlier one, whose run this process resumes ("before").
   */
  lostCreates: LostCreates | undefined;
  /** Calls the function `changedSince` of `changed-since.ts` for this run. */
  changedSince(isFull: boolean): Promise<Comparison | undefined>;
}

/**
 * A reading of the service's clock: it showed a time from `from` to `to` while ours went from `sentAt` to `receivedAt`.
 * All four are in milliseconds since 1970.
 */
export interface ClockReading {
  readonly from: number;
  readonly to: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

export type Order = "before" | "after" | "unclear";

/** How far two readings may contradict each other, in milliseconds. Servers update the header `Date` late. */
const NOISE_MS = 20;

/**
 * If the difference of the clocks is known to within this many milliseconds (about the duration of a request), the
 * middle of its range is a good estimate.
 */
const NARROW_MS = 50;

/** If the last reading is older than this many milliseconds, all are dropped, because clocks drift apart. */
const STALE_MS = 5 * 60_000;

interface Range {
  readonly lowest: number;
  readonly highest: number;
}

const ANYTHING: Range = { lowest: Number.NEGATIVE_INFINITY, highest: Number.POSITIVE_INFINITY };

/**
 * Estimates the difference between the service's clock and ours (theirs minus ours, in milliseconds), so that the times
 * in IDs can be compared with ours. Each reading narrows the range of possible differences. IDs of objects that we
 * certainly created are proof. The header `Date` may come from another machine, so it counts only while it agrees with
 * such IDs. It then limits how far the service's clock can be ahead, and can prove that this clock was not set back.
 */
export class ServerClock {
  #ids: Range;
  #dates = ANYTHING;
  #isOtherClock = false;
  /** The last reading of the header `Date`: at least how many milliseconds it was ahead of our clock, and when. */
  #lastDate = { lowest: Number.NEGATIVE_INFINITY, at: Number.NEGATIVE_INFINITY };
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(ids: Range = ANYTHING) {
    this.#ids = ids;
  }

  /**
   * Returns by how many milliseconds the service's clock is ahead. Undefined if that is unknown or outdated, or if the
   * header `Date` contradicts it.
   */
  ahead(now: number): Range | undefined {
    return this.#isCompared() && now - this.#readAt <= STALE_MS ? this.#ids : undefined;
  }

  /**
   * Adds what another process on this machine knew about the service's clock at the time `at`, unless that is outdated
   * or contradicts what this process knows.
   */
  recall(ahead: Range, at: number, now: number): void {
    if (now - at > STALE_MS) return;
    this.#forgetBefore(Math.max(at, this.#readAt));
    this.#ids = common(this.#ids, ahead) ?? this.#ids;
    this.#compare();
  }

  /** Adds a reading of the header `Date`, which has whole seconds. */
  observe({ from, to, sentAt, receivedAt }: ClockReading): void {
    this.#forgetBefore(receivedAt);
    this.#lastDate = { lowest: from - receivedAt, at: receivedAt };
    this.#dates = narrowed(this.#dates, { lowest: from - receivedAt, highest: to - sentAt });
    this.#compare();
  }

  /** Adds the times in the IDs of objects that a request of ours has created, in milliseconds. */
  observeMade(times: readonly number[], sentAt: number, receivedAt: number): void {
    if (times.length === 0) return;
    this.#forgetBefore(receivedAt);
    let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const time of times) {
      first = Math.min(first, time);
      last = Math.max(last, time);
    }
    this.#ids = narrowed(this.#ids, { lowest: last - receivedAt, highest: first - sentAt });
    this.#compare();
  }

  /** Adds the time in the ID of any object that the service returned, even if others created the object. */
  observeSeen(madeAt: number, receivedAt: number): void {
    this.#forgetBefore(receivedAt);
    this.#ids = narrowed(this.#ids, { ...ANYTHING, lowest: madeAt - receivedAt });
    this.#compare();
  }

  /**
   * Returns whether a time of the service is before or after one of ours. "unclear" if the readings do not prove it.
   * "before" also needs proof that the service's clock has not been set back since our time.
   */
  order(theirs: number, ours: number): Order {
    if (theirs < ours + this.#ids.lowest) return this.#isNotSetBack(ours) ? "before" : "unclear";
    if (theirs >= ours + this.#known().highest) return "after";
    return "unclear";
  }

  /** Returns whether a time of the service is before one of ours, if the service's clock was not set back since. */
  mayBeBefore(theirs: number, ours: number): boolean {
    return theirs < ours + this.#ids.lowest && !this.#mayBeSetBack();
  }

  /** Returns whether another reading of the header `Date` may prove the order of a service time and one of ours. */
  mayShowOrder(theirs: number, ours: number): boolean {
    if (!this.#isCompared()) return false;
    if (theirs < ours + this.#ids.lowest) return !this.#isNotSetBack(ours);
    const { lowest, highest } = this.#known();
    return theirs >= ours + lowest && theirs < ours + highest;
  }

  /**
   * Returns whether a time of the service is probably after one of ours, by the middle of the range of possible
   * differences. False if this range is wider than `NARROW_MS`.
   */
  isLikelyAfter(theirs: number, ours: number): boolean {
    const { lowest, highest } = this.#known();
    return highest - lowest <= NARROW_MS && theirs >= ours + (lowest + highest) / 2;
  }

  /** Returns in how many ms a reading of `Date` can show whether the clocks differ by less than `difference`. */
  nextReadingIn(now: number, difference: number): number {
    if (!Number.isFinite(this.#dates.highest - this.#dates.lowest)) return 0;
    const theirs = now + difference;
    return Math.ceil(theirs / 1000) * 1000 - theirs;
  }

  #forgetBefore(now: number): void {
    if (now - this.#readAt > STALE_MS) [this.#ids, this.#dates, this.#isOtherClock] = [ANYTHING, ANYTHING, false];
    this.#readAt = now;
  }

  #compare(): void {
    this.#isOtherClock ||= common(this.#ids, this.#dates) === undefined;
  }

  /** Returns whether `Date` is far behind the times in IDs: a clock of the service may have been set back. */
  #mayBeSetBack(): boolean {
    return this.#dates.highest < this.#ids.lowest - CLOCKS_APART_MS;
  }

  /**
   * Returns whether the last reading of the header `Date` proves that the service's clock has not been set back since
   * our time by more than clocks may differ. Only a header from the same clock as IDs can prove it.
   */
  #isNotSetBack(ours: number): boolean {
    const { lowest, at } = this.#lastDate;
    return this.#isCompared() && at >= ours && lowest >= this.#ids.lowest - CLOCKS_APART_MS;
  }

  /**
   * Returns whether times in the IDs of objects that we created are known, and the header `Date` does not contradict
   * them. If it does, the two come from different clocks.
   */
  #isCompared(): boolean {
    return Number.isFinite(this.#ids.highest) && !this.#isOtherClock;
  }

  #known(): Range {
    return (this.#isCompared() ? common(this.#ids, this.#dates) : undefined) ?? this.#ids;
  }
}

/** Returns what two ranges have in common. If that is nothing, a clock was changed, so only `reading` is valid. */
function narrowed(known: Range, reading: Range): Range {
  return common(known, reading) ?? reading;
}

/** Returns what two ranges have in common. If there is only a small gap between them, returns the gap. */
function common(one: Range, other: Range): Range | undefined {
  const lowest = Math.max(one.lowest, other.lowest);
  const highest = Math.min(one.highest, other.highest);
  if (lowest - highest > NOISE_MS) return undefined;
  return { lowest: Math.min(lowest, highest), highest: Math.max(lowest, highest) };
}

/** An object that an unanswered step may have created: it has the sent name, or others may have renamed it. */
export interface Claim {
  readonly id: string;
  readonly step: Step;
}

/**
 * Returns whether an object is older or newer than the first attempt of a step; if it is older, the step has not
 * created it. The list that was read before the run decides. If it does not prove the order, the service's clock does.
 * "unclear" if nothing proves it, or if they contradict each other, because a clock may have been set back.
 */
export function orderOf(driver: ChangeDriver, { id, step }: Claim): Order {
  const byList = isUlid(id) ? driver.state.orderByList(step, id) : undefined;
  if (byList === "before") return "before";
  if (byList !== "after") {
    const byClock = clockOrderOf(driver, { id, step });
    return byList === "likelyBefore" && byClock === "after" ? "unclear" : byClock;
  }
  const mayBeOlder = clockFor(driver, step).mayBeBefore(ulidTime(id), firstAttempt(driver, step));
  return mayBeOlder ? "unclear" : "after";
}

/**
 * Returns whether an object is older or newer than the first attempt of a step, by the service's clock. "before" only
 * if the object is older by more than `CLOCKS_APART_MS`, because the clock of the machine that made its ID may be slow.
 */
export function clockOrderOf(driver: ChangeDriver, { id, step }: Claim): Order {
  if (!isUlid(id)) return "unclear";
  const first = firstAttempt(driver, step);
  const clock = clockFor(driver, step);
  if (clock.order(ulidTime(id) + CLOCKS_APART_MS, first) === "before") return "before";
  return clock.order(ulidTime(id), first) === "after" ? "after" : "unclear";
}

/** Returns whether an object is at least probably newer than the first attempt of a step, which may have created it. */
export function isNewer(driver: ChangeDriver, claim: Claim): boolean {
  if (orderOf(driver, claim) === "after") return true;
  if (!isUlid(claim.id)) return false;
  return clockFor(driver, claim.step).isLikelyAfter(ulidTime(claim.id), firstAttempt(driver, claim.step));
}

/**
 * Returns what is known about the service's clock in comparison to the clock of the machine that first sent a step. If
 * that was another machine, only its journal entry counts.
 */
export function clockFor({ state, clock, serverClock }: ChangeDriver, step: Step): ServerClock {
  const sent = state.firstSent(step.id);
  return sent === undefined || sent.machine === clock.machine ? serverClock : new ServerClock(sent.ahead);
}

function firstAttempt({ state }: ChangeDriver, step: Step): number {
  return state.firstSent(step.id)?.at ?? 0;
}

/** The maximum number of readings of the service's clock before it is decided which objects this run created. */
const CLOCK_READINGS = 12;

/**
 * Reads the service's clock until each object is proven older or newer than its step, or until more readings cannot
 * prove it. Returns `unread` if a reading failed or the run was stopped: then a resumed run may read again.
 */
export async function readServiceClock(
  driver: ChangeDriver,
  given: readonly Claim[],
  order: typeof orderOf = orderOf,
): Promise<"read" | "unread"> {
  const { clock, serverClock } = driver;
  // Readings say nothing about the clock of another machine.
  const isOpen = (claim: Claim): boolean =>
    isUlid(claim.id) && clockFor(driver, claim.step) === serverClock && order(driver, claim) === "unclear";
  const claims = given.filter(isOpen);
  if (claims.length === 0) return "read";
  const latest = Math.max(...claims.map(({ id }) => ulidTime(id)));
  serverClock.observeSeen(latest, clock.now());
  let roundTrip = 0;
  for (let reading = 0; reading < CLOCK_READINGS; reading += 1) {
    const open = claims.filter(({ id, step }) => serverClock.mayShowOrder(ulidTime(id), firstAttempt(driver, step)));
    const gaps = open.map(({ id, step }) => ulidTime(id) - firstAttempt(driver, step)).sort((a, b) => a - b);
    const [claim] = open;
    const gap = gaps[gaps.length >> 1];
    if (claim === undefined || gap === undefined) return "read";
    // Readings are made in pairs, the second with a delay of one round trip. The first of a pair can prove that the
    // object is newer, the second that it is older.
    const wait = serverClock.nextReadingIn(clock.now(), reading % 2 === 0 ? gap + 1 : gap + 1 + roundTrip);
    if (!(await waited(driver, wait))) return "unread";
    const sentAt = clock.now();
    const targetingId = driver.state.boundId(claim.step, "targeting");
    const page = await orUndefined(driver.api.listOptions(targetingId ?? claim.id, { limit: 1 }));
    if (page === undefined) return "unread";
    if (page.serverTime === undefined) return "read";
    const receivedAt = clock.now();
    roundTrip = receivedAt - sentAt;
    const { serverTime } = page;
    serverClock.observe({ from: serverTime, to: serverTime + 999, sentAt, receivedAt });
  }
  return "read";
}

/** Waits. Returns false if the run was stopped meanwhile. */
export async function waited({ clock, signal }: ChangeDriver, ms: number): Promise<boolean> {
  try {
    if (ms > 0) await clock.sleep(ms, signal);
    return !signal.aborted;
  } catch (thrown) {
    if (signal.aborted) return false;
    throw thrown;
  }
}

/** Returns what `reading` returns. Undefined if it failed with an ApiError. */
export function orUndefined<T>(reading: Promise<T>): Promise<T | undefined> {
  return undefinedIf(isApiError, reading);
}

export interface MadeStep {
  readonly step: Step;
  readonly change: StepChange;
}

/**
 * Adds the IDs of sub-options, and of options in new targetings, to the results of the steps that created them. The
 * answer about a targeting contains no such IDs; that about a group contains at most 50, in an undocumented order. So
 * they are read from lists. If the lists of enough groups show that answers have the order in which items were sent,
 * the answers about other groups are used without reading. IDs that cannot be read are omitted.
 */
export async function withInsideIds(driver: ChangeDriver, made: readonly MadeStep[]): Promise<readonly StepChange[]> {
  const groups = made.filter(({ step, change }) => step.objects.length > 2 && hasAll(step, change));
  const samples = samplesOf(groups);
  const read = new Map(await mapConcurrently(samples, async (each) => [each, await readInside(driver, each)] as const));
  const isInOrder = samples.every((each) => isSame(each.change, read.get(each)));
  return mapConcurrently(made, async (each) => {
    const { step, change } = each;
    if (read.has(each)) return read.get(each) ?? withoutIds(change);
    const isKnown = hasAll(step, change) && (isInOrder || step.objects.length === 2);
    if (step.objects.length === 1 || isKnown) return change;
    return (await readInside(driver, each)) ?? withoutIds(change);
  });
}

/**
 * Returns the groups to read: so many that their answers cannot have the order of sending by chance. Groups with
 * unsorted names come first, because a service may sort by name; then the largest groups.
 */
function samplesOf(groups: readonly MadeStep[]): readonly MadeStep[] {
  const sorted = groups.toSorted((a, b) => Number(isSorted(a)) - Number(isSorted(b)) || sizeOf(b) - sizeOf(a));
  let orders = 1;
  return sorted.filter((each) => {
    const isNeeded = orders < MIN_ORDERS;
    for (let size = sizeOf(each); isNeeded && size > 1; size--) orders *= size;
    return isNeeded;
  });
}

/** Enough groups are read if their IDs could be in at least this many orders. */
const MIN_ORDERS = 1e6;

function sizeOf({ step }: MadeStep): number {
  return step.objects.length - 1;
}

function isSorted({ step }: MadeStep): boolean {
  const names = namesOf(step);
  return names.every((name, at) => at === 0 || (names[at - 1] ?? "") <= name);
}

function hasAll({ objects }: Step, change: StepChange): boolean {
  return change.to === "done" && change.childIds?.length === objects.length - 1;
}

function isSame(one: StepChange, other: StepChange | undefined): boolean {
  if (one.to !== "done" || other?.to !== "done") return false;
  return JSON.stringify(one.childIds) === JSON.stringify(other.childIds);
}

function withoutIds(change: StepChange): StepChange {
  if (change.to !== "done") return change;
  const { childIds: _, ...rest } = change;
  return rest;
}

/** Reads the IDs of the objects inside a created object. Returns undefined if they cannot be read. */
async function readInside(driver: ChangeDriver, { step, change }: MadeStep): Promise<StepChange | undefined> {
  if (change.to !== "done" || change._id === undefined) return change;
  try {
    const names = await namesInside(driver, step, change._id);
    return names && { ...change, childIds: namesOf(step).map((name) => names.get(name) ?? null) };
  } catch (thrown) {
    if (isApiError(thrown) || driver.signal.aborted) return undefined;
    throw thrown;
  }
}

async function namesInside(
  driver: ChangeDriver,
  step: Step,
  id: string,
): Promise<ReadonlyMap<string, string> | undefined> {
  if (step.operation === "createTargetings") return readOptionNames(driver.api, id, driver.signal);
  const targetingId = driver.state.boundId(step, "targeting");
  return targetingId === undefined ? undefined : readOptionNames(driver.api, targetingId, driver.signal, id);
}

function namesOf(step: Step): readonly string[] {
  const inside = (option: OptionItem): readonly string[] => (option.children ?? []).map(({ name }) => name);
  if (step.operation === "addOptions") return inside(step.item);
  if (step.operation !== "createTargetings") return [];
  return (step.item.options ?? []).flatMap((option) => [option.name, ...inside(option)]);
}
