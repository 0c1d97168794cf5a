import { isApiError } from "../../api/errors.ts";
import { mapConcurrently } from "../../reads/option-contents.ts";
import { readOptionNames } from "../../reads/option-lists.ts";
import { isUlid, ulidTime } from "../../spec/ulid.ts";
import type { OptionItem, Step, StepChange } from "../rows/entries.ts";
import type { ChangeDriver } from "./change-driver.ts";
import type { Order } from "./service-clock.ts";

/** An option or targeting, by its ID, that has the name of a step in doubt. */
export interface Claim {
  readonly id: string;
  readonly step: Step;
}

/**
 * Whether a thing was made before or after the first attempt of a step, which is known for top-level options by what
 * was the newest before the run, and otherwise by the service's clock. An ID that is no ULID tells nothing.
 */
export function orderOf(driver: ChangeDriver, { id, step }: Claim): Order {
  const newest = isUlid(id) ? newestBefore(driver, step) : undefined;
  const byClock = clockOrderOf(driver, { id, step });
  if (newest === undefined || byClock === "before") return byClock;
  return newest === null || id > newest ? "after" : "before";
}

/** As `orderOf`, by the clock alone: for what may be no top-level option. */
export function clockOrderOf(driver: ChangeDriver, { id, step }: Claim): Order {
  return isUlid(id) ? driver.serverClock.order(ulidTime(id), firstAttempt(driver, step)) : "unclear";
}

/** Whether a thing was made after the first attempt of a step, or, where no reading can tell, most likely so. */
export function isNewer(driver: ChangeDriver, claim: Claim): boolean {
  if (orderOf(driver, claim) === "after") return true;
  if (!isUlid(claim.id)) return false;
  return driver.serverClock.isLikelyAfter(ulidTime(claim.id), firstAttempt(driver, claim.step));
}

function firstAttempt({ state }: ChangeDriver, step: Step): number {
  return state.suspectSince(step.id) ?? 0;
}

/**
 * The newest top-level option before the run, for steps that make top-level options: what is newer was not there
 * before, whatever the clocks say. Undefined where that is not known.
 */
function newestBefore(driver: ChangeDriver, step: Step): string | null | undefined {
  if (step.bindings.some(({ field }) => field === "parent")) return undefined;
  const targeting = targetingOf(driver, step);
  return targeting === undefined ? undefined : driver.state.newest.get(targeting);
}

function targetingOf({ state }: ChangeDriver, step: Step): string | undefined {
  const place = step.bindings.find(({ field }) => field === "targeting");
  return place === undefined ? undefined : state.boundId(place);
}

/**
 * Notes the newest option of each targeting that options are to be added to, before any is: before the first request of
 * the run, or, where the run made the targeting, once it is there. Where it cannot be read (a key without the read scope),
 * only the clocks can tell old from new later.
 */
export async function noteNewest(driver: ChangeDriver): Promise<void> {
  const targetings = new Set<string>();
  const looked = new Set<string>();
  const { state } = driver;
  for (const bindings of state.steps.boundBy("addOptions")) {
    const place = bindings.find(({ field }) => field === "targeting");
    const id = place === undefined ? undefined : state.boundId(place);
    if (id === undefined || looked.has(id)) continue;
    looked.add(id);
    const isFirst = place?.object === undefined ? state.requests.sent === 0 : state.isUntouched(place.object);
    if (isFirst && !state.newest.has(id)) targetings.add(id);
  }
  for (const targeting of targetings) {
    const newest = await newestIn(driver, targeting);
    if (newest !== undefined) driver.record({ t: "newest", targeting, _id: newest._id });
  }
}

/** The newest top-level option of a targeting, null where it has none; undefined where that cannot be read. */
async function newestIn(
  { api }: ChangeDriver,
  targeting: string,
): Promise<{ readonly _id: string | null } | undefined> {
  const at = (offset: number) => orOnceMore(() => api.listOptions(targeting, { limit: 1, offset }));
  const first = await at(0);
  const { total } = first ?? {};
  if (total === undefined) return undefined;
  const last = total > 1 ? await at(total - 1) : first;
  const [newest] = last?.items ?? [];
  return newest === undefined && total > 0 ? undefined : { _id: newest?._id ?? null };
}

/** How often the service's clock is read, at the most, to tell old from new. */
const CLOCK_READINGS = 12;

