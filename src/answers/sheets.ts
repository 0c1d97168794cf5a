import { HEADINGS, headingOf, plainHeading } from "../files/columns.ts";
import { isUndetected } from "../files/detected-form.ts";
import { ENCODING_NAMES, type InputFile, isSheet, type SheetForm, type SheetSeen } from "../files/input-file.ts";
import { firstOf, thousands } from "../platform/text.ts";
import type { Counts, Reason } from "../runs/outcome.ts";
import { messageFor } from "./failures.ts";
import { placesWords, quoteShort, quoteUntrusted } from "./fence.ts";
import { many, type Reader, SEPARATOR_WORDS, separatorWords } from "./message-words.ts";
import type { ReportedRun } from "./run-results.ts";

const CELL_SEPARATORS: Readonly<Record<string, string>> = { ",": "commas", "\n": "line breaks" };

/** Returns notes on how a sheet was read. Omits its columns if `beside`, the other notes of the answer, has them. */
export function sheetNotes(
  file: InputFile | undefined,
  beside: readonly string[] = [],
  reader: Reader = "agent",
): readonly string[] {
  if (file === undefined || !isSheet(file)) return [];
  // How the sheet is read has not been detected yet.
  if (isUndetected(file)) return [];
  const { seen = {} } = file;
  const notes = [
    formWords(file, seen),
    ignoredWords(seen),
    beside.some((note) => note.startsWith(ALL_COLUMNS)) ? undefined : readWords(seen),
    ...cellWords(file, seen),
    ...signWords(file.sheet ?? {}),
    ...rowWords(file, seen, reader),
  ];
  return notes.filter((note) => typeof note === "string");
}

/** Returns how to import a sheet again, if options were created but their Context IDs were not read from the sheet. */
export function undoFirstNote({ file, runId, did, isUndone }: ReportedRun): readonly string[] {
  const { likelyContexts, withoutContexts } = file?.seen ?? {};
  if (!did?.created || isUndone || !(likelyContexts || withoutContexts)) return [];
  return [
    `to give the new options Context IDs of this file, first undo_run ${JSON.stringify({ runId })}, then import again with the argument columns`,
  ];
}

/** Returns a note about new options without Context IDs, whose cells in the file may be empty by mistake. */
export function bareNote({ withoutContextIds, status }: ReportedRun): readonly string[] {
  if (withoutContextIds === undefined) return [];
  const { count, all } = withoutContextIds;
  const have = status === "planned" ? "would have" : count === 1 ? "has" : "have";
  const which = count === all ? many(count, "new option") : `${thousands(count)} of ${many(all, "new option")}`;
  return [`${which} ${have} no Context IDs`];
}

/** Returns a note about texts that were read as one Context ID but may be several. */
export function joinedNote({ joinedIds }: ReportedRun): readonly string[] {
  if (joinedIds === undefined) return [];
  const { count, separators, first } = joinedIds;
  const example = `${count === 1 ? "" : "for example "}${quoteShort(first)}`;
  return [
    `${many(count, "Context ID")} with ${separatorWords(separators)}, read as part of the ID (${example}): to give several, list each by itself; in a file for addFile or setFile, on a line of its own`,
  ];
}

export function resultSheetText({
  savedTo,
  results,
  isOver,
  again,
  isAppliedAgain,
  isPart,
  events,
  isDryRun = false,
  unresolved,
  isStopped = false,
}: {
  readonly savedTo: string;
  readonly results: ReadonlyMap<string, number>;
  readonly isOver: boolean;
  readonly again: string;
  readonly isAppliedAgain: boolean;
  readonly isPart: boolean;
  /** For a sheet with the events that were not sent: the counts of all events of the run, by outcome. */
  readonly events?: Pick<Counts, "succeeded" | "unknown" | "notApplied">;
  /** Whether this is the sheet of a dry run of events, in which none was sent. */
  readonly isDryRun?: boolean;
  /** The ID of the run, if resuming it finds out which of the unknown rows were applied. */
  readonly unresolved?: string | undefined;
  /** Whether the run ended early, so that resuming it applies the rows that were not applied. */
  readonly isStopped?: boolean;
}): string {
  const counts = [...results].map(([result, count]) => `${thousands(count)} ${result.toLowerCase()}`).join(", ");
  const what = isPart ? "only the rows with this outcome" : "the sheet with results";
  const needing = isPart && results.has("Failed") && results.has("Not applied") ? NEEDING_ROWS : "";
  let first = `Saved ${what} to ${quoteUntrusted(savedTo)}. Rows: ${counts === "" ? "none" : counts}.${needing}`;
  if (!isOver) return `${first}\nThe run continues, so rows that are not applied yet may be applied later.`;
  const fix = `Next: fix the cells that Problem and How to fix describe, then: ${again}`;
  if (isDryRun) return [first, ...dryRunLines(results, { isPart, fix })].join("\n");
  if (events !== undefined) return [first, ...eventLines(events, fix)].join("\n");
  const isOpen = [...results.keys()].some((result) => result !== "Done" && result !== "Already done");
  if (!isOpen) return first;
  if (unresolved !== undefined) return `${first}\n${resumeFirst(unresolved, again)}`;
  if (isStopped && results.has("Not applied")) first += `\n${EITHER}`;
  if (isPart) return `${first}\n${fix}`;
  const done = isAppliedAgain
    ? "Rows that are done are applied again. They change only options that were changed since."
    : "Rows that are done stay as they are, but an option that was deleted since is created again.";
  return `${first}\n${done}\n${fix}`;
}

