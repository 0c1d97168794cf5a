import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, realpath, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { writtenSheet } from "../../src/files/save-file.ts";
import { sheetRecords } from "../../src/files/sheet-rows.ts";
import { startSandbox } from "../../src/sandbox/index.ts";
import { CLIENTS, textOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment, startCommand } from "../support/server-process.ts";
import { startStub } from "../support/stub-server.ts";

const suite = z.looseObject({ suiteId: z.string(), cases: z.number(), savedTo: z.string() });
const report = z.looseObject({ cases: z.number(), matched: z.number(), savedTo: z.string().optional() });
const run = z.looseObject({
  runId: z.string(),
  status: z.string(),
  counts: z.record(z.string(), z.number()),
  rejectsUri: z.string().optional(),
});
const failure = z.looseObject({ errorCode: z.string(), lines: z.array(z.number()) });

const connect = CLIENTS["2026 client, modern"];

async function folderOf(name: string): Promise<string> {
  return realpath(await mkdtemp(join(tmpdir(), `targeting-mcp-${name}-`)));
}

test("suites and reports are saved in allowed folders, run from there, and replace nothing", async () => {
  const folder = await folderOf("suites");
  const client = await connect({ args: [COMMAND], env: cleanEnvironment({ TARGETING_MCP_ALLOWED_DIRS: folder }) });
  const saved = await client.callTool("generate_event_tests", { eventNames: ["sign_up"], saveTo: "suite.json" });
  const { cases, savedTo, suiteId } = suite.parse(saved.structuredContent);
  expect(savedTo).toBe(join(folder, "suite.json"));
  expect(JSON.parse(await readFile(savedTo, "utf8")).cases).toHaveLength(cases);
  const ran = await client.callTool("run_event_tests", { file: "suite.json", saveTo: "report.xml" });
  expect(report.parse(ran.structuredContent)).toMatchObject({ suiteId, cases, matched: cases });
  expect(textOf(ran)).toContain(join(folder, "report.xml"));
  expect(await readFile(join(folder, "report.xml"), "utf8")).toContain(`tests="${cases}" failures="0"`);

  await symlink("/etc", join(folder, "link"));
  for (const [saveTo, words] of [
    ["suite.json", "exists already"],
    ["../suite.json", ".."],
    ["/etc/suite.json", "outside"],
    ["link/suite.json", "link"],
  ] as const) {
    const refused = await client.callTool("generate_event_tests", { eventNames: ["sign_up"], saveTo });
    expect(textOf(refused), saveTo).toContain(words);
    const notRun = await client.callTool("run_event_tests", { suiteId, saveTo });
    expect(textOf(notRun), saveTo).toContain(words);
  }
  expect((await readdir(folder)).sort()).toEqual(["link", "report.xml", "suite.json"]);
  expect(textOf(await client.callTool("run_event_tests", { file: "suit.json" }))).toContain('"suite.json"');
  expect(textOf(await client.callTool("run_event_tests", { file: "report.xml" }))).toContain("is not JSON");
  await writeFile(join(folder, "other.json"), "[]");
  expect(textOf(await client.callTool("run_event_tests", { file: "other.json" }))).toContain("form of a suite");
});

test("a saved script runs as it is against the sandbox of TARGETING_MCP_SANDBOX_URL", async () => {
  const folder = await folderOf("scripts");
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  const env = cleanEnvironment({ TARGETING_MCP_ALLOWED_DIRS: folder, TARGETING_MCP_SANDBOX_URL: sandbox.url });
  const client = await connect({ args: [COMMAND], env });
  const given = {
    eventNames: ["purchase"],
    kinds: ["minimal", "missing", "limit"],
    format: "curl",
    saveTo: "events.sh",
  };
  const { cases } = suite.parse((await client.callTool("generate_event_tests", given)).structuredContent);
  const environment = { ...process.env, EVENT_API_URL: sandbox.url };
  const { stdout } = await promisify(execFile)("sh", [join(folder, "events.sh")], { env: environment });
  expect(stdout).toContain(`${cases} events sent, 0 mismatches`);
  expect(sandbox.events()).toHaveLength(cases);
});

