import type { SandboxEvent } from "../api/events.ts";
import { isJsonObject } from "../platform/json.ts";
import { amount, cutText } from "../platform/text.ts";
import { EVENTS, type EventSpec } from "../spec/events.ts";
import { EVENT_NAMES, EVENT_SHAPES, type Finding, RULES, type RuleBasis, type RuleName } from "./catalogue.ts";
import { type NearestName, nearestName, remembering } from "./spelling.ts";
import { validateEvent } from "./validate.ts";

interface ArrivedFinding extends Pick<Finding, "path" | "basis" | "message" | "fix"> {
  /** The validator's name of the broken rule, or the sandbox's name if only the sandbox checks the rule. */
  readonly code: string;
  /** Whether the event is not recorded, or may not be, because of this finding. Otherwise it is only a warning. */
  readonly isDecisive: boolean;
}

type Arrived = Pick<SandboxEvent, "body" | "text"> & {
  readonly findings: readonly Pick<SandboxEvent["findings"][number], "path" | "rule" | "effect">[];
};

/** What is wrong with the HTTP headers of an event. The keys are the paths that the sandbox reports for the headers. */
const HEADER_FINDINGS: ReadonlyMap<string, Omit<ArrivedFinding, "path">> = new Map([
  [
    "headers.authorization",
    {
      code: "authorization",
      basis: "assumed",
      message: "the Authorization header does not contain a known app key",
      fix: "send the app key of the project",
      isDecisive: true,
    },
  ],
  [
    "headers.content-type",
    {
      code: "contentType",
      basis: "notShown",
      message: "the Content-Type header is not application/json",
      fix: "send application/json",
      isDecisive: true,
    },
  ],
]);

/** The validator's names for rules that have another name in the sandbox. */
const SANDBOX_RULES: ReadonlyMap<string, RuleName> = new Map([
  ["notAnObject", "bodyNotObject"],
  ["eventNameLength", "eventNameTooLong"],
  ["unsupportedEvent", "eventNameUnsupported"],
  ["lengthDependsOnCounting", "lengthUnclear"],
  ["notAParameter", "unknownParameter"],
]);

/** Returns the findings about a received event: first those about its headers, then those about its body. */
export function arrivedFindings(event: Arrived, nearest: NearestName = nearestName): readonly ArrivedFinding[] {
  return [...headerFindings(event), ...bodyFindings(event, nearest)];
}

function headerFindings({ findings }: Arrived): readonly ArrivedFinding[] {
  return findings.flatMap(({ path }) => {
    const found = HEADER_FINDINGS.get(path);
    return found === undefined ? [] : [{ path, ...found }];
  });
}

function bodyFindings({ body, text, findings }: Arrived, nearest: NearestName): readonly ArrivedFinding[] {
  if (body !== undefined) {
    return validateEvent(body, nearest).findings.map(({ rule, severity, path, basis, message, fix }) => ({
      path,
      code: rule,
      basis,
      message,
      fix,
      isDecisive: severity === "verdict",
    }));
  }
  if (text !== undefined) {
    const { basis } = RULES.bodyNotObject;
    const fix = "send an object with uid and eventName";
    return [{ path: "", code: "bodyNotObject", basis, message: "the body is not JSON", fix, isDecisive: true }];
  }
  // The sandbox omits the bodies of older events if its answer would become too large. The validator cannot check
  // these. The sandbox's own findings are used instead.
  return findings.filter(({ path }) => !HEADER_FINDINGS.has(path)).map(sandboxFinding);
}

function sandboxFinding({ path, rule, effect }: Arrived["findings"][number]): ArrivedFinding {
  const code = SANDBOX_RULES.get(rule) ?? rule;
  const basis = isRule(code) ? RULES[code].basis : "notShown";
  const message = "the event breaks this rule; the sandbox did not return its body, so the value is not shown";
  const fix = "compare this field with list_event_types";
  return { path, code, basis, message, fix, isDecisive: effect !== "unused" };
}

function isRule(code: string): code is RuleName {
  return Object.hasOwn(RULES, code);
}

