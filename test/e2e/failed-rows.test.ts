import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { warmSessions } from "../support/writing.ts";

const startSession = warmSessions();
const folderOf = perFile(async () => realpathSync(mkdtempSync(join(tmpdir(), "targeting-mcp-"))));

/**
 * Starts a session with the empty targeting Spring. `given` writes a sheet and passes it to a tool. `saved` reads a
 * file that a tool has saved.
 */
async function withSheets(more: Readonly<Record<string, string>> = {}) {
  const folder = await folderOf();
  for (const left of readdirSync(folder)) rmSync(join(folder, left));
  const { client, sandbox } = await startSession({ env: { TARGETING_MCP_ALLOWED_DIRS: folder, ...more } });
  const targetingId = await sandbox.targeting("Spring");
  const given = (tool: string, name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return call(client, tool, { ...(tool !== "track_events" && { targetingId }), file: name });
  };
  const saved = (name: string) => readFileSync(join(folder, name), "utf8");
  return { client, folder, sandbox, targetingId, given, saved };
}

test("the failed rows alone go in once they are corrected, each with the name and the group that it continues", async () => {
  const { client, folder, targetingId, given, saved } = await withSheets();
  const rows = [
    "Shoes,,yes,",
    "Trail,Shoes,,T-1",
    "Hats_,,yes,",
    "Rain,Hats_,,R-1",
    ",,,R-2",
    ",,,4.71E+12",
    "Sun,,,S-1",
  ];
  const sheet = `Note\n\nOption,Group,Is Group,Context ID\n${rows.join("\n")}\n`;
  const made = await given("bulk_add_options", "hats.csv", sheet);
  const { runId } = made;
  const only = await call(client, "get_run", { runId, outcome: "failed", saveTo: "failed.csv" });
  expect(only.text).toContain("Rows: 4 failed.");
  expect(only.text).toMatch(/Next: fix the cells .*: bulk_add_options \{"targetingId":"\w+","file":"failed\.csv"/);
  const lines = saved("failed.csv").split(/\r?\n/);
  expect(lines.map((line) => line.split(",").slice(0, 4).join())).toEqual([
    ...["\uFEFFNote", "", "Option,Group,Is Group,Context ID"],
    ...["Hats_,,yes,", "Rain,Hats_,,R-1", "Rain,,,R-2", "Rain,,,4.71E+12", ""],
  ]);
  const fixed = saved("failed.csv").replaceAll("Hats_", "Hats").replace("4.71E+12", "R-3");
  writeFileSync(join(folder, "fixed.csv"), fixed);
  const again = await call(client, "bulk_add_options", { targetingId, file: "fixed.csv" });
  expect(again.counts).toMatchObject({ succeeded: 2, failed: 0 });
});

test.each([["failed"], [undefined]])(
  "the next call adds the corrected rows to options that exist by now: %s",
  async (outcome) => {
    const { client, folder, targetingId, given, saved } = await withSheets();
    const sheet = "Option,Context ID\nShoes,A-1\nShoes,Mar-04\nHats,Mar-05\n";
    const { runId } = await given("bulk_add_options", "shoes.csv", sheet);
    const { text } = await call(client, "get_run", { runId, outcome, saveTo: "rest.csv" });
    const next = { targetingId, file: "rest.csv", onExisting: "addContexts" };
    expect(text).toContain(`then: bulk_add_options ${JSON.stringify(next)}`);
    writeFileSync(join(folder, "rest.csv"), saved("rest.csv").replaceAll(/^(\w+),Mar-/gm, "$1,A-"));
    expect((await call(client, "bulk_add_options", next)).counts).toMatchObject({ failed: 0, succeeded: 2 });
    const other = await given("bulk_add_options", "new.csv", "Option,Context ID\nCaps,C-1\nTies,Mar-04\n");
    const rest = await call(client, "get_run", { runId: other.runId, outcome, saveTo: "ties.csv" });
    expect(rest.text).not.toContain("onExisting");
  },
);

test("rows that were skipped on purpose are not added to their options by the next call", async () => {
  const { client, folder, targetingId, given, saved } = await withSheets();
  await given("bulk_add_options", "old.csv", "Option,Context ID\nBoots,B-1\n");
  writeFileSync(join(folder, "more.csv"), "Option,Context ID\nBoots,B-2\nShoes,A-1\nShoes,Mar-04\n");
  const made = await call(client, "bulk_add_options", { targetingId, file: "more.csv", onExisting: "skip" });
  const next = (file: string) => `bulk_add_options ${JSON.stringify({ targetingId, file, onExisting: "addContexts" })}`;
  const whole = await call(client, "get_run", { runId: made.runId, saveTo: "whole.csv" });
  expect(whole.text).toContain(`then: remove the rows with the result Skipped, and call ${next("whole.csv")}`);
  expect(saved("whole.csv")).toMatch(/^Boots,B-2,.*,Skipped,/m);
  const failed = await call(client, "get_run", { runId: made.runId, outcome: "failed", saveTo: "failed.csv" });
  expect(failed.text).toContain(`then: ${next("failed.csv")}`);
  expect(saved("failed.csv")).not.toContain("Boots");
});

test("rows that need a failed row are saved with it", async () => {
  const { client, given, saved } = await withSheets();
  await given("bulk_add_options", "taken.csv", "Option,Context IDs\nHats,A-1\n");
  const rows = ["Hats,,yes,A-2", "Rain,Hats,,R-1", "Shoes,,,S-1"].join("\n");
  const { runId } = await given("bulk_add_options", "rows.csv", `Option,Group,Is Group,Context ID\n${rows}\n`);
  const only = await call(client, "get_run", { runId, outcome: "failed", saveTo: "failed.csv" });
  expect(only.text).toMatch(
    /Rows: 1 failed, 1 not applied\. The rows that were not applied need one of the failed rows/,
  );
  expect(saved("failed.csv")).toMatch(/^Hats,.*\r?\nRain,Hats,.*\r?\n$/m);
});

test("a repeated row names the line of the original file, and whether it has the same Context IDs", async () => {
  const { client, given, saved } = await withSheets();
  const rows = ["Shoes,A-1|A-2", "Hats,B-1", "Shoes,A-2|A-1", "Hats,B-2", "Caps,"].join("\n");
  const made = await given("bulk_add_options", "brands.csv", `Option,Context IDs\n${rows}\n`);
  expect(made.text).toMatch(/line 4 "Shoes": same name and Context IDs as line 2\. Leave the line out\./);
  expect(made.text).toMatch(/line 5 "Hats": same name as line 3, with other Context IDs\. Use each name once\./);
  await call(client, "get_run", { runId: made.runId, outcome: "failed", saveTo: "failed.csv" });
  expect(saved("failed.csv")).toContain("Same name and Context IDs as line 2 of the original file,Leave the line out.");
  expect(saved("failed.csv")).toContain('"Line 5: Same name as line 3 of the original file, with other Context IDs"');
  const rejects = await client.readResource(`targeting://runs/${made.runId}/rejects`);
  expect(JSON.stringify(rejects)).toContain("same name and Context IDs as line 2 of the original file. Leave");
});

test("the number of failed rows with one reason stands once, beside the reason and not beside the examples", async () => {
  const { given } = await withSheets();
  const names = Array.from({ length: 44 }, (_, at) => (at < 24 ? `bad.name ${at}` : `bad_row* ${at}`));
  const { text } = await given("bulk_add_options", "names.csv", `Option\n${names.join("\n")}\n`);
  expect(text).toContain("INVALID_NAME, 44 lines: 24 lines (2-25): the name has 1 character that is not allowed");
  expect(text.match(/44 lines/g)).toHaveLength(1);
  expect(text).toMatch(/^Examples of INVALID_NAME, from line 2: "bad\.name 0", "bad\.name 1", /m);
});

test("an import counts the new options without Context IDs, groups apart", async () => {
  const { client, folder, targetingId, given } = await withSheets();
  const rows = ["Shoes,,yes,", "Boots,Shoes,,B-1", "Clogs,Shoes,,", "Hats,,,", "Caps,,,C-1", "X,,,"].join("\n");
  const text = `Option,Group,Is Group,Context IDs\n${rows}\n`;
  const made = await given("bulk_add_options", "brands.csv", text);
  expect(made.text).toContain("2 of 4 new options have no Context IDs.");
  expect((await call(client, "get_run", { runId: made.runId })).text).toContain(
    "2 of 4 new options have no Context IDs.",
  );
  writeFileSync(join(folder, "plan.csv"), "Option,Context IDs\nHats,A-1\nScarves,\nShawls,S-1\n");
  const planned = await call(client, "bulk_add_options", { targetingId, file: "plan.csv", dryRun: true });
  expect(planned.text).toContain("1 of 2 new options would have no Context IDs.");
  const full = await given("bulk_add_options", "full.csv", "Option,Context IDs\nFull,F-1\n");
  expect(full.text).not.toContain("new option");
});

test("a workbook holds only the rows with the outcome that was asked for", async () => {
  const { client, targetingId, given } = await withSheets();
  const made = await given("bulk_add_options", "two.csv", "Option,Context IDs\nShoes,A-1\nX,B-1\n");
  const { runId } = made;
  const failed = await call(client, "get_run", { runId, outcome: "failed", saveTo: "failed.xlsx" });
  expect(failed.text).toContain("Rows: 1 failed.");
  const fresh = await given("bulk_add_options", "none.csv", "Option,Context IDs\nHats,A-1\n");
  const none = await call(client, "get_run", { runId: fresh.runId, outcome: "failed", saveTo: "none.xlsx" });
  expect(none.text).toContain("no row of this run has the outcome failed");
  const read = await call(client, "bulk_add_options", { targetingId, file: "failed.xlsx", dryRun: true });
  expect(read.counts).toMatchObject({ items: 1, failed: 1 });
});

test("rows of events that were not sent are saved by outcome, those that were sent are not stored", async () => {
  const { client, given, saved } = await withSheets();
  const sheet = "uid,eventName,method\nu-1,sign_up,e\nu-2,signup,e\nu-3,sign_up,e\n";
  const { runId } = await given("track_events", "events.csv", sheet);
  await call(client, "get_run", { runId, outcome: "failed", saveTo: "failed.csv" });
  expect(
    saved("failed.csv")
      .split(/\r?\n/)
      .map((line) => line.split(",")[0]),
  ).toEqual(["\uFEFFuid", "u-2", ""]);
  const sent = await call(client, "get_run", { runId, outcome: "succeeded", saveTo: "sent.csv" });
  expect(sent.text).toContain("a sheet with results has no rows of events that are or may be recorded");
});

test("broken lines of events that are sent again have the same reason, and go in once their text is corrected", async () => {
  const { client, folder, given, saved } = await withSheets();
  const sent = await given("track_events", "events.ndjson", '{"uid":"u-1","eventName":\n{"eventName":"sign_up"}\n');
  await call(client, "get_run", { runId: sent.runId, saveTo: "failed.ndjson" });
  const again = await call(client, "track_events", { file: "failed.ndjson" });
  expect(again.failures.map(({ errorCode, lines }) => [errorCode, lines])).toEqual([
    ["EVENT_REJECTED", [2]],
    ["INVALID_ROW", [1]],
  ]);
  const fixed = saved("failed.ndjson").replace('\\"eventName\\":', '$&\\"sign_up\\",\\"method\\":\\"e\\"}');
  writeFileSync(join(folder, "fixed.ndjson"), fixed);
  const last = await call(client, "track_events", { file: "fixed.ndjson" });
  expect(last.counts).toMatchObject({ succeeded: 1, failed: 1 });
});

test("a line that was refused because its values would change is saved and shown as it was written", async () => {
  const { client, targetingId, given, saved } = await withSheets();
  const lines = [
    '{"uid":"w1","eventName":"purchase","tx_id":12345678901234567890}',
    '{"uid":"w1","uid":"w2","eventName":"app_open"}',
    '{"uid":"w1","eventName":"view_item","item_id":"a","price":1e400}',
  ];
  const sent = await given("track_events", "events.ndjson", lines.join("\n"));
  const { runId } = sent;
  const shown = await call(client, "get_run", { runId, includeInput: true });
  expect(shown.results.map(({ input }) => input)).toEqual(lines);
  await call(client, "get_run", { runId, saveTo: "failed.ndjson" });
  expect(saved("failed.ndjson").split("\n").slice(0, 3)).toEqual(
    lines.map((row) => expect.stringContaining(JSON.stringify({ row }).slice(0, -1))),
  );
  const again = await call(client, "track_events", { file: "failed.ndjson" });
  expect(again.failures).toEqual(sent.failures);
  const shownAgain = await call(client, "get_run", { runId: again.runId, includeInput: true });
  expect(shownAgain.results).toEqual(shown.results);
  const twice = '{"name":"Num 2","name":"Num 3"}';
  const added = await given("bulk_add_options", "names.ndjson", twice);
  await call(client, "get_run", { runId: added.runId, saveTo: "names-failed.ndjson" });
  expect(saved("names-failed.ndjson")).toContain(JSON.stringify({ row: twice }).slice(0, -1));
  const args = { targetingId, file: "names-failed.ndjson" };
  const { failures, runId: last } = await call(client, "bulk_add_options", args);
  expect(failures).toEqual(added.failures);
  const input = await call(client, "get_run", { runId: last, includeInput: true });
  expect(input.results.map((one) => one.input)).toEqual([twice]);
});

test("a sheet with a desired state is saved as a whole", async () => {
  const { client, given } = await withSheets();
  const planned = await given("plan_targeting", "wanted.csv", "Option,Context IDs\nShoes,A-1\n");
  const only = await call(client, "get_run", { runId: planned.runId, outcome: "failed", saveTo: "failed.csv" });
  expect(only.text).toContain("a sheet with a desired state is planned as a whole");
});

test("a page with fewer rows than requested says why, and how to get all of them", async () => {
  const { client, targetingId, given } = await withSheets();
  const rows = Array.from({ length: 300 }, (_, at) => `Option ${at},A-${at}\n`).join("");
  const { runId } = await given("bulk_add_options", "many.csv", `Option,Context IDs\n${rows}`);
  const page = await call(client, "get_run", { runId, limit: 1000 });
  const [note = ""] = page.notes.filter((one) => one.includes("requested rows"));
  expect(note).toMatch(
    /^\d+ of the 300 requested rows are shown, because an answer holds no more\. All of them: get_run /,
  );
  expect(note).toContain(JSON.stringify({ runId, saveTo: `results-${runId.slice(-6)}.xlsx` }));
  expect(page.text).toContain(`${page.results.length} of the 300 requested rows are shown`);
  expect((await call(client, "get_run", { runId, limit: 5 })).text).not.toContain("requested rows");
  const items = Array.from({ length: 300 }, (_, at) => ({ name: `Item ${at}` }));
  const listed = await call(client, "bulk_add_options", { targetingId, items });
  expect((await call(client, "get_run", { runId: listed.runId, limit: 300 })).text).toContain(
    `All of them: targeting://runs/${listed.runId}/results`,
  );
});

test("a page with fewer failed events than requested says where all of them are, with their input", async () => {
  const { client, folder } = await withSheets();
  const lines = Array.from({ length: 400 }, (_, at) => JSON.stringify({ uid: `user-${at}`, eventName: "purchase" }));
  writeFileSync(join(folder, "purchases.ndjson"), lines.join("\n"));
  const { runId } = await call(client, "track_events", { file: "purchases.ndjson" });
  const page = await call(client, "get_run", { runId, outcome: "failed", includeInput: true, limit: 400 });
  expect(page.text).toContain(`All of them: targeting://runs/${runId}/rejects`);
});

test("a group inside a group is named as such, not as a missing group", async () => {
  const { client, targetingId, given } = await withSheets();
  const rows = ["Body,,B-1", "Feet,Body,F-1", "Socks,Feet,S-1", "Shoes,Shoes,S-2", "Rain,Coats,R-1"].join("\n");
  const made = await given("bulk_add_options", "levels.csv", `Option,Group,Context IDs\n${rows}\n`);
  expect(made.text).toContain('line 4 "Socks": "Feet" is a sub-option here, and groups cannot be inside groups.');
  expect(made.text).toContain('line 5 "Shoes": the option names itself as its group.');
  expect(made.text).toMatch(/line 6 "Rain": the targeting has no option group named "Coats"\..* type "collection"/);
  const items = [
    { name: "Head", type: "collection", children: [{ name: "Face" }] },
    { name: "Ears", parentName: "Head" },
    { name: "Rings", parentName: "Ears" },
  ];
  const byItems = await call(client, "bulk_add_options", { targetingId, items });
  expect(byItems.text).toContain('"Ears" is a sub-option here');
  expect(byItems.text).not.toContain("collection");
});

test("a row whose option was deleted since creates it again, and the answers say so", async () => {
  const { client, targetingId, given, saved: contentOf } = await withSheets({ TARGETING_MCP_CONFIRM: "off" });
  const made = await given("bulk_add_options", "two.csv", "Option,Context IDs\nShoes,A-1\nHats,B-1\nX,C-1\n");
  await call(client, "delete_options", { targetingId, names: ["Shoes"] });
  const saved = await call(client, "get_run", { runId: made.runId, saveTo: "two-results.csv" });
  expect(saved.text).toContain(
    "Rows that are done stay as they are, but an option that was deleted since is created again.",
  );
  const args = { targetingId, file: "two-results.csv", onExisting: "addContexts" };
  const planned = await call(client, "bulk_add_options", { ...args, dryRun: true });
  expect(planned.counts).toMatchObject({ succeeded: 0, alreadyDone: 1, failed: 1, pending: 1 });
  const note =
    '1 row has the ID of an option that is not in the targeting, so it is a new option: "Shoes". If that option was deleted on purpose, leave the row out.';
  expect(planned.text).toContain(note);
  const again = await call(client, "bulk_add_options", args);
  expect(again.text).toContain(note);
  // The sheet of this run has the new ID, so its row is done.
  await call(client, "get_run", { runId: again.runId, saveTo: "again.csv" });
  const [created] = again.results.filter(({ name }) => name === "Shoes");
  expect(contentOf("again.csv")).toMatch(new RegExp(`^Shoes,A-1,${created?._id},.*Done`, "m"));
  const third = await call(client, "bulk_add_options", { targetingId, file: "again.csv", dryRun: true });
  expect(third.counts).toMatchObject({ alreadyDone: 2, failed: 1, pending: 0 });
  // The option exists again, so its row no longer creates a new one.
  expect((await call(client, "bulk_add_options", { ...args, dryRun: true })).text).not.toContain("has the ID of");
});

test("a group in another case is the same group when the sheet of results comes back", async () => {
  const { client, targetingId, given } = await withSheets();
  await given("bulk_add_options", "groups.csv", "Option,Group,Is Group,Context ID\nRest,,yes,\nRain,Rest,,R-1\n");
  const made = await given("bulk_add_options", "hats.csv", "Option,Group,Context ID\nSun,rest,S-1\n");
  expect(made.text).toContain('"rest" matched "Rest", which differs in case or outer spaces.');
  await call(client, "get_run", { runId: made.runId, saveTo: "results.csv" });
  const again = await call(client, "bulk_add_options", { targetingId, file: "results.csv" });
  expect(again.counts).toMatchObject({ failed: 0, alreadyDone: 1 });
  const added = { targetingId, file: "results.csv", onExisting: "addContexts" };
  expect((await call(client, "bulk_add_options", added)).text).not.toContain("not in the group");
  const planned = await call(client, "plan_targeting", { targetingId, file: "results.csv" });
  expect(planned.text).not.toContain("names as its group");
  expect(planned.isError).toBe(false);
});

test("a row without a name that differs from the option above says to which option it was added", async () => {
  const { given } = await withSheets();
  const rows = ["Rest,,yes,", "Other,,yes,", "Rain,Rest,,R-1", ",Other,,O-1"].join("\n");
  const made = await given("bulk_add_options", "blank.csv", `Option,Group,Is Group,Context ID\n${rows}\n`);
  expect(made.text).toContain('line 5: an earlier row about "Rain" (line 4) differs in parentName.');
  expect(made.text).toContain(
    "A row without a name belongs to the option above: if it means another option, give its name.",
  );
});

test("the group and the type that only a failed row names also count for the other rows of its option", async () => {
  const { client, targetingId, given } = await withSheets();
  const rows = [
    ...["Kids,,yes,", "First,Kids,,Mar-05", "First,,,f-2", "Blank,Kids,,Mar-06", ",,,b-2", ",,,b-3"],
    ...["Last,,,l-1", "Last,Kids,,Mar-07", "Wide,Kids,,w-1,more", "Wide,,,w-2", "Made,,yes,Mar-08", "Made,,,m-2"],
    ...["Pair,None,,Mar-09", "Pair,Kids,,p-2", "Pair,,,p-3", "Lost,None,,Mar-10", "Lost,,,o-2"],
  ].join("\n");
  const made = await given("bulk_add_options", "groups.csv", `Option,Group,Is Group,Context ID\n${rows}\n`);
  expect(made.text).toContain('NAME_NOT_FOUND, line 18 "Lost": the targeting has no option group named "None"');
  const { text } = await call(client, "list_options", { targetingId, all: true });
  expect(
    text
      .replaceAll(/[0-9A-Z]{26}:/g, "")
      .split("\n")
      .slice(1),
  ).toEqual([
    '0 "Kids" group of 5 sub-options with 7 Context IDs in all',
    ...['in "Kids":', "1 First", "2 Blank", "1 Last", "1 Wide", "2 Pair"],
    ...["at the top level:", '1 "Made" group of 0 sub-options'],
  ]);
});

test("a sheet with unknown rows says to resume the run before the sheet is given again", async () => {
  const { client, sandbox, given, saved } = await withSheets({
    TARGETING_MCP_RETRY_BUDGET_MS: "300",
    TARGETING_MCP_REQUEST_TIMEOUT_MS: "500",
  });
  await sandbox.control("POST", "/faults", {
    faults: [
      { on: "write", nth: 1, times: 1, kind: "reset", applied: true },
      { on: "write", nth: 2, times: 1000, kind: "status", status: 502, applied: false },
    ],
  });
  const { runId, counts } = await given("bulk_add_options", "new.csv", "Option,Context IDs\nNew,A-1\nX,A-1\n");
  expect(counts).toMatchObject({ unknown: 1, failed: 1 });
  const results = await call(client, "get_run", { runId, saveTo: "unknown.csv" });
  expect(results.text).toContain("Rows: 1 unknown, 1 failed.");
  expect(results.text).toMatch(
    new RegExp(`Next: resume_run \\{"runId":"${runId}"\\} finds out .* Only after that, save the sheet again, fix .*`),
  );
  expect(saved("unknown.csv")).toContain("Resume the run of this sheet before you give the sheet again. It repeats");
  await sandbox.control("DELETE", "/faults");
  await call(client, "resume_run", { runId });
  const resumed = await call(client, "get_run", { runId, saveTo: "resumed.csv" });
  expect(resumed.text).toContain("Rows: 1 done, 1 failed.");
  expect(resumed.text).toMatch(/Next: fix the cells .*: bulk_add_options /);
});
