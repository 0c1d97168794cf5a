import { canonicalJson, isJsonObject } from "../platform/json.ts";
import { thousands } from "../platform/text.ts";
import { EVENT_NAMES, EVENT_SHAPES, type Verdict } from "./catalogue.ts";
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
 * Returns a result for each expectation. With `withinMs`, the events must also lie within a span of that length. Of the
 * shortest series of events that meet expectations, the span with the most of them is used. Every matching event counts
 * towards `count`, so that a second purchase is not overlooked.
 */
export function checkExpectations(
  arrived: readonly ArrivedEvent[],
  expect: readonly Expectation[],
  { inOrder = false, withinMs }: ExpectationOptions = {},
): readonly ExpectationResult[] {
  const events = sortedByTime(arrived);
  const all = allFound(events, expect);
  const overall = judged(events, all, inOrder);
  if (withinMs === undefined) return overall;
  const needed = all.filter(({ expectation }, index) => overall[index]?.met && expectation.count !== 0);
  const series = new Map((shortestSeries(events, needed, inOrder) ?? []).map((part, index) => [needed[index], part]));
  const inTime = bestSpan([...series.values()], withinMs);
  return overall.map((result, index) => {
    const part = series.get(all[index]);
    if (part === undefined || (part.first >= inTime.first && part.last <= inTime.last)) return result;
    const most = thousands(withinMs);
    const took = part.last - part.first;
    const reason =
      took > withinMs
        ? `not within ${most} ms: its ${result.found} events took ${thousands(took)} ms`
        : part.last > inTime.last
          ? `not within ${most} ms of the first expected event, but ${thousands(part.last - inTime.first)} ms after it`
          : `not within ${most} ms of the last expected event, but ${thousands(inTime.last - part.first)} ms before it`;
    return { ...result, met: false, reason, check: "within" };
  });
}

function sortedByTime(arrived: readonly ArrivedEvent[]): readonly ArrivedEvent[] {
  return arrived.toSorted((one, other) => one.arrivedAt - other.arrivedAt);
}

/** The received events that an expectation is about, as indexes in the list of all events sorted by time. */
interface Found {
  readonly expectation: Expectation;
  /** How many expectations before this one are equal. Without `count`, each of them needs an event of its own. */
  readonly equalBefore: number;
  /**
   * `meant`: events with the expected name and fields. `wanted`: those of them with the expected verdict; if none is
   * expected, the recorded ones. `lost`: those that were ignored or rejected; empty if a verdict is expected.
   */
  readonly meant: readonly number[];
  readonly wanted: readonly number[];
  readonly lost: readonly number[];
}

function allFound(events: readonly ArrivedEvent[], expect: readonly Expectation[]): readonly Found[] {
  const known = new Map<string, Found>();
  return expect.map((expectation) => {
    const key = canonicalJson(expectation);
    const equal = known.get(key);
    const found = equal ? { ...equal, equalBefore: equal.equalBefore + 1 } : foundOf(events, expectation);
    known.set(key, found);
    return found;
  });
}

function foundOf(events: readonly ArrivedEvent[], expectation: Expectation): Found {
  const { verdict } = expectation;
  const meant = [...events.keys()].filter((position) => isMeant(events[position], expectation));
  const wanted = meant.filter((position) => events[position]?.verdict === (verdict ?? "recorded"));
  const isLost = (position: number) => ["ignored", "rejected"].includes(events[position]?.verdict ?? "");
  const lost = verdict === undefined ? meant.filter(isLost) : [];
  return { expectation, equalBefore: 0, meant, wanted, lost };
}

/** Returns how many events must have arrived so that this expectation and the equal ones before it are met. */
function neededBy({ expectation, equalBefore }: Found): number {
  return expectation.count ?? equalBefore + 1;
}

