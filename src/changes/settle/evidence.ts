import { isApiError } from "../../api/errors.ts";
import { mapConcurrently } from "../../reads/option-contents.ts";
import { readOptionNames } from "../../reads/option-lists.ts";
import type { OptionList } from "../../reads/pages.ts";
import { undefinedIf } from "../../runs/store.ts";
import { LIMITS } from "../../spec/limits.ts";
import { CLOCKS_APART_MS, isUlid, ulidTime } from "../../spec/names-and-contexts.ts";
import type { OptionPage } from "../../spec/records.ts";
import {
  bindingOf,
  marksOf,
  type NewestOptions,
  type OptionItem,
  type Step,
  type StepChange,
} from "../rows/entries.ts";
import type { ChangeDriver } from "./change-driver.ts";
import type { Order } from "./service-clock.ts";

/** An object that a step in doubt may have created: it has the name. */
export interface Claim {
  readonly id: string;
  readonly step: Step;
}

/**
 * Returns whether an object is older or newer than the first attempt of a step. The list before the run decides;
 * without it, the service's clock. "unclear" if both contradict each other, because a clock may have been set back.
 */
export function orderOf(driver: ChangeDriver, { id, step }: Claim): Order {
  const byList = isUlid(id) ? driver.state.orderByList(step, id) : undefined;
  if (byList === "before") return "before";
  if (byList === undefined) return clockOrderOf(driver, { id, step });
  const mayBeOlder = driver.serverClock.order(ulidTime(id), firstAttempt(driver, step)) === "before";
  return mayBeOlder ? "unclear" : "after";
}

/**
 * Returns the same as `orderOf`, but by the service's clock alone. An object is older only if no difference between
 * the clocks of the service's machines can explain the time in its ID.
 */
export function clockOrderOf(driver: ChangeDriver, { id, step }: Claim): Order {
  if (!isUlid(id)) return "unclear";
  const first = firstAttempt(driver, step);
  const isOlder = driver.serverClock.order(ulidTime(id) + CLOCKS_APART_MS, first) === "before";
  if (isOlder) return "before";
  return driver.serverClock.order(ulidTime(id), first) === "after" ? "after" : "unclear";
}

/** Returns whether an object is newer than the first attempt of a step, proven or likely. */
export function isNewer(driver: ChangeDriver, claim: Claim): boolean {
  if (orderOf(driver, claim) === "after") return true;
  if (!isUlid(claim.id)) return false;
  return driver.serverClock.isLikelyAfter(ulidTime(claim.id), firstAttempt(driver, claim.step));
}

function firstAttempt({ state }: ChangeDriver, step: Step): number {
  return state.suspectSince(step.id) ?? 0;
}

/** The maximum number of groups whose sub-options are read before the first request. With more, none are read. */
const MAX_GROUPS = 20;

/**
 * Records the newest option of each list before options are added to it. Without that, for example without the read
 * scope, only clocks can tell which options this run created.
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
 * Returns the newest options of a list, if known. The order of a list is not documented, so up to two pages are read
 * whole. Of a longer list, the first and last page are read; if one page is newer than the other, the list counts as
 * sorted.
 */
async function newestIn(
  { api }: ChangeDriver,
  { targetingId, parent }: OptionList,
): Promise<NewestOptions | undefined> {
  const limit = LIMITS.listLimit.value;
  const query = { limit, ...(parent !== undefined && { parent }) };
  const read = (offset: number) => readWithRetry(() => api.listOptions(targetingId, { ...query, offset }));
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

/** Returns the newest options among these IDs. `latest` is omitted if the page may not contain all of them. */
function newestOf(ids: readonly string[]): NewestOptions {
  const newest = ids.at(-1);
  if (newest === undefined || !ids.every(isUlid)) return { _id: newest ?? null };
  const latest = ids.filter((id) => ulidTime(newest) - ulidTime(id) <= CLOCKS_APART_MS);
  return latest.length === ids.length ? { _id: newest } : { _id: newest, latest };
}

function isOlder(ids: readonly string[], others: readonly string[]): boolean {
  return (ids.at(-1) ?? "") <= (others[0] ?? "");
}

/** How often the service's clock is read to find out which objects this run created. */
const CLOCK_READINGS = 12;

/**
 * Reads the service's clock until each object is proven newer than its step or further readings are useless. Returns
 * `unread` if a reading failed or the run was stopped; a resumed run may then decide.
 */
export async function readServiceClock(
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
    // One reading can show that the object is newer. If it does not, the next one, a round trip later, shows that it
    // is older.
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

async function waited({ clock, signal }: ChangeDriver, ms: number): Promise<boolean> {
  try {
    if (ms > 0) await clock.sleep(ms, signal);
    return !signal.aborted;
  } catch (thrown) {
    if (signal.aborted) return false;
    throw thrown;
  }
}

/** Repeats an unanswered read once, because it may decide what the first request of the run created. */
async function readWithRetry<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (thrown) {
    if (!isApiError(thrown)) throw thrown;
    return thrown.effect === "rejected" ? undefined : orUndefined(read());
  }
}

/** Returns the result of a read. Undefined for a failed read, which proves nothing. */
export function orUndefined<T>(reading: Promise<T>): Promise<T | undefined> {
  return undefinedIf(isApiError, reading);
}

export interface MadeStep {
  readonly step: Step;
  readonly change: StepChange;
}

/**
 * Returns the changes of creates, with the IDs of the objects inside. The IDs are read from lists: the answer for a
 * targeting has none, and that for a group at most 50, in an undocumented order. If the first group's answer has them
 * in the sent order, the answers for the other groups count as well. IDs that cannot be read are omitted.
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

/** Reads the IDs of the objects inside a created object. Undefined if they cannot be read. */
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

/** Returns the names inside the main object, in the order of the step's objects. */
function namesOf(step: Step): readonly string[] {
  const inside = (option: OptionItem): readonly string[] => (option.children ?? []).map(({ name }) => name);
  if (step.operation === "addOptions") return inside(step.item);
  if (step.operation !== "createTargetings") return [];
  return (step.item.options ?? []).flatMap((option) => [option.name, ...inside(option)]);
}
