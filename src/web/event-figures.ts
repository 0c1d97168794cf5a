import { plain } from "../answers/fence.ts";
import { COMMON_SHAPE, EVENT_SHAPES, ITEM_SHAPE, RULES } from "../events/catalogue.ts";
import { arrivedFindings } from "../events/coverage.ts";
import { nearestName } from "../events/spelling.ts";
import { isJsonObject, parseJson } from "../platform/json.ts";
import { cutText, thousands } from "../platform/text.ts";
import type { ArrivedEvent, EventLog } from "../sandbox/logs.ts";
import { EVENT_LIMITS } from "../spec/limits.ts";
import { correctedEvent, fixOf, joined } from "./corrected-event.ts";
import { coverageCounter, EVENT_NAMES, MAX_LETTERS } from "./event-coverage.ts";
import type {
  EventCause,
  EventDetail,
  EventFigures,
  EventList,
  EventProblem,
  EventRow,
  HistogramBar,
  Words,
} from "./sandbox-wire.ts";

/** The histogram covers ten minutes: 60 bars of ten seconds. */
const BAR_MS = 10_000;
const BARS = 60;
/** The maximum number of characters of a name or user ID in a list. */
const LISTED_LETTERS = 1000;

function bodyOf({ text, isJson }: ArrivedEvent): unknown {
  return isJson ? parseJson(text) : undefined;
}

function platformOf(body: unknown): string | undefined {
  const platform = isJsonObject(body) ? body.platform : undefined;
  return typeof platform === "string" ? platform.slice(0, 40) : undefined;
}

export interface Figures {
  /** Counts the events that arrived since the last call, then returns the statistics of all events. */
  now(): EventFigures;
  /** Returns the key of the cause that has this ID on the page. Undefined if this cause is no longer counted. */
  readonly keyOf: (id: number) => string | undefined;
  readonly problemOf: ReturnType<typeof problemCounter>["rowOf"];
}

/** Creates the statistics of the events in a log, in limited memory. `clock` returns milliseconds since 1970. */
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
        ...grouped(problems.rows(), (name) =>
          name === undefined ? log.newest() - log.cleared() : coverage.received(name),
        ),
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

function recent(bars: ReadonlyMap<number, HistogramBar>, now: number): Map<number, HistogramBar> {
  const from = (Math.floor(now / BAR_MS) - BARS + 1) * BAR_MS;
  const kept = [...bars].filter(([at]) => at >= from).toSorted(([one], [other]) => one - other);
  // Events of the initial data can have any time, even one in the future. So this also limits the number of bars.
  return new Map(kept.slice(-BARS));
}

/**
 * Adds to each cause the group (`of`) in which the overview lists it: an event name and the number of its events.
 * Causes of several names, or of none, are listed alone, and their total is that of all events.
 */
function grouped(
  { problems, otherProblems }: ReturnType<ReturnType<typeof problemCounter>["rows"]>,
  receivedOf: (name: string | undefined) => number,
): Pick<EventFigures, "problems" | "otherProblems"> {
  const nameOf = ({ event, name, otherNames }: EventCause): string | undefined =>
    event ?? (name === null || otherNames !== undefined ? undefined : (documentedEvent(name) ?? name));
  const keyOf = (cause: EventCause): string => nameOf(cause) ?? `cause ${cause.id}`;
  const counts = new Map<string, number>();
  for (const cause of problems) counts.set(keyOf(cause), (counts.get(keyOf(cause)) ?? 0) + cause.count);
  const rows = problems.map((cause) => {
    const [key, name] = [keyOf(cause), nameOf(cause)];
    const count = counts.get(key) ?? 0;
    return { ...cause, of: { key, name, count, total: Math.max(count, receivedOf(name)) } };
  });
  return { problems: rows, otherProblems };
}

type Finding = ArrivedEvent["findings"][number];
type Rule = Finding["rule"];

const MAX_FIELDS = 6;
/** The maximum number of causes that are counted one by one. The events of all further causes are counted together. */
const MAX_CAUSES = 200;
const MAX_ROWS = 50;
/** The maximum number of event names, platforms and fixes that are stored for one cause. */
const MAX_NAMES = 20;

/** Rules that are the same for all event names. Events of any name that break only such a rule have the same cause. */
const OF_ANY_EVENT: ReadonlySet<Rule> = new Set([
  "notAnObject",
  "authorization",
  "uidMissing",
  "eventNameMissing",
  "eventNameLength",
]);

/** The reason why an event was not recorded. Events with the same `key` have the same cause. */
interface Cause {
  readonly key: string;
  readonly words: Words;
  readonly event?: string | undefined;
}

