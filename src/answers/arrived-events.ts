import type { SandboxEvent } from "../api/events.ts";
import { BASIS_WORDS, FINDINGS_KEPT, type RuleBasis } from "../events/catalogue.ts";
import {
  arrivedFindings,
  type Coverage,
  type EventCoverage,
  verdictBasis,
  type WrongEvents,
  type WrongKind,
} from "../events/coverage.ts";
import type { ExpectationResult } from "../events/expectations.ts";
import { amount, thousands } from "../platform/text.ts";
import { type Row, takeFittingRows, takeRows, tokensOf, withinTokens } from "./budget.ts";
import { escapeInvisible, fenced, plain, quoteUntrusted } from "./fence.ts";

/** The maximum tokens of an event's body, which is in an answer twice: as data and as text. */
const BODY_TOKENS = 600;
const TEXT_TOKENS = 60;

export type ArrivedRow = ReturnType<typeof arrivedRow>;

/** Returns a received event as answers show it. A long body is replaced by its length in bytes. */
export function arrivedRow(event: SandboxEvent) {
  const { at, verdict, uid, eventName, bytes, body, text } = event;
  const all = arrivedFindings(event);
  const findings = all.slice(0, FINDINGS_KEPT);
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
    ...(all.length > findings.length && { findingsOmitted: all.length - findings.length }),
    ...(isShort ? { body } : { bytes }),
    ...(text !== undefined && { text: cut(text) }),
  };
}

export function arrivedLine({ at, verdict, basis: how, uid, eventName, findings = [], ...sent }: ArrivedRow): string {
  const found = findings.map(
    ({ path, code, basis, fix }) =>
      `${code} at ${path === "" ? "the body" : quoteUntrusted(path)} (${BASIS_WORDS[basis]}; ${fix})`,
  );
  const body = "body" in sent ? escapeInvisible(JSON.stringify(sent.body)) : `${sent.bytes} bytes`;
  const text = sent.text === undefined ? [] : [`not JSON: ${quoteUntrusted(sent.text)}`];
  const known = `${verdict} (${BASIS_WORDS[how]})`;
  const more = sent.findingsOmitted === undefined ? [] : [amount(sent.findingsOmitted, "more finding")];
  return [at, known, name(eventName), `uid ${name(uid)}`, ...found, ...more, body, ...text].join("; ");
}

function name(text: string | null): string {
  return text === null ? "none" : quoteUntrusted(text);
}

function cut(text: string): string {
  return withinTokens(text, TEXT_TOKENS);
}

const COLUMNS = 80;

/** Returns a coverage report as text. Lines have at most 80 columns. */
export function coverageText(coverage: Coverage): string {
  const { summary, neverSeen, alwaysRight, sometimesWrong, alwaysWrong, parametersNeverSeen, unsupported } = coverage;
  const missing = Object.entries(parametersNeverSeen).map(([event, names]) => `${event} ${names.join(" ")}`);
  const strange = Object.entries(unsupported).map(unsupportedWords);
  return [
    `Coverage: ${summary}`,
    ...part("never seen", neverSeen),
    ...part("always recorded", counted(alwaysRight)),
    ...part("sometimes not recorded", wrong(sometimesWrong)),
    ...part("never recorded", wrong(alwaysWrong)),
    ...part("parameters never seen", missing),
    ...part("unsupported", strange),
    ...part("rules", counted(coverage.rules)),
  ]
    .flatMap(inColumns)
    .join("\n");
}

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

const CONTINUED = "    ";

function unsupportedWords([event, { count, nearest }]: readonly [string, Coverage["unsupported"][string]]): string {
  return `${quoteUntrusted(event)} ${count}${nearest === undefined ? "" : ` (meant ${nearest}?)`}`;
}

function part(title: string, words: readonly string[]): readonly string[] {
  return words.length === 0 ? [] : [`${title}: ${words.join(", ")}`];
}

function counted(counts: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(counts).map(([of, count]) => `${of} ${count}`);
}

function wrong(events: Readonly<Record<string, WrongEvents>>): readonly string[] {
  return Object.entries(events).map(([event, { wrong: count, of, rules }]) => {
    const why = Object.entries(rules).map(([rule, times]) => `${escapeInvisible(rule)} ${times}`);
    return `${event} ${count} of ${of}${why.length === 0 ? "" : ` (${why.join(", ")})`}`;
  });
}

