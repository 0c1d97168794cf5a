import { cutText, thousands } from "../platform/text.ts";
import type { Outcome, Reason } from "../runs/outcome.ts";
import {
  type FailureDetail,
  type FailureGroup,
  type FailureKind,
  failureGroups,
  MOST_RANGES,
  type ReportedState,
} from "../runs/report.ts";
import { isUlid } from "../spec/names-and-contexts.ts";
import type { BulkOperation } from "../spec/routes.ts";
import { withinTokens } from "./budget.ts";
import { EVENT_SENTENCES } from "./event-messages.ts";
import { countedPlaces, isOurs, placeWords, plain, quoteShort, quoteUntrusted } from "./fence.ts";
import {
  because,
  type Detail,
  heldWords,
  isPage,
  type Message,
  many,
  type Reader,
  type Sentence,
  saying,
  staleWords,
  textFor,
  withoutResume,
} from "./message-words.ts";
import { OWN_SENTENCES } from "./own-messages.ts";
import { SERVICE_SENTENCES } from "./service-messages.ts";

const SENTENCES: Readonly<Record<string, Sentence>> = { ...EVENT_SENTENCES, ...SERVICE_SENTENCES, ...OWN_SENTENCES };

/** Returns the message and the remedy for a reason. Foreign text in its `detail` is quoted and escaped. */
export function messageFor(reason: Reason, reader: Reader = "agent"): Message {
  const sentence = Object.hasOwn(SENTENCES, reason.code) ? SENTENCES[reason.code] : undefined;
  if (sentence !== undefined) {
    const { message, remedy, shared } =
      typeof sentence === "function" ? sentence(reason.detail ?? {}, reason) : sentence;
    return {
      message: textFor(message, reader),
      remedy: textFor(remedy, reader),
      ...(shared !== undefined && { shared }),
    };
  }
  const status = reason.statusCode === undefined ? "" : ` (status ${reason.statusCode})`;
  return {
    message: `the service refused the item with ${quoteUntrusted(reason.code)}${status}${saying(reason.detail ?? {})}`,
    remedy: "The API's documents do not list this code: look at the item in the web console.",
  };
}

/** Returns a code for an answer. An unknown code is foreign text, so it is quoted. */
function codeWords(code: string): string {
  return Object.hasOwn(SENTENCES, code) ? code : quoteShort(code);
}

/** Returns a reason for the file of failed rows. It says that its line numbers are those of the original file. */
export function reasonWords(reason: Reason): string {
  const { message } = messageFor(reason, "sheet");
  const { remedy } = messageFor(reason);
  return `${codeWords(reason.code)}: ${message}. ${remedy}`;
}

export const OPERATION_WORDS: Readonly<Record<BulkOperation, string>> = {
  createTargetings: "create targetings",
  renameTargetings: "rename targetings",
  deleteTargetings: "delete targetings",
  addOptions: "add options",
  updateOptions: "update options",
  deleteOptions: "delete options",
};

export const OUTCOME_WORDS: Readonly<Record<Outcome | "pending", string>> = {
  succeeded: "succeeded",
  alreadyDone: "already done",
  skipped: "skipped",
  failed: "failed",
  notApplied: "not applied",
  unknown: "unknown",
  pending: "pending",
};

/** The maximum length of a name, an ID or a text in a detail. Valid names and IDs of objects are shorter. */
const LONGEST_TEXT = 120;

export interface SummarizedFailure extends Omit<FailureGroup, "reason"> {
  readonly errorCode: string;
  readonly statusCode?: number | undefined;
  readonly detail?: Detail | undefined;
  readonly message: string;
  readonly shared?: string | undefined;
  /** What is wrong with an event that was not sent, without the beginning of the message. */
  readonly finding?: string | undefined;
  readonly remedy: string;
  readonly uids?: readonly string[];
  /** Whether the message describes only the first object of the group. `details` then shows how the others differ. */
  readonly isOfFirst: boolean;
  /** Whether the message describes several kinds of objects, each with its count and its first positions. */
  readonly isOfKinds?: boolean;
  /** Whether the file of the call is the cause. Resuming the run would read the same file again. */
  readonly isOfFile?: boolean;
  /** Whether the objects may not have been sent at all, because the process ended before it noted an outcome. */
  readonly isUnsure?: boolean;
}

