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

type Call = ReturnType<typeof callsOf>;

/** Starts a session with a targeting of three options. */
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

async function undone(call: Call, runId: string | undefined) {
  const planned = await call("undo_run", { runId });
  const applied = await call("apply_plan", { runId: planned.data.runId });
  return { planned, applied, runId: planned.data.runId };
}

async function namesIn(call: Call, targetingId: string): Promise<readonly unknown[]> {
  const { data } = await call("list_options", { targetingId });
  return z
    .array(z.looseObject({ name: z.string() }))
    .parse(data.options)
    .map(({ name }) => name)
    .sort();
}

/** Kills a server after the service has executed its request, but before the service answers. */
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

test("an undo that leaves every unanswered object says so, and the run stays open for both", async () => {
  const { call, targetingId, runId } = await killed(["One", "Two"]);
  await call("update_contexts", {
    targetingId,
    items: [
      { name: "One", add: ["theirs"] },
      { name: "Two", add: ["theirs"] },
    ],
  });
  const { planned, applied } = await undone(call, runId);
  expect(planned.text).toContain("2 unresolved");
  expect(applied.data).toMatchObject({ status: "failed", counts: { items: 2, failed: 2 }, requests: { sent: 0 } });
  expect(applied.text).not.toContain("No change to apply");
  expect(applied.text).toMatch(/"One".*was left as it is.*1 Context ID, but has 2/s);
  expect(applied.text).toContain(`undo_run {"runId":"${runId}"}`);
  const shown = await call("get_run", { runId });
  expect(shown.text).not.toContain("was undone");
  await call("update_contexts", { targetingId, items: [{ name: "One", remove: ["theirs"] }] });
  const second = await undone(call, runId);
  expect(second.applied.data).toMatchObject({ status: "partial", counts: { items: 2, succeeded: 1, failed: 1 } });
  expect(await namesIn(call, targetingId)).toEqual(["Two"]);
  const part = await call("get_run", { runId });
  expect(part.text).toContain(`undone in part by run ${second.runId}`);
  expect(part.text).not.toContain("resume_run");
  await call("update_contexts", { targetingId, items: [{ name: "Two", remove: ["theirs"] }] });
  expect((await undone(call, runId)).applied.data.status).toBe("succeeded");
  expect(await namesIn(call, targetingId)).toEqual([]);
  expect((await call("undo_run", { runId })).text).toContain("was undone before");
}, 120_000);

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
  expect(resumed.text).toContain(
    "Resumed: 0 of 3 were known to be done before, and 3 were unknown; now 3 more are known to be done.",
  );
}, 120_000);

test("what an undo could not restore is planned again alone, once nothing prevents it", async () => {
  const { call, targetingId, ids } = await session();
  const [, two, three] = ids;
  const deleted = await call("delete_options", { ids: [two, three] });
  const other = await call("bulk_add_options", { targetingId, items: [{ name: "Two" }] });
  const first = await undone(call, deleted.data.runId);
  expect(first.applied.text).toContain('Not undone: "Two"');
  expect(first.applied.text).toContain(`undo_run {"runId":"${deleted.data.runId}"}`);
  const again = await call("undo_run", { runId: deleted.data.runId });
  expect(again.data).toMatchObject({ undo: { exact: 0, caveat: 0, impossible: 1 } });
  expect(again.text).not.toContain("undone before");
  expect(again.data.runId).toBeUndefined();
  const shown = await call("get_run", { runId: deleted.data.runId });
  expect(shown.text).toContain(`undone in part by run ${first.runId}`);
  await call("delete_options", { ids: [other.data.results?.[0]?._id] });
  const second = await undone(call, deleted.data.runId);
  expect(second.planned.data.undo).toEqual({ exact: 0, caveat: 1, notOurs: 0, impossible: 0 });
  expect(second.applied.data.status).toBe("succeeded");
  expect(await namesIn(call, targetingId)).toEqual(["One", "Three", "Two"]);
  const third = await call("undo_run", { runId: deleted.data.runId });
  expect(third.text).toContain(`this run was undone before by runs ${first.runId} and ${second.runId}`);
  expect((await call("get_run", { runId: deleted.data.runId })).text).toContain(
    `This run was undone by run ${second.runId} and cannot be resumed.`,
  );
});

