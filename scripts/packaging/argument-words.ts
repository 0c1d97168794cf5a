import { EVENTS } from "../../src/spec/events.ts";

/**
 * The arguments of the tools in complete sentences, for docs/reference/tools.md. The list of tools has shorter texts,
 * because every agent reads it.
 */

/** Arguments that mean the same in several tools. */
export const SHARED_ARGUMENTS: Readonly<Record<string, string>> = {
  targetingId: "The ID of the targeting, a ULID (26 characters).",
  targetingName:
    "The name of the targeting, instead of `targetingId`. The server must have seen the targeting in an earlier call. " +
    "An exact match wins; otherwise case and outer spaces are ignored.",
  dryRun:
    "Plans the call and sends nothing. Except for events, the plan is stored for 24 hours, and `apply_plan` applies it.",
  confirmation:
    "The token of a `needs_confirmation` answer. Send it without other arguments, after a person has approved the change.",
  cursor: "The `cursor` of the last answer, to get the next page. Repeat all other arguments of that call.",
  encoding: "The encoding of the file's text, for example `utf-8` or `euc-kr`. Without it, the encoding is detected.",
  sheet: "The sheet of a workbook to read, by name or number. Default: the first visible sheet that has a header.",
  columns:
    'Which heading of the file holds which field, if the headings are not recognised, for example `{"name": "옵션명"}`.',
  fillDown: 'Columns in which a blank cell has the value of the cell above it, for example `["Group"]`.',
  separator:
    "The text between Context IDs that stand in one cell. Default: line breaks and `|`, or `;` if no cell has `|`.",
  delimiter: "The text between the cells of a `.csv` file that `saveTo` creates: `,`, `;` or `tab`.",
  onUnknown:
    "What happens to an event whose answer was lost, so that nobody knows whether it was recorded. `report`: it is not " +
    "sent again. `resend`: it is sent again, and may be recorded twice. Default: `report`.",
};

const OPTION_FIELDS =
  "`name`; `contexts`: the Context IDs of the option; `type`: `collection` for an option group, otherwise `atomic`; " +
  "`children`: new sub-options, which make the option a group; `exposeChildren`: whether a group shows its sub-options";

const EVENT_PARAMETER =
  "Parameters of the event. `list_event_types` says which event has which of them, and which are required.";

const PARAMETERS = Object.values(EVENTS).flatMap(({ parameters }) => Object.keys(parameters));

