import { mkdtemp, readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, type TestClient, textOf, toolResult } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { COMMAND, cleanEnvironment, OPENING, startCommand, toolCall } from "../support/server-process.ts";
import { startService } from "../support/service.ts";
import { checkedReport } from "../support/writing.ts";

const answer = z.looseObject({ error: z.looseObject({ message: z.string(), remedy: z.string() }) });

/** A service, and a folder for the files and states of all servers that use it. */
const begun = perFile(async () => ({
  sandbox: await startService(),
  folders: await mkdtemp(join(tmpdir(), "targeting-mcp-")),
}));

/** Returns the settings of a server that uses this service. */
async function environment(more: Readonly<Record<string, string>>) {
  const { sandbox, folders } = await begun();
  return {
    ...sandbox.live,
    TARGETING_MCP_STATE_DIR: join(folders, "state"),
    TARGETING_MCP_ALLOWED_DIRS: folders,
    TARGETING_MCP_LOG_LEVEL: "error",
    ...more,
  };
}

async function connect(more: Readonly<Record<string, string>>): Promise<TestClient> {
  return CLIENTS["2025 client"]({ args: [COMMAND], env: cleanEnvironment(await environment(more)) });
}

/** A client of a server. Tests with the same settings share it. */
const shared = perFile(connect);

let made = 0;

/** Creates a targeting with two options, and a folder for saved files. */
async function service() {
  const { sandbox, folders } = await begun();
  const folder = await mkdtemp(join(folders, "saved-"));
  const faults = async (...some: object[]): Promise<void> => {
    await sandbox.control("DELETE", "/faults");
    await sandbox.control("POST", "/faults", { faults: some });
  };
  await faults();
  made += 1;
  const targetingId = await sandbox.targeting(`News ${made}`);
  const ids = await sandbox.options(targetingId, [{ name: "One", contexts: ["a"] }, { name: "Two" }]);
  return { sandbox, targetingId, ids, folder, faults };
}

const saving = z.looseObject({ status: z.literal("running"), runId: z.string() });
const HUNG = { kind: "timeout", on: "read", times: 1000 };
const page = z.looseObject({
  options: z.array(z.looseObject({})),
  cursor: z.string().optional(),
  scanned: z.number().default(0),
});

/** Waits until a run has ended. */
async function ended(client: TestClient, runId: string | undefined) {
  for (;;) {
    const given = await client.callTool("get_run", { runId, waitMs: 5000 });
    const report = checkedReport(given);
    if (report.status !== "running") return { report, text: textOf(given) };
  }
}

