import { thousands } from "../platform/text.ts";
import { isJsonObject, type Verdict } from "./catalogue.ts";
import { nearestName } from "./spelling.ts";

/** An event that a sandbox received: its body, what became of it, and when (milliseconds since 1970). */
export interface ArrivedEvent {
  readonly body: unknown;
  readonly verdict: Verdict;
  readonly arrivedAt: number;
}

/** What is expected of the events that arrived. */
export interface Expectation {
  readonly eventName: string;
  /** Parameters the event must have: objects need hold no more than these, each entry of an array must match one. */
  readonly where?: Readonly<Record<string, unknown>> | undefined;
  /** Exactly so many; at least one where absent. */
  readonly count?: number | undefined;
  /** The verdict to look for; where absent `recorded`, and then none of the events meant may have been ignored or rejected. */
  readonly verdict?: Verdict | undefined;
}

/** How the expectations hang together. */
export interface ExpectationOptions {
  /** Each expectation's events come after those of the one before it. */
  readonly inOrder?: boolean | undefined;
  /** All expected events come within so many milliseconds of the first. */
  readonly withinMs?: number | undefined;
}

/** Whether one expectation is met, how many events were found for it, and if not met, why. */
export interface ExpectationResult {
  readonly met: boolean;
  readonly found: number;
  readonly reason?: string;
}

/**
 * Checks expectations against what arrived; gives one result for each, in their order. With `withinMs` the stretch of
 * time that meets most expectations counts.
 */
export function checkExpectations(
  arrived: readonly ArrivedEvent[],
  expect: readonly Expectation[],
  options: ExpectationOptions = {},
): readonly ExpectationResult[] {
  const inTime = arrived.toSorted((one, other) => one.arrivedAt - other.arrivedAt);
  const { withinMs } = options;
  if (withinMs === undefined) return checkWithin(inTime, expect, options);
  const relevant = inTime.filter((event) => expect.some((expectation) => isMeant(event, expectation)));
  const { start, end } = bestStretch(relevant, expect, { ...options, withinMs });
  const best = checkWithin(relevant.slice(start, end), expect, options);
  if (best.every(({ met }) => met)) return best;
  const first = relevant[start]?.arrivedAt;
  const lateness = expect.map((expectation) => {
    const next = relevant.find((event) => isWanted(event, expectation) && event.arrivedAt > (first ?? 0) + withinMs);
    return next === undefined || first === undefined ? undefined : next.arrivedAt - first;
  });
  return explainWindow(best, checkWithin(inTime, expect, options), { withinMs, lateness });
}

/** Where the events of one expectation are, and how far a stretch that moves on has passed them. */
interface Places {
  readonly expectation: Expectation;
  readonly wanted: readonly number[];
  readonly lost: readonly number[];
  readonly passed: { wantedStart: number; wantedEnd: number; lostStart: number; lostEnd: number };
}

/** The first of the stretches of time that meet most expectations. Each begins with an event. */
function bestStretch(
  events: readonly ArrivedEvent[],
  expect: readonly Expectation[],
  { inOrder, withinMs }: { readonly inOrder?: boolean | undefined; readonly withinMs: number },
): { readonly start: number; readonly end: number } {
  const places = expect.map((expectation) => placesOf(events, expectation));
  let best = { start: 0, end: 0 };
  let most = -1;
  let end = 0;
  for (const [start, { arrivedAt }] of events.entries()) {
    while ((events[end]?.arrivedAt ?? Number.POSITIVE_INFINITY) <= arrivedAt + withinMs) end += 1;
    const met = metIn(places, { start, end }, inOrder === true);
    if (met <= most) continue;
    best = { start, end };
    most = met;
    if (most === expect.length) break;
  }
  return best;
}

function placesOf(events: readonly ArrivedEvent[], expectation: Expectation): Places {
  const wanted: number[] = [];
  const lost: number[] = [];
  for (const [position, event] of events.entries()) {
    if (!isMeant(event, expectation)) continue;
    if (isWanted(event, expectation)) wanted.push(position);
    if (expectation.verdict === undefined && isLost(event)) lost.push(position);
  }
  return { expectation, wanted, lost, passed: { wantedStart: 0, wantedEnd: 0, lostStart: 0, lostEnd: 0 } };
}

/** How many expectations a stretch meets, as `checkWithin` counts. Stretches only ever move on. */
function metIn(
  places: readonly Places[],
  { start, end }: { readonly start: number; readonly end: number },
  inOrder: boolean,
): number {
  let met = 0;
  let after = start;
  for (const { expectation, wanted, lost, passed } of places) {
    passed.wantedStart = firstFrom(wanted, start, passed.wantedStart);
    passed.wantedEnd = firstFrom(wanted, end, passed.wantedEnd);
    passed.lostStart = firstFrom(lost, start, passed.lostStart);
    passed.lostEnd = firstFrom(lost, end, passed.lostEnd);
    const { count } = expectation;
    const found = passed.wantedEnd - passed.wantedStart;
    if (passed.lostEnd > passed.lostStart || (count === undefined ? found === 0 : found !== count)) continue;
    if (inOrder && count !== 0) {
      const last = (after === start ? passed.wantedStart : placeFrom(wanted, after)) + (count ?? 1) - 1;
      if (last >= passed.wantedEnd) continue;
      after = (wanted[last] ?? after) + 1;
    }
    met += 1;
  }
  return met;
}

