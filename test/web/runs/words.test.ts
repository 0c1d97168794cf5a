import { describe, expect, test } from "vitest";
import * as z from "zod";
import { messageFor, type SummarizedFailure } from "../../../src/answers/failures.ts";
import { onPage, textFor } from "../../../src/answers/message-words.ts";
import type { WriteCall } from "../../../src/changes/call.ts";
import { agoWords, clockWords, dayWords, diffWords, durationWords } from "../../../src/web/app/plain-words.ts";
import { driftWords } from "../../../src/web/detail.ts";
import { failureRow, readerOf } from "../../../src/web/failure-rows.ts";
import { type TitleParts, titleOf } from "../../../src/web/titles.ts";
import { isTyped, textToType, undoOf, undoOfRun } from "../../../src/web/waiting.ts";
import { startService } from "../../changes/service.ts";

const PART: TitleParts = { tool: "bulk_add_options", status: "succeeded", items: 3000, done: 3000 };

const SAME = { renamed: 0, moved: 0, exposed: 0, extended: 0, added: 0, reduced: 0, removed: 0 };

const ONE_GROUP = { items: 1, created: 0, changed: 0, deleted: 1 };

describe("a run as a sentence", () => {
  const targeting = "Footwear KR";
  test.each<readonly [string, Partial<TitleParts>]>([
    ["Added 3,000 options to Footwear KR", {}],
    ["Add 3,000 options to Footwear KR", { status: "failed" }],
    ["Imported brands.csv into Footwear KR: 3,000 rows", { fileName: "brands.csv" }],
    [
      "Imported brands.csv into Footwear KR: 332 of 390 rows",
      { status: "partial", items: 390, done: 332, fileName: "brands.csv" },
    ],
    [
      "Imported brands.csv into Footwear KR: 332 of 390 options",
      { status: "partial", items: 390, done: 332, fileName: "brands.csv", mergesRows: true },
    ],
    [
      "Apply a plan to Footwear KR: add 1 option, rename 1 option, delete 1 group and 2 options",
      {
        ...{ tool: "apply_plan", status: "needs_confirmation" },
        ...{ plan: { isUndo: false, changes: { created: 1, changed: 1, deleted: 3 } }, how: { ...SAME, renamed: 1 } },
        groups: { items: 1, created: 0, changed: 0, deleted: 1 },
      },
    ],
    ["Delete 260 options from Footwear KR", { tool: "delete_options", status: "needs_confirmation", items: 260 }],
    [
      "Delete 1 group and 2 options from Footwear KR",
      { tool: "delete_options", status: "needs_confirmation", items: 3, deletes: "1 group and 2 options" },
    ],
    [
      "Deleted 1 group and 4 options from Footwear KR",
      { tool: "delete_options", items: 5, done: 5, groups: ONE_GROUP },
    ],
    [
      "Deleted 3 of 5 objects from Footwear KR",
      { tool: "delete_options", status: "partial", items: 5, done: 3, groups: ONE_GROUP },
    ],
    ["Added 1 group and 1 option to Footwear KR", { items: 2, done: 2, groups: ONE_GROUP }],
    [
      'Undid "Imported brands.csv into Winter Sale": 1 targeting and 2 options restored, 1 option changed',
      {
        tool: "undo_run",
        plan: {
          ...{ isUndo: true, of: "Imported brands.csv into Winter Sale" },
          changes: { created: 3, changed: 1, deleted: 0 },
        },
        targetings: { items: 1, created: 1, changed: 0, deleted: 0 },
      },
    ],
    [
      "Deleted group Clothing from Footwear KR",
      { tool: "delete_options", items: 1, only: "Clothing", groups: ONE_GROUP },
    ],
    ["Deleted Jeans from Footwear KR", { tool: "delete_options", items: 1, only: "Jeans" }],
    [
      "Delete group Clothing from Footwear KR",
      { tool: "delete_options", status: "needs_confirmation", items: 1, only: "Clothing", deletes: "group Clothing" },
    ],
    ["Changed the Context IDs of Jeans in Footwear KR", { tool: "update_contexts", items: 1, only: "Jeans" }],
    [
      "Apply a plan to Footwear KR: 2 options changed",
      {
        ...{ tool: "apply_plan", status: "interrupted", items: 9, done: 2, pending: 7, how: { ...SAME, renamed: 9 } },
        plan: { isUndo: false, changes: { created: 0, changed: 2, deleted: 0 } },
      },
    ],
    ["Renamed 25 options in Footwear KR", { tool: "update_options", items: 25, how: { ...SAME, renamed: 25 } }],
    [
      "Renamed 20 of 25 options in Footwear KR",
      { tool: "update_options", status: "partial", items: 25, done: 20, how: { ...SAME, renamed: 20 } },
    ],
    ["Change 25 options in Footwear KR", { tool: "update_options", status: "failed", items: 25 }],
    [
      "Renamed 2 options and moved 1 to Clothing in Footwear KR",
      { tool: "update_options", items: 3, how: { ...SAME, renamed: 2, moved: 1, into: "Clothing" } },
    ],
    [
      "Moved 1 group and 2 options to the top level in Footwear KR",
      {
        ...{ tool: "update_options", items: 3, how: { ...SAME, moved: 3, into: null } },
        groups: { items: 1, created: 0, changed: 1, deleted: 0 },
      },
    ],
    [
      "Renamed Boots to Shoes and moved it in Footwear KR",
      { tool: "update_options", items: 1, only: "Boots", to: "Shoes", how: { ...SAME, renamed: 1, moved: 1 } },
    ],
    [
      "Set 1 group to show or hide its sub-options in Footwear KR",
      { tool: "update_options", items: 1, how: { ...SAME, exposed: 1 } },
    ],
    [
      "Added 60 Context IDs to 60 options in Footwear KR",
      { tool: "update_contexts", items: 60, how: { ...SAME, extended: 60, added: 60 } },
    ],
    [
      "Added 2 Context IDs and removed 1 in Footwear KR",
      { tool: "update_contexts", items: 2, how: { ...SAME, extended: 1, added: 2, reduced: 1, removed: 1 } },
    ],
    [
      "Added 3 Context IDs to 2 options in Footwear KR: 2 of 3 options",
      { tool: "update_contexts", status: "partial", items: 3, done: 2, how: { ...SAME, extended: 2, added: 3 } },
    ],
    [
      "Added 2 Context IDs to Jeans and removed 1 from it in Footwear KR",
      {
        ...{ tool: "update_contexts", items: 1, only: "Jeans" },
        how: { ...SAME, extended: 1, added: 2, reduced: 1, removed: 1 },
      },
    ],
    [
      "Remove 180 Context IDs from 60 options in Footwear KR",
      {
        ...{ tool: "update_contexts", status: "needs_confirmation", items: 60 },
        how: { ...SAME, reduced: 60, removed: 180 },
      },
    ],
    [
      "Changed nothing in Footwear KR",
      { tool: "update_contexts", items: 60, did: { created: 0, changed: 0, deleted: 0 } },
    ],
    [
      "Added 10 of 12 options to Footwear KR and Context IDs to 2 that existed",
      { items: 12, done: 12, did: { created: 10, changed: 2, deleted: 0 } },
    ],
    ["Added Context IDs to 2 options in Footwear KR", { items: 2, did: { created: 0, changed: 2, deleted: 0 } }],
    ["Delete the targeting Winter Sale", { tool: "delete_targeting", status: "cancelled", only: "Winter Sale" }],
    [
      "Delete the targeting Winter Sale and its 333 options",
      { tool: "delete_targeting", status: "needs_confirmation", only: "Winter Sale", options: 333 },
    ],
    [
      "Delete the targeting Winter Sale with 1 group and 64 options",
      {
        ...{ tool: "delete_targeting", status: "needs_confirmation", only: "Winter Sale" },
        ...{ options: 65, groupsInside: 1 },
      },
    ],
    [
      "Created 3 of 4 targetings and their 20 options",
      { tool: "create_targetings", status: "partial", items: 4, done: 3, options: 20, targeting: undefined },
    ],
    [
      "Created 1 targeting and its 2 options",
      { tool: "create_targetings", items: 1, done: 1, options: 2, targeting: undefined },
    ],
    [
      'Undo "Imported brands.csv into Winter Sale": delete 9 options',
      {
        ...{ tool: "undo_run", status: "needs_confirmation" },
        plan: {
          ...{ isUndo: true, of: "Imported brands.csv into Winter Sale" },
          changes: { created: 0, changed: 0, deleted: 9 },
        },
      },
    ],
    [
      "Rename Winter 2025 to bad_name",
      { tool: "rename_targetings", status: "failed", only: "bad_name", targeting: "Winter 2025" },
    ],
    [
      "Rename a targeting to bad_name",
      { tool: "rename_targetings", status: "failed", only: "bad_name", targeting: undefined },
    ],
    ["Renamed Winter 2025 to Winter 2026", { tool: "rename_targetings", only: "Winter 2025", to: "Winter 2026" }],
    [
      "Applied a plan to Footwear KR: 1 option added, 3 options changed",
      { tool: "apply_plan", plan: { isUndo: false, changes: { created: 1, changed: 3, deleted: 0 } } },
    ],
    [
      "Undo changes to Footwear KR: restore 150 options",
      {
        tool: "undo_run",
        status: "planned",
        plan: { isUndo: true, changes: { created: 150, changed: 0, deleted: 0 } },
      },
    ],
    [
      "Applied a plan to Footwear KR: 1 option added, 2 options renamed, 1 moved to Bags",
      {
        ...{ tool: "apply_plan", plan: { isUndo: false, changes: { created: 1, changed: 3, deleted: 0 } } },
        how: { ...SAME, renamed: 2, moved: 1, into: "Bags" },
      },
    ],
    [
      'Undo "Renamed 25 options in Footwear KR": rename 25 options',
      {
        ...{ tool: "undo_run", status: "needs_confirmation", how: { ...SAME, renamed: 25 } },
        plan: {
          ...{ isUndo: true, of: "Renamed 25 options in Footwear KR" },
          changes: { created: 0, changed: 25, deleted: 0 },
        },
      },
    ],
    [
      'Undid "Added 60 Context IDs to 60 options": 60 Context IDs removed from 60 options',
      {
        ...{ tool: "undo_run", how: { ...SAME, reduced: 60, removed: 60 } },
        plan: {
          ...{ isUndo: true, of: "Added 60 Context IDs to 60 options" },
          changes: { created: 0, changed: 60, deleted: 0 },
        },
      },
    ],
    ["Sent 2 of 4 events", { tool: "track_events", status: "partial", items: 4, done: 2 }],
    ["Saved Footwear KR to shoes.xlsx", { tool: "list_options", items: 1, done: 1, fileName: "shoes.xlsx" }],
    ["Sent 1 event", { tool: "track_event", items: 1, done: 1 }],
  ])("%s", (sentence, more) => {
    expect(titleOf({ ...PART, targeting, ...more })).toBe(sentence);
  });

  test("names of 200 KB are cut", () => {
    expect(titleOf({ ...PART, targeting: "n".repeat(200_000) }).length).toBeLessThan(200);
  });
});

