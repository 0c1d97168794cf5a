import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { toolCall } from "../support/server-process.ts";
import { answer, type Report, runOf, type Server, started, tool } from "./deadly-server.ts";
import { openGate } from "./gate.ts";
import { runsIn } from "./journals.ts";
import type { PlanScenario } from "./plan-scenarios.ts";
import { startService } from "./service.ts";

/** When a process is killed while it plans: at a change of the file system, or at a read request. */
export interface PlanDeath {
  readonly at: "operation" | "read";
  readonly nth: number;
}

/** In slow scenarios, how long a read takes, and after which time a call answers, in milliseconds. */
const SLOW_READ_MS = 150;
const SHORT_CALL_MS = 100;

/**
 * Kills a real process while it plans. A new process then resumes the stored run, plans again, and applies one of the
 * plans. The result is compared with the expected state. Returns false if the plan was finished before the process was
 * killed.
 */
export async function diePlanning(scenario: PlanScenario, death: PlanDeath): Promise<boolean> {
  const service = await startService();
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-kill-"));
  const runs = join(folder, "state", "runs");
  let dying: Server | undefined;
  const gate = await openGate(service.url, {
    deadlyRead: death.at === "read" ? death.nth : undefined,
    onWrite: () => {},
    kill: async () => {
      dying?.child.kill("SIGKILL");
      await dying?.exited;
    },
  });
  const environment = {
    ...{ TARGETING_API_URL: gate.url, TARGETING_API_KEY: "sandbox-key", TARGETING_MCP_MODE: "live" },
    TARGETING_MCP_CONFIRM: "off",
    TARGETING_MCP_STATE_DIR: join(folder, "state"),
    TARGETING_MCP_ALLOWED_DIRS: folder,
    TARGETING_MCP_LOG_LEVEL: "silent",
  };
  const helper = started(environment);
  const call = await scenario.prepare(service, (name, args) => runOf(helper, name, args), folder);
  await ended(helper);
  const earlier = new Set(runsIn(runs));
  const before = await service.lines();
  if (scenario.isSlow) await service.slowReads(SLOW_READ_MS);
  gate.arm();

  dying = started({
    ...environment,
    ...(scenario.isSlow && { TARGETING_MCP_WAIT_MS: `${SHORT_CALL_MS}` }),
    ...(death.at === "operation" && { DEADLY: `operation:${death.nth}` }),
  });
  dying.send(toolCall("call", call.tool, call.args));
  const first = await Promise.race([answer(dying, "call"), dying.exited.then(() => undefined)]);
  if (first?.status === "running") await Promise.race([untilPlanned(dying, first), dying.exited]);
  dying.child.stdin.end();
  const isDead = (await dying.exited).signal === "SIGKILL";
  expect(first !== undefined || isDead).toBe(true);

  await service.mend();
  const next = started(environment);
  const plans: string[] = [];
  for (const runId of runsIn(runs).filter((each) => !earlier.has(each))) {
    if (await isPlanned(next, runId, scenario)) plans.push(runId);
  }
  // If the caller was told that the plan is ready, it must still exist.
  if (first?.status === "planned") expect(plans).toContain(first.runId);
  const again = await tool(next, call.tool, call.args);
  expect(again).toMatchObject({ status: "planned", counts: { items: scenario.items } });
  expect({ writes: gate.writes(), lines: await service.lines() }).toEqual({ writes: 0, lines: before });

  const runId = plans[0] ?? again.runId;
  expect(await tool(next, "apply_plan", { runId })).toMatchObject({
    status: "succeeded",
    counts: { items: scenario.items, succeeded: scenario.items },
  });
  expect(await service.lines()).toEqual(scenario.after);
  await checkNothingLeft(next, call.tool, call.args);
  await ended(next);
  return isDead;
}

/** Returns whether an interrupted run has its whole plan. If not, checks that the run cannot be applied and says so. */
async function isPlanned(server: Server, runId: string, { items }: PlanScenario): Promise<boolean> {
  const resumed = await tool(server, "resume_run", { runId });
  const shown = await tool(server, "get_run", { runId });
  if (resumed.status === "planned") {
    expect({ resumed, shown }).toMatchObject({
      resumed: { counts: { items } },
      shown: { status: "planned", counts: { items } },
    });
    return true;
  }
  expect(JSON.stringify(resumed.refused)).toMatch(/nothing was sent|there is no run/);
  const applied = await tool(server, "apply_plan", { runId });
  const told = applied.status ?? JSON.stringify(applied.refused);
  expect(told).toMatch(/^interrupted$|^failed$|nothing was sent|there is no run/);
  return false;
}

/** Checks that the same call now finds nothing to do. An undo cannot even be planned again. */
async function checkNothingLeft(server: Server, name: string, args: Readonly<Record<string, unknown>>): Promise<void> {
  const told = await tool(server, name, args);
  if (name === "undo_run") expect(JSON.stringify(told.refused)).toContain("undone before");
  else expect(told).toMatchObject({ status: "planned", counts: { items: 0 } });
}

async function untilPlanned(server: Server, { runId }: Report): Promise<void> {
  for (let asked = 1; ; asked += 1) {
    server.send(toolCall(`wait ${asked}`, "get_run", { runId, waitMs: 5000 }));
    const told = await answer(server, `wait ${asked}`);
    if (told?.status !== "running") return;
  }
}

async function ended(server: Server): Promise<void> {
  server.child.stdin.end();
  expect(await server.exited).toEqual({ code: 0, signal: null });
}
