import { EVENT_FIELDS, EVENTS, type EventSpec, ITEM_FIELDS, type Parameter } from "../spec/events.ts";

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

export const EVENT_NAMES: readonly string[] = entries.map(([name]) => name);

/** The fields of each supported event: its own parameters, and those of all events (event-tracking-api 2.1, 2.2). */
export const EVENT_SHAPES: ReadonlyMap<string, Shape> = new Map(
  entries.map(([name, { parameters }]) => [name, shapeOf({ ...parameters, ...EVENT_FIELDS })]),
);

export const ITEM_SHAPE: Shape = shapeOf(ITEM_FIELDS);

export const COMMON_SHAPE: Shape = shapeOf(EVENT_FIELDS);

/**
 * What the service does with an event. `ignored`: it answers `ok`, but drops the event. `rejected`: it answers
 * `!invalid`. `uncertain`: the API document does not say.
 */
export const VERDICTS = ["recorded", "ignored", "rejected", "uncertain"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** How a rule is known: the API document states it, we assume it, or the document does not cover the case. */
export const BASES = ["documented", "assumed", "notShown"] as const;
export type RuleBasis = (typeof BASES)[number];

export const BASIS_WORDS = {
  documented: "documented",
  assumed: "assumed",
  notShown: "not shown in the documents",
} as const satisfies Record<RuleBasis, string>;

export interface Rule {
  /** The verdict on an event that breaks only this rule. Absent if it affects neither the verdict nor its basis. */
  readonly verdict?: Verdict;
  readonly basis: RuleBasis;
  /** The section of event-tracking-api that states the rule, or the closest one. */
  readonly section: string;
}

/** The rules that the validator checks (event-tracking-api 1, 2, 4, 7, 8; some assumed). Their names are public. */
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
  uidSpaces: { basis: "notShown", section: "2.1" },
  platformUnusual: { basis: "documented", section: "2.1" },
} as const satisfies Record<string, Rule>;

export type RuleName = keyof typeof RULES;

export interface Finding {
  readonly path: string;
  readonly rule: RuleName;
  readonly section: string;
  readonly basis: RuleBasis;
  /** `verdict`: because of this finding, the event is not recorded, or may not be. `warning`: it has no such effect. */
  readonly severity: "verdict" | "warning";
  readonly message: string;
  readonly fix: string;
}

/** The maximum number of findings that are stored for an event. Answers may show fewer. */
export const FINDINGS_KEPT = 20;

/** The predicted verdict on an event, and the findings about the event. Those that decide the verdict come first. */
export interface Validation {
  readonly verdict: Verdict;
  readonly basis: RuleBasis;
  readonly findings: readonly Finding[];
}

/** If an event breaks several rules, the last of their verdicts in this list counts. */
const PRECEDENCE = ["recorded", "uncertain", "ignored", "rejected"] as const satisfies readonly Verdict[];

const PLAIN: Validation = Object.freeze({ verdict: "recorded", basis: "documented", findings: Object.freeze([]) });

export function finding(rule: RuleName, path: string, message: string, fix: string): Finding {
  const { section, basis } = RULES[rule];
  return { path, rule, section, basis, severity: strength(rule) > 0 ? "verdict" : "warning", message, fix };
}

/** Returns the verdict for the findings. If several apply: rejected before ignored, ignored before uncertain. */
export function deriveVerdict(findings: readonly Finding[]): Validation {
  if (findings.length === 0) return PLAIN;
  const ordered = findings.toSorted((one, other) => strength(other.rule) - strength(one.rule));
  const verdict = PRECEDENCE[Math.max(0, strength(ordered[0]?.rule))] ?? "recorded";
  const bases = ordered.filter(({ rule }) => verdictOfRule(rule) === verdict).map(({ basis }) => basis);
  return { verdict, basis: basisOf(verdict, bases), findings: ordered };
}

/**
 * Returns how a verdict is known. `bases` are those of the broken rules that lead to the verdict: if one of these rules
 * is documented, so is the verdict. The verdict `recorded` is assumed if there is such a rule, otherwise documented.
 */
function basisOf(verdict: Verdict, bases: readonly RuleBasis[]): RuleBasis {
  if (verdict === "recorded") return bases.length === 0 ? "documented" : "assumed";
  return bases.find((basis) => basis === "documented") ?? bases[0] ?? "documented";
}

export function verdictOfRule(name: RuleName): Verdict | undefined {
  const rule: Rule = RULES[name];
  return rule.verdict;
}

function strength(name: RuleName | undefined): number {
  const verdict = name === undefined ? undefined : verdictOfRule(name);
  return verdict === undefined ? -1 : PRECEDENCE.indexOf(verdict);
}