function resumeFirst(runId: string, again: string): string {
  return (
    `Next: resume_run ${JSON.stringify({ runId })} finds out which unknown rows were applied, and applies the rest. ` +
    `Only after that, save the sheet again, fix the cells that Problem and How to fix describe, then: ${again}`
  );
}

const EITHER = "Apply the rows with the result Not applied either with resume_run or with this file, not with both.";

const NEEDING_ROWS = " The rows that were not applied need one of the failed rows, so they are included.";

function dryRunLines(
  results: ReadonlyMap<string, number>,
  { isPart, fix }: { readonly isPart: boolean; readonly fix: string },
): readonly string[] {
  const rest = "The sheet has only these rows: the same call as the dry run, without dryRun, sends the others.";
  return [isPart ? `Nothing was sent. ${rest}` : "Nothing was sent.", ...(results.has("Would fail") ? [fix] : [])];
}

interface FailedRows {
  readonly failed: number;
  readonly tool: string;
  readonly isDryRun: boolean;
  /** Whether later events of the same users would be sent before these. */
  readonly isOvertaken: boolean;
}

export function failedRowsText(savedTo: string, { failed, tool, isDryRun, isOvertaken }: FailedRows): string {
  const next = isOvertaken
    ? "to keep the order of each user, fix these events in the original file, and send all events in one call."
    : `fix these rows, and give the file to ${tool}; the field reason is ignored.`;
  return (
    `Saved what ${isDryRun ? "would fail" : "failed"}, with its reason, to ${quoteUntrusted(savedTo)}: ${many(failed, "row")}.\n` +
    `Next: ${next}`
  );
}

/** Returns the answer about saved events with an unknown result. What is left of them can be sent from the file. */
export function unknownEventsText(savedTo: string, count: number, environment: "live" | "sandbox"): string {
  const where = environment === "sandbox" ? "with inspect_events" : "in the reports of the web console";
  return (
    `Saved ${many(count, "event")} with an unknown result, one JSON object a line, to ${quoteUntrusted(savedTo)}.\n` +
    `Next: look for them ${where}, remove from the file what arrived, and send the file with track_events and onUnknown "resend"`
  );
}

function eventLines(
  { succeeded, unknown, notApplied }: Pick<Counts, "succeeded" | "unknown" | "notApplied">,
  fix: string,
): readonly string[] {
  const sent = [
    succeeded > 0 && `${many(succeeded, "row")} that ${succeeded === 1 ? "was" : "were"} sent`,
    unknown > 0 && `${many(unknown, "row")} that may have been sent`,
  ].filter((words) => words !== false);
  const left = "Send the rows with the result Not applied either with resume_run or with this file, not with both.";
  return [
    ...(sent.length > 0 ? [`The file omits ${sent.join(" and ")}: sent again, they would be counted twice.`] : []),
    ...(notApplied > 0 ? [left] : []),
    fix,
  ];
}

