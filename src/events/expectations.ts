import { isJsonObject } from "../platform/json.ts";
import { thousands } from "../platform/text.ts";
import type { Verdict } from "./catalogue.ts";
import { nearestName } from "./spelling.ts";

export interface ArrivedEvent {
  readonly body: unknown;
  readonly verdict: Verdict;
  readonly arrivedAt: number;
}

export interface Expectation {
  readonly eventName: string;
  /** Fields that an event must have. Objects may have more fields, and arrays more entries, than given here. */
  readonly where?: Readonly<Record<string, unknown>> | undefined;
  /** The exact number of events. Default: one or more. */
  readonly count?: number | undefined;
  /** The expected verdict. Default: at least one matching event is recorded, and none is ignored or rejected. */
  readonly verdict?: Verdict | undefined;
}

interface ExpectationOptions {
  readonly inOrder?: boolean | undefined;
  /** The longest time from the first to the last expected event, in milliseconds. */
  readonly withinMs?: number | undefined;
}

/**
 * The result of an expectation. `found`: how many wanted events arrived. `reason`: why the expectation is not met.
 * `check`: set if only the order or the time of the events is wrong.
 */
export interface ExpectationResult {
  readonly met: boolean;
  readonly found: number;
  readonly reason?: string;
  readonly check?: "order" | "within";
}

/**
 * Returns a result for each expectation. With `withinMs`, all expected events must arrive within a span of that length.
 * Of all such spans, the one that meets the most expectations is used. Events outside it still count towards `count`,
 * so that a second purchase is not overlooked.
 */
export function checkExpectations(
  arrived: readonly ArrivedEvent[],
  expect: readonly Expectation[],
  { inOrder = false, withinMs }: ExpectationOptions = {},
): readonly ExpectationResult[] {
  const events = sortedByTime(arrived);
  const all = expect.map((expectation) => foundOf(events, expectation));
  const overall = judged(all, { start: 0, end: events.length }, inOrder).map((judgement, index) =>
    explained(events, all[index], judgement),
  );
  if (withinMs === undefined) return overall;
  const best = bestStretch(
    events,
    all.filter((_, index) => overall[index]?.met),
    { inOrder, withinMs },
  );
  const within = judged(all, best, inOrder);
  const arrivalOf = (position = -1): number => events[position]?.arrivedAt ?? Number.NaN;
  const inTime = all
    .flatMap(({ wanted }, index) => (within[index]?.met ? wanted : []))
    .filter((position) => position >= best.start && position < best.end)
    .sort((one, other) => one - other);
  const first = arrivalOf(inTime[0]);
  const last = arrivalOf(inTime.at(-1));
  return within.map(({ met, found }, index) => {
    const anyTime = overall[index];
    if (anyTime?.met === false) return anyTime;
    if (met) return { met, found };
    const { wanted = [] } = all[index] ?? {};
    const late = arrivalOf(wanted[firstFrom(wanted, best.end)]);
    const [of, by] = Number.isNaN(late)
      ? ["last", `${thousands(last - arrivalOf(wanted[firstFrom(wanted, best.start) - 1]))} ms before`]
      : ["first", `${thousands(late - first)} ms after`];
    const most = thousands(withinMs);
    const reason = `not within ${most} ms of the ${of} expected event, but ${by} it`;
    return { met, found, reason, check: "within" };
  });
}

function sortedByTime(arrived: readonly ArrivedEvent[]): readonly ArrivedEvent[] {
  return arrived.toSorted((one, other) => one.arrivedAt - other.arrivedAt);
}

/** The received events that an expectation is about, as indexes in the list of all events sorted by time. */
interface Found {
  readonly expectation: Expectation;
  /**
   * `meant`: events with the expected name and fields. `wanted`: those of them with the expected verdict; if none is
   * expected, the recorded ones. `lost`: those that were ignored or rejected; empty if a verdict is expected.
   */
  readonly meant: readonly number[];
  readonly wanted: readonly number[];
  readonly lost: readonly number[];
}

function foundOf(events: readonly ArrivedEvent[], expectation: Expectation): Found {
  const { verdict } = expectation;
  const meant = [...events.keys()].filter((position) => isMeant(events[position], expectation));
  const wanted = meant.filter((position) => events[position]?.verdict === (verdict ?? "recorded"));
  const isLost = (position: number) => ["ignored", "rejected"].includes(events[position]?.verdict ?? "");
  const lost = verdict === undefined ? meant.filter(isLost) : [];
  return { expectation, meant, wanted, lost };
}

interface Stretch {
  readonly start: number;
  readonly end: number;
}