test("sizes in messages on the page have thousands separators", () => {
  const one = onPage('the Context ID "70000 x" has 70000 bytes, 1500 characters', "others");
  expect(textFor(one, "page")).toBe('the Context ID "70000 x" has 70,000 bytes, 1,500 characters');
});

describe("a reason why objects failed", () => {
  const failureOf = (about: Partial<SummarizedFailure>) =>
    failureRow({
      ...{ outcome: "failed", count: 3, errorCode: "X", message: "m", remedy: "r", isOfFirst: false, byLine: false },
      ...{ places: [[1, 3]], placesOmitted: false, indexes: [0, 1, 2], examples: [], ...about },
    });
  const failure = (errorCode: string, names: readonly string[]) =>
    failureOf({ errorCode, examples: names.map((name) => ({ name })) });

  test("names the button Resume run only on a run that has it", () => {
    const remedies = ["RUN_ENDED", "BUSY"].flatMap((code) =>
      [true, false].map((canResume) => messageFor({ code }, readerOf(canResume)).remedy),
    );
    expect(remedies).toEqual([
      "Correct the cause of that error. Then press Resume run.",
      "Correct the cause of that error. Then ask the agent to make the change again.",
      expect.stringMatching(/^Press Resume run\. To retry/),
      expect.stringMatching(/^Ask the agent to make the change again\. To retry/),
    ]);
  });

  test("shows examples that are cut to the same text once", () => {
    const long = "Very long import name of a product that is ";
    expect(failure("INVALID_NAME", [`${long}red`, `${long}blue`, "bad_1"]).examples).toEqual([
      "Very long import name of a product that …",
      "bad_1",
    ]);
  });

  test("says each kind of message, unless its objects break one rule", () => {
    const messageOf = (...rules: readonly string[]) =>
      failureRow({
        ...{
          outcome: "failed",
          count: 3,
          errorCode: "INVALID_NAME",
          message: "of kinds",
          remedy: "r",
          byLine: false,
        },
        ...{
          places: [[1, 3]],
          placesOmitted: false,
          indexes: [0, 1, 2],
          examples: [],
          isOfFirst: true,
          isOfKinds: true,
        },
        details: [{ index: 0, reason: { code: "INVALID_NAME", detail: { rules, characters: ["_"] } } }],
      }).message;
    expect(messageOf("characters", "tooLong")).toBe("of kinds");
    expect(messageOf("characters")).toBe('not allowed in a name: "_", …');
  });

  const repeated = (detail: Record<string, unknown>) => ({ errorCode: "DUPLICATE_IN_INPUT", byLine: true, detail });
  /** A failure of rows whose names are in the rows 4 lines above. */
  const repeats = (count: number, more: Record<string, unknown> = {}): Partial<SummarizedFailure> => ({
    ...{ errorCode: "DUPLICATE_IN_INPUT", byLine: true, isOfFirst: true, count },
    details: Array.from({ length: count }, (_, at) => ({
      ...{ index: at, line: 302 + at },
      reason: { code: "DUPLICATE_IN_INPUT", detail: { duplicateOfIndex: at, duplicateOfLine: 298 + at, ...more } },
    })),
  });

  test("names the earlier row of each repeated one", () => {
    expect([repeats(2), repeats(20, { contexts: "same" })].map((about) => failureOf(about).message)).toEqual([
      "same name as an earlier one: line 302 = 298, line 303 = 299",
      expect.stringMatching(/^same name and Context IDs as an earlier one: line 302 = 298, .*, line 321 = 317$/),
    ]);
  });

  const invalid = (detail: Record<string, unknown>) => ({ errorCode: "INVALID_NAME", detail });
  test.each<readonly [string | undefined, Partial<SummarizedFailure>]>([
    ['name contains "!"', invalid({ rules: ["characters"], characters: ["!"] })],
    ["name over 36 characters", invalid({ rules: ["tooLong"], length: 59 })],
    ['name over 36 characters, contains "!"', invalid({ rules: ["characters", "tooLong"], characters: ["!"] })],
    ["name begins or ends with a space", invalid({ rules: ["outerSpace"] })],
    ["name under 2 characters", invalid({ rules: ["tooShort"], length: 1 })],
    ["name is empty", invalid({ rules: ["tooShort"], length: 0 })],
    ["Context ID over 256 bytes", { errorCode: "INVALID_CONTEXT_ID", detail: { rule: "tooLong" } }],
    [undefined, { errorCode: "INVALID_CONTEXT_ID", detail: { rule: "empty" } }],
    [
      "Context ID rounded by a spreadsheet",
      { errorCode: "INVALID_ROW", detail: { what: "Context ID", damage: "scientific" } },
    ],
    [undefined, { errorCode: "INVALID_ROW", detail: { problem: "noName" } }],
    ["name already exists", { errorCode: "TARGETING_CATEGORY_NAME_DUPLICATE" }],
    ["repeats line 2", repeated({ duplicateOfLine: 2 })],
    ["repeats item 2", { ...repeated({ duplicateOfIndex: 1 }), byLine: false }],
    ["repeats line 2, other Context IDs", repeated({ duplicateOfLine: 2, contexts: "other" })],
    ["equals line 2", repeated({ duplicateOfLine: 2, contexts: "same" })],
    [undefined, repeated({ duplicateOfLine: 2, field: "_id" })],
    ["name used twice: line 302 = 298, line 303 = 299", repeats(2, { contexts: "other" })],
    ["row used twice: line 302 = 298, line 303 = 299, line 304 = 300, …", repeats(4, { contexts: "same" })],
    [
      "name used twice: line 302 = 298, line 303 = 299",
      { ...repeats(2), errorCode: "TARGETING_CATEGORY_NAME_DUPLICATE" },
    ],
    [
      'no group "Garden"',
      {
        errorCode: "NAME_NOT_FOUND",
        detail: { field: "parentName", value: "Garden" },
      },
    ],
    ["group does not exist", { errorCode: "NAME_NOT_FOUND", detail: { field: "parentName" }, isOfKinds: true }],
    ["group does not exist", { errorCode: "NAME_NOT_FOUND", detail: { field: "parentName" }, isOfFirst: true }],
    [
      '"purchase" needs "tx_id"',
      { errorCode: "EVENT_IGNORED", message: "not sent: it would not count", finding: '"purchase" needs "tx_id"' },
    ],
    [undefined, { errorCode: "TARGETING_LOCKED" }],
  ])("has the cause %j", (cause, about) => {
    expect(failureOf(about)).toMatchObject({ cause });
  });

  test("says whether other objects have other names", () => {
    const examples = ["Bags", "Bags"].map((name) => ({ name }));
    const same = { ...repeated({ duplicateOfLine: 2 }), examples };
    const rows = [failureOf({ examples }), failureOf(same), failureOf({ examples, count: 2 })];
    expect(rows.map((row) => [row.examples, row.areAll])).toEqual([
      [["Bags"], undefined],
      [["Bags"], true],
      [["Bags"], true],
    ]);
  });

  test("has all its lines", () => {
    const places = Array.from({ length: 9 }, (_, at) => [5 + 15 * at, 5 + 15 * at] as const);
    expect(failureOf({ places, count: 9, byLine: true })).toMatchObject({
      places: "lines 5, 20, 35, 50, 65, 80, 95, 110, 125",
    });
  });

  test("is held back only if the event was not sent on purpose", () => {
    const isHeldBack = (code: string) => failure(code, []).isHeldBack;
    expect(["EVENT_IGNORED", "EVENT_REJECTED", "SERVICE_UNAVAILABLE"].map(isHeldBack)).toEqual([true, true, undefined]);
  });
});

