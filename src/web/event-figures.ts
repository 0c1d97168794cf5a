import { plain } from "../answers/fence.ts";
import { RULES } from "../events/catalogue.ts";
import { arrivedFindings } from "../events/findings.ts";
import { nearestName } from "../events/spelling.ts";
import { parseJson } from "../platform/json.ts";
import { cutText } from "../platform/text.ts";
import type { ArrivedEvent, EventLog } from "../sandbox/event-log.ts";
import { isFields } from "../sandbox/event-verdict.ts";
import { EVENTS, type EventSpec } from "../spec/events.ts";
import { EVENT_LIMITS } from "../spec/limits.ts";
import { correctedEvent } from "./corrected-event.ts";
import type {
  CoverageRow,
  EventCause,
  EventDetail,
  EventFigures,
  EventList,
  EventProblem,
  EventRow,
  HistogramBar,
  UnknownName,
  Words,
} from "./sandbox-wire.ts";

/** The histogram: the last ten minutes, ten seconds a bar. */
const BAR_MS = 10_000;
const BARS = 60;
/** The most unknown event names that are counted apart, and that one update holds. */
const MOST_UNKNOWN = 1000;
const UNKNOWN_ROWS = 20;
/** The most letters of an event name in figures, and of a name or user in a list. */
const MOST_LETTERS = 200;
const LISTED_LETTERS = 1000;

const EVENT_NAMES = Object.keys(EVENTS);

/** The body of an event as it was sent; undefined where it is not JSON. */
function bodyOf({ text, isJson }: ArrivedEvent): unknown {
  return isJson ? parseJson(text) : undefined;
}