/**
 * Reads the service's clock until it shows of every claim that can be shown to be newer than its first attempt that it
 * is, or no reading helps. Gives `unread` where a reading failed, or the run was stopped, so that a later one may tell.
 */
export async function sharpen(
  driver: ChangeDriver,
  given: readonly Claim[],
  order: typeof orderOf = orderOf,
): Promise<"read" | "unread"> {
  const claims = given.filter((claim) => isUlid(claim.id) && order(driver, claim) === "unclear");
  if (claims.length === 0) return "read";
  const { clock, serverClock } = driver;
  const latest = Math.max(...claims.map(({ id }) => ulidTime(id)));
  serverClock.observeSeen(latest, clock.now());
  let roundTrip = 0;
  for (let reading = 0; reading < CLOCK_READINGS; reading += 1) {
    const open = claims.filter(({ id, step }) => serverClock.mayShowAfter(ulidTime(id), firstAttempt(driver, step)));
    const gaps = open.map(({ id, step }) => ulidTime(id) - firstAttempt(driver, step)).sort((a, b) => a - b);
    const [claim] = open;
    const gap = gaps[gaps.length >> 1];
    if (claim === undefined || gap === undefined) return "read";
    // First whether it is newer; where that reading says no, the next one, a round trip later, tells that it is older.
    const wait = serverClock.nextReadingIn(clock.now(), reading % 2 === 0 ? gap + 1 : gap + 1 + roundTrip);
    if (!(await waited(driver, wait))) return "unread";
    const sentAt = clock.now();
    const page = await orUndefined(driver.api.listOptions(targetingOf(driver, claim.step) ?? claim.id, { limit: 1 }));
    if (page === undefined) return "unread";
    if (page.serverTime === undefined) return "read";
    const receivedAt = clock.now();
    roundTrip = receivedAt - sentAt;
    const { serverTime } = page;
    serverClock.observe({ from: serverTime, to: serverTime + 999, sentAt, receivedAt });
  }
  return "read";
}

async function waited({ clock, signal }: ChangeDriver, ms: number): Promise<boolean> {
  try {
    if (ms > 0) await clock.sleep(ms, signal);
    return !signal.aborted;
  } catch (thrown) {
    if (signal.aborted) return false;
    throw thrown;
  }
}

/** Reads once more where no answer came: what the first write of a process proves may rest on this read alone. */
async function orOnceMore<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (thrown) {
    if (!isApiError(thrown)) throw thrown;
    return thrown.effect === "rejected" ? undefined : orUndefined(read());
  }
}

/** Gives undefined where the read fails: a failed read proves nothing. */
export async function orUndefined<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (thrown) {
    if (isApiError(thrown)) return undefined;
    throw thrown;
  }
}

export interface MadeStep {
  readonly step: Step;
  readonly change: StepChange;
}

/**
 * What was made, with the IDs of what was made inside. A targeting's answer names none of its options, and a group's 50
 * of its sub-options at the most, in an order that is not documented: so lists are read. Where the first group of a
 * request has them in the order in which they were sent, the others are taken to have, too. A read that fails leaves
 * the IDs out.
 */
export async function withInsideIds(driver: ChangeDriver, made: readonly MadeStep[]): Promise<readonly StepChange[]> {
  const first = made.find(({ step, change }) => step.objects.length > 2 && hasAll(step, change));
  const read = first === undefined ? undefined : await readInside(driver, first);
  const isInOrder = first !== undefined && isSame(first.change, read);
  return mapConcurrently(made, async (each) => {
    const { step, change } = each;
    if (each === first) return read ?? withoutIds(change);
    const isKnown = hasAll(step, change) && (isInOrder || step.objects.length === 2);
    if (step.objects.length === 1 || isKnown) return change;
    return (await readInside(driver, each)) ?? withoutIds(change);
  });
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

/** The change with IDs that were read; undefined where they cannot be. */
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
  const place = step.bindings.find(({ field }) => field === "targeting");
  const targetingId = place === undefined ? undefined : driver.state.boundId(place);
  return targetingId === undefined ? undefined : readOptionNames(driver.api, targetingId, driver.signal, id);
}

/** The names of what a step makes inside, in the order of its objects. */
function namesOf(step: Step): readonly string[] {
  const inside = (option: OptionItem): readonly string[] => (option.children ?? []).map(({ name }) => name);
  if (step.operation === "addOptions") return inside(step.item);
  if (step.operation !== "createTargetings") return [];
  return (step.item.options ?? []).flatMap((option) => [option.name, ...inside(option)]);
}
