import { messageFor, OUTCOME_WORDS, type SummarizedFailure } from "../answers/failures.ts";
import { placesWords, placeWords } from "../answers/fence.ts";
import { earlierPlace, many, type Reader, text } from "../answers/message-words.ts";
import { isChangeRun } from "../changes/change-run.ts";
import { capitalized, characterList, cutText, thousands } from "../platform/text.ts";
import type { Run } from "../runs/kind.ts";
import { objectResult } from "../runs/report.ts";
import { LIMITS } from "../spec/limits.ts";
import type { ToolServices } from "../tools/define-tool.ts";
import { pageOf } from "./list-page.ts";
import { namesOfRows } from "./row-names.ts";
import type { FailureRow, ProblemList, ProblemRow, RunRow } from "./wire.ts";

/** The maximum number of characters of a value. */
const MAX_LETTERS = 300;

/** The error codes of events that are deliberately not sent, because the service would ignore or reject them. */
const HELD_BACK: ReadonlySet<string> = new Set(["EVENT_IGNORED", "EVENT_REJECTED"]);

/** Returns the reader for whom remedies are written. `canResume`: whether the page shows the button Resume run. */
export function readerOf(canResume: boolean): Reader {
  return canResume ? "page" : "endedPage";
}

/** Returns a failure as the page shows it. */
export function failureRow(failure: SummarizedFailure): FailureRow {
  const { outcome, remedy } = failure;
  const kind = outcome === "failed" || outcome === "notApplied" || outcome === "skipped" ? outcome : "unknown";
  return {
    ...{ outcome: kind, count: failure.count, message: sharedMessage(failure), remedy },
    ...{ places: placesOf(failure), ...examplesOf(failure), cause: causeOf(failure) },
    ...(HELD_BACK.has(failure.errorCode) && { isHeldBack: true }),
  };
}

/** A warning at the end of the text for an agent. For example, an event that is sent twice may count twice. */
const UNKNOWN_END = "The unknown ones may have taken effect: check before you send them again.";

/**
 * Returns a text that a person can give to an agent, which then fixes the failures: the run, each reason with its
 * positions, and the call that returns the rows. Undefined if nothing failed.
 */
export function forAgent(
  { runId, tool, fileName, actions }: RunRow,
  failures: readonly FailureRow[],
): string | undefined {
  if (failures.length === 0) return undefined;
  const reasons = failures.map(
    ({ count, places, message, remedy, outcome }) =>
      `- ${count} ${OUTCOME_WORDS[outcome]} (${places}): ${message.replace(/\.$/, "")}. ${remedy}`,
  );
  const call = (which: string) => `Their input: get_run {"runId":"${runId}","outcome":"${which}","includeInput":true}`;
  const has = (which: FailureRow["outcome"]) => failures.some(({ outcome }) => outcome === which);
  const ends = [
    ...(has("failed") ? [call("failed"), "Fix the failed ones, and send only these again."] : []),
    ...(has("unknown") ? [call("unknown"), UNKNOWN_END] : []),
    ...(has("notApplied") && actions.includes("resume")
      ? [`To apply those not applied: resume_run {"runId":"${runId}"}`]
      : []),
  ];
  const from = fileName === undefined ? "" : `, ${fileName}`;
  return [`In run ${runId} (${tool}${from}), these did not succeed:`, ...reasons, ...ends].join("\n");
}

/** The maximum number of characters of the text that lists the positions of a failure. */
const PLACES_LETTERS = 300;
const FIRST_VALUES = 2;
/** The maximum number of characters of an example: a name or a wrong value. The web page shows as many. */
const VALUE_LETTERS = 40;

