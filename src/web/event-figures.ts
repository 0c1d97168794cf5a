import { nearestName } from "../events/spelling.ts";
import { parseJson } from "../platform/json.ts";
import type { ArrivedEvent, EventLog } from "../sandbox/event-log.ts";
import { isFields } from "../sandbox/event-verdict.ts";
import { EVENTS, type EventSpec } from "../spec/events.ts";
import { problemCounter } from "./event-problems.ts";
import type { CoverageRow, EventFigures, HistogramBar, UnknownName } from "./sandbox-wire.ts";

/** The histogram: the last ten minutes, ten seconds a bar. */
const BAR_MS = 10_000;
const BARS = 60;
/** The most unknown event names that are counted apart, and that one update holds. */
const MOST_UNKNOWN = 1000;
const UNKNOWN_ROWS = 20;
const MOST_LETTERS = 200;

const EVENT_NAMES = Object.keys(EVENTS);

/** The body of an event as it was sent; undefined where it is not JSON. */
export function bodyOf({ text, isJson }: ArrivedEvent): unknown {
  return isJson ? parseJson(text) : undefined;
}

/** The platform that an event names. */
export function platformOf(body: unknown): string | undefined {
  const platform = isFields(body) ? body.platform : undefined;
  return typeof platform === "string" ? platform.slice(0, 40) : undefined;
}

/** What all events of a sandbox since its last reset amount to. */
export interface Figures {
  /** Counts what has arrived since, each event once. */
  now(): EventFigures;
  /** What events with a cause have in common, by its ID; undefined for a cause that is not counted any more. */
  readonly keyOf: (id: number) => string | undefined;
  readonly problemOf: ReturnType<typeof problemCounter>["rowOf"];
}

/** Counts the events of a log; `clock` gives milliseconds since 1970. Its memory does not grow with the events. */
export function eventFigures(log: EventLog, clock: () => number): Figures {
  const problems = problemCounter();
  let coverage = coverageCounter();
  let bars = new Map<number, HistogramBar>();
  let last = 0;
  let cleared = 0;
  const count = (event: ArrivedEvent, seq: number): void => {
    const body = bodyOf(event);
    problems.add(event, seq, platformOf(body));
    coverage.add(event, body);
    const at = Math.floor(Date.parse(event.at) / BAR_MS) * BAR_MS;
    const bar = bars.get(at) ?? { at, recorded: 0, ignored: 0, rejected: 0 };
    bars.set(at, { ...bar, [event.verdict]: bar[event.verdict] + 1 });
    if (bars.size > 2 * BARS) bars = recent(bars, clock());
  };
  const catchUp = (): void => {
    if (log.cleared() !== cleared) {
      cleared = log.cleared();
      problems.clear();
      coverage = coverageCounter();
      bars = new Map();
    }
    last = Math.max(last, cleared);
    for (; last < log.newest(); last += 1) {
      const event = log.at(last + 1);
      if (event !== undefined) count(event, last + 1);
    }
  };
  return {
    now() {
      catchUp();
      bars = recent(bars, clock());
      return {
        ...problems.rows(),
        ...coverage.rows(),
        histogram: { now: clock(), everyMs: BAR_MS, bars: [...bars.values()] },
      };
    },
    keyOf(id) {
      catchUp();
      return problems.keyOf(id);
    },
    problemOf(key) {
      catchUp();
      return problems.rowOf(key);
    },
  };
}

/** The bars of the last ten minutes, in the order of time. */
function recent(bars: ReadonlyMap<number, HistogramBar>, now: number): Map<number, HistogramBar> {
  const from = (Math.floor(now / BAR_MS) - BARS + 1) * BAR_MS;
  const kept = [...bars].filter(([at]) => at >= from).toSorted(([one], [other]) => one - other);
  // Events can be dated otherwise than by this clock, as those of seeds are.
  return new Map(kept.slice(-BARS));
}

interface Counted {
  count: number;
  wrong: number;
  readonly parameters: Map<string, { readonly required: boolean; count: number; missing: number }>;
}

/** Counts what arrived of each event of the documents (event-tracking-api 2.2), and of names that are not supported. */
function coverageCounter() {
  const counted = new Map<string, Counted>(
    Object.entries<EventSpec>(EVENTS).map(([name, { parameters }]) => {
      const entries = Object.entries(parameters).map(
        ([parameter, { required }]) => [parameter, { required, count: 0, missing: 0 }] as const,
      );
      return [name, { count: 0, wrong: 0, parameters: new Map(entries) }];
    }),
  );
  const unknown = new Map<string, number>();
  return {
    add({ eventName, verdict, findings }: ArrivedEvent, body: unknown): void {
      const entry = counted.get(eventName ?? "");
      if (entry === undefined) {
        const name = eventName ?? "";
        if (name !== "" && (unknown.has(name) || unknown.size < MOST_UNKNOWN))
          unknown.set(name, (unknown.get(name) ?? 0) + 1);
        return;
      }
      if (!isFields(body)) return;
      entry.count += 1;
      if (verdict !== "recorded") entry.wrong += 1;
      for (const [name, parameter] of entry.parameters) if (Object.hasOwn(body, name)) parameter.count += 1;
      for (const { rule, path } of findings) {
        const parameter = rule === "requiredMissing" ? entry.parameters.get(path) : undefined;
        if (parameter !== undefined) parameter.missing += 1;
      }
    },
    rows(): { readonly coverage: readonly CoverageRow[]; readonly unknownNames: readonly UnknownName[] } {
      return { coverage: [...counted].map(coverageRow), unknownNames: unknownRows(unknown) };
    },
  };
}

function coverageRow([name, { count, wrong, parameters }]: readonly [string, Counted]): CoverageRow {
  return { name, count, wrong, parameters: [...parameters].map(([parameter, its]) => ({ name: parameter, ...its })) };
}

function unknownRows(unknown: ReadonlyMap<string, number>): readonly UnknownName[] {
  const rows = [...unknown].toSorted(([, one], [, other]) => other - one).slice(0, UNKNOWN_ROWS);
  return rows.map(([name, count]) => {
    const nearest = nearestName(name, EVENT_NAMES);
    return { name: name.slice(0, MOST_LETTERS), count, ...(nearest !== undefined && { nearest }) };
  });
}
