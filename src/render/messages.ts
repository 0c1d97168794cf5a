import * as z from "zod";
import type { Outcome, Reason } from "../runs/outcome.ts";
import { LIMITS } from "../spec/limits.ts";
import type { BulkOperation } from "../spec/routes.ts";
import { isUlid } from "../spec/ulid.ts";
import { EVENT_SENTENCES } from "./events/event-messages.ts";
import { shown, shownBriefly } from "./fence.ts";
import { notSupported } from "./group-rules.ts";
import type { Message } from "./message.ts";
import { planningFailure } from "./request-failures.ts";
import { rowMessage } from "./row-messages.ts";

type Detail = Readonly<Record<string, unknown>>;
type Sentence = (detail: Detail, reason: Reason) => Message;

const RESUME = "Call resume_run with this runId.";
const number = (value: unknown, fallback: number | string = "?"): string =>
  typeof value === "number" ? value.toLocaleString("en-US") : String(fallback);
const text = (value: unknown): string => (typeof value === "string" ? shown(value) : "?");

/** Up to three entries of a list, as text; what is left out is counted. */
function list(value: unknown, most = 3): string {
  const entries = Array.isArray(value) ? value.filter((entry) => typeof entry === "string") : [];
  const more = entries.length > most ? ` and ${entries.length - most} more` : "";
  return entries.slice(0, most).map(plainOrShown).join(", ") + more;
}

/** IDs stand as they are; anything else from outside is shown with care. */
function plainOrShown(entry: string): string {
  return isUlid(entry) ? entry : shown(entry);
}

const conflict = z.looseObject({
  value: z.string().optional(),
  collection: z.looseObject({ _id: z.string().optional(), name: z.string().optional() }).optional(),
  targeting: z.looseObject({ _id: z.string().optional(), name: z.string().optional() }).optional(),
});

function conflictWords(detail: Detail): string {
  const conflicts = z.array(conflict).safeParse(detail.conflicts).data ?? [];
  const words = conflicts.slice(0, 3).map(({ value, collection, targeting }) => {
    const group = collection?.name ?? collection?._id;
    const holder = group === undefined ? "another group of the same call" : `group ${shown(group)}`;
    const where = targeting?.name ?? targeting?._id;
    return `${text(value)} in ${holder}${where === undefined ? "" : ` of targeting ${shown(where)}`}`;
  });
  const more = conflicts.length > 3 ? ` and ${conflicts.length - 3} more` : "";
  return words.length === 0 ? "" : `: ${words.join("; ")}${more}`;
}

/** What to do about a name that something has already, by what was to get it. */
const TAKEN_REMEDIES: Readonly<Record<string, string>> = {
  "an option, addOptions": 'Choose another name, or call bulk_add_options with onExisting "skip" or "addContexts".',
  "a targeting, createTargetings": "Choose another name, or work with the existing targeting.",
  "an option, updateOptions":
    "Choose another name, or free this one first: rename the other option with update_options, or delete it.",
  "a targeting, renameTargetings":
    "Choose another name, or free this one first: give the other targeting another with rename_targetings.",
};

function taken(what: string, detail: Detail, { operation }: Reason): Message {
  if (typeof detail.duplicateOfIndex === "number") {
    return {
      message: `item ${detail.duplicateOfIndex} of the same call has this name already`,
      remedy: "Give each one its own name.",
    };
  }
  const ids = [detail.existingId, ...(Array.isArray(detail.existingIds) ? detail.existingIds : [])].filter(Boolean);
  if (ids.length > 0) {
    return {
      message: `${what} of this name exists already: ${list(ids)}`,
      remedy: TAKEN_REMEDIES[`${what}, ${operation}`] ?? "Choose another name.",
    };
  }
  return {
    message: `the name is taken${what === "a targeting" ? ", by an audience targeting perhaps, which cannot be reached" : ""}`,
    remedy: "Choose another name.",
  };
}

const NAME_RULE =
  "Names have 2 to 36 characters: Korean and English letters, digits, spaces, ~ % & + -, no space at either end.";

function invalidName(detail: Detail): Message {
  const problems: Readonly<Record<string, string>> = {
    tooShort: `the name has ${number(detail.length)} characters, and needs at least ${LIMITS.nameMinLength.value}`,
    tooLong: `the name has ${number(detail.length)} characters, and may have ${LIMITS.nameMaxLength.value}`,
    outerSpace: "the name begins or ends with a space",
    characters: `the name has characters that are not allowed: ${list(detail.characters, 5)}`,
  };
  return { message: problems[String(detail.rule)] ?? "the name breaks a rule", remedy: NAME_RULE };
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
  addAndRemove: {
    message: "the same Context ID is to be added and removed",
    remedy: "Say one of the two.",
  },
};

