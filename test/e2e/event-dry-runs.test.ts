import { mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call } from "../support/clients.ts";
import { warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

/** 100 events. Every fourth one (lines 2, 6, 10 and so on) is a purchase without tx_id. */
const ROWS = Array.from({ length: 100 }, (_, at) => (at % 4 === 0 ? `u${at},purchase,` : `u${at},click,e${at}`));
const LOG = `uid,eventName,element_id\n${ROWS.join("\n")}\n`;

async function withLog(env: Record<string, string> = {}, log = LOG) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "targeting-mcp-")));
  const { client, sandbox } = await startSession({ env: { TARGETING_MCP_ALLOWED_DIRS: folder, ...env } });
  writeFileSync(join(folder, "log.csv"), log);
  const dryRun = () => call(client, "track_events", { file: "log.csv", dryRun: true });
  return { client, sandbox, folder, dryRun };
}

test("a dry run of events shows all events that would fail, and saves them as a sheet to fix", async () => {
  const { client, sandbox, folder, dryRun } = await withLog();
  const { runId, text } = await dryRun();
  expect(text).toMatch(/^Dry run; nothing was sent\. Would send 75 of 100 events; 25 would fail\. Run /);
  expect(text).toContain(`get_run {"runId":"${runId}","outcome":"failed","includeInput":true}`);
  const failed = await call(client, "get_run", { runId, outcome: "failed", includeInput: true });
  expect(failed.text.match(/^line \d+: \{"uid":"u\d+","eventName":"purchase"\}$/gm)).toHaveLength(25);
  const saved = await call(client, "get_run", { runId, saveTo: "all.csv" });
  expect(saved.text).toContain("Rows: 25 would fail, 75 would be sent.\nNothing was sent.\nNext: fix the cells");
  const fixed = readFileSync(join(folder, "all.csv"), "utf8").replace("uid,eventName", "uid,eventName,tx_id");
  const lines = fixed.split(/\r?\n/).map((line, at) => (at === 0 ? line : line.replace(/^(u\d+),(\w+),/, "$1,$2,$1,")));
  writeFileSync(join(folder, "fixed.csv"), lines.join("\n"));
  expect(await sandbox.events()).toHaveLength(0);
  expect((await call(client, "track_events", { file: "fixed.csv", dryRun: true })).text).toContain("100 events");
  const sent = await call(client, "track_events", { file: "log.csv" });
  expect(sent.text).toMatch(/^Sent 75 of 100 events; 25 failed\. /);
  expect(sent.text).not.toContain("same call was made before");
});

test("a dry run of events is listed as a dry run only, and cannot be resumed, undone or applied", async () => {
  const { client, dryRun } = await withLog();
  const { runId } = await dryRun();
  expect((await call(client, "get_run", {})).text).not.toContain(runId);
  const listed = await call(client, "get_run", { status: "planned" });
  expect(listed.text).toContain(`${runId} track_events dry run, nothing was sent (100 items, 75 pending, 25 failed)`);
  for (const tool of ["resume_run", "undo_run", "apply_plan"]) {
    const { text } = await call(client, tool, { runId });
    expect(text, tool).toContain("this run is a dry run of events: nothing was sent, so ");
    expect(text, tool).toContain("the same track_events call without dryRun");
  }
  const { text } = await call(client, "cancel_run", { runId });
  expect(text).toMatch(/^Removed the dry run of 100 events; nothing was sent\. /);
  expect((await call(client, "get_run", { runId })).text).toContain("there is no run with this ID");
  const { text: old } = await call(client, "get_run", { runId: "01J00000000000000000000000" });
  expect(old).toContain("a call that nobody approved, are removed after 24 hours: make the call again");
});

test("the failed rows of a log of JSON lines are a file with reasons, already before anything is sent", async () => {
  const { client, folder } = await withLog();
  const events = [{ eventName: "purchase" }, { eventName: "click", element_id: "b" }];
  writeFileSync(join(folder, "log.ndjson"), events.map((event) => JSON.stringify({ uid: "u", ...event })).join("\n"));
  const { runId } = await call(client, "track_events", { file: "log.ndjson", dryRun: true });
  const saved = await call(client, "get_run", { runId, saveTo: "failed.ndjson" });
  expect(saved.text).toContain("Saved what would fail, with its reason, to ");
  expect(readFileSync(join(folder, "failed.ndjson"), "utf8")).toMatch(/^\{"uid":"u","eventName":"purchase",.*\}\n$/);
});

test("a dry run does not take the room that its own events need", async () => {
  const long = Array.from({ length: 700 }, (_, at) => `u${at},click,${"e".repeat(900)}`).join("\n");
  const { client, sandbox, dryRun } = await withLog(
    { TARGETING_MCP_CALLER_MB: "1" },
    `uid,eventName,element_id\n${long}\n`,
  );
  const { runId } = await dryRun();
  expect(runId).not.toBe("");
  // A new dry run replaces the older one, whose run is deleted.
  const again = await dryRun();
  expect(again.runId).not.toBe(runId);
  expect((await call(client, "get_run", { runId })).text).toContain("there is no run with this ID");
  const sent = await call(client, "track_events", { file: "log.csv" });
  expect(sent.text).not.toContain("share of the store is full");
  await call(client, "get_run", { runId: sent.runId, waitMs: 20_000 });
  expect(await sandbox.events()).toHaveLength(700);
});

test("a dry run names each kind of uncertain events beside many failures, even in short", async () => {
  const rows = Array.from({ length: 120 }, (_, at) => {
    const [uid, timestamp] = [at % 12 === 5 ? {} : { uid: `u${at}` }, 1_795_900_000_000 + at];
    const cart = { eventName: "add_to_cart", item_id: "i", quantity: at % 5 === 1 ? "3" : 1 };
    const event = at % 3 === 0 ? { eventName: "purchse" } : { ...cart, ...(at % 7 !== 3 && { price: 1 }) };
    return { ...uid, ...event, timestamp };
  });
  const few = { uid: "u", eventName: "view_item", item_id: "i", price: "abc", timestamp: 1_795_900_000_000 };
  const { client, folder } = await withLog();
  writeFileSync(join(folder, "log.ndjson"), [...rows, few].map((row) => JSON.stringify(row)).join("\n"));
  const { text } = await call(client, "track_events", { file: "log.ndjson", dryRun: true });
  expect(text).toMatch(/^\d+ events \(lines 2, .*\): expected uncertain .* quantity .* is a string, not a number/m);
  expect(text).toMatch(/^line 121: expected uncertain .* price .* is a string, not a number/m);
  expect(text).toMatch(/^\d+ events .*: expected recorded \(assumed\)\. timestamp /m);
});