describe("what an undo brings back", () => {
  const { signal } = new AbortController();
  const part = (names: readonly string[]) => ({
    title: "Options deleted",
    count: names.length,
    objects: names.map((name) => ({ name, says: "", contextIds: 2 })),
  });
  const use = "Undo does not reconnect campaigns and ad products to deleted objects.";
  const same = (ids: string) => `same Context IDs, ${ids}; campaigns are not reconnected`;
  const refused = 'Not restored: "bad_name", because the service does not accept its name.';
  const many = ["bad_1", "bad_2", "bad_3", "bad_4", "bad_5", "Shoes"];
  test.each([
    [0, ["Shoes"], [`Undo within 30 days: ${same("new option ID")}`]],
    [0, ["Shoes", "Hats"], [`Undo within 30 days: ${same("new option IDs")}`]],
    [0, ["Shoes", "bad_name"], [`Undo within 30 days restores 1 of 2 options: ${same("new option ID")}`, refused]],
    [
      0,
      many,
      [
        `Undo within 30 days restores 1 of 6 options: ${same("new option ID")}`,
        'Not restored: "bad_1", "bad_2", "bad_3" and 2 more, because the service does not accept their names.',
      ],
    ],
    [
      2,
      ["Shoes"],
      ["You can undo it for 30 days: this restores 2 of 3 objects as they were and 1 under a new ID", use],
    ],
    [0, ["bad_name"], ["You cannot get it back: the service does not accept its name"]],
    [3, [], ["You can undo it for 30 days"]],
    [
      3,
      ["bad_name"],
      ["You can undo it for 30 days: this restores 3 of 4 objects as they were; 1 cannot be restored", refused],
    ],
  ])("an approval of %i changes and the deletion of %j", (changed, deleted, [title, ...notes]) => {
    const counts = { created: 0, changed, deleted: deleted.length };
    expect(undoOf(counts, [part(deleted)], { days: 30 })).toEqual({
      ...{ title, notes },
      ...(changed === 0 && deleted.join() === "bad_name" && { isImpossible: true }),
    });
  });

  test.each([
    [335, 0, 0, "You can undo it for 30 days"],
    [
      1,
      2,
      1,
      "You can undo it for 30 days: this deletes the new option and restores 2 of 3 objects as they were and 1 under a new ID",
    ],
    [3, 0, 1, "You can undo it for 30 days: this deletes the 3 new options and restores 1 under a new ID"],
  ])("an approval of %i new, %i changed and %i deleted options", (created, changed, deleted, title) => {
    const counts = { created, changed, deleted };
    expect(undoOf(counts, [part(["Shoes"].slice(0, deleted))], { days: 30 })?.title).toBe(title);
  });

  test("an undo that creates an option again is itself undone by deleting the restored option", () => {
    const undo = (created: number, changed: number) =>
      undoOf({ created, changed, deleted: 1 }, [part(["Shoes"])], { days: 30, isUndo: true })?.title;
    expect([undo(1, 0), undo(3, 2)]).toEqual([
      "You can undo it for 30 days: this deletes the restored option and restores 1 under a new ID",
      "You can undo it for 30 days: this deletes the 3 restored options and restores 2 of 3 objects as they were and 1 under a new ID",
    ]);
  });

  test.each([
    [1, 4, same("new targeting and option IDs")],
    [1, 0, "new targeting ID; campaigns are not reconnected"],
    [2, 40, same("new targeting and option IDs")],
  ])("%i targetings with %i options come back", (count, options, ids) => {
    const parts = [{ title: "Targetings deleted", count, objects: [{ name: "Spring", says: "", options }] }];
    const counts = { created: 0, changed: 0, deleted: count };
    expect(undoOf(counts, parts, { days: 30 })).toEqual({ title: `Undo within 30 days: ${ids}`, notes: [] });
  });

  test.each([
    [1, 24, "new group ID, 24 sub-options back in the group"],
    [2, 1, "new group IDs, 1 sub-option back in the groups"],
  ])("%i groups come back, with their %i sub-options in them", (count, freed, words) => {
    const names = ["Dresses", "Skirts"].slice(0, count);
    const objects = names.map((name, at) => ({ name, says: "", ...(at === 0 && { freed }) }));
    const parts = [{ title: "Option groups deleted", count, objects }];
    const title = `Undo within 30 days: ${words}; campaigns are not reconnected`;
    expect(undoOf({ created: 0, changed: 0, deleted: count }, parts, { days: 30 })?.title).toBe(title);
  });

  test("a run says how much comes back exactly, under new IDs, and not", async () => {
    const { changes, control, runs, targeting } = await startService();
    const within = await targeting("Spring");
    const kept = ["One", "Two", "bad_name"].map((name) => ({ targeting: within, name }));
    const { options } = z
      .object({ options: z.array(z.string()) })
      .parse(await control("POST", "/seed", { options: kept }));
    const did = async (call: WriteCall) => {
      const run = await changes.start(await changes.keep(call, "tester"), await changes.plan(call, signal));
      await run?.rest;
      return run && undoOfRun(run, { runs });
    };
    const [first = "", ...others] = options;
    expect(await did({ tool: "update_options", input: { items: [{ _id: first, name: "Eins" }] } })).toBe(
      "Undo restores it as it was",
    );
    const items = ["Four", "Five"].map((name) => ({ name }));
    expect(await did({ tool: "bulk_add_options", input: { targetingId: within, items } })).toBe(
      "Undo deletes the 2 new options",
    );
    expect(await did({ tool: "delete_options", input: { ids: others } })).toBe(
      "Undo restores 1 of 2 objects under a new ID; 1 cannot be restored",
    );
  });

  test("a run with unknown results says that an undo first looks at them", async () => {
    const { changes, control, runs, targeting } = await startService(120_000, 0);
    const within = await targeting("Spring");
    await control("POST", "/faults", { faults: [{ kind: "reset", on: "addOptions", applied: true }] });
    const items = ["Four", "Five"].map((name) => ({ name }));
    const call: WriteCall = { tool: "bulk_add_options", input: { targetingId: within, items } };
    const run = await changes.start(await changes.keep(call, "tester"), await changes.plan(call, signal));
    await run?.rest;
    expect(run && (await undoOfRun(run, { runs }))).toBe("Undo first checks the 2 objects with an unknown result");
  });
});

