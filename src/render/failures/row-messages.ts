import { shown } from "../fence.ts";
import type { Message } from "../message.ts";
import type { Detail } from "./words.ts";

const CELLS = 'Set a cell with a comma or a line break in quotes: "a, b".';

const PROBLEMS: Readonly<Record<string, (detail: Detail) => Message>> = {
  scientific: ({ value }) => ({
    message: `the Context ID ${text(value)} was turned into scientific notation by a spreadsheet, and its last digits are lost`,
    remedy: "Take the Context ID from its source again, and format the column as text before it is pasted.",
  }),
  tooManyCells: ({ columns }) => ({
    message: `the row has more cells than the ${String(columns)} columns of the first line`,
    remedy: CELLS,
  }),
  type: ({ value }) => ({
    message: `type is ${text(value)}`,
    remedy: "Write atomic or collection, or leave the cell empty.",
  }),
  exposeChildren: ({ value }) => ({
    message: `exposeChildren is ${text(value)}`,
    remedy: "Write true or false, or leave the cell empty.",
  }),
  op: ({ value }) => ({ message: `op is ${text(value)}`, remedy: "Write add, remove or set." }),
  noOption: () => ({ message: "the row names no option", remedy: "Give _id, or name with targetingId in the call." }),
  noContextId: () => ({
    message: "the row has no Context ID",
    remedy: "Fill contextId or contexts, or take the row out.",
  }),
  rowsDisagree: ({ column }) => ({
    message: `an earlier row about the same option says something else in ${String(column)}`,
    remedy: "Say the same in every row of an option, or only in its first.",
  }),
  spoilt: ({ line }) => ({
    message: `line ${String(line)}, which belongs to the same set, cannot be used: without it, its Context ID would be taken away`,
    remedy: "Mend that line, and send all rows of the option again.",
  }),
  notJson: () => ({ message: "the row is no JSON", remedy: "Make it one JSON object on one line." }),
  noObject: () => ({ message: "the row is no JSON object", remedy: "Make it an object with the fields of an item." }),
  unknownField: ({ field, valid }) => ({
    message: `the row has an unknown field ${text(field)}`,
    remedy: Array.isArray(valid) ? `Leave it out; valid fields: ${valid.join(", ")}.` : "Leave it out.",
  }),
  fieldType: ({ field, expected }) => ({
    message: `the field ${text(field)} is not as it should be: ${String(expected)} is expected`,
    remedy: "Give rows the same fields as the items of the tool have.",
  }),
};

/** What to tell about a row of a file that cannot be read as an item. */
export function rowMessage(detail: Detail): Message {
  const problem = String(detail.problem);
  const words = Object.hasOwn(PROBLEMS, problem) ? PROBLEMS[problem] : undefined;
  return words?.(detail) ?? { message: "the row cannot be read", remedy: "Mend it." };
}

function text(value: unknown): string {
  return typeof value === "string" ? shown(value) : "missing";
}