/** Groups the failures of a run by code and remedy, so that an answer states each reason only once. */
export function groupFailures(state: ReportedState, reader: Reader = "agent"): readonly SummarizedFailure[] {
  const isOnPage = isPage(reader);
  const most = isOnPage ? MOST_RANGES.person : MOST_RANGES.agent;
  return failureGroups(state, isOnPage ? groupingRules : groupingWords, most, reasonsIn(state)).map(
    ({ reason, kinds = [], details, ...group }) => {
      const { code, statusCode, detail } = reason;
      const { message, shared, remedy } = messageFor(reason, reader);
      const [first, ...others] = details ?? [];
      const isOfFirst = others.some((other) => messageFor(other.reason, reader).message !== message);
      const ofRemedies = remediesWords(kinds, group, reader);
      // One object's details are shown for all if all have the same, or if they differ only in their remedies.
      const isShared = details === undefined || (ofRemedies !== undefined && !isOfFirst);
      const ofKinds = shared === undefined ? kindsWords(kinds, { ...group, code }, reader) : undefined;
      const ofFirst = isOfFirst && first !== undefined && !isOnPage ? inPlace(message, shared, first) : message;
      return {
        ...group,
        ...(!isShared && { details }),
        errorCode: code,
        statusCode,
        detail: isShared && detail !== undefined ? factsOf(detail) : undefined,
        message: ofKinds ?? ofFirst,
        ...(ofKinds !== undefined && { isOfKinds: true }),
        shared,
        finding: typeof detail?.finding === "string" ? plain(detail.finding) : undefined,
        remedy: ofRemedies ?? remedy,
        isOfFirst,
        isOfFile: detail?.effect === "file",
        ...(detail?.effect === "ended" && { isUnsure: true }),
      };
    },
  );
}

/** The codes of failures because of the name that an item gives. The object then keeps its present name. */
const OF_NAMES: readonly string[] = ["INVALID_NAME", "TARGETING_CATEGORY_NAME_DUPLICATE", "TARGETING_NAME_DUPLICATE"];

/** Returns the reasons. `freedByIndex` is added to them: the failed item, no row of a file, that did not free a name. */
function reasonsIn(state: ReportedState): ReportedState["reason"] {
  const renames = new Map<string, number>();
  const { length } = state.objects;
  for (let object = state.counts().failed > 1 ? 0 : length; object < length; object += 1) {
    const id = state.standing(object) === "failed" ? state.idOf(object) : undefined;
    const isOfName = id !== undefined && OF_NAMES.includes(state.reason(object)?.code ?? "");
    if (isOfName && state.objects.at(object)?.line === undefined) renames.set(id, object);
  }
  // For each item: the item at the end of its chain of taken names, which is the cause. A cycle has no cause.
  const causes = new Map<number, number | undefined>();
  const causeOf = (object: number): number | undefined => {
    const passed: number[] = [];
    let at: number | undefined = object;
    for (; at !== undefined && !causes.has(at); at = renames.get(holderIn(state.reason(at)))) {
      causes.set(at, undefined);
      passed.push(at);
    }
    const cause = at === undefined ? passed.at(-1) : causes.get(at);
    for (const one of passed) causes.set(one, cause);
    return cause;
  };
  return (object) => {
    const reason = state.reason(object);
    const freedBy = holderIn(reason) === "" ? object : (causeOf(object) ?? object);
    if (reason === undefined || freedBy === object) return reason;
    return { ...reason, detail: { ...reason.detail, freedByIndex: state.objects.at(freedBy)?.index } };
  };
}