/** Returns the reason why an event was not recorded; undefined for a recorded event. */
function causeOf(arrived: ArrivedEvent): Cause | undefined {
  const { verdict, findings, eventName } = arrived;
  if (verdict === "recorded") return undefined;
  const deciding = findings.filter(({ effect }) => effect === verdict);
  const byRule = new Map<Rule, Set<string>>();
  for (const { rule, path } of deciding) {
    const paths = byRule.get(rule) ?? new Set();
    byRule.set(rule, paths.add(generalPath(path)));
  }
  const isOfAny = [...byRule.keys()].every((rule) => OF_ANY_EVENT.has(rule));
  const rules = [...byRule].map(([rule, paths]) => [rule, [...paths]] as const);
  const event = isOfAny ? undefined : documentedEvent(eventName ?? "");
  const also = event !== undefined && byRule.has("unsupportedEvent") ? missingIn(bodyOf(arrived), event) : [];
  const alsoMissing = also.length === 0 ? [] : [["requiredMissing", also] as const];
  const words = [...rules, ...alsoMissing].map(([rule, paths]) => wordsOf(rule, paths));
  const key = JSON.stringify([verdict, isOfAny ? "" : (eventName ?? ""), rules, also]);
  return { key, words: joined(words, "; "), event };
}

/** Returns a path without positions in lists: `items[].price`. */
function generalPath(path: string): string {
  return path.replaceAll(/\.\d+(?=\.|$)/g, "[]");
}

/** Returns the required parameters that an event with a misspelt name would still lack after its name is corrected. */
function missingIn(body: unknown, event: string): readonly string[] {
  const required = EVENT_SHAPES.get(event)?.required ?? [];
  return isJsonObject(body) ? required.filter((name) => !Object.hasOwn(body, name)) : [];
}

function documentedEvent(name: string): string | undefined {
  return EVENT_NAMES.includes(name) ? name : nearestName(name, EVENT_NAMES);
}

/** Says in a few words how an event breaks a rule. `paths`: the affected fields. */
function wordsOf(rule: Rule, paths: readonly string[]): Words {
  switch (rule) {
    case "authorization":
      return ["no valid app key in the header ", { code: "Authorization" }];
    case "notAnObject":
      return ["the body is not a JSON object"];
    case "eventNameLength":
      return [`the event name has more than ${EVENT_LIMITS.eventNameLength.value} characters`];
    case "stringTooLong":
      return [
        ...fieldList(paths),
        ` ${isOrAre(paths)} longer than ${thousands(EVENT_LIMITS.stringLength.value)} characters`,
      ];
    case "tooManyItems":
      return [{ code: "items" }, ` has more than ${EVENT_LIMITS.items.value} entries`];
    case "unsupportedEvent":
      return ["unknown event name"];
    default:
      return [...fieldList(paths), ` ${isOrAre(paths)} missing`];
  }
}

function fieldList(paths: readonly string[]): Words {
  const shown = paths.slice(0, MAX_FIELDS).map((path) => ({ code: cutText(path, MAX_LETTERS) }));
  const rest = paths.length - shown.length;
  const words = joined(shown.map((code) => [code]));
  return rest === 0 ? words : [...words, ` and ${rest} more`];
}

function isOrAre(paths: readonly string[]): string {
  return paths.length === 1 ? "is" : "are";
}

interface CountedCause {
  readonly id: number;
  readonly cause: Cause;
  readonly fixes: Map<string, { readonly fix: Words; count: number }>;
  readonly verdict: EventCause["verdict"];
  count: number;
  readonly firstAt: number;
  lastAt: number;
  latest: number;
  readonly names: Set<string>;
  readonly platforms: Map<string, number>;
}

/** Counts the events that were not recorded, by cause. Memory is bounded, whatever the number of causes. */
function problemCounter() {
  let counted = new Map<string, CountedCause>();
  let made = 0;
  let others = 0;
  const counterOf = (cause: Cause, event: ArrivedEvent, verdict: EventCause["verdict"]): CountedCause | undefined => {
    const at = Date.parse(event.at);
    const known = counted.get(cause.key);
    if (known !== undefined || counted.size >= MAX_CAUSES) return known;
    made += 1;
    const fresh = { id: made, cause, verdict, count: 0, firstAt: at, lastAt: at, latest: 0 };
    const counter = { ...fresh, fixes: new Map(), names: new Set<string>(), platforms: new Map<string, number>() };
    counted.set(cause.key, counter);
    return counter;
  };
  return {
    /** Counts an event. `seq` is its position in the log. */
    add(event: ArrivedEvent, seq: number, platform: string | undefined): void {
      const cause = causeOf(event);
      if (cause === undefined || event.verdict === "recorded") return;
      const counter = counterOf(cause, event, event.verdict);
      if (counter === undefined) {
        others += 1;
        return;
      }
      counter.count += 1;
      counter.lastAt = Date.parse(event.at);
      counter.latest = seq;
      addFix(counter, fixOf(event));
      if (event.eventName !== null && counter.names.size < MAX_NAMES)
        counter.names.add(cutText(event.eventName, MAX_LETTERS));
      const name = platform ?? "no platform";
      if (counter.platforms.has(name) || counter.platforms.size < MAX_NAMES)
        counter.platforms.set(name, (counter.platforms.get(name) ?? 0) + 1);
    },
    clear(): void {
      counted = new Map();
      others = 0;
    },
    /** Returns the most frequent causes, and the number of events that have other causes. */
    rows(): { readonly problems: readonly EventCause[]; readonly otherProblems: number } {
      const all = [...counted.values()].toSorted((one, other) => other.count - one.count);
      const rest = all.slice(MAX_ROWS).reduce((sum, { count }) => sum + count, others);
      return { problems: all.slice(0, MAX_ROWS).map(rowOf), otherProblems: rest };
    },
    /** Returns the internal key of the cause with this ID; undefined if the cause is no longer counted. */
    keyOf: (id: number): string | undefined => [...counted.values()].find((one) => one.id === id)?.cause.key,
    rowOf(key: string): EventCause | undefined {
      const found = counted.get(key);
      return found && rowOf(found);
    },
  };
}