function bestStretch(
  events: readonly ArrivedEvent[],
  all: readonly Found[],
  { inOrder, withinMs }: { readonly inOrder: boolean; readonly withinMs: number },
): Stretch {
  let best = { start: 0, end: 0 };
  let most = -1;
  let end = 0;
  const starts = new Set(all.flatMap(({ meant }) => meant));
  for (const [start, { arrivedAt }] of events.entries()) {
    if (!starts.has(start)) continue;
    while ((events[end]?.arrivedAt ?? Number.POSITIVE_INFINITY) <= arrivedAt + withinMs) end += 1;
    const met = judged(all, { start, end }, inOrder).filter((judgement) => judgement.met).length;
    if (met <= most) continue;
    best = { start, end };
    most = met;
    if (most === all.length) break;
  }
  return best;
}

/**
 * Whether an expectation is met by the events of a span. `found`: how many of its wanted events are in the span.
 * `lost`: the range of its lost events there, as indexes of `Found.lost`; absent if there are none. `isTooEarly`: set
 * if only the order is wrong.
 */
interface Judgement {
  readonly met: boolean;
  readonly found: number;
  readonly lost?: readonly [start: number, end: number];
  readonly isTooEarly?: true;
}

function judged(all: readonly Found[], { start, end }: Stretch, inOrder: boolean): readonly Judgement[] {
  let after = start;
  return all.map(({ expectation: { count }, wanted, lost: allLost }) => {
    const found = firstFrom(wanted, end) - firstFrom(wanted, start);
    const lost = [firstFrom(allLost, start), firstFrom(allLost, end)] as const;
    if (lost[0] < lost[1]) return { met: false, found, lost };
    if (count === undefined ? found === 0 : found !== count) return { met: false, found };
    if (!inOrder || count === 0) return { met: true, found };
    const last = wanted[firstFrom(wanted, after) + (count ?? 1) - 1];
    if (last === undefined || last >= end) return { met: false, found, isTooEarly: true };
    after = last + 1;
    return { met: true, found };
  });
}

