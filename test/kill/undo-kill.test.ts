import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { toolCall } from "../support/server-process.ts";
import { answer, linesAt, type Server, started, tool } from "./deadly-server.ts";
import { type DeadlyRequest, openGate } from "./gate.ts";
import { runsIn } from "./journals.ts";
import type { Prepared } from "./scenarios.ts";
import { type Service, startService } from "./service.ts";

/** How long a request may take, in milliseconds. If nothing proves what a lost request did, an undo waits this long. */
const REQUEST_TIMEOUT_MS = 1500;

/**
 * Kills a real process at a request of a call. A new process undoes the run without resuming it. Checks that planning
 * the undo sends nothing. Returns the plan of the undo and the result of applying it.
 */
async function dieAndUndo(
  prepare: (service: Service) => Promise<Prepared>,
  deadly: DeadlyRequest,
  {
    setUp = async () => undefined,
    meanwhile = async () => undefined,
  }: {
    readonly setUp?: (service: Service) => Promise<unknown>;
    /** What other users do after the undo is planned and before it is applied. */
    readonly meanwhile?: (service: Service) => Promise<unknown>;
  } = {},
) {
  const service = await startService();
  const state = mkdtempSync(join(tmpdir(), "targeting-mcp-kill-"));
  let dying: Server | undefined;
  const gate = await openGate(service.url, {
    deadly,
    onWrite: () => {},
    kill: async () => {
      dying?.child.kill("SIGKILL");
      await dying?.exited;
    },
  });
  const environment = {
    ...{ TARGETING_API_URL: gate.url, TARGETING_API_KEY: "sandbox-key", TARGETING_MCP_MODE: "live" },
    TARGETING_MCP_CONFIRM: "off",
    TARGETING_MCP_STATE_DIR: state,
    TARGETING_MCP_REQUEST_TIMEOUT_MS: `${REQUEST_TIMEOUT_MS}`,
    TARGETING_MCP_LOG_LEVEL: "silent",
  };
  const call = await prepare(service);
  const before = await service.lines();
  await setUp(service);
  gate.arm();
  dying = started(environment);
  dying.send(toolCall("call", call.tool, call.args));
  expect(await Promise.race([answer(dying, "call"), dying.exited])).toMatchObject({ signal: "SIGKILL" });

  const next = started(environment);
  const [runId = ""] = runsIn(join(state, "runs"));
  const sent = gate.writes();
  const plan = await tool(next, "undo_run", { runId });
  expect(gate.writes()).toBe(sent);
  await meanwhile(service);
  const applied = await tool(next, "apply_plan", { runId: plan.runId });
  const linesOf = (part: string) => linesAt(next, `targeting://runs/${runId}/${part}`);
  return { service, before, plan, applied, sent, writes: gate.writes(), linesOf };
}

const names = (count: number): string[] => Array.from({ length: count }, (_, at) => `Model ${100 + at}`);

/** A deletion of 50 of 60 options, which needs one request. */
async function deletion(service: Service): Promise<Prepared> {
  const targetingId = await service.targeting("Footwear");
  const ids = await service.options(
    targetingId,
    names(60).map((name) => ({ name, contexts: [`article-${name}`] })),
  );
  return { tool: "delete_options", args: { ids: ids.slice(0, 50) } };
}

