import type { StaleField } from "../changes/rows/entries.ts";
import type { RowLabel, UndoReason, UndoRow } from "../plans/undo-plan.ts";
import { capitalized, firstOf, nameProblemWords, thousands } from "../platform/text.ts";
import type { Reason } from "../runs/outcome.ts";
import { LIMITS } from "../spec/limits.ts";
import { isUlid, nameProblem } from "../spec/names-and-contexts.ts";
import { quoteUntrusted } from "./fence.ts";

export interface Message {
  readonly message: string;
  /** The beginning of all messages with this code. If an answer has several of these, a heading states it once. */
  readonly shared?: string;
  readonly remedy: string;
}

export type Detail = Readonly<Record<string, unknown>>;

/** Who reads a text: an agent, or a person. `endedPage`: the web page of a run that cannot be resumed. */
export type Reader = "agent" | "page" | "endedPage" | "terminal" | "sheet";
export type Text = string | Readonly<Record<Reader, string>>;

export function isPage(reader: Reader): boolean {
  return reader === "page" || reader === "endedPage";
}

export interface Entry extends Omit<Message, "message" | "remedy"> {
  readonly message: Text;
  readonly remedy: Text;
}

/** A message, or a function that returns the message for a reason. Each code has one. */
export type Sentence = Entry | ((detail: Detail, reason: Reason) => Entry);

/** Returns a text with two forms. The one for agents may name tools and arguments; the one for people must not. */
export function texts(agent: string, people: string): Readonly<Record<Reader, string>> {
  return { agent, page: people, endedPage: people, terminal: people, sheet: people };
}

export function onPage(page: string, others: string): Text {
  return { agent: others, page, endedPage: page, terminal: others, sheet: others };
}

/** Returns a text about a line of the file. For a sheet with results, whose lines differ, names the original file. */
function aboutLine(line: string, write: (line: string) => string): Text {
  const others = write(line);
  return { ...texts(others, others), sheet: write(`${line} of the original file`) };
}

/**
 * Returns a text for each reader, such as an agent or a person at the page. `write` gets the sentence that tells this
 * reader how to resume the run, alone and after another step (`then`). `inSheet`: the words for the reader of a sheet.
 */
export function resuming(
  write: (resume: string, then: string) => string,
  inSheet = "give this sheet again.",
): Exclude<Text, string> {
  const its = (act: string) => write(capitalized(act), `Then ${act}`);
  return {
    agent: its("call resume_run with this runId."),
    page: its("press Resume run."),
    endedPage: its("ask the agent to make the change again."),
    terminal: its("run targeting-mcp apply with the ID of the run."),
    sheet: its(inSheet),
  };
}

/** For an item that may have been applied. In a new run, its row could fail because the option already exists. */
export const RESUME_FIRST = "resume the run of this sheet before you give the sheet again.";

/** Returns a text that says how to make the call again, in the words for each reader. */
export function startingOver(write: (again: string) => string): Text {
  return {
    agent: write("make the call again."),
    page: write("ask the agent to make the change again."),
    endedPage: write("ask the agent to make the change again."),
    terminal: write("run the command again."),
    sheet: write("give this sheet again."),
  };
}

const SIZES = /\b\d{4,15}(?= (?:bytes|characters)\b)/g;

/** Returns the form of a text for a reader. On the page, large sizes are grouped by thousands. */
export function textFor(text: Text, reader: Reader): string {
  const its = typeof text === "string" ? text : text[reader];
  return isPage(reader) ? its.replace(SIZES, (size) => thousands(Number(size))) : its;
}

/** Removes sentences about `resume_run` from a remedy, for an answer whose next steps already contain this call. */
export function withoutResume(remedy: string): string {
  return remedy.replace(/ ?(?:Then c|C)all resume_run with this runId\.( It [^.]*\.)?/, "").trim();
}

export const MORE_PATIENT = "To retry longer, raise TARGETING_MCP_RETRY_BUDGET_MS.";

export const WHERE_SET =
  "Settings are in the env of this server's entry in the host's configuration; keys of an HTTP server can be in its access file.";

export const number = (value: unknown, fallback: number | string = "?"): string =>
  typeof value === "number" ? thousands(value) : String(fallback);

export const many = (value: unknown, one: string): string => `${number(value)} ${one}${value === 1 ? "" : "s"}`;

/** Says which options count as empty. All answers that count empty options contain this. */
export const EMPTY_WORDS = "no Context IDs; groups: no sub-options either";
/** Returns what makes an option not empty: the number of its Context IDs and sub-options. */
export function heldWords({ contextCount, childCount }: Detail): string {
  const held = contextCount === 0 ? [] : [many(contextCount, "Context ID")];
  if (childCount !== undefined && childCount !== 0) held.push(many(childCount, "sub-option"));
  return held.join(" and ");
}

