import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { textOf } from "../support/clients.ts";
import { warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const LINES = 20_000;

const report = z.looseObject({ runId: z.string().optional(), counts: z.record(z.string(), z.number()) });

test.each([
  ["between, behind and before rows", "\n\r\n\n", 3 + 3 + 3],
  ["and rows of nothing but commas", ",,\n\n", 3 * 2],
] as const)("blank lines %s are counted, whatever tool reads them", async (_, blank, count) => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { sandbox, client } = await startSession({
    env: { TARGETING_MCP_ALLOWED_DIRS: folder, TARGETING_MCP_CONFIRM: "off" },
  });
  const send = async (tool: string, given: object, header: string, rows: readonly string[]) => {
    const file = join(folder, `${tool}.csv`);
    await writeFile(file, `${header}\n${rows.map((row) => `${blank}${row}\n`).join("")}${blank}`);
    const answer = await client.callTool(tool, { ...given, file });
    return { report: report.parse(answer.structuredContent), text: textOf(answer) };
  };
  const targetingId = await sandbox.targeting("Spring");
  const told = `${count} empty rows skipped`;
  // Both rows have the same name, so they make one item.
  const added = await send("bulk_add_options", { targetingId }, "name,contextId", ["Shoes,a", "Shoes,b"]);
  expect(added.report.counts).toMatchObject({ items: 1, succeeded: 1 });
  expect(added.text).toContain("1 row merged into an earlier row");
  expect(added.text).toContain(told);
  const changes = ["Shoes,add,c", "Shoes,add,d"];
  const changed = await send("update_contexts", { targetingId }, "name,op,contextId", changes);
  expect(changed.report.counts).toMatchObject({ items: 1, succeeded: 1 });
  expect(changed.text).toContain(told);
  const events = ["u1,sign_up,email", "u2,sign_up,email"];
  const sent = await send("track_events", {}, "uid,eventName,method", events);
  expect(sent.report.counts).toMatchObject({ items: 2, succeeded: 2 });
  expect(sent.text).toContain(told);
  const again = await client.callTool("get_run", { runId: sent.report.runId });
  expect(textOf(again)).toContain(told);
  const planned = await send("track_events", { dryRun: true }, "uid,eventName,method", events);
  expect(planned.text).toContain(told);
});

test("they are counted once, however many pieces the file is read in", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { sandbox, client } = await startSession({ env: { TARGETING_MCP_ALLOWED_DIRS: folder } });
  const rows = Array.from({ length: LINES }, (_, at) => (at % 4 === 0 ? `Option ${at},context ${at}\n` : "\n"));
  await writeFile(join(folder, "many.csv"), `name,contextId\n${rows.join("")}`);
  const targetingId = await sandbox.targeting("Spring");
  const answer = await client.callTool("bulk_add_options", {
    targetingId,
    file: join(folder, "many.csv"),
    dryRun: true,
  });
  expect(textOf(answer)).toContain("15,000 empty rows skipped");
});

test("verdicts of events from a file name its lines", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { client } = await startSession({ env: { TARGETING_MCP_ALLOWED_DIRS: folder } });
  const rows = ["u1,view_item,shoe,cheap", "u2,view_item,shoe,9", "", "u3,view_item,boot,dear", "u4,sign_up,,"];
  await writeFile(join(folder, "events.csv"), `uid,eventName,item_id,price\n${rows.join("\n")}\n`);
  for (const dryRun of [true, false]) {
    const answer = await client.callTool("track_events", { file: join(folder, "events.csv"), dryRun });
    expect(textOf(answer)).toContain("2 events (lines 2, 5): expected uncertain");
    expect(textOf(answer)).toMatch(/^EVENT_IGNORED, line 6/m);
    expect(answer.structuredContent).toMatchObject({
      verdicts: expect.arrayContaining([expect.objectContaining({ indexes: [0, 2], lines: [2, 5] })]),
    });
  }
});
