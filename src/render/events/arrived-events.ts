import type { SandboxEvent } from "../../api/sandbox.ts";
import { validateEvent } from "../../events/check/validate.ts";
import type { Coverage, WrongEvents } from "../../events/watch/coverage.ts";
import type { ExpectationResult } from "../../events/watch/expectations.ts";
import { fenced, plain, seen, shown } from "../fence.ts";
import { tokensOf, withinTokens } from "../page.ts";

const FINDINGS_SHOWN = 5;
/** Of one event, in tokens: a single one must fit an answer, as data and as text. */
const BODY_TOKENS = 600;
const TEXT_TOKENS = 60;

/** An event that arrived, as answers show it: long bodies are left out. */
export type ArrivedRow = ReturnType<typeof arrivedRow>;

/** An event that arrived as data: its body where that is short, else its length in bytes. */
export function arrivedRow({ at, verdict, uid, eventName, bytes, findings, body, text }: SandboxEvent) {
  const known = new Map(validateEvent(body).findings.map((finding) => [`${finding.rule} ${finding.path}`, finding]));
  const isShort = body !== undefined && tokensOf(JSON.stringify(body)) <= BODY_TOKENS;
  return {
    at,
    verdict,
    uid: uid === null ? null : cut(uid),
    eventName: eventName === null ? null : cut(eventName),
    ...(findings.length > 0 && {
      findings: findings.slice(0, FINDINGS_SHOWN).map(({ path, rule, effect }) => {
        const same = known.get(`${rule} ${path}`);
        const mends = same === undefined ? {} : { basis: same.basis, fix: cut(plain(same.fix)) };
        return { path: cut(path), rule, effect, ...mends };
      }),
    }),
    ...(isShort ? { body } : { bytes }),
    ...(text !== undefined && { text: cut(text) }),
  };
}

/** An event that arrived as a line. */
export function arrivedLine({ at, verdict, uid, eventName, findings = [], ...sent }: ArrivedRow): string {
  const found = findings.map(({ path, rule, basis, fix }) => {
    const mends = fix === undefined ? "" : ` (${basis}; ${fix})`;
    return `${rule} at ${path === "" ? "the body" : shown(path)}${mends}`;
  });
  const body = "body" in sent ? seen(JSON.stringify(sent.body)) : `${sent.bytes} bytes`;
  const text = sent.text === undefined ? [] : [`no JSON: ${shown(sent.text)}`];
  return [at, verdict, name(eventName), `uid ${name(uid)}`, ...found, body, ...text].join("; ");
}

function name(text: string | null): string {
  return text === null ? "none" : shown(text);
}

function cut(text: string): string {
  return withinTokens(text, TEXT_TOKENS);
}

/** Coverage in words. */
export function coverageText(coverage: Coverage): string {
  const { summary, neverSeen, alwaysRight, sometimesWrong, alwaysWrong, parametersNeverSeen, unsupported } = coverage;
  const missing = Object.entries(parametersNeverSeen).map(([event, names]) => `${event} ${names.join(" ")}`);
  const strange = Object.entries(unsupported).map(
    ([event, { count, nearest }]) => `${shown(event)} ${count}${nearest === undefined ? "" : ` (meant ${nearest}?)`}`,
  );
  return [
    `Coverage: ${summary}`,
    ...part("never seen", neverSeen),
    ...part("always right", counted(alwaysRight)),
    ...part("sometimes wrong", wrong(sometimesWrong)),
    ...part("always wrong", wrong(alwaysWrong)),
    ...part("parameters never seen", missing),
    ...part("unsupported", strange),
    ...part("rules", counted(coverage.rules)),
  ].join(". ");
}

function part(title: string, words: readonly string[]): readonly string[] {
  return words.length === 0 ? [] : [`${title}: ${words.join(", ")}`];
}

function counted(counts: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(counts).map(([of, count]) => `${of} ${count}`);
}

function wrong(events: Readonly<Record<string, WrongEvents>>): readonly string[] {
  return Object.entries(events).map(([event, { wrong: count, of, rules }]) => {
    const why = Object.entries(rules).map(([rule, times]) => `${seen(rule)} ${times}`);
    return `${event} ${count} of ${of}${why.length === 0 ? "" : ` (${why.join(", ")})`}`;
  });
}

/** Expectations in words, one line each. */
export function expectationsText(results: readonly ExpectationResult[]): readonly string[] {
  if (results.length === 0) return [];
  const met = results.filter((result) => result.met).length;
  const lines = results.map(
    (result, index) =>
      `${index}: ${result.met ? "met" : "NOT met"}, found ${result.found}` +
      (result.reason === undefined ? "" : `, ${seen(result.reason)}`),
  );
  return [`${met} of ${results.length} expectations met:`, fenced(lines)];
}
