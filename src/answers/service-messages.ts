import * as z from "zod";
import type { Reason } from "../runs/outcome.ts";
import { LIMITS } from "../spec/limits.ts";
import { quoteUntrusted } from "./fence.ts";
import {
  aboutEarlier,
  type Detail,
  type Entry,
  list,
  MORE_PATIENT,
  many,
  number,
  onPage,
  resuming,
  type Sentence,
  type Text,
  text,
  texts,
  there,
  WHERE_SET,
} from "./message-words.ts";

const conflict = z.looseObject({
  value: z.string().optional(),
  collection: z.looseObject({ _id: z.string().optional(), name: z.string().optional() }).optional(),
  targeting: z.looseObject({ _id: z.string().optional(), name: z.string().optional() }).optional(),
});

function conflictWords(detail: Detail): string {
  const conflicts = z.array(conflict).safeParse(detail.conflicts).data ?? [];
  const words = conflicts.slice(0, 3).map(({ value, collection, targeting }) => {
    const group = collection?.name ?? collection?._id;
    const holder = group === undefined ? "another group of the same call" : `group ${quoteUntrusted(group)}`;
    const where = targeting?.name ?? targeting?._id;
    return `${text(value)} in ${holder}${where === undefined ? "" : ` of targeting ${quoteUntrusted(where)}`}`;
  });
  const more = conflicts.length > 3 ? ` and ${conflicts.length - 3} more` : "";
  return words.length === 0 ? "" : `: ${words.join("; ")}${more}`;
}

/** The remedies if a name is already taken, by kind of object and operation. */
const TAKEN_REMEDIES: Readonly<Record<string, Text>> = {
  "an option, addOptions": texts(
    'Choose another name, or call bulk_add_options with onExisting "skip" or "addContexts".',
    "Choose another name, or ask the agent to skip the options that exist, or to add the Context IDs to them.",
  ),
  "a targeting, createTargetings": "Choose another name, or work with the existing targeting.",
  "an option, updateOptions": texts(
    "Choose another name, or free this one first: rename the other option with update_options, or delete it.",
    "Choose another name, or free this one first: rename or delete the other option.",
  ),
  "a targeting, renameTargetings": texts(
    "Choose another name, or first rename the other targeting with rename_targetings.",
    "Choose another name, or rename the other targeting first.",
  ),
};

function nameTaken(what: string, detail: Detail, { operation }: Reason): Entry {
  if (typeof detail.duplicateOfIndex === "number") {
    return {
      message: aboutEarlier(detail, (item) => `${item} of the same call has this name`),
      remedy: "Give each item its own name.",
    };
  }
  const ids = [detail.existingId, ...(Array.isArray(detail.existingIds) ? detail.existingIds : [])].filter(Boolean);
  if (typeof detail.freedByIndex === "number") {
    const item = `item ${detail.freedByIndex + 1}`;
    return {
      message: `${what} with this name exists: the name would have become free, but ${item} failed`,
      remedy: `Fix ${item}, and make this change again as a whole.`,
    };
  }
  if (ids.length > 0) {
    return {
      message: onPage(`${what} with this name exists`, `${what} with this name exists: ${list(ids)}`),
      remedy: TAKEN_REMEDIES[`${what}, ${operation}`] ?? "Choose another name.",
    };
  }
  return {
    message: `the name is taken${what === "a targeting" ? ", perhaps by an audience targeting, which this API cannot show" : ""}`,
    remedy: "Choose another name.",
  };
}

const MOST = {
  option: number(LIMITS.optionContextIds.value),
  project: number(LIMITS.projectContextIds.value),
} as const;

/**
 * Returns the message for the code that the service uses for three different limits (management-api 8.1). A new option
 * with few Context IDs can only have exceeded the project's limit.
 */