test("a second undo that finds everything undone does not count as the undo of the run", async () => {
  const { call, targetingId } = await session();
  const { runId } = (await call("bulk_add_options", { targetingId, items: [{ name: "New" }] })).data;
  const plans = [await call("undo_run", { runId }), await call("undo_run", { runId })];
  const [first, second] = plans.map(({ data }) => data.runId);
  await call("apply_plan", { runId: first });
  const again = await call("apply_plan", { runId: second });
  expect(again.data).toMatchObject({ status: "succeeded", counts: { alreadyDone: 1 } });
  const resumed = await call("resume_run", { runId });
  expect(resumed.text).toContain(`this run was undone by run ${first} and cannot be resumed`);
  const nothing = await call("undo_run", { runId: second });
  expect(nothing.text).toContain(`Planned the undo of run ${second}: the run changed nothing; nothing was sent.`);
  await undone(call, first);
  expect(await namesIn(call, targetingId)).toContain("New");
  for (const tool of ["get_run", "resume_run"]) {
    expect((await call(tool, { runId })).text.toLowerCase()).toContain(
      `this run was undone by run ${first}, and that undo was undone`.toLowerCase(),
    );
  }
});

test("a field that others changed meanwhile is undone later, and what was undone stays as it is", async () => {
  const { call, targetingId, ids } = await session();
  const [one, two] = ids;
  const items = [
    { _id: one, name: "Mine" },
    { _id: two, name: "Mine too" },
  ];
  const { runId } = (await call("update_options", { items })).data;
  await call("update_options", { items: [{ _id: one, name: "Theirs" }] });
  expect((await undone(call, runId)).applied.data.status).toBe("succeeded");
  expect(await namesIn(call, targetingId)).toEqual(["Theirs", "Three", "Two"]);
  // Someone gives one of the options the same name. The run did not write this name, so its undo does not change the
  // option.
  await call("update_options", { items: [{ _id: two, name: "Mine too" }] });
  await call("update_options", { items: [{ _id: one, name: "Mine" }] });
  expect((await undone(call, runId)).planned.data.undo).toMatchObject({ exact: 1, notOurs: 0 });
  expect(await namesIn(call, targetingId)).toEqual(["Mine too", "One", "Three"]);
});

test("an undo that later runs of the caller prevent names these runs, until they are undone too", async () => {
  const { call, targetingId, ids } = await session();
  const [one = "", two = ""] = ids;
  const renamed = await call("update_options", {
    items: [
      { _id: one, name: "Uno" },
      { _id: two, name: "Dos" },
    ],
  });
  const { runId } = renamed.data;
  const again = await call("update_options", { items: [{ _id: one, name: "Eins" }] });
  const taken = await call("bulk_add_options", { targetingId, items: [{ name: "Two" }] });
  const part = await call("undo_run", { runId });
  expect(part.text).toContain(
    `Later runs prevent a part of this undo: run ${taken.data.runId} (bulk_add_options, 1 object), ` +
      `run ${again.data.runId} (update_options, 1 object). To undo that part too, undo these runs, the latest first, and plan this undo again.`,
  );
  await undone(call, taken.data.runId);
  expect((await call("undo_run", { runId })).text).toContain(
    `A later run prevents a part of this undo: run ${again.data.runId} (update_options, 1 object).`,
  );
  await undone(call, again.data.runId);
  const whole = await undone(call, runId);
  expect(whole.planned.text).not.toContain("prevent");
  expect(await namesIn(call, targetingId)).toEqual(["One", "Three", "Two"]);
});

test("after the undo of an undo, the first run can be undone again", async () => {
  const { call, targetingId, ids } = await session();
  const deleted = (await call("delete_options", { ids: ids.slice(1) })).data.runId;
  const restored = await undone(call, deleted);
  const again = await undone(call, restored.runId);
  expect(await namesIn(call, targetingId)).toEqual(["One"]);
  expect((await call("get_run", { runId: deleted })).text).toContain(
    `This run was undone by run ${restored.runId}, and that undo was undone: undo_run {"runId":"${deleted}"} undoes it again.`,
  );
  const planned = await call("undo_run", { runId: deleted });
  expect(planned.data).toMatchObject({ undoes: again.runId, undo: { caveat: 2 } });
  expect(planned.text).toContain(`Run ${deleted} was undone by run ${restored.runId}, and that undo was undone`);
  expect((await call("apply_plan", { runId: planned.data.runId })).data.status).toBe("succeeded");
  expect(await namesIn(call, targetingId)).toEqual(["One", "Three", "Two"]);
  expect((await call("undo_run", { runId: deleted })).text).toContain(`undone before by run ${planned.data.runId}`);
  expect((await call("get_run", { runId: deleted })).text).toContain(
    `This run was undone by run ${planned.data.runId}`,
  );
});

test("a run that was undone offers no resume_run", async () => {
  const { call, targetingId, runId } = await killed(["One", "Two"]);
  expect((await undone(call, runId)).applied.data.status).toBe("succeeded");
  expect(await namesIn(call, targetingId)).toEqual([]);
  const shown = await call("get_run", { runId });
  expect(shown.text).toContain("This run was undone by run");
  expect(shown.text).not.toContain("resume_run");
  expect(shown.data.nextSteps ?? []).toEqual([]);
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