const MAX_UNSUPPORTED_SHOWN = 5;

/** Returns coverage as lines: counts, reasons, platforms and parameters of each event; then names never received. */
export function eventCoverageText(
  events: readonly EventCoverage[],
  coverage: Coverage,
  { isFiltered }: { readonly isFiltered: boolean },
): readonly string[] {
  const came = events.filter(({ count }) => count > 0);
  const never = events.filter(({ count }) => count === 0).map(({ eventName }) => eventName);
  const lines = came.map(({ eventName, count, wrong: lost = 0, parameters, byPlatform }) => {
    const rules = (coverage.sometimesWrong[eventName] ?? coverage.alwaysWrong[eventName])?.rules ?? {};
    const [why] = Object.entries(rules).map(
      ([rule, times]) => `${times < lost ? "mostly " : ""}${escapeInvisible(rule)} ${times}`,
    );
    const platforms = Object.entries(byPlatform ?? {}).map(([of, times]) => `${quoteUntrusted(of)} ${times}`);
    const had = Object.entries(parameters).filter(([, times]) => times > 0);
    const always = had.filter(([, times]) => times === count).map(([parameter]) => parameter);
    const missing = Object.keys(parameters).filter((parameter) => parameters[parameter] === 0);
    return [
      `${eventName} ${count}`,
      ...(lost === 0 ? [] : [`${lost} not recorded${why === undefined ? "" : ` (${why})`}`]),
      ...part("platform", platforms),
      ...part("all with", always),
      ...part("with", counted(Object.fromEntries(had.filter(([, times]) => times < count)))),
      ...part("never", missing),
    ].join("; ");
  });
  const strange = Object.entries(coverage.unsupported).slice(0, MAX_UNSUPPORTED_SHOWN).map(unsupportedWords);
  return [
    isFiltered ? "Coverage, only of the events that match eventName and verdict:" : `Coverage: ${coverage.summary}`,
    ...(lines.length === 0 ? [] : [fenced(lines)]),
    ...(never.length === 0 ? [] : [`never seen: ${never.join(", ")}`]),
    ...(strange.length === 0 ? [] : [`unsupported: ${strange.join(", ")}`]),
  ];
}

/**
 * The result of one expectation. If each user is checked separately, it has the user and the index in `expect`. If
 * several users are checked together, it has the number of users with such an event, and the number of all users.
 */
export interface ExpectationRow extends ExpectationResult {
  readonly uid?: string;
  readonly index?: number;
  readonly users?: number;
  readonly ofUsers?: number;
}

export interface CheckRow {
  readonly uid?: string;
  readonly met: boolean;
  readonly reason?: string;
  readonly tookMs?: number;
}

const EXPECTATION_TOKENS = 1600;
/** The maximum tokens for a check of order or time. `most`: if the answer lists only one event. */
const CHECK_TOKENS = { least: 300, most: 900 } as const;
/**
 * The maximum tokens for the uids of users who do not meet all expectations and checks. The tokens that these uids use
 * are subtracted from `EXPECTATION_TOKENS`.
 */
const USERS_TOKENS = 700;
/** The maximum tokens for findings, by what else is in the answer. `most`: a single event. */
const FINDING_TOKENS = { "beside events": 520, "beside coverage": 560, most: 1800 } as const;
const UID_TOKENS = 60;

interface Said {
  readonly facts: Readonly<Record<string, unknown>>;
  readonly text: readonly string[];
}

/**
 * Reports which expectations are met. If not all results fit into the answer, the unmet ones come first. `expect`
 * contains the names of the events. `tokens`: how many tokens the result of `reportUsers` already uses.
 */