/** Returns the positions in the input of the objects that failed for one reason: `lines 6, 23, 40-44 and 17 more`. */
function placesOf({ count, places, placesOmitted, byLine }: SummarizedFailure): string {
  let shown = places.length;
  while (shown > 1 && placesWords(places.slice(0, shown), { byLine }).length > PLACES_LETTERS) shown -= 1;
  const first = places.slice(0, shown);
  const named = first.reduce((sum, [from, to]) => sum + to - from + 1, 0);
  const isCut = placesOmitted || shown < places.length;
  return placesWords(first, { byLine }) + (isCut ? ` and ${thousands(Math.max(1, count - named))} more` : "");
}

/**
 * Returns examples for a failure: the names of its first objects or, if they have no names, their wrong values.
 * `areAll`: no object has another name or value.
 */
function examplesOf(failure: SummarizedFailure): Pick<FailureRow, "examples" | "areAll"> {
  const { count, examples, details = [], detail, isOfFirst } = failure;
  const names = examples.map(({ name }) => name);
  const values = [detail, ...details.map(({ reason }) => reason.detail)].flatMap((one) =>
    typeof one?.value === "string" ? [one.value] : [],
  );
  const some = names.length > 0 ? names : values;
  // Values that are equal after they are cut are shown once.
  const shown = [...new Set(some.map((text) => cutText(text, VALUE_LETTERS)))];
  // If all rows are reported as duplicates of one other row, they all have its name, so no other names are missing.
  const isOneName =
    failure.errorCode === "DUPLICATE_IN_INPUT" && !isOfFirst && !failure.isOfKinds && details.length === 0;
  const areAll = shown.length <= FIRST_VALUES && (some.length >= count || isOneName);
  return { examples: shown.slice(0, FIRST_VALUES), ...(areAll && { areAll }) };
}

const [SHORTEST, LONGEST] = [LIMITS.nameMinLength.value, LIMITS.nameMaxLength.value];

/** The words for each rule that an invalid name can break. */
const NAME_CAUSES: Readonly<Record<string, string>> = {
  decomposed: "has decomposed Hangul",
  tooShort: `under ${SHORTEST} characters`,
  tooLong: `over ${LONGEST} characters`,
  outerSpace: "begins or ends with a space",
};

/** Returns what is wrong with invalid names in a few words. All names of a failure break the same rules. */
function nameCause({ details = [], detail = {}, count }: SummarizedFailure): string | undefined {
  const each = details.length === 0 ? [detail] : details.map(({ reason }) => reason.detail ?? {});
  const textsOf = (list: unknown): readonly string[] => (Array.isArray(list) ? list.map(String) : []);
  const rules = textsOf(each[0]?.rules);
  if (rules.includes("tooShort") && each[0]?.length === 0) return "name is empty";
  const found = [...new Set(each.flatMap(({ characters }) => textsOf(characters)))];
  const isCut = details.length > 0 && count > details.length;
  const parts = [
    ...rules.flatMap((rule) => (Object.hasOwn(NAME_CAUSES, rule) ? [NAME_CAUSES[rule]] : [])),
    ...(found.length > 0 ? [`contains ${characterList(found)}${isCut ? ", …" : ""}`] : []),
  ];
  return parts.length === 0 ? undefined : `name ${parts.join(", ")}`;
}

/** The words for the most frequent kinds of damage to cells. */
const DAMAGE_CAUSES: Readonly<Record<string, string>> = {
  scientific: "rounded by a spreadsheet",
  date: "changed into a date",
  formulaError: "is a formula error",
  misread: "has a wrong encoding",
  undecoded: "has a wrong encoding",
};

/**
 * Returns what is wrong with events that were deliberately not sent. The heading already says that they were not sent.
 * Undefined if only the first of these events has this problem.
 */
function findingOf({ isOfFirst, finding }: SummarizedFailure): string | undefined {
  return isOfFirst ? undefined : finding;
}

/** Returns the details of the first object of a failure. */
function detailOf({ detail, details }: SummarizedFailure): NonNullable<SummarizedFailure["detail"]> {
  return detail ?? details?.[0]?.reason.detail ?? {};
}

const NAME_EXISTS = "name already exists";

