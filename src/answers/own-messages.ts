import * as z from "zod";
import { damageWords, isDamage } from "../files/damage.ts";
import { firstOf, nameProblemWords } from "../platform/text.ts";
import type { Reason } from "../runs/outcome.ts";
import { LIMITS } from "../spec/limits.ts";
import { NAME_RULES } from "../spec/names-and-contexts.ts";
import { quoteUntrusted } from "./fence.ts";
import {
  aboutEarlier,
  because,
  type Detail,
  duplicateMessage,
  type Entry,
  heldWords,
  list,
  MORE_PATIENT,
  many,
  notFoundMessage,
  number,
  onPage,
  ownerUnclearMessage,
  RESUME_FIRST,
  resuming,
  type Sentence,
  saying,
  separatorWords,
  staleMessage,
  startingOver,
  type Text,
  text,
  texts,
  WHERE_SET,
} from "./message-words.ts";
import { planningFailure, rateLimitWords, refusalWords, remedyOf, storedRequestDetails } from "./request-messages.ts";

const SEVERAL = " If it holds several IDs, give each by itself; in a sheet, the argument separator splits cells.";

const NAME_RULE =
  "Allowed: 2 to 36 characters, only Korean or English letters, digits, spaces, ~ % & + -; no leading or trailing space.";

const nameDetail = z.object({
  rules: z.array(z.enum(NAME_RULES)).min(1),
  length: z.number(),
  characters: z.array(z.string()).optional(),
});

function invalidName(detail: Detail): Entry {
  const problem = nameDetail.safeParse(detail).data;
  const words = problem === undefined ? "breaks a rule" : nameProblemWords(problem);
  return { message: `the name ${words}`, remedy: NAME_RULE };
}

const CONTEXT_ID_PROBLEMS: Readonly<Record<string, string>> = {
  empty: "is empty",
  halfCharacter: "contains half of a character (an unpaired surrogate), which UTF-8 cannot represent",
};

const ITEM_PROBLEMS: Readonly<Record<string, Entry>> = {
  childrenOfAtomic: {
    message: "the item has children, but its type is atomic",
    remedy: "Leave type out: children make it an option group.",
  },
  exposeChildrenOfAtomic: {
    message: "exposeChildren is only for groups, and this is a regular option",
    remedy: texts(
      "Leave exposeChildren out, or make the option a group: set its type to collection, or give it children.",
      "Leave exposeChildren out, or make the option a group: in a sheet, write yes in Is Group.",
    ),
  },
  idAndCurrentName: { message: "_id and currentName were both given", remedy: "Give only one of them." },
  noTargeting: { message: "the item names no targeting", remedy: "Give the targeting's _id or currentName." },
  parentAndParentName: { message: "parent and parentName were both given", remedy: "Give only one of them." },
  groupWithParent: {
    message: "a sub-option (parent, parentName) cannot be a group itself (type collection, children, exposeChildren)",
    remedy: "Groups cannot be inside groups. Leave out the parent, or the fields that make it a group.",
  },
  notGroup: {
    message: "a regular option with this name exists, and it cannot become a group",
    remedy: "Choose another name for the group, or rename the option first.",
  },
  noChange: { message: "the item changes nothing", remedy: "Give at least one field to change." },
  ownParent: { message: "the option was given as its own parent", remedy: "Give the ID of an option group." },
  noOption: {
    message: "the item names no option",
    remedy: texts(
      "Give the option's ID, or its name (currentName in update_options) with targetingId.",
      "Name the option, by its ID or by its name and targeting.",
    ),
  },
  nameWithoutTargeting: {
    message: "the option is given by name, but its targeting is missing",
    remedy: texts(
      "Give targetingId (or targetingName) beside items, or the option's _id.",
      "Give the ID of the option, or say which targeting it is in.",
    ),
  },
  setWithAddOrRemove: {
    message: "set was given together with add or remove",
    remedy: "To replace all Context IDs of the option, use set alone. To change some, use add and remove without set.",
  },
  addAndRemove: {
    message: "the same Context ID is in add and in remove",
    remedy: "Remove it from one of these lists.",
  },
};

/** Returns the message for a rejection that all requests would get, for example because of a wrong key. */
function refusal(kind: string): Sentence {
  return (detail, { operation, statusCode }) => {
    const words = refusalWords(kind, { operation, ...storedRequestDetails(detail, statusCode) });
    if (words === undefined) throw new RangeError(`there are no words for the refusal ${kind}`);
    return { message: `${words.message}; nothing was applied`, remedy: thenResume(`${words.remedy} ${WHERE_SET}`) };
  };
}