describe("an API that hangs", () => {
  test("every read answers within the wait, in our own words", async () => {
    const { targetingId, ids, faults } = await service();
    const client = await shared({ TARGETING_MCP_WAIT_MS: "1000" });
    await faults(HUNG);
    const [optionId] = ids;
    const reads: [string, Record<string, unknown>][] = [
      ["get_targeting", { targetingId }],
      ["list_options", { targetingId }],
      ["list_options", { targetingId, search: "On" }],
      ["get_option", { optionId }],
    ];
    const answers = await Promise.all(reads.map(([tool, args]) => client.callTool(tool, args)));
    for (const given of answers) {
      const { error } = answer.parse(given.structuredContent);
      expect(given.isError).toBe(true);
      expect(error.message).toMatch(/service had not answered after 1,000 ms/);
      expect(error.remedy).toMatch(/TARGETING_MCP_WAIT_MS/);
      expect(textOf(given)).toContain(error.message);
    }
  });

  test("saving a list goes on behind the answer, and the file and its base appear together", async () => {
    const { targetingId, folder, faults } = await service();
    const client = await shared({ TARGETING_MCP_WAIT_MS: "1000" });
    await faults(HUNG);
    const first = await client.callTool("list_options", { targetingId, saveTo: join(folder, "all.csv") });
    const { runId } = saving.parse(first.structuredContent);
    expect(await readdir(folder)).toEqual([]);
    await faults();
    const look = async () => {
      const { structuredContent } = await client.callTool("get_run", { runId, waitMs: 1000 });
      return z.looseObject({ status: z.string() }).parse(structuredContent);
    };
    await expect.poll(look).toMatchObject({
      ...{ runId, tool: "list_options", status: "succeeded" },
      ...{ savedTo: expect.stringMatching(/all\.csv$/), base: expect.stringMatching(/all\.base\.ndjson$/) },
      counts: { options: 2, contextIds: 1 },
    });
    expect((await readdir(folder)).sort()).toEqual(["all.base.ndjson", "all.csv"]);
    const { structuredContent } = await client.callTool("get_run", { tool: "list_options", targetingId });
    expect(structuredContent).toMatchObject({ runs: [{ runId, tool: "list_options", status: "succeeded" }] });
  });

  test("saving one option goes on behind the answer, too", async () => {
    const { targetingId, ids, folder, faults } = await service();
    const client = await shared({ TARGETING_MCP_WAIT_MS: "1000" });
    await faults(HUNG);
    const args = { optionId: ids[0], targetingId, saveTo: join(folder, "one.csv") };
    const first = await client.callTool("get_option", args);
    const { runId } = saving.parse(first.structuredContent);
    expect(textOf(first)).toContain("get_run");
    expect(await readdir(folder)).toEqual([]);
    await faults();
    const look = async () => (await client.callTool("get_run", { runId, waitMs: 1000 })).structuredContent;
    await expect.poll(look).toMatchObject({
      ...{ runId, tool: "get_option", status: "succeeded", total: 1, counts: { options: 1, contextIds: 1 } },
      option: { _id: ids[0], name: "One" },
      savedTo: expect.stringMatching(/one\.csv$/),
    });
    expect(await readdir(folder)).toEqual(["one.csv"]);
    expect(await readFile(join(folder, "one.csv"), "utf8")).toContain(`${ids[0]},One,Set,a`);
    const runs = await client.callTool("get_run", { tool: "get_option", targetingId });
    expect(runs.structuredContent).toMatchObject({ runs: [{ runId, status: "succeeded" }] });
    const again = await client.callTool("get_option", args);
    expect(again.isError).toBe(true);
    expect(textOf(again)).toContain("exists already");
  });

  test.each([
    ["a list", "list_options", "all.yaml", ["all.base.ndjson", "all.yaml"]],
    ["one option", "get_option", "one.ndjson", ["one.ndjson"]],
  ] as const)("saving %s that a crash cut off is done anew by resume_run", async (_, tool, file, files) => {
    const { targetingId, ids, folder, faults } = await service();
    await faults(HUNG);
    const killed = startCommand([], await environment({ TARGETING_MCP_WAIT_MS: "1000" }));
    const read = tool === "get_option" ? { optionId: ids[0] } : { targetingId };
    const saves = toolCall("save", tool, { ...read, saveTo: join(folder, file) });
    for (const message of [...OPENING, saves]) killed.send(message);
    const going = z.looseObject({ result: z.looseObject({}) }).parse(await killed.answer("save"));
    const { runId } = saving.parse(toolResult.parse(going.result).structuredContent);
    killed.child.kill("SIGKILL");
    await killed.exited;
    await faults();
    const client = await shared({});
    const resumed = await client.callTool("resume_run", { runId });
    expect(resumed.structuredContent).toMatchObject({ runId, tool, status: "succeeded", counts: { contextIds: 1 } });
    expect((await readdir(folder)).sort()).toEqual(files);
  });

  test("a write that may change only some targetings answers within the wait, too", async () => {
    const { targetingId, ids, faults } = await service();
    const client = await connect({ TARGETING_MCP_WAIT_MS: "1000", TARGETING_MCP_ALLOWED_TARGETINGS: targetingId });
    await faults(HUNG);
    const given = await client.callTool("update_options", { items: [{ _id: ids[0], name: "New name" }] });
    const { error } = answer.parse(given.structuredContent);
    expect(error.message).toMatch(/had not answered after 1,000 ms.*nothing was changed/);
  });

  test("a search that a read cuts short gives what it found, and a cursor", async () => {
    const { sandbox, faults } = await service();
    const client = await shared({ TARGETING_MCP_WAIT_MS: "1000" });
    const targetingId = await sandbox.targeting("Sports");
    const empty = Array.from({ length: 10 }, (_, number) => ({ name: `Empty ${number}` }));
    await sandbox.options(targetingId, [...empty, { name: "Full", contexts: ["b"] }]);
    await faults({ ...HUNG, on: "getOption" });
    const search = { targetingId, contextId: "b" };
    const first = page.parse((await client.callTool("list_options", search)).structuredContent);
    expect(first).toMatchObject({ options: [], note: expect.stringContaining("The call reached its time limit") });
    expect(first.scanned).toBeLessThanOrEqual(10);
    await faults();
    const rest = await client.callTool("list_options", { ...search, cursor: first.cursor });
    const found = page.parse(rest.structuredContent);
    expect(found.options).toMatchObject([{ name: "Full" }]);
    // Both calls together have read each option once.
    expect(found.scanned).toBe(11);
  });

  test("one read that hangs is tried again, and the change is made", async () => {
    const { targetingId, faults } = await service();
    const client = await connect({ TARGETING_MCP_WAIT_MS: "3000" });
    await faults({ kind: "timeout", on: "listOptions", times: 1 });
    const args = { targetingId, items: [{ name: "One", add: ["c"] }] };
    const { runId } = checkedReport(await client.callTool("update_contexts", args));
    expect((await ended(client, runId)).report).toMatchObject({
      status: "succeeded",
      counts: { items: 1, succeeded: 1 },
    });
  });
});

