import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import * as z from "zod";
import { toolCall } from "../support/server-process.ts";
import { answer, type Report, type Server, started, tool } from "./deadly-server.ts";
import { startService } from "./service.ts";

// A deletion waits for approval, and is approved or cancelled. Its process is killed before each change of the state
// folder. Nothing may be deleted without approval or after the cancellation, and no approval may be lost.

const deaths = inject("deaths");
const isEvery = deaths === "every";
const AT_ONCE = 4;

const waiting = z.looseObject({ confirmation: z.looseObject({ token: z.string() }) });

type Decision = "approved" | "cancelled";

function decide(server: Server, decision: Decision, { runId }: Report, token: string): Promise<Report> {
  return decision === "approved"
    ? tool(server, "delete_options", { confirmation: token })
    : tool(server, "cancel_run", { runId });
}

/** Kills a process at its nth change of the folder. Returns false if the process makes fewer changes. */
async function dieDeciding(decision: Decision, nth: number): Promise<boolean> {
  const service = await startService();
  const targetingId = await service.targeting("Footwear");
  const ids = await service.options(targetingId, [{ name: "Red", contexts: ["r"] }, { name: "Blue" }]);
  const [before, args] = [await service.lines(), { ids: ids.slice(0, 1) }];
  const environment = {
    ...{ TARGETING_API_URL: service.url, TARGETING_API_KEY: "sandbox-key", TARGETING_MCP_MODE: "live" },
    ...{ TARGETING_MCP_STATE_DIR: mkdtempSync(join(tmpdir(), "targeting-mcp-kill-")), TARGETING_MCP_PAGE: "off" },
    TARGETING_MCP_LOG_LEVEL: "silent",
  };
  const dying = started({ ...environment, DEADLY: `operation:${nth}` });
  dying.send(toolCall("ask", "delete_options", args));
  const asked = await Promise.race([answer(dying, "ask"), dying.exited.then(() => undefined)]);
  const token = waiting.safeParse(asked).data?.confirmation.token;
  // Before the approval, nothing is deleted.
  expect(await service.lines()).toEqual(before);
  let decided: Report | undefined;
  if (asked !== undefined && token !== undefined) {
    const [name, given] =
      decision === "approved" ? ["delete_options", { confirmation: token }] : ["cancel_run", { runId: asked.runId }];
    dying.send(toolCall("decide", name, given));
    decided = await Promise.race([answer(dying, "decide"), dying.exited.then(() => undefined)]);
  }
  const hasDied = decided === undefined;
  dying.child.kill("SIGKILL");
  await dying.exited;

  const next = started(environment);
  const without = before.filter((line) => !line.includes("Red"));
  if (asked === undefined || token === undefined) {
    expect(await service.lines()).toEqual(before);
    // The same call asks for approval again, whatever the first one has left in the folder.
    expect(await tool(next, "delete_options", args)).toMatchObject({ status: "needs_confirmation" });
    return hasDied;
  }
  const told = await decide(next, decision, asked, token);
  if (decision === "cancelled") {
    expect(told.status).toBe("cancelled");
    expect(JSON.stringify(await decide(next, "approved", asked, token))).toContain("cancelled before it was started");
    expect(await service.lines()).toEqual(before);
    return hasDied;
  }
  const end = told.status === "succeeded" ? told : await tool(next, "resume_run", { runId: asked.runId });
  // If the process died before it had stored what to delete, the new process asks for approval again.
  const again = waiting.safeParse(end).data?.confirmation.token;
  const done = again === undefined ? end : await tool(next, "resume_run", { runId: asked.runId, confirmation: again });
  expect(done).toMatchObject({ status: "succeeded", counts: { items: 1 } });
  expect(await service.lines()).toEqual(without);
  return hasDied;
}

async function diedDeciding(decision: Decision, nth: number): Promise<boolean> {
  try {
    return await dieDeciding(decision, nth);
  } catch (thrown) {
    throw new Error(`after a death at change ${nth}`, { cause: thrown });
  }
}

describe.each(["approved", "cancelled"] as const)("killed while a deletion waits and is %s", (decision) => {
  test.runIf(isEvery)("at every change of the folder", async () => {
    for (let first = 1; ; first += AT_ONCE) {
      const some = Array.from({ length: AT_ONCE }, (_, more) => diedDeciding(decision, first + more));
      const survived = (await Promise.all(some)).indexOf(false);
      if (survived < 0) continue;
      expect(first + survived).toBeGreaterThan(20);
      return;
    }
  });

  test.runIf(deaths === "some")("here and there", async () => {
    for (const first of [5, 30]) {
      const some = Array.from({ length: AT_ONCE }, (_, more) => diedDeciding(decision, first + 6 * more));
      await Promise.all(some);
    }
  });
});