export const text = (value: unknown): string => (typeof value === "string" ? quoteUntrusted(value) : "?");

/** Returns up to `most` entries, and how many more there are. `all`: the number of all, if `value` has only some. */
export function list(value: unknown, most = 3, all?: unknown): string {
  const entries = Array.isArray(value) ? value.filter((entry) => typeof entry === "string") : [];
  return firstOf(entries, most, plainOrShown, { all: typeof all === "number" ? all : entries.length });
}

/** Returns an ID as it is. Any other entry is foreign text, so it is quoted. */
function plainOrShown(entry: string): string {
  return isUlid(entry) ? entry : quoteUntrusted(entry);
}

/** Returns the line of the earlier row that a row repeats or, without lines, the number of the earlier item. */
export function earlierPlace({ duplicateOfIndex, duplicateOfLine }: Detail): number | undefined {
  if (typeof duplicateOfLine === "number") return duplicateOfLine;
  return typeof duplicateOfIndex === "number" ? duplicateOfIndex + 1 : undefined;
}

/** Returns a text about an earlier item of the same call. `write` gets its position: `line 3` or `item 3`. */
export function aboutEarlier(detail: Detail, write: (item: string) => string): Text {
  const place = earlierPlace(detail) ?? "?";
  return typeof detail.duplicateOfLine === "number" ? aboutLine(`line ${place}`, write) : write(`item ${place}`);
}

/** Returns the message for an item or row that repeats an earlier one in the same call. */
export function duplicateMessage(detail: Detail): Entry {
  const { field, contexts, duplicateOfLine } = detail;
  if (field === "_id") {
    const message = aboutEarlier(detail, (item) => `${item} has the same _id`);
    return { message, remedy: "Put all changes of one object into one item." };
  }
  const isLine = typeof duplicateOfLine === "number";
  if (contexts === "same") {
    const message = aboutEarlier(detail, (item) => `same name and Context IDs as ${item}`);
    return { message, remedy: `Leave the ${isLine ? "line" : "item"} out.` };
  }
  const message = aboutEarlier(
    detail,
    (item) => `same name as ${item}${contexts === "other" ? ", with other Context IDs" : ""}`,
  );
  if (!isLine) return { message, remedy: "Use each name once." };
  return {
    message,
    remedy: texts(
      'Use each name once. If each row has one Context ID of the option, name their column with columns {"contextId": HEADING}.',
      "Use each name once. If each row has one Context ID of the option, give their column the heading Context ID.",
    ),
  };
}

/** Returns the message for a name that no option, group or targeting has. */
export function notFoundMessage({ field, of, value, now, near, groups, groupCount, nested }: Detail): Entry {
  const hasNear = Array.isArray(near) && near.length > 0;
  if (of === "targetings") {
    if (now === undefined) {
      const seen = hasNear ? ` Similar names: ${list(near, 5)}.` : "";
      const remedy = `Give the targeting's ID (a ULID, shown in the web console).${seen}`;
      return { message: `this server has seen no targeting named ${text(value)}`, remedy };
    }
    const message = `the targeting that was known as ${text(value)} is now named ${text(now)}`;
    return { message, remedy: "If you mean this targeting, give its ID or its current name." };
  }
  const message = `the targeting has no ${field === "parentName" ? "option group" : "option"} named ${text(value)}`;
  // `detail` contains the groups only if the call can create groups.
  if (Array.isArray(groups)) {
    const its = groups.length === 0 ? "" : `Existing groups: ${list(groups, 5, groupCount)}. `;
    if (nested === "itself") {
      return {
        message: "the option names itself as its group",
        remedy: `${its}Give the name of another group in parentName, or none. If this option is meant to be a group itself, leave its parentName empty.`,
      };
    }
    if (nested === "subOption") {
      return {
        message: `${text(value)} is a sub-option here, and groups cannot be inside groups`,
        remedy: `${its}Give the name of a top-level group instead, or make ${text(value)} a top-level option first, by moving it out of its group.`,
      };
    }
    const problem = typeof value === "string" ? nameProblem(value) : undefined;
    if (problem !== undefined) {
      return { message, remedy: `${its}No group can have this name: it ${nameProblemWords(problem)}.` };
    }
    return {
      message,
      remedy: texts(
        `${its}To create this group, add to the same call an item or row with its name and type "collection". If you cannot add a row to the file, create the group in a call with items first. A new group needs content, so give it one of the file's sub-options in children. Then send the file again with onExisting "addContexts", because that sub-option now exists.`,
        `${its}To create this group, add a row with its name and with yes in a column Is Group.`,
      ),
    };
  }
  const similar = hasNear ? `Similar names: ${list(near, 5)}.` : undefined;
  if (field === "parentName") {
    const create = "plan_targeting creates the group and moves options into it, if they are its children in desired.";
    return { message, remedy: texts(similar ? `${similar} ${create}` : create, similar ?? "Create the group first.") };
  }
  const search = texts(
    "Find the name with list_options and its argument search.",
    "Look for the name in the web console.",
  );
  return { message, remedy: similar ?? search };
}