/** The place of the first position that is at least so much, looked for from a place that is not behind it. */
function firstFrom(positions: readonly number[], least: number, from: number): number {
  let place = from;
  while ((positions[place] ?? Number.POSITIVE_INFINITY) < least) place += 1;
  return place;
}

/** The place of the first position that is at least so much. */
function placeFrom(positions: readonly number[], least: number): number {
  let low = 0;
  let high = positions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((positions[middle] ?? 0) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Where an expectation is met by what arrived, but not within the time allowed, that is the reason. */
function explainWindow(
  within: readonly ExpectationResult[],
  overall: readonly ExpectationResult[],
  { withinMs, lateness }: { readonly withinMs: number; readonly lateness: readonly (number | undefined)[] },
): readonly ExpectationResult[] {
  const count = (time: number): string => thousands(time);
  return within.map((result, index) => {
    const anyTime = overall[index];
    if (result.met || anyTime === undefined) return result;
    if (!anyTime.met) return anyTime;
    const late = lateness[index];
    const by = late === undefined ? "" : `: ${count(late)} ms after, ${count(withinMs)} allowed`;
    return { ...result, reason: `not within ${withinMs} ms of the first expected event${by}` };
  });
}

function checkWithin(
  arrived: readonly ArrivedEvent[],
  expect: readonly Expectation[],
  { inOrder }: ExpectationOptions,
): readonly ExpectationResult[] {
  let after = 0;
  return expect.map((expectation) => {
    const result = checkOne(arrived, expectation);
    if (inOrder !== true || !result.met || expectation.count === 0) return result;
    const positions = [...arrived.keys()].filter((position) => isWanted(arrived[position], expectation));
    const usable = positions.filter((position) => position >= after);
    const needed = expectation.count ?? 1;
    if (usable.length < needed)
      return { met: false, found: result.found, reason: "not after the events expected before it" };
    after = (usable[needed - 1] ?? after) + 1;
    return result;
  });
}

function checkOne(arrived: readonly ArrivedEvent[], expectation: Expectation): ExpectationResult {
  const { eventName, count } = expectation;
  const found = arrived.filter((event) => isWanted(event, expectation)).length;
  const lost = arrived.find((event) => isMeant(event, expectation) && isLost(event));
  if (expectation.verdict === undefined && lost !== undefined) {
    return { met: false, found, reason: `an event "${eventName}" arrived and was ${lost.verdict}` };
  }
  if (count === undefined ? found > 0 : found === count) return { met: true, found };
  if (found > 0 || count === 0) return { met: false, found, reason: `expected ${count}, found ${found}` };
  return { met: false, found, reason: whyNotFound(arrived, expectation) };
}

function isLost({ verdict }: ArrivedEvent): boolean {
  return verdict === "ignored" || verdict === "rejected";
}

/** Tells what came nearest to an expectation that nothing meets. */
function whyNotFound(arrived: readonly ArrivedEvent[], { eventName, where, verdict }: Expectation): string {
  const named = arrived.filter((event) => nameOf(event) === eventName);
  const meant = named.find((event) => matches(event.body, where ?? {}));
  if (meant !== undefined) return `it arrived, but was ${meant.verdict}, not ${verdict ?? "recorded"}`;
  if (named.length > 0) return `${named.length} arrived, but none with the parameters of "where"`;
  const alike = arrived.map(nameOf).find((name) => name !== undefined && nearestName(name, [eventName]) === eventName);
  return alike === undefined ? "none arrived" : `none arrived, but ${JSON.stringify(alike)} did`;
}

function isMeant({ body }: ArrivedEvent, { eventName, where }: Expectation): boolean {
  return isJsonObject(body) && body.eventName === eventName && matches(body, where ?? {});
}

/** Whether an event is one of those that an expectation is met by. */
function isWanted(event: ArrivedEvent | undefined, expectation: Expectation): boolean {
  return event !== undefined && event.verdict === (expectation.verdict ?? "recorded") && isMeant(event, expectation);
}

function nameOf({ body }: ArrivedEvent): string | undefined {
  return isJsonObject(body) && typeof body.eventName === "string" ? body.eventName : undefined;
}

function matches(value: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return Array.isArray(value) && wanted.every((entry) => value.some((candidate) => matches(candidate, entry)));
  }
  if (!isJsonObject(wanted)) return value === wanted;
  return (
    isJsonObject(value) &&
    Object.entries(wanted).every(([name, inner]) => Object.hasOwn(value, name) && matches(value[name], inner))
  );
}

/** Whether events came in the order that was expected, and if not, which one broke it and by how much. */
export interface OrderResult {
  readonly met: boolean;
  readonly reason?: string;
}

/**
 * Looks whether the expected events came one after the other, in the order of `expect`: of each as many as its `count`,
 * or one. Expectations of none do not count.
 */
export function checkOrder(arrived: readonly ArrivedEvent[], expect: readonly Expectation[]): OrderResult {
  const inTime = arrived.toSorted((one, other) => one.arrivedAt - other.arrivedAt);
  let after = 0;
  let before: Before | undefined;
  for (const [index, expectation] of expect.entries()) {
    const needed = expectation.count ?? 1;
    if (needed === 0) continue;
    const name = `${JSON.stringify(expectation.eventName)} (expectation ${index + 1})`;
    const positions = [...inTime.keys()].filter((position) => isWanted(inTime[position], expectation));
    const usable = positions.filter((position) => position >= after);
    const last = usable[needed - 1];
    if (last === undefined)
      return { met: false, reason: whyBroken({ name, needed, positions, usable }, before, inTime) };
    after = last + 1;
    before = { name, position: last, arrivedAt: inTime[last]?.arrivedAt ?? 0 };
  }
  return { met: true };
}

interface Before {
  readonly name: string;
  readonly position: number;
  readonly arrivedAt: number;
}

interface Broken {
  readonly name: string;
  readonly needed: number;
  readonly positions: readonly number[];
  readonly usable: readonly number[];
}

function whyBroken(
  { name, needed, positions, usable }: Broken,
  before: Before | undefined,
  inTime: readonly ArrivedEvent[],
): string {
  const tooEarly = positions.length - usable.length;
  const latest = inTime[positions[tooEarly - 1] ?? -1];
  if (before === undefined || latest === undefined || positions.length < needed) {
    const came = positions.length === 0 ? "never came" : `came ${positions.length} times, not ${needed}`;
    return before === undefined ? `${name} ${came}` : `${name} ${came}; it was to come after ${before.name}`;
  }
  // One event cannot stand for two expectations.
  if (positions[tooEarly - 1] === before.position) return `${name} did not come again after ${before.name}`;
  const early = thousands(before.arrivedAt - latest.arrivedAt);
  const which = tooEarly === positions.length ? "" : `: ${usable.length} of ${needed} came after it`;
  return `${name} came ${early} ms before ${before.name}, not after it${which}`;
}

/** Whether all expected events came within the time allowed, and how long they took. */
export interface TookResult {
  readonly met: boolean;
  /** Milliseconds from the first expected event to the last; absent where not all of them came. */
  readonly tookMs?: number;
}

/** The positions of the events of one expectation, and how many of them are needed. */
interface Wanted {
  readonly positions: readonly number[];
  readonly needed: number;
}

/**
 * The shortest time in which all expected events came: of each expectation as many as its `count`, or one. With `inOrder`
 * one expectation after the other, where they ever came so.
 */
export function checkTook(
  arrived: readonly ArrivedEvent[],
  expect: readonly Expectation[],
  { inOrder = false, withinMs }: { readonly inOrder?: boolean | undefined; readonly withinMs: number },
): TookResult {
  const inTime = arrived.toSorted((one, other) => one.arrivedAt - other.arrivedAt);
  const times = inTime.map(({ arrivedAt }) => arrivedAt);
  const wanted = expect
    .filter(({ count }) => count !== 0)
    .map((expectation): Wanted => {
      const positions = [...inTime.keys()].filter((position) => isWanted(inTime[position], expectation));
      return { positions, needed: expectation.count ?? 1 };
    });
  if (wanted.length === 0) return { met: true, tookMs: 0 };
  const tookMs = (inOrder ? shortest(times, wanted, true) : undefined) ?? shortest(times, wanted, false);
  return tookMs === undefined ? { met: false } : { met: tookMs <= withinMs, tookMs };
}

/** The least time from a wanted event to the one with which all are there; undefined where they never are. */
function shortest(times: readonly number[], wanted: readonly Wanted[], inOrder: boolean): number | undefined {
  const starts = inOrder ? (wanted[0]?.positions ?? []) : wanted.flatMap(({ positions }) => positions);
  let least: number | undefined;
  for (const start of starts) {
    const end = endOf(wanted, start, inOrder);
    if (end === undefined) continue;
    const took = (times[end] ?? 0) - (times[start] ?? 0);
    least = Math.min(least ?? took, took);
  }
  return least;
}

/** The position with which all that is wanted is there, from a start on. */
function endOf(wanted: readonly Wanted[], start: number, inOrder: boolean): number | undefined {
  let after = start;
  let end = start;
  for (const { positions, needed } of wanted) {
    const last = positions[placeFrom(positions, after) + needed - 1];
    if (last === undefined) return undefined;
    end = Math.max(end, last);
    if (inOrder) after = last + 1;
  }
  return end;
}