function contextLimit(detail: Detail, { operation, sent = [] }: Reason): Entry {
  const own = detail.contextIds;
  const isNew = operation === "addOptions" || operation === "createTargetings";
  const isFarBelow = typeof own === "number" && own * LIMITS.contextIdBytes.value <= LIMITS.optionContextBytes.value;
  const comes =
    typeof own === "number" && !sent.includes("onlyLoss") ? `; the item has ${many(own, "Context ID")}` : "";
  const known = there(detail, detail.limit === LIMITS.optionContextIds.value ? "the option" : "this targeting");
  if (isNew && isFarBelow && own <= LIMITS.optionContextIds.value) {
    return {
      message: `the project would hold more than ${MOST.project} Context IDs over all its targetings${comes}${known}`,
      remedy: texts(
        "The item itself is valid. Remove Context IDs elsewhere in the project with update_contexts, or leave the item out.",
        "The item itself is valid. Remove Context IDs elsewhere in the project, or leave the item out.",
      ),
    };
  }
  return {
    message:
      `the option would hold more than ${MOST.option} Context IDs or 8 MB of them, ` +
      `or the project more than ${MOST.project}${comes}${known}`,
    remedy: texts(
      "The item itself is valid. Give fewer Context IDs, or remove others with update_contexts; list_options shows the counts.",
      "The item itself is valid. Give fewer Context IDs, or remove others first. The web console shows the counts.",
    ),
  };
}

/**
 * Returns the message for an option that does not exist. The service uses the same code if the option's new group does
 * not exist. Only a dry run knows which is meant (`noGroup`).
 */
function missingOption(operation: Reason["operation"], sent: Reason["sent"] = []): string {
  if (operation === "addOptions") return "parent is not an option of this targeting";
  if (sent.includes("noGroup")) return "the group that it was to be moved to is not an option of this targeting";
  const missing = "no context targeting of the project has an option with this ID";
  return operation === "updateOptions"
    ? `${missing}, or the option was to be moved to a group that does not exist`
    : missing;
}