describe("a process dies at a request, and its run is undone and not resumed", () => {
  test("once the deletion was carried out: all 50 options come back", async () => {
    const { service, before, plan, applied } = await dieAndUndo(deletion, { nth: 1, moment: "applied" });
    expect(plan).toMatchObject({ status: "planned", undo: { unresolved: 50, exact: 0 } });
    expect(plan.results[0]).toMatchObject({ undo: "unresolved", name: "Model 100" });
    expect(JSON.stringify(plan)).not.toContain("resume_run");
    expect(applied).toMatchObject({ status: "succeeded", counts: { items: 50, succeeded: 50 } });
    expect(await service.lines()).toEqual(before);
  });

  test("before the service had the deletion: nothing is sent, least of all the deletion", async () => {
    const { service, before, plan, applied, sent, writes } = await dieAndUndo(deletion, { nth: 1, moment: "arrived" });
    expect(plan).toMatchObject({ status: "planned", undo: { unresolved: 50 } });
    expect(JSON.stringify(applied)).not.toContain("resume_run");
    expect(writes).toBe(sent);
    expect(await service.lines()).toEqual(before);
  });

  test("while the deletion is still under way: it is waited for, and its 50 options come back", async () => {
    const setUp = (service: Service) => service.late(1);
    const { service, before, applied } = await dieAndUndo(deletion, { nth: 2, moment: "arrived" }, { setUp });
    expect(applied).toMatchObject({ status: "succeeded", counts: { items: 50, succeeded: 50 } });
    expect(await service.lines()).toEqual(before);
  });

  /** A deletion of 200 groups, which needs two requests. */
  const groups = async (service: Service): Promise<Prepared> => {
    const targetingId = await service.targeting("Footwear");
    const items = names(200).map((name) => ({ name, type: "collection", contexts: [`own-${name}`] }));
    const ids = [
      ...(await service.options(targetingId, items.slice(0, 100))),
      ...(await service.options(targetingId, items.slice(100))),
    ];
    return { tool: "delete_options", args: { ids } };
  };

  test("others change what else the plan would do: nothing is sent, and it is planned again", async () => {
    const meanwhile = async (service: Service) => {
      const [targetingId = ""] = [...(await service.names())].flatMap(([id, name]) => (name === "Footwear" ? id : []));
      return service.options(targetingId, [{ name: "Model 100" }]);
    };
    const { applied, sent, writes } = await dieAndUndo(groups, { nth: 2, moment: "applied" }, { meanwhile });
    expect(JSON.stringify(applied)).toMatch(/1 object of this undo changed since it was planned.*undo_run/);
    expect(writes).toBe(sent);
  });

  test("in the second of two requests that delete: both are taken back", async () => {
    const { service, before, plan, applied, linesOf } = await dieAndUndo(groups, { nth: 2, moment: "applied" });
    expect(plan).toMatchObject({ undo: { unresolved: 50, caveat: 150 } });
    expect(await linesOf("removed")).toHaveLength(150);
    const others = await linesOf("not-removed");
    expect(others).toHaveLength(50);
    expect(others[0]).toMatchObject({ removed: "unknown", type: "collection" });
    expect(applied).toMatchObject({ status: "succeeded", counts: { items: 200, succeeded: 200 } });
    expect(await service.lines()).toEqual(before);
  });

  test("in a request that adds: what it made is deleted again", async () => {
    const adding = async (service: Service): Promise<Prepared> => {
      const targetingId = await service.targeting("Footwear");
      await service.options(targetingId, [{ name: "Old", contexts: ["old"] }]);
      const items = names(22).map((name) => ({ name, contexts: [`article-${name}`] }));
      const group = { name: "Group", children: [{ name: "Inside", contexts: ["i"] }, { name: "Beside" }] };
      return { tool: "bulk_add_options", args: { targetingId, items: [...items, group] } };
    };
    const { service, before, plan, applied } = await dieAndUndo(adding, { nth: 1, moment: "applied" });
    expect(plan).toMatchObject({ undo: { unresolved: 25 } });
    expect(applied).toMatchObject({ status: "succeeded", counts: { items: 25, succeeded: 25 } });
    expect(await service.lines()).toEqual(before);
  });

  test("in a request that changes: names and Context IDs are as before", async () => {
    const changing = async (service: Service): Promise<Prepared> => {
      const targetingId = await service.targeting("Footwear");
      const ids = await service.options(
        targetingId,
        names(5).map((name) => ({ name, contexts: [`a-${name}`, `b-${name}`] })),
      );
      const items = ids.map((_id, at) => ({ _id, remove: [`a-Model ${100 + at}`], add: [`c-${at}`] }));
      return { tool: "update_contexts", args: { items } };
    };
    for (const moment of ["applied", "arrived"] as const) {
      const { service, before, plan } = await dieAndUndo(changing, { nth: 1, moment });
      expect(plan).toMatchObject({ undo: { unresolved: 5 } });
      expect(await service.lines()).toEqual(before);
    }
  });

  test("in a request that adds sub-options: the group's list from before shows which are its own", async () => {
    const adding = async (service: Service): Promise<Prepared> => {
      const targetingId = await service.targeting("Footwear");
      const [parent] = await service.options(targetingId, [{ name: "Group", type: "collection", contexts: ["own"] }]);
      return { tool: "bulk_add_options", args: { targetingId, items: [{ name: "Inside", parent }] } };
    };
    const { service, before, plan, applied } = await dieAndUndo(adding, { nth: 1, moment: "applied" });
    expect(plan).toMatchObject({ undo: { unresolved: 1 } });
    expect(applied).toMatchObject({ status: "succeeded", counts: { items: 1, succeeded: 1, unknown: 0 } });
    expect(await service.lines()).toEqual(before);
  });

  test("in a request that makes targetings, which cannot be listed: the plan says that it is not known", async () => {
    const making = async (): Promise<Prepared> => {
      return { tool: "create_targetings", args: { items: [{ name: "Footwear" }] } };
    };
    const { plan } = await dieAndUndo(making, { nth: 1, moment: "applied" });
    expect(plan).toMatchObject({ refused: { undo: { impossible: 1 } } });
  });
});
