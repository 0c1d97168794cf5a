import * as z from "zod";
import { nameProblemWords } from "../../platform/text.ts";
import { LIMITS } from "../../spec/limits.ts";
import { NAME_RULES } from "../../spec/names.ts";
import type { Message } from "../message.ts";
import { knownOf, planningFailure, rateLimitWords, refusalWords, remedyOf } from "./request-failures.ts";
import { rowMessage } from "./row-messages.ts";
import {
  because,
  type Detail,
  earlierItem,
  list,
  MORE_PATIENT,
  many,
  number,
  RESUME,
  type Sentence,
  saying,
  staleWords,
  text,
  WHERE_SET,
} from "./words.ts";

const NAME_RULE =
  "Names have 2 to 36 characters: Korean and English letters, digits, spaces, ~ % & + -, no space at either end.";

const nameDetail = z.object({
  rules: z.array(z.enum(NAME_RULES)).min(1),
  length: z.number(),
  characters: z.array(z.string()).optional(),
});

function invalidName(detail: Detail): Message {
  // Runs of earlier versions name the first rule alone.
  const problem = nameDetail.safeParse({ rules: [detail.rule], ...detail }).data;
  const words = problem === undefined ? "breaks a rule" : nameProblemWords(problem);
  return { message: `the name ${words}`, remedy: NAME_RULE };
}

const CONTEXT_ID_PROBLEMS: Readonly<Record<string, string>> = {
  empty: "is empty",
  halfCharacter: "holds half of a character (an unpaired surrogate), which UTF-8 cannot carry",
};

const ITEM_PROBLEMS: Readonly<Record<string, Message>> = {
  childrenOfAtomic: {
    message: "children was given with type atomic",
    remedy: "Leave type out: children make it an option group.",
  },
  exposeChildrenOfAtomic: {
    message: "exposeChildren was given for a regular option",
    remedy: "Leave it out, or make it a group with type collection or children.",
  },
  idAndCurrentName: { message: "_id and currentName were both given", remedy: "Give one of the two." },
  noTargeting: { message: "the item names no targeting", remedy: "Give _id, or currentName." },
  parentAndParentName: { message: "parent and parentName were both given", remedy: "Give one of the two." },
  groupWithParent: {
    message: "a sub-option (parent, parentName) cannot be a group itself (type collection, children, exposeChildren)",
    remedy: "Leave out the parent, or what makes it a group.",
  },
  noChange: { message: "the item says nothing that would change", remedy: "Say what to change." },
  ownParent: { message: "the option was given as its own parent", remedy: "Give the ID of an option group." },
  noOption: {
    message: "the item names no option",
    remedy: "Give its ID, or its name (currentName in update_options) with targetingId.",
  },
  nameWithoutTargeting: {
    message: "an option is given by name, and its targeting is not given",
    remedy: "Give targetingId (or targetingName) beside items, or the option's _id.",
  },
  setWithAddOrRemove: {
    message: "set was given beside add or remove",
    remedy: "set alone says what the option holds afterwards; use add and remove without it.",
  },
  addAndRemove: { message: "the same Context ID is to be added and removed", remedy: "Say one of the two." },
};

/** Which name was looked for in vain, and names that may have been meant. */
function nameNotFound({ field, of, value, now, near, groups }: Detail): Message {
  const hasNear = Array.isArray(near) && near.length > 0;
  if (of === "targetings") {
    if (now === undefined) {
      const seen = hasNear ? ` Seen were: ${list(near, 5)}.` : "";
      const remedy = `Give its ID (a ULID, shown in the web console).${seen}`;
      return { message: `no targeting named ${text(value)} has been seen`, remedy };
    }
    const message = `the targeting that was seen as ${text(value)} is named ${text(now)} by now`;
    return { message, remedy: "Give its ID, or its name of now, if it is meant all the same." };
  }
  const hasGroups = Array.isArray(groups) && groups.length > 0;
  const inList = hasNear
    ? `Give a name that is there; near it are ${list(near, 5)}.`
    : "list_options with search finds names.";
  return {
    message: `no ${field === "parentName" ? "option group" : "option"} of the targeting is named ${text(value)}`,
    remedy: hasGroups ? `Groups there are: ${list(groups, 5)}.` : inList,
  };
}