function addFix({ fixes }: CountedCause, fix: Words): void {
  const key = JSON.stringify(fix);
  const known = fixes.get(key);
  if (known !== undefined) known.count += 1;
  else if (fixes.size < MAX_NAMES) fixes.set(key, { fix, count: 1 });
}

/** The maximum number of fixes that are listed for one cause. */
const MAX_FIXES = 3;

/**
 * Returns how to fix the events of a cause. If they need different fixes, each has the number of its events, and the
 * last part counts events for which no fix is listed: `add uid (26 of 34); rename tx to tx_id (6); 2 need another fix`.
 */
function fixesOf({ fixes, count }: CountedCause): Words {
  const known = [...fixes.values()].filter(({ fix }) => fix.length > 0);
  const most = known.toSorted((one, other) => other.count - one.count).slice(0, MAX_FIXES);
  const rest = most.reduce((left, one) => left - one.count, count);
  const [first] = most;
  if (first === undefined || first.count === count) return first?.fix ?? [];
  const parts = most.map((one): Words => {
    const whole = one === first ? ` of ${thousands(count)}` : "";
    return [...one.fix, ` (${thousands(one.count)}${whole})`];
  });
  const end = `${thousands(rest)} ${rest === 1 ? "needs" : "need"} another fix`;
  return joined(rest === 0 ? parts : [...parts, [end]], "; ");
}

function rowOf(counter: CountedCause): EventCause {
  const { id, cause, verdict, count, firstAt, lastAt, latest, names, platforms } = counter;
  const [name = null, ...more] = names;
  const byCount = [...platforms].toSorted(([, one], [, other]) => other - one);
  return {
    ...{ id, verdict, count, firstAt, lastAt, latest },
    name,
    ...(more.length > 0 && { otherNames: more.length }),
    ...(cause.event !== undefined && { event: cause.event }),
    ...{ cause: cause.words, fix: fixesOf(counter) },
    platforms: byCount.map(([platform, events]) => ({ platform, events })),
  };
}

const MAX_EVENTS = 100;
const MAX_PROBLEMS = 20;
/** A body with more characters than this gets no suggested correction. */
const MAX_CORRECTED = 100_000;

/** Says which parameters of an event have the wrong type: the sandbox still records it. Undefined if none has. */
function wrongTypes({ findings, eventName }: ArrivedEvent): Words | undefined {
  const wrong = findings.filter(({ rule }) => rule === "wrongType").map(({ path }) => generalPath(path));
  const parts = [...new Set(wrong)].slice(0, MAX_FIELDS).map((path): Words => {
    const shape = path.startsWith("items[].") ? ITEM_SHAPE : (EVENT_SHAPES.get(eventName ?? "") ?? COMMON_SHAPE);
    const type = shape.parameters.get(path.replace("items[].", ""))?.type;
    const wanted = type === "items" ? "an array of objects" : `a ${type ?? "value of its type"}`;
    return [{ code: cutText(path, MAX_LETTERS) }, ` is not ${wanted}`];
  });
  return parts.length === 0 ? undefined : joined(parts, "; ");
}