function formWords({ format, encoding, sheet = {} }: InputFile, seen: SheetSeen): string | undefined {
  const { delimiter = "," } = sheet;
  const header = seen.headerLine === undefined ? "" : `, with the header on line ${seen.headerLine}`;
  const above = seen.above === undefined ? "" : `; ${many(seen.above, "row")} above it skipped`;
  if (format === "xlsx") {
    const named = (seen.sheets ?? []).map((name) => ` ${quoteShort(name)}`).join(",");
    const others =
      seen.otherSheets === undefined
        ? ""
        : ` (the workbook has ${many(seen.otherSheets, "other sheet")}${named === "" ? "" : `:${named}`})`;
    const macros = seen.macros === true ? "; its macros were not run" : "";
    return `read from the sheet ${quoteShort(sheet.sheet ?? "")}${others}${header}${above}${macros}`;
  }
  if (encoding === "utf-8" && delimiter === "," && header === "") return undefined;
  return `read as ${ENCODING_NAMES[encoding]}, separated by ${SEPARATOR_WORDS[delimiter] ?? delimiter}${header}${above}`;
}

function readWords({ read = [] }: SheetSeen): string | undefined {
  const words = read.map(({ column, heading }) => `${quoteShort(heading)} as ${headingOf(column)}`);
  return words.length === 0 ? undefined : `columns read: ${words.join(", ")}`;
}

function ignoredWords({ ignored, ignoredHeadings = [], withoutContexts }: SheetSeen): string | undefined {
  if (ignored === undefined) return undefined;
  const named = firstOf(ignoredHeadings, ignored, quoteShort, { all: ignored });
  const words = `${many(ignored, "column")} ignored: ${named}`;
  return withoutContexts
    ? `NO COLUMN OF CONTEXT IDS WAS READ; ${words}. If one of them holds Context IDs: columns {"contextId": HEADING}, or "contexts" where a cell holds several`
    : words;
}

function cellWords({ sheet = {} }: InputFile, seen: SheetSeen): readonly (string | false | 0 | undefined)[] {
  const { separator = "" } = sheet;
  const { joinedBy = "" } = seen;
  const separatorOf = (...signs: readonly (string | number | undefined)[]): string =>
    `separator ${JSON.stringify([...new Set([...signs, separator.trim()].filter(Boolean).join(""))].join(""))}`;
  const splits = `${separatorOf(seen.commas && ",", joinedBy.trim(), seen.unseparated && ";|")} splits them`;
  // The commas of other cells may belong to numbers, such as 1,5.
  const splitsOnly = seen.commas ? `${separatorOf(";|")} splits only these` : splits;
  return [
    seen.severalIds &&
      `${many(seen.severalIds, "cell")} with several Context IDs, separated by ${CELL_SEPARATORS[separator] ?? separator}`,
    seen.commas && `${many(seen.commas, "cell")} of Context IDs with commas, read as part of the ID; ${splits}`,
    seen.unseparated &&
      `${many(seen.unseparated, "cell")} of Context IDs with | or ; or a line break, read as part of the ID; ${splitsOnly}`,
    seen.joined &&
      `${many(seen.joined, "cell")} of Context IDs with ${JSON.stringify(joinedBy)}, read as part of the ID; ${joinedBy === " " ? 'separator " " splits them' : splits}`,
    seen.composed && `${many(seen.composed, "cell")} with decomposed Hangul, which was composed`,
    seen.trimmed &&
      `${many(seen.trimmed, "name")} read without the spaces around ${seen.trimmed === 1 ? "it" : "them"}`,
    seen.likelyContexts &&
      `no column of Context IDs was read. If ${quoteShort(seen.likelyContexts)} has one Context ID in each row, give columns {"contextId": HEADING}; if a cell has several, columns {"contexts": HEADING}. Replace HEADING with this heading`,
    seen.grouped &&
      `${many(seen.grouped, "Context ID")} with thousands separators, which were read as part of the ID: if these do not belong to it, format the column without them`,
    dateWords(seen),
    seen.repeatedTx &&
      `${many(seen.repeatedTx, "row")} with the tx_id of an earlier row: ${seen.repeatedTx === 1 ? "it counts" : "each counts"} as a purchase of its own`,
    seen.shorter &&
      `${many(seen.shorter, "Context ID")} with fewer digits than the others: check whether a spreadsheet removed leading zeros`,
  ];
}

function signWords({ signs = {} }: SheetForm): readonly string[] {
  return Object.entries(signs).flatMap(([column, { x }]) =>
    x === undefined ? [] : [`X in ${headingOf(column)} read as ${x ? "yes" : "no"}`],
  );
}