describe("a change that cannot be planned", () => {
  // Planning lasts much longer than the call waits, so that the call answers first on a busy machine, too.
  const BRIEF = {
    TARGETING_MCP_WAIT_MS: "600",
    TARGETING_MCP_RETRY_BUDGET_MS: "5000",
    TARGETING_MCP_REQUEST_TIMEOUT_MS: "4500",
  };

  test.each([
    [
      "that adds",
      "update_contexts",
      {
        items: [
          { name: "One", add: ["c"] },
          { names: ["Two", "One"], add: ["d"] },
        ],
      },
      3,
    ],
    ["that may need a yes", "delete_options", { names: ["One", "Two"] }, 2],
  ] as const)("%s says so, in its journal too, and is taken up again", async (_case, tool, given, items) => {
    const { targetingId, faults } = await service();
    const via = await connect({ ...BRIEF, TARGETING_MCP_CONFIRM: tool === "delete_options" ? "ask" : "off" });
    await faults(HUNG);
    const going = checkedReport(await via.callTool(tool, { targetingId, ...given }));
    expect(going).toMatchObject({ status: "running", counts: { items, pending: items } });
    const { report, text } = await ended(via, going.runId);
    expect(report).toMatchObject({ status: "interrupted", counts: { items, notApplied: items } });
    expect(report.failures).toMatchObject([{ count: items, outcome: "notApplied", errorCode: "NOT_PLANNED" }]);
    expect(report.failures[0]?.message).toMatch(/nothing was changed: the service gave no usable answer/);
    expect(text).toContain("nothing was changed");
    expect(text).toContain("resume_run");
    await via.close();
    // Another process knows only what was stored.
    const other = await shared({ TARGETING_MCP_CONFIRM: "off" });
    expect((await ended(other, going.runId)).report).toMatchObject({
      status: "interrupted",
      failures: report.failures,
    });
    await faults();
    const resumed = checkedReport(await other.callTool("resume_run", { runId: going.runId }));
    expect(resumed).toMatchObject({ status: "succeeded", counts: { items, succeeded: items } });
  });

  test("for a targeting that is not there has failed, and tells which", async () => {
    const { faults } = await service();
    const client = await connect({
      ...BRIEF,
      TARGETING_MCP_RETRY_BUDGET_MS: "20000",
      TARGETING_MCP_REQUEST_TIMEOUT_MS: "300",
    });
    await faults({ ...HUNG, on: "listOptions", times: 2 });
    const missing = { targetingId: "01ARZ3NDEKTSV4RRFFQ69G5FAV", items: [{ name: "One", add: ["c"] }] };
    const going = checkedReport(await client.callTool("update_contexts", missing));
    const { report } = await ended(client, going.runId);
    expect(report).toMatchObject({ status: "failed", counts: { items: 1, notApplied: 1 } });
    expect(report.failures[0]?.message).toMatch(
      /nothing was changed: the project of the API key has no context targeting/,
    );
  });

  test("that a crash cuts short still counts what was given, and is taken up again", async () => {
    const { targetingId, faults } = await service();
    await faults(HUNG);
    const server = startCommand([], await environment({ TARGETING_MCP_WAIT_MS: "300" }));
    for (const message of OPENING) server.send(message);
    const args = { targetingId, items: [{ name: "Three", children: [{ name: "Four" }] }], onExisting: "skip" };
    server.send(toolCall(1, "bulk_add_options", args));
    const going = z.looseObject({ result: z.looseObject({}) }).parse(await server.answer(1));
    const { runId } = checkedReport(toolResult.parse(going.result));
    const other = await shared({});
    const look = async () => checkedReport(await other.callTool("get_run", { runId }));
    expect(await look()).toMatchObject({ status: "running", counts: { items: 2, pending: 2 } });
    server.child.kill("SIGKILL");
    await server.exited;
    expect(await look()).toMatchObject({ status: "interrupted", counts: { items: 2, pending: 2 } });
    await faults();
    const resumed = checkedReport(await other.callTool("resume_run", { runId }));
    expect(resumed).toMatchObject({ status: "succeeded", counts: { items: 2, succeeded: 2 } });
  });
});
