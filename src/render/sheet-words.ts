import { headingOf } from "../files/headings.ts";
import { ENCODING_NAMES, type InputFile, type SheetSeen } from "../files/input-file.ts";
import { isUnread } from "../files/looked-at.ts";
import { thousands } from "../platform/text.ts";
import type { Counts } from "../runs/outcome.ts";
import { shown, shownBriefly } from "./fence.ts";

const DELIMITER_WORDS: Readonly<Record<string, string>> = {
  ",": "commas",
  ";": "semicolons",
  "\t": "tabs",
  "|": "vertical bars",
};

const SEPARATOR_WORDS: Readonly<Record<string, string>> = { ",": "commas", "\n": "line breaks" };

/** How a sheet was read, as sentences: what was detected and differs from plain CSV, and what was skipped. */
export function sheetNotes(file: InputFile | undefined): readonly string[] {
  if (file === undefined || (file.format !== "csv" && file.format !== "xlsx")) return [];
  // How it is read is not known yet.
  if (isUnread(file)) return [];
  const { seen = {} } = file;
  const notes = [
    formWords(file, seen),
    ignoredWords(seen),
    readWords(seen),
    ...cellWords(file, seen),
    ...rowWords(seen),
  ];
  return notes.filter((note) => note !== undefined);
}

/** A sheet that was saved with the results of a run, as an answer says it. */
export function resultSheetText({
  savedTo,
  results,
  tool,
  isOver,
  columns,
  events,
}: {
  readonly savedTo: string;
  /** How many rows have each result. */
  readonly results: ReadonlyMap<string, number>;
  /** The tool that reads the sheet again. */
  readonly tool: string;
  readonly isOver: boolean;
  /** The headings that the call read as columns, which the sheet still has. */
  readonly columns: Readonly<Record<string, string>> | undefined;
  /** Of a sheet of events: how many of them ended how. Only those that were not sent are in it. */
  readonly events?: Pick<Counts, "succeeded" | "unknown" | "notApplied">;
}): string {
  const counts = [...results].map(([result, count]) => `${thousands(count)} ${result.toLowerCase()}`).join(", ");
  const first = `Saved the sheet with results to ${shown(savedTo)}. Rows: ${counts === "" ? "none" : counts}.`;
  if (!isOver) return `${first}\nNote: the run goes on; rows that are not applied yet may still be.`;
  const how = columns === undefined ? "" : ` with columns ${JSON.stringify(columns)}`;
  if (events !== undefined) return [first, ...eventLines(events, how)].join("\n");
  const isOpen = [...results.keys()].some((result) => result !== "Done" && result !== "Already done");
  if (!isOpen) return first;
  return `${first}\nNext: fix the cells that Problem and How to fix describe, and give the file to ${tool} again${how}: rows that are done stay as they are.`;
}

function eventLines(
  { succeeded, unknown, notApplied }: Pick<Counts, "succeeded" | "unknown" | "notApplied">,
  how: string,
): readonly string[] {
  const sent = [
    succeeded > 0 && `${counted(succeeded, "row")} that ${succeeded === 1 ? "was" : "were"} sent`,
    unknown > 0 && `${counted(unknown, "row")} that may have been sent`,
  ].filter((words) => words !== false);
  const fix = `Next: fix the cells that Problem and How to fix describe, and give the file to track_events${how}.`;
  const left = "Rows that say Not applied are sent by resume_run, or with this file: do one of both.";
  return [
    ...(sent.length > 0 ? [`Without ${sent.join(" and ")}: given again, they would be counted twice.`] : []),
    notApplied > 0 ? `${fix} ${left}` : fix,
  ];
}

function formWords({ format, encoding, sheet = {} }: InputFile, seen: SheetSeen): string | undefined {
  const { delimiter = "," } = sheet;
  const header = seen.headerLine === undefined ? "" : `, with the header on line ${seen.headerLine}`;
  const above = seen.above === undefined ? "" : `; ${counted(seen.above, "row")} above it skipped`;
  if (format === "xlsx") {
    const others =
      seen.otherSheets === undefined ? "" : ` (the workbook has ${counted(seen.otherSheets, "other sheet")})`;
    const macros = seen.macros === true ? "; its macros were not run" : "";
    return `read from the sheet ${shownBriefly(sheet.sheet ?? "")}${others}${header}${above}${macros}`;
  }
  if (encoding === "utf-8" && delimiter === "," && header === "") return undefined;
  return `read as ${ENCODING_NAMES[encoding]}, separated by ${DELIMITER_WORDS[delimiter] ?? delimiter}${header}${above}`;
}

function readWords({ read = [] }: SheetSeen): string | undefined {
  const words = read.map(({ column, heading }) => `${shownBriefly(heading)} as ${headingOf(column)}`);
  return words.length === 0 ? undefined : `columns read: ${words.join(", ")}`;
}

function ignoredWords({ ignored, ignoredHeadings = [] }: SheetSeen): string | undefined {
  if (ignored === undefined) return undefined;
  const more = ignored - ignoredHeadings.length;
  const named = ignoredHeadings.map(shownBriefly).join(", ");
  return `${counted(ignored, "column")} ignored: ${named}${more > 0 ? ` and ${thousands(more)} more` : ""}`;
}

function cellWords({ sheet = {} }: InputFile, seen: SheetSeen): readonly (string | undefined)[] {
  const { separator = "" } = sheet;
  return [
    seen.severalIds &&
      `${counted(seen.severalIds, "cell")} with several Context IDs, separated by ${SEPARATOR_WORDS[separator] ?? separator}`,
    seen.commas &&
      `${counted(seen.commas, "cell")} of Context IDs with commas, which were kept as part of the ID; separator "," splits them`,
    seen.unseparated &&
      `${counted(seen.unseparated, "cell")} of Context IDs with | or ; or a line break that was kept as part of the ID; separator splits them`,
    seen.composed && `${counted(seen.composed, "cell")} with Hangul taken apart to letters, which was composed`,
    seen.shorter &&
      `${counted(seen.shorter, "Context ID")} with fewer digits than the others: check whether a spreadsheet took leading zeros away`,
  ].map((words) => (typeof words === "string" ? words : undefined));
}

function rowWords(seen: SheetSeen): readonly (string | undefined)[] {
  return [
    seen.continued && `${counted(seen.continued, "row")} without an option, which continue the option above`,
    seen.filled && `${counted(seen.filled, "blank cell")} filled from above`,
    seen.blankGroups &&
      seen.filled === undefined &&
      `${counted(seen.blankGroups, "row")} with a blank Group below a filled one, which are not in that group; fillDown ["Group"] continues it`,
    seen.repeated && `${counted(seen.repeated, "row")} skipped, equal to the header`,
    seen.total && `line ${seen.total} skipped as a row of totals`,
  ].map((words) => (typeof words === "string" ? words : undefined));
}

function counted(count: number, noun: string): string {
  return `${thousands(count)} ${noun}${count === 1 ? "" : "s"}`;
}