function rowWords(
  { sheet = {} }: InputFile,
  seen: SheetSeen,
  reader: Reader,
): readonly (string | false | 0 | undefined)[] {
  const { groupHeading: group = "Group" } = seen;
  const fill = reader === "page" ? "ask the agent" : `use fillDown [${quoteShort(group)}]`;
  return [
    continuedWords(seen),
    seen.filled && `${many(seen.filled, "blank cell")} filled from above`,
    seen.blankGroups &&
      seen.filled === undefined &&
      `${many(seen.blankGroups, "row")} with a blank ${quoteShort(group)} below a filled one: read without a group; to put them into the group above, ${fill}`,
    seen.hidden && `${many(seen.hidden, "hidden row")} read like the others`,
    seen.template && `${many(seen.template, "row")} skipped, without an option, a group or Context IDs`,
    seen.beyond && `${many(seen.beyond, "cell")} ignored, in columns without a heading`,
    seen.repeated && `${many(seen.repeated, "row")} skipped, equal to the header`,
    seen.titles && `${many(seen.titles, "row")} skipped, as the title of another table`,
    skippedWords(sheet.subtotals ?? [], "of totals"),
    skippedWords(sheet.hints ?? [], "of hints or notes"),
    seen.lineBreaks &&
      `lines are those of a text editor; cells contain ${many(seen.lineBreaks, "line break")}, so row numbers in a spreadsheet are lower; the sheet with results has each problem in its row`,
    seen.apart &&
      `line ${thousands(seen.apart)} read as an option, with only a name below an empty row or totals: if it is a note, delete it from the file`,
    seen.notTotal &&
      `line ${thousands(seen.notTotal)} read as an option, not as a row of totals: its numbers are not sums of the rows above`,
  ];
}

function dateWords({ dates = 0, dateLines = [] }: SheetSeen): string | undefined {
  if (dates === 0) return undefined;
  const found = `${many(dates, "Context ID")} that ${dates === 1 ? "is a date" : "are dates"}`;
  const lines = dateLines.length === 0 ? "" : ` (${lineWords(dateLines)})`;
  return `${found}${lines}: check whether a spreadsheet converted other texts to dates`;
}

const MAX_LINES = 20;

/** Names the first lines, and says with an ellipsis that there are more. */
function lineWords(lines: readonly number[]): string {
  const ranges = lines.slice(0, MAX_LINES).map((line) => [line, line] as const);
  return placesWords(ranges, { byLine: true, omitted: lines.length > MAX_LINES });
}

function continuedWords({ continued = 0, otherGroup = 0, continuedLines = [] }: SheetSeen): string | undefined {
  if (continued === 0) return undefined;
  const rows = `${many(continued, "row")} without an option`;
  const others = continued - otherGroup;
  if (otherGroup === 0) return `${rows}, which ${continued === 1 ? "continues" : "continue"} the option above`;
  const lines = lineWords(continuedLines);
  const rest =
    others === 0 ? "" : `, and ${thousands(others)} ${others === 1 ? "continues" : "continue"} it (${lines})`;
  return `${rows}: ${thousands(otherGroup)} ${otherGroup === 1 ? "names" : "name"} another group than the option above${rest}; if names are missing in the file, fill them in`;
}

const MAX_SKIPPED = 10;

function skippedWords(lines: readonly number[], kind: string): string | undefined {
  const [first, ...others] = lines.map(thousands);
  if (first === undefined) return undefined;
  if (others.length === 0) return `line ${first} skipped as a row ${kind}`;
  const named = others.slice(0, MAX_SKIPPED - 1);
  const more = others.length - named.length;
  const last = more > 0 ? `${more} more` : named.pop();
  return `lines ${[first, ...named].join(", ")} and ${last} skipped as rows ${kind}`;
}

export interface PreviewRow {
  readonly line?: number | undefined;
  readonly option?: string | undefined;
  readonly group?: string | undefined;
  readonly isGroup?: boolean | undefined;
  readonly contexts?: readonly { readonly op: "add" | "remove" | "set"; readonly ids: readonly string[] }[] | undefined;
  readonly isRemoved?: boolean | undefined;
  readonly event?: unknown;
  readonly reason?: Reason | undefined;
  /** Whether the row would not be applied, although it could be read. */
  readonly isLeft?: boolean;
}

export interface Preview {
  readonly columns: readonly { readonly heading: string; readonly column: string }[];
  readonly rows: readonly PreviewRow[];
}

export const PREVIEW_ROWS = 3;

const MAX_COLUMNS = 12;
const MAX_IDS = 3;
const MAX_FIELDS = 8;
const OPS = { add: "add", remove: "remove", set: "exactly" } as const;