test.each<readonly [string, Parameters<typeof driftWords>[0]]>([
  ["was deleted since the file was saved.", { name: "Hats", field: "deleted" }],
  ["was added since the file was saved. It is kept.", { name: "Hats", field: "added", service: "Hats" }],
  [
    "has changed since the file was saved: group Sale then, top level now. It is kept.",
    { name: "Hats", field: "parent", base: "Sale", service: null },
  ],
  [
    "has changed since the file was saved: Context IDs 4 then, 4 now, but different ones. It is kept.",
    { name: "Hats", field: "contexts", base: 4, service: 4 },
  ],
])("what others changed %s", (words, difference) => {
  expect(driftWords(difference)).toBe(words);
});

describe("what a person types to approve something large", () => {
  const deleted = (count: number) => [{ title: "Options deleted", count, objects: [] }];
  const whole = (name: string) => [
    { title: "Targetings deleted", count: 1, objects: [{ name, _id: "01T", says: "the targeting" }] },
  ];
  test("nothing below 100 deletions, and the targeting's name from there on", () => {
    const targeting = { _id: "01T", name: "Footwear KR" };
    expect([99, 100].map((count) => textToType(deleted(count), targeting))).toEqual([undefined, "Footwear KR"]);
    expect(textToType(whole("가을 세일"), undefined)).toBe("가을 세일");
  });

  test("the ID where nobody could type the name, or how much it deletes where there is none", () => {
    for (const name of ["safe\u202Egnp.exe", "a  b", " a", "n".repeat(200), ""]) {
      expect([name, textToType(whole(name), undefined)]).toEqual([name, "01T"]);
    }
    expect(textToType(deleted(1260), undefined)).toBe("1,260");
  });

  test("it is compared exactly, but for spaces around it and decomposed letters", () => {
    const name = "가을 Sale";
    expect([name, ` ${name} `, name.normalize("NFD")].map((typed) => isTyped(typed, name))).toEqual([true, true, true]);
    expect([undefined, "", "가을 sale", "가을", `${name}!`].map((typed) => isTyped(typed, name))).not.toContain(true);
  });
});