export function reportExpectations(results: readonly ExpectationRow[], expect: Expected, tokens: number): Said {
  if (results.length === 0) return { facts: { expectations: [] }, text: [] };
  const rows = results.map((result, position) => ({
    uid: result.uid,
    data: { ...result, ...(result.uid !== undefined && { uid: cutUid(result.uid) }) },
    line: expectationLine(result, expect, position),
    met: result.met,
  }));
  const { picked, omitted } = fitting(rows, EXPECTATION_TOKENS - tokens);
  const users = new Set(results.flatMap(({ uid }) => uid ?? [])).size;
  const [{ ofUsers } = {}] = results;
  const together =
    ofUsers === undefined ? "" : ` by ${thousands(ofUsers)} users together (to check each user, give uids or inOrder)`;
  const each = users < 2 ? together : ` (${expect.length} for each of ${users} users)`;
  return {
    facts: { expectations: picked.map(({ data }) => data), ...(omitted > 0 && { expectationsOmitted: omitted }) },
    text: [
      `${thousands(results.filter(({ met }) => met).length)} of ${amount(results.length, "expectation")} met${each}:`,
      fenced(picked.map(({ line }) => line)),
      ...moreText(rows, picked, "not met"),
    ],
  };
}

function expectationLine(
  { uid, index, met, found, reason, users, ofUsers = 0 }: ExpectationRow,
  expect: readonly { readonly eventName: string }[],
  position: number,
): string {
  const at = index ?? position;
  const of = uid === undefined ? "" : `, uid ${quoteUntrusted(cutUid(uid))}`;
  const about = `expectation ${at + 1}, ${quoteUntrusted(expect[at]?.eventName ?? "")}${of}`;
  const share = users === undefined ? "" : `, from ${thousands(users)} of ${thousands(ofUsers)} users`;
  return `${about}: ${met ? `met, found ${found}` : `NOT met, ${escapeInvisible(reason ?? `found ${found}`)}`}${share}`;
}

/**
 * Reports how many users meet every expectation and check, and names the others, starting with the user at index
 * `from`. `next`: the index of the first user whose name does not fit. Reports nothing for a single user, or if users
 * are not checked separately.
 */
export function reportUsers(
  expectations: readonly ExpectationRow[],
  checks: readonly CheckRow[],
  from: number,
): Said & { readonly tokens: number; readonly next?: number } {
  const users = [...new Set(expectations.flatMap(({ uid }) => uid ?? []))];
  if (users.length < 2) return { facts: {}, text: [], tokens: 0 };
  const failed = new Set([...expectations, ...checks].flatMap(({ uid, met }) => (met ? [] : (uid ?? []))));
  const counts = `${users.length - failed.size} of ${users.length} users meet all expectations and checks`;
  const left = users.slice(from).filter((uid) => failed.has(uid));
  const budget = { left: USERS_TOKENS, least: 1 };
  const uids = takeRows(left.map(cutUid), quoteUntrusted, budget);
  if (uids.length === 0) return { facts: {}, text: [`${counts}.`], tokens: 0 };
  const before = failed.size - left.length;
  const further = left[uids.length];
  const isAll = uids.length === failed.size;
  const which = isAll ? "" : `, of which these are ${before + 1}-${before + uids.length}`;
  return {
    facts: { usersNotMet: { total: failed.size, uids } },
    text: [
      `${counts}. ${failed.size} ${failed.size === 1 ? "does" : "do"} not${which}:`,
      fenced([uids.map((uid) => quoteUntrusted(uid)).join(", ")]),
    ],
    tokens: USERS_TOKENS - budget.left,
    ...(further !== undefined && { next: users.indexOf(further) }),
  };
}

