import * as z from "zod";
import { isJsonObject } from "../platform/json.ts";
import { EVENT_FIELDS, EVENTS, type EventSpec, ITEM_FIELDS, isEventName, type Parameter } from "../spec/events.ts";
import { EVENT_LIMITS } from "../spec/limits.ts";
import { codePoints } from "../spec/names-and-contexts.ts";
import type { Operation } from "../spec/routes.ts";

/**
 * Creates a log of the newest entries: at most `most`, with `mostLetters` characters in all. The newest entry is always
 * kept. `lettersOf` returns the size of an entry in characters, which must not change.
 */
function newestEntries<Entry>(most: number, mostLetters: number, lettersOf: (entry: Entry) => number) {
  const entries = new Map<number, Entry>();
  let arrived = 0;
  let cleared = 0;
  let letters = 0;

  function dropOldest(): void {
    const oldest = arrived - entries.size + 1;
    const entry = entries.get(oldest);
    if (entry !== undefined) letters -= lettersOf(entry);
    entries.delete(oldest);
  }

  return {
    add(entry: Entry): void {
      arrived += 1;
      entries.set(arrived, entry);
      letters += lettersOf(entry);
      while (entries.size > most || (letters > mostLetters && entries.size > 1)) dropOldest();
    },
    clear(): void {
      entries.clear();
      cleared = arrived;
      letters = 0;
    },
    *newestFirst(): Iterable<Entry> {
      for (let number = arrived; number > arrived - entries.size; number -= 1) {
        const entry = entries.get(number);
        if (entry !== undefined) yield entry;
      }
    },
    /** Returns how many entries were removed to make room, since the start or the last `clear`. */
    dropped: () => arrived - cleared - entries.size,
    /** Returns an entry by its number, from 1. Undefined if the entry was removed. */
    at: (number: number): Entry | undefined => entries.get(number),
    /** Return the number of the newest entry, now and at the last `clear`. 0 if there was no entry. */
    newest: () => arrived,
    cleared: () => cleared,
  };
}

export interface RequestEntry {
  readonly at: string;
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  /** The status of the answer. Null before the answer, or if a fault prevented it. */
  status: number | null;
  /** Whether the request was applied, or the event recorded. Single items of a request may still have failed. */
  applied: boolean;
  fault?: string;
  readonly bytes: number;
  /** The length of `items` or `ids` in the body. Null for events, and if the body has neither or was not parsed. */
  items: number | null;
}

/** The maximum number of stored requests, and of characters in their paths, because a path can be long. */
const MAX_REQUESTS = 10_000;
const REQUEST_LETTERS = 2 * 1_048_576;

export type RequestJournal = ReturnType<typeof requestJournal>;

export function requestJournal() {
  const kept = newestEntries<RequestEntry>(MAX_REQUESTS, REQUEST_LETTERS, ({ path }) => path.length);
  return {
    ...kept,
    /** Returns the requests, the oldest first. `dropped`: how many older requests were removed to make room. */
    read: () => ({ requests: [...kept.newestFirst()].reverse(), dropped: kept.dropped() }),
  };
}

/** What the service does with an event. It answers a rejected one with `!invalid`, or with 401 for an unknown key. */
type Verdict = "recorded" | "ignored" | "rejected";

/**
 * A rule that an event breaks. `effect`: what happens to an event that breaks only this rule. `uncertain`: the
 * documents do not say, so the sandbox records it. `unused`: it is recorded, but the parameter has no effect.
 */
export interface Finding {
  /** The path of the field, such as `items.2.item_id` or `headers.authorization`. Empty for the whole body. */
  readonly path: string;
  readonly rule: FindingRule;
  readonly effect: "rejected" | "ignored" | "uncertain" | "unused";
}

/** What breaking each rule causes (event-tracking-api 7, 8). Some entries are assumed. */
const RULES = {
  notAnObject: "rejected",
  authorization: "rejected",
  uidMissing: "rejected",
  eventNameMissing: "rejected",
  eventNameLength: "rejected",
  stringTooLong: "rejected",
  tooManyItems: "rejected",
  unsupportedEvent: "ignored",
  requiredMissing: "ignored",
  requiredEmpty: "uncertain",
  wrongType: "uncertain",
  lengthDependsOnCounting: "uncertain",
  contentType: "uncertain",
  notAParameter: "unused",
} as const satisfies Record<string, Finding["effect"]>;
type FindingRule = keyof typeof RULES;

type Fields = Readonly<Record<string, unknown>>;

export function finding(path: string, rule: FindingRule): Finding {
  return { path, rule, effect: RULES[rule] };
}

export function verdictOf(findings: readonly Finding[]): Verdict {
  if (findings.some(({ effect }) => effect === "rejected")) return "rejected";
  return findings.some(({ effect }) => effect === "ignored") ? "ignored" : "recorded";
}

export function eventFindings(body: unknown): readonly Finding[] {
  if (!isJsonObject(body)) return [finding("", "notAnObject")];
  return [...commonFindings(body), ...lengthFindings(body), ...parameterFindings(body)];
}