test("only the words of a name are marked that differ", () => {
  expect(diffWords("Bags and Backpacks", "Bags")).toEqual({ before: "Bags ", middle: "and Backpacks", after: "" });
  expect(diffWords("Bags", "Bags and Backpacks")).toEqual({ before: "Bags", middle: "", after: "" });
  expect(diffWords("Winter Sale 2026", "Winter Sale 2025")).toEqual({
    ...{ before: "Winter Sale ", middle: "2026", after: "" },
  });
  expect(diffWords("a", "a")).toEqual({ before: "a", middle: "", after: "" });
});

test("times and durations in words", () => {
  const now = Date.UTC(2026, 4, 10, 12);
  const min = 60_000;
  const times = [0, -4000, 30_000, -30_000, 2 * min, 23 * 60 * min, -23 * 60 * min, 1000 - 24 * 60 * min, -5 * min];
  expect(times.map((ms) => agoWords(now - ms, now))).toEqual([
    ...["just now", "just now", "30 s ago", "in a moment", "2 min ago", "23 h ago", "in 23 h", "in 24 h", "in 5 min"],
  ]);
  expect([now, now - 24 * 60 * min].map((at) => dayWords(at, now))).toEqual(["Today", "Yesterday"]);
  const midnight = new Date(2026, 4, 10).getTime();
  const clocks = [midnight + 5 * min, midnight - 5 * min].map((at) => clockWords(at, "second", midnight + 60 * min));
  expect(clocks).toEqual(["00:05:00", "May 9, 23:55:00"]);
  expect([40, 440, 59_000, 200_000, 7_260_000].map(durationWords)).toEqual([
    ...["< 0.1 s", "0.4 s", "59 s", "3 min 20 s", "2 h 1 min"],
  ]);
});
