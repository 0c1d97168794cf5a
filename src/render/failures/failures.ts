import { type FailureDetail, type FailureGroup, failureGroups, type ReportedState } from "../../runs/report.ts";
import { isUlid } from "../../spec/ulid.ts";
import { shown, shownBriefly } from "../fence.ts";
import type { Row } from "../row.ts";
import { codeWords, messageFor, OUTCOME_WORDS } from "./messages.ts";

/** What callers gave as name or ID may be of any length; no valid one is longer than this. */
const LONGEST_TEXT = 120;

type Detail = Readonly<Record<string, unknown>>;

/** Objects that did not succeed for the same reason, in words. */
export interface ToldFailure extends Omit<FailureGroup, "reason"> {
  readonly errorCode: string;
  readonly statusCode?: number | undefined;
  /** What is the same for all of them. */
  readonly detail?: Detail | undefined;
  readonly message: string;
  readonly remedy: string;
}

/** What did not succeed of a run, in words: one group where code and remedy are the same. */
export function toldFailures(state: ReportedState): readonly ToldFailure[] {
  return failureGroups(state, (reason) => messageFor(reason).remedy).map(({ reason, ...group }) => {
    const { code, statusCode, detail } = reason;
    const { message, remedy } = messageFor(reason);
    const isShared = group.details === undefined;
    return {
      ...group,
      errorCode: code,
      statusCode,
      detail: isShared && detail !== undefined ? factsOf(detail) : undefined,
      message: isSaidByAll(message, group.details) ? message : `${message} (the first; each of the others is listed)`,
      remedy,
    };
  });
}

function isSaidByAll(message: string, details: readonly FailureDetail[] = []): boolean {
  return details.every(({ reason }) => messageFor(reason).message === message);
}

/** What the sentences say already is left out. */
function factsOf({ finding, fix, ...facts }: Detail): Detail {
  return facts;
}

/** A group of failures as a row; `mostDetails` says how many of its details are told. */
export function failureRow(failure: ToldFailure, mostDetails: number): Row {
  const { outcome, count, indexes, lines, errorCode, statusCode, message, remedy } = failure;
  const ref = cut(failure.ref);
  const details = (failure.details ?? []).slice(0, mostDetails);
  const first = ref === undefined ? "" : `, first ${shown(ref)}`;
  const more = count > indexes.length ? ", …" : "";
  const place =
    lines === undefined ? `items ${indexes.join(", ")}` : `rows ${indexes.join(", ")}, lines ${lines.join(", ")}`;
  const each = details.length === 0 ? "" : ` Each: ${details.map(detailWords).join("; ")}.`;
  return {
    data: {
      count,
      outcome,
      indexes,
      ...(lines !== undefined && { lines }),
      ...(ref !== undefined && { ref }),
      errorCode,
      ...(statusCode !== undefined && { statusCode }),
      ...(failure.detail !== undefined && { detail: short(failure.detail) }),
      ...(details.length > 0 && { details: details.map(detailData) }),
      message,
      remedy,
    },
    line: `- ${count} ${OUTCOME_WORDS[outcome]} (${place}${more}${first}): ${codeWords(errorCode)}: ${message}. ${remedy}${each}`,
  };
}

function detailData({ reason, ...place }: FailureDetail): Detail {
  return { ...shortFields(factsOf(reason.detail ?? {})), ...place };
}

/** One object's own detail on a line: its place, and the values. */
function detailWords({ index, line, child, grandchild, reason }: FailureDetail): string {
  const place = [index, child, grandchild].filter((part) => part !== undefined).join(".");
  const values = Object.entries(factsOf(reason.detail ?? {})).map(([field, value]) => `${word(field)} ${said(value)}`);
  return `${line === undefined ? `item ${place}` : `line ${line}`} ${values.join(", ")}`;
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
const FIELDS_SHOWN = 20;
const DEEPEST = 4;

/** Long lists and texts of a detail are cut: all of it is in the run's results. */
function short(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return cut(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth === DEEPEST) return "…";
  return Array.isArray(value)
    ? value.slice(0, LIST_SHOWN).map((entry) => short(entry, depth + 1))
    : shortFields(value, depth + 1);
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