/** Which name was looked for in vain, and names that may have been meant. */
function nameNotFound({ field, of, value, now, near, groups }: Readonly<Record<string, unknown>>): Message {
  const hasNear = Array.isArray(near) && near.length > 0;
  if (of === "targetings") {
    return now === undefined
      ? {
          message: `no targeting named ${text(value)} has been seen`,
          remedy: `Give its ID (a ULID, shown in the web console).${hasNear ? ` Seen were: ${list(near, 5)}.` : ""}`,
        }
      : {
          message: `the targeting that was seen as ${text(value)} is named ${text(now)} by now`,
          remedy: "Give its ID, or its name of now, if it is meant all the same.",
        };
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

const SENTENCES: Readonly<Record<string, Sentence>> = {
  ...EVENT_SENTENCES,
  AD_PRODUCT_TARGETING_POLICY_LIMIT_EXCEEDED: (detail) => ({
    message:
      `ad products ${list(detail.products)} would have ${number(detail.count)} options set as Required Include or ` +
      `Required Exclude, and may have ${number(detail.limit, LIMITS.productRequiredOptions.value)}`,
    remedy: "Take required options off these ad products in the web console first.",
  }),
  TARGETING_CATEGORY_LIMIT_EXCEEDED: (detail) => ({
    message:
      `targeting ${list([detail.targeting])} would have more than ` +
      `${number(detail.limit, LIMITS.targetingOptions.value)} options, sub-options included${there(detail)}`,
    remedy: "Delete options that are not needed with delete_options, or use another targeting.",
  }),
  TARGETING_CATEGORY_LOCKED: () => ({
    message:
      "an ad product requires this option, or a campaign that has not ended uses it: it cannot move into a group",
    remedy:
      "End or change that in the web console first, or add a new option to the group with bulk_add_options and parent.",
  }),
  TARGETING_CATEGORY_NOT_SUPPORTED: (_, reason) => notSupported(reason),
  TARGETING_CATEGORY_TREE_ITEMS_LIMIT_EXCEEDED: (detail) => ({
    message: `a request named ${number(detail.count)} groups and sub-options, and may name ${number(detail.limit, 150)}`,
    remedy: "Call delete_options again with the ones that are left.",
  }),
  TARGETING_COLLECTION_CONTEXT_DUPLICATED: (detail) => ({
    message: `a Context ID is an own Context ID of another option group already${conflictWords(detail)}`,
    remedy:
      "Remove it there with update_contexts, or leave it out here: groups share no own Context IDs. " +
      "Groups that swap theirs need two calls: remove first, then add.",
  }),
  TARGETING_CONTEXT_LIMIT_EXCEEDED: (detail) => ({
    message:
      "the option would hold more than 50,000 Context IDs or 8 MB of them, or the project more than 200,000" +
      there(detail),
    remedy: "Remove Context IDs that are not needed with update_contexts; list_options shows the counts.",
  }),
  TARGETING_LOCKED: () => ({
    message: "an approved campaign that has not ended uses an option of this targeting; nothing was deleted",
    remedy: "End the campaign in the web console first.",
  }),
  PROJECT_NOT_FOUND: () => ({
    message: "the project of the key no longer exists",
    remedy: "Set TARGETING_API_KEY to a key of an existing project.",
  }),
  TARGETING_CATEGORY_NOT_FOUND: (_, { operation }) => ({
    message:
      operation === "addOptions"
        ? "parent is not an option of this targeting"
        : "there is no such option in a context targeting of the project",
    remedy: "Check the ID: list_options shows what is there; options of audience targetings cannot be reached.",
  }),
  TARGETING_NOT_FOUND: () => ({
    message: "there is no such context targeting in the project of the key",
    remedy: "Check the ID; audience targetings, and those of other projects, cannot be reached.",
  }),
  CONTEXT_TARGETING_WRITE_IN_PROGRESS: () => ({
    message: "other writes held the project during the whole retry budget; this was not applied",
    remedy: `${RESUME} TARGETING_MCP_RETRY_BUDGET_MS makes it more patient.`,
  }),
  TARGETING_CATEGORY_NAME_DUPLICATE: (detail, reason) => taken("an option", detail, reason),
  TARGETING_NAME_DUPLICATE: (detail, reason) => taken("a targeting", detail, reason),
  UNCATCHED: () => ({
    message: "the service failed unexpectedly at this item, each time it was sent; it was not applied",
    remedy: "Try this item again later, or make the change in the web console.",
  }),
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
    message: `item ${number(detail.duplicateOfIndex)} of the same call has the same ${detail.field === "_id" ? "_id" : "name"} already`,
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
      (detail.childCount === undefined ? "" : ` and ${number(detail.childCount)} sub-options`),
    remedy: "To delete it all the same, leave onlyEmpty out.",
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
    remedy: `Check the address in the settings and the network, then: ${RESUME}`,
  }),
  BUSY: () => ({
    message: "the service was busy during the whole retry budget; this was not applied",
    remedy: `${RESUME} TARGETING_MCP_RETRY_BUDGET_MS makes it more patient.`,
  }),
  CANCELLED: () => ({ message: "the run was cancelled before this was sent", remedy: RESUME }),
  NOT_PLANNED: (detail) => {
    const { message, remedy = "Mend that." } = planningFailure(detail);
    return { message: `planning it failed, so nothing was changed: ${message}`, remedy: `${remedy} Then: ${RESUME}` };
  },
  WITHDRAWN: () => ({
    message: "the run was cancelled before it was started: nothing was sent",
    remedy: "Make the call again if it is wanted after all.",
  }),
  DECLINED: () => ({
    message: "the person did not agree: nothing was sent",
    remedy: "Do not try again unless they ask for it.",
  }),
  INTERRUPTED: () => ({ message: "the server stopped before this was sent", remedy: RESUME }),
  RUN_ENDED: (detail) => ({
    message: `the run ended before this was sent, since an earlier request found no end${because(detail)}`,
    remedy: RESUME,
  }),
  PARTLY_APPLIED: (detail) => ({
    message: `a part of it was applied and the rest was not${because(detail)}`,
    remedy: `Look at it with get_option, and decide what is to become of it. ${RESUME} It finishes what can be finished.`,
  }),
  OWNER_UNCLEAR: (detail) => ({
    message:
      `something of this name (${list(detail.existingIds)}) appeared while no answer came: whether this call made it, ` +
      "or somebody else, cannot be told",
    remedy: "Look at it with get_option or get_targeting, and decide whether it is what was wanted.",
  }),
  STOPPED_BY_ERROR: (detail) => ({
    message: `the run stopped, since its journal could not be kept (${text(detail.error)}); nothing is sent that is not journaled`,
    remedy: `Make room, or let TARGETING_MCP_STATE_DIR name a folder that can be written. Then: ${RESUME}`,
  }),
  UNAUTHORIZED: () => ({
    message: "the service does not accept the key",
    remedy: "The key is missing, invalid or revoked: set TARGETING_API_KEY to a valid one, then resume_run.",
  }),
  FORBIDDEN: () => ({
    message: "the key lacks the scope context-targeting:write",
    remedy: "Scopes cannot be added to a key: create a new one in the console under Settings > Integrations.",
  }),
  WRONG_ROUTE: (detail, { statusCode }) => ({
    message: `the service does not know the route ${text(detail.route)} (status ${number(statusCode)}); nothing was applied`,
    remedy: "Check TARGETING_API_URL, or set the right route in the file that TARGETING_MCP_ROUTES names.",
  }),
  REDIRECTED: (detail) => ({
    message: `the address answers ${text(detail.route)} with a redirect, and redirects are not followed`,
    remedy: "Set TARGETING_API_URL to the final address.",
  }),
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

/** How much is there already, where that was read before. */
function there({ there }: Detail): string {
  return typeof there === "number" ? `; there are ${number(there)} already` : "";
}

function because({ because, reason }: Detail): string {
  const why = typeof reason === "string" ? reason : because;
  return typeof why === "string" ? ` (${plainWords(why)})` : "";
}

/** Our own codes and reasons are plain words; anything else is shown with care. */
function plainWords(why: string): string {
  return /^[A-Za-z0-9_ ,.:'-]{1,120}$/.test(why) ? why : shown(why);
}

function saying({ messages }: Detail): string {
  return Array.isArray(messages) && messages.length > 0 ? `, saying ${list(messages, 2)}` : "";
}

/**
 * What to tell an agent about one reason: a sentence of ours with the values of `detail`, and a remedy that names the
 * tool, the setting or the place in the console (management-api 7). Foreign text in it is quoted and escaped.
 */
export function messageFor(reason: Reason): Message {
  const sentence = Object.hasOwn(SENTENCES, reason.code) ? SENTENCES[reason.code] : undefined;
  if (sentence !== undefined) return sentence(reason.detail ?? {}, reason);
  const status = reason.statusCode === undefined ? "" : ` (status ${reason.statusCode})`;
  return {
    message: `the service refused it with ${shown(reason.code)}${status}${saying(reason.detail ?? {})}`,
    remedy: "This code is not in the documents of the API: look at the item in the web console.",
  };
}

/** A code for a line of text: one that we know as it is, any other like all foreign text. */
export function codeWords(code: string): string {
  return Object.hasOwn(SENTENCES, code) ? code : shownBriefly(code);
}

/** A reason in one line, as reject files have it. */
export function reasonWords(reason: Reason): string {
  const { message, remedy } = messageFor(reason);
  return `${codeWords(reason.code)}: ${message}. ${remedy}`;
}

/** Words for what a bulk request does, for plans. */
export const OPERATION_WORDS: Readonly<Record<BulkOperation, string>> = {
  createTargetings: "create targetings",
  renameTargetings: "rename targetings",
  deleteTargetings: "delete targetings",
  addOptions: "add options",
  updateOptions: "update options",
  deleteOptions: "delete options",
};

/** Words for outcomes, for counts. */
export const OUTCOME_WORDS: Readonly<Record<Outcome | "pending", string>> = {
  succeeded: "succeeded",
  alreadyDone: "already done",
  failed: "failed",
  unattempted: "not attempted",
  unknown: "unknown",
  pending: "pending",
};