/** The maximum number of repeated rows that a cause names, each with the earlier row. The message names up to 20. */
const MAX_REPEATS = 3;

/** Lists the rows that repeat a name, each with the earlier row: `line 302 = 298, line 305 = 299, …`. */
function repeatsOf({ details = [], count }: SummarizedFailure, most?: number): string {
  const shown = details
    .slice(0, most)
    .map(({ reason, ...place }) => `${placeWords(place)} = ${earlierPlace(reason.detail ?? {})}`);
  return shown.join(", ") + (count > shown.length ? ", …" : "");
}

/** Says which rows have the name or all data of an earlier row. Undefined if there are none. */
function repeatCause(failure: SummarizedFailure): string | undefined {
  const { details, byLine } = failure;
  const detail = detailOf(failure);
  const place = earlierPlace(detail);
  if (place === undefined || detail.field === "_id") return undefined;
  const isSame = detail.contexts === "same";
  if (details !== undefined) return `${isSame ? "row" : "name"} used twice: ${repeatsOf(failure, MAX_REPEATS)}`;
  const others = detail.contexts === "other" ? ", other Context IDs" : "";
  return `${isSame ? "equals" : "repeats"} ${byLine ? "line" : "item"} ${place}${others}`;
}

/** The words for frequent failures, by error code. For a code without an entry, the page shows the whole message. */
const CAUSES: Readonly<Record<string, (failure: SummarizedFailure) => string | undefined>> = {
  INVALID_NAME: nameCause,
  INVALID_CONTEXT_ID: (failure) =>
    detailOf(failure).rule === "tooLong" ? `Context ID over ${LIMITS.contextIdBytes.value} bytes` : undefined,
  INVALID_ROW(failure) {
    const { damage, what } = detailOf(failure);
    const key = String(damage);
    return Object.hasOwn(DAMAGE_CAUSES, key) ? `${what} ${DAMAGE_CAUSES[key]}` : undefined;
  },
  TARGETING_CATEGORY_NAME_DUPLICATE: (failure) => repeatCause(failure) ?? NAME_EXISTS,
  DUPLICATE_IN_INPUT: repeatCause,
  NAME_NOT_FOUND(failure) {
    const { field, nested, value } = detailOf(failure);
    // If `nested` is set, an option that cannot be the group has this name. The whole message explains this.
    if (field !== "parentName" || nested !== undefined) return undefined;
    return failure.isOfFirst || failure.isOfKinds ? "group does not exist" : `no group ${text(value)}`;
  },
  EXISTS: () => NAME_EXISTS,
  NEEDS_FAILED: () => "the row of its group failed",
  EVENT_IGNORED: findingOf,
  EVENT_REJECTED: findingOf,
};

/** Returns the cause of a failure in a few words. Undefined if `CAUSES` has no words for it. */
function causeOf(failure: SummarizedFailure): string | undefined {
  const { errorCode } = failure;
  return Object.hasOwn(CAUSES, errorCode) ? CAUSES[errorCode]?.(failure) : undefined;
}

/** For failures in which each object has its own wrong value: what is wrong with all of them, by code and rule. */
const IN_COMMON: Readonly<Record<string, string>> = {
  "INVALID_NAME characters": "not allowed in a name",
  "INVALID_NAME tooLong": `name longer than ${LIMITS.nameMaxLength.value} characters`,
  "INVALID_NAME tooShort": `name shorter than ${LIMITS.nameMinLength.value} characters`,
  "INVALID_CONTEXT_ID tooLong": `Context ID longer than ${LIMITS.contextIdBytes.value} bytes`,
};