test("suites and their reports outlive their server", async () => {
  const env = cleanEnvironment();
  const before = await connect({ args: [COMMAND], env });
  const made = await before.callTool("generate_event_tests", { eventNames: ["click"], kinds: ["minimal"] });
  const { suiteId } = z.looseObject({ suiteId: z.string() }).parse(made.structuredContent);
  await before.callTool("run_event_tests", { suiteId });
  await before.close();
  const after = await connect({ args: [COMMAND], env });
  expect(await after.readResource(`targeting://suites/${suiteId}`)).toContain('"click/minimal/required"');
  expect(await after.readResource(`targeting://suites/${suiteId}/junit`)).toContain('tests="1" failures="0"');
  expect((await after.listResources()).map(({ uri }) => uri)).toContain(`targeting://suites/${suiteId}`);
  expect((await after.callTool("run_event_tests", { suiteId })).structuredContent).toMatchObject({ matched: 1 });
});

test("a token for a live endpoint carries where its report goes, and sends once", async () => {
  const folder = await folderOf("live");
  const { url, received } = await startStub(() => ({ status: 200, json: { message: "ok" } }));
  const env = cleanEnvironment({
    EVENT_API_URL: url,
    EVENT_APP_KEY: "real-key",
    TARGETING_MCP_ALLOWED_DIRS: folder,
  });
  const client = await CLIENTS["2025 client"]({ args: [COMMAND], env });
  const made = await client.callTool("generate_event_tests", { kinds: ["minimal"] });
  const { suiteId } = z.looseObject({ suiteId: z.string() }).parse(made.structuredContent);
  const given = { suiteId, target: "configured", saveTo: "live.xml" };
  const asked = z
    .looseObject({ confirmation: z.looseObject({ token: z.string() }) })
    .parse((await client.callTool("run_event_tests", given)).structuredContent);
  expect(received).toHaveLength(0);
  const { token: confirmation } = asked.confirmation;
  const done = report.parse((await client.callTool("run_event_tests", { confirmation })).structuredContent);
  expect(done).toMatchObject({ matched: 0, unobservable: 13, savedTo: join(folder, "live.xml") });
  expect(await readFile(join(folder, "live.xml"), "utf8")).toContain('skipped="13"');
  expect((await client.callTool("run_event_tests", { confirmation })).isError).not.toBe(true);
  expect(received).toHaveLength(13);
});

test("a sheet of events comes back with the rows that were not sent, in its form, with results", async () => {
  const folder = await folderOf("event-sheets");
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  const header = ["Uid", "Event Name", "item_id", "price", "quantity"];
  const good = (user: string) => [user, "add_to_cart", "sku", "10", "1"];
  const bad = ["user-2", "add_to_cart", "sku", "", "1"];
  const rows = async function* () {
    for (const cells of [["Carts of May"], header, good("user-1"), bad, good("user-3")]) yield { cells };
  };
  await writeFile(
    join(folder, "carts.xlsx"),
    writtenSheet({ name: "Carts", above: 1, rows: rows() }, { format: "xlsx" }),
  );
  const semicolons = [header, good("user-4"), bad, good("user-5")].map((cells) => cells.join(";"));
  await writeFile(join(folder, "carts.csv"), `\uFEFF${semicolons.join("\r\n")}\r\n`);
  const env = cleanEnvironment({
    EVENT_API_URL: sandbox.url,
    EVENT_APP_KEY: "sandbox-app-key",
    TARGETING_MCP_ALLOWED_DIRS: folder,
    TARGETING_MCP_STATE_DIR: await folderOf("event-sheets-state"),
  });
  const client = await connect({ args: [COMMAND], env });
  for (const [name, ending] of [
    ["carts.xlsx", "xlsx"],
    ["carts.csv", "csv"],
  ] as const) {
    const before = sandbox.events().length;
    const sent = run.parse((await client.callTool("track_events", { file: name })).structuredContent);
    expect(sent).toMatchObject({ status: "partial", counts: { items: 3, succeeded: 2, failed: 1 } });
    const saveTo = `results.${ending}`;
    const saved = await client.callTool("get_run", { runId: sent.runId, saveTo });
    expect(textOf(saved)).toContain("Rows: 1 failed.");
    expect(textOf(saved)).toContain("The file omits 2 rows that were sent: sent again, they would be counted twice.");
    const bytes = await readFile(join(folder, saveTo));
    const sheet = await sheetAt(bytes, ending);
    const at = sheet.findIndex(([first]) => first === "Uid");
    expect(sheet[at]).toEqual([...header, "Result", "Problem", "How to fix"]);
    expect(sheet.slice(at + 1)).toEqual([[...bad, "Failed", expect.stringContaining("price"), expect.any(String)]]);

    // The command saves the same sheet. After it is fixed, only the failed events are sent.
    const to = join(folder, `command.${ending}`);
    expect(await startCommand(["runs", sent.runId, "--to", to], env).exited).toMatchObject({ code: 0 });
    expect(await sheetAt(await readFile(to), ending)).toEqual(sheet);
    const fixed = async function* () {
      for (const cells of sheet) yield { cells: cells.map((cell, index) => (index === 3 && cell === "" ? "5" : cell)) };
    };
    const form = ending === "xlsx" ? ({ format: "xlsx" } as const) : ({ format: "csv", delimiter: ";" } as const);
    await writeFile(join(folder, `fixed.${ending}`), writtenSheet({ name: "Carts", above: at, rows: fixed() }, form));
    const again = await client.callTool("track_events", { file: `fixed.${ending}` });
    expect(run.parse(again.structuredContent)).toMatchObject({ status: "succeeded", counts: { succeeded: 1 } });
    expect(sandbox.events()).toHaveLength(before + 3);
    const none = await client.callTool("get_run", {
      runId: run.parse(again.structuredContent).runId,
      saveTo: `none.${ending}`,
    });
    expect(textOf(none)).toContain("every row of this run was sent");
  }
});

