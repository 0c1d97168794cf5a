import type { SandboxEvent } from "../api/events.ts";
import { type Finding, RULES, type RuleBasis, type RuleName } from "./catalogue.ts";
import { type NearestName, nearestName, rememberingNearestName } from "./spelling.ts";
import { validateEvent } from "./validate.ts";

/** One problem or remark about an event that arrived. */
export interface ArrivedFinding extends Pick<Finding, "path" | "basis" | "message" | "fix"> {
  /** The validator's rule, or the sandbox's name for a rule that the validator cannot check. */
  readonly code: string;
  /** Whether the event was not recorded, or may not be, because of this finding. */
  readonly isDecisive: boolean;
}

/** The parts of an arrived event that findings are made from. */
type Arrived = Pick<SandboxEvent, "body" | "text"> & {
  readonly findings: readonly Pick<SandboxEvent["findings"][number], "path" | "rule" | "effect">[];
};

/** The findings of a sandbox about the headers of an event. */
const HEADER_FINDINGS: ReadonlyMap<string, ArrivedFinding> = new Map([
  [
    "headers.authorization",
    {
      path: "headers.authorization",
      code: "authorization",
      basis: "assumed",
      message: "the header Authorization holds no app key that is known here",
      fix: "send the key of the app",
      isDecisive: true,
    },
  ],
  [
    "headers.content-type",
    {
      path: "headers.content-type",
      code: "contentType",
      basis: "notShown",
      message: "the header Content-Type does not say JSON",
      fix: "send application/json",
      isDecisive: true,
    },
  ],
]);

/** The validator's names for rules that a sandbox names differently. */
const SANDBOX_RULES: ReadonlyMap<string, RuleName> = new Map([
  ["notAnObject", "bodyNotObject"],
  ["eventNameLength", "eventNameTooLong"],
  ["unsupportedEvent", "eventNameUnsupported"],
  ["lengthDependsOnCounting", "lengthUnclear"],
  ["notAParameter", "unknownParameter"],
]);

/** Returns all findings about an event that arrived. The decisive findings come first. */
export function arrivedFindings(
  { body, text, findings }: Arrived,
  nearest: NearestName = nearestName,
): readonly ArrivedFinding[] {
  return [
    ...findings.flatMap(({ path }) => HEADER_FINDINGS.get(path) ?? []),
    ...bodyFindings({ body, text, findings }, nearest),
  ];
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
  // The body is too large for the sandbox's answer, so only the sandbox's own findings are known.
  return findings.flatMap(({ path, rule, effect }) =>
    HEADER_FINDINGS.has(path) ? [] : [sandboxFinding({ path, rule, isDecisive: effect !== "unused" })],
  );
}

function sandboxFinding({
  path,
  rule,
  isDecisive,
}: Pick<ArrivedFinding, "path" | "isDecisive"> & { readonly rule: string }) {
  const code = SANDBOX_RULES.get(rule) ?? rule;
  const basis: RuleBasis = isRule(code) ? RULES[code].basis : "notShown";
  const message = "the sandbox found this in a body that is too large to be shown";
  return { path, code, basis, message, fix: "compare this field with list_event_types", isDecisive };
}

function isRule(code: string): code is RuleName {
  return Object.hasOwn(RULES, code);
}

/** Returns how the verdict of an arrived event was determined. */
export function verdictBasis(event: Arrived & Pick<SandboxEvent, "verdict">, nearest?: NearestName): RuleBasis {
  const { verdict, basis } = validateEvent(event.body, nearest);
  if (event.body !== undefined && verdict === event.verdict) return basis;
  const deciding = arrivedFindings(event, nearest).filter(({ isDecisive }) => isDecisive);
  return deciding[0]?.basis ?? "documented";
}

/** Events of one name that have the same finding. */
export interface WrongKind extends Omit<ArrivedFinding, "isDecisive"> {
  readonly eventName: string | null;
  readonly count: number;
  readonly of: number;
  readonly verdict: SandboxEvent["verdict"];
}

/**
 * Groups the reasons why arrived events were not recorded, or may not be, the most frequent first. Positions within
 * `items` are omitted. Message and fix are those of the first event.
 */
export function wrongKinds(arrived: readonly SandboxEvent[]): readonly WrongKind[] {
  const kinds = new Map<string, { readonly kind: Omit<WrongKind, "count" | "of">; count: number }>();
  const all = new Map<string | null, number>();
  const nearest = rememberingNearestName();
  for (const event of arrived) {
    const { eventName, verdict } = event;
    all.set(eventName, (all.get(eventName) ?? 0) + 1);
    const known = new Set<string>();
    for (const { path: exact, code, basis, message, fix, isDecisive } of arrivedFindings(event, nearest)) {
      const path = exact.replaceAll(/\[\d+\]|\.\d+(?=\.|$)/g, "[]");
      const key = JSON.stringify([eventName, code, path]);
      if (!isDecisive || known.has(key)) continue;
      known.add(key);
      const found = kinds.get(key) ?? { kind: { eventName, path, code, basis, message, fix, verdict }, count: 0 };
      kinds.set(key, found);
      found.count += 1;
    }
  }
  return [...kinds.values()]
    .toSorted((one, other) => other.count - one.count)
    .map(({ kind, count }) => ({ ...kind, count, of: all.get(kind.eventName) ?? count }));
}
