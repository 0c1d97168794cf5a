import { FileError } from "../platform/file-error.ts";
import type { Reason } from "../runs/outcome.ts";
import { ownReason } from "../runs/reasons.ts";
import { contextIdProblem, trimContextId } from "../spec/context-ids.ts";

/** The form in which a spreadsheet saves a long number, whose last digits are then lost. */
const SCIENTIFIC = /^[+-]?\d(?:[.,]\d+)?E\+\d{2,3}$/i;

/** How Context IDs of one cell are separated. */
const BETWEEN_CONTEXTS = "|";

/** The Context IDs of a row, trimmed; or why they cannot be used. */
export type CellContexts = { readonly contexts: string[] } | { readonly reason: Reason };

/**
 * Makes the reader of the Context IDs of a row: from the column `contextId`, one a row, or from `contexts`, separated
 * by `|`. Throws a FileError where the file has both.
 */
export function contextsReader(header: Header): (cells: readonly string[]) => CellContexts {
  const one = header.at("contextId");
  const many = header.at("contexts");
  if (one >= 0 && many >= 0) {
    throw new FileError(
      "the file has both columns contextId and contexts",
      `Keep contextId (one a row) or contexts (several, separated by ${BETWEEN_CONTEXTS}).`,
    );
  }
  if (one < 0) return (cells) => separated(cells[many] ?? "");
  return (cells) => {
    const contextId = trimContextId(cells[one] ?? "");
    if (contextId === "") return { contexts: [] };
    const reason = problemOf(contextId, 0);
    return reason === undefined ? { contexts: [contextId] } : { reason };
  };
}

function separated(cell: string): CellContexts {
  const contexts = cell
    .split(BETWEEN_CONTEXTS)
    .map(trimContextId)
    .filter((contextId) => contextId !== "");
  for (const [position, contextId] of contexts.entries()) {
    const reason = problemOf(contextId, position);
    if (reason !== undefined) return { reason };
  }
  return { contexts };
}

function problemOf(contextId: string, position: number): Reason | undefined {
  if (SCIENTIFIC.test(contextId)) return ownReason("INVALID_ROW", { problem: "scientific", value: contextId });
  const problem = contextIdProblem(contextId);
  if (problem === undefined) return undefined;
  return ownReason("INVALID_CONTEXT_ID", { ...problem, position, value: contextId.slice(0, 40), count: 1 });
}

/** Makes the reader of a column; it gives an empty text where the row or the file has none. */
export function cellReader(header: Header, column: string): (cells: readonly string[]) => string {
  const at = header.at(column);
  return at < 0 ? () => "" : (cells) => cells[at] ?? "";
}

/** Throws a FileError where a file lacks a column. */
export function needColumn(header: Header, column: string, remedy: string): void {
  if (header.at(column) < 0) throw new FileError(`the file has no column ${column}`, remedy);
}

/** Where the columns of a CSV file are. */
export interface Header {
  /** The position of a column; -1 where the file has none of that name. */
  readonly at: (column: string) => number;
}

/** A column or field that every file may have, and that is ignored: reject files hold the reason of a failure there. */
export const REASON_COLUMN = "reason";

/** The columns that a CSV file may have. */
export interface ValidColumns {
  readonly columns: readonly string[];
  /** The column that a wrong name plainly means; absent: no wrong name means one. */
  readonly spelt?: (name: string) => string | undefined;
}

/** The names of the columns of a header, as a shape reads them. */
export function columnNames(
  cells: readonly string[],
  { columns, spelt = () => undefined }: ValidColumns,
): readonly string[] {
  const given = cells.map((cell) => cell.trim());
  return given.map((name) => {
    if (name === "" || name === REASON_COLUMN || columns.includes(name)) return name;
    const right = spelt(name);
    return right === undefined || given.includes(right) ? name : right;
  });
}

/** Where the columns of a header are. Throws a FileError where one is unknown, or stands twice. */
export function headerOf(cells: readonly string[], shape: ValidColumns): Header {
  const valid = shape.columns;
  const names = columnNames(cells, shape);
  const unknown = names.filter((name) => name !== "" && name !== REASON_COLUMN && !valid.includes(name));
  if (unknown.length > 0) {
    throw new FileError(
      `unknown ${unknown.length === 1 ? "column" : "columns"} ${listed(unknown.slice(0, 5))} in the first line of the file`,
      `Valid columns: ${valid.join(", ")}. They are separated by commas.`,
    );
  }
  const twice = names.find((name, at) => name !== "" && names.indexOf(name) !== at);
  if (twice !== undefined)
    throw new FileError(`the column ${twice} stands twice in the file`, "Leave one of them out.");
  const positions = new Map(names.map((name, at) => [name, at]));
  return { at: (column) => positions.get(column) ?? -1 };
}

/** Names as a sentence lists them. */
export function listed(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(", ");
}