/** The messages, by code of the service (management-api 7). */
export const SERVICE_SENTENCES: Readonly<Record<string, Sentence>> = {
  AD_PRODUCT_TARGETING_POLICY_LIMIT_EXCEEDED: (detail) => ({
    message:
      `ad products ${list(detail.products)} would have ${number(detail.count)} options set as Required Include or ` +
      `Required Exclude; at most ${number(detail.limit, LIMITS.productRequiredOptions.value)} are allowed`,
    remedy: "Take required options off these ad products in the web console first.",
  }),
  TARGETING_CATEGORY_LIMIT_EXCEEDED: (detail) => ({
    message:
      `targeting ${list([detail.targeting])} would have more than ` +
      `${number(detail.limit, LIMITS.targetingOptions.value)} options, sub-options included${there(detail)}`,
    remedy: texts(
      "Delete options that are not needed with delete_options, or use another targeting.",
      "Delete options that are not needed, or use another targeting.",
    ),
  }),
  TARGETING_CATEGORY_LOCKED: {
    message:
      "an ad product requires this option, or a campaign that has not ended uses it, so it cannot move into a group",
    remedy: texts(
      "End the campaign or change the ad product in the web console first, or add a new option to the group with bulk_add_options and parent.",
      "End the campaign or change the ad product in the web console first, or add a new option to the group.",
    ),
  },
  TARGETING_CATEGORY_NOT_SUPPORTED: ({ group }, reason) =>
    typeof group === "string" ? leavesEmpty(group, reason) : notSupported(reason),
  TARGETING_CATEGORY_TREE_ITEMS_LIMIT_EXCEEDED: (detail) => ({
    message: `a request named ${number(detail.count)} groups and sub-options; at most ${number(detail.limit, 150)} are allowed`,
    remedy: texts(
      "Call delete_options again for those that were not deleted.",
      "Ask the agent to delete those that remain.",
    ),
  }),
  TARGETING_COLLECTION_CONTEXT_DUPLICATED: (detail) => ({
    message: `another option group already holds some of the Context IDs${conflictWords(detail)}`,
    remedy: texts(
      "Remove them from the other group with update_contexts, or leave them out here: two groups cannot hold the same Context ID. " +
        "To swap Context IDs between groups: remove them in one call, then add them in another.",
      "Remove them from the other group, or leave them out here: two groups cannot hold the same Context ID. " +
        "To swap Context IDs between groups, remove them first, and add them in another change.",
    ),
  }),
  TARGETING_CONTEXT_LIMIT_EXCEEDED: contextLimit,
  TARGETING_LOCKED: {
    message: "an approved campaign that has not ended uses an option of this targeting; nothing was deleted",
    remedy: "End the campaign in the web console first.",
  },
  PROJECT_NOT_FOUND: {
    message: "the project of the key no longer exists",
    remedy: resuming((_, then) => `Set TARGETING_API_KEY to a key of an existing project. ${WHERE_SET} ${then}`),
  },
  TARGETING_CATEGORY_NOT_FOUND: (_, { operation, sent }) => ({
    message: missingOption(operation, sent),
    remedy: texts(
      "Check the ID with list_options. This API cannot reach options of audience targetings.",
      "Check the ID in the web console. This API cannot reach options of audience targetings.",
    ),
  }),
  TARGETING_NOT_FOUND: {
    message: "the project of the API key has no context targeting with this ID",
    remedy: "Check the ID. This key cannot reach audience targetings or the targetings of other projects.",
  },
  CONTEXT_TARGETING_WRITE_IN_PROGRESS: {
    message: "other writes kept the project locked until the last retry",
    remedy: resuming((resume) => `${resume} ${MORE_PATIENT}`),
  },
  TARGETING_CATEGORY_NAME_DUPLICATE: (detail, reason) => nameTaken("an option", detail, reason),
  TARGETING_NAME_DUPLICATE: (detail, reason) => nameTaken("a targeting", detail, reason),
  UNCATCHED: {
    message: "the service failed each time this item was sent; the item was not applied",
    remedy: "Try this item again later, or make the change in the web console.",
  },
};

/** Returns the message for an unsupported change (management-api 7.4). Case 8 is in `request-messages.ts`. */
function notSupported({ operation, sent = [] }: Reason): Entry {
  if (operation === "deleteOptions") return LAST_SUB_OPTION;
  if (operation === "addOptions" || operation === "createTargetings") {
    return sent.includes("parent") ? NO_GROUP_AS_PARENT : FIELDS_OF_ANOTHER_TYPE;
  }
  const about = UPDATES_NOT_SUPPORTED.find(({ fields }) => fields.every((field) => sent.includes(field)));
  return about?.words ?? STORED_UNCHANGEABLE;
}

/** Returns the message for a deletion or move that the service rejects because it would leave `group` empty. */
function leavesEmpty(group: string, { operation }: Reason): Entry {
  return {
    message: `the option is the last sub-option of ${quoteUntrusted(group)}, a group without Context IDs of its own (API document 7.4, case 6)`,
    remedy:
      operation === "deleteOptions"
        ? LAST_SUB_OPTION.remedy
        : "First give this group Context IDs or another sub-option.",
  };
}

const LAST_SUB_OPTION: Entry = {
  message: "the option is the last sub-option of a group that has no Context IDs of its own (API document 7.4, case 6)",
  remedy: "Delete the group too, in the same call, or give the group Context IDs first.",
};
const NO_GROUP_AS_PARENT: Entry = {
  message: "parent is not a top-level option group (API document 7.4, case 4)",
  remedy: texts(
    "Give the ID of an option of type collection: list_options shows them.",
    "Give an option group as parent.",
  ),
};
const FIELDS_OF_ANOTHER_TYPE: Entry = {
  message: "the option's fields conflict with its type or with the rules of groups (API document 7.4, cases 1 to 3)",
  remedy: "A group needs sub-options or Context IDs; a regular option has no children and no exposeChildren.",
};
const STORED_UNCHANGEABLE: Entry = {
  message:
    "the option is stored in a form that the API cannot change, such as a group inside a group (API document 7.4, case 9)",
  remedy: "Change it in the web console.",
};

