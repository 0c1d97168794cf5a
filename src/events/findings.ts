import type { SandboxEvent } from "../api/events.ts";
import { type Finding, RULES, type RuleBasis, type RuleName } from "./catalogue.ts";
import { type NearestName, nearestName, rememberingNearestName } from "./spelling.ts";
import { validateEvent } from "./validate.ts";

interface ArrivedFinding extends Pick<Finding, "path" | "basis" | "message" | "fix"> {
  /** The rule of the validator. If the validator cannot check it, the rule of the sandbox. */
  readonly code: string;
  /** Whether the finding prevents, or may prevent, that the event is recorded. */
  readonly isDecisive: boolean;
}

type Arrived = Pick<SandboxEvent, "body" | "text"> & {
  readonly findings: readonly Pick<SandboxEvent["findings"][number], "path" | "rule" | "effect">[];
};

/** By the path in a finding of the sandbox: what is wrong with the headers of an event. */
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

/** By rule of the sandbox: the validator's name for the rule, if that is different. */
const SANDBOX_RULES: ReadonlyMap<string, RuleName> = new Map([
  ["notAnObject", "bodyNotObject"],
  ["eventNameLength", "eventNameTooLong"],
  ["unsupportedEvent", "eventNameUnsupported"],
  ["lengthDependsOnCounting", "lengthUnclear"],
  ["notAParameter", "unknownParameter"],
]);

/** Returns all findings about a received event. Those that decide its verdict come first. */
export function arrivedFindings(event: Arrived, nearest: NearestName = nearestName): readonly ArrivedFinding[] {
  const ofHeaders = event.findings.flatMap(({ path }) => {
    const found = HEADER_FINDINGS.get(path);
    return found === undefined ? [] : [{ path, ...found }];
  });
  return [...ofHeaders, ...bodyFindings(event, nearest)];
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
  // The sandbox has left out a body that is too large, so the validator cannot check it. The findings of the sandbox
  // are used.
  return findings.filter(({ path }) => !HEADER_FINDINGS.has(path)).map(sandboxFinding);
}

function sandboxFinding({ path, rule, effect }: Arrived["findings"][number]): ArrivedFinding {
  const code = SANDBOX_RULES.get(rule) ?? rule;
  const basis = isRule(code) ? RULES[code].basis : "notShown";
  const message = "the sandbox reports this rule; the body is too large to show its value";
  const fix = "compare this field with list_event_types";
  return { path, code, basis, message, fix, isDecisive: effect !== "unused" };
}

function isRule(code: string): code is RuleName {
  return Object.hasOwn(RULES, code);
}

/** Returns whether the verdict on a received event is documented or assumed. */
export function verdictBasis(event: Arrived & Pick<SandboxEvent, "verdict">, nearest?: NearestName): RuleBasis {
  const { verdict, basis } = validateEvent(event.body, nearest);
  if (event.body !== undefined && verdict === event.verdict) return basis;
  const deciding = arrivedFindings(event, nearest).filter(({ isDecisive }) => isDecisive);
  return deciding[0]?.basis ?? "documented";
}

/** Events with the same name and finding. `of` is the number of all events with that name. */
export interface WrongKind extends Omit<ArrivedFinding, "isDecisive"> {
  readonly eventName: string | null;
  readonly count: number;
  readonly of: number;
  readonly verdict: SandboxEvent["verdict"];
}

/** Returns why events were not recorded: the most frequent reason first, with its first event's message. */
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
      // Events that lack the same parameter may need different fixes (add it or rename another), so the fix is part of
      // the key.
      const key = JSON.stringify([eventName, code, path, ...(code === "requiredMissing" ? [fix] : [])]);
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
