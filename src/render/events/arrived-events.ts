import type { SandboxEvent } from "../../api/events.ts";
import { BASIS_WORDS } from "../../events/catalogue.ts";
import type { Coverage, EventCoverage, WrongEvents } from "../../events/coverage.ts";
import { arrivedFindings, verdictBasis } from "../../events/findings.ts";
import { fenced, plain, seen, shown } from "../fence.ts";
import { tokensOf, withinTokens } from "../page.ts";

const FINDINGS_SHOWN = 5;
/** Of one event, in tokens: a single one must fit an answer, as data and as text. */
const BODY_TOKENS = 600;
const TEXT_TOKENS = 60;

/** An event that arrived, as answers show it: long bodies are left out. */
export type ArrivedRow = ReturnType<typeof arrivedRow>;

/** An event that arrived as data: its body where that is short, else its length in bytes. */
export function arrivedRow(event: SandboxEvent) {
  const { at, verdict, uid, eventName, bytes, body, text } = event;
  const findings = arrivedFindings(event).slice(0, FINDINGS_SHOWN);
  const isShort = body !== undefined && tokensOf(JSON.stringify(body)) <= BODY_TOKENS;
  return {
    at,
    verdict,
    basis: verdictBasis(event),
    uid: uid === null ? null : cut(uid),
    eventName: eventName === null ? null : cut(eventName),
    ...(findings.length > 0 && {
      findings: findings.map(({ path, code, basis, fix }) => ({ path: cut(path), code, basis, fix: cut(plain(fix)) })),
    }),
    ...(isShort ? { body } : { bytes }),
    ...(text !== undefined && { text: cut(text) }),
  };
}

/** An event that arrived as a line. */
export function arrivedLine({ at, verdict, basis: how, uid, eventName, findings = [], ...sent }: ArrivedRow): string {
  const found = findings.map(
    ({ path, code, basis, fix }) =>
      `${code} at ${path === "" ? "the body" : shown(path)} (${BASIS_WORDS[basis]}; ${fix})`,
  );
  const body = "body" in sent ? seen(JSON.stringify(sent.body)) : `${sent.bytes} bytes`;
  const text = sent.text === undefined ? [] : [`no JSON: ${shown(sent.text)}`];
  const known = `${verdict} (${BASIS_WORDS[how]})`;
  return [at, known, name(eventName), `uid ${name(uid)}`, ...found, body, ...text].join("; ");
}

function name(text: string | null): string {
  return text === null ? "none" : shown(text);
}

function cut(text: string): string {
  return withinTokens(text, TEXT_TOKENS);
}

const COLUMNS = 80;

/** Coverage in words, each part on lines of its own that fit a terminal of 80 columns. */
export function coverageText(coverage: Coverage): string {
  const { summary, neverSeen, alwaysRight, sometimesWrong, alwaysWrong, parametersNeverSeen, unsupported } = coverage;
  const missing = Object.entries(parametersNeverSeen).map(([event, names]) => `${event} ${names.join(" ")}`);
  const strange = Object.entries(unsupported).map(unsupportedWords);
  return [
    `Coverage: ${summary}`,
    ...part("never seen", neverSeen),
    ...part("always right", counted(alwaysRight)),
    ...part("sometimes wrong", wrong(sometimesWrong)),
    ...part("always wrong", wrong(alwaysWrong)),
    ...part("parameters never seen", missing),
    ...part("unsupported", strange),
    ...part("rules", counted(coverage.rules)),
  ]
    .flatMap(inColumns)
    .join("\n");
}

/** A text in lines of at most 80 characters, broken between words where it can be. */
function inColumns(text: string): readonly string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > COLUMNS) {
    const space = rest.lastIndexOf(" ", COLUMNS);
    const end = space > CONTINUED.length ? space : COLUMNS;
    lines.push(rest.slice(0, end));
    rest = `${CONTINUED}${rest.slice(end).trimStart()}`;
  }
  return [...lines, rest];
}

/** Begins the lines that continue one. */
const CONTINUED = "    ";

function unsupportedWords([event, { count, nearest }]: readonly [string, Coverage["unsupported"][string]]): string {
  return `${shown(event)} ${count}${nearest === undefined ? "" : ` (meant ${nearest}?)`}`;
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

const UNSUPPORTED_TOLD = 5;

/** One line for each event that came: how often, how many were lost to what, on which platforms, with which parameters. */
export function eventCoverageText(events: readonly EventCoverage[], coverage: Coverage): readonly string[] {
  const came = events.filter(({ count }) => count > 0);
  const never = events.filter(({ count }) => count === 0).map(({ eventName }) => eventName);
  const lines = came.map(({ eventName, count, wrong: lost = 0, parameters, byPlatform }) => {
    const rules = (coverage.sometimesWrong[eventName] ?? coverage.alwaysWrong[eventName])?.rules ?? {};
    const [why] = Object.entries(rules).map(([rule, times]) => `mostly ${seen(rule)} ${times}`);
    const had = Object.entries(parameters).filter(([, times]) => times > 0);
    const missing = Object.keys(parameters).filter((parameter) => parameters[parameter] === 0);
    return [
      `${eventName} ${count}`,
      ...(lost === 0 ? [] : [`${lost} not recorded${why === undefined ? "" : ` (${why})`}`]),
      ...part("platform", byPlatform === undefined ? [] : entriesIn(byPlatform)),
      ...part(
        "all with",
        had.filter(([, times]) => times === count).map(([parameter]) => parameter),
      ),
      ...part("with", counted(Object.fromEntries(had.filter(([, times]) => times < count)))),
      ...part("never", missing),
    ].join("; ");
  });
  const strange = Object.entries(coverage.unsupported).slice(0, UNSUPPORTED_TOLD).map(unsupportedWords);
  return [
    `Coverage: ${coverage.summary}`,
    ...(lines.length === 0 ? [] : [fenced(lines)]),
    ...(never.length === 0 ? [] : [`never seen: ${never.join(", ")}`]),
    ...(strange.length === 0 ? [] : [`unsupported: ${strange.join(", ")}`]),
  ];
}

function entriesIn(counts: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(counts).map(([of, count]) => `${shown(of)} ${count}`);
}