/** Returns how the verdict on a received event is known: documented, assumed, or not shown in the API document. */
export function verdictBasis(event: Arrived & Pick<SandboxEvent, "verdict">, nearest?: NearestName): RuleBasis {
  const { verdict, basis } = validateEvent(event.body, nearest);
  const [header] = verdict === "rejected" ? [] : headerFindings(event);
  if (event.body !== undefined && verdict === event.verdict) return header?.basis ?? basis;
  const deciding = arrivedFindings(event, nearest).filter(({ isDecisive }) => isDecisive);
  return deciding[0]?.basis ?? "documented";
}

/** Received events with the same name and finding. `of`: how many events with this name were received in all. */
export interface WrongKind extends Omit<ArrivedFinding, "isDecisive"> {
  readonly eventName: string | null;
  readonly count: number;
  readonly of: number;
  readonly verdict: SandboxEvent["verdict"];
}

/** Returns why events were not, or may not be, recorded: the most frequent reason first, each with one message. */
export function wrongKinds(arrived: readonly SandboxEvent[]): readonly WrongKind[] {
  const kinds = new Map<string, FoundKind>();
  const all = new Map<string | null, number>();
  const nearest = remembering(nearestName);
  for (const event of arrived) {
    const { eventName, verdict } = event;
    all.set(eventName, (all.get(eventName) ?? 0) + 1);
    const known = new Set<string>();
    for (const { path: exact, code, basis, message, fix, isDecisive } of arrivedFindings(event, nearest)) {
      const path = exact.replaceAll(/\[\d+\]|\.\d+(?=\.|$)/g, "[]");
      const key = JSON.stringify([eventName, code, path]);
      if (!isDecisive || known.has(key)) continue;
      known.add(key);
      const kind = { eventName, path, code, basis, message, fix, verdict };
      const found = kinds.get(key) ?? { kind, count: 0, fixes: new Map() };
      kinds.set(key, found);
      found.count += 1;
      increase(found.fixes, fix);
    }
  }
  return [...kinds.values()]
    .toSorted((one, other) => other.count - one.count)
    .map(({ kind, count, fixes }) => ({
      ...kind,
      ...(kind.code === "requiredMissing" && { fix: fixesWords(fixes) }),
      count,
      of: all.get(kind.eventName) ?? count,
    }));
}

interface FoundKind {
  readonly kind: Omit<WrongKind, "count" | "of">;
  /** How many events need each fix. Events with the same finding may need different fixes. */
  readonly fixes: Map<string, number>;
  count: number;
}

const FIXES_LISTED = 3;

/** Returns the fixes for events without a required parameter. Some events have its value under another name. */
function fixesWords(fixes: ReadonlyMap<string, number>): string {
  const words = mostFrequent(fixes, FIXES_LISTED).map(([fix, count]) =>
    fixes.size === 1 ? fix : `${fix} (${amount(count, "event")})`,
  );
  return [...words, ...(fixes.size > FIXES_LISTED ? ["…"] : [])].join("; ");
}

export interface WrongEvents {
  readonly wrong: number;
  readonly of: number;
  readonly rules: Readonly<Record<string, number>>;
}

/** How often an unsupported name arrived. `nearest` is the supported name that was probably meant. */
interface UnsupportedName {
  readonly count: number;
  readonly nearest?: string;
}

/**
 * Which supported events the app has sent, with which parameters, and which rules they broke. Each event name is in
 * exactly one of the first four lists (event-tracking-api 2.2).
 */
export interface Coverage {
  readonly summary: string;
  readonly neverSeen: readonly string[];
  readonly alwaysRight: Readonly<Record<string, number>>;
  readonly sometimesWrong: Readonly<Record<string, WrongEvents>>;
  readonly alwaysWrong: Readonly<Record<string, WrongEvents>>;
  readonly parametersNeverSeen: Readonly<Record<string, readonly string[]>>;
  readonly unsupported: Readonly<Record<string, UnsupportedName>>;
  /** How often events broke each rule, including rules that only cause warnings. */
  readonly rules: Readonly<Record<string, number>>;
}