/** Returns how many objects the `holder` has and how many more fit at most. Empty if it is unknown how many it has. */
export function there({ there, limit }: Detail, holder = "it"): string {
  if (typeof there !== "number") return "";
  const left = typeof limit === "number" ? Math.max(0, limit - there) : undefined;
  const many = left === 0 ? "no" : `at most ${number(left)}`;
  const fits = left === undefined ? "" : `, so ${many} more ${left === 1 ? "fits" : "fit"}`;
  return `; ${holder} has ${number(there)}${fits}`;
}

export function because({ because, reason }: Detail): string {
  const why = typeof reason === "string" ? reason : because;
  return typeof why === "string" ? ` (${plainWords(why)})` : "";
}

/** Returns a text as it is if it looks like words of ours. Otherwise it may be foreign text, so it is quoted. */
function plainWords(why: string): string {
  return /^[A-Za-z0-9_ ,.:'-]{1,120}$/.test(why) ? why : quoteUntrusted(why);
}

export function saying({ messages }: Detail): string {
  return Array.isArray(messages) && messages.length > 0 ? `, saying ${list(messages, 2)}` : "";
}

/**
 * Describes one result of an undo: what will happen or, with `isDone`, what has happened. `rows`: all objects of the
 * undo. If a new ID is the only difference of the restored objects, says so.
 */
export function undoResultWords(label: RowLabel, rows: readonly UndoRow[], { isDone = false } = {}): string {
  const its = rows.filter(({ undo }) => undo === label);
  const areNew = its.every(({ reasons = [] }) => reasons.every((reason) => reason === "newId"));
  const differences = areNew ? (its.length === 1 ? "a new ID" : "new IDs") : "differences";
  const undone = isDone ? "undone" : "will be undone";
  const words: Readonly<Record<RowLabel, string>> = {
    unresolved: "unresolved: sent, and not answered",
    exact: `${undone} exactly`,
    caveat: `${undone} with ${differences}`,
    notOurs: isDone ? "changed since and not undone" : "changed since and will not be undone",
    impossible: "impossible to undo",
  };
  return words[label];
}

const UNDO_REASON_WORDS: Readonly<Record<UndoReason, string>> = {
  newId: "gets a new ID; ad products and campaigns that use the old one stay disconnected",
  groupGone: "its group no longer exists",
  notRead: "it was not read before the run, so it may have held these Context IDs already",
  notKept: "its previous value was not stored",
  unknownOutcome: "it is unknown whether the run changed it",
  idUnknown: "its ID could not be read, and no single option has its name and group now",
  nameTaken: "another option has the name now",
  nameInvalid: "the service does not accept its previous name",
  emptyGroup: "a group would have neither sub-options nor own Context IDs",
  heldByGroup: "another group now holds some of its Context IDs",
  optionFull: `an option holds at most ${thousands(LIMITS.optionContextIds.value)} Context IDs and 8 MB of them`,
  targetingFull: `a targeting holds at most ${thousands(LIMITS.targetingOptions.value)} options`,
  projectFull: `a project holds at most ${thousands(LIMITS.projectContextIds.value)} Context IDs`,
  targetingGone: "its targeting was deleted, and this undo does not restore it",
  createdAgain: "another option has its name now",
};

/** Returns why an undo does not restore an object exactly. `group`: the name of the group that would become empty. */
export function undoReasonWords(reasons: readonly unknown[], group?: unknown): readonly string[] {
  return Object.entries(UNDO_REASON_WORDS).flatMap(([reason, says]) => {
    if (!reasons.includes(reason)) return [];
    return reason === "emptyGroup" && group !== undefined ? says.replace("a group", `the group ${text(group)}`) : says;
  });
}

export function staleWords({ field, planned, service, reasons, group }: Detail): string {
  if (Array.isArray(reasons)) return undoReasonWords(reasons, group).join("; ");
  if (field === "deleted") return "it no longer exists";
  if (field === "added") return `others added ${text(String(service))} to it`;
  if (field === "parent" && service === undefined) return "its group no longer exists";
  if (field === "contexts" && planned === service) return "its Context IDs are no longer the same";
  if (field === "contexts") return plannedAndThere(planned, "Context ID", service);
  if (field === "options" && planned === service) return "it has other options or Context IDs than expected";
  if (field === "options") return plannedAndThere(planned, "option", service);
  if (field === "subOption") return "one of its sub-options has changed";
  if (field === "subOptions") return plannedAndThere(planned, "sub-option", service);
  if (field === "name" && planned === undefined) return "another option has its name";
  const value = (side: unknown): string => (side === null ? "the top level" : text(String(side)));
  const now = service === undefined ? "" : `, but is ${value(service)}`;
  return `its ${field === "parent" ? "group" : String(field)} was expected to be ${value(planned)}${now}`;
}

const STALE_PLAN: Text = texts(
  "Call plan_targeting or undo_run again for a plan of the current state.",
  "Make a new plan of the current state.",
);

export function staleMessage(detail: Detail): Entry {
  const words = staleWords(detail);
  if (detail.isUndo === true) {
    return {
      message: `the object has changed since the run, so it was left as it is: ${words}`,
      remedy: texts(
        "When the object is again as the run left it, call undo_run for the same run.",
        "When the object is again as the run left it, plan the undo again.",
      ),
    };
  }
  if (detail.isInDoubt === true) {
    return {
      message:
        "the request got no answer, so it may or may not have been applied; it was not sent again, because the object " +
        `has changed since: ${words}`,
      remedy: texts(
        "Compare what get_option or get_targeting shows with what you wanted. If the change is missing, make a new call. undo_run takes back " +
          "what this run may have changed.",
        "Compare its current state in the web console with what you wanted.",
      ),
    };
  }
  if (detail.isLeft !== true) {
    return {
      message: `the object has changed since the plan was made, so nothing was sent: ${words}`,
      remedy: STALE_PLAN,
    };
  }
  return {
    message: `the object has changed since the run was planned, so it was left as it is: ${words}`,
    remedy: texts(
      "To see its current state: get_option or get_targeting. A new dry run or plan shows what would change now.",
      "Look at its current state in the web console. A new dry run or plan shows what would change now.",
    ),
  };
}

export function ownerUnclearMessage({ existingIds, isInside, isGone }: Detail): Entry {
  if (isGone === true && existingIds !== undefined) {
    return {
      message:
        `the request got no answer, and no option has this name now; ${list(existingIds)} is new and has the same ` +
        "content under another name: this call may have created it, and others renamed it",
      remedy: texts(
        "Check with get_option. If the option is missing, add it with a new call.",
        "Check in the web console. If the option is missing, ask the agent to add it.",
      ),
    };
  }
  if (isGone === true) {
    return {
      message: "the service created the options of this request, and this one was renamed or deleted later",
      remedy: texts(
        "Check with list_options. If the option is missing, add it with a new call.",
        "Check in the web console. If the option is missing, ask the agent to add it.",
      ),
    };
  }
  const [what, wanted] = isInside
    ? ["the name of this item, or of an object inside it,", "it holds what you wanted"]
    : ["this name", "it is the one that you wanted"];
  const check = (where: string) => `Check ${where} whether ${wanted}.`;
  return {
    message:
      `the request got no answer, and an object with ${what} now exists (${list(existingIds)}): this call or another ` +
      "writer may have created it",
    remedy: texts(check("with get_option or get_targeting"), check("in the web console")),
  };
}

function plannedAndThere(planned: unknown, one: string, there: unknown): string {
  return `it was expected to have ${many(planned, one)}, but has ${number(there)}`;
}

export const SEPARATOR_WORDS: Readonly<Record<string, string>> = {
  ",": "commas",
  ";": "semicolons",
  "|": "vertical bars",
  "、": "ideographic commas",
  "\t": "tabs",
  "\n": "line breaks",
};

/** Returns words for separator characters, for example `commas and tabs`. */
export function separatorWords(separators: string): string {
  const words = [...separators].map((one) => SEPARATOR_WORDS[one] ?? text(one));
  const last = words.pop() ?? "";
  return words.length === 0 ? last : `${words.join(", ")} and ${last}`;
}

const MAX_STALE = 5;

export function staleText(fields: readonly StaleField[]): string {
  const wordsOf = (field: StaleField) => `${quoteUntrusted(field.name)}: ${staleWords({ ...field })}`;
  return firstOf(fields, MAX_STALE, wordsOf, { separator: ";" });
}
