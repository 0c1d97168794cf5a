import * as z from "zod";
import type { Reason } from "../../runs/outcome.ts";
import { LIMITS } from "../../spec/limits.ts";
import { shown } from "../fence.ts";
import type { Message } from "../message.ts";
import { notSupported } from "./group-rules.ts";
import {
  type Detail,
  earlierItem,
  list,
  MORE_PATIENT,
  number,
  RESUME,
  type Sentence,
  text,
  there,
  WHERE_SET,
} from "./words.ts";

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
      message: `${earlierItem(detail)} of the same call has this name already`,
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

const MOST = {
  option: number(LIMITS.optionContextIds.value),
  project: number(LIMITS.projectContextIds.value),
} as const;

/** Three limits share a code (management-api 8.1): a new option with few Context IDs cannot have met its own. */
function contextLimit(detail: Detail, { operation, sent = [] }: Reason): Message {
  const own = detail.contextIds;
  const isNew = operation === "addOptions" || operation === "createTargetings";
  const isFarBelow = typeof own === "number" && own * LIMITS.contextIdBytes.value <= LIMITS.optionContextBytes.value;
  const comes = typeof own === "number" && !sent.includes("onlyLoss") ? `; this one gives ${number(own)}` : "";
  if (isNew && isFarBelow && own <= LIMITS.optionContextIds.value) {
    return {
      message: `the project would hold more than ${MOST.project} Context IDs over all its targetings${comes}${there(detail)}`,
      remedy:
        "Nothing is wrong with the item: remove Context IDs elsewhere in the project with update_contexts, or leave it out.",
    };
  }
  return {
    message:
      `the option would hold more than ${MOST.option} Context IDs or 8 MB of them, ` +
      `or the project more than ${MOST.project}${comes}${there(detail)}`,
    remedy:
      "Nothing is wrong with the item: give fewer, or remove Context IDs with update_contexts; list_options shows the counts.",
  };
}

/** What the codes of the management API mean (management-api 7). */
export const SERVICE_SENTENCES: Readonly<Record<string, Sentence>> = {
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
  TARGETING_CONTEXT_LIMIT_EXCEEDED: contextLimit,
  TARGETING_LOCKED: () => ({
    message: "an approved campaign that has not ended uses an option of this targeting; nothing was deleted",
    remedy: "End the campaign in the web console first.",
  }),
  PROJECT_NOT_FOUND: () => ({
    message: "the project of the key no longer exists",
    remedy: `Set TARGETING_API_KEY to a key of an existing project. ${WHERE_SET} Then: ${RESUME}`,
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
    remedy: `${RESUME} ${MORE_PATIENT}`,
  }),
  TARGETING_CATEGORY_NAME_DUPLICATE: (detail, reason) => taken("an option", detail, reason),
  TARGETING_NAME_DUPLICATE: (detail, reason) => taken("a targeting", detail, reason),
  UNCATCHED: () => ({
    message: "the service failed unexpectedly at this item, each time it was sent; it was not applied",
    remedy: "Try this item again later, or make the change in the web console.",
  }),
};