/** Checks `uid` and `eventName`, which every event must have (event-tracking-api 2.1). */
function commonFindings(body: Fields): readonly Finding[] {
  const uid = ownField(body, "uid");
  const eventName = ownField(body, "eventName");
  return [
    ...(typeof uid === "string" ? [] : [finding("uid", "uidMissing")]),
    ...(uid === "" ? [finding("uid", "requiredEmpty")] : []),
    ...(typeof eventName === "string" ? nameFindings(eventName) : [finding("eventName", "eventNameMissing")]),
  ];
}

function nameFindings(eventName: string): readonly Finding[] {
  if (eventName === "") return [finding("eventName", "eventNameMissing")];
  const limit = EVENT_LIMITS.eventNameLength.value;
  if (codePoints(eventName) > limit) return [finding("eventName", "eventNameLength")];
  const counting = eventName.length > limit ? [finding("eventName", "lengthDependsOnCounting")] : [];
  return isEventName(eventName) ? counting : [...counting, finding("eventName", "unsupportedEvent")];
}

/** Finds over 100 items, and strings of over 1,024 characters in fields and items (event-tracking-api 8). */
function lengthFindings(body: Fields): readonly Finding[] {
  const items = ownField(body, "items");
  const list: readonly unknown[] = Array.isArray(items) ? items : [];
  return [
    ...(list.length > EVENT_LIMITS.items.value ? [finding("items", "tooManyItems")] : []),
    ...longStrings(body, ""),
    ...list.flatMap((item, index) => (isJsonObject(item) ? longStrings(item, `items.${index}.`) : [])),
  ];
}

function longStrings(fields: Fields, prefix: string): readonly Finding[] {
  const limit = EVENT_LIMITS.stringLength.value;
  return Object.entries(fields).flatMap(([key, value]) => {
    if (typeof value !== "string" || value.length <= limit) return [];
    if (prefix === "" && key === "eventName") return [];
    return [finding(prefix + key, codePoints(value) > limit ? "stringTooLong" : "lengthDependsOnCounting")];
  });
}

/** Checks the parameters of the event (event-tracking-api 2.2) and the entries of its `items` (2.3). */
function parameterFindings(body: Fields): readonly Finding[] {
  const eventName = ownField(body, "eventName");
  if (typeof eventName !== "string" || !isEventName(eventName)) return [];
  const event: EventSpec = EVENTS[eventName];
  const common = [typeFinding("platform", ownField(body, "platform"), EVENT_FIELDS.platform)].flat();
  const items = ownField(body, "items");
  const entries: readonly unknown[] = Object.hasOwn(event.parameters, "items") && Array.isArray(items) ? items : [];
  return [
    ...common,
    ...fieldFindings(body, "", event.parameters, Object.keys(EVENT_FIELDS)),
    ...entries.flatMap((item, index) =>
      isJsonObject(item)
        ? fieldFindings(item, `items.${index}.`, ITEM_FIELDS, [])
        : [finding(`items.${index}.item_id`, "requiredMissing")],
    ),
  ];
}

function fieldFindings(
  fields: Fields,
  prefix: string,
  parameters: Readonly<Record<string, Parameter>>,
  known: readonly string[],
): readonly Finding[] {
  const defined = Object.entries(parameters).flatMap(([name, parameter]) => {
    const value = ownField(fields, name);
    const path = prefix + name;
    if (value === undefined || value === null) return parameter.required ? [finding(path, "requiredMissing")] : [];
    if (parameter.required && value === "") return [finding(path, "requiredEmpty")];
    return typeFinding(path, value, parameter);
  });
  const unused = Object.keys(fields).filter((key) => !Object.hasOwn(parameters, key) && !known.includes(key));
  return [...defined, ...unused.map((key) => finding(prefix + key, "notAParameter"))];
}

function typeFinding(path: string, value: unknown, { type }: Parameter): readonly Finding[] {
  if (value === undefined || value === null) return [];
  const fits = type === "items" ? Array.isArray(value) : typeof value === type;
  return fits ? [] : [finding(path, "wrongType")];
}

/** Returns an own field of an object, never an inherited property such as `constructor`. */
function ownField(fields: Fields, key: string): unknown {
  return Object.hasOwn(fields, key) ? fields[key] : undefined;
}

export interface ArrivedEvent {
  readonly at: string;
  readonly verdict: Verdict;
  readonly findings: readonly Finding[];
  readonly uid: string | null;
  readonly eventName: string | null;
  readonly text: string;
  readonly isJson: boolean;
  readonly forwarded?: { readonly status: number; readonly message: string };
}

const MAX_EVENTS = 100_000;
const EVENT_LETTERS = 64 * 1_048_576;
const LETTERS_OF_FINDING = 128;

export type EventLog = ReturnType<typeof eventLog>;

type EventFilter = Omit<z.output<typeof eventQuery>, "limit">;

