import { mkdtempSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import * as z from "zod";
import { toolCall } from "../support/server-process.ts";
import { answer, type Report, runOf, type Server, started, tool } from "./deadly-server.ts";
import { type DeadlyRequest, openGate } from "./gate.ts";
import { runsIn, sendsIn, storedStatus } from "./journals.ts";
import type { Prepared, Scenario } from "./scenarios.ts";
import { startService } from "./service.ts";

/**
 * When a process is killed: at a change of the file system, in the middle of a line of its journal, or at a request.
 */
export type Death =
  | { readonly at: "operation" | "line"; readonly nth: number }
  | { readonly at: "request"; readonly request: DeadlyRequest }
  /** The process is killed at a request, and the service applies that request half a second later. */
  | { readonly at: "lateRequest"; readonly nth: number };

/**
 * Kills a real process while it executes a call. A new process then resumes the run, and the result is compared with
 * the expected state. Returns false if the call ended before the process was killed.
 */
export async function dieAndResume(scenario: Scenario, death: Death): Promise<boolean> {
  const service = await startService();
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-kill-"));
  const runs = join(folder, "state", "runs");
  let dying: Server | undefined;
  const gate = await openGate(service.url, {
    deadly: deadlyRequest(death),
    onWrite: (writes) => {
      if (sendsIn(runs) - sentBefore < writes) unjournaled.push(`request ${writes} left before it was on the disk`);
    },
    kill: async () => {
      dying?.child.kill("SIGKILL");
      await dying?.exited;
    },
  });
  const unjournaled: string[] = [];
  const environment = {
    ...{ TARGETING_API_URL: gate.url, TARGETING_API_KEY: "sandbox-key", TARGETING_MCP_MODE: "live" },
    TARGETING_MCP_CONFIRM: "off",
    TARGETING_MCP_STATE_DIR: join(folder, "state"),
    TARGETING_MCP_ALLOWED_DIRS: folder,
    TARGETING_MCP_LOG_LEVEL: "silent",
  };
  const call = await prepared(scenario, service, folder, environment);
  const sentBefore = sendsIn(runs);
  gate.arm();
  const before = await service.lines();
  if (death.at === "lateRequest") await service.late(death.nth);
  const deadly = death.at === "operation" || death.at === "line" ? { DEADLY: `${death.at}:${death.nth}` } : {};
  dying = started({ ...environment, ...deadly });
  dying.send(toolCall("call", call.tool, call.args));
  const first = await Promise.race([answer(dying, "call"), dying.exited.then(() => undefined)]);
  dying.child.stdin.end();
  const { signal } = await dying.exited;
  const isDead = signal === "SIGKILL";
  // The process may also die after it has answered, while it records the end of the run.
  expect(first !== undefined || isDead).toBe(true);

  const next = started(environment);
  const resumed = await takeUp(next, runs, call, async () => {
    expect({ writes: gate.writes(), lines: await service.lines() }).toEqual({ writes: 0, lines: before });
  });
  if (isWithoutProof(call, resumed)) {
    // Everything that was created still exists, and nothing exists twice.
    const lines = await service.lines();
    expect(lines.length).toBeGreaterThan(before.length);
    expect(new Set(lines).size).toBe(lines.length);
    expect(unjournaled).toEqual([]);
    next.child.stdin.end();
    expect(await next.exited).toEqual({ code: 0, signal: null });
    return isDead;
  }
  expect(await service.lines()).toEqual(scenario.after);
  expect(resumed).toMatchObject({ status: "succeeded", counts: { items: scenario.items, pending: 0, unknown: 0 } });
  const isDelete = call.tool.startsWith("delete") || call.tool === "apply_plan";
  const names = await service.names();
  for (const { outcome, _id, name } of resumed.results) {
    expect(isDelete ? ["succeeded", "alreadyDone"] : ["succeeded"]).toContain(outcome);
    if (!isDelete && name !== undefined && _id !== undefined) expect(names.get(_id)).toBe(name);
    if (call.tool !== "create_targetings") expect(_id).toBeDefined();
  }
  const sent = gate.writes();
  const again = await tool(next, "resume_run", { runId: resumed.runId });
  expect({ ...again, sent: gate.writes() }).toMatchObject({ status: "succeeded", counts: resumed.counts, sent });
  // Otherwise later answers would name the run as interrupted, although nothing is left to do.
  expect(storedStatus(runs, resumed.runId ?? "")).toBe("finished");
  expect(unjournaled).toEqual([]);
  next.child.stdin.end();
  expect(await next.exited).toEqual({ code: 0, signal: null });
  return isDead;
}

/**
 * Returns whether a new process could not find out if this run created the targetings. Targetings cannot be listed, and
 * this process has not yet compared its clock with the service's. Their outcome is then `unknown`, never `failed`.
 */
function isWithoutProof({ tool }: Prepared, { counts, failures }: Report): boolean {
  if (tool !== "create_targetings" || counts.unknown === 0) return false;
  expect(counts.failed).toBe(0);
  const codes = z.array(z.looseObject({ errorCode: z.string() })).parse(failures);
  expect(["OWNER_UNCLEAR", "NEEDS_FAILED"]).toEqual(expect.arrayContaining(codes.map(({ errorCode }) => errorCode)));
  return true;
}

/**
 * Prepares a scenario. If that needs tools, they are called in another process, which ends before the test kills one.
 */
async function prepared(
  scenario: Scenario,
  service: Awaited<ReturnType<typeof startService>>,
  folder: string,
  environment: Readonly<Record<string, string>>,
): Promise<Prepared> {
  let helper: Server | undefined;
  const call = await scenario.prepare(
    service,
    async (name, text) => {
      await writeFile(join(folder, name), text);
      return join(folder, name);
    },
    (name, args) => {
      helper ??= started(environment);
      return runOf(helper, name, args);
    },
  );
  helper?.child.stdin.end();
  await helper?.exited;
  return call;
}

function deadlyRequest(death: Death): DeadlyRequest | undefined {
  if (death.at === "request") return death.request;
  return death.at === "lateRequest" ? { nth: death.nth, moment: "applied" } : undefined;
}

/** Resumes the stored run. If no run was started, checks that nothing was sent, and makes the call again. */
async function takeUp(
  server: Server,
  runs: string,
  call: Prepared,
  checkUntouched: () => Promise<void>,
): Promise<Report> {
  const planned = z.string().safeParse(call.args.runId).data;
  for (const runId of planned === undefined ? runsIn(runs) : [planned]) {
    const resumed = await tool(server, "resume_run", { runId });
    if (resumed.status === "planned") break;
    if (resumed.runId !== undefined) return resumed;
    // These servers do not ask for approval. A run that died before its start must say that nothing was sent, not that
    // it waits for approval.
    expect(JSON.stringify(resumed.refused)).toMatch(/nothing was sent|there is no run/);
  }
  await checkUntouched();
  return tool(server, call.tool, call.args);
}
