/** One rule of the service, written by hand from the documents. */
export interface Rule {
  /** Name by which the test that holds the rule refers to it. */
  readonly id: string;
  /** Section of the management API document; with "event", of the event document. */
  readonly section: string;
  /** Whether the documents say it, or the page of assumptions does where they are silent. */
  readonly basis: "documented" | "assumed";
  readonly says: string;
}

const documented = (id: string, section: string, says: string): Rule => ({ id, section, basis: "documented", says });
const assumed = (id: string, section: string, says: string): Rule => ({ id, section, basis: "assumed", says });

/** Every rule that the sandbox keeps. A rule without a test fails the build. */
export const RULES: readonly Rule[] = [
  // 1 and 2: what there is, and its fields
  documented("audience-unreachable", "1", "Audience targetings and their options are 404"),
  documented("server-ids", "2.1", "The server makes every `_id`, a ULID; sending one in a create is a 400"),
  documented(
    "option-record",
    "2.1",
    "An option record has `_id`, `name`, `type`, `contextCount`, `createdAt`, `updatedAt`",
  ),
  assumed("targeting-record", "2", "A targeting record has `_id`, `name`, `optionCount` and both times"),
  assumed(
    "group-record",
    "2.1",
    "A group's record has `exposeChildren`, `children` and `childCount`; a sub-option's `parent`",
  ),
  documented("children-shown", "8.1", "`children` shows the first 50 sub-options, `childCount` counts all"),
  documented(
    "validation-body",
    "2.2",
    "A validation error lists every problem in `message`, with `error` and `statusCode`, without `errorCode`",
  ),
  documented(
    "validation-sentence",
    "2.2",
    "A bad ID in the path, or a body that is not JSON, gives one sentence in `message`",
  ),
  documented(
    "business-body",
    "2.2",
    "A business error has `statusCode` and `errorCode`; `timestamp`, where present, is ISO 8601 with offset",
  ),
  documented(
    "server-error-body",
    "2.2",
    "A server error has `message`, `statusCode` and `error`; 401, 403 and 413 have `message` and `statusCode`",
  ),
  documented("bulk-body", "2.3", "A bulk response has one result per item, in request order, and both counts"),
  documented("delete-data", "2.3", "A deleted item's `data` is its `_id` alone"),

  // 4: endpoints
  documented("processed-is-200", "4 rule 2", "A processed bulk request is HTTP 200 even when every item fails"),
  documented("whole-400", "4 rule 3", "A validation error fails the whole request and applies nothing"),
  documented("repeated-id", "4 rule 3", "The same `_id` twice in an option bulk update is a 400"),
  documented(
    "single-error",
    "4 rule 5",
    "A single-item endpoint answers its item's error, and 502 when the item fails unexpectedly",
  ),
  assumed("single-routes", "4", "The single-item endpoints do what their bulk requests do"),
  assumed("unknown-route", "4", "An unknown path is 404 and a wrong method 405, both without `errorCode`"),
  assumed(
    "list-pages",
    "4",
    "List Options gives the top level in creation order, by `limit` and `offset`, with `total`",
  ),
  assumed("list-parent", "4", "List Options with `parent` gives the sub-options of that group"),
  assumed("get-option-pages", "4", "Get an Option gives one page of Context IDs"),
  assumed("several-targetings", "4", "One add request may carry options of several targetings"),
  assumed("unknown-query", "4", "An unknown query parameter is a 400"),

  // 4.1: units and single items
  documented("unit-partial", "4.1", "Create, delete and add: failing items fail alone, the others are applied"),
  documented(
    "unit-uncatched",
    "4.1",
    "Create, delete and add: an unexpected error applies nothing, and failed items keep their errors",
  ),
  documented("item-by-item", "4.1", "Rename and update: a failed item does not affect the others"),
  documented("item-uncatched", "4.1", "Update: only the item that meets an unexpected error fails"),
  documented("freed-name", "4.1", "A later item may take a name that an earlier item frees by renaming"),
  documented("freed-name-lost", "4.1", "If the earlier item fails, the later one is a duplicate"),
  assumed("name-not-yet-free", "4.1", "An earlier item cannot take a name that a later one frees"),
  documented(
    "add-before-remove",
    "4.1",
    "An update that fails with both `add` and `remove` may have its `add` applied",
  ),
  assumed(
    "context-not-yet-free",
    "4.1",
    "A Context ID that leaves a group is free in the next request, not in the same one",
  ),
  assumed(
    "room-not-yet-free",
    "4.1",
    "Room that one item frees under a limit is free in the next request, not in the same one",
  ),
  assumed(
    "arrival-not-yet-there",
    "4.1",
    "A sub-option that arrives in the same request does not let the last one leave",
  ),

  // 4.2: the write lock
  documented(
    "writes-one-by-one",
    "4.2 rule 1",
    "Writes of a project are processed one at a time; reads and other projects go on",
  ),
  documented("lock-wait", "4.2 rule 2", "A write waits briefly for the running one"),
  documented(
    "lock-409",
    "4.2 rule 2",
    "After that it is 409 as a whole, with `retryAfterMs` of 0 to 2,000, and nothing is applied",
  ),
  documented(
    "takeover",
    "4.2 rule 3",
    "A write taken over: its items not yet applied fail with the same 409 inside `results`",
  ),
  documented("console-edits", "4.2 rule 4", "Console edits neither wait nor cause a 409, and can make duplicate names"),
  documented("identical-creates", "4.2 rule 5", "Two identical creates at the same time do not both create"),

  // 4.3: sending again
  documented(
    "resend-create",
    "4.3",
    "A create sent again: each item made before is a duplicate with the existing ID, others proceed",
  ),
  documented(
    "resend-add",
    "4.3",
    "An add sent again: each item made before is a duplicate with the existing IDs, others proceed",
  ),
  documented("resend-rename", "4.3", "A rename sent again gives the same result"),
  documented("resend-contexts", "4.3", "`add`, `remove` and `set` sent again give the same result"),
  documented("resend-move", "4.3", "A move or detach sent again gives the same result"),
  documented("resend-expose", "4.3", "`exposeChildren` sent again gives the same result"),
  documented("resend-delete", "4.3", "A delete sent again is 404 with the code of the kind"),

  // 5: keys
  documented("key-401", "5", "A missing, wrong or revoked key is 401"),
  documented("key-403", "5", "A key without the scope of the method is 403"),
  documented("project-gone", "5", "A key of a project that no longer exists gives 404 PROJECT_NOT_FOUND"),
  documented("key-project", "5", "A key opens its own project and no other"),

  // 7: errors
  documented("unknown-field", "7.1", "An unknown field is a 400"),
  documented("body-413", "7.1", "A body over 8 MB is 413, and nothing is applied"),
  assumed("body-8-mib", "8.1", "8 MB are 8 × 1,048,576 bytes"),
  documented(
    "product-limit-add",
    "7.2",
    "Past 500 required options of an ad product, every new top-level option of the targeting fails",
  ),
  documented(
    "product-limit-detach",
    "7.2",
    "A detached sub-option takes over its group's required settings, up to the limit",
  ),
  documented(
    "product-limit-delete",
    "7.2",
    "Sub-options of a deleted group take over its required settings, up to the limit",
  ),
  documented(
    "option-locked",
    "7.2",
    "A top-level option in use by an ad product or a running campaign cannot move into a group",
  ),
  documented(
    "tree-items",
    "7.2",
    "A delete of more than 150 groups and sub-options is refused whole, with `limit` and `count`",
  ),
  documented(
    "own-context",
    "7.2",
    "An own Context ID of one group cannot be added to another; options and sub-options may share",
  ),
  documented("own-context-in-request", "7.2", "Own Context IDs of groups of the same request count too"),
  documented("conflicts-shown", "7.3", "`conflicts` has up to 20 entries with `value`, `collection` and `targeting`"),
  documented("targeting-locked", "7.2", "A targeting in an approved campaign that has not ended cannot be deleted"),
  documented(
    "option-404",
    "7.2",
    "A missing option, or a `parent` of another targeting, is 404 TARGETING_CATEGORY_NOT_FOUND",
  ),
  documented("targeting-404", "7.2", "A missing targeting, or one of another project, is 404 TARGETING_NOT_FOUND"),
  documented(
    "duplicate-of-index",
    "7.3",
    "A name repeated within a request yields `duplicateOfIndex`, the item's own index where it repeats itself",
  ),
  documented("rename-repeated", "7.3", "A name repeated in a targeting rename yields `existingId`"),
  documented("audience-name", "4.3", "A name that an audience targeting holds is a duplicate without `existingId`"),

  // 7.4: groups
  documented("group-1", "7.4 case 1", "A group needs sub-options or own Context IDs"),
  documented(
    "group-2",
    "7.4 case 2",
    "`children` with `type: atomic`, or `exposeChildren` for a regular option, is refused",
  ),
  documented(
    "group-3",
    "7.4 case 3",
    "On add, `parent` with `type: collection`, `children` or `exposeChildren` is refused",
  ),
  documented("group-4", "7.4 case 4", "`parent` must be a top-level option group"),
  documented("group-5", "7.4 case 5", "Groups cannot be moved"),
  documented(
    "group-6",
    "7.4 case 6",
    "The last sub-option of a group without own Context IDs cannot leave by move, detach or delete",
  ),
  documented("group-7", "7.4 case 7", "A group without sub-options keeps at least one Context ID"),
  documented("group-8", "7.4 case 8", "List Options with a regular option as `parent` is refused"),
  documented("group-9", "7.4 case 9", "A group inside a group cannot be changed"),
  assumed(
    "group-deleted",
    "7.4",
    "Sub-options of a deleted group that the request does not name become top-level options",
  ),
  assumed("children-make-group", "2.1", "`children` without `type` makes a group"),

  // 8: limits and names
  documented("limit-targeting-items", "8.1", "Targeting bulk requests take 1 to 100 items"),
  documented("limit-targeting-options", "8.1", "A targeting create request takes 100 options, sub-options included"),
  documented("limit-option-items", "8.1", "Option bulk requests take 1 to 5,000 items"),
  documented("limit-add-options", "8.1", "An option add request takes 5,000 options, sub-options included"),
  documented("limit-group-items", "8.1", "Option add and update requests take 150 option-group items"),
  documented("limit-request-contexts", "8.1", "A request takes 10,000 Context IDs across `add`, `remove` and `set`"),
  documented("limit-context-length", "8.1", "A Context ID has 1 to 256 bytes of UTF-8 after trimming"),
  documented("limit-option-contexts", "8.1", "An option holds 50,000 Context IDs"),
  documented("limit-option-bytes", "8.1", "An option's Context IDs hold 8 MB"),
  documented("limit-project-contexts", "8.1", "A project holds 200,000 Context IDs"),
  documented(
    "limit-targeting-size",
    "8.1",
    "A targeting holds 100,000 options, and the error names targeting and limit",
  ),
  documented("limit-list", "8.1", "`limit` of List Options is 1 to 1,000, by default 1,000"),
  documented(
    "limit-get",
    "8.1",
    "`limit` of Get an Option is 1 to 10,000, by default 10,000; `offset` 0 to 50,000, by default 0",
  ),
  documented("only-increases", "8.2 rule 1", "Stored limits never block a reduction, even of data over the limit"),
  documented("name-length", "8.3", "Names have 2 to 36 characters"),
  assumed(
    "name-code-points",
    "8.3",
    "Names are counted in code points; Korean letters are the syllables and the compatibility letters",
  ),
  documented("name-characters", "8.3", "Names have Korean and English letters, digits, spaces and ~ % & + - alone"),
  documented("name-spaces", "8.3", "Spaces at the ends of a name are rejected, not trimmed"),
  documented(
    "name-scopes",
    "8.3",
    "Options in different targetings may share names; a targeting's groups and sub-options may not",
  ),
  assumed("name-case", "8.3", "Names differ by case"),
  assumed("set-alone", "2.1", "`set` beside `add` or `remove` is a 400"),

  // The event API
  documented("event-ok", "event 4 rule 1", "A supported event with its required parameters is 200 with `message` `ok`"),
  documented("event-unsupported", "event 7", "An unsupported event is ignored, with 200"),
  documented("event-missing", "event 7", "An event without a required parameter is ignored, with 200"),
  assumed("event-ignored-message", "event 7", "The `message` of an ignored event is `ok`"),
  documented(
    "event-items",
    "event 2.2",
    "`item_id` is required in every entry of `items` of begin_checkout and purchase",
  ),
  assumed("event-null", "event 2.2", "A required parameter that is null counts as missing"),
  assumed("event-without-items", "event 2.2", "begin_checkout and purchase without `items` are recorded"),
  assumed("event-invalid", "event 7", "What breaks the rules of 2.1 and 8 is `!invalid` with 400"),
  documented(
    "event-limits",
    "event 8",
    "eventName has 1 to 64 characters, `items` 100 entries, strings 1,024 characters",
  ),
  assumed("event-uncertain", "event 7", "What the document leaves open is recorded, with a finding"),
  assumed("event-unused", "event 2.2", "A parameter that the event does not define is recorded and unused"),
  assumed("event-401", "event 5", "A missing or wrong Authorization is 401"),
  documented("event-twice", "event 4 rule 3", "Nothing is said about deduplication: an event sent twice is kept twice"),
];