const AGAIN = startingOver((again) => `To do it anyway, ${again}`);
const RESUME = resuming((resume) => resume);

function thenResume(remedy: string): Text {
  return resuming((_, then) => `${remedy} ${then}`);
}

/**
 * Returns a remedy, followed by how to resume the run. A resumed run plans the same input again. So if an ID in it may
 * be wrong, also says that the call can be made again with another one.
 */
function afterPlanning(remedy: string, { effect, errorCode }: Detail): Text {
  const isMissing = effect === "rejected" && typeof errorCode === "string" && errorCode.endsWith("_NOT_FOUND");
  if (!isMissing) return thenResume(remedy);
  return resuming(
    (_, then) =>
      `${remedy} If the ID is wrong, start over with the right one. If it is right, fix the problem first. ${then}`,
  );
}

export const OWN_SENTENCES: Readonly<Record<string, Sentence>> = {
  INVALID_NAME: invalidName,
  INVALID_ID: (detail) => ({
    message: `${String(detail.field)} is ${text(detail.value)}, not a ULID`,
    remedy: texts(
      `A ULID has 26 characters: digits and capital letters. Copy the ID from list_options or an earlier answer.${/^\d{1,6}$/.test(String(detail.value)) ? ' If a column of a file numbers its rows, leave it out: columns {"_id":""}.' : ""}`,
      "A ULID has 26 characters: digits and capital letters. Copy the ID from the web console or an exported sheet.",
    ),
  }),
  INVALID_CONTEXT_ID: (detail) => {
    const problem = CONTEXT_ID_PROBLEMS[String(detail.rule)];
    const ids = many(detail.count, "Context ID");
    const first = `${detail.count === 1 ? "" : "the first, "}number ${number(Number(detail.position) + 1)}, `;
    const separators = typeof detail.separators === "string" ? detail.separators : "";
    if (detail.rule === "invisible" && Array.isArray(detail.characters)) {
      const characters = `contains invisible characters (${detail.characters.join(", ")})`;
      return {
        message: `${ids} ${detail.count === 1 ? "is" : "are"} refused; ${first}${text(detail.value)}, ${characters}`,
        remedy: "Write the Context ID again without these characters.",
      };
    }
    const holding = separators === "" ? "" : ` and contains ${separatorWords(separators)}`;
    const bytes = `has ${many(detail.bytes, "byte")}${holding}`;
    const message = `${ids} cannot be stored; ${first}${problem ?? `${text(detail.value)}, ${bytes}`}`;
    return {
      message: detail.count === 1 ? onPage(`the Context ID ${problem ?? bytes}`, message) : message,
      remedy: `Correct or remove the Context ID. It may have 1 to ${LIMITS.contextIdBytes.value} bytes in UTF-8.${separators === "" ? "" : SEVERAL}`,
    };
  },
  INVALID_ROW: rowMessage,
  INVALID_ITEM: (detail) =>
    ITEM_PROBLEMS[String(detail.problem)] ?? {
      message: "the item's fields contradict each other",
      remedy: "Look up in the tool's description which fields can be combined.",
    },
  DUPLICATE_IN_INPUT: duplicateMessage,
  NAME_NOT_FOUND: notFoundMessage,
  NAME_AMBIGUOUS: (detail) =>
    detail.of === "targetings"
      ? {
          message: `this server has seen several targetings named ${text(detail.value)}: ${list(detail.ids)}`,
          remedy: texts("Give the ID; get_targeting lists them.", "Give the ID, which the web console shows."),
        }
      : {
          message: `several options are named ${text(detail.value)}: ${candidateWords(detail)}`,
          remedy: texts(
            "Give the ID, or rename one of them with update_options.",
            "Give the ID, or give one of them another name.",
          ),
        },
  NOT_EMPTY: (detail) => ({
    message: `the option was not deleted, since it still holds ${heldWords(detail)}`,
    remedy: texts(
      "To delete it anyway, call delete_options with its ID and without onlyEmpty.",
      "To delete it anyway, ask the agent to delete it although it is not empty.",
    ),
  }),
  EXISTS: {
    message: "an option with this name exists; it was not changed",
    remedy: texts(
      'To add the Context IDs to it, use onExisting "addContexts".',
      "To add the Context IDs to it, ask the agent to add them to options that exist.",
    ),
  },
  TOO_MANY_CONTEXT_IDS: (detail) => ({
    message:
      detail.count === undefined
        ? "the option would hold more than 8 MB of Context IDs"
        : `the option would hold at least ${many(detail.count, "Context ID")}; at most ${number(detail.limit)} are allowed`,
    remedy: "Spread the Context IDs over several options.",
  }),
  EMPTY_GROUP: {
    message: "the option group would have neither sub-options nor Context IDs of its own (API document 7.4, case 1)",
    remedy: "Give the group Context IDs, or a valid sub-option.",
  },
  PLAN_STALE: staleMessage,
  NO_FREE_PLACE: ({ limit, there }) => ({
    message:
      `in every order, these changes would for a moment exceed the targeting's limit of ${number(limit)} options ` +
      `(it has ${number(there)}); nothing was sent`,
    remedy: "Delete an option first, or make fewer changes at once.",
  }),
  PLAN_STALE_ELSEWHERE: {
    message: "another object of the plan has changed since the plan was made, so nothing was sent",
    remedy: texts("Call plan_targeting or undo_run again.", "Make a new plan."),
  },
  NEEDS_FAILED: {
    message: "the item was not sent, because it needs a group or targeting whose own item or row failed",
    remedy: "Fix that item or row, and send it again together with this one.",
  },
  NO_ANSWER: (detail) => ({
    message: `the request was sent, but no usable answer came${because(detail)}: the item may or may not have been applied`,
    remedy: resuming(
      (resume) =>
        `${resume} It repeats the request and finds out whether the first one was applied; nothing is created twice.`,
      RESUME_FIRST,
    ),
  }),
  NOT_SENT: (detail) => ({
    message: `the service could not be reached${because(detail)}`,
    remedy: thenResume(remedyOf(storedRequestDetails(detail))),
  }),
  BUSY: {
    message: "the service stayed busy until the last retry",
    remedy: resuming((resume) => `${resume} ${MORE_PATIENT}`),
  },
  RATE_LIMITED: (detail) => ({
    message: rateLimitWords(storedRequestDetails(detail)),
    remedy: resuming((resume) => `Wait until the service allows requests again. ${resume} ${MORE_PATIENT}`),
  }),
  CANCELLED: { message: "the run was cancelled before this item was sent", remedy: RESUME },
  NOT_PLANNED: (detail) => {
    const { message, remedy = "" } = planningFailure(detail);
    // A run whose file cannot be used is not resumed, because it would read the same file again.
    const isOver = detail.isOver || detail.effect === "file";
    return {
      message: `the change could not be planned, so nothing was changed: ${message}`,
      remedy: isOver ? startingOver((again) => `${remedy} Then ${again}`) : afterPlanning(remedy, detail),
    };
  },
  FILE_UNREADABLE: (detail) => {
    const { message, remedy = "" } = planningFailure(detail);
    return { message, remedy: startingOver((again) => `${remedy} Then ${again}`) };
  },
  NOT_SAVED: (detail) => {
    const { message, remedy = "" } = planningFailure(detail);
    return { message: `nothing was saved: ${message}`, remedy: thenResume(remedy) };
  },
  WITHDRAWN: { message: "the run was cancelled before it started; nothing was sent", remedy: AGAIN },
  UNDONE: { message: "the run was undone before this item was sent", remedy: AGAIN },
  NOT_DECIDED: ({ elsewhere }) => ({
    message:
      elsewhere === undefined
        ? "nobody approved or declined the change within 24 hours; nothing was sent"
        : "nobody approved the change before the question expired; nothing was sent",
    remedy: AGAIN,
  }),
  DECLINED: {
    message: "the change was declined; nothing was sent",
    remedy: "Do not try again unless the person asks for the change.",
  },
  INTERRUPTED: { message: "the server stopped before this item was sent", remedy: RESUME },
  RUN_ENDED: (detail) => ({
    message: `the run ended before this item was sent, because an earlier request failed${because(detail)}`,
    remedy: thenResume("Correct the cause of that error."),
  }),
  PARTLY_APPLIED: (detail) => ({
    message: `the item was applied in part${because(detail)}`,
    remedy: resuming((resume) => `${resume} It finishes what it can and reports what happened.`, RESUME_FIRST),
  }),
  OWNER_UNCLEAR: ownerUnclearMessage,
  STOPPED_BY_ERROR: (detail) => ({
    message: `the run stopped before anything was sent, because of an error in the server (${text(detail.error)})`,
    remedy: thenResume("If storage failed, free disk space or set TARGETING_MCP_STATE_DIR to a writable folder."),
  }),
  UNAUTHORIZED: refusal("unauthorized"),
  FORBIDDEN: refusal("forbidden"),
  WRONG_ROUTE: refusal("wrongRoute"),
  REDIRECTED: refusal("redirect"),
  FOREIGN_ANSWER: refusal("foreign"),
  REJECTED: (detail, { statusCode }) => ({
    message: `the service refused the item with status ${number(statusCode)}${saying(detail)}; nothing was applied`,
    remedy: "The API's documents do not list this status: look at the item in the web console.",
  }),
  TOO_LARGE: {
    message: "the service refused the item as too large, even alone in its request (413); nothing was applied",
    remedy: "Give the item fewer Context IDs or sub-options.",
  },
  VALIDATION: (detail) => ({
    message: `the service refused the item as invalid${saying(detail)}; nothing was applied`,
    remedy: "Change the item as the message says.",
  }),
};