/** Returns the index in the sorted `positions` of the first number that is at least `least`, or else the length. */
function firstFrom(positions: readonly number[], least: number): number {
  let low = 0;
  let high = positions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((positions[middle] ?? 0) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

function explained(
  events: readonly ArrivedEvent[],
  about: Found | undefined,
  { met, found, lost, isTooEarly }: Judgement,
): ExpectationResult {
  if (met || about === undefined) return { met, found };
  const { expectation } = about;
  const { eventName, count } = expectation;
  const reason =
    lost !== undefined
      ? `${lostWords(events, about.lost.slice(...lost), { eventName, found })}${foundWords(found, count)}`
      : isTooEarly
        ? "not after the events expected before it"
        : found > 0 || count === 0
          ? `expected ${count}, found ${found}`
          : whyNotFound(events, expectation);
  return { met, found, reason, ...(lost === undefined && isTooEarly && { check: "order" }) };
}

function lostWords(
  events: readonly ArrivedEvent[],
  lost: readonly number[],
  { eventName, found }: { readonly eventName: string; readonly found: number },
): string {
  const verdicts = [...new Set(lost.map((position) => events[position]?.verdict))].join(" or ");
  if (lost.length === 1) return `${found > 0 ? "another" : "an"} event "${eventName}" arrived and was ${verdicts}`;
  return `${thousands(lost.length)} ${found > 0 ? "other " : ""}events "${eventName}" arrived and were ${verdicts}`;
}

function foundWords(found: number, count: number | undefined): string {
  if (count !== undefined && count !== found) return `; ${thousands(found)} recorded, ${thousands(count)} expected`;
  return found === 0 ? "" : `; ${thousands(found)} recorded`;
}

function whyNotFound(arrived: readonly ArrivedEvent[], { eventName, where, verdict }: Expectation): string {
  const named = arrived.filter((event) => nameOf(event) === eventName);
  const meant = named.find((event) => matches(event.body, where ?? {}));
  if (meant !== undefined) return `it arrived, but was ${meant.verdict}, not ${verdict ?? "recorded"}`;
  if (named.length > 0) return `${named.length} arrived, but none with the parameters of "where"`;
  const alike = arrived.map(nameOf).find((name) => name !== undefined && nearestName(name, [eventName]) === eventName);
  return alike === undefined ? "none arrived" : `none arrived, but ${JSON.stringify(alike)} did`;
}

function isMeant(event: ArrivedEvent | undefined, { eventName, where }: Expectation): boolean {
  return isJsonObject(event?.body) && event.body.eventName === eventName && matches(event.body, where ?? {});
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

/**
 * Checks that the events arrived in the order of `expect`, each `count` times (default: 1; 0: skipped). `reason` names
 * the first event that was missing or too early, and by how many milliseconds it was too early.
 */
export function checkOrder(
  arrived: readonly ArrivedEvent[],
  expect: readonly Expectation[],
): Pick<ExpectationResult, "met" | "reason"> {
  const events = sortedByTime(arrived);
  let after = 0;
  let before: Before | undefined;
  for (const [index, expectation] of expect.entries()) {
    const needed = expectation.count ?? 1;
    if (needed === 0) continue;
    const name = `${JSON.stringify(expectation.eventName)} (expectation ${index + 1})`;
    const { wanted, meant } = foundOf(events, expectation);
    const tooEarly = firstFrom(wanted, after);
    const last = wanted[tooEarly + needed - 1];
    if (last === undefined) {
      const reason = orderProblem({ name, needed, wanted, tooEarly, expectation, meant }, before, events);
      return { met: false, reason };
    }
    after = last + 1;
    before = { name, position: last, arrivedAt: events[last]?.arrivedAt ?? 0 };
  }
  return { met: true };
}

interface Before {
  readonly name: string;
  readonly position: number;
  readonly arrivedAt: number;
}

interface Broken extends Pick<Found, "expectation" | "meant" | "wanted"> {
  readonly name: string;
  readonly needed: number;
  readonly tooEarly: number;
}

function orderProblem(
  { name, needed, wanted, tooEarly, expectation, meant }: Broken,
  before: Before | undefined,
  events: readonly ArrivedEvent[],
): string {
  const at = wanted[tooEarly - 1] ?? -1;
  const latest = events[at];
  if (before === undefined || latest === undefined || wanted.length < needed) {
    const missing = meant.length === 0 ? "did not arrive" : `arrived, but not as ${expectation.verdict ?? "recorded"}`;
    const came = wanted.length === 0 ? missing : `arrived ${wanted.length} of ${needed} times`;
    return before === undefined ? `${name} ${came}` : `${name} ${came}; it is expected after ${before.name}`;
  }
  // The same event matches both expectations, but it can meet only one of them.
  if (at === before.position) return `${name} did not arrive again after ${before.name}`;
  const early = thousands(before.arrivedAt - latest.arrivedAt);
  const usable = wanted.length - tooEarly;
  const which = usable === 0 ? "" : `: ${usable} of ${needed} arrived after it`;
  return `${name} arrived ${early} ms before ${before.name}, not after it${which}`;
}

export interface DurationResult {
  readonly met: boolean;
  /** The time from the first to the last expected event, in ms. Absent if an expected event did not arrive. */
  readonly tookMs?: number;
  /** The indexes of the expectations whose events arrived too rarely or not at all. */
  readonly missing: readonly number[];
}

/** Measures the shortest time in which all expected events arrived. `inOrder`: in the order of `expect` if possible. */
export function checkDuration(
  arrived: readonly ArrivedEvent[],
  expect: readonly Expectation[],
  { inOrder = false, withinMs }: { readonly inOrder?: boolean | undefined; readonly withinMs: number },
): DurationResult {
  const events = sortedByTime(arrived);
  const found = expect.map((expectation) => foundOf(events, expectation));
  const all = found.filter(({ expectation }) => expectation.count !== 0);
  if (all.length === 0) return { met: true, tookMs: 0, missing: [] };
  const missing = found.flatMap(({ wanted, expectation: { count = 1 } }, index) =>
    wanted.length < count ? [index] : [],
  );
  const tookMs = (inOrder ? shortest(events, all, true) : undefined) ?? shortest(events, all, false);
  return tookMs === undefined ? { met: false, missing } : { met: tookMs <= withinMs, tookMs, missing };
}

/** Returns the shortest time, in ms, in which all wanted events arrived. Undefined if there is none. */
function shortest(events: readonly ArrivedEvent[], all: readonly Found[], inOrder: boolean): number | undefined {
  const starts = inOrder ? (all[0]?.wanted ?? []) : all.flatMap(({ wanted }) => wanted);
  let least: number | undefined;
  for (const start of starts) {
    const end = endOf(all, start, inOrder);
    if (end === undefined) continue;
    const took = (events[end]?.arrivedAt ?? 0) - (events[start]?.arrivedAt ?? 0);
    least = Math.min(least ?? took, took);
  }
  return least;
}

/** Returns the index of the last event that is needed from `start` on. Undefined if an expectation cannot be met. */
function endOf(all: readonly Found[], start: number, inOrder: boolean): number | undefined {
  let after = start;
  let end = start;
  for (const { expectation, wanted } of all) {
    const last = wanted[firstFrom(wanted, after) + (expectation.count ?? 1) - 1];
    if (last === undefined) return undefined;
    end = Math.max(end, last);
    if (inOrder) after = last + 1;
  }
  return end;
}
