import {
  EVENT_FIELDS,
  EVENTS,
  type EventName,
  type EventSpec,
  ITEM_FIELDS,
  type Parameter,
} from "../../spec/events.ts";
import { EVENT_LIMITS } from "../../spec/limits.ts";
import type { RuleName } from "../check/rules.ts";
import { sampleParameters } from "./sample-values.ts";
import type { CaseKind } from "./suite.ts";

type Body = Readonly<Record<string, unknown>>;

/** A case before it gets its verdict: what is sent, and the rule that decides, if any. */
export interface CaseDraft {
  /** What tells the case from the others of its event and kind, e.g. the parameter; words separated by hyphens. */
  readonly about: string;
  readonly title: string;
  readonly rule?: RuleName;
  readonly body: Body;
}

/** An event under test, with samples to vary. */
export interface Subject {
  readonly eventName: EventName;
  readonly parameters: Readonly<Record<string, Parameter>>;
  /** The event with what it needs, and one item where it takes items. */
  readonly minimal: Body;
  /** The event with every parameter. */
  readonly full: Body;
}

/** A multi-byte character that is one UTF-16 unit, and one that is two. */
const WIDE = "가";
const WIDER = "😀";

const STRING_LIMIT = EVENT_LIMITS.stringLength.value;
const ITEM_LIMIT = EVENT_LIMITS.items.value;
const NAME_LIMIT = EVENT_LIMITS.eventNameLength.value;

/** Makes the samples of an event for one user. */
export function subjectOf(eventName: EventName, uid: string, seed: number): Subject {
  const { parameters }: EventSpec = EVENTS[eventName];
  const sample = sampleParameters(parameters, seed);
  const needed = Object.entries(sample).filter(([name]) => parameters[name]?.required);
  const minimal: Record<string, unknown> = { uid, eventName, ...Object.fromEntries(needed) };
  if (parameters.items !== undefined) minimal.items = [{ item_id: "item-1" }];
  return { eventName, parameters, minimal, full: { uid, eventName, platform: "web", ...sample } };
}

/** The cases of each kind for one event (event-tracking-api 2.2, 2.3, 7, 8). Sequences span events and stand apart. */
export const KIND_CASES: Readonly<Record<Exclude<CaseKind, "sequence">, (subject: Subject) => readonly CaseDraft[]>> = {
  minimal: ({ minimal }) => [{ about: "required", title: "only what is required", body: minimal }],
  full: ({ full }) => [{ about: "all", title: "every parameter", body: full }],
  missing: missingCases,
  limit: limitCases,
  type: typeCases,
  unknown: ({ minimal }) => [
    {
      about: "parameter",
      title: "a parameter that no event defines",
      rule: "unknownParameter",
      body: { ...minimal, not_a_parameter: "x" },
    },
  ],
  misspelt: misspeltCases,
  item: itemCases,
};

function missingCases({ parameters, minimal }: Subject): readonly CaseDraft[] {
  const own = requiredNames(parameters).flatMap((name): CaseDraft[] => [
    { about: name, title: `without ${name}`, rule: "requiredMissing", body: without(minimal, name) },
    { about: `${name}-null`, title: `${name} null`, rule: "requiredNull", body: { ...minimal, [name]: null } },
    ...(parameters[name]?.type === "string"
      ? [
          {
            about: `${name}-empty`,
            title: `${name} empty`,
            rule: "requiredEmpty" as const,
            body: { ...minimal, [name]: "" },
          },
        ]
      : []),
  ]);
  return [
    ...own,
    { about: "uid", title: "without uid", rule: "uidMissing", body: without(minimal, "uid") },
    { about: "eventName", title: "without eventName", rule: "eventNameMissing", body: without(minimal, "eventName") },
    { about: "eventName-empty", title: "eventName empty", rule: "eventNameEmpty", body: { ...minimal, eventName: "" } },
  ];
}