function judged(
  events: readonly ArrivedEvent[],
  all: readonly Found[],
  inOrder: boolean,
): readonly ExpectationResult[] {
  let after = 0;
  return all.map((about) => {
    const { expectation, wanted, lost } = about;
    const { eventName, count } = expectation;
    const found = wanted.length;
    const needed = neededBy(about);
    if (lost.length > 0) {
      const reason = `${lostWords(events, lost, { eventName, found })}${foundWords(found, count)}`;
      return { met: false, found, reason };
    }
    if (count === undefined ? found < needed : found !== count) {
      const expected = count === undefined ? `${needed} times` : count;
      const isSome = found > 0 || count === 0;
      const reason = isSome ? `expected ${expected}, found ${found}` : whyNotFound(events, expectation);
      return { met: false, found, reason };
    }
    if (!inOrder || count === 0) return { met: true, found };
    const last = wanted[firstFrom(wanted, after) + (count ?? 1) - 1];
    if (last === undefined) {
      return { met: false, found, reason: "not after the events expected before it", check: "order" };
    }
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
  if (alike !== undefined) return `none arrived, but ${JSON.stringify(alike)} did`;
  const meantName = EVENT_SHAPES.has(eventName) ? undefined : nearestName(eventName, EVENT_NAMES);
  return meantName === undefined ? "none arrived" : `none arrived; did you mean "${meantName}"?`;
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
  /** The shortest time from the first to the last expected event, in ms. Absent if too few of them arrived. */
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
  const found = allFound(events, expect);
  const all = found.filter(({ expectation }) => expectation.count !== 0);
  if (all.length === 0) return { met: true, tookMs: 0, missing: [] };
  const missing = found.flatMap((about, index) => (about.wanted.length < neededBy(about) ? [index] : []));
  const series = (inOrder ? shortestSeries(events, all, true) : undefined) ?? shortestSeries(events, all, false);
  if (series === undefined) return { met: false, missing };
  const tookMs = durationOf(series);
  return { met: tookMs <= withinMs, tookMs, missing };
}

/** When the first and the last event that an expectation needs arrived. */
interface Part {
  readonly first: number;
  readonly last: number;
}

/** Returns the shortest series with the events that each expectation needs, as a part for each. Undefined if none. */
function shortestSeries(
  events: readonly ArrivedEvent[],
  all: readonly Found[],
  inOrder: boolean,
): readonly Part[] | undefined {
  let shortest: readonly Part[] | undefined;
  for (const start of new Set(inOrder ? all[0]?.wanted : all.flatMap(({ wanted }) => wanted))) {
    const series = seriesFrom(events, all, { start, inOrder });
    if (series === undefined) continue;
    if (shortest === undefined || durationOf(series) < durationOf(shortest)) shortest = series;
  }
  return shortest;
}

function seriesFrom(
  events: readonly ArrivedEvent[],
  all: readonly Found[],
  { start, inOrder }: { readonly start: number; readonly inOrder: boolean },
): readonly Part[] | undefined {
  let after = start;
  const series: Part[] = [];
  for (const { expectation, equalBefore, wanted } of all) {
    const { count } = expectation;
    const from = firstFrom(wanted, after) + (inOrder || count !== undefined ? 0 : equalBefore);
    const [first, last] = [wanted[from], wanted[from + (count ?? 1) - 1]];
    if (first === undefined || last === undefined) return undefined;
    series.push({ first: events[first]?.arrivedAt ?? 0, last: events[last]?.arrivedAt ?? 0 });
    if (inOrder) after = last + 1;
  }
  return series;
}

/** Returns the first and the last arrival of the span of at most `withinMs` that contains the most parts. */
function bestSpan(parts: readonly Part[], withinMs: number): Part {
  const spans = parts.map(({ first }) => parts.filter((part) => part.first >= first && part.last <= first + withinMs));
  const [best = []] = spans.toSorted((one, other) => other.length - one.length);
  return edgesOf(best);
}

function edgesOf(parts: readonly Part[]): Part {
  return { first: Math.min(...parts.map(({ first }) => first)), last: Math.max(...parts.map(({ last }) => last)) };
}

function durationOf(parts: readonly Part[]): number {
  const { first, last } = edgesOf(parts);
  return last - first;
}
