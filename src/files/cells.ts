import { FileError } from "../platform/file-error.ts";
import type { Reason } from "../runs/outcome.ts";
import { ownReason } from "../runs/reasons.ts";
import { contextIdProblem, trimContextId } from "../spec/context-ids.ts";
import type { Header } from "./rows.ts";

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