interface Seen {
  count: number;
  wrong: number;
  readonly parameters: Map<string, number>;
  readonly platforms: Map<string, number>;
  readonly rules: Map<string, number>;
}

interface CountedEvents {
  /** The counts of each supported event that was received, in the order of the API document. */
  readonly seen: ReadonlyMap<string, Seen>;
  readonly unsupported: ReadonlyMap<string, number>;
  readonly rules: ReadonlyMap<string, number>;
}

const NAMES_LISTED = 10;
const RULES_LISTED = 3;
const LONGEST_NAME = 80;

const OWN_PARAMETERS = Object.entries<EventSpec>(EVENTS).map(
  ([name, { parameters }]) => [name, Object.keys(parameters)] as const,
);

/** Counts the received events, their parameters and the rules that they broke. */
export function countArrived(arrived: readonly (Arrived & { readonly verdict: string })[]): CountedEvents {
  const all = new Map(EVENT_NAMES.map((name) => [name, newSeen()] as const));
  const unsupported = new Map<string, number>();
  const rules = new Map<string, number>();
  const nearest = remembering(nearestName);
  for (const event of arrived) {
    const { body, verdict } = event;
    const findings = arrivedFindings(event, nearest);
    for (const { code } of findings) increase(rules, code);
    if (!isJsonObject(body) || typeof body.eventName !== "string") continue;
    const seen = all.get(body.eventName);
    if (seen === undefined) {
      increase(unsupported, body.eventName);
      continue;
    }
    seen.count += 1;
    for (const name of Object.keys(body)) increase(seen.parameters, name);
    increase(seen.platforms, typeof body.platform === "string" ? body.platform : NO_PLATFORM);
    if (verdict === "recorded") continue;
    seen.wrong += 1;
    const reasons = findings.filter(({ isDecisive }) => isDecisive);
    const names = reasons.map(({ code, path }) => `${code} ${path.replaceAll(/\[\d+\]/g, "[]")}`);
    for (const name of new Set(names)) increase(seen.rules, name);
  }
  return { seen: new Map([...all].filter(([, { count }]) => count > 0)), unsupported, rules };
}

function newSeen(): Seen {
  return { count: 0, wrong: 0, parameters: new Map(), platforms: new Map(), rules: new Map() };
}

/** Reports which events and parameters were received, which rules they broke, and which events were not recorded. */
export function coverageOf({ seen, unsupported, rules }: CountedEvents): Coverage {
  const events = [...seen];
  const right = events.filter(([, { wrong }]) => wrong === 0);
  const sometimes = events.filter(([, { wrong, count }]) => wrong > 0 && wrong < count);
  const always = events.filter(([, { wrong, count }]) => wrong === count);
  const unseen = events.map(([name, { parameters }]) => [name, unseenParameters(name, parameters)] as const);
  return {
    summary: [
      eventsSummary([right.length, sometimes.length, always.length]),
      parametersSummary(seen),
      `unsupported event names: ${unsupported.size}`,
    ].join("; "),
    neverSeen: EVENT_NAMES.filter((name) => !seen.has(name)),
    alwaysRight: Object.fromEntries(right.map(([name, { count }]) => [name, count])),
    sometimesWrong: Object.fromEntries(sometimes.map(wrongOf)),
    alwaysWrong: Object.fromEntries(always.map(wrongOf)),
    parametersNeverSeen: Object.fromEntries(unseen.filter(([, names]) => names.length > 0)),
    unsupported: Object.fromEntries(mostFrequent(unsupported, NAMES_LISTED).map(unsupportedName)),
    rules: Object.fromEntries(rules),
  };
}

function wrongOf([name, { wrong, count, rules }]: readonly [string, Seen]): readonly [string, WrongEvents] {
  return [name, { wrong, of: count, rules: Object.fromEntries(mostFrequent(rules, RULES_LISTED).map(cutName)) }];
}

function unseenParameters(eventName: string, parameters: ReadonlyMap<string, number>): readonly string[] {
  return EVENT_SHAPES.get(eventName)?.names.filter((name) => !parameters.has(name)) ?? [];
}

