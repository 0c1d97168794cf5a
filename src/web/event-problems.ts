import { nearestName } from "../events/spelling.ts";
import type { ArrivedEvent } from "../sandbox/event-log.ts";
import { EVENTS } from "../spec/events.ts";
import { EVENT_LIMITS } from "../spec/limits.ts";
import type { EventCause, Words } from "./sandbox-wire.ts";

type Finding = ArrivedEvent["findings"][number];
type Rule = Finding["rule"];

const EVENT_NAMES = Object.keys(EVENTS);
/** The most letters of an event name on the page. */
const MOST_LETTERS = 200;
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
export function causeOf({ verdict, findings, eventName }: ArrivedEvent): Cause | undefined {
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
  const shown = paths.slice(0, MOST_FIELDS).map((path) => ({ code: cut(path) }));
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

function cut(name: string): string {
  return name.length <= MOST_LETTERS ? name : `${name.slice(0, MOST_LETTERS)}…`;
}

interface Counted {
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
export function problemCounter() {
  let counted = new Map<string, Counted>();
  let made = 0;
  let others = 0;
  const counterOf = (cause: Cause, verdict: EventCause["verdict"], at: number): Counted | undefined => {
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
      if (event.eventName !== null && counter.names.size < MOST_NAMES) counter.names.add(cut(event.eventName));
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

function rowOf({ id, cause, verdict, count, firstAt, lastAt, latest, names, platforms }: Counted): EventCause {
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