/** Creates the log of the newest events: at most 100,000, with 64 Mi characters. Calls `changed` when events change. */
export function eventLog(changed: () => void = () => undefined) {
  const kept = newestEntries(MAX_EVENTS, EVENT_LETTERS, lettersOf);
  let counts = NONE;
  let unknownPaths: UnknownPaths | undefined;
  return {
    ...kept,
    unknownPaths: () => unknownPaths,
    /** Counts a request to a path that neither API has. It may be an event that was sent to the wrong address. */
    addUnknownPath(at: string, path: string): void {
      // A copy of the path: the original text would keep the whole request line in memory.
      const copy = Buffer.from(path.slice(0, LONGEST_PATH)).toString("utf8");
      unknownPaths = { count: (unknownPaths?.count ?? 0) + 1, newest: { at, path: copy } };
    },
    add(event: ArrivedEvent): void {
      kept.add(event);
      counts = { ...counts, [event.verdict]: counts[event.verdict] + 1 };
      changed();
    },
    clear(): void {
      kept.clear();
      counts = NONE;
      unknownPaths = undefined;
      changed();
    },
    /** Returns the newest matching events, at most `limit`, the oldest first. `total`: how many match in all. */
    read(filter: EventFilter, limit: number) {
      const newestFirst: ArrivedEvent[] = [];
      let total = 0;
      for (const event of kept.newestFirst()) {
        if (!matches(event, filter)) continue;
        total += 1;
        if (newestFirst.length < limit) newestFirst.push(event);
      }
      return { events: newestFirst.reverse(), total, dropped: kept.dropped() };
    },
    counts: () => counts,
  };
}

const LONGEST_PATH = 200;

interface UnknownPaths {
  readonly count: number;
  readonly newest: { readonly at: string; readonly path: string };
}

const NONE: Readonly<Record<Verdict, number>> = { recorded: 0, ignored: 0, rejected: 0 };

function lettersOf({ text, findings }: ArrivedEvent): number {
  return text.length + findings.length * LETTERS_OF_FINDING;
}

function matches(event: ArrivedEvent, { verdict, eventName, uid, since }: EventFilter): boolean {
  return (
    (verdict === undefined || event.verdict === verdict) &&
    (eventName === undefined || event.eventName === eventName) &&
    (uid === undefined || event.uid === uid) &&
    (since === undefined || Date.parse(event.at) >= since)
  );
}

/** The maximum number of characters of all bodies and findings in an answer. Further bodies are omitted. */
const LETTERS_SHOWN = 16 * 1_048_576;
const LETTERS_OF_FINDING_IN_PAGE = 100;
const FINDINGS_SHOWN = 3;

const instant = z
  .string()
  .transform((text) => (/^\d+$/.test(text) ? Number(text) : Date.parse(text)))
  .refine((time) => Number.isFinite(time), { error: "must be an ISO 8601 time or milliseconds since 1970" });

export const eventQuery = z.strictObject({
  verdict: z.enum(["recorded", "ignored", "rejected"]).optional(),
  eventName: z.string().optional(),
  uid: z.string().optional(),
  since: instant.optional(),
  limit: z.coerce.number().int().min(0).max(100_000).default(100),
});

/** Returns the newest matching events as JSON text, the oldest first. Their bodies are as they were received. */
export function eventPage(log: EventLog, { limit, ...filter }: z.output<typeof eventQuery>): string {
  const { events, total, dropped } = log.read(filter, limit);
  let letters = 0;
  const shown = events
    .toReversed()
    .map((event) => {
      letters += event.text.length + event.findings.length * LETTERS_OF_FINDING_IN_PAGE;
      return eventText(event, letters <= LETTERS_SHOWN);
    })
    .reverse();
  const rest = JSON.stringify({ total, dropped, unknownPaths: log.unknownPaths() });
  return `{"events":[${shown.join(",")}],${rest.slice(1)}`;
}

function eventText({ text, isJson, ...event }: ArrivedEvent, withBody: boolean): string {
  const findings = withBody ? event.findings : event.findings.slice(0, FINDINGS_SHOWN);
  const head = JSON.stringify({ ...event, findings, bytes: Buffer.byteLength(text, "utf8") }).slice(0, -1);
  if (!withBody) return `${head}}`;
  return isJson ? `${head},"body":${text}}` : `${head},"text":${JSON.stringify(text)}}`;
}

const FINDINGS_KEPT = 100;

/** Creates an entry of the event log. `body` is the parsed `text`; undefined if the text is not JSON. */
export function arrivedEvent({
  at,
  text,
  body,
  findings,
}: Pick<ArrivedEvent, "at" | "text" | "findings"> & { readonly body: unknown }): ArrivedEvent {
  const { uid, eventName } = isJsonObject(body) ? body : {};
  return {
    at,
    verdict: verdictOf(findings),
    findings: findings.slice(0, FINDINGS_KEPT),
    uid: identity(uid),
    eventName: identity(eventName),
    text,
    isJson: body !== undefined,
  };
}

/** Returns a value of an event for searches, such as its `uid`. Null if it is no text or too long. */
function identity(value: unknown): string | null {
  return typeof value === "string" && value.length <= 2048 ? value : null;
}