function limitCases({ parameters, minimal }: Subject): readonly CaseDraft[] {
  const strings = ["uid", "platform", ...namesOf(parameters, "string")];
  const edge = (name: string, length: number, rule?: RuleName): CaseDraft => ({
    about: `${name}-${length}`,
    title: `${name} of ${length} multi-byte characters`,
    ...(rule && { rule }),
    body: { ...minimal, [name]: WIDE.repeat(length) },
  });
  const name = (length: number, rule: RuleName): CaseDraft => ({
    about: `eventName-${length}`,
    title: `eventName of ${length} characters`,
    rule,
    body: { ...minimal, eventName: "x".repeat(length) },
  });
  return [
    ...strings.flatMap((string) => [edge(string, STRING_LIMIT), edge(string, STRING_LIMIT + 1, "stringTooLong")]),
    name(NAME_LIMIT, "eventNameUnsupported"),
    name(NAME_LIMIT + 1, "eventNameTooLong"),
    {
      about: "platform-units",
      title: `platform of ${STRING_LIMIT} characters in twice as many UTF-16 units`,
      rule: "lengthUnclear",
      body: { ...minimal, platform: WIDER.repeat(STRING_LIMIT) },
    },
    ...(parameters.items === undefined ? [] : itemLimitCases(minimal)),
  ];
}

function itemLimitCases(minimal: Body): readonly CaseDraft[] {
  const count = (items: number, rule?: RuleName): CaseDraft => ({
    about: `items-${items}`,
    title: `${items} items`,
    ...(rule && { rule }),
    body: { ...minimal, items: itemsWithId(items) },
  });
  const strings = namesOf(ITEM_FIELDS, "string").map(
    (name): CaseDraft => ({
      about: `items-${name}-${STRING_LIMIT + 1}`,
      title: `${name} of an item of ${STRING_LIMIT + 1} multi-byte characters`,
      rule: "stringTooLong",
      body: { ...minimal, items: [{ item_id: "item-1", [name]: WIDE.repeat(STRING_LIMIT + 1) }] },
    }),
  );
  return [count(ITEM_LIMIT), count(ITEM_LIMIT + 1, "tooManyItems"), ...strings];
}

function typeCases({ parameters, minimal }: Subject): readonly CaseDraft[] {
  const wrong = (name: string, { type }: Parameter): unknown =>
    type === "string" ? 7 : type === "number" ? "7" : { item_id: name };
  const own = Object.entries({ platform: EVENT_FIELDS.platform, ...parameters }).map(
    ([name, parameter]): CaseDraft => ({
      about: name,
      title: `${name} of the wrong type`,
      rule: "wrongType",
      body: { ...minimal, [name]: wrong(name, parameter) },
    }),
  );
  const ofItems = Object.entries(parameters.items === undefined ? {} : ITEM_FIELDS).map(
    ([name, parameter]): CaseDraft => ({
      about: `items-${name}`,
      title: `${name} of an item of the wrong type`,
      rule: "wrongType",
      body: { ...minimal, items: [{ item_id: "item-1", [name]: wrong(name, parameter) }] },
    }),
  );
  return [
    ...own,
    ...ofItems,
    { about: "uid", title: "uid a number", rule: "uidNotString", body: { ...minimal, uid: 7 } },
    { about: "eventName", title: "eventName a number", rule: "eventNameNotString", body: { ...minimal, eventName: 7 } },
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
  const names = Object.entries(wrongNames).map(
    ([about, name]): CaseDraft => ({
      about: `eventName-${about}`,
      title: `eventName written ${name}`,
      rule: "eventNameUnsupported",
      body: { ...minimal, eventName: name },
    }),
  );
  const own = Object.entries(parameters).flatMap(([name, { required }]): CaseDraft[] =>
    [camel(name), `${name}s`, name.toUpperCase()]
      .filter((written) => written !== name)
      .map((written) => ({
        about: `${name}-${written}`,
        title: `${name} written ${written}`,
        rule: required ? "requiredMissing" : "unknownParameter",
        body: { ...without(minimal, name), [written]: full[name] },
      })),
  );
  return [...names, ...own];
}

function itemCases({ parameters, minimal }: Subject): readonly CaseDraft[] {
  if (parameters.items === undefined) {
    const body = { ...minimal, items: itemsWithId(1) };
    return [{ about: "unused", title: "items on an event that takes none", rule: "itemsUnused", body }];
  }
  const nameless = Object.entries({ first: 0, middle: 2, last: 4 }).map(
    ([place, position]): CaseDraft => ({
      about: place,
      title: `the ${place} item without item_id`,
      rule: "requiredMissing",
      body: { ...minimal, items: itemsWithId(5).with(position, { item_name: "mug" }) },
    }),
  );
  return [
    ...nameless,
    { about: "none", title: "without items", rule: "itemsMissing", body: without(minimal, "items") },
    { about: "empty", title: "with an empty list of items", rule: "itemsMissing", body: { ...minimal, items: [] } },
  ];
}

function requiredNames(parameters: Readonly<Record<string, Parameter>>): readonly string[] {
  return Object.keys(parameters).filter((name) => parameters[name]?.required);
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
