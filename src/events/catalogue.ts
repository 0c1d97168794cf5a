import { EVENT_FIELDS, EVENTS, type EventSpec, ITEM_FIELDS, type Parameter } from "../spec/events.ts";

/** A set of named parameters, laid out for fast checks. */
export interface Shape {
  readonly parameters: ReadonlyMap<string, Parameter>;
  readonly required: readonly string[];
  readonly names: readonly string[];
}

function shapeOf(parameters: Readonly<Record<string, Parameter>>): Shape {
  const entries = Object.entries(parameters);
  return {
    parameters: new Map(entries),
    required: entries.filter(([, { required }]) => required).map(([name]) => name),
    names: entries.map(([name]) => name),
  };
}

const entries: readonly (readonly [string, EventSpec])[] = Object.entries(EVENTS);

/** The names of the supported events, in the order of the document (event-tracking-api 2.2). */
export const EVENT_NAMES: readonly string[] = entries.map(([name]) => name);

/** Every supported event with its fields, those of 2.1 last (event-tracking-api 2.1, 2.2). */
export const EVENT_SHAPES: ReadonlyMap<string, Shape> = new Map(
  entries.map(([name, { parameters }]) => [name, shapeOf({ ...parameters, ...EVENT_FIELDS })]),
);

/** The fields of an entry of `items` (event-tracking-api 2.3). */
export const ITEM_SHAPE: Shape = shapeOf(ITEM_FIELDS);

/** The fields that any event may have, whatever its name (event-tracking-api 2.1). */
export const COMMON_SHAPE: Shape = shapeOf(EVENT_FIELDS);

/** Whether a value is a JSON object: no array, not null. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What becomes of an event: kept, silently dropped, refused with `!invalid`, or not to be told from the documents. */
export type Verdict = "recorded" | "ignored" | "rejected" | "uncertain";

/** Whether the document states what a rule says, we assume it, or nothing can be said. */
export type RuleBasis = "documented" | "assumed" | "notShown";

/** The same in words. */
export const BASIS_WORDS = {
  documented: "documented",
  assumed: "assumed",
  notShown: "not shown in the documents",
} as const satisfies Record<RuleBasis, string>;

/** One rule of the event API: what breaking it leads to, and how we know. */
export interface Rule {
  /** The verdict of an event that breaks it; absent where the rule says nothing about the verdict. */
  readonly verdict?: Verdict;
  readonly basis: RuleBasis;
  /** The section of event-tracking-api that states or comes nearest to the rule. */
  readonly section: string;
}

/** Every rule that the validator knows, by its stable short name (event-tracking-api 2, 7, 8, and the assumptions). */
export const RULES = {
  bodyNotObject: { verdict: "rejected", basis: "assumed", section: "2.1" },
  uidMissing: { verdict: "rejected", basis: "assumed", section: "2.1" },
  uidNotString: { verdict: "rejected", basis: "assumed", section: "2.1" },
  eventNameMissing: { verdict: "rejected", basis: "assumed", section: "2.1" },
  eventNameNotString: { verdict: "rejected", basis: "assumed", section: "2.1" },
  eventNameEmpty: { verdict: "rejected", basis: "assumed", section: "8" },
  eventNameTooLong: { verdict: "rejected", basis: "assumed", section: "8" },
  stringTooLong: { verdict: "rejected", basis: "assumed", section: "8" },
  tooManyItems: { verdict: "rejected", basis: "assumed", section: "8" },
  eventNameUnsupported: { verdict: "ignored", basis: "documented", section: "7" },
  requiredMissing: { verdict: "ignored", basis: "documented", section: "7" },
  requiredNull: { verdict: "ignored", basis: "assumed", section: "7" },
  entryNotObject: { verdict: "ignored", basis: "assumed", section: "2.3" },
  requiredEmpty: { verdict: "uncertain", basis: "notShown", section: "7" },
  wrongType: { verdict: "uncertain", basis: "notShown", section: "2.3" },
  lengthUnclear: { verdict: "uncertain", basis: "notShown", section: "8" },
  itemsMissing: { verdict: "recorded", basis: "assumed", section: "2.1" },
  itemsUnused: { verdict: "recorded", basis: "assumed", section: "4" },
  nullParameter: { verdict: "recorded", basis: "assumed", section: "2.2" },
  unknownParameter: { verdict: "recorded", basis: "assumed", section: "2.2" },
  currencyFormat: { basis: "notShown", section: "2.3" },
  valueMismatch: { basis: "notShown", section: "2.3" },
  personalData: { basis: "documented", section: "1" },
} as const satisfies Record<string, Rule>;

/** The short name of a rule. */
export type RuleName = keyof typeof RULES;

/** One thing to know about an event, at one place in it. */
export interface Finding {
  /** Where, e.g. `items[3].item_id`; empty for the event as a whole. */
  readonly path: string;
  readonly rule: RuleName;
  readonly section: string;
  readonly basis: RuleBasis;
  /** `verdict`: the event is not recorded, or perhaps not, because of it. `warning`: it changes no verdict. */
  readonly severity: "verdict" | "warning";
  readonly message: string;
  readonly fix: string;
}

/** The verdict on one event, how it is known, and everything found, what decides first. */
export interface Validation {
  readonly verdict: Verdict;
  readonly basis: RuleBasis;
  readonly findings: readonly Finding[];
}

/** The verdicts from the weakest to the one that beats all others. */
const PRECEDENCE = ["recorded", "uncertain", "ignored", "rejected"] as const satisfies readonly Verdict[];

const PLAIN: Validation = Object.freeze({ verdict: "recorded", basis: "documented", findings: Object.freeze([]) });

/** Makes the finding of a rule; section, basis and severity come from the rule. */
export function finding(rule: RuleName, path: string, message: string, fix: string): Finding {
  const { section, basis } = RULES[rule];
  return { path, rule, section, basis, severity: strength(rule) > 0 ? "verdict" : "warning", message, fix };
}

/** Draws the verdict from what was found (precedence: rejected, ignored, uncertain, recorded). */
export function conclude(findings: readonly Finding[]): Validation {
  if (findings.length === 0) return PLAIN;
  const ordered = findings.toSorted((one, other) => strength(other.rule) - strength(one.rule));
  const verdict = PRECEDENCE[Math.max(0, strength(ordered[0]?.rule))] ?? "recorded";
  const bases = ordered.filter(({ rule }) => verdictOf(rule) === verdict).map(({ basis }) => basis);
  return { verdict, basis: basisOf(verdict, bases), findings: ordered };
}

/** One documented reason is enough to drop or refuse an event, but one assumption is enough to doubt that it is kept. */
function basisOf(verdict: Verdict, bases: readonly RuleBasis[]): RuleBasis {
  if (verdict === "recorded") return bases.length === 0 ? "documented" : "assumed";
  return bases.find((basis) => basis === "documented") ?? bases[0] ?? "documented";
}

function verdictOf(name: RuleName): Verdict | undefined {
  const rule: Rule = RULES[name];
  return rule.verdict;
}

/** The place of a rule's verdict in the precedence; -1 for a rule without one. */
function strength(name: RuleName | undefined): number {
  const verdict = name === undefined ? undefined : verdictOf(name);
  return verdict === undefined ? -1 : PRECEDENCE.indexOf(verdict);
}