/** The words for a refusal that every further request would get; nothing of its request was applied. */
function refusal(kind: string): Sentence {
  return (detail, { operation, statusCode }) => {
    const words = refusalWords(kind, { operation, ...knownOf(detail, statusCode) });
    if (words === undefined) throw new RangeError(`there are no words for the refusal ${kind}`);
    return { message: `${words.message}; nothing was applied`, remedy: `${words.remedy} ${WHERE_SET} Then: ${RESUME}` };
  };
}

const AGAIN = "Make the call again if it is wanted after all.";

/** What our own codes mean. */
export const OWN_SENTENCES: Readonly<Record<string, Sentence>> = {
  INVALID_NAME: invalidName,
  INVALID_ID: (detail) => ({
    message: `${String(detail.field)} is ${text(detail.value)}, which is no ULID`,
    remedy: "IDs have 26 digits and capital letters; take them from list_options or an earlier answer.",
  }),
  INVALID_CONTEXT_ID: (detail) => ({
    message:
      `${number(detail.count)} of its Context IDs cannot be kept: the first, at position ${number(detail.position)}, ` +
      (CONTEXT_ID_PROBLEMS[String(detail.rule)] ?? `${text(detail.value)}, has ${number(detail.bytes)} bytes`),
    remedy: `A Context ID has 1 to ${LIMITS.contextIdBytes.value} bytes in UTF-8.`,
  }),
  INVALID_ROW: rowMessage,
  INVALID_ITEM: (detail) =>
    ITEM_PROBLEMS[String(detail.problem)] ?? { message: "the item's fields do not go together", remedy: "Change it." },
  DUPLICATE_IN_INPUT: (detail) => ({
    message: `${earlierItem(detail)} of the same call has the same ${detail.field === "_id" ? "_id" : "name"} already`,
    remedy: detail.field === "_id" ? "Say everything about one thing in one item." : "Give each one its own name.",
  }),
  NAME_NOT_FOUND: nameNotFound,
  NAME_AMBIGUOUS: (detail) =>
    detail.of === "targetings"
      ? {
          message: `several targetings named ${text(detail.value)} have been seen: ${list(detail.ids)}`,
          remedy: "Give the ID; get_targeting shows each.",
        }
      : {
          message: `several options are named ${text(detail.value)}: ${list(detail.ids)}`,
          remedy: "Give the ID; rename one of them with update_options.",
        },
  NOT_EMPTY: (detail) => ({
    message:
      `the option is kept, since it holds ${number(detail.contextCount)} Context IDs` +
      (detail.childCount === undefined ? "" : ` and ${many(detail.childCount, "sub-option")}`),
    remedy: "To delete it all the same, leave onlyEmpty out.",
  }),
  EXISTS: () => ({
    message: "an option of this name exists already; it was left as it is",
    remedy: 'To give it the Context IDs, call bulk_add_options with onExisting "addContexts".',
  }),
  TOO_MANY_CONTEXT_IDS: (detail) => ({
    message:
      detail.count === undefined
        ? "the option would hold more than 8 MB of Context IDs"
        : `the option would hold ${number(detail.count)} Context IDs, and may hold ${number(detail.limit)}`,
    remedy: "Spread them over several options.",
  }),
  ITEM_TOO_LARGE: () => ({ message: "the item does not fit into a request by itself", remedy: "Make it smaller." }),
  EMPTY_GROUP: () => ({
    message: "the option group would have neither sub-options nor Context IDs of its own (7.4 case 1)",
    remedy: "Give it contexts, or a sub-option that can be made.",
  }),
  PLAN_STALE: (detail) => ({
    message: `it has changed since it was planned, so nothing was sent: ${staleWords(detail)}`,
    remedy: "Call plan_targeting or undo_run again: the plan then shows what is there now.",
  }),
  NO_FREE_PLACE: ({ limit, there }) => ({
    message:
      `the changes need a free place for a moment, and the targeting has ${number(there)} of at most ` +
      `${number(limit)} options; nothing was sent`,
    remedy: "Delete an option first, or make fewer changes at once.",
  }),
  PLAN_STALE_ELSEWHERE: () => ({
    message: "something else of the plan has changed since, so nothing was sent",
    remedy: "Call plan_targeting or undo_run again.",
  }),
  NEEDS_FAILED: () => ({
    message: "the group or targeting that it belongs to was not made; this was not sent by itself",
    remedy: "Mend what the group or targeting failed for, and send both again.",
  }),
  NO_ANSWER: (detail) => ({
    message: `it was sent, and no usable answer came${because(detail)}: it may or may not have been applied`,
    remedy: `${RESUME} It sends the same again and tells from the answer what happened; nothing is made twice.`,
  }),
  NOT_SENT: (detail) => ({
    message: `the service could not be reached${because(detail)}`,
    remedy: `${remedyOf(knownOf(detail))} Then: ${RESUME}`,
  }),
  BUSY: () => ({
    message: "the service was busy during the whole retry budget; this was not applied",
    remedy: `${RESUME} ${MORE_PATIENT}`,
  }),
  RATE_LIMITED: (detail) => ({
    message: `${rateLimitWords(knownOf(detail))}; this was not applied`,
    remedy: `When that time is over: ${RESUME} ${MORE_PATIENT}`,
  }),
  CANCELLED: () => ({ message: "the run was cancelled before this was sent", remedy: RESUME }),
  NOT_PLANNED: (detail) => {
    const { message, remedy = "Mend that." } = planningFailure(detail);
    // The file of a run stays as it is.
    const then = detail.isOver || detail.effect === "file" ? "Make the call again." : RESUME;
    return { message: `planning it failed, so nothing was changed: ${message}`, remedy: `${remedy} Then: ${then}` };
  },
  FILE_UNREADABLE: (detail) => {
    const { message, remedy = "" } = planningFailure(detail);
    return { message, remedy: `${remedy} Then make the call again.` };
  },
  NOT_SAVED: (detail) => {
    const { message, remedy = "Mend that." } = planningFailure(detail);
    return { message: `nothing was saved: ${message}`, remedy: `${remedy} Then: ${RESUME}` };
  },
  WITHDRAWN: () => ({ message: "the run was cancelled before it was started: nothing was sent", remedy: AGAIN }),
  UNDONE: () => ({ message: "the run was undone before this was sent", remedy: AGAIN }),
  NOT_DECIDED: ({ elsewhere }) => ({
    message:
      elsewhere === undefined
        ? "nobody decided on it within 24 hours: nothing was sent"
        : "nobody approved it before its question expired: nothing was sent",
    remedy: AGAIN,
  }),
  DECLINED: () => ({
    message: "it was declined: nothing was sent",
    remedy: "Do not try again unless the person asks for it.",
  }),
  INTERRUPTED: () => ({ message: "the server stopped before this was sent", remedy: RESUME }),
  RUN_ENDED: (detail) => ({
    message: `the run ended before this was sent, since an earlier request found no end${because(detail)}`,
    remedy: RESUME,
  }),
  PARTLY_APPLIED: (detail) => ({
    message: `a part of it was applied and the rest was not${because(detail)}`,
    remedy: `${RESUME} It finishes what can be finished, and tells what happened.`,
  }),
  OWNER_UNCLEAR: (detail) => ({
    message:
      `something of this name (${list(detail.existingIds)}) appeared while no answer came: whether this call made it, ` +
      "or another writer, cannot be told",
    remedy: "Look at it with get_option or get_targeting, and decide whether it is what was wanted.",
  }),
  STOPPED_BY_ERROR: (detail) => ({
    message: `the run stopped, since its journal could not be kept (${text(detail.error)}); nothing is sent that is not journaled`,
    remedy: `Make room, or let TARGETING_MCP_STATE_DIR name a folder that can be written. Then: ${RESUME}`,
  }),
  UNAUTHORIZED: refusal("unauthorized"),
  FORBIDDEN: refusal("forbidden"),
  WRONG_ROUTE: refusal("wrongRoute"),
  REDIRECTED: refusal("redirect"),
  FOREIGN_ANSWER: refusal("foreign"),
  REJECTED: (detail, { statusCode }) => ({
    message: `the service refused it with status ${number(statusCode)}${saying(detail)}; nothing was applied`,
    remedy: "The documents of the API do not list this status: look at the item in the web console.",
  }),
  TOO_LARGE: () => ({
    message: "the service finds the item too large even by itself (413); nothing was applied",
    remedy: "Make the item smaller.",
  }),
  VALIDATION: (detail) => ({
    message: `the service refused it as invalid${saying(detail)}; nothing was applied`,
    remedy: "Change the item as the message says.",
  }),
};