/** Returns the message of a failure. If its objects have different messages: what is common, or one as an example. */
function sharedMessage(failure: SummarizedFailure): string {
  const { isOfFirst, isOfKinds, errorCode, count, details = [], message } = failure;
  if (!isOfFirst) return message;
  const each = details.map(({ reason }) => reason.detail ?? {});
  const [detail = {}] = each;
  const [rule] = Array.isArray(detail.rules) ? detail.rules : [detail.rule];
  const key = `${errorCode} ${String(rule)}`;
  const common = Object.hasOwn(IN_COMMON, key) ? IN_COMMON[key] : undefined;
  const hasOneRule = each.every(({ rules }) => !Array.isArray(rules) || rules.length === 1);
  if (isOfKinds && (common === undefined || !hasOneRule)) return message;
  if (common === undefined) {
    if (causeOf(failure) === undefined || earlierPlace(detail) === undefined) return `for example, ${message}`;
    return `same name${detail.contexts === "same" ? " and Context IDs" : ""} as an earlier one: ${repeatsOf(failure)}`;
  }
  const found = each.flatMap(({ characters }) => (Array.isArray(characters) ? characters.map(String) : []));
  if (rule !== "characters") return common;
  return `${common}: ${characterList([...new Set(found)])}${count > details.length ? ", …" : ""}`;
}

/**
 * Returns one page of the rows or items that did not succeed. With `of=unknown` in the query, those with an unknown
 * result; otherwise those that failed, were skipped or were not applied.
 */
export async function problemList(
  run: Run,
  query: URLSearchParams,
  { canResume, runs }: Pick<ToolServices, "runs"> & { readonly canResume: boolean },
): Promise<ProblemList> {
  const { state } = run;
  const reader = readerOf(canResume);
  const isUnknown = query.get("of") === "unknown";
  const all = Array.from({ length: state.objects.length }, (_, object) => object).flatMap((object) => {
    const outcome = OUTCOMES.find((one) => one === state.standing(object));
    const reason = state.reason(object);
    const isWanted = outcome !== undefined && reason !== undefined && (outcome === "unknown") === isUnknown;
    return isWanted ? [{ object, outcome, reason }] : [];
  });
  const { rows, total } = pageOf(all, query);
  const unnamed = rows.flatMap(({ object }) => {
    const { index, name, _id } = objectResult(state, object);
    return name === undefined && _id === undefined ? [index] : [];
  });
  const names = await namesOfRows(run, new Set(unnamed), { runs });
  const problemRow = ({ object, outcome, reason }: (typeof all)[number]): ProblemRow => {
    const result = objectResult(state, object);
    const { message: problem, remedy: suggestion } = messageFor(reason, reader);
    const name = result.name ?? result._id ?? names.get(result.index);
    const value = name ?? String(reason.detail?.value ?? "");
    return { outcome, place: placeWords(result), value: value.slice(0, MAX_LETTERS), problem, suggestion };
  };
  return { rows: rows.map(problemRow), total, note: rowsNote(run, all) };
}

/**
 * Says how many options and rows of the file a list covers, if several rows can be one option. Undefined if each row is
 * one item.
 */
function rowsNote(run: Run, listed: readonly { readonly object: number }[]): string | undefined {
  const { merged = 0, joined } = (isChangeRun(run) ? run.state.facts.rows : undefined) ?? {};
  if (merged === 0 || listed.length === 0) return undefined;
  const results = listed.map(({ object }) => objectResult(run.state, object));
  const options = results.filter(({ name, _id }) => name !== undefined || _id !== undefined);
  const lines = new Set(options.map(({ line }) => line));
  const further = joined?.filter(({ of }) => lines.has(of)).length;
  const rows = further === undefined ? "" : ` (${many(options.length + further, "row")} of the file)`;
  const unread = results.length - options.length;
  const parts = [
    options.length > 0 && many(options.length, "option") + rows,
    unread > 0 && `${many(unread, "row")} that could not be read`,
  ].filter((part) => part !== false);
  return `${capitalized(parts.join(" and "))}. An option with several rows is listed once, at its first row.`;
}

const OUTCOMES = ["skipped", "failed", "notApplied", "unknown"] as const;