/** The platform that an event names. */
function platformOf(body: unknown): string | undefined {
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

type Finding = ArrivedEvent["findings"][number];
type Rule = Finding["rule"];

/** The most fields that one cause names. */
const MOST_FIELDS = 6;
/** The most causes that are counted apart; events of others are counted together. */
const MOST_CAUSES = 200;
/** The most causes of one update. */
const MOST_ROWS = 50;
/** The most event names and platforms that are remembered of one cause. */
const MOST_NAMES = 20;

/** Rules that have nothing to do with what the event is: their events are one cause, whatever their names. */
const OF_ANY_EVENT: ReadonlySet<Rule> = new Set([
  "notAnObject",
  "authorization",
  "uidMissing",
  "eventNameMissing",
  "eventNameLength",
]);

/** Why an event was not recorded. Events with the same `key` have the same cause. */
interface Cause {
  readonly key: string;
  readonly words: Words;
}

/** Why an event was not recorded, or undefined for one that was. */
function causeOf({ verdict, findings, eventName }: ArrivedEvent): Cause | undefined {
  if (verdict === "recorded") return undefined;
  const deciding = findings.filter(({ effect }) => effect === verdict);
  const byRule = new Map<Rule, Set<string>>();
  for (const { rule, path } of deciding) {
    const paths = byRule.get(rule) ?? new Set();
    byRule.set(rule, paths.add(path.replaceAll(/\.\d+(?=\.|$)/g, "[]")));
  }
  const isOfAny = [...byRule.keys()].every((rule) => OF_ANY_EVENT.has(rule));
  const rules = [...byRule].map(([rule, paths]) => [rule, [...paths]] as const);
  const words = rules.flatMap(([rule, paths], at) => [...(at === 0 ? [] : ["; "]), ...wordsOf(rule, paths, eventName)]);
  return { key: JSON.stringify([verdict, isOfAny ? "" : (eventName ?? ""), rules]), words };
}

/** What is wrong, in a few words; `paths` are the fields concerned. */
function wordsOf(rule: Rule, paths: readonly string[], eventName: string | null): Words {
  switch (rule) {
    case "authorization":
      return ["no valid app key in the header ", { code: "Authorization" }];
    case "notAnObject":
      return ["the body is not a JSON object"];
    case "eventNameLength":
      return [`the event name has more than ${EVENT_LIMITS.eventNameLength.value} characters`];
    case "stringTooLong":
      return [...listed(paths), ` ${isOrAre(paths)} longer than ${number(EVENT_LIMITS.stringLength.value)} characters`];
    case "tooManyItems":
      return [{ code: "items" }, ` has more than ${EVENT_LIMITS.items.value} entries`];
    case "unsupportedEvent":
      return unsupported(eventName);
    default:
      return [...listed(paths), ` ${isOrAre(paths)} missing`];
  }
}

function unsupported(eventName: string | null): Words {
  const near = eventName === null ? undefined : nearestName(eventName, EVENT_NAMES);
  return near === undefined ? ["unknown event name"] : ["unknown event name; did you mean ", { code: near }, "?"];
}

function listed(paths: readonly string[]): Words {
  const shown = paths.slice(0, MOST_FIELDS).map((path) => ({ code: cutText(path, MOST_LETTERS) }));
  const rest = paths.length - shown.length;
  const words = shown.flatMap((code, at) => (at === 0 ? [code] : [", ", code]));
  return rest === 0 ? words : [...words, ` and ${rest} more`];
}

function isOrAre(paths: readonly string[]): string {
  return paths.length === 1 ? "is" : "are";
}

function number(value: number): string {
  return value.toLocaleString("en");
}

interface CountedCause {
  readonly id: number;
  readonly cause: Cause;
  readonly verdict: EventCause["verdict"];
  count: number;
  readonly firstAt: number;
  lastAt: number;
  latest: number;
  readonly names: Set<string>;
  readonly platforms: Map<string, number>;
}

/** Counts events that were not recorded by their causes. Its memory is bounded, however many causes there are. */
function problemCounter() {
  let counted = new Map<string, CountedCause>();
  let made = 0;
  let others = 0;
  const counterOf = (cause: Cause, verdict: EventCause["verdict"], at: number): CountedCause | undefined => {
    const known = counted.get(cause.key);
    if (known !== undefined || counted.size >= MOST_CAUSES) return known;
    made += 1;
    const fresh = { id: made, cause, verdict, count: 0, firstAt: at, lastAt: at, latest: 0 };
    const counter = { ...fresh, names: new Set<string>(), platforms: new Map<string, number>() };
    counted.set(cause.key, counter);
    return counter;
  };
  return {
    /** Counts an event with its number and its platform. */
    add(event: ArrivedEvent, seq: number, platform: string | undefined): void {
      const cause = causeOf(event);
      if (cause === undefined || event.verdict === "recorded") return;
      const at = Date.parse(event.at);
      const counter = counterOf(cause, event.verdict, at);
      if (counter === undefined) {
        others += 1;
        return;
      }
      counter.count += 1;
      counter.lastAt = at;
      counter.latest = seq;
      if (event.eventName !== null && counter.names.size < MOST_NAMES)
        counter.names.add(cutText(event.eventName, MOST_LETTERS));
      const name = platform ?? "no platform";
      if (counter.platforms.has(name) || counter.platforms.size < MOST_NAMES)
        counter.platforms.set(name, (counter.platforms.get(name) ?? 0) + 1);
    },
    clear(): void {
      counted = new Map();
      others = 0;
    },
    /** The most frequent causes, and how many events have others. */
    rows(): { readonly problems: readonly EventCause[]; readonly otherProblems: number } {
      const all = [...counted.values()].toSorted((one, other) => other.count - one.count);
      const rest = all.slice(MOST_ROWS).reduce((sum, { count }) => sum + count, others);
      return { problems: all.slice(0, MOST_ROWS).map(rowOf), otherProblems: rest };
    },
    /** What events of a cause have in common; undefined for a cause that is not counted any more. */
    keyOf: (id: number): string | undefined => [...counted.values()].find((one) => one.id === id)?.cause.key,
    /** The cause with this key as it is counted. */
    rowOf(key: string): EventCause | undefined {
      const found = counted.get(key);
      return found && rowOf(found);
    },
  };
}

function rowOf({ id, cause, verdict, count, firstAt, lastAt, latest, names, platforms }: CountedCause): EventCause {
  const [name = null, ...more] = names;
  const byCount = [...platforms].toSorted(([, one], [, other]) => other - one);
  return {
    ...{ id, verdict, count, firstAt, lastAt, latest },
    name,
    ...(more.length > 0 && { otherNames: more.length }),
    cause: cause.words,
    platforms: byCount.map(([platform, events]) => ({ platform, events })),
  };
}

/** The most events of one update or one list. */
const MOST_EVENTS = 100;
/** The most problems of one event. */
const MOST_PROBLEMS = 20;
/** Larger bodies are shown as they came. */
const MOST_CORRECTED = 100_000;

/** An event as the page lists it. */
function eventRow(event: ArrivedEvent, seq: number): EventRow {
  const { at, verdict, uid } = event;
  const cause = causeOf(event)?.words;
  const body = bodyOf(event);
  const platform = platformOf(body);
  // Events are not looked up by very long names; they are shown all the same.
  const name = event.eventName ?? (isFields(body) && typeof body.eventName === "string" ? body.eventName : null);
  return {
    ...{
      seq,
      at: Date.parse(at),
      verdict,
      uid: uid && cutText(uid, LISTED_LETTERS),
      name: name && cutText(name, LISTED_LETTERS),
    },
    ...(platform !== undefined && { platform }),
    ...(cause !== undefined && { cause }),
  };
}

/** The newest events after number `from`, oldest first, at most 100. */
export function rowsAfter(log: EventLog, from: number): readonly EventRow[] {
  const rows: EventRow[] = [];
  const first = Math.max(from, log.newest() - MOST_EVENTS, log.cleared()) + 1;
  for (let seq = first; seq <= log.newest(); seq += 1) {
    const event = log.at(seq);
    if (event !== undefined) rows.push(eventRow(event, seq));
  }
  return rows;
}

/** Which events a person looks at. */
interface Wanted {
  /** Each word is in the result, the name, the uid, a rule or the body, in capital or small letters. */
  readonly filter: string;
  readonly verdict?: string | undefined;
  /** Events with one cause, by the key of it; null: by a cause that is not counted any more. */
  readonly cause?: string | null | undefined;
}

/** The newest events before number `before` that fit, oldest first. */
export function fittingEvents(
  log: EventLog,
  { filter, verdict, cause }: Wanted,
  before = Number.POSITIVE_INFINITY,
): EventList {
  const words = filter.split(/\s+/).filter((word) => word !== "");
  const patterns = words.map((word) => new RegExp(word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"), "iu"));
  const isWanted = (event: ArrivedEvent): boolean =>
    (verdict === undefined || event.verdict === verdict) &&
    (cause === undefined || causeOf(event)?.key === cause) &&
    patterns.every((pattern) => fits(event, pattern));
  const rows: EventRow[] = [];
  let seq = Math.min(before, log.newest() + 1) - 1;
  for (; seq > log.cleared() && rows.length <= MOST_EVENTS; seq -= 1) {
    const event = log.at(seq);
    if (event === undefined) break;
    if (isWanted(event)) rows.push(eventRow(event, seq));
  }
  return { events: rows.slice(0, MOST_EVENTS).reverse(), older: rows.length > MOST_EVENTS };
}

/** How the page calls what the API calls ignored. */
const DROPPED = "dropped";

function fits({ verdict, eventName, uid, findings, text }: ArrivedEvent, pattern: RegExp): boolean {
  const shown = verdict === "ignored" ? DROPPED : "";
  return [verdict, shown, eventName ?? "", uid ?? "", ...findings.map(({ rule }) => rule), text].some((one) =>
    pattern.test(one),
  );
}

/** An event with everything that is known of it; undefined for one that is forgotten. */
export function eventDetail(log: EventLog, seq: number, figures: Figures): EventDetail | undefined {
  const event = log.at(seq);
  if (event === undefined) return undefined;
  const { text, forwarded } = event;
  const body = text.length <= MOST_CORRECTED ? bodyOf(event) : undefined;
  const problem = problemOf(event, figures);
  const corrected = event.verdict === "recorded" ? undefined : correctedEvent(body);
  return {
    ...{ event: eventRow(event, seq), text, problems: problemsOf(event) },
    ...(forwarded && { forwarded }),
    ...(problem && { sameProblem: problem }),
    ...(corrected && { corrected }),
  };
}

function problemOf(event: ArrivedEvent, figures: Figures) {
  const key = causeOf(event)?.key;
  return key === undefined ? undefined : figures.problemOf(key);
}

/** What is wrong with an event, and how to fix each of it, what decides first. */
function problemsOf(event: ArrivedEvent): readonly EventProblem[] {
  const body = bodyOf(event);
  const found = arrivedFindings({ body, findings: event.findings, ...(body === undefined && { text: "" }) });
  return found.slice(0, MOST_PROBLEMS).map(({ code, path, message, fix, isDecisive }) => ({
    message: plain(`${path.includes("[") ? `${path}: ` : ""}${message}`),
    fix: plain(fix),
    isDecisive,
    ...(isRule(code) && { section: RULES[code].section }),
  }));
}

function isRule(code: string): code is keyof typeof RULES {
  return Object.hasOwn(RULES, code);
}
