import { thousands } from "../../platform/text.ts";
import { type FailureDetail, type FailureGroup, failureGroups, type ReportedState } from "../../runs/report.ts";
import { isUlid } from "../../spec/ulid.ts";
import { shown, shownBriefly } from "../fence.ts";
import { withinTokens } from "../page.ts";
import { placesWords, placeWords } from "../places.ts";
import type { Row } from "../row.ts";
import { codeWords, messageFor, OUTCOME_WORDS } from "./messages.ts";
import type { Detail } from "./words.ts";

/** What callers gave as name or ID may be of any length; no valid one is longer than this. */
const LONGEST_TEXT = 120;

/** Objects that did not succeed for the same reason, in words. */
export interface ToldFailure extends Omit<FailureGroup, "reason"> {
  readonly errorCode: string;
  readonly statusCode?: number | undefined;
  /** What is the same for all of them. */
  readonly detail?: Detail | undefined;
  readonly message: string;
  readonly remedy: string;
  /** Of events: the users of the first ones, as they were given. */
  readonly uids?: readonly string[];
  /** Whether the message holds for the first one only: then each one's own is among its details. */
  readonly isOfFirst: boolean;
  /** Whether the file of the call is the reason: another try of the run reads the same. */
  readonly isOfFile?: boolean;
}

/** What did not succeed of a run, in words: one group where code and remedy are the same. */
export function toldFailures(state: ReportedState): readonly ToldFailure[] {
  return failureGroups(state, (reason) => messageFor(reason).remedy).map(({ reason, ...group }) => {
    const { code, statusCode, detail } = reason;
    const { message, remedy } = messageFor(reason);
    const isShared = group.details === undefined;
    const isOfFirst = group.details?.some((other) => messageFor(other.reason).message !== message) ?? false;
    return {
      ...group,
      errorCode: code,
      statusCode,
      detail: isShared && detail !== undefined ? factsOf(detail) : undefined,
      message: isOfFirst ? `${message} (the first; the others differ, each as listed)` : message,
      remedy,
      isOfFirst,
      isOfFile: detail?.effect === "file",
    };
  });
}

/** What the sentences say already is left out. */
function factsOf({ finding, fix, network, setBy, effect, operation, statusCode, ...facts }: Detail): Detail {
  return facts;
}

/** How fully a group of failures is told. */
export interface FailureForm {
  /** How many of its details are told. */
  readonly details: number;
  /** How many of its places are told; all that are known where absent. */
  readonly places?: number;
  /** Whether its detail and its users are left out. */
  readonly isBare?: boolean;
  /** What its message and its remedy may take, each, in tokens; all of both where absent. */
  readonly tokens?: number;
}

/** A group of failures as a row. */
export function failureRow(told: ToldFailure, { details: mostDetails, places, isBare, tokens }: FailureForm): Row {
  const failure = withFewPlaces(told, places);
  const { outcome, count, indexes, errorCode, statusCode, contextIds } = failure;
  const [message, remedy] = [inTokens(failure.message, tokens), inTokens(failure.remedy, tokens)];
  const ref = isBare ? undefined : cut(failure.ref);
  const details = (failure.details ?? []).slice(0, mostDetails);
  const first = ref === undefined ? "" : `, first ${shown(ref)}`;
  const place = placesWords(failure.places, { byLine: failure.byLine, omitted: failure.placesOmitted });
  const sum = contextIds === undefined || count === 1 || isBare ? {} : { contextIdsTogether: contextIds };
  const uids = isBare ? undefined : failure.uids;
  const detail = { ...(!isBare && failure.detail), ...sum, ...(uids !== undefined && { uids }) };
  const users = (uids ?? []).map((uid) => cut(uid));
  const named = users.length === 0 ? "" : `, uid ${users.map(shown).join(", ")}${count > users.length ? ", …" : ""}`;
  const together =
    contextIds === undefined || count === 1 || isBare
      ? ""
      : ` Together they give ${thousands(contextIds)} Context IDs.`;
  const each =
    details.length === 0 ? "" : ` Each: ${details.map((detail) => detailWords(detail, failure)).join("; ")}.`;
  return {
    data: {
      count,
      outcome,
      indexes: isBare ? indexes.slice(0, places) : indexes,
      ...(failure.byLine && { lines: linesOf(failure.places).slice(0, isBare ? places : undefined) }),
      ...(ref !== undefined && { ref }),
      errorCode,
      ...(statusCode !== undefined && { statusCode }),
      ...(Object.keys(detail).length > 0 && { detail: short(detail) }),
      ...(details.length > 0 && { details: details.map((detail) => detailData(detail, failure)) }),
      message,
      remedy,
    },
    line: `- ${count} ${OUTCOME_WORDS[outcome]} (${place}${first}${named}): ${codeWords(errorCode)}: ${message}. ${remedy}${together}${each}`,
  };
}