/** The other arguments, by tool and name. */
export const OWN_ARGUMENTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  get_targeting: {
    targetingName:
      "The name of a targeting that the server has seen in an earlier call, or a part of it. If only a part matches, the " +
      "answer lists the targetings that contain it.",
    summary: "Also counts the options, groups, sub-options, empty options and Context IDs.",
  },
  list_options: {
    parent: "The ID of a group: lists its sub-options instead of the top-level options.",
    all: "Lists the sub-options of every group, too.",
    search: "Finds options and sub-options whose name contains this text, in upper or lower case.",
    contextIds:
      "Finds options and sub-options that hold at least one of these Context IDs, and says which. At most 50.",
    contextId: "The same as `contextIds` with one entry.",
    empty: "Finds options and sub-options without Context IDs, and groups that have no sub-options either.",
    sortBy:
      "`contextCount`: most Context IDs first. `name`: in the order of their names. Both orders include sub-options.",
    limit: "The maximum number of options in one answer.",
    detail: "`detailed` also shows `exposeChildren`, the dates and the sub-options of each option.",
    fresh: "Reads everything from the service again and uses no Context IDs that the server has stored.",
    saveTo:
      "A new file, in an allowed folder, for all options that match: `.xlsx`, `.csv`, `.tsv`, `.ndjson`, `.yaml` or `.json`.",
  },
  get_option: {
    optionId: "The ID of the option, group or sub-option.",
    name: "The name of the option, instead of `optionId`. Needs `targetingId` or `targetingName`.",
    compareWith: "The ID or name of a second option. The answer shows which Context IDs only one of the two holds.",
    detail: "In a comparison, `detailed` also lists the Context IDs that both options hold.",
    limit: "The maximum number of Context IDs in one answer.",
    saveTo: "A new file, in an allowed folder, for all Context IDs: `.xlsx`, `.csv`, `.tsv` or `.ndjson`.",
  },
  create_targetings: {
    items: `The targetings to create, each with a \`name\` and perhaps \`options\`. The fields of an option: ${OPTION_FIELDS}.`,
  },
  rename_targetings: {
    items:
      "The targetings to rename: `_id`, or `currentName` if the server has seen the targeting before; `name`: the new name.",
  },
  delete_targeting: {
    ids: "The IDs of the targetings to delete, if there are several.",
    names: "The names of the targetings to delete, if there are several. The server must have seen them before.",
  },
  bulk_add_options: {
    items:
      `The options to add: ${OPTION_FIELDS}; \`parent\`: the ID of the group to add the option to; \`parentName\`: the name of ` +
      "that group, which may be a new group of the same call.",
    file: "A file of options to add, instead of `items`. [Files and columns](files.md) has the formats.",
    onExisting:
      "What happens to an option whose name exists already. `fail` (default): it fails. `skip`: the existing option stays " +
      "as it is. `addContexts`: the existing option gets the Context IDs.",
  },
  update_options: {
    items:
      "The options to change: `_id` or `currentName` (with the targeting); `name`: the new name; `parent`: the ID of the group to " +
      "move it to, or `null` to move it out of its group; `parentName`: the name of that group; `exposeChildren`: whether a group shows its sub-options.",
  },
  update_contexts: {
    items:
      "The options (`_id`, several `_ids`, or `name` or `names` with the targeting) and their changes. `add`, `remove`: " +
      "Context IDs to add or remove; `set`: Context IDs that replace the others; `addFrom`, `removeFrom`: IDs of options whose " +
      "Context IDs are added or removed; `addFile`, `removeFile`, `setFile`: a file with one Context ID a line.",
    removeEverywhere: "Context IDs to remove from every option of the targeting that holds them.",
    file: "A file of options and Context IDs, instead of `items`. [Files and columns](files.md) has the formats.",
  },
  delete_options: {
    ids: "The IDs of the options, groups and sub-options to delete.",
    names: "The names of the objects to delete, instead of `ids`. Needs `targetingId` or `targetingName`.",
    onlyEmpty:
      "With `ids` or `names`, skips options that hold Context IDs or sub-options. Without `ids` and `names`, " +
      "deletes every empty option of the targeting.",
  },
  plan_targeting: {
    file: "The desired state as a file: a [desired-state file](desired-state.md), as `list_options` with `saveTo` writes it, or an edited sheet.",
    desired:
      "The desired state itself, instead of `file`, with the fields of a [desired-state file](desired-state.md).",
    targetingId: "The ID of the targeting to compare with, if the desired state does not name one.",
    targetingName: "The name of the targeting to compare with, instead of `targetingId`.",
    base: "The [base file](desired-state.md#the-base): the targeting as it was exported. Default: the base beside `file`.",
    prune: "Also deletes the options that are in the base and no longer in the desired state.",
    byName: "Matches options by name and ignores IDs, to apply the file of one targeting to another.",
    fresh: "Reads everything from the service again and uses no Context IDs that the server has stored.",
  },
  apply_plan: {
    runId: "The run ID of the plan or dry run to apply.",
    dryRun: "Only checks whether the plan can still be applied, and sends nothing.",
  },
  undo_run: { runId: "The ID of the run to undo." },
  get_run: {
    runId: "The ID of the run to show. Without it, the answer lists the recent runs.",
    status:
      "Lists only runs with this status. `partial`: some items succeeded and some did not. `unknown`: for some requests, it is not known " +
      "whether the service applied them. `interrupted`: the server stopped before the run ended. `planned`: a stored plan or " +
      "dry run. `needs_confirmation`: the run waits for approval.",
    tool: "Lists only runs of this tool.",
    targetingId: "Lists only runs of the targeting with this ID.",
    outcome:
      "Shows only the items of the run with this outcome. `alreadyDone`: nothing had to be changed. `notApplied`: the item was " +
      "not sent, or the service certainly did not apply it. `unknown`: it is not known whether the service applied it. `pending`: not sent yet.",
    includeInput: "Shows only the items that failed, were not applied, or have an unknown result, each with its input.",
    limit: "The maximum number of items or runs in one answer. Default: 20, or 50 items with includeInput.",
    saveTo: "A new file, in an allowed folder, for the sheet that was imported, with the result of each row.",
    waitMs: "How many milliseconds to wait for the end of the run, at most 25,000.",
  },
  resume_run: { runId: "The ID of the run to resume." },
  cancel_run: { runId: "The ID of the run to cancel." },
  list_event_types: {
    eventNames: "Shows only these events, with the types and limits of their parameters. At most 6.",
    eventName: "The same as `eventNames` with one entry.",
  },
  track_event: {
    uid: "The identifier of the user. The service stores only a hash of it, but it is sent as it is.",
    eventName: "The name of the event. `list_event_types` explains all 13.",
    platform: "Where the event happened: `web`, `android` or `ios`.",
    ...Object.fromEntries(PARAMETERS.map((name) => [name, EVENT_PARAMETER])),
    items: "The items of a purchase or checkout.",
    extra: "Parameters that are not in the list of the service, by name.",
  },
  track_events: {
    events:
      "The events in the order to send them. Each has `uid`, `eventName`, optionally `platform`, and its own parameters.",
    items: "The same as `events`.",
    file: "A file of events, instead of `events`. [Files and columns](files.md) has the formats.",
    autocorrect: "Corrects misspelt event and parameter names before sending, and reports each correction.",
  },
  generate_event_tests: {
    eventNames: "The events to test. Default: all.",
    kinds:
      "The kinds of test cases. `minimal`: only the required parameters. `full`: all parameters. `missing`: a required parameter is absent. `limit`: texts and lists at and above their limits. `type`: values of a wrong type. `unknown`: a parameter that no event has. `misspelt`: wrong spellings of names. `item`: errors inside of `items`. `sequence`: several events of one user. Default: all.",
    uid: "The `uid` of all test events.",
    seed: "A number that decides the values in the tests. The same seed gives the same tests.",
    format:
      "`json`: a suite for `run_event_tests`. `vitest`, `curl`: programs that test the service. `playwright`: one test of the " +
      "events that a web page sends.",
    saveTo: "A new file, in an allowed folder, for all tests in this format.",
  },
  run_event_tests: {
    suiteId: "The ID of a suite that `generate_event_tests` has made.",
    suite: 'The suite itself, as `generate_event_tests` returns it with `format: "json"`.',
    file: "A file with a suite of event tests, in an allowed folder.",
    target:
      "`sandbox`: a [sandbox](sandbox.md). `configured`: the event API of the settings; if it is live, test purchases count as " +
      "conversions.",
    saveTo: "A new file, in an allowed folder, for the report as JUnit XML.",
  },
  inspect_events: {
    uid: "Shows only the events of this user.",
    uids: "Shows only the events of these users, and checks each user separately. At most 50.",
    platform: "Shows only events of this platform.",
    eventName: "Shows only events of this name.",
    verdict: "Shows only events that the service recorded, dropped (`ignored`) or rejected.",
    since: "Shows only events that arrived at or after this time: ISO 8601, or milliseconds since 1970.",
    limit: "The maximum number of events in one answer. The newest ones are shown.",
    expect:
      "Events that must have arrived. `eventName`: their name; `where`: values of parameters, and only events with all of " +
      "these values count; `count`: how many must have arrived, by default at least one; `verdict`: the result " +
      "that they must have, by default `recorded` for all of them.",
    inOrder: "Also checks that the events of `expect` arrived in this order.",
    withinMs: "Also checks that all events of `expect` arrived within this many milliseconds of the first one.",
    coverage: "Counts how often each event and parameter arrived, instead of listing the events.",
  },
};