const BAD_TARGET: Entry = {
  message: "the option cannot be moved: the target is not a top-level option group (API document 7.4, case 4)",
  remedy: texts(
    "Give the ID of an option of type collection: list_options shows them.",
    "Choose an option group as the target.",
  ),
};

const LAST_OF_GROUP: Entry = {
  message:
    "the option cannot be taken out of its group, because it is the last sub-option of a group without Context IDs of its own (API document 7.4, case 6)",
  remedy: "First give this group Context IDs or another sub-option.",
};

/**
 * Why the service can reject an update. `fields`: fields of the update and facts about its option, as in `sent` of the
 * reason. The first entry whose `fields` are all in `sent` is used.
 */
const UPDATES_NOT_SUPPORTED: readonly { readonly fields: readonly string[]; readonly words: Entry }[] = [
  {
    fields: ["parent", "group"],
    words: {
      message: "the option is a group, and a group cannot be moved into another group (API document 7.4, case 5)",
      remedy: "Leave out parent. To combine the groups, move each sub-option of this one.",
    },
  },
  {
    fields: ["detach", "group"],
    words: {
      message: "the option is a group, and a group is always at the top level (API document 7.4, case 5)",
      remedy: "Leave out parent.",
    },
  },
  { fields: ["parent", "topLevel"], words: BAD_TARGET },
  { fields: ["detach", "subOption"], words: LAST_OF_GROUP },
  {
    fields: ["parent", "subOption"],
    words: {
      message:
        "the option cannot be moved: the target is not a top-level option group (API document 7.4, case 4), or the option " +
        "is the last sub-option of a group without Context IDs of its own (case 6)",
      remedy: texts(
        "Look at the target with get_option. If it is a top-level group, first add a Context ID or sub-option to the option's group.",
        "Look at the target in the web console. If it is a top-level group, first add a Context ID or sub-option to the option's group.",
      ),
    },
  },
  {
    fields: ["parent", "exposeChildren"],
    words: {
      message: "a group cannot be moved (API document 7.4, case 5), and only a group has exposeChildren (case 2)",
      remedy: "Leave out parent for a group, and exposeChildren for any other option.",
    },
  },
  {
    fields: ["parent"],
    words: {
      message:
        "the option cannot be moved: the target is not a top-level option group (API document 7.4, case 4), the option is a group itself (case 5), " +
        "or the last sub-option of a group without Context IDs of its own (case 6)",
      remedy: texts(
        "Look at the option and the target with get_option. If the option is a last sub-option, first add a Context ID or sub-option to the option's group.",
        "Look at the option and the target in the web console. If the option is a last sub-option, first add a Context ID or sub-option to the option's group.",
      ),
    },
  },
  {
    fields: ["detach"],
    words: {
      message:
        "the option cannot be taken out of its group: it is a group itself (API document 7.4, case 5), or the last sub-option of a group without " +
        "Context IDs of its own (case 6)",
      remedy:
        "For a group, leave parent out. For the last sub-option, first give its group Context IDs or another sub-option.",
    },
  },
  {
    fields: ["exposeChildren"],
    words: {
      message: "exposeChildren is a setting of option groups, and this is a regular option (API document 7.4, case 2)",
      remedy: "Leave exposeChildren out.",
    },
  },
  {
    fields: ["onlyLoss"],
    words: {
      message: "the group has no sub-options and would lose its last Context ID (API document 7.4, case 7)",
      remedy: texts(
        "Keep one Context ID, add a sub-option first, or delete the group with delete_options.",
        "Keep one Context ID, add a sub-option first, or delete the group.",
      ),
    },
  },
];