/** Reports whether events arrived in order, or in time. If the users are checked separately, reports each of them. */
export function reportCheck(
  name: "order" | "within",
  results: readonly CheckRow[] | undefined,
  {
    expectations,
    expect,
    room,
  }: {
    readonly expectations: readonly ExpectationRow[];
    readonly expect: Expected;
    readonly room: keyof typeof CHECK_TOKENS;
  },
): Said {
  if (results === undefined) return { facts: {}, text: [] };
  const what = name === "order" ? "order" : "time";
  // An expectation that fails only because of the other check (order or time) is named in the report of that check.
  const unmet = unmetWords(expectations, expect, ({ check }) => check === undefined || check === name);
  /**
   * Says whether the check holds for a user. It can hold although the number or the verdict of some events is wrong, so
   * the text names unmet expectations as well.
   */
  const verdictOf = (result: CheckRow): string => {
    const why = whyWords(result);
    const words = unmet.get(result.uid);
    if (!result.met) return `did NOT hold${why}`;
    if (words === undefined && name === "order" && result.uid === undefined) return `held${ONCE_WORDS}`;
    return words === undefined ? `held${why}` : `held for the events that arrived${why}, but not met: ${words}`;
  };
  const rows = results.map(({ uid, ...result }) => ({
    data: [cutUid(uid ?? ""), result] as const,
    uid,
    line: `${quoteUntrusted(cutUid(uid ?? ""))}: ${verdictOf({ ...result, ...(uid !== undefined && { uid }) })}`,
    met: result.met,
  }));
  const met = results.filter((result) => result.met).length;
  const isMet = met === results.length;
  const times = results.flatMap(({ tookMs }) => tookMs ?? []);
  const tookMs = times.length === 0 ? undefined : Math.max(...times);
  const broken = results.find((result) => !result.met);
  const [only] = results;
  const whole = { met: isMet, ...(tookMs !== undefined && { tookMs }) };
  if (only !== undefined && only.uid === undefined) {
    const sentence = `The ${what} ${verdictOf(only)}.`;
    return { facts: { [name]: { ...whole, ...reasonOf(only.reason) } }, text: [sentence] };
  }
  const { picked, omitted } = fitting(rows, CHECK_TOKENS[room]);
  const reason = broken && `for uid ${quoteUntrusted(cutUid(broken.uid ?? ""))}: ${broken.reason ?? ""}`;
  const byUid = Object.fromEntries(picked.map(({ data }) => data));
  return {
    facts: { [name]: { ...whole, ...reasonOf(reason), byUid, ...(omitted > 0 && { byUidOmitted: omitted }) } },
    text: [
      `The ${what} held${name === "order" ? " at least once" : ""} for ${met} of ${results.length === 1 ? "1 user" : `${results.length} users`}:`,
      fenced(picked.map(({ line }) => line)),
      ...moreText(rows, picked, "where it did not hold", room === "least" ? "limit 1 and uids" : "uids"),
    ],
  };
}

const ONCE_WORDS = ": the expected events arrived in this order at least once";

type Expected = readonly { readonly eventName: string }[];

const UNMET_NAMED = 3;

function unmetWords(
  expectations: readonly ExpectationRow[],
  expect: Expected,
  isNamed: (result: ExpectationRow) => boolean,
): ReadonlyMap<string | undefined, string> {
  const byUser = new Map<string | undefined, string[]>();
  for (const [position, result] of expectations.entries()) {
    const { uid, index = position, met, found, reason = `found ${found}` } = result;
    if (met || !isNamed(result)) continue;
    const words = `expectation ${index + 1}, ${quoteUntrusted(expect[index]?.eventName ?? "")} (${escapeInvisible(reason)})`;
    byUser.set(uid, [...(byUser.get(uid) ?? []), words]);
  }
  return new Map(
    [...byUser].map(([uid, words]) => {
      const more = words.length - UNMET_NAMED;
      return [uid, [...words.slice(0, UNMET_NAMED), ...(more > 0 ? [`and ${more} more`] : [])].join("; ")];
    }),
  );
}

function whyWords({ met, reason, tookMs }: CheckRow): string {
  if (!met) return `: ${escapeInvisible(reason ?? "")}`;
  return tookMs === undefined ? "" : `: ${thousands(tookMs)} ms`;
}

function reasonOf(reason: string | undefined) {
  return reason === undefined ? {} : { reason };
}

/** Reports why events were not recorded, or may not have been: each reason once, with the number of its events. */
export function reportFindings(
  kinds: readonly WrongKind[],
  room: keyof typeof FINDING_TOKENS,
): Said & { readonly bases: readonly RuleBasis[] } {
  if (kinds.length === 0) return { facts: {}, text: [], bases: [] };
  const rows = kinds.slice(0, FINDINGS_LOOKED_AT).map((kind) => {
    const { eventName, path, code, basis, message, fix, count, of, verdict } = kind;
    const [name, place] = [eventName === null ? null : cutUid(eventName), cutUid(path)];
    const [said, how] = [cutUid(plain(message)), cutUid(plain(fix))];
    return {
      data: { eventName: name, code, path: place, basis, verdict, count, of, message: said, fix: how },
      line:
        `${name === null ? "no name" : quoteUntrusted(name)}: ${count} of ${of}, ${verdict}: ${code}` +
        `${place === "" ? "" : ` at ${quoteUntrusted(place)}`} (${BASIS_WORDS[basis]}): ${said}; ${how}`,
      met: false,
    };
  });
  const { picked } = fitting(rows, FINDING_TOKENS[room]);
  const omitted = kinds.length - picked.length;
  return {
    facts: { findings: picked.map(({ data }) => data), ...(omitted > 0 && { findingsOmitted: omitted }) },
    text: [
      "Findings:",
      fenced(picked.map(({ line }) => line)),
      ...(omitted > 0 ? [`(${amount(omitted, "more kind")} of findings; ${MORE_FINDINGS[room]})`] : []),
    ],
    bases: picked.map(({ data }) => data.basis),
  };
}