/** Returns the ID of the object that has the name that a rename would give. Empty for other reasons. */
function holderIn({ code, operation, detail = {} }: Partial<Reason> = {}): string {
  const isRename = operation === "updateOptions" || operation === "renameTargetings";
  if (!isRename || code === undefined || !OF_NAMES.includes(code)) return "";
  const { existingId, existingIds } = detail;
  const [holder] = Array.isArray(existingIds) ? existingIds : [existingId];
  return typeof holder === "string" ? holder : "";
}

const SIZE = /\b\d+(?= (?:bytes|characters) \(at most)/g;

/**
 * Returns what failures must have in common to be in one group. Objects that lack the same field are one group, even if
 * their remedies differ because the value is in another field of each object.
 */
function groupingWords(reason: Reason): { readonly remedy: string; readonly kind: string } {
  const { message, remedy } = messageFor(reason);
  if (isOfMissingField(reason)) return { remedy: "", kind: remedy };
  return { remedy, kind: message.replace(SIZE, "") };
}

/**
 * Returns what failures must have in common to be in one group for people. Names that break the same rules are one
 * group, and so are cells of one column with the same damage.
 */
function groupingRules(reason: Reason): ReturnType<typeof groupingWords> {
  const { remedy, kind } = groupingWords(reason);
  const { rules, damage, what } = reason.detail ?? {};
  return { remedy: JSON.stringify([remedy, rules, damage, what]), kind };
}

const MISSING_FIELD = /^(?:requiredMissing|uidMissing|eventNameMissing) /;

function isOfMissingField({ detail }: Reason): boolean {
  return typeof detail?.rule === "string" && MISSING_FIELD.test(detail.rule);
}

/** Returns the different remedies for a missing field, each with its count and places. Undefined if all are equal. */
function remediesWords(
  kinds: readonly FailureKind[],
  { count, byLine }: Pick<FailureGroup, "count" | "byLine">,
  reader: Reader,
): string | undefined {
  if (kinds.length < 2 || !kinds.every(({ reason }) => isOfMissingField(reason))) return undefined;
  const { words, more } = wordsOfKinds(kinds, { count, byLine }, (reason) => messageFor(reason, reader).remedy);
  return [...words, ...(more === undefined ? [] : [`${more}: get_run shows the fields of each.`])].join(" ");
}

const KINDS_SHOWN = 5;

/** Returns words about the first kinds of failures, each with its count and positions, and words for the rest. */
function wordsOfKinds(
  kinds: readonly FailureKind[],
  { count, byLine }: Pick<FailureGroup, "count" | "byLine">,
  wordsOf: (reason: Reason) => string,
): { readonly words: readonly string[]; readonly more: string | undefined } {
  const shown = kinds.slice(0, KINDS_SHOWN);
  const rest = shown.reduce((left, kind) => left - kind.count, count);
  const words = shown.map((kind) => {
    const places = countedPlaces(kind.count, kind.places, { byLine, omitted: kind.placesOmitted });
    return `${places}: ${wordsOf(kind.reason)}`;
  });
  return { words, more: rest > 0 ? many(rest, `more ${byLine ? "line" : "item"}`) : undefined };
}

/**
 * Returns what is wrong with each kind of object in a group, with its count and first positions. Undefined if there is
 * only one kind, or if each object has a message of its own.
 */
function kindsWords(
  kinds: readonly FailureKind[],
  { code, count, byLine }: Pick<FailureGroup, "count" | "byLine"> & Pick<Reason, "code">,
  reader: Reader,
): string | undefined {
  const isAmongKinds =
    code === "INVALID_NAME" || (!Object.hasOwn(SAID_OF_EACH, code) && kinds.some((kind) => kind.count > 1));
  if (kinds.length < 2 || !isAmongKinds) return undefined;
  const { words, more } = wordsOfKinds(kinds, { count, byLine }, (reason) => messageFor(reason, reader).message);
  return [...words, ...(more === undefined ? [] : [`And ${more}`])].join(". ");
}

/** Inserts the position of an object into a message, after the beginning that all messages of the group share. */
function inPlace(message: string, shared: string | undefined, place: FailureDetail): string {
  const about = shared === undefined ? "" : `${shared}: `;
  return `${about}${placeWords(place)}: ${message.slice(about.length)}`;
}

function factsOf({
  finding,
  fix,
  uncorrected,
  network,
  setBy,
  effect,
  operation,
  statusCode,
  freedByIndex,
  ...facts
}: Detail): Detail {
  return facts;
}

export interface FailureForm {
  readonly details: number;
  readonly places?: number;
  readonly isBare?: boolean;
  readonly tokens?: number;
}

/** A failure as data and as lines. Where possible, lines with foreign text are separate from those with our words. */
export interface FailureRow {
  readonly data: Readonly<Record<string, unknown>>;
  readonly lines: readonly string[];
  /** Whether `lines` begin with a heading of several failures, or belong below the one above. */
  readonly heading?: "own" | "above" | undefined;
  /** Whether the message or the remedy is cut. */
  readonly isCut?: boolean;
}

interface Beside {
  readonly isNamed?: boolean;
  readonly resumes?: boolean;
  /** Whether the heading above (see `sharedLine`) already has the code and the shared beginning of the message. */
  readonly isBelowShared?: boolean;
}

/** Returns the heading of failures with the same code: the code, their number, and how all their messages begin. */
export function sharedLine(failures: readonly SummarizedFailure[]): string {
  const [first] = failures;
  if (first === undefined) return "";
  const count = failures.reduce((sum, failure) => sum + failure.count, 0);
  return `${codeWords(first.errorCode)}, ${thousands(count)} ${first.byLine ? "lines" : "items"}: ${first.shared}:`;
}

export function failureRow(
  failure: SummarizedFailure,
  { details: mostDetails, places, isBare = false, tokens }: FailureForm,
  { isNamed = false, resumes = false, isBelowShared = false }: Beside = {},
): FailureRow {
  const { outcome, count, indexes, errorCode, statusCode, contextIds, byLine } = failure;
  const short = withFewPlaces(failure, places);
  const afterShared = isBelowShared
    ? failure.message.slice((failure.shared ?? "").length).replace(/^: /, "")
    : failure.message;
  const [own, remedy] = [inTokens(afterShared, tokens), inTokens(failure.remedy, tokens)];
  const message = tokens === undefined ? failure.message : own;
  const ref = isBare ? undefined : cut(failure.ref);
  const details = (failure.details ?? []).slice(0, mostDetails);
  const uids = isBare ? undefined : failure.uids;
  const sum = contextIds === undefined || count === 1 || isBare ? undefined : contextIds;
  const detail = {
    ...(!isBare && failure.detail),
    ...(sum !== undefined && { contextIdsTogether: sum }),
    ...(uids !== undefined && { uids }),
  };
  const data = {
    count,
    outcome,
    indexes: isBare ? indexes.slice(0, places) : indexes,
    ...(byLine && { lines: linesOf(failure.places).slice(0, isBare ? places : undefined) }),
    ...(ref !== undefined && { ref }),
    errorCode,
    ...(statusCode !== undefined && { statusCode }),
    ...(Object.keys(detail).length > 0 && { detail: shortened(detail) }),
    ...(details.length > 0 && { details: details.map((one) => detailData(one, failure)) }),
    message,
    remedy,
  };
  const how = resumes ? withoutResume(remedy) : remedy;
  // An option that was skipped because it exists has an ID that the caller may not know, so it is shown.
  const examples = failure.examples.map(({ name, _id }) => ({ name, _id: outcome === "skipped" ? _id : undefined }));
  const names = ref === undefined ? [] : isNamed && examples.length > 0 ? examples : [{ name: ref }];
  const place = failure.isOfKinds
    ? many(count, byLine ? "line" : "item")
    : countedPlaces(count, short.places, { byLine, omitted: short.placesOmitted });
  const notFailed = outcome === "failed" ? "" : `, ${OUTCOME_WORDS[outcome]}`;
  const together = sum === undefined ? "" : ` Together they give ${many(sum, "Context ID")}.`;
  const about = `${own}.${how === "" ? "" : ` ${how}`}${together}`;
  const of = [exampleWords(names, count, message), uidWords(uids, count)].filter((part) => part !== "").join(", ");
  const head = isBelowShared ? place : `${codeWords(errorCode)}, ${place}`;
  const whole = `${head}${of === "" ? "" : ` ${of}`}${notFailed}: ${about}`;
  const isApart = of !== "" && !isOurs(whole) && isOurs(about);
  const others = details.slice(0, DETAILS_IN_TEXT);
  const each = failure.isOfKinds ? "" : othersWords(others, failure);
  return {
    data,
    isCut: own !== afterShared || remedy !== failure.remedy,
    lines: [
      ...(isApart ? [`${head}${notFailed}: ${about}`, `${count === 1 ? head : examplesOf(failure)}: ${of}`] : [whole]),
      ...(each === "" ? [] : [`Each: ${each}${count > others.length ? "; …" : ""}`]),
    ],
  };
}

/** Returns a heading for the examples of a failure. It has no count, because the line with the reason has it. */
function examplesOf({ errorCode, places, byLine }: SummarizedFailure): string {
  return `Examples of ${codeWords(errorCode)}, from ${byLine ? "line" : "item"} ${places[0]?.[0] ?? 1}`;
}

const DETAILS_IN_TEXT = 5;

function exampleWords(names: FailureGroup["examples"], count: number, message: string): string {
  // A name that the message already quotes is not given as an example as well.
  const picked = count === 1 ? names.filter(({ name }) => !message.includes(quoteUntrusted(cut(name)))) : names;
  return picked.length === 0
    ? ""
    : `${picked.map(({ name, _id }) => `${quoteUntrusted(cut(name))}${_id === undefined ? "" : ` ${_id}`}`).join(", ")}${count > picked.length ? ", …" : ""}`;
}

/** A failure has the uids of this many events. */
export const UIDS_OF = 5;

function uidWords(uids: readonly string[] | undefined, count: number): string {
  if (uids === undefined || uids.length === 0) return "";
  const which = count > UIDS_OF ? `uids of the first ${UIDS_OF}:` : "uid";
  return `${which} ${uids.map((uid) => quoteUntrusted(cut(uid))).join(", ")}`;
}

export function withFewPlaces(failure: SummarizedFailure, most = Number.POSITIVE_INFINITY): SummarizedFailure {
  const { indexes, places } = failure;
  // One more place takes no more room than the ellipsis for it.
  if (places.length <= most + 1) return failure;
  return { ...failure, indexes: indexes.slice(0, most), places: places.slice(0, most), placesOmitted: true };
}

function inTokens(sentence: string, most: number | undefined): string {
  return most === undefined ? sentence : withinTokens(sentence, most);
}

/** Returns the part of a detail to show. If the failure's message is only about the first object: only the finding. */
function detailOf(detail: Detail, { isOfFirst }: SummarizedFailure): Detail {
  const { finding } = detail;
  return isOfFirst && finding !== undefined ? { finding } : factsOf(detail);
}

function linesOf(places: SummarizedFailure["places"]): readonly number[] {
  const lines: number[] = [];
  for (const [from, to] of places.toSorted(([one], [other]) => one - other))
    for (let line = from; line <= to && lines.length < LINES_SHOWN; line += 1) lines.push(line);
  return lines;
}

const LINES_SHOWN = 20;

function detailData({ reason, ...place }: FailureDetail, failure: SummarizedFailure): Detail {
  return { ...shortFields(detailOf(reason.detail ?? {}, failure)), ...place };
}

/** Functions that return what is wrong with one object, by code. Used if the objects of a failure differ. */
const SAID_OF_EACH: Readonly<Record<string, (reason: FailureDetail["reason"]) => string>> = {
  INVALID_NAME: (reason) => messageFor(reason).message,
  DUPLICATE_IN_INPUT: (reason) => messageFor(reason).message,
  NOT_EMPTY: ({ detail = {} }) => heldWords(detail),
  PLAN_STALE: ({ detail = {} }) => staleWords(detail),
};

function othersWords(details: readonly FailureDetail[], failure: SummarizedFailure): string {
  const fieldsOf = (detail: FailureDetail): Detail => {
    const { because: _, reason, ...fields } = detailOf(detail.reason.detail ?? {}, failure);
    return fields;
  };
  const isDifferent = (field: string): boolean =>
    new Set(details.map((detail) => JSON.stringify(fieldsOf(detail)[field]))).size > 1;
  const [first] = details;
  const sayOfEach = SAID_OF_EACH[first?.reason.code ?? ""];
  // If all objects have the same text, the message of the failure already says it.
  if (sayOfEach !== undefined && new Set(details.map(({ reason }) => sayOfEach(reason))).size === 1) return "";
  return details
    .flatMap((detail) => {
      const { reason, ...place } = detail;
      if (sayOfEach !== undefined) return `${placeWords(place)}: ${sayOfEach(reason)}`;
      const why = because(reason.detail ?? {});
      const all = fieldsOf(detail);
      // The caller has given the name of the object that the detail describes, so only its ID is shown.
      const fields = Object.entries("_id" in all ? { _id: all._id } : all).filter(
        ([field]) => details.length === 1 || isDifferent(field),
      );
      const values = fields.map(([field, value]) =>
        fields.length === 1 ? detailWords(value) : `${word(field)} ${detailWords(value)}`,
      );
      // The message already explains the first object. The same explanation is not repeated.
      const other = why === because(first?.reason.detail ?? {}) ? "" : why;
      const words = `${values.length === 0 ? "" : ` ${values.join(", ")}`}${other}`;
      return words === "" ? [] : `${placeWords(place)}${words}`;
    })
    .join("; ");
}

/** Returns the name of a field for an answer. A name that cannot be ours may be foreign text, so it is quoted. */
function word(field: string): string {
  return /^[a-zA-Z]{1,30}$/.test(field) ? field : quoteShort(field);
}

function detailWords(value: unknown): string {
  if (Array.isArray(value)) return value.slice(0, LIST_SHOWN).map(detailWords).join(" ");
  if (typeof value === "string") return isUlid(value) ? value : quoteShort(value);
  return typeof value === "number" || typeof value === "boolean" ? String(value) : quoteShort(JSON.stringify(value));
}

const LIST_SHOWN = 3;
/** How many entries of a list are shown if all of them are short, for example characters. */
const SHORT_LIST_SHOWN = 40;
const SHORT_WORD = 12;
const FIELDS_SHOWN = 20;
const DEEPEST = 4;

function shortened(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return cut(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth === DEEPEST) return "…";
  if (!Array.isArray(value)) return shortFields(value, depth + 1);
  const isShort = value.every((entry) => typeof entry === "string" && entry.length <= SHORT_WORD);
  return value.slice(0, isShort ? SHORT_LIST_SHOWN : LIST_SHOWN).map((entry) => shortened(entry, depth + 1));
}

function shortFields(fields: object, depth = 0): Detail {
  const some = Object.entries(fields).slice(0, FIELDS_SHOWN);
  return Object.fromEntries(some.map(([field, value]) => [cut(field), shortened(value, depth)]));
}

export function cut(text: string): string;
export function cut(text: string | undefined): string | undefined;
export function cut(text: string | undefined): string | undefined {
  return text === undefined ? undefined : cutText(text, LONGEST_TEXT);
}
