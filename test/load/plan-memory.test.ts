import { mkdtemp, readFile, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { writtenSheet } from "../../src/files/save-file.ts";
import { OPENING, startCommand, toolCall } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

const ROWS = 100_000;
const answer = z.looseObject({ runId: z.string(), status: z.string(), counts: z.looseObject({ items: z.number() }) });

/**
 * Starts a server that may read a workbook with many new options. Returns a function that calls a tool and waits until
 * its run has ended.
 */
async function withWorkbook() {
  const service = await startService();
  const targetingId = await service.targeting("News");
  const folder = await realpath(await mkdtemp(join(tmpdir(), "targeting-plan-")));
  const rows = async function* () {
    yield { cells: ["Option", "Context IDs"] };
    for (let at = 0; at < ROWS; at += 1) yield { cells: [`관심사 option ${at}`, `article-${at}`] };
  };
  const sheet = writtenSheet({ name: "Options", above: 0, rows: rows() }, { format: "xlsx" });
  await writeFile(join(folder, "many.xlsx"), sheet);
  const server = startCommand([], {
    ...service.live,
    TARGETING_MCP_ALLOWED_DIRS: folder,
    TARGETING_MCP_STATE_DIR: join(folder, "state"),
    TARGETING_MCP_MAX_CHANGE_PERCENT: "100",
  });
  for (const message of OPENING) server.send(message);
  let calls = 0;
  const ask = async (tool: string, args: object) => {
    calls += 1;
    server.send(toolCall(calls, tool, args));
    const { result } = await server.answer(calls);
    return answer.parse(z.looseObject({ structuredContent: z.unknown() }).parse(result).structuredContent);
  };
  const call = async (tool: string, args: object) => {
    let told = await ask(tool, args);
    while (told.status === "running") told = await ask("get_run", { runId: told.runId, waitMs: 5000 });
    return told;
  };
  const megabytes = async (): Promise<number> => {
    const status = await readFile(`/proc/${server.child.pid}/status`, "utf8");
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024;
  };
  return { targetingId, call, megabytes };
}

test.runIf(process.platform === "linux")(
  "100,000 new options of a workbook are planned and applied within 300 MB",
  async () => {
    const { targetingId, call, megabytes } = await withWorkbook();
    const planned = await call("plan_targeting", { targetingId, file: "many.xlsx" });
    expect(planned).toMatchObject({ status: "planned", counts: { items: ROWS } });
    const applied = await call("apply_plan", { runId: planned.runId });
    expect(applied).toMatchObject({ status: "succeeded", counts: { items: ROWS, succeeded: ROWS, failed: 0 } });
    expect(await megabytes()).toBeLessThan(300);
  },
  600_000,
);
