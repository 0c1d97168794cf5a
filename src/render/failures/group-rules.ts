import type { Reason } from "../../runs/outcome.ts";
import type { Message } from "../message.ts";

/** The cases of management-api 7.4, told apart by what was sent. Case 8 is one of reading: `request-failures.ts`. */
export function notSupported({ operation, sent = [] }: Reason): Message {
  if (operation === "deleteOptions") return LAST_SUB_OPTION;
  if (operation === "addOptions" || operation === "createTargetings") {
    return sent.includes("parent") ? NO_GROUP_AS_PARENT : FIELDS_OF_ANOTHER_TYPE;
  }
  const about = UPDATES_NOT_SUPPORTED.find(({ fields }) => fields.every((field) => sent.includes(field)));
  return about?.words ?? STORED_UNCHANGEABLE;
}

const LAST_SUB_OPTION: Message = {
  message: "it is the last sub-option of a group that has no Context IDs of its own (7.4 case 6)",
  remedy: "Delete the group too, in the same call, or give the group Context IDs first.",
};
const NO_GROUP_AS_PARENT: Message = {
  message: "parent is not a top-level option group (7.4 case 4)",
  remedy: "Give the ID of an option of type collection: list_options shows them.",
};
const FIELDS_OF_ANOTHER_TYPE: Message = {
  message: "the option's fields conflict with its type or with the rules of groups (7.4 cases 1 to 3)",
  remedy: "A group needs sub-options or Context IDs; a regular option has no children and no exposeChildren.",
};
const STORED_UNCHANGEABLE: Message = {
  message: "the option is stored in a form that the API cannot change, such as a group inside a group (7.4 case 9)",
  remedy: "Change it in the web console.",
};

/** What a refused update may have meant: the first whose fields were all sent. */
const UPDATES_NOT_SUPPORTED: readonly { readonly fields: readonly string[]; readonly words: Message }[] = [
  {
    fields: ["parent", "exposeChildren"],
    words: {
      message: "a group cannot be moved (7.4 case 5), and only a group has exposeChildren (case 2)",
      remedy: "Leave out parent for a group, and exposeChildren for any other option.",
    },
  },
  {
    fields: ["parent"],
    words: {
      message:
        "it cannot be moved: the target is not a top-level option group (7.4 case 4), it is a group itself (case 5), " +
        "or it is the last sub-option of a group without Context IDs of its own (case 6)",
      remedy: "Look at both with get_option; give the old group Context IDs, or another sub-option, before.",
    },
  },
  {
    fields: ["detach"],
    words: {
      message:
        "it cannot be taken out: it is a group itself (7.4 case 5), or the last sub-option of a group without " +
        "Context IDs of its own (case 6)",
      remedy: "Leave parent out for a group; else give its group Context IDs, or another sub-option, before.",
    },
  },
  {
    fields: ["exposeChildren"],
    words: {
      message: "exposeChildren is a setting of option groups, and this is a regular option (7.4 case 2)",
      remedy: "Leave exposeChildren out.",
    },
  },
  {
    fields: ["onlyLoss"],
    words: {
      message: "the group has no sub-options and would lose its last Context ID (7.4 case 7)",
      remedy: "Leave it one Context ID, add a sub-option first, or delete the group with delete_options.",
    },
  },
];