/** Returns the rows of a saved sheet. */
async function sheetAt(bytes: Uint8Array, ending: "xlsx" | "csv"): Promise<readonly (readonly string[])[]> {
  const content = async function* () {
    yield bytes;
  };
  const file = { format: ending, encoding: "utf-8" as const, sheet: { delimiter: ";" as const } };
  const rows: (readonly string[])[] = [];
  for await (const batch of sheetRecords({ bytes: content, file })) rows.push(...batch.map(({ cells }) => cells));
  return rows;
}

test("20,000 events from a file: the rows that failed are named by line, kept with reasons, and sent once mended", async () => {
  const folder = await folderOf("events");
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  const rows = Array.from({ length: 20_000 }, (_, index) =>
    index % 1000 === 7
      ? `user-${index},add_to_cart,sku-${index},,1`
      : `user-${index % 700},add_to_cart,sku-${index},10,1`,
  );
  await writeFile(join(folder, "events.csv"), ["uid,eventName,item_id,price,quantity", ...rows, ""].join("\n"));
  const env = cleanEnvironment({
    EVENT_API_URL: sandbox.url,
    EVENT_APP_KEY: "sandbox-app-key",
    TARGETING_MCP_ALLOWED_DIRS: folder,
  });
  const client = await connect({ args: [COMMAND], env });
  const planned = await client.callTool("track_events", { file: "events.csv", dryRun: true });
  expect(planned.structuredContent).toMatchObject({
    status: "planned",
    counts: { items: 20_000, failed: 20, pending: 19_980 },
    plan: [{ operation: "trackEvent", requests: 19_980 }],
  });
  expect(sandbox.events()).toHaveLength(0);
  const sent = await client.callTool("track_events", { file: "events.csv" });
  const done = run.parse(sent.structuredContent);
  expect(done).toMatchObject({ status: "partial", counts: { items: 20_000, succeeded: 19_980, failed: 20 } });
  const [missing] = z.looseObject({ failures: z.array(failure) }).parse(sent.structuredContent).failures;
  expect(missing).toMatchObject({ errorCode: "EVENT_IGNORED", lines: expect.arrayContaining([9, 1009]) });
  const rejects = await client.readResource(done.rejectsUri ?? "");
  const lines = rejects.trim().split("\r\n");
  expect(lines).toHaveLength(21);
  expect(lines[1]).toMatch(/^user-7,add_to_cart,sku-7,,1,.*price/);
  await writeFile(join(folder, "mended.csv"), rejects.replaceAll(",,1,", ",5,1,"));
  const mended = await client.callTool("track_events", { file: "mended.csv" });
  expect(run.parse(mended.structuredContent)).toMatchObject({ status: "succeeded", counts: { succeeded: 20 } });
  expect(sandbox.events()).toHaveLength(20_000);
});
