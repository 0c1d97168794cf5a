import { type EventName, isEventName } from "../../spec/events.ts";
import { EVENT_NAMES } from "../check/catalogue.ts";
import { UnsupportedEventError } from "../check/event-types.ts";
import { RULES, type Rule } from "../check/rules.ts";
import { type CaseDraft, KIND_CASES, subjectOf } from "./case-kinds.ts";
import { CASE_KINDS, type CaseKind, type EventCase, type EventSuite, TEST_UID_PREFIX } from "./suite.ts";

/** What a generated suite is to hold. */
export interface SuiteChoice {
  /** All 13 where absent. */
  readonly eventNames?: readonly string[] | undefined;
  /** All kinds where absent. */
  readonly kinds?: readonly CaseKind[] | undefined;
  /** The user of every event; made from the seed where absent. */
  readonly uid?: string | undefined;
  /** An integer from 0 to 2^32 - 1; 1 where absent. */
  readonly seed?: number | undefined;
}

/** The ways through an application that a suite walks as one user. */
const SEQUENCES: readonly {
  readonly about: string;
  readonly title: string;
  readonly eventNames: readonly EventName[];
}[] = [
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
];

/**
 * Generates tests for events (event-tracking-api 2, 7, 8): the same suite for the same choice.
 * Throws an UnsupportedEventError when an event name is not supported.
 */
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
