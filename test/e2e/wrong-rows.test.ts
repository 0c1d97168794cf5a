import { mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { warmSessions } from "../support/writing.ts";

const startSession = warmSessions();
const folderOf = perFile(async () => realpathSync(mkdtempSync(join(tmpdir(), "targeting-mcp-"))));

/** Starts a session with the empty targeting Spring. `given` writes a file and passes it to a tool. */
async function withFiles() {
  const folder = await folderOf();
  const { client, sandbox } = await startSession({ env: { TARGETING_MCP_ALLOWED_DIRS: folder } });
  const targetingId = await sandbox.targeting("Spring");
  const written = (name: string, content: string | Uint8Array) => writeFileSync(join(folder, name), content);
  const given = (tool: string, name: string, content: string | Uint8Array, more: object = {}) => {
    written(name, content);
    return call(client, tool, { ...(tool !== "track_events" && { targetingId }), file: name, ...more });
  };
  return { client, sandbox, folder, targetingId, written, given };
}

test.each([
  ["Option,Group,Context IDs", "Beta,Alpha,#REF!"],
  ["Option,Group,Context IDs", "Beta,Alpha,4.01235E+12"],
  ["Option,Group,Context IDs", "Beta,Alpha,b\u200B1"],
  ["Option,Group,Context IDs", "#N/A,Alpha,b1"],
  ["Option,Group,Context IDs", "Be_ta,Alpha,b1"],
  ["Option,Group,Context IDs", "Beta,Alpha,b1,more"],
  ["Option,Group,Context IDs,Action", "Beta,Alpha,b1,Perhaps"],
  ["Option,Group,Context IDs,Context Action", "Beta,Alpha,b1,Perhaps"],
  ["Option,Group,Context ID", "Be_ta,,b1\nBe_ta,Alpha,b2"],
])("an option that a failed row names as its group is created as a group: %s / %s", async (header, failed) => {
  const { client, targetingId, given } = await withFiles();
  const made = await given("bulk_add_options", "groups.csv", `${header}\nAlpha,,g1\n${failed}\n`);
  expect(made.counts).toMatchObject({ succeeded: 1 });
  const corrected = await given("bulk_add_options", "fixed.csv", "Option,Group,Context IDs\nBeta,Alpha,b1\n");
  expect(corrected.counts).toMatchObject({ succeeded: 1, failed: 0 });
  const { text } = await call(client, "list_options", { targetingId });
  expect(text).toContain("Alpha");
});

test("an option that a failed line of NDJSON names as its group is created as a group", async () => {
  const { given } = await withFiles();
  const lines = ['{"name":"Alpha","contexts":["g1"]}', '{"name":"Beta","parentName":"Alpha","contexts":"b1"}'];
  const made = await given("bulk_add_options", "groups.ndjson", `${lines.join("\n")}\n`);
  expect(made.counts).toMatchObject({ succeeded: 1, failed: 1 });
  const corrected = await given("bulk_add_options", "fixed.csv", "Option,Group,Context IDs\nBeta,Alpha,b1\n");
  expect(corrected.counts).toMatchObject({ succeeded: 1, failed: 0 });
});

async function withList() {
  const all = await withFiles();
  const { client, targetingId, written } = all;
  await all.given("bulk_add_options", "news.csv", "Option,Context IDs\nNews,a1\n");
  const listed = (change: "addFile" | "setFile", name: string, content: string | Uint8Array) => {
    written(name, content);
    return call(client, "update_contexts", { targetingId, items: [{ name: "News", [change]: name }] });
  };
  const contents = async () => {
    const name = `saved-${Math.random()}.ndjson`;
    await call(client, "list_options", { targetingId, saveTo: name });
    return readFileSync(join(all.folder, name), "utf8");
  };
  return { ...all, listed, contents };
}

test.each(["Context ID", "\uFEFFcontext_id", "keywords", "기사 ID", '"Context IDs"'])(
  "a heading above a list of Context IDs is skipped, and the answer says so: %s",
  async (heading) => {
    const { listed, contents } = await withList();
    const set = await listed("setFile", "list.csv", `${heading}\nb1\nb2,c\n`);
    expect(set.text).toContain('Line 1 of "list.csv", ');
    expect(set.text).toContain("is a heading and was skipped");
    const added = await listed("addFile", "list.txt", `${heading}\nb1\nb2,c\n`);
    expect(added.text).toContain("is a heading and was skipped");
    expect(await contents()).toContain('"contexts":["b1","b2,c"]');
  },
);

test("a list without a heading is read whole, even with commas and words of headings in it", async () => {
  const { listed, contents } = await withList();
  const added = await listed("addFile", "list.txt", "b1\nKeyword\nb2, keyword\noption, group\n");
  expect(added.text).not.toContain("heading");
  expect(await contents()).toContain('["a1","b1","Keyword","b2, keyword","option, group"]');
});

test.each([
  ["csv", ","],
  ["csv", ";"],
  ["xlsx", ","],
])("a list may be the .%s that get_option saved: only its Context IDs are read (%s)", async (extension, delimiter) => {
  const { client, folder, targetingId, listed, contents } = await withList();
  const items = [{ name: "Sport", contexts: ["s1", "s,2", "s|3"] }];
  const { results } = await call(client, "bulk_add_options", { targetingId, items });
  const saved = `sport.${extension}`;
  await call(client, "get_option", {
    optionId: results[0]?._id,
    saveTo: saved,
    ...(delimiter === ";" && { delimiter }),
  });
  const added = await listed("addFile", saved, readFileSync(join(folder, saved)));
  expect(added.text).toMatch(/From "sport\.\w+", only the column .*"Context IDs?".* was read \(header on line 1\)/);
  expect(await contents()).toContain('["a1","s1","s,2","s|3"]');
});

test.each([
  "Option ID,Option\n01ABC,News\n",
  "Option;Group\nNews;Media\n",
  '"Option","Context IDs","Context Action"\n"News","b1","Remove"\n',
])("a sheet from which no list can be read is refused before anything is sent: %s", async (sheet) => {
  const { listed, contents } = await withList();
  const added = await listed("addFile", "list.csv", sheet);
  expect(added.error?.message).toContain("nothing was sent");
  expect(await contents()).toContain('"contexts":["a1"]');
});

test("events of a JSON file whose numbers or fields would change fail, and are not sent", async () => {
  const { client, given } = await withFiles();
  const purchase = '"eventName":"purchase","currency":"KRW"';
  const lines = [
    `{"uid":"u1",${purchase},"tx_id":1234567890123456789}`,
    `{"uid":"u1",${purchase},"tx_id":"t2","value":1e400}`,
    `{"uid":"u2","uid":"u3",${purchase},"tx_id":"t3"}`,
    `{"uid":"u4",${purchase},"tx_id":"t4","items":[{"item_id":"a","price":12345678901234567890}]}`,
    `{"uid":"u5",${purchase},"tx_id":"1234567890123456789","value":0.30000000000000000004,"items":[{"item_id":"{\\"a\\":1}"}]}`,
    `{"uid":"u6",${purchase},"tx_id":"t6","items":"[{\\"item_id\\":1234567890123456789}]"}`,
  ];
  const sent = await given("track_events", "events.ndjson", `${lines.join("\n")}\n`);
  expect(sent.counts).toMatchObject({ items: 6, failed: 4 });
  expect(sent.text).toMatch(/the number "1234567890123456789" is too large or too small to be kept exactly/);
  expect(sent.text).toContain("write it as a text in quotes");
  expect(sent.text).toContain('"1e400"');
  expect(sent.text).toContain('the row has the field "uid" twice');
  const seen = await call(client, "inspect_events", { uids: ["u1", "u2", "u3", "u4", "u5", "u6"], limit: 20 });
  expect(seen.text).not.toContain("12345678901234567000");
  expect(seen.text).not.toContain("1234567890123456800");
  const cells = 'uid,eventName,currency,tx_id,items\nu7,purchase,KRW,t7,"[{""item_id"":1234567890123456789}]"\n';
  expect((await given("track_events", "events.csv", cells)).counts).toMatchObject({ items: 1, failed: 1 });
});

test("options of a JSON file with a field twice fail", async () => {
  const { given } = await withFiles();
  const made = await given(
    "bulk_add_options",
    "two.json",
    '[{"name":"Aa","name":"Bb"},{"name":"Cc","contexts":["c"]}]',
  );
  expect(made.counts).toMatchObject({ succeeded: 1, failed: 1 });
  expect(made.text).toContain('the row has the field "name" twice');
});

test("a JSON text in the arguments keeps all digits of its numbers, or is refused", async () => {
  const { client } = await withFiles();
  const events = '[{"uid":"u1","eventName":"purchase","currency":"KRW","tx_id":1234567890123456789}]';
  const sent = await call(client, "track_events", { events });
  expect(sent.text).toContain('"1234567890123456789", which cannot be kept exactly');
});

test("a row whose ID and name do not agree fails alone", async () => {
  const { client, targetingId, given, contents } = await withList();
  const items = [{ name: "Aa", contexts: ["a1", "a2"] }, { name: "Bb" }];
  const { results } = await call(client, "bulk_add_options", { targetingId, items });
  const [aa, bb] = results.map(({ _id }) => _id);
  const wrong = ["Aa,,n1,Add", `Bb,${aa},oops,Add`, `Aa,${aa},a2,Remove`, `Bb,${aa},n1,Remove`, `Bb,${bb},b1,Add`];
  const text = `Option,Option ID,Context ID,Context Action\n${wrong.join("\n")}\n`;
  const changed = await given("update_contexts", "wrong.csv", text);
  expect(changed.counts).toMatchObject({ succeeded: 3, failed: 2 });
  expect(changed.text).toContain("2 lines (3, 5)");
  expect(await contents()).toContain('"contexts":["a1","n1"]');
  expect(await contents()).toContain('"contexts":["b1"]');
});

test("rows with an ID and a name change nothing if the name cannot be compared", async () => {
  const { client, sandbox, targetingId, given, contents } = await withList();
  const { results } = await call(client, "bulk_add_options", { targetingId, items: [{ name: "Aa" }] });
  await sandbox.control("POST", "/faults", { faults: [{ on: "read", kind: "status", status: 403, times: 100 }] });
  const sheet = `Option,Option ID,Context ID\nBb,${results[0]?._id},oops\n`;
  expect((await given("update_contexts", "unread.csv", sheet)).text).toContain("nothing was changed");
  await sandbox.control("DELETE", "/faults");
  expect(await contents()).not.toContain("oops");
});

test("a name that only one row of an option gives counts for it, wherever the row is", async () => {
  const { client, targetingId, given, contents } = await withList();
  const { results } = await call(client, "bulk_add_options", { targetingId, items: [{ name: "Bb" }] });
  const id = results[0]?._id;
  const added = await given(
    "update_contexts",
    "first.csv",
    `Option,Option ID,Context ID\nBb,${id},n2\n,${id},n3\nNews,${id},n4\n,${id},n5\n`,
  );
  expect(added.counts).toMatchObject({ failed: 1 });
  expect(added.text).toMatch(/line 4 "\w+": the row names the option/);
  expect(await contents()).toContain('"contexts":["n2","n3","n5"]');
  const head = "Option,Option ID,Context ID,Context Action\n";
  const set = await given("update_contexts", "set.csv", `${head},${id},s1,Set\nBb,${id},s2,Set\n`);
  expect(set.counts).toMatchObject({ succeeded: 1, failed: 0 });
  expect(await contents()).toContain('"contexts":["s1","s2"]');
  const spoilt = await given("update_contexts", "spoilt.csv", `${head}Bb,${id},t1,Set\nNews,${id},t2,Set\n`);
  expect(spoilt.counts).toMatchObject({ succeeded: 0, failed: 2 });
  expect(await contents()).toContain('"contexts":["s1","s2"]');
});

test.each(["contexts", "contextId", "Context IDs", "keyword"])(
  "columns leaves out the Context IDs, by the name of the column as well: %s",
  async (left) => {
    const { client, targetingId, given } = await withFiles();
    const rows = "Option,Context IDs,Note\nAa,a1|a2,x\n";
    const columns = { [left]: "" };
    const made = await given("bulk_add_options", "plain.csv", rows, { columns });
    expect(made.counts).toMatchObject({ succeeded: 1 });
    expect(made.text).toMatch(/2 columns ignored: "Context IDs", "Note"/);
    expect(made.text).not.toMatch(/NO COLUMN OF CONTEXT IDS|give columns|undo_run/);
    expect((await call(client, "list_options", { targetingId })).text).not.toContain("2 Context IDs");
  },
);

test("a column that columns leaves out although the file has none is an error", async () => {
  const { given } = await withFiles();
  const made = await given("bulk_add_options", "a.csv", "Option,Keyword,Article ID\nAa,a1,x\n", {
    columns: { "article id": "", Date: "" },
  });
  expect(made.error?.message).toContain('columns leaves out "Date"');
  const kept = await given("bulk_add_options", "a.csv", "Option,Keyword,Article ID\nAa,a1,x\n", {
    columns: { "article id": "" },
  });
  expect(kept.counts).toMatchObject({ succeeded: 1 });
  expect(kept.text).toContain('1 column ignored: "Article ID"');
});

test.each([
  ["bulk_add_options", { parentName: "grp" }],
  ["bulk_add_options", { contexts: "ids A, ids B" }],
  ["update_contexts", { op: "What to do", contexts: "ids" }],
  ["plan_targeting", { action: "What to do" }],
])("%s names the headings that columns %j misses, and sends nothing", async (tool, columns) => {
  const { given } = await withFiles();
  const made = await given(tool, "load.csv", "name,ids,what\nBrand 8,zzz,remove\n", { columns });
  const [missed = ""] = Object.values(columns);
  expect(made.text).toContain(`the argument columns names ${JSON.stringify(missed)}, but the header on line 1`);
  expect(made.text).toContain('Its headings: "name", "ids", "what".');
});

test("a second table with other columns in the same sheet is refused before anything is sent", async () => {
  const { client, targetingId, given } = await withFiles();
  const first = ["Option,Context IDs,", "Alpha one,x1|x2,", "Alpha two,x3,", ",,"];
  const second = ["Option,Group,Context IDs", "Beta one,Beta,y1", "Beta two,Beta,y2"];
  const made = await given("bulk_add_options", "two.csv", `${[...first, ...second].join("\n")}\n`);
  expect(made.error?.message).toContain(
    'line 5 of the file is the header of another table ("Option", "Group", "Context IDs")',
  );
  expect(made.error?.message).toContain("nothing was sent");
  const moved = [...first, ",Option,Context IDs", ",Beta one,y1"].join("\n");
  expect((await given("bulk_add_options", "moved.csv", moved)).error?.message).toContain("line 5");
  const noted = "Option,Group,Context IDs\nAa,,a1\n\nOption,Note,Context IDs\nBb,new,b1\n";
  expect((await given("bulk_add_options", "noted.csv", noted)).error?.message).toContain("line 4");
  expect((await call(client, "list_options", { targetingId })).text).not.toContain("Alpha");
  const same = [...first, "Option,Context IDs,Note", "Gamma,z1,x"].join("\n");
  const repeated = await given("bulk_add_options", "same.csv", same);
  expect(repeated.counts).toMatchObject({ succeeded: 3, failed: 0 });
  expect(repeated.text).toContain("1 row skipped, equal to the header");
});

test("a zero byte in a file of UTF-8 is reported with its row", async () => {
  const { given } = await withFiles();
  const made = await given("bulk_add_options", "zero.csv", "Option,Context IDs\nAa,a\u00001\nBé,b1\n");
  expect(made.counts).toMatchObject({ succeeded: 0, failed: 2 });
  expect(made.text).toMatch(/line 2.* contains invisible characters \(U\+0000\)/s);
  const wide = Buffer.from("Option,Context IDs\nAa,a1\n", "utf16le");
  expect((await given("bulk_add_options", "wide.csv", wide)).counts).toMatchObject({ succeeded: 1 });
});

test("texts of a workbook that are formatted as text are what the person wrote", async () => {
  const { client, folder, targetingId, given, sandbox } = await withFiles();
  const names = ["Jan 24", "TRUE", "May-24"];
  const items = names.map((name) => ({ name, contexts: ["1-May", "FALSE", name] }));
  await call(client, "bulk_add_options", { targetingId, items });
  await call(client, "list_options", { targetingId, saveTo: "saved.xlsx" });
  const other = await sandbox.targeting("Other");
  const sheet = readFileSync(join(folder, "saved.xlsx"));
  const moved = await given("bulk_add_options", "moved.xlsx", sheet, { targetingId: other });
  expect(moved.counts).toMatchObject({ succeeded: 3, failed: 0 });
  const third = await sandbox.targeting("Third");
  const planned = await given("plan_targeting", "plan.xlsx", sheet, { targetingId: third, byName: true });
  expect(planned).toMatchObject({ status: "planned", counts: { items: 3 } });
  const changed = await given("update_contexts", "set.xlsx", sheet);
  expect(changed.counts).toMatchObject({ failed: 0 });
  const text = "Option,Context IDs\nTRUE,a1\nSun,1-May\n";
  expect((await given("bulk_add_options", "text.csv", text)).counts).toMatchObject({ failed: 2 });
});

test.each([",", ";"])(
  "a total with a label is skipped if it adds up, and an option called Total is kept (%s)",
  async (sign) => {
    const { client, targetingId, given } = await withFiles();
    const rows = [
      ...["Option,Context IDs,Clicks", "Red,r1,10", "Blue,b1,20", "Total Colors,,30", "Cat,c1,5", "Dog,d1,6"],
      ...["Animals Total,,11", "Total Care,t1,7", "Total Recall,,8", "Grand Total,,56"],
    ];
    const made = await given("bulk_add_options", "totals.csv", rows.join("\n").replaceAll(",", sign));
    expect(made.text).toContain("Lines 4, 7 and 10 skipped as rows of totals");
    expect(made.counts).toMatchObject({ succeeded: 6, failed: 0 });
    const kept = await given("bulk_add_options", "total.csv", "Option,Context ID\nShell,1\nTotal,1\n");
    expect(kept.counts).toMatchObject({ succeeded: 2 });
    expect((await call(client, "list_options", { targetingId })).text).toContain("8 options");
  },
);

test("a number such as 1.250 is read by the decimal commas of its column", async () => {
  const { client, given } = await withFiles();
  const rows = ["1.250,00", "12,5", "1.250"].map((value, at) => `comma-${at};purchase;t-${at};KRW;${value}`);
  const sent = await given("track_events", "values.csv", `uid;eventName;tx_id;currency;value\n${rows.join("\n")}\n`);
  expect(sent.counts).toMatchObject({ items: 3, failed: 0 });
  const seen = await call(client, "inspect_events", { uids: ["comma-2"], limit: 5 });
  expect(seen.text).not.toContain("1.250");
  const preview = await given("track_events", "alone.csv", `uid;eventName;tx_id;currency;value\n${rows[2]}\n`, {
    dryRun: true,
  });
  expect(preview.text).toContain('value "1.250"');
  const all = await given("track_events", "again.csv", `uid;eventName;tx_id;currency;value\n${rows.join("\n")}\n`, {
    dryRun: true,
  });
  expect(all.text).toContain("value 1250");
  expect(all.text).not.toContain('"1.250"');
});

test("with many reasons in one answer, the longest still says what to do", async () => {
  const { given } = await withFiles();
  const rows = (count: number, row: (at: number) => string) => Array.from({ length: count }, (_, at) => row(at));
  const groups = ["수영복 없음", "등산화 없음", "텐트 없음", "캠핑 의자", "낚시 도구", "자전거", "스키", "보드"];
  const lines = [
    ...rows(10, (at) => `의류 그룹 ${at},,g-${at}`),
    ...rows(240, (at) => `옵션 ${at},${groups[at % 8]} ${at % 8},c-${at}`),
    ...rows(30, (at) => `나쁜_이름_${at},,e-${at}`),
    ...rows(9, (at) => `${"아주긴이름".repeat(8)} ${at},,f-${at}`),
    ...rows(9, (at) => `오류 ${at},,4.01E+12`),
    ...rows(9, (at) => `중복 이름,,h-${at}`),
    ...rows(9, (at) => `숨은 ${at},,l-${at}\u200B`),
    ...rows(9, (at) => `#REF!,,m-${at}`),
    ...rows(9, (at) => `일본어 名前 ${at},,i-${at}`),
    ...rows(9, () => "a,,j"),
    ...rows(9, (at) => `공백  ok?${at},,k-${at}`),
    ...rows(9, (at) => `형 ${at},없는 그룹 ${at},n-${at}`),
  ];
  const { text } = await given("bulk_add_options", "many.csv", `Option,Group,Context IDs\n${lines.join("\n")}\n`);
  const [missing] = text.split("\n").filter((line) => line.startsWith("NAME_NOT_FOUND, 249 lines"));
  expect(missing).toContain('the targeting has no option group named "수영복 없음 0"');
  expect(missing).toContain("To create this group, add to the same call an item or row with its name");
});
