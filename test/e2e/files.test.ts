import { mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { formatOf, openBytes } from "../../src/files/open-file.ts";
import { writtenSheet } from "../../src/files/save-file.ts";
import { sheetRows } from "../../src/files/sheet-rows.ts";
import type { WrittenRow } from "../../src/files/written-rows.ts";
import { bytesOf } from "../../src/platform/held-folder.ts";
import { CLIENTS, call, textOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { COMMAND, cleanEnvironment, OPENING, runCommand, startCommand, toolCall } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

async function startFresh() {
  const sandbox = await startService();
  const folder = await realpath(await mkdtemp(join(tmpdir(), "targeting-files-")));
  const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const env = cleanEnvironment({
    TARGETING_MCP_SANDBOX_URL: sandbox.url,
    TARGETING_MCP_ALLOWED_DIRS: folder,
    TARGETING_MCP_STATE_DIR: stateDir,
    TARGETING_MCP_LOG_LEVEL: "silent",
  });
  return {
    sandbox,
    folder,
    stateDir,
    env,
    client: await CLIENTS["2025 client"]({ args: [COMMAND], env }),
    write: (name: string, content: string | Uint8Array) => writeFile(join(folder, name), content),
    read: (name: string) => readFile(join(folder, name), "utf8"),
  };
}

const shared = perFile(startFresh);

/** Returns the server that all tests share, with an empty sandbox and an empty folder. */
async function service() {
  const started = await shared();
  await started.sandbox.control("POST", "/reset", {});
  for (const name of await readdir(started.folder)) await rm(join(started.folder, name), { recursive: true });
  return started;
}

/** Returns all options of a targeting with their Context IDs, as `list_options` saves them, but without IDs. */
async function contentsOf(
  { client, read }: Awaited<ReturnType<typeof service>>,
  targetingId: string,
  name: string,
): Promise<string> {
  await call(client, "list_options", { targetingId, saveTo: name });
  // Without their IDs, the options of two targetings can be compared.
  return (await read(name)).replaceAll(/"_id":"\w+",/g, "");
}

const FILE = [
  "name,contextId,parentName,type",
  "Ball games,,,collection",
  'Football,"goal, golden",Ball games,',
  "Running,shoe|sole,,",
  "Football,offside,Ball games,",
  "Empty,,,",
].join("\n");

test("a CSV file is imported, saved, and imported again elsewhere", async () => {
  const given = await service();
  const { client, sandbox, write } = given;
  const [one, two, three] = [
    await sandbox.targeting("One"),
    await sandbox.targeting("Two"),
    await sandbox.targeting("Three"),
  ];
  await write("options.csv", FILE);
  const made = await call(client, "bulk_add_options", { targetingId: one, file: "options.csv" });
  expect(made).toMatchObject({ status: "succeeded", counts: { items: 4, succeeded: 4 } });
  const saved = await call(client, "list_options", { targetingId: one, saveTo: "saved.csv" });
  expect(saved).toMatchObject({ savedTo: join(given.folder, "saved.csv"), counts: { options: 4, contextIds: 3 } });
  await call(client, "bulk_add_options", { targetingId: two, file: "saved.csv" });
  const ndjson = await contentsOf(given, one, "one.ndjson");
  expect(await contentsOf(given, two, "two.ndjson")).toBe(ndjson);
  await call(client, "bulk_add_options", { targetingId: three, file: join(given.folder, "two.ndjson") });
  expect(await contentsOf(given, three, "three.ndjson")).toBe(ndjson);
  expect(ndjson.split("\n").map((line) => line && JSON.parse(line))).toMatchObject([
    { name: "Ball games", type: "collection", contexts: [] },
    { name: "Football", parentName: "Ball games", contexts: ["goal, golden", "offside"] },
    { name: "Running", type: "atomic", contexts: ["shoe|sole"] },
    { name: "Empty", contexts: [] },
    "",
  ]);
  const again = await call(client, "list_options", { targetingId: one, saveTo: "saved.csv" });
  expect(again.error?.message).toContain("exists already");
});

test("a file as Korean Excel saves it", async () => {
  const given = await service();
  const targetingId = await given.sandbox.targeting("Korean");
  const bytes = [...Buffer.from("name,contextId\r\n"), 0xb0, 0xa1, 0x94, 0xee, ...Buffer.from(",c1\r\n")];
  await given.write("korean.csv", Uint8Array.from(bytes));
  const wrong = { targetingId, file: "korean.csv", encoding: "utf-8" };
  expect((await call(given.client, "bulk_add_options", wrong)).error?.message).toContain("line 2");
  const made = await given.client.callTool("bulk_add_options", { targetingId, file: "korean.csv" });
  expect(made.structuredContent).toMatchObject({ status: "succeeded" });
  expect(textOf(made)).toContain("Read as EUC-KR (CP949), separated by commas");
  expect(await contentsOf(given, targetingId, "saved.ndjson")).toContain('"가뷁"');
});

test("rows that fail are told by row and line, and are read again once they are mended", async () => {
  const given = await service();
  const { client, sandbox, write } = given;
  const targetingId = await sandbox.targeting("One");
  await sandbox.options(targetingId, [{ name: "Taken" }]);
  await write("options.csv", "name,contextId\nNews,1.23E+15\n\nTaken,a\nGood,b\nTaken,c\nBad_name,d\n");
  const mixed = await call(client, "bulk_add_options", { targetingId, file: "options.csv" });
  expect(mixed).toMatchObject({ status: "partial", counts: { items: 4, succeeded: 1, failed: 3 } });
  expect(mixed.failures.map(({ indexes, lines }) => [...indexes, ...(lines ?? [])]).sort()).toEqual([
    [0, 2],
    [1, 4],
    [4, 7],
  ]);
  const rejects = await readFile(join(given.stateDir, "runs", mixed.runId ?? "", "rejects"), "utf8");
  expect(rejects.split("\r\n").map((line) => line.split(",").slice(0, 2).join(","))).toEqual([
    ...["\uFEFFname,contextId", "News,1.23E+15", "Taken,a", "Taken,c", "Bad_name,d", ""],
  ]);
  expect(rejects).toContain("scientific notation");
  await write(
    "mended.csv",
    rejects.replace("1.23E+15", "1230000000000000").replaceAll("Taken,", "Free,").replace("Bad_name", "Good name"),
  );
  const mended = await call(client, "bulk_add_options", { targetingId, file: "mended.csv" });
  expect(mended).toMatchObject({ status: "succeeded", counts: { items: 3, succeeded: 3 } });
  expect(mended.rejectsUri).toBeUndefined();
});

test("rejects of an NDJSON file are a resource", async () => {
  const { sandbox, write, env } = await service();
  const targetingId = await sandbox.targeting("One");
  await write("options.ndjson", '{"name":"Good"}\n{"name":"x"}\n{"name":"News","colour":"red"}\n');
  const server = startCommand([], env);
  for (const message of OPENING) server.send(message);
  server.send(toolCall("add", "bulk_add_options", { targetingId, file: "options.ndjson" }));
  const rejects = z.looseObject({ rejectsUri: z.string() });
  const result = z.looseObject({ result: z.looseObject({ structuredContent: rejects }) });
  const { rejectsUri } = result.parse(await server.answer("add")).result.structuredContent;
  server.send({ jsonrpc: "2.0", id: "read", method: "resources/read", params: { uri: rejectsUri } });
  const content = z.looseObject({ result: z.looseObject({ contents: z.array(z.looseObject({ text: z.string() })) }) });
  const [only] = content.parse(await server.answer("read")).result.contents;
  expect(
    only?.text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { name: "x", reason: expect.stringContaining("INVALID_NAME") },
    { name: "News", colour: "red", reason: expect.stringContaining("Valid fields: name, contexts") },
  ]);
});

test("changes come from a file, and go back to what get_option saved", async () => {
  const given = await service();
  const { client, sandbox, write } = given;
  const targetingId = await sandbox.targeting("One");
  const [optionId = "", other = ""] = await sandbox.options(targetingId, [
    { name: "News", contexts: ["a", "b"] },
    { name: "Sport", contexts: ["c"] },
  ]);
  const saved = await call(client, "get_option", { optionId, saveTo: "news.csv" });
  expect(saved).toMatchObject({ savedTo: join(given.folder, "news.csv"), counts: { contextIds: 2 } });
  await call(client, "get_option", { optionId: other, saveTo: "sport.ndjson" });
  const before = await contentsOf(given, targetingId, "before.ndjson");
  await write("changes.csv", `_id,name,op,contextId\n${optionId},,add,x\n${optionId},,remove,a\n,Sport,add,y\n`);
  const changed = await call(client, "update_contexts", { targetingId, file: "changes.csv" });
  expect(changed).toMatchObject({ status: "succeeded", counts: { items: 3, succeeded: 3 } });
  expect(await contentsOf(given, targetingId, "changed.ndjson")).toContain('["b","x"]');
  for (const file of ["news.csv", "sport.ndjson"]) {
    expect((await call(client, "update_contexts", { file })).status).toBe("succeeded");
  }
  const sorted = (text: string) =>
    text.replaceAll(/\["(\w)","(\w)"\]/g, (_, one: string, two: string) => [one, two].sort().join());
  expect(sorted(await contentsOf(given, targetingId, "after.ndjson"))).toBe(sorted(before));
});

test("a row whose ID and name do not agree takes nothing from the option", async () => {
  const given = await service();
  const { client, sandbox, write } = given;
  const targetingId = await sandbox.targeting("One");
  const [news = "", sport = ""] = await sandbox.options(targetingId, [
    { name: "News", contexts: ["a", "b"] },
    { name: "Sport", contexts: ["c", "d"] },
  ]);
  await write("set.csv", `Option ID,Option,Context Action,Context IDs\n${news},Sport,Set,x\n${sport},Sport,Remove,c\n`);
  const changed = await client.callTool("update_contexts", { file: "set.csv" });
  expect(changed.structuredContent).toMatchObject({ status: "partial", counts: { succeeded: 1, failed: 1 } });
  expect(textOf(changed)).toContain('"Sport", but its name is "News"');
  const after = await contentsOf(given, targetingId, "after.ndjson");
  expect(after).toContain('["a","b"]');
  expect(after).toContain('["d"]');
});

test("what was deleted or taken away can be given back as a file", async () => {
  const given = await service();
  const { client, sandbox, write, stateDir } = given;
  const targetingId = await sandbox.targeting("One");
  await write("options.csv", FILE);
  await call(client, "bulk_add_options", { targetingId, file: "options.csv" });
  const before = await contentsOf(given, targetingId, "before.ndjson");
  const asked = await call(client, "delete_targeting", { ids: [targetingId] });
  const gone = await call(client, "delete_targeting", { confirmation: asked.confirmation.token });
  expect(gone.status).toBe("succeeded");
  await write("removed.ndjson", await readFile(join(stateDir, "runs", gone.runId ?? "", "removed.ndjson")));
  const other = await sandbox.targeting("Two");
  await call(client, "bulk_add_options", { targetingId: other, file: "removed.ndjson" });
  expect(await contentsOf(given, other, "after.ndjson")).toBe(before);

  await call(client, "delete_options", { targetingId: other, names: ["Ball games", "Football", "Running"] });
  const names = ["Ball games", "Football", "Running", "Empty"];
  const question = await call(client, "delete_options", { targetingId: other, names });
  const deleted = await call(client, "delete_options", { confirmation: question.confirmation.token });
  await write("options-removed.ndjson", await readFile(join(stateDir, "runs", deleted.runId ?? "", "removed.ndjson")));
  await call(client, "bulk_add_options", { targetingId: other, file: "options-removed.ndjson" });
  const lines = (text: string) => text.trim().split("\n").sort();
  expect(lines(await contentsOf(given, other, "restored.ndjson"))).toEqual(lines(before));
});

test("a file that changes while a person decides: what was planned is done", async () => {
  const { client, sandbox, write } = await service();
  const targetingId = await sandbox.targeting("One");
  const [optionId = ""] = await sandbox.options(targetingId, [{ name: "News", contexts: ["a", "b"] }]);
  await write("changes.csv", `_id,op,contexts\n${optionId},remove,a|b\n`);
  const asked = await call(client, "update_contexts", { file: "changes.csv" });
  expect(asked.status).toBe("needs_confirmation");
  await write("changes.csv", `_id,op,contexts\n${optionId},add,z\n`);
  const beside = await call(client, "update_contexts", {
    file: "changes.csv",
    confirmation: asked.confirmation.token,
  });
  expect(beside.error?.message).toContain("differ from the planned ones");
  const done = await call(client, "update_contexts", { confirmation: asked.confirmation.token });
  expect(done).toMatchObject({ status: "succeeded", counts: { items: 1, succeeded: 1 } });
  const left = await client.callTool("get_option", { optionId });
  expect(left.structuredContent).toMatchObject({ contexts: [] });
});

test("a dry run reads the file, and is no run that lists show", async () => {
  const { client, sandbox, write } = await service();
  const targetingId = await sandbox.targeting("One");
  await write("options.csv", FILE);
  const planned = await call(client, "bulk_add_options", { targetingId, file: "options.csv", dryRun: true });
  expect(planned).toMatchObject({ status: "planned", counts: { items: 4, pending: 4 } });
  expect(textOf(await client.callTool("get_run", {}))).not.toContain(String(planned.runId));
});

test("file beside items, unknown columns, and files of no allowed folder are refused with what to do", async () => {
  const { client, sandbox, write, folder, env } = await service();
  const targetingId = await sandbox.targeting("One");
  await write("options.csv", "title,colour\nNews,red\n");
  const said = async (args: Record<string, unknown>, by = client) =>
    textOf(await by.callTool("bulk_add_options", { targetingId, ...args }));
  expect(await said({ file: "options.csv", items: [{ name: "News" }] })).toContain("file and items were both given");
  expect(await said({})).toContain("items are missing");
  expect(await said({ file: "options.csv" })).toContain("Valid columns: name, contextId");
  await write("events.csv", "uid,eventName,order_id,colour\nu1,purchase,T-1,red\n");
  const refused = textOf(await client.callTool("track_events", { file: "events.csv" }));
  expect(refused).toContain('unknown columns "order_id", "colour" on line 1 of the file');
  expect(refused).toContain(
    '"order_id": did you mean tx_id? If so, give columns {"tx_id":"order_id"}. To leave them out, give columns {"order_id":"","colour":""}. Valid columns: uid',
  );
  expect(await said({ file: "option.csv" })).toContain('"options.csv"');
  expect(await said({ file: "/etc/passwd" })).toContain(folder);
  expect(await said({ file: "options.csv", encoding: "utf-7" })).toContain('"euc-kr"');
  const { TARGETING_MCP_ALLOWED_DIRS: _, ...without } = env;
  const bare = await CLIENTS["2025 client"]({ args: [COMMAND], env: without });
  expect(await said({ file: "options.csv" }, bare)).toContain("TARGETING_MCP_ALLOWED_DIRS");
  const listing = await bare.callTool("list_options", { targetingId, saveTo: "x.csv" });
  expect(textOf(listing)).toContain("TARGETING_MCP_ALLOWED_DIRS");
});

test("lists without a header: Context IDs of files are added, removed and set", async () => {
  const given = await service();
  const { client, sandbox, write, folder } = given;
  const targetingId = await sandbox.targeting("One");
  await sandbox.options(targetingId, [{ name: "News", contexts: ["a", "b"] }]);
  const change = (item: object, more: object = {}) =>
    call(client, "update_contexts", { targetingId, items: [{ name: "News", ...item }], ...more });
  await write("more.txt", '\uFEFFc\r\n\r\n 기사, 1 \r\n"d, e"\r\nc\r\n');
  await write("korean.txt", Uint8Array.from([0xb0, 0xa1, 0x0a]));
  expect(await change({ add: ["x"], addFile: "more.txt" })).toMatchObject({ status: "succeeded" });
  expect(await change({ addFile: "korean.txt", removeFile: "more.txt" })).toMatchObject({ status: "succeeded" });
  expect(await contentsOf(given, targetingId, "one.ndjson")).toContain('["a","b","x","가"]');
  await write("damaged.txt", "a\n1.23E+15\n#N/A\n");
  const refused = await change({ setFile: "damaged.txt" });
  expect(refused.error?.message).toContain('line 2: "1.23E+15" was turned into scientific notation');
  expect(refused.error?.message).toContain("line 3");
  await write("empty.txt", "\n\n");
  expect((await change({ setFile: "empty.txt" })).error?.message).toContain("contains no Context ID");
  expect((await change({ addFile: "/etc/passwd" })).error?.remedy).toContain(folder);
  await write("many.txt", Array.from({ length: 2_000 }, (_, at) => `article-${at}\n`).join(""));
  expect(await change({ setFile: "many.txt" }, { dryRun: true })).toMatchObject({ status: "planned" });
  expect((await change({ setFile: "many.txt" })).status).toBe("succeeded");
  expect(await contentsOf(given, targetingId, "many.ndjson")).toContain('"article-1999"');
});

test("one sheet goes through every tool, and what one tool saves the others read", async () => {
  const given = await service();
  const { client, sandbox, write, read } = given;
  const targetingId = await sandbox.targeting("One");
  const sheet = [
    ...["sep=;", "Spring;;;;;", "Action;Option;Group;Is Group;Context Action;Context IDs;Note"],
    ...["Add;Ball games;;yes;;[];x", ";Football;Ball games;;;goal|00123;x", "Pause;Golf;;;;g;x"],
    ...["Remove;Tennis;;;;t;x", ";Running;;;;run;x"],
  ].join("\r\n");
  await write("sheet.txt", sheet);
  const made = await client.callTool("bulk_add_options", { targetingId, file: "sheet.txt" });
  expect(made.structuredContent).toMatchObject({ status: "partial", counts: { items: 5, succeeded: 3, failed: 2 } });
  expect(textOf(made)).toContain(
    "Read as UTF-8, separated by semicolons, with the header on line 3; 1 row above it skipped",
  );
  expect(textOf(made)).toContain('1 column ignored: "Note"');
  expect(textOf(made)).toContain("Action is Remove, which this tool does not support");
  await call(client, "list_options", { targetingId, saveTo: "saved.csv" });
  const again = await client.callTool("plan_targeting", { targetingId, file: "saved.csv" });
  expect(again.structuredContent).toMatchObject({ status: "planned", counts: { items: 0 } });
  const added = await client.callTool("update_contexts", { targetingId, file: "saved.csv" });
  expect(added.structuredContent).toMatchObject({ status: "succeeded", counts: { items: 3 } });
  const other = await sandbox.targeting("Two");
  const copied = await client.callTool("bulk_add_options", { targetingId: other, file: "saved.csv" });
  expect(copied.structuredContent).toMatchObject({ status: "succeeded", counts: { items: 3 } });
  // In a saved sheet, the column Action can say which options are deleted.
  const [head = "", ...rows] = (await read("saved.csv")).replace("\uFEFF", "").trim().split("\r\n");
  const actions = rows.map((row) => (row.includes("Running") ? `Remove,${row}` : `,${row}`));
  await write("saved.csv", `Action,${head}\n${actions.join("\n")}\n`);
  const removal = await client.callTool("plan_targeting", { targetingId, file: "saved.csv" });
  expect(removal.structuredContent).toMatchObject({ changes: { deleted: { count: 1, names: ["Running"] } } });
  const both = await client.callTool("plan_targeting", { targetingId, file: "saved.csv", prune: true });
  expect(textOf(both)).toContain("prune cannot be combined with a filled column Action");
  await write("mapped.tsv", "옵션 명칭\t기사\nCycling\tbike\n");
  const unmapped = await call(client, "bulk_add_options", { targetingId, file: "mapped.tsv" });
  expect(unmapped.error?.message).toContain('its header was read from line 1: "옵션 명칭", "기사"');
  expect(unmapped.error?.remedy).toContain('columns {"name":"옵션 명칭"}');
  const columns = { name: "옵션 명칭", contextId: "기사" };
  const mapped = await client.callTool("bulk_add_options", { targetingId, file: "mapped.tsv", columns });
  expect(mapped.structuredContent).toMatchObject({ status: "succeeded", counts: { items: 1 } });
  expect(await contentsOf(given, targetingId, "after.ndjson")).toContain('"bike"');
});

/** Returns the rows of a saved sheet as objects with the headings as keys. */
async function sheetRowsOf(path: string): Promise<readonly Readonly<Record<string, string>>[]> {
  const bytes = bytesOf(path);
  const { file } = await openBytes(bytes, { path, format: formatOf(path) ?? "csv", maxLineBytes: undefined }, {}, ANY);
  const rows: Record<string, string>[] = [];
  let headings: readonly string[] = [];
  const read = sheetRows({ bytes, file, shape: ANY }, ({ cells }) => {
    headings = cells;
  });
  for await (const batch of read) {
    for (const { cells } of batch)
      rows.push(Object.fromEntries(headings.map((heading, at) => [heading, cells[at] ?? ""])));
  }
  return rows;
}

async function writeSheet(path: string, rows: AsyncIterable<WrittenRow>): Promise<void> {
  const pieces: (string | Uint8Array)[] = [];
  for await (const piece of writtenSheet({ name: "Prices", above: 0, rows }, { format: "xlsx" })) pieces.push(piece);
  await writeFile(path, Buffer.concat(pieces.map((piece) => Buffer.from(piece))));
}

const ANY = { columns: ["name", "contexts", "contextId", "_id"], required: [["name"]] };

test("a workbook comes back with results, and fixed rows alone are tried when it is given again", async () => {
  const given = await service();
  const { client, sandbox, folder } = given;
  const targetingId = await sandbox.targeting("Prices");
  const HEADER = { cells: ["Option", "Context IDs", "Owner", "Group"] };
  const rows = [
    ["Boots", "b1|b2", "Ann", "Shoes"],
    ["Bad_name", "b3", "Ben", "Shoes"],
    ["Shoes", "", "Cho", ""],
    ["Sandals", "1.23E+15", "Dan", ""],
  ];
  const sheet = async function* () {
    yield { cells: ["Spring price list"] };
    yield HEADER;
    for (const cells of rows) yield { cells };
  };
  await writeSheet(join(folder, "prices.xlsx"), sheet());
  const made = await call(client, "bulk_add_options", { targetingId, file: "prices.xlsx" });
  expect(made).toMatchObject({ status: "partial", counts: { items: 4, failed: 2, succeeded: 2 } });
  const saved = await client.callTool("get_run", { runId: made.runId, saveTo: "returned.xlsx" });
  expect(textOf(saved)).toContain("returned.xlsx");
  expect(textOf(saved)).toContain("Rows: 2 done, 2 failed.");
  const returned = await sheetRowsOf(join(folder, "returned.xlsx"));
  const done = { Result: "Done", Problem: "", "How to fix": "", Action: "Add", "Context Action": "Add" };
  expect(returned).toMatchObject([
    { ...done, Option: "Boots", "Context IDs": "b1|b2", Owner: "Ann", Group: "Shoes" },
    {
      Option: "Bad_name",
      Owner: "Ben",
      Result: "Failed",
      "Option ID": "",
      Problem: expect.stringContaining("not allowed"),
    },
    { ...done, Option: "Shoes", "Context IDs": "" },
    { Option: "Sandals", Result: "Failed", Problem: expect.stringContaining("scientific notation") },
  ]);
  const ids = returned.map((row) => row["Option ID"]);
  expect(ids.map((id) => id?.length)).toEqual([26, 0, 26, 0]);

  // First, the failed rows are fixed. Then a row that was already done is edited as well.
  const again = (fixes: Readonly<Record<number, Record<string, string>>>, name: string) =>
    writeSheet(
      join(folder, name),
      (async function* () {
        yield { cells: Object.keys(returned[0] ?? {}) };
        for (const [at, row] of returned.entries()) yield { cells: Object.values({ ...row, ...fixes[at] }) };
      })(),
    );
  await again({ 1: { Option: "Good name" }, 3: { "Context IDs": "1230000000000000" } }, "fixed.xlsx");
  const fixed = await call(client, "bulk_add_options", { targetingId, file: "fixed.xlsx" });
  expect(fixed).toMatchObject({ status: "succeeded", counts: { items: 4, alreadyDone: 2, succeeded: 2 } });
  await again({ 0: { "Context IDs": "b1|b9" }, 1: { Option: "New name" } }, "edited.xlsx");
  const edited = await client.callTool("bulk_add_options", { targetingId, file: "edited.xlsx" });
  expect(edited.structuredContent).toMatchObject({ counts: { alreadyDone: 1, failed: 2, succeeded: 1 } });
  expect(textOf(edited)).toContain("differs in Context IDs");
  expect(textOf(edited)).toContain("Use plan_targeting to edit options");
  const editedRun = z.object({ runId: z.string() }).parse(edited.structuredContent).runId;
  await client.callTool("get_run", { runId: editedRun, saveTo: "edited-results.xlsx" });
  // People who do not know the tools read the sheet.
  expect((await sheetRowsOf(join(folder, "edited-results.xlsx"))).map((row) => row["How to fix"])).toContain(
    "To edit options, ask the agent to plan this sheet.",
  );
});

test("rows with results whose options are in another group stay done", async () => {
  const { client, sandbox, write } = await service();
  const targetingId = await sandbox.targeting("Brands");
  await sandbox.options(targetingId, [
    { name: "Shoes", children: [{ name: "Boots" }] },
    { name: "Bags", contexts: ["a"] },
  ]);
  await write("brands.csv", "name,parentName,contextId\nBags,Shoes,b\nBad_1,Shoes,x\n");
  const args = { targetingId, onExisting: "addContexts" };
  const made = await call(client, "bulk_add_options", { ...args, file: "brands.csv" });
  await call(client, "get_run", { runId: made.runId, saveTo: "returned.csv" });
  const again = await client.callTool("bulk_add_options", { ...args, file: "returned.csv" });
  expect(again.structuredContent).toMatchObject({ counts: { items: 2, alreadyDone: 1, failed: 1 } });
  expect(textOf(again)).toContain("is not in the group that was given for it");
  const failing = await client.callTool("bulk_add_options", { targetingId, file: "returned.csv" });
  expect(textOf(failing)).toContain("differs in Group");
  expect(textOf(failing)).not.toContain("To add only Context IDs");
});

test("a dry run of a sheet with many results is applied as it was shown, in whatever order its options are read", async () => {
  const { client, sandbox, write } = await service();
  const targetingId = await sandbox.targeting("Brands");
  const rows = Array.from({ length: 60 }, (_, at) => `Option ${at},${at}`);
  await write("brands.csv", ["name,contextId", ...rows, "Bad_1,x", "Bad_2,y"].join("\n"));
  const { runId } = await call(client, "bulk_add_options", { targetingId, file: "brands.csv" });
  await call(client, "get_run", { runId, saveTo: "brands.xlsx" });
  // For the second plan, the service answers the reads in another order. The plan must be the same nevertheless.
  await sandbox.control("POST", "/faults", { faults: [{ kind: "slow", delayMs: 200, on: "getOption", nth: 65 }] });
  const shown = await call(client, "bulk_add_options", { targetingId, file: "brands.xlsx", dryRun: true });
  const applied = await client.callTool("apply_plan", { runId: shown.runId });
  expect(textOf(applied)).not.toContain("has changed");
  expect(applied.structuredContent).toMatchObject({ counts: { items: 62, alreadyDone: 60, failed: 2 } });
});

test("a dry run of a file names the first options that exist, and says what would become of them", async () => {
  const { client, sandbox, write } = await service();
  const targetingId = await sandbox.targeting("Brands");
  await sandbox.options(targetingId, [{ name: "Contoso" }, { name: "Fabrikam" }, { name: "Northwind" }]);
  await write("brands.csv", "Option,Context IDs\nContoso,a\nAdatum,b\nFabrikam,c\nNorthwind,d\n");
  const planned = (onExisting: string) =>
    call(client, "bulk_add_options", { targetingId, file: "brands.csv", onExisting, dryRun: true });
  const [failing, skipping, adding] = [await planned("fail"), await planned("skip"), await planned("addContexts")];
  expect(failing.text).toContain(
    '3 lines (2, 4-5) "Contoso", "Fabrikam", "Northwind": line 2: an option with this name exists',
  );
  expect(skipping.text).toMatch(/3 lines \(2, 4-5\) "Contoso" \w{26}, "Fabrikam" \w{26}, "Northwind" \w{26}, skipped/);
  expect(adding.text).toContain("Would create 1 of 4 options, add Context IDs to 3 that exist.");
  const { text } = await call(client, "get_run", { runId: adding.runId });
  expect(text).toContain("Would create 1 of 4 options, add Context IDs to 3 that exist.");
  // A new option with more Context IDs than one request can have gets the rest of them in another request.
  const contexts = Array.from({ length: 10_001 }, (_, at) => `c${at}`);
  await write("large.ndjson", `${JSON.stringify({ name: "Large", contexts })}\n`);
  const large = await call(client, "bulk_add_options", { targetingId, file: "large.ndjson", dryRun: true });
  expect(large.text).toContain("Would create 1 option.");
  expect((await call(client, "get_run", { runId: large.runId })).text).toContain("Would create 1 option.");
});

test("a planned sheet comes back with semicolons and results, and does nothing when it is planned again", async () => {
  const given = await service();
  const { client, sandbox, folder, read, write, env } = given;
  const targetingId = await sandbox.targeting("Sports");
  await sandbox.options(targetingId, [{ name: "Football", contexts: ["a", "b"] }, { name: "Old" }]);
  await call(client, "list_options", { targetingId, saveTo: "sports.csv", delimiter: ";" });
  const [header = "", football = "", old = ""] = (await read("sports.csv")).split("\r\n");
  expect(header).toBe("\uFEFFOption ID;Option;Group;Context IDs;Context Action;Is Group;Expose Sub-options");
  const rows = [`Sheet of Ann\r\n\r\nNotes;${header.slice(1)};Action`, `=1+1;${football.replace("a|b", "a|c")};`];
  await write("edited.csv", [...rows, `;${old};Remove`, ";;+New;;x;;;;", ""].join("\r\n"));
  const { runId } = await call(client, "plan_targeting", { targetingId, file: "edited.csv" });
  expect(textOf(await client.callTool("get_run", { runId, saveTo: "planned.csv" }))).toContain("3 not applied");
  const asked = await call(client, "apply_plan", { runId });
  await call(client, "apply_plan", { runId, confirmation: asked.confirmation.token });
  await call(client, "get_run", { runId, saveTo: "results.csv" });
  const lines = (await read("results.csv")).split("\r\n");
  expect(lines.slice(0, 3)).toEqual([
    "\uFEFFSheet of Ann",
    "",
    "Notes;Option ID;Option;Group;Context IDs;Context Action;Is Group;Expose Sub-options;Action;Result;Problem;How to fix",
  ]);
  expect(lines[3]).toMatch(/^'=1\+1;\w{26};Football;\[\];a\|c;Set;no;;Edit;Done;;$/);
  expect(lines[4]).toMatch(/^;\w{26};Old;\[\];\[\];Set;no;;Remove;Done;;$/);
  expect(lines[5]).toMatch(/^;\w{26};'?\+New;;x;Set;;;Add;Done;;$/);
  const again = await client.callTool("plan_targeting", { targetingId, file: "results.csv" });
  expect(textOf(again)).toContain("nothing to do");

  // The command saves the same file, also outside of allowed folders, but never overwrites one.
  const to = join(folder, "from-command.csv");
  const save = () => runCommand(["runs", runId ?? "", "--to", to], env);
  expect(await save()).toMatchObject({ code: 0 });
  expect(await readFile(to, "utf8")).toBe(await read("results.csv"));
  expect(await save()).toMatchObject({ code: 1 });

  // A run whose input was not a sheet cannot be saved as one.
  const items = await call(client, "bulk_add_options", { targetingId, items: [{ name: "Item" }] });
  const none = await client.callTool("get_run", { runId: items.runId, saveTo: "none.csv" });
  expect(textOf(none)).toContain("was not a sheet");
});

test("rows go by what their options hold: names, Context IDs with separators, and others that look the same", async () => {
  const { client, sandbox, write } = await service();
  const targetingId = await sandbox.targeting("Held");
  const ids = await sandbox.options(targetingId, [
    { name: "One", contexts: ["a|b", "Shoes", "x"] },
    { name: "Two", contexts: ["y"] },
  ]);
  const header = "Option ID,Option,Context Action,Context IDs";
  await write("rows.csv", `${header}\n${ids[0]},One,Remove,a|b|x\n${ids[1]},Three,Add,z\n`);
  const first = await client.callTool("update_contexts", { targetingId, file: "rows.csv" });
  expect(first.structuredContent).toMatchObject({ counts: { items: 2, succeeded: 1, failed: 1 } });
  expect(textOf(first)).toContain("names the option");
  expect((await client.callTool("get_option", { optionId: ids[0] })).structuredContent).toMatchObject({
    contexts: ["Shoes"],
  });
  await write("near.csv", `${header}\n${ids[0]},one,Add,shoes|new\n`);
  const near = await client.callTool("update_contexts", { targetingId, file: "near.csv" });
  expect(near.structuredContent).toMatchObject({ counts: { succeeded: 1 } });
  expect(textOf(near)).toContain(
    '1 Context ID differs only in case, width or composition from one that the option holds: "shoes" beside "Shoes"',
  );
  await write("plan.csv", `${header}\n${ids[1]},Two,Add,Ｙ\n`);
  const planned = await client.callTool("plan_targeting", { targetingId, file: "plan.csv" });
  expect(textOf(planned)).toContain('"Ｙ" beside "y"');
  expect(textOf(planned)).toContain('First rows as understood: line 2: "Two", add 1 Context ID ("Ｙ")');
});

test("the first rows of a dry run say which of them would not be applied", async () => {
  const { client, sandbox, write } = await service();
  const targetingId = await sandbox.targeting("Rows");
  await sandbox.options(targetingId, [{ name: "One" }]);
  await write("rows.csv", "name,Context IDs\nOne,a\nTwo,b\n");
  const added = await client.callTool("bulk_add_options", { targetingId, file: "rows.csv", dryRun: true });
  const rows = 'line 2: "One", add 1 Context ID ("a") (would not be applied); line 3: "Two", add 1 Context ID ("b").';
  expect(textOf(added)).toContain(`First rows as understood: ${rows}`);
  const changed = await client.callTool("update_contexts", { targetingId, file: "rows.csv", dryRun: true });
  expect(textOf(changed)).toContain('line 3: "Two", add 1 Context ID ("b") (would not be applied).');
  await write("log.csv", "uid,eventName,method\nu-1,sign_up,e\nu-1,purchase,\n");
  const sent = await client.callTool("track_events", { file: "log.csv", dryRun: true });
  expect(textOf(sent)).toMatch(/line 2: .*method "e"; line 3: .*"purchase" \(would not be sent\)\./);
  const shown = async (file: string, text: string) => {
    await write(file, text);
    return textOf(await client.callTool("bulk_add_options", { targetingId, file, dryRun: true }));
  };
  // Of a group with sub-options, one failed sub-option does not mark the row.
  const children = [{ name: "Good one", contexts: ["a"] }, { name: "x" }];
  const group = JSON.stringify({ name: "Group", type: "collection", children });
  expect(await shown("group.ndjson", `${group}\n`)).not.toContain("would not be applied");
  const list = JSON.stringify([
    { name: "One", contexts: ["a"] },
    { name: "Other", contexts: ["b"] },
  ]);
  expect(await shown("list.json", list)).toContain('"One", add 1 Context ID ("a") (would not be applied); ');
  expect(await shown("list.json", list)).toContain('"Other", add 1 Context ID ("b").');
  const lost = await shown("lost.csv", "name,parentName,contextId\nA1,None,a\nA1,None,b\nB1,,c\n");
  expect(lost).toMatch(/line 2: "A1".*\(would not be applied\); line 3: "A1".*\(would not be applied\); line 4: "B1"/);
  expect(lost).not.toMatch(/line 4: "B1"[^;]*\(would not/);
});

test.each([
  ["items", "addContexts"],
  ["file", "addContexts"],
  ["file with IDs", "addContexts"],
  ["file with IDs", "fail"],
])("bulk_add_options reports Context IDs that look like existing ones: %s, %s", async (form, onExisting) => {
  const { client, sandbox, write } = await service();
  const targetingId = await sandbox.targeting("Near");
  const [id = ""] = await sandbox.options(targetingId, [{ name: "One", contexts: ["Shoes", "\u00e9t\u00e9"] }]);
  const contexts = ["shoes", "e\u0301te\u0301", "\uff53hoes", "other"];
  await write("near.csv", `Option ID,Option,Context IDs\n${form === "file" ? "" : id},One,${contexts.join("|")}\n`);
  const given = form === "items" ? { items: [{ name: "One", contexts }] } : { file: "near.csv" };
  const said =
    "3 Context IDs differ only in case, width or composition from one that the option holds: " +
    '"shoes" beside "Shoes", "e\u0301te\u0301" beside "\u00e9t\u00e9", "\uff53hoes" beside "Shoes"';
  const args = { targetingId, onExisting, ...given };
  expect(textOf(await client.callTool("bulk_add_options", { ...args, dryRun: true }))).toContain(said);
  expect(textOf(await client.callTool("bulk_add_options", args))).toContain(said);
});

test("without the setting the roots of a client may be read, and a refused path names what allows it", async () => {
  const { sandbox, folder, env, write } = await service();
  const targetingId = await sandbox.targeting("Roots");
  await write("names.csv", "Option\nFrom root\n");
  const bare = { ...env, TARGETING_MCP_ALLOWED_DIRS: "" };
  const client = await CLIENTS["2025 client"]({ args: [COMMAND], env: bare, roots: [folder], name: "claude-code" });
  const file = join(folder, "names.csv");
  expect(await call(client, "bulk_add_options", { targetingId, file: "names.csv" })).toMatchObject({
    status: "succeeded",
  });
  const saved = await client.callTool("list_options", { targetingId, saveTo: join(folder, "saved.csv") });
  expect(saved.isError).toBe(true);
  expect(textOf(saved)).toContain(
    `targeting-mcp setup claude-code --allowed-dirs="${folder}", and restarts Claude Code`,
  );
  const other = await client.callTool("bulk_add_options", { targetingId, file: join(tmpdir(), "names.csv") });
  expect(textOf(other)).toContain("is outside the allowed folders");
  await client.close();
  const plain = await CLIENTS["2025 client"]({ args: [COMMAND], env: bare });
  const refused = await plain.callTool("bulk_add_options", { targetingId, file });
  expect(textOf(refused)).toContain("no folder is allowed");
  expect(textOf(refused)).toContain(
    `TARGETING_MCP_ALLOWED_DIRS=${folder} in this server's entry in the host's configuration`,
  );
});

test.each(["2025 client", "2026 client, legacy", "2026 client, modern"] as const)(
  "a change that needs approval reads the roots of its client, too: %s",
  async (era) => {
    const { sandbox, folder, env, write } = await service();
    const targetingId = await sandbox.targeting("Roots");
    await sandbox.options(targetingId, [{ name: "One", contexts: ["a", "b"] }]);
    await write("set.csv", "Option,Context Action,Context IDs\nOne,Set,[]\n");
    const messages: string[] = [];
    const client = await CLIENTS[era]({
      args: [COMMAND],
      env: { ...env, TARGETING_MCP_ALLOWED_DIRS: "" },
      roots: [folder],
      answer: (message) => {
        messages.push(message);
        return { action: "accept", content: { confirm: true } };
      },
    });
    expect(await call(client, "update_contexts", { targetingId, file: "set.csv" })).toMatchObject({
      status: "succeeded",
    });
    expect(messages).toHaveLength(1);
    const outside = await client.callTool("update_contexts", { targetingId, file: join(tmpdir(), "set.csv") });
    expect(textOf(outside)).toContain("is outside the allowed folders");
  },
);

test("a sheet that cannot be read is refused without the offer to return it", async () => {
  const { client, sandbox, write } = await service();
  const targetingId = await sandbox.targeting("Turned");
  await write("turned.csv", "Option,One,Two\nContext IDs,a|b,c\n");
  const answer = await client.callTool("plan_targeting", { targetingId, file: "turned.csv" });
  expect(textOf(answer)).toContain("the sheet is transposed");
  expect(textOf(answer)).not.toContain("get_run");
});

test("a sheet with problems that cannot be planned comes back with them", async () => {
  const { client, sandbox, folder, write } = await service();
  const targetingId = await sandbox.targeting("Wrong");
  await write("wrong.csv", "Option,Action,Context IDs\nGood,,a\nBad_name,,b\nOther,Archive,c\n");
  const { runId, isError, text } = await call(client, "plan_targeting", { targetingId, file: "wrong.csv" });
  expect(isError).toBe(true);
  expect(text).toContain(
    `the sheet with the problems marked: get_run {"runId":"${runId}","saveTo":"results-${runId.slice(-6)}.xlsx"}`,
  );
  const saved = await client.callTool("get_run", { runId, saveTo: "wrong.xlsx" });
  expect(textOf(saved)).toContain("1 not applied, 2 failed");
  expect(await sheetRowsOf(join(folder, "wrong.xlsx"))).toMatchObject([
    { Option: "Good", Result: "Not applied", Problem: "" },
    { Option: "Bad_name", Result: "Failed", Problem: expect.stringContaining("not allowed") },
    {
      Option: "Other",
      Result: "Failed",
      Problem: 'The Action "Archive" is not known',
      "How to fix": expect.stringContaining("Remove"),
    },
  ]);
  expect((await client.callTool("apply_plan", { runId })).isError).toBe(true);
});

test("elements of a JSON array on one line are counted as items, and on lines of their own as lines", async () => {
  const { sandbox, client, write, folder } = await service();
  const targetingId = await sandbox.targeting("Spring");
  const items = [{ name: "Good One" }, { name: "bad_name" }, { name: "Good One" }];
  const rows = items.map((item) => JSON.stringify(item));
  await write("one-line.json", `[${rows.join(",")}]`);
  await write("lines.json", `[\n${rows.join(",\n")}\n]`);
  const add = (name: string) => client.callTool("bulk_add_options", { targetingId, file: join(folder, name) });
  const oneLine = textOf(await add("one-line.json"));
  expect(oneLine).toContain("INVALID_NAME, item 2");
  expect(oneLine).toContain(
    'DUPLICATE_IN_INPUT, item 3 "Good One": same name and Context IDs as item 1. Leave the item out.',
  );
  expect(oneLine).toContain("send only items 2-3 again");
  expect(textOf(await add("lines.json"))).toContain("INVALID_NAME, line 3");
});
