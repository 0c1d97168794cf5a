import { BASIS_WORDS, type RuleBasis } from "../../events/catalogue.ts";
import type { ExpectationResult } from "../../events/expectations.ts";
import type { WrongKind } from "../../events/findings.ts";
import { thousands } from "../../platform/text.ts";
import { fenced, plain, seen, shown } from "../fence.ts";
import { tokensOf, withinTokens } from "../page.ts";

/** What one expectation came to; `uid` and its position in `expect` where each of several users was checked. */
export interface ExpectationRow extends ExpectationResult {
  readonly uid?: string;
  readonly index?: number;
}

/** Whether the order or the time held: for one user, or for all events together. */
export interface CheckRow {
  readonly uid?: string;
  readonly met: boolean;
  readonly reason?: string;
  readonly tookMs?: number;
}

/** What a part of an answer may take, as data and as text, in tokens. */
const EXPECTATION_TOKENS = 1600;
const CHECK_TOKENS = 300;
const FINDING_TOKENS = 500;
const UID_TOKENS = 60;

/** Data and text that say the same. */
interface Told {
  readonly facts: Readonly<Record<string, unknown>>;
  readonly text: readonly string[];
}

/** Expectations, one row each; where not all of them fit, first those that are not met. */
export function toldExpectations(results: readonly ExpectationRow[]): Told {
  if (results.length === 0) return { facts: { expectations: [] }, text: [] };
  const rows = results.map((result, position) => ({
    data: { ...result, ...(result.uid !== undefined && { uid: cut(result.uid) }) },
    line: expectationLine(result, position),
    met: result.met,
  }));
  const { told, omitted } = fitting(rows, EXPECTATION_TOKENS);
  const users = new Set(results.flatMap(({ uid }) => uid ?? [])).size;
  const each = users === 0 ? "" : `, each of ${users === 1 ? "1 user" : `${users} users`} by itself`;
  return {
    facts: { expectations: told.map(({ data }) => data), ...(omitted > 0 && { expectationsOmitted: omitted }) },
    text: [
      `${results.filter(({ met }) => met).length} of ${results.length} expectations met${each}:`,
      fenced(told.map(({ line }) => line)),
      ...moreText(rows, told, "not met"),
    ],
  };
}

function expectationLine({ uid, index, met, found, reason }: ExpectationRow, position: number): string {
  const of = uid === undefined ? "" : `, uid ${shown(cut(uid))}`;
  const why = reason === undefined ? "" : `, ${seen(reason)}`;
  return `expectation ${(index ?? position) + 1}${of}: ${met ? "met" : "NOT met"}, found ${found}${why}`;
}

/** Whether the order or the time held, for each user where there are several; nothing where it was not asked for. */
export function toldCheck(name: "order" | "within", results: readonly CheckRow[] | undefined): Told {
  if (results === undefined) return { facts: {}, text: [] };
  const what = name === "order" ? "order" : "time";
  const rows = results.map(({ uid, ...result }) => ({
    data: [cut(uid ?? ""), result] as const,
    line: `${shown(cut(uid ?? ""))}: ${result.met ? "held" : "did NOT hold"}${whyWords(result)}`,
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
    const sentence = `The ${what} ${isMet ? "held" : "did NOT hold"}${whyWords(only)}.`;
    return { facts: { [name]: { ...whole, ...reasonOf(only.reason) } }, text: [sentence] };
  }
  const { told, omitted } = fitting(rows, CHECK_TOKENS);
  const reason = broken && `for uid ${shown(cut(broken.uid ?? ""))}: ${broken.reason ?? ""}`;
  const byUid = Object.fromEntries(told.map(({ data }) => data));
  return {
    facts: { [name]: { ...whole, ...reasonOf(reason), byUid, ...(omitted > 0 && { byUidOmitted: omitted }) } },
    text: [
      `The ${what} held for ${met} of ${results.length === 1 ? "1 user" : `${results.length} users`}:`,
      fenced(told.map(({ line }) => line)),
      ...moreText(rows, told, "not so"),
    ],
  };
}

function whyWords({ met, reason, tookMs }: CheckRow): string {
  if (!met) return `: ${seen(reason ?? "")}`;
  return tookMs === undefined ? "" : `: ${thousands(tookMs)} ms`;
}

function reasonOf(reason: string | undefined) {
  return reason === undefined ? {} : { reason };
}

/** Why events were not recorded, or may not be, each reason once. */
export function toldFindings(kinds: readonly WrongKind[]): Told & { readonly bases: readonly RuleBasis[] } {
  if (kinds.length === 0) return { facts: {}, text: [], bases: [] };
  const rows = kinds.slice(0, FINDINGS_LOOKED_AT).map((kind) => {
    const { eventName, path, code, basis, message, fix, count, of, verdict } = kind;
    const [name, place] = [eventName === null ? null : cut(eventName), cut(path)];
    const [said, how] = [cut(plain(message)), cut(plain(fix))];
    return {
      data: { eventName: name, code, path: place, basis, verdict, count, of, message: said, fix: how },
      line:
        `${name === null ? "no name" : shown(name)}: ${count} of ${of} ${verdict}: ${code}` +
        `${place === "" ? "" : ` at ${shown(place)}`} (${BASIS_WORDS[basis]}): ${said}; ${how}`,
      met: false,
    };
  });
  const { told } = fitting(rows, FINDING_TOKENS);
  const omitted = kinds.length - told.length;
  return {
    facts: { findings: told.map(({ data }) => data), ...(omitted > 0 && { findingsOmitted: omitted }) },
    text: [
      "Findings:",
      fenced(told.map(({ line }) => line)),
      ...(omitted > 0 ? [`(${omitted} more kinds of findings)`] : []),
    ],
    bases: told.map(({ data }) => data.basis),
  };
}

const FINDINGS_LOOKED_AT = 20;

interface Fittable {
  readonly data: unknown;
  readonly line: string;
  readonly met: boolean;
}

/** The rows that fit so many tokens, at least one: in their order, or those that are not met first where some are left out. */
function fitting<Row extends Fittable>(rows: readonly Row[], tokens: number) {
  const cost = ({ data, line }: Row): number => tokensOf(JSON.stringify(data)) + tokensOf(line);
  if (rows.reduce((sum, row) => sum + cost(row), 0) <= tokens) return { told: rows, omitted: 0 };
  const told: Row[] = [];
  let left = tokens;
  for (const row of rows.toSorted((one, other) => Number(one.met) - Number(other.met))) {
    left -= cost(row);
    if (left < 0 && told.length > 0) break;
    told.push(row);
  }
  return { told, omitted: rows.length - told.length };
}

function moreText(rows: readonly Fittable[], told: readonly Fittable[], unmet: string): readonly string[] {
  const omitted = rows.length - told.length;
  const broken = (some: readonly Fittable[]): number => some.filter(({ met }) => !met).length;
  return omitted === 0 ? [] : [`(${omitted} more, ${broken(rows) - broken(told)} of them ${unmet})`];
}

function cut(text: string): string {
  return withinTokens(text, UID_TOKENS);
}