const CELLS = 'Put a cell that contains a comma or a line break in quotes: "a, b".';

const PROBLEMS: Readonly<Record<string, Sentence>> = {
  damaged: ({ what, value, damage, characters }) => {
    const kind = isDamage(damage) ? damage : "formulaError";
    const shownValue = kind === "noValue" ? "" : ` ${quotedCell(value)}`;
    const { message, remedy } = damageWords({
      damage: kind,
      characters: Array.isArray(characters) ? characters.map(String) : [],
    });
    return { message: `the ${String(what)}${shownValue} ${message}`, remedy };
  },
  notAList: ({ what, value }) =>
    what === "items"
      ? {
          message: `the cell of items ${quotedCell(value)} is not a JSON array`,
          remedy: 'Write [{"item_id": "a"}], with these quotation marks, or use columns such as items.0.item_id.',
        }
      : {
          message: `the cell of Context IDs ${quotedCell(value)} begins with [ but is not a JSON array of texts`,
          remedy: 'Write ["a", "b"], or separate Context IDs by |.',
        },
  otherTargeting: ({ value }) => ({
    message: `the row is for ${quotedCell(value)}, another targeting than that of the call`,
    remedy: texts(
      "A call can change only one targeting. Send the rows of the other targeting in a call of their own.",
      "Move the rows of the other targeting into a sheet of their own.",
    ),
  }),
  action: ({ value }) => ({
    message: `the Action ${quotedCell(value)} is not known`,
    remedy: "Write Add, Edit or Remove, or leave the cell empty. Options cannot be archived or paused.",
  }),
  actionElsewhere: ({ action, does }) => {
    const word = action === "add" ? "Add" : action === "edit" ? "Edit" : action === "set" ? "Set" : "Remove";
    return does === "edit"
      ? {
          message: `Action is ${word}, but this tool only changes Context IDs of options that exist`,
          remedy: texts(
            'If the column says what to do with Context IDs, read it as Context Action: columns {"op":"Action"}. To add options, use bulk_add_options. To delete options, use plan_targeting.',
            "If the column says what to do with Context IDs, change its heading to Context Action. Otherwise, ask the agent to plan this sheet.",
          ),
        }
      : {
          message: `Action is ${word}, which this tool does not support`,
          remedy: texts("Use plan_targeting, which reads the same sheet.", "Ask the agent to plan this sheet."),
        };
  },
  removeElsewhere: {
    message: "Context Action is Remove, but this tool only adds options",
    remedy: texts(
      "Use update_contexts, which reads the same sheet.",
      "Ask the agent to change the Context IDs with this sheet.",
    ),
  },
  tooManyCells: ({ columns }) => ({
    message: `the row has more cells than the ${many(columns, "column")} of the header`,
    remedy: `${CELLS} In a workbook, empty the cells to the right of the headings.`,
  }),
  type: ({ value }) => ({
    message: `the value ${quotedCell(value)} of Is Group cannot be read as yes or no`,
    remedy: "For a group, write collection or yes. For an option, write atomic or no, or leave the cell empty.",
  }),
  exposeChildren: ({ value }) => ({
    message: `the value ${quotedCell(value)} of exposeChildren cannot be read as yes or no`,
    remedy: "Write yes or no, or leave the cell empty.",
  }),
  otherName: ({ value, name, _id }) => ({
    message: `the row names the option ${String(_id)} ${quotedCell(value)}, but its name is ${quotedCell(name)}`,
    remedy: "Leave the correct cell (ID or name) as it is, and empty the other one.",
  }),
  edited: ({ name, _id, fields }) => ({
    message: `the row is about ${quotedCell(name)} (${String(_id)}), which exists and differs in ${Array.isArray(fields) ? fields.join(", ") : ""}`,
    remedy: texts(
      `Nothing of the row was applied. Use plan_targeting to edit options: it reads the same sheet.${String(fields) === "Context IDs" ? ' To add only Context IDs, use onExisting "addContexts".' : ""}`,
      "To edit options, ask the agent to plan this sheet.",
    ),
  }),
  op: ({ value }) => ({
    message: `the value ${quotedCell(value)} of op is not known`,
    remedy: "Write add, remove or set, or leave the cell empty.",
  }),
  noOption: {
    message: "the row names no option",
    remedy: texts(
      "Fill _id, or fill name and give targetingId in the call.",
      "Fill Option or Option ID, or delete the row.",
    ),
  },
  otherGroup: {
    message: "the row has no option, and names another group than the option above",
    remedy: texts(
      "Fill name or _id in this row. If it belongs to the option above, empty its parentName.",
      "Fill Option or Option ID in this row. If it belongs to the option above, empty its Group.",
    ),
  },
  noContextId: {
    message: "the row has no Context ID",
    remedy: texts(
      "Fill contextId or contexts (`[]` means none), or delete the row.",
      "Fill Context ID or Context IDs ([] means none), or delete the row.",
    ),
  },
  rowsDisagree: ({ column, name, earlierLine }) => ({
    message: `an earlier row about ${name === undefined ? "the same option" : quotedCell(name)}${earlierLine === undefined ? "" : ` (line ${number(earlierLine)})`} differs in ${String(column)}`,
    remedy: texts(
      `${SAME_IN_ALL_ROWS} If the option exists by now, also use onExisting "addContexts".`,
      `${SAME_IN_ALL_ROWS} If the option exists by now, ask the agent to add the Context IDs to it.`,
    ),
  }),
  spoilt: ({ index, line }) => ({
    message: aboutEarlier(
      { duplicateOfIndex: index, duplicateOfLine: line },
      (item) =>
        `${item} belongs to the same option and is invalid. The rows of an option replace all its Context IDs, so sending the others alone would remove the Context ID of the invalid row`,
    ),
    remedy: "Fix the invalid row, and send all rows of the option again.",
  }),
  notJson: {
    message: "the row is not JSON",
    remedy: "Write each row as one JSON object (in .ndjson: on one line), without comments.",
  },
  noObject: {
    message: "the row is not a JSON object",
    remedy: "Write each row as an object with the fields of an item.",
  },
  fieldTwice: ({ field }) => ({
    message: `the row has the field ${quotedCell(field)} twice`,
    remedy: "Give the field once.",
  }),
  inexactNumber: ({ value }) => ({
    message: `the number ${quotedCell(value)} is too large or too small to be kept exactly`,
    remedy: "If it is an ID, write it as a text in quotes; otherwise write a number with fewer digits.",
  }),
  unknownField: ({ field, valid }) => ({
    message: `the row has an unknown field ${quotedCell(field)}`,
    remedy: Array.isArray(valid) ? `Leave the field out. Valid fields: ${valid.join(", ")}.` : "Leave the field out.",
  }),
  fieldMissing: ({ field, expected }) => ({
    message: `the field ${quotedCell(field)} is missing (${String(expected)})`,
    remedy: "Add the field. If the row has it under another name, rename that field.",
  }),
  fieldType: ({ field, expected }) => ({
    message: `the field ${quotedCell(field)} is not valid (expected: ${String(expected)})`,
    remedy: "Fix its value. A row has the same fields, of the same types, as an item in the arguments.",
  }),
};

/** Lists the first options that a name may mean, each with its name and group if known. */
function candidateWords({ ids, names = [], groups = [] }: Detail): string {
  if (!Array.isArray(ids) || !Array.isArray(names) || !Array.isArray(groups)) return list(ids);
  const about = (id: string, at: number): string => {
    const group = groups[at] ? ` in ${quotedCell(groups[at])}` : "";
    return names[at] === undefined ? id : `${id} (${quotedCell(names[at])}${group})`;
  };
  return firstOf(ids.map(String).map(about), 3, (words) => words);
}

const SAME_IN_ALL_ROWS =
  "Give the same value in every row of an option, or only in its first row. A row without a name belongs to the option above: if it means another option, give its name.";

function rowMessage(detail: Detail, reason: Reason): Entry {
  const problem = String(detail.problem);
  const words = Object.hasOwn(PROBLEMS, problem) ? PROBLEMS[problem] : undefined;
  if (words === undefined) return { message: "the row cannot be read", remedy: "Correct the row." };
  return typeof words === "function" ? words(detail, reason) : words;
}

function quotedCell(value: unknown): string {
  return typeof value === "string" ? quoteUntrusted(value) : "missing";
}
