import { type Damage, damageWords } from "../../files/damage.ts";
import { shown } from "../fence.ts";
import type { Message } from "../message.ts";
import type { Detail } from "./words.ts";

const CELLS = 'Set a cell with a comma or a line break in quotes: "a, b".';

const PROBLEMS: Readonly<Record<string, (detail: Detail) => Message>> = {
  damaged: ({ what, value, damage, characters }) => {
    const about = damageOf(damage, characters);
    const shownValue = about.damage === "noValue" ? "" : ` ${text(value)}`;
    const { message, remedy } = damageWords(about);
    return { message: `the ${String(what)}${shownValue} ${message}`, remedy };
  },
  notAList: ({ value }) => ({
    message: `the cell of Context IDs ${text(value)} begins with [ and is no JSON array of texts`,
    remedy: 'Write ["a", "b"], or separate Context IDs by |.',
  }),
  otherTargeting: ({ value }) => ({
    message: `the row is about another targeting, ${text(value)}`,
    remedy: "One call is about one targeting: send the rows of the other one in a call of their own.",
  }),
  action: ({ value }) => ({
    message: `Action is ${text(value)}`,
    remedy: "Write Add, Edit or Remove, or leave the cell empty. Options cannot be archived or paused.",
  }),
  actionElsewhere: ({ action, does }) => {
    if (action === "add")
      return { message: "Action is Add, for an option that exists", remedy: "Use bulk_add_options." };
    const remedy =
      action === "remove" && does === "edit"
        ? "To remove Context IDs, write Remove in Context Action. To delete the option, use plan_targeting."
        : "Use plan_targeting, which reads the same sheet.";
    return { message: `Action is ${action === "edit" ? "Edit" : "Remove"}, which this tool does not do`, remedy };
  },
  removeElsewhere: () => ({
    message: "Context Action is Remove, and options are added here",
    remedy: "Use update_contexts, which reads the same sheet.",
  }),
  tooManyCells: ({ columns }) => ({
    message: `the row has more cells than the ${String(columns)} columns of the header`,
    remedy: CELLS,
  }),
  type: ({ value }) => ({
    message: `type is ${text(value)}`,
    remedy: "Write yes (or collection) for a group, no (or atomic), or leave the cell empty.",
  }),
  exposeChildren: ({ value }) => ({
    message: `exposeChildren is ${text(value)}`,
    remedy: "Write yes or no, or leave the cell empty.",
  }),
  otherName: ({ value, name, _id }) => ({
    message: `the row calls the option ${String(_id)} ${text(value)}, and its name is ${text(name)}`,
    remedy: "Check which one is meant, and leave the other cell empty.",
  }),
  edited: ({ name, _id, fields }) => ({
    message: `the row is about ${text(name)} (${String(_id)}), which exists, and says something else in ${Array.isArray(fields) ? fields.join(", ") : ""}`,
    remedy: "Use plan_targeting to edit options: it reads the same sheet.",
  }),
  op: ({ value }) => ({
    message: `op is ${text(value)}`,
    remedy: "Write add, remove or set, or leave the cell empty.",
  }),
  noOption: () => ({ message: "the row names no option", remedy: "Give _id, or name with targetingId in the call." }),
  noContextId: () => ({
    message: "the row has no Context ID",
    remedy: "Fill contextId or contexts (`[]` means none), or take the row out.",
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

const DAMAGES: readonly Damage["damage"][] = [
  "formulaError",
  "scientific",
  "truth",
  "date",
  "narrow",
  "formulaText",
  "invisible",
  "noValue",
];

function damageOf(damage: unknown, characters: unknown): Damage {
  const known = DAMAGES.find((one) => one === damage) ?? "formulaError";
  return { damage: known, characters: Array.isArray(characters) ? characters.map(String) : [] };
}

function text(value: unknown): string {
  return typeof value === "string" ? shown(value) : "missing";
}
