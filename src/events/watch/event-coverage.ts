import { EVENT_NAMES, EVENT_SHAPES, isJsonObject } from "../check/catalogue.ts";
import type { ArrivedEvent } from "./expectations.ts";

/** How often one of the 13 events came, and what it had. */
export interface EventCoverage {
  readonly eventName: string;
  readonly count: number;
  /** How many were ignored or rejected; absent where none was. */
  readonly wrong?: number;
  /** How many had each parameter; those that none had with 0. Empty where the event never came. */
  readonly parameters: Readonly<Record<string, number>>;
  /** How many named each of the three most frequent platforms, `(none)`, or `(others)`; absent where none named one. */
  readonly byPlatform?: Readonly<Record<string, number>>;
}

interface Counted {
  count: number;
  wrong: number;
  readonly parameters: Map<string, number>;
  readonly platforms: Map<string, number>;
}

const PLATFORMS_LISTED = 3;
const LONGEST_PLATFORM = 8;
const NO_PLATFORM = "(none)";
const OTHER_PLATFORMS = "(others)";
/** Every event has these, or is not of a name. */
const GIVEN_WITH_ALL: ReadonlySet<string> = new Set(["uid", "eventName", "platform"]);

/** Counts each of the 13 events, in the order of the document (event-tracking-api 2.2), those that never came with 0. */
export function eventCoverageOf(arrived: readonly ArrivedEvent[]): readonly EventCoverage[] {
  const seen = new Map(EVENT_NAMES.map((name): readonly [string, Counted] => [name, nothing()]));
  for (const { body, verdict } of arrived) {
    const event = isJsonObject(body) && typeof body.eventName === "string" ? seen.get(body.eventName) : undefined;
    if (event === undefined || !isJsonObject(body)) continue;
    event.count += 1;
    if (verdict !== "recorded") event.wrong += 1;
    for (const name of Object.keys(body)) increase(event.parameters, name);
    increase(event.platforms, typeof body.platform === "string" ? body.platform : NO_PLATFORM);
  }
  const common = commonPlatforms([...seen.values()]);
  return [...seen].map(([eventName, { count, wrong, parameters, platforms }]) => {
    const names = count === 0 ? [] : (EVENT_SHAPES.get(eventName)?.names ?? []);
    const own = names.filter((name) => !GIVEN_WITH_ALL.has(name));
    const isOnAny = [...platforms.keys()].some((name) => name !== NO_PLATFORM);
    return {
      eventName,
      count,
      ...(wrong > 0 && { wrong }),
      parameters: Object.fromEntries(own.map((name) => [name, parameters.get(name) ?? 0])),
      ...(isOnAny && { byPlatform: summaryAtRest(platforms, common) }),
    };
  });
}

function nothing(): Counted {
  return { count: 0, wrong: 0, parameters: new Map(), platforms: new Map() };
}

function increase(counts: Map<string, number>, key: string, by = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}

/** The platforms that most events name, whatever the events: so that each event tells the same ones. */
function commonPlatforms(events: readonly Counted[]): ReadonlySet<string> {
  const all = new Map<string, number>();
  for (const { platforms } of events) for (const [name, count] of platforms) increase(all, name, count);
  all.delete(NO_PLATFORM);
  const first = [...all].toSorted(([, one], [, other]) => other - one).slice(0, PLATFORMS_LISTED);
  return new Set([NO_PLATFORM, ...first.map(([name]) => name)]);
}

function summaryAtRest(
  counts: ReadonlyMap<string, number>,
  common: ReadonlySet<string>,
): Readonly<Record<string, number>> {
  const short = new Map<string, number>();
  for (const [name, count] of counts) {
    increase(short, common.has(name) ? [...name].slice(0, LONGEST_PLATFORM).join("") : OTHER_PLATFORMS, count);
  }
  return Object.fromEntries([...short].toSorted(([, one], [, other]) => other - one));
}
