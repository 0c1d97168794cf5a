import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, type TestClient, textOf } from "../support/clients.ts";
import { addFault } from "../support/hold.ts";
import { COMMAND, cleanEnvironment, OPENING, startCommand, toolCall } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

const answer = z.looseObject({
  runId: z.string().optional(),
  status: z.string().optional(),
  counts: z.looseObject({}).optional(),
  undo: z.record(z.string(), z.number()).optional(),
  undoes: z.string().optional(),
  results: z.array(z.looseObject({ _id: z.string().optional() })).optional(),
  nextSteps: z.array(z.string()).optional(),
  runs: z.array(z.looseObject({ runId: z.string(), status: z.string() })).optional(),
});

async function world() {
  const service = await startService();
  const env = cleanEnvironment({ ...service.live, TARGETING_MCP_CONFIRM: "off", TARGETING_MCP_LOG_LEVEL: "error" });
  const connected = () => CLIENTS["2025 client"]({ args: [COMMAND], env });
  return { ...service, env, connected };
}

function callsOf(client: TestClient) {
  return async (name: string, args: Readonly<Record<string, unknown>>) => {
    const given = await client.callTool(name, args);
    return { data: answer.parse(given.structuredContent ?? {}), text: textOf(given) };
  };
}

/** A session with a targeting of three options. */
async function session() {
  const { connected, targeting, options } = await world();
  const call = callsOf(await connected());
  const targetingId = await targeting("Undone again");
  const ids = await options(targetingId, [
    { name: "One", contexts: ["a"] },
    { name: "Two", contexts: ["b"] },
    { name: "Three", contexts: ["c"] },
  ]);
  return { call, targetingId, ids };
}

/** Ends a server by SIGKILL when the service has executed its request and has not answered yet. */
async function killed(names: readonly string[]) {
  const service = await world();
  const targetingId = await service.targeting("Killed");
  const answered = await addFault(service.url, { kind: "timeout", on: "addOptions", applied: true });
  const server = startCommand([], service.env);
  for (const message of OPENING) server.send(message);
  server.send(
    toolCall(2, "bulk_add_options", { targetingId, items: names.map((name) => ({ name, contexts: ["x"] })) }),
  );
  const call = callsOf(await service.connected());
  await expect
    .poll(async () => (await call("list_options", { targetingId })).data.total, { timeout: 15_000 })
    .toBe(names.length);
  server.child.kill("SIGKILL");
  await server.exited;
  await answered();
  const [run] = (await call("get_run", {})).data.runs ?? [];
  return { call, targetingId, runId: run?.runId, service };
}

test("requests without an answer are unknown in a killed run, and resuming says what was known", async () => {
  const { call, runId } = await killed(["One", "Two", "Three"]);
  const shown = await call("get_run", { runId });
  expect(shown.data).toMatchObject({ status: "interrupted", counts: { unknown: 3, pending: 0 } });
  expect(shown.text).toContain("3 options unknown (sent, result not known)");
  expect(shown.text).not.toContain("finishes what was not applied");
  expect((await call("get_run", { runId, outcome: "unknown" })).data.results).toHaveLength(3);
  const [listed] = (await call("get_run", {})).data.runs ?? [];
  expect(listed).toMatchObject({ status: "interrupted", counts: { unknown: 3, pending: 0 } });
  expect((await call("undo_run", { runId })).text).toContain("3 unresolved");
  const resumed = await call("resume_run", { runId });
  expect(resumed.data).toMatchObject({ status: "succeeded", counts: { succeeded: 3 } });
  expect(resumed.text).toContain("Resumed: 0 of 3 were known to be done before, and 3 were unknown; 3 are done now.");
}, 120_000);

test("an option that no longer exists is named in the undo of its change", async () => {
  const { call, ids } = await session();
  const [one] = ids;
  const { runId } = (await call("update_contexts", { items: [{ _id: one, add: ["new"] }] })).data;
  await call("delete_options", { ids: [one] });
  const planned = await call("undo_run", { runId });
  expect(planned.data.results).toMatchObject([{ _id: one, name: "One", undo: "notOurs", field: "deleted" }]);
  expect(planned.text).toContain(`"One" (${one})`);
});