function eventRow(event: ArrivedEvent, seq: number): EventRow {
  const { at, verdict, uid } = event;
  const cause = causeOf(event)?.words ?? wrongTypes(event);
  const body = bodyOf(event);
  const platform = platformOf(body);
  // The log does not store very long names. The row of such an event shows the beginning of the name in its body.
  const name = event.eventName ?? (isJsonObject(body) && typeof body.eventName === "string" ? body.eventName : null);
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

/** Returns the newest events that arrived after the event number `from`: at most 100, the oldest first. */
export function rowsAfter(log: EventLog, from: number): readonly EventRow[] {
  const rows: EventRow[] = [];
  const first = Math.max(from, log.newest() - MAX_EVENTS, log.cleared()) + 1;
  for (let seq = first; seq <= log.newest(); seq += 1) {
    const event = log.at(seq);
    if (event !== undefined) rows.push(eventRow(event, seq));
  }
  return rows;
}

interface Wanted {
  /** Words that must all occur in the event's result, name, user ID, broken rules or body. Case does not matter. */
  readonly filter: string;
  readonly verdict?: string | undefined;
  /** The key of the cause that the events must have. Null if that cause is no longer counted: no event then matches. */
  readonly cause?: string | null | undefined;
}

export function matchingEvents(
  log: EventLog,
  { filter, verdict, cause }: Wanted,
  before = Number.POSITIVE_INFINITY,
): EventList {
  const words = filter.split(/\s+/).filter((word) => word !== "");
  const patterns = words.map((word) => new RegExp(word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"), "iu"));
  const isWanted = (event: ArrivedEvent): boolean =>
    (verdict === undefined || event.verdict === verdict) &&
    (cause === undefined || causeOf(event)?.key === cause) &&
    patterns.every((pattern) => matchesWord(event, pattern));
  const total = countMatching(log, JSON.stringify([filter, verdict, cause]), isWanted);
  const rows: EventRow[] = [];
  let seq = Math.min(before, log.newest() + 1) - 1;
  for (; seq > log.cleared() && rows.length <= MAX_EVENTS; seq -= 1) {
    const event = log.at(seq);
    if (event === undefined) break;
    if (isWanted(event)) rows.push(eventRow(event, seq));
  }
  return { events: rows.slice(0, MAX_EVENTS).reverse(), total, older: rows.length > MAX_EVENTS };
}

/** The last filter of each log, and how many of the first `upTo` events match it. */
const lastCounts = new WeakMap<EventLog, { readonly key: string; readonly upTo: number; readonly total: number }>();

/** Counts the matching events. While the filter (`key`) stays, each event is compared only once. */
function countMatching(log: EventLog, key: string, isWanted: (event: ArrivedEvent) => boolean): number {
  const last = lastCounts.get(log);
  // If the log was reset, what was counted before is gone.
  const isSame = last?.key === key && last.upTo > log.cleared();
  let { upTo: seq, total } = isSame ? last : { upTo: log.cleared(), total: 0 };
  while (seq < log.newest()) {
    seq += 1;
    const event = log.at(seq);
    if (event !== undefined && isWanted(event)) total += 1;
  }
  lastCounts.set(log, { key, upTo: seq, total });
  return total;
}

/** The word of the page for events whose result is `ignored` in the API. A filter finds them by this word. */
const DROPPED = "dropped";

function matchesWord({ verdict, eventName, uid, findings, text }: ArrivedEvent, pattern: RegExp): boolean {
  const shown = verdict === "ignored" ? DROPPED : "";
  return [verdict, shown, eventName ?? "", uid ?? "", ...findings.map(({ rule }) => rule), text].some((one) =>
    pattern.test(one),
  );
}

/** Returns an event with all details. Undefined if the log has removed the event. */
export function eventDetail(log: EventLog, seq: number, figures: Figures): EventDetail | undefined {
  const event = log.at(seq);
  if (event === undefined) return undefined;
  const { text, forwarded } = event;
  const body = text.length <= MAX_CORRECTED ? bodyOf(event) : undefined;
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

/** Returns the problems of an event, each with its fix. Problems that prevent recording come first. */
function problemsOf(event: ArrivedEvent): readonly EventProblem[] {
  const body = bodyOf(event);
  const found = arrivedFindings({ body, findings: event.findings, ...(body === undefined && { text: "" }) });
  const renames = found.flatMap(({ fix }) => /^rename (.*) to (.*)$/.exec(fix)?.slice(1) ?? []);
  // A hint ("did you mean …?") is omitted if the fix of another problem already says to rename that field.
  const isRepeated = ({ message, fix }: (typeof found)[number]): boolean =>
    renames.some((to, at) => fix === `did you mean ${to}?` && message.startsWith(`${renames[at - 1]} `));
  return found
    .filter((one) => !isRepeated(one))
    .slice(0, MAX_PROBLEMS)
    .map(({ code, path, message, fix, isDecisive }) => ({
      message: plain(`${path.includes("[") ? `${path}: ` : ""}${message}`),
      fix: plain(fix),
      isDecisive,
      ...(isRule(code) && { section: RULES[code].section }),
    }));
}

function isRule(code: string): code is keyof typeof RULES {
  return Object.hasOwn(RULES, code);
}
