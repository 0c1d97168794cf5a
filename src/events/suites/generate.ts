import {
  EVENT_FIELDS,
  EVENTS,
  type EventName,
  type EventSpec,
  ITEM_FIELDS,
  isEventName,
  type Parameter,
} from "../../spec/events.ts";
import { EVENT_LIMITS } from "../../spec/limits.ts";
import { EVENT_NAMES, RULES, type Rule, type RuleName } from "../catalogue.ts";
import { UnsupportedEventError } from "../event-types.ts";
import { CASE_KINDS, type CaseKind, type EventCase, type EventSuite, TEST_UID_PREFIX } from "./suite.ts";

interface SuiteChoice {
  readonly eventNames?: readonly string[] | undefined;
  readonly kinds?: readonly CaseKind[] | undefined;
  readonly uid?: string | undefined;
  /** The seed of the random values, an integer from 0 to 2^32 - 1. Default: 1. */
  readonly seed?: number | undefined;
}

const SEQUENCES = [
  {
    about: "sale",
    title: "a sale from the first look to the purchase",
    eventNames: ["view_item", "add_to_cart", "begin_checkout", "purchase"],
  },
  {
    about: "lead",
    title: "a lead form from its page to its submission",
    eventNames: ["view_content", "begin_lead_form", "generate_lead"],
  },
] as const;

/** The events of each sequence. A suite contains a sequence only if all of its events are chosen. */
export const SEQUENCE_EVENTS = SEQUENCES.map(({ eventNames }) => eventNames);

/** Generates tests (event-tracking-api 2, 7, 8). Equal choices give equal tests. Throws an UnsupportedEventError. */
export function generateEventTests(choice: SuiteChoice = {}): EventSuite {
  const seed = choice.seed ?? 1;
  const uid = choice.uid ?? `${TEST_UID_PREFIX}${seed.toString(36)}`;
  const kinds = CASE_KINDS.filter((kind) => choice.kinds?.includes(kind) ?? true);
  const eventNames = chosenNames(choice.eventNames ?? EVENT_NAMES);
  const cases: EventCase[] = [];
  for (const eventName of eventNames) {
    const subject = subjectOf(eventName, uid, seed);
    for (const kind of kinds) {
      if (kind === "sequence") continue;
      for (const draft of KIND_CASES[kind](subject))
        cases.push({ ...judged(eventName, kind, draft), kind, body: draft.body });
    }
  }
  if (kinds.includes("sequence")) cases.push(...sequences(eventNames, uid, seed));
  return { seed, uid, cases };
}

function chosenNames(names: readonly string[]): readonly EventName[] {
  return [...new Set(names)].map((name) => {
    if (isEventName(name)) return name;
    throw new UnsupportedEventError(name);
  });
}

function judged(
  eventName: EventName,
  kind: CaseKind,
  { about, title, rule }: CaseDraft,
): Omit<EventCase, "kind" | "body"> {
  const named = { id: `${eventName}/${kind}/${about}`, title: `${eventName}: ${title}` };
  if (rule === undefined) return { ...named, expected: "recorded", basis: "documented" };
  const { verdict, basis }: Rule = RULES[rule];
  return { ...named, expected: verdict ?? "recorded", basis, rule };
}

function sequences(eventNames: readonly EventName[], uid: string, seed: number): readonly EventCase[] {
  return SEQUENCES.filter((sequence) => sequence.eventNames.every((name) => eventNames.includes(name))).map(
    ({ about, title, eventNames: names }) => ({
      id: `sequence/${about}`,
      title,
      kind: "sequence",
      expected: "recorded",
      basis: "documented",
      events: names.map((name) => subjectOf(name, uid, seed).full),
    }),
  );
}

type Body = Readonly<Record<string, unknown>>;

/** A test case without its expected verdict, which is determined later. `rule` is the rule that its event breaks. */
interface CaseDraft {
  /** The last part of the case's ID, with hyphens between words. */
  readonly about: string;
  readonly title: string;
  readonly rule?: RuleName;
  readonly body: Body;
}

interface Subject {
  readonly eventName: EventName;
  readonly parameters: Readonly<Record<string, Parameter>>;
  /** The event with only its required parameters, and one item if it has `items`. */
  readonly minimal: Body;
  readonly full: Body;
}

/** Characters of one UTF-16 unit and of two. The API document does not say whether its limits count units. */
const WIDE = "가";
const WIDER = "😀";

const STRING_LIMIT = EVENT_LIMITS.stringLength.value;
const ITEM_LIMIT = EVENT_LIMITS.items.value;
const NAME_LIMIT = EVENT_LIMITS.eventNameLength.value;

