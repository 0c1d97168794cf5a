import { isJsonObject } from "../platform/json.ts";
import { EVENT_FIELDS, EVENTS, type EventSpec, ITEM_FIELDS, isEventName, type Parameter } from "../spec/events.ts";
import { EVENT_LIMITS } from "../spec/limits.ts";
import { codePoints } from "../spec/names.ts";

/** What the service does with an event; it answers a rejected one with `!invalid` (event-tracking-api 7). */
export type Verdict = "recorded" | "ignored" | "rejected";

/** A broken rule. `effect` is the verdict because of this rule alone. Events with `uncertain` findings are recorded. */
export interface Finding {
  /** Such as `items.2.item_id`; empty for the whole body. */
  readonly path: string;
  readonly rule: FindingRule;
  readonly effect: "rejected" | "ignored" | "uncertain" | "unused";
}

/** The effect of breaking each rule (event-tracking-api 7, 8; some are assumed). */
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

/** Checks for `uid` and `eventName`, which every event needs (event-tracking-api 2.1). */
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

/** Finds strings of more than 1,024 characters and more than 100 items (event-tracking-api 8). */
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

/** Returns a field of an object, but never an inherited property such as `constructor`. */
function ownField(fields: Fields, key: string): unknown {
  return Object.hasOwn(fields, key) ? fields[key] : undefined;
}
