import { headingOf } from "../files/headings.ts";
import type { InputFile } from "../files/input-file.ts";
import type { Reason } from "../runs/outcome.ts";
import { messageFor } from "./failures/messages.ts";
import { many } from "./failures/words.ts";
import { shownBriefly } from "./fence.ts";
import { sheetNotes } from "./sheet-words.ts";

/** A row of a file as it was understood. */
export interface PreviewRow {
  readonly line: number;
  /** The name of its option, or its ID. */
  readonly option?: string | undefined;
  readonly group?: string | undefined;
  readonly isGroup?: boolean | undefined;
  readonly contexts?: { readonly op: "add" | "remove" | "set"; readonly ids: readonly string[] } | undefined;
  readonly isRemoved?: boolean | undefined;
  /** Of a file of events: the event itself. */
  readonly event?: unknown;
  /** Why it cannot be used. */
  readonly reason?: Reason | undefined;
}

/** How the first rows of a file were understood, and of a sheet its columns. */
export interface Preview {
  readonly columns: readonly { readonly heading: string; readonly column: string }[];
  readonly rows: readonly PreviewRow[];
}

/** How many rows a preview shows. */
export const PREVIEW_ROWS = 3;

const MOST_COLUMNS = 12;
const MOST_IDS = 3;
const MOST_FIELDS = 8;
const OPS = { add: "add", remove: "remove", set: "exactly" } as const;

/** The notes of a preview: what is not said of the file already, its columns, and its first rows. */
export function previewNotes(file: InputFile | undefined, { columns, rows }: Preview): readonly string[] {
  const isSheet = file?.format === "csv" || file?.format === "xlsx";
  const isPlain = isSheet && !sheetNotes(file).some((note) => note.startsWith("read "));
  const each = columns.map(({ heading, column }) => `${shownBriefly(heading)} as ${headingOf(column)}`);
  const more = each.length > MOST_COLUMNS ? ` and ${each.length - MOST_COLUMNS} more` : "";
  return [
    ...(isPlain ? ["read as UTF-8, separated by commas"] : []),
    ...(each.length === 0 ? [] : [`columns: ${each.slice(0, MOST_COLUMNS).join(", ")}${more}`]),
    ...(rows.length === 0 ? [] : [`first rows as understood: ${rows.slice(0, PREVIEW_ROWS).map(rowWords).join("; ")}`]),
  ];
}

function rowWords({ line, option, group, isGroup, contexts, isRemoved, event, reason }: PreviewRow): string {
  if (event !== undefined && reason === undefined) {
    return `line ${line}: ${eventWords(event)}`;
  }
  const words = [
    option === undefined ? "no option" : `${isRemoved ? "remove " : isGroup ? "group " : ""}${shownBriefly(option)}`,
    group !== undefined && `in ${shownBriefly(group)}`,
    contexts !== undefined && `${OPS[contexts.op]} ${idWords(contexts.ids)}`,
  ].filter((part) => part !== false);
  return `line ${line}: ${reason === undefined ? words.join(", ") : messageFor(reason).message}`;
}

function eventWords(event: unknown): string {
  if (typeof event !== "object" || event === null) return shownBriefly(JSON.stringify(event) ?? "");
  const fields = Object.entries(event).map(([name, value]) => {
    const isPlain = typeof value === "number" || typeof value === "boolean";
    const words = isPlain ? String(value) : shownBriefly(typeof value === "string" ? value : JSON.stringify(value));
    return `${/^\w{1,60}$/.test(name) ? name : shownBriefly(name)} ${words}`;
  });
  return `${fields.slice(0, MOST_FIELDS).join(", ")}${fields.length > MOST_FIELDS ? ", …" : ""}`;
}

function idWords(ids: readonly string[]): string {
  if (ids.length === 0) return "no Context IDs";
  const first = ids.slice(0, MOST_IDS).map(shownBriefly).join(", ");
  return `${many(ids.length, "Context ID")} (${first}${ids.length > MOST_IDS ? ", …" : ""})`;
}