function subjectOf(eventName: EventName, uid: string, seed: number): Subject {
  const { parameters }: EventSpec = EVENTS[eventName];
  const sample = sampleParameters(parameters, seed);
  const needed = Object.entries(sample).filter(([name]) => parameters[name]?.required);
  const minimal: Record<string, unknown> = { uid, eventName, ...Object.fromEntries(needed) };
  if (parameters.items !== undefined) minimal.items = [{ item_id: "item-1" }];
  return { eventName, parameters, minimal, full: { uid, eventName, platform: "web", ...sample } };
}

function draft(about: string, title: string, body: Body, rule?: RuleName): CaseDraft {
  return { about, title, body, ...(rule && { rule }) };
}

/**
 * For each kind of case, creates the cases of one event (event-tracking-api 2.2, 2.3, 7, 8). Cases of the kind
 * `sequence` are created elsewhere, because they have several events.
 */
const KIND_CASES: Readonly<Record<Exclude<CaseKind, "sequence">, (subject: Subject) => readonly CaseDraft[]>> = {
  minimal: ({ minimal }) => [draft("required", "only what is required", minimal)],
  full: ({ full }) => [draft("all", "every parameter", full)],
  missing: missingCases,
  limit: limitCases,
  type: typeCases,
  unknown: ({ minimal }) => [
    draft("parameter", "a parameter that no event defines", { ...minimal, not_a_parameter: "x" }, "unknownParameter"),
  ],
  misspelt: misspeltCases,
  item: itemCases,
};

function missingCases({ parameters, minimal }: Subject): readonly CaseDraft[] {
  const required = Object.keys(parameters).filter((name) => parameters[name]?.required);
  const own = required.flatMap((name) => [
    draft(name, `without ${name}`, without(minimal, name), "requiredMissing"),
    draft(`${name}-null`, `${name} null`, { ...minimal, [name]: null }, "requiredNull"),
    ...(parameters[name]?.type === "string"
      ? [draft(`${name}-empty`, `${name} empty`, { ...minimal, [name]: "" }, "requiredEmpty")]
      : []),
  ]);
  return [
    ...own,
    draft("uid", "without uid", without(minimal, "uid"), "uidMissing"),
    draft("eventName", "without eventName", without(minimal, "eventName"), "eventNameMissing"),
    draft("eventName-empty", "eventName empty", { ...minimal, eventName: "" }, "eventNameEmpty"),
  ];
}

function limitCases({ parameters, minimal }: Subject): readonly CaseDraft[] {
  const strings = ["uid", "platform", ...namesOf(parameters, "string")];
  const edge = (name: string, length: number, rule?: RuleName): CaseDraft => {
    const body = { ...minimal, [name]: WIDE.repeat(length) };
    return draft(`${name}-${length}`, `${name} of ${length} multi-byte characters`, body, rule);
  };
  const name = (length: number, rule: RuleName): CaseDraft => {
    const body = { ...minimal, eventName: "x".repeat(length) };
    return draft(`eventName-${length}`, `eventName of ${length} characters`, body, rule);
  };
  return [
    ...strings.flatMap((string) => [edge(string, STRING_LIMIT), edge(string, STRING_LIMIT + 1, "stringTooLong")]),
    name(NAME_LIMIT, "eventNameUnsupported"),
    name(NAME_LIMIT + 1, "eventNameTooLong"),
    draft(
      "platform-units",
      `platform of ${STRING_LIMIT} characters in twice as many UTF-16 units`,
      { ...minimal, platform: WIDER.repeat(STRING_LIMIT) },
      "lengthUnclear",
    ),
    ...(parameters.items === undefined ? [] : itemLimitCases(minimal)),
  ];
}

function itemLimitCases(minimal: Body): readonly CaseDraft[] {
  const count = (items: number, rule?: RuleName): CaseDraft =>
    draft(`items-${items}`, `${items} items`, { ...minimal, items: itemsWithId(items) }, rule);
  const length = STRING_LIMIT + 1;
  const strings = namesOf(ITEM_FIELDS, "string").map((name) => {
    const body = withItem(minimal, name, WIDE.repeat(length));
    return draft(
      `items-${name}-${length}`,
      `item with ${name} of ${length} multi-byte characters`,
      body,
      "stringTooLong",
    );
  });
  return [count(ITEM_LIMIT), count(ITEM_LIMIT + 1, "tooManyItems"), ...strings];
}

function typeCases({ parameters, minimal }: Subject): readonly CaseDraft[] {
  const wrong = (name: string, { type }: Parameter): unknown =>
    type === "string" ? 7 : type === "number" ? "7" : { item_id: name };
  const own = Object.entries({ platform: EVENT_FIELDS.platform, ...parameters }).map(([name, parameter]) =>
    draft(name, `${name} of the wrong type`, { ...minimal, [name]: wrong(name, parameter) }, "wrongType"),
  );
  const ofItems = Object.entries(parameters.items === undefined ? {} : ITEM_FIELDS).map(([name, parameter]) => {
    const body = withItem(minimal, name, wrong(name, parameter));
    return draft(`items-${name}`, `item with ${name} of the wrong type`, body, "wrongType");
  });
  return [
    ...own,
    ...ofItems,
    draft("uid", "uid a number", { ...minimal, uid: 7 }, "uidNotString"),
    draft("eventName", "eventName a number", { ...minimal, eventName: 7 }, "eventNameNotString"),
  ];
}