/** A group of failures with its first places only. */
export function withFewPlaces(failure: ToldFailure, most = Number.POSITIVE_INFINITY): ToldFailure {
  const { indexes, places } = failure;
  if (places.length <= most) return failure;
  return { ...failure, indexes: indexes.slice(0, most), places: places.slice(0, most), placesOmitted: true };
}

function inTokens(sentence: string, most: number | undefined): string {
  return most === undefined ? sentence : withinTokens(sentence, most);
}

/** What is told of one object's reason: what was found about it only where the message does not say it of all. */
function detailOf(detail: Detail, { isOfFirst }: ToldFailure): Detail {
  const { finding } = detail;
  return isOfFirst && finding !== undefined ? { finding } : factsOf(detail);
}

/** The first lines, one by one, as `indexes` has the items. */
function linesOf(places: ToldFailure["places"]): readonly number[] {
  const lines: number[] = [];
  for (const [from, to] of places)
    for (let line = from; line <= to && lines.length < LINES_SHOWN; line += 1) lines.push(line);
  return lines;
}

const LINES_SHOWN = 20;

function detailData({ reason, ...place }: FailureDetail, failure: ToldFailure): Detail {
  return { ...shortFields(detailOf(reason.detail ?? {}, failure)), ...place };
}

/** Reasons whose message says what their detail says, and how to read it. */
const SAID_IN_MESSAGE: ReadonlySet<string> = new Set(["INVALID_NAME"]);

/** One object's own detail on a line: its place, and the values. */
function detailWords({ reason, ...place }: FailureDetail, failure: ToldFailure): string {
  if (SAID_IN_MESSAGE.has(reason.code)) return `${placeWords(place)}: ${messageFor(reason).message}`;
  const values = Object.entries(detailOf(reason.detail ?? {}, failure)).map(
    ([field, value]) => `${word(field)} ${said(value)}`,
  );
  return `${placeWords(place)} ${values.join(", ")}`;
}

/** The names of documented fields are plain words; any other is foreign text. */
function word(field: string): string {
  return /^[a-zA-Z]{1,30}$/.test(field) ? field : shownBriefly(field);
}

function said(value: unknown): string {
  if (Array.isArray(value)) return value.slice(0, LIST_SHOWN).map(said).join(" ");
  if (typeof value === "string") return isUlid(value) ? value : shownBriefly(value);
  return typeof value === "number" || typeof value === "boolean" ? String(value) : shownBriefly(JSON.stringify(value));
}

const LIST_SHOWN = 3;
/** Of single characters and short words, such as those that a name may not have. */
const SHORT_LIST_SHOWN = 40;
const SHORT_WORD = 12;
const FIELDS_SHOWN = 20;
const DEEPEST = 4;

/** Long lists and texts of a detail are cut: all of it is in the run's results. */
function short(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return cut(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth === DEEPEST) return "…";
  return Array.isArray(value)
    ? value.slice(0, mostShown(value)).map((entry) => short(entry, depth + 1))
    : shortFields(value, depth + 1);
}

function mostShown(list: readonly unknown[]): number {
  const isShort = list.every((entry) => typeof entry === "string" && entry.length <= SHORT_WORD);
  return isShort ? SHORT_LIST_SHOWN : LIST_SHOWN;
}

function shortFields(fields: object, depth = 0): Detail {
  const some = Object.entries(fields).slice(0, FIELDS_SHOWN);
  return Object.fromEntries(some.map(([field, value]) => [cut(field), short(value, depth)]));
}

/** A name or ID that is not longer than any valid one. */
export function cut(text: string): string;
export function cut(text: string | undefined): string | undefined;
export function cut(text: string | undefined): string | undefined {
  return text !== undefined && text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
}