function unsupportedName([name, count]: readonly [string, number]): readonly [string, UnsupportedName] {
  const nearest = nearestName(name, EVENT_NAMES);
  return cutName([name, nearest === undefined ? { count } : { count, nearest }]);
}

function eventsSummary([right, sometimes, always]: readonly [number, number, number]): string {
  const states = [
    right > 0 && `${right} always recorded`,
    sometimes > 0 && `${sometimes} sometimes not recorded`,
    always > 0 && `${always} never recorded`,
  ].filter((part) => part !== false);
  const seen = `${right + sometimes + always} of ${EVENT_NAMES.length} events seen`;
  return states.length === 0 ? seen : `${seen}: ${states.join(", ")}`;
}

function parametersSummary(seen: ReadonlyMap<string, Seen>): string {
  const all = OWN_PARAMETERS.flatMap(([eventName, names]) => names.map((name) => ({ eventName, name })));
  const touched = all.filter(({ eventName, name }) => seen.get(eventName)?.parameters.has(name));
  return `${touched.length} of ${all.length} parameters`;
}

function cutName<Value>([name, value]: readonly [string, Value]): readonly [string, Value] {
  return [cutText(name, LONGEST_NAME), value];
}

function increase<Key>(counts: Map<Key, number>, key: Key, by = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}

function mostFrequent(counts: ReadonlyMap<string, number>, most?: number): readonly (readonly [string, number])[] {
  return [...counts].toSorted(([, one], [, other]) => other - one).slice(0, most);
}

export interface EventCoverage {
  readonly eventName: string;
  readonly count: number;
  readonly wrong?: number;
  /** The number of events with each parameter, even if it is 0. Empty if no event with this name was received. */
  readonly parameters: Readonly<Record<string, number>>;
  /** Counts for `(none)`, the three platforms most frequent in all events, and `(others)`. Absent without platforms. */
  readonly byPlatform?: Readonly<Record<string, number>>;
}

const PLATFORMS_LISTED = 3;
const LONGEST_PLATFORM = 8;
const NO_PLATFORM = "(none)";
const OTHER_PLATFORMS = "(others)";
/** Fields that the report does not list as parameters: all events have them, or they are counted separately. */
const SEPARATE_FIELDS: ReadonlySet<string> = new Set(["uid", "eventName", "platform"]);

/** Reports the coverage of each of the 13 supported events, in the order of the document (event-tracking-api 2.2). */
export function eventCoverageOf({ seen }: CountedEvents): readonly EventCoverage[] {
  const common = commonPlatforms([...seen.values()]);
  return EVENT_NAMES.map((eventName) => {
    const { count, wrong, parameters, platforms } = seen.get(eventName) ?? newSeen();
    const names = count === 0 ? [] : (EVENT_SHAPES.get(eventName)?.names ?? []);
    const own = names.filter((name) => !SEPARATE_FIELDS.has(name));
    const isOnAny = [...platforms.keys()].some((name) => name !== NO_PLATFORM);
    return {
      eventName,
      count,
      ...(wrong > 0 && { wrong }),
      parameters: Object.fromEntries(own.map((name) => [name, parameters.get(name) ?? 0])),
      ...(isOnAny && { byPlatform: platformCounts(platforms, common) }),
    };
  });
}

/** Returns `(none)` and the most frequent platforms of all events. Only these are counted by name for each event. */
function commonPlatforms(events: readonly Seen[]): ReadonlySet<string> {
  const all = new Map<string, number>();
  for (const { platforms } of events) for (const [name, count] of platforms) increase(all, name, count);
  all.delete(NO_PLATFORM);
  return new Set([NO_PLATFORM, ...mostFrequent(all, PLATFORMS_LISTED).map(([name]) => name)]);
}

function platformCounts(
  counts: ReadonlyMap<string, number>,
  common: ReadonlySet<string>,
): Readonly<Record<string, number>> {
  const short = new Map<string, number>();
  for (const [name, count] of counts) {
    increase(short, common.has(name) ? [...name].slice(0, LONGEST_PLATFORM).join("") : OTHER_PLATFORMS, count);
  }
  return Object.fromEntries(mostFrequent(short));
}