function misspeltCases({ eventName, parameters, minimal, full }: Subject): readonly CaseDraft[] {
  const wrongNames = {
    upper: eventName.toUpperCase(),
    capital: eventName.charAt(0).toUpperCase() + eventName.slice(1),
    camel: `${camel(eventName)}${eventName.includes("_") ? "" : "Event"}`,
    hyphen: `${eventName.replaceAll("_", "-")}-`,
    typo: eventName.slice(0, -1),
  };
  const names = Object.entries(wrongNames).map(([about, name]) =>
    draft(`eventName-${about}`, `eventName written ${name}`, { ...minimal, eventName: name }, "eventNameUnsupported"),
  );
  const own = Object.entries(parameters).flatMap(([name, { required }]) =>
    [camel(name), `${name}s`, name.toUpperCase()]
      .filter((written) => written !== name)
      .map((written) => {
        const body = { ...without(minimal, name), [written]: full[name] };
        const rule = required ? "requiredMissing" : "unknownParameter";
        return draft(`${name}-${written}`, `${name} written ${written}`, body, rule);
      }),
  );
  return [...names, ...own];
}

function itemCases({ parameters, minimal }: Subject): readonly CaseDraft[] {
  if (parameters.items === undefined) {
    const body = { ...minimal, items: itemsWithId(1) };
    return [draft("unused", "items on an event that takes none", body, "itemsUnused")];
  }
  const nameless = Object.entries({ first: 0, middle: 2, last: 4 }).map(([place, position]) => {
    const items = itemsWithId(5).with(position, { item_name: "mug" });
    return draft(place, `the ${place} item without item_id`, { ...minimal, items }, "requiredMissing");
  });
  return [
    ...nameless,
    draft("none", "without items", without(minimal, "items"), "itemsMissing"),
    draft("empty", "with an empty list of items", { ...minimal, items: [] }, "itemsMissing"),
  ];
}

function withItem(minimal: Body, name: string, value: unknown): Body {
  return { ...minimal, items: [{ item_id: "item-1", [name]: value }] };
}

function namesOf(parameters: Readonly<Record<string, Parameter>>, type: Parameter["type"]): readonly string[] {
  return Object.keys(parameters).filter((name) => parameters[name]?.type === type);
}

function itemsWithId(count: number): readonly Body[] {
  return Array.from({ length: count }, (_, index) => ({ item_id: `item-${index + 1}` }));
}

function without(event: Body, name: string): Body {
  return Object.fromEntries(Object.entries(event).filter(([other]) => other !== name));
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns a source of numbers from 0 up to, but not including, 1. The same seed gives the same numbers. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const WORDS = ["머그컵", "mug", "티셔츠", "shirt", "신발", "shoes"];
const CURRENCIES = ["KRW", "USD", "EUR", "JPY"];

/** Returns a sample value. It is the same in all events of a suite, so that a cart and a purchase share the item. */
function sampleValue(name: string, { type }: Parameter, seed: number): unknown {
  if (type === "items") return [sampleParameters(ITEM_FIELDS, seed), sampleParameters(ITEM_FIELDS, seed + 1)];
  const ownSeed = [...name].reduce((mixed, letter) => Math.imul(mixed, 31) + (letter.codePointAt(0) ?? 0), seed);
  const random = seededRandom(ownSeed);
  if (type === "number") return Math.floor(random() * 5) + 1;
  if (name === "currency") return pick(CURRENCIES, random);
  const code = Math.floor(random() * 36 ** 5).toString(36);
  if (name.endsWith("_url")) return `https://example.com/${code}`;
  return name.endsWith("_id") ? `${name}-${code}` : `${pick(WORDS, random)} ${code}`;
}

/** Returns a sample value for each parameter. `value` is `price` × `quantity`, if the event has all three. */
export function sampleParameters(
  parameters: Readonly<Record<string, Parameter>>,
  seed: number,
): Record<string, unknown> {
  const sample: Record<string, unknown> = Object.fromEntries(
    Object.entries(parameters).map(([name, parameter]) => [name, sampleValue(name, parameter, seed)]),
  );
  const { price, quantity, value } = sample;
  if (value !== undefined && typeof price === "number" && typeof quantity === "number") sample.value = price * quantity;
  return sample;
}

function pick(choices: readonly string[], random: () => number): string {
  return choices[Math.floor(random() * choices.length)] ?? "";
}
