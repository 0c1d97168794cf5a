/** The skills by name. Made from the files of `skills/` by `npm run docs`. */
export const SKILL_TEXTS: Readonly<Record<string, string>> = {
  "clean-up-safely": `---
name: clean-up-safely
description: Cleans up a targeting without losing anything - empty options, doubled names, options in the wrong group. Use it when a person wants a targeting tidied, merged or shortened.
---

# Clean up safely

1. Look first, change nothing: \`list_options\` with \`all: true\`, once more with \`empty: true\`, and with \`sortBy: "name"\`, which shows names that differ in case or spelling only. Go through every page.
2. Save what is there: \`list_options\` with \`saveTo\`, where a folder is allowed. This file can be imported again.
3. Make a list for the person: what would be renamed, moved, merged and deleted, and why. Compare two options that look alike with \`get_option\` and \`compareWith\`. Wait for a yes to the list.
4. Merge in this order: \`update_contexts\` with \`addFrom\` on the option that stays; look at its count; only then delete the other one. Ask which option campaigns refer to: that one stays, with its ID.
5. Rename and move with \`update_options\`, as many as possible in one call, each first with \`dryRun: true\`.
6. Delete last, with \`delete_options\` and \`onlyEmpty: true\` where only empty ones are meant. The person is asked with the exact effect. Never answer that question for the person, and never use a token that the person did not agree to.
7. Report every change with its run. What was deleted is kept at \`targeting://runs/{id}/removed\`.
`,
  "spreadsheet-to-targetings": `---
name: spreadsheet-to-targetings
description: Turns a spreadsheet or a list into options of a targeting, with groups and Context IDs, as a plan that a person reviews before it is applied. Use it when a person has a table of products, brands or categories and wants them as options.
---

# Spreadsheet to targetings

1. Read the table. Say which column is the name, which one the Context ID, and which one the group. Ask where that is not plain. Long numbers are texts: \`1.23E+15\` has lost its digits, and has to be taken from the source again.
2. Export: find the targeting with \`get_targeting\`, by its name, and save it with \`list_options\` and \`saveTo\`, as \`.yaml\`, or as \`.json\` for more than 5,000 options. Its base lies beside the file then. Where there is no targeting yet, begin a file with \`version: 1\` and \`targeting: {name: …}\`: the plan creates it. Where no folder is allowed, give \`plan_targeting\` the state itself as \`desired\`.
3. Edit the file: a row of the table is an option with \`name\` and \`contexts\` (exactly these) or \`contextsAtLeast\` (these among others); sub-options stand in the \`children\` of their group. Leave each \`_id\` as it is: the same \`_id\` with another name is a rename. An option that is not named stays as it is.
4. Plan: \`plan_targeting\` with \`file\`. It sends nothing. Mend problems at the lines that it names, and change no name without asking. A conflict is for the person: tell both values. Add \`prune: true\` only where the person said that what is gone from the table is to be deleted.
5. Review: show the person how many options are created, renamed, moved, changed and deleted, with the first names, what others changed since the export, and which limits would be met. Wait for a yes to exactly this.
6. Apply: \`apply_plan\` with the plan's \`runId\`. Where it says that something changed since, plan again and show it again. \`running\`: go on with \`get_run\` and \`waitMs\`. \`unknown\` or \`interrupted\`: \`resume_run\`; never send everything anew.
7. Report what was done, what failed and why, in the words of the answer. Undo: \`undo_run\` with that \`runId\` plans the way back; show what comes back exactly and what does not, then \`apply_plan\` with its own \`runId\`.

For a table of many new options alone, \`bulk_add_options\` with \`file\` (columns \`name\`, \`contextId\` or \`contexts\`, \`parentName\`) and first \`dryRun: true\` does as well.
`,
  "test-my-tracking": `---
name: test-my-tracking
description: Tests whether an app or web page sends its events right, against a sandbox, and writes tests for its repository. Use it when tracking is built, changed or released.
---

# Test my tracking

1. Ask which events the app should send, and in which order. \`list_event_types\` says what each needs.
2. Make the app send to the sandbox: its address in place of the service's, with a sandbox key. \`targeting-mcp sandbox\` starts one; \`TARGETING_MCP_SANDBOX_URL\` lets this server look at it.
3. Let the person use the app once, with a \`uid\` that is known. Then call \`inspect_events\` with that \`uid\` and \`expect\`: each event with \`where\` for the values that matter, and \`inOrder: true\` where the order counts.
4. Explain each expectation that is not met: not sent, sent under another name, ignored because a parameter was missing, or refused. Say what the app has to send.
5. Make tests with \`generate_event_tests\` (\`format\`: \`vitest\`, \`playwright\` or \`curl\`), saved with \`saveTo\` where a folder is allowed. Run them with \`run_event_tests\` against the sandbox, never against the live service unless the person asked for it: purchases count as conversions there.
6. Report what was tested, what passed, and what no test has touched yet: \`coverage\` of \`inspect_events\` lists it.
`,
  "why-conversions-are-missing": `---
name: why-conversions-are-missing
description: Finds out why conversions or events of an app do not count, and what the app would have to send. Use it when purchases, sign-ups or other events do not show up.
---

# Why are my conversions missing

1. Ask which event, which app or platform, and since when. The service answers \`ok\` also to events that it throws away: an \`ok\` in the log of the app proves nothing.
2. Where the app sends to a sandbox: \`inspect_events\` with the \`platform\`, the \`eventName\` or the \`uid\`, and \`verdict: "ignored"\`; then with \`verdict: "rejected"\`. Names that are spelt differently stand under the name that was sent: look without \`eventName\`, too.
3. Where the app sends to the live service, nothing can be seen from here. Ask for one request body out of its log, and call \`track_event\` with it and \`dryRun: true\`, which says what the service would make of it. It is not sent.
4. Read the rules of the event with \`list_event_types\`. Tell for each finding: what was sent, which rule it breaks, and what to send in its place.
5. Events that were lost can be sent later with \`track_events\`, but they count when they arrive: the service takes no time of its own. Ask before sending any, and send each once. An outcome \`unknown\` may have arrived.
6. Report: how many events were recorded, ignored and refused, by cause, and the change in the app for each cause.
`,
};