const ALL_COLUMNS = "columns: ";

/** Returns notes with the columns and first rows of a file. They also say how it was read, unless another note does. */
export function previewNotes(file: InputFile | undefined, { columns, rows }: Preview): readonly string[] {
  const isPlain = isSheet(file) && !sheetNotes(file).some((note) => note.startsWith("read "));
  const each = firstOf(columns, MAX_COLUMNS, ({ heading, column }) => `${quoteShort(heading)} as ${headingOf(column)}`);
  return [
    ...(isPlain ? ["read as UTF-8, separated by commas"] : []),
    ...(columns.length === 0 ? [] : [`${ALL_COLUMNS}${each}`]),
    ...(rows.length === 0
      ? []
      : [`first rows as understood: ${rows.slice(0, PREVIEW_ROWS).map(previewRow).join("; ")}`]),
  ];
}

function previewRow({ line, option, group, isGroup, contexts, isRemoved, event, reason, isLeft }: PreviewRow): string {
  const place = line === undefined ? "" : `line ${line}: `;
  const what = event === undefined ? "applied" : "sent";
  const left = isLeft === true ? ` (would not be ${what})` : "";
  if (event !== undefined && reason === undefined) return `${place}${eventWords(event)}${left}`;
  const words = [
    option === undefined ? "no option" : `${isRemoved ? "remove " : isGroup ? "group " : ""}${quoteShort(option)}`,
    group !== undefined && `in ${quoteShort(group)}`,
    ...(contexts ?? []).map(({ op, ids }) => `${OPS[op]} ${idWords(ids)}`),
  ].filter((part) => part !== false);
  return `${place}${reason === undefined ? `${words.join(", ")}${left}` : messageFor(reason).message}`;
}

function eventWords(event: unknown): string {
  if (typeof event !== "object" || event === null) return quoteShort(JSON.stringify(event) ?? "");
  const fields = Object.entries(event).map(([name, value]) => {
    const isPlain = typeof value === "number" || typeof value === "boolean";
    const words = isPlain ? String(value) : quoteShort(typeof value === "string" ? value : JSON.stringify(value));
    return `${/^\w{1,60}$/.test(name) ? name : quoteShort(name)} ${words}`;
  });
  return `${fields.slice(0, MAX_FIELDS).join(", ")}${fields.length > MAX_FIELDS ? ", …" : ""}`;
}

function idWords(ids: readonly string[]): string {
  if (ids.length === 0) return "no Context IDs";
  const first = ids.slice(0, MAX_IDS).map(quoteShort).join(", ");
  return `${many(ids.length, "Context ID")} (${first}${ids.length > MAX_IDS ? ", …" : ""})`;
}

const CONTEXTS = ["contexts", "contextId"];

/** The columns that may contain a problem, by code of the problem. */
const BY_PROBLEM: Readonly<Record<string, readonly string[]>> = {
  notAList: CONTEXTS,
  noContextId: CONTEXTS,
  otherTargeting: ["targeting"],
  action: ["action"],
  actionElsewhere: ["action"],
  op: ["op"],
  removeElsewhere: ["op"],
  type: ["type"],
  exposeChildren: ["exposeChildren"],
  exposeChildrenOfAtomic: ["exposeChildren"],
};

const BY_DAMAGED: Readonly<Record<string, readonly string[]>> = { "Context ID": CONTEXTS, group: ["parentName"] };

/** Returns the columns that may contain a problem. The first one that the sheet has is marked. */
export function columnsOf({ code, detail = {} }: Reason): readonly string[] {
  const { problem, what, field, fields } = detail;
  const [heading] = Array.isArray(fields) ? fields : [];
  if (typeof heading === "string") return [columnNamed(heading), "name"];
  if (problem === "damaged") return BY_DAMAGED[String(what)] ?? [String(what), "name"];
  if (typeof problem === "string" && BY_PROBLEM[problem] !== undefined) return BY_PROBLEM[problem];
  if (code.includes("CONTEXT")) return CONTEXTS;
  if (typeof field === "string" && field in HEADINGS) return [field, "name"];
  if (code === "INVALID_ID" || code.endsWith("NOT_FOUND")) return field === "parent" ? ["parentName"] : ["name", "_id"];
  return ["name", "_id"];
}

function columnNamed(heading: string): string {
  const plain = plainHeading(heading);
  return Object.keys(HEADINGS).find((column) => plainHeading(HEADINGS[column]?.[0] ?? "") === plain) ?? "name";
}