const MORE_FINDINGS = {
  "beside events": "the same call with limit 1 and without expect shows more",
  "beside coverage": "a call with limit 1 and without coverage shows more",
  most: "eventName, verdict, uid and since show those of fewer events",
} as const satisfies Record<keyof typeof FINDING_TOKENS, string>;

const FINDINGS_LOOKED_AT = 20;

interface CheckedRow extends Pick<Row, "line"> {
  readonly uid?: string | undefined;
  readonly data: unknown;
  readonly met: boolean;
}

/** Returns the rows that fit into an answer. If not all fit, those of unmet expectations come first. */
function fitting<Checked extends CheckedRow>(rows: readonly Checked[], tokens: number) {
  const take = (some: readonly Checked[]) => takeFittingRows(some, { left: tokens, least: 1 });
  const all = take(rows);
  const picked =
    all.length === rows.length ? rows : take(rows.toSorted((one, other) => Number(one.met) - Number(other.met)));
  return { picked, omitted: rows.length - picked.length };
}

function moreText(
  rows: readonly CheckedRow[],
  picked: readonly CheckedRow[],
  unmet: string,
  what = "uids",
): readonly string[] {
  const shown = new Set(picked);
  const hidden = rows.filter((row) => !shown.has(row));
  if (hidden.length === 0) return [];
  const broken = hidden.filter(({ met }) => !met);
  const users = [...new Set((broken.length > 0 ? broken : hidden).flatMap(({ uid }) => uid ?? []))];
  const named = users.slice(0, HIDDEN_USERS).map((uid) => quoteUntrusted(cutUid(uid)));
  const further = thousands(users.length - named.length);
  const others = broken.length > 0 ? `, then the ${further} after these in the list of users` : ` and ${further} more`;
  const rest =
    named.length === 0
      ? "a call with fewer expectations shows all"
      : `to see more, give ${what} ${named.join(", ")}${users.length > named.length ? others : ""}`;
  return [`(${hidden.length} more, ${broken.length} of them ${unmet}: ${rest})`];
}

/** If the results of some users do not fit into the answer, it names at most this many of these users. */
const HIDDEN_USERS = 10;

function cutUid(text: string): string {
  return withinTokens(text, UID_TOKENS);
}

const MAX_REASONS = 20;
const INDENT = " ".repeat(9);

type Findings = Parameters<typeof arrivedFindings>[0]["findings"];

/** Returns lines about a received event: first its name, then, if it was not recorded, each reason. */
export function arrivalText(
  event: Pick<SandboxEvent, "at" | "uid" | "eventName"> & { readonly verdict: string; readonly findings: Findings },
  body: unknown,
): string {
  const { at, verdict, uid, eventName, findings } = event;
  const [why, ...further] = verdict === "recorded" ? [] : reasons(findings, body);
  const named = [eventName ?? "(no name)", `uid ${uid ?? "(none)"}`].map(plain);
  const line = [`${at.slice(11, 19)} ${verdict}`, ...named, ...(why === undefined ? [] : [why])].join("  ");
  return [line, ...further.map((reason) => `${INDENT}${reason}`)].join("\n");
}

function reasons(findings: Findings, body: unknown): readonly string[] {
  const found = arrivedFindings({ body, findings, ...(body === undefined && { text: "" }) });
  const sentences = found
    .filter(({ isDecisive }) => isDecisive)
    // A message about an entry of a list does not say which entry, so the path comes first.
    .map(({ path, message, fix }) => plain(`${path.includes("[") ? `${path}: ` : ""}${message}; ${fix}`));
  if (sentences.length <= MAX_REASONS) return sentences;
  return [...sentences.slice(0, MAX_REASONS), `and ${sentences.length - MAX_REASONS} more`];
}
