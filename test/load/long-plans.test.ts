import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { perFile } from "../support/ends.ts";
import { OPENING, startCommand, toolCall } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

const PATIENT = { TARGETING_MCP_WAIT_MS: "30000" };

const answer = z.looseObject({
  result: z.looseObject({
    isError: z.boolean().optional(),
    structuredContent: z.looseObject({
      runId: z.string().optional(),
      status: z.string().optional(),
      tool: z.string().optional(),
      counts: z.looseObject({}).optional(),
      failures: z.array(z.looseObject({ message: z.string(), remedy: z.string() })).default([]),
      confirmation: z.looseObject({ token: z.string() }).optional(),
      nextSteps: z.array(z.string()).default([]),
      error: z.looseObject({ message: z.string() }).optional(),
    }),
    content: z.array(z.looseObject({ text: z.string() })),
  }),
});
const seeded = z.object({ targetings: z.array(z.string()), options: z.array(z.string()) });

/** A service, and a folder for its files and the states of all servers. */
const begun = perFile(async () => ({
  service: await startService(),
  folder: mkdtempSync(join(tmpdir(), "long-plans-")),
}));

/** Starts a server whose calls answer early. */
async function startServer(more: Readonly<Record<string, string>> = {}) {
  const { service, folder } = await begun();
  const server = startCommand([], {
    ...service.live,
    TARGETING_MCP_STATE_DIR: join(folder, "state"),
    TARGETING_MCP_ALLOWED_DIRS: folder,
    TARGETING_MCP_WAIT_MS: "300",
    ...more,
  });
  for (const message of OPENING) server.send(message);
  let id = 0;
  const call = async (name: string, args: Readonly<Record<string, unknown>>) => {
    id += 1;
    server.send(toolCall(id, name, args));
    const { result } = answer.parse(await server.answer(id));
    const text = result.content.map((part) => part.text).join("\n");
    return { ...result.structuredContent, text, isError: result.isError === true };
  };
  return { ...server, call };
}
type Server = Awaited<ReturnType<typeof startServer>>;

/** A server. Tests with the same settings share it. */
const shared = perFile(startServer);

/** Creates a targeting in a service that can be slow, and saves its desired state to a file. */
async function slowlyPlanned() {
  const { service, folder } = await begun();
  const seed = async (body: object) => seeded.parse(await service.control("POST", "/seed", body));
  const [targetingId = ""] = (await seed({ targetings: [{ name: "Spring" }] })).targetings;
  const names = Array.from({ length: 3 }, (_, at) => `Option ${at}`);
  const { options } = await seed({ options: names.map((name) => ({ targeting: targetingId, name, contexts: ["a"] })) });
  const file = join(folder, `${targetingId}.json`);
  const rows = options.map((_id, at) => ({ _id, name: `Option ${at}`, contexts: at === 0 ? ["a", "b"] : ["a"] }));
  const state = { version: 1, targeting: { _id: targetingId, name: "Spring" }, options: rows };
  writeFileSync(file, JSON.stringify(state));
  const releases: (() => Promise<void>)[] = [];
  /** Makes the service hold requests for lists of options until `release` is called. */
  const slow = async () => {
    releases.push(await service.hold("listOptions"));
  };
  const release = async () => {
    for (const one of releases.splice(0)) await one();
  };
  /** Makes the service fast again, and waits until a run has ended. */
  const ended = async ({ call }: Server, runId: string | undefined) => {
    await release();
    for (;;) {
      const told = await call("get_run", { runId, waitMs: 5000 });
      if (told.status !== "running") return told;
    }
  };
  const allWrites = async () => (await service.count("updateOptions")) + (await service.count("addOptions"));
  const before = await allWrites();
  const writes = async () => (await allWrites()) - before;
  const fast = async () => {
    await release();
    await service.control("DELETE", "/faults");
  };
  return { ...service, targetingId, options, folder, file, ended, writes, slow, fast };
}

test("a plan that takes long answers with its run, which get_run shows once it is there; apply_plan then carries it out", async () => {
  const { slow, fast, ended, file, writes } = await slowlyPlanned();
  const server = await shared();
  await slow();
  const going = await server.call("plan_targeting", { file });
  expect(going).toMatchObject({ status: "running", tool: "plan_targeting", counts: { items: 1, pending: 1 } });
  const again = await server.call("plan_targeting", { file });
  expect(again).toMatchObject({ status: "running", runId: going.runId });
  const listed = await server.call("get_run", { status: "running" });
  expect(listed).toMatchObject({ runs: [{ runId: going.runId, tool: "plan_targeting", status: "running" }] });
  const early = await server.call("apply_plan", { runId: going.runId });
  expect(early.isError).toBe(true);
  expect(early.error?.message).toContain("is still being made");
  const planned = await ended(server, going.runId);
  expect(planned).toMatchObject({
    runId: going.runId,
    status: "planned",
    tool: "plan_targeting",
    changes: { contexts: { count: 1, names: ["Option 0"] } },
    requests: { planned: 1 },
  });
  expect(planned.text).toContain("Planned");
  expect(await writes()).toBe(0);
  await fast();
  await server.call("apply_plan", { runId: going.runId });
  expect(await ended(server, going.runId)).toMatchObject({ status: "succeeded" });
  expect(await writes()).toBe(1);
});

test("a plan that takes long and has nothing to do is one that was made", async () => {
  const { slow, ended, file } = await slowlyPlanned();
  writeFileSync(file, readFileSync(file, "utf8").replace('["a","b"]', '["a"]'));
  const server = await shared();
  await slow();
  const { runId } = await server.call("plan_targeting", { file });
  expect(await ended(server, runId)).toMatchObject({ status: "planned", counts: { items: 0 } });
  expect(await ended(await shared(PATIENT), runId)).toMatchObject({ status: "planned", counts: { items: 0 } });
});

test("a plan that is being made can be cancelled, and is not made any more", async () => {
  const { slow, ended, file, writes } = await slowlyPlanned();
  const server = await shared();
  await slow();
  const { runId } = await server.call("plan_targeting", { file });
  await server.call("cancel_run", { runId });
  expect(await ended(server, runId)).toMatchObject({ status: "cancelled", tool: "plan_targeting" });
  const refused = await server.call("apply_plan", { runId });
  expect(refused).toMatchObject({ status: "cancelled" });
  const resumed = await server.call("resume_run", { runId });
  expect(resumed.error?.message).toContain("ended before it was started");
  expect(await writes()).toBe(0);
});

test("a plan that could not be made says why, and that the call is to be made again", async () => {
  const { slow, fast, ended, targetingId, control, file } = await slowlyPlanned();
  const server = await shared();
  await slow();
  const { runId } = await server.call("plan_targeting", { file });
  await control("POST", "/faults", { faults: [{ kind: "status", status: 403, on: "getOption", times: 20 }] });
  const failed = await ended(server, runId);
  expect(failed).toMatchObject({ status: "failed", tool: "plan_targeting", isError: true });
  expect(failed.failures[0]?.message).toContain("could not be planned");
  expect(failed.failures[0]).toMatchObject({ ref: targetingId, errorCode: "NOT_PLANNED" });
  expect(failed.text).toContain("Then make the call again");
  expect(failed.text).not.toContain("resume_run");
  await fast();
  // The reason is stored in the journal, so another process reports the same.
  expect((await (await shared(PATIENT)).call("get_run", { runId })).failures[0]?.message).toBe(
    failed.failures[0]?.message,
  );
});

test("kill -9 while a plan is made: it is interrupted, resume_run makes it, and nothing was sent", async () => {
  const { slow, fast, ended, file, writes } = await slowlyPlanned();
  const first = await startServer();
  await slow();
  const { runId } = await first.call("plan_targeting", { file });
  first.child.kill("SIGKILL");
  await first.exited;
  await fast();
  const second = await shared(PATIENT);
  expect(await second.call("get_run", { runId })).toMatchObject({ status: "interrupted", tool: "plan_targeting" });
  const resumed = await second.call("resume_run", { runId });
  expect(resumed).toMatchObject({ runId, status: "planned", changes: { contexts: { count: 1 } } });
  expect(await second.call("get_run", { runId })).toMatchObject({ status: "planned", tool: "plan_targeting" });
  expect(await writes()).toBe(0);
  expect(await ended(await shared(PATIENT), runId)).toMatchObject({ status: "planned" });
  expect(await second.call("apply_plan", { runId })).toMatchObject({ runId, status: "succeeded" });
  const anew = await second.call("plan_targeting", { file });
  expect(anew).toMatchObject({ status: "planned", counts: { items: 0 } });
});

test("kill -9 while a plan is made, and the same call again, which may take long as well", async () => {
  const { slow, ended, file, writes } = await slowlyPlanned();
  const first = await startServer();
  await slow();
  const { runId } = await first.call("plan_targeting", { file });
  first.child.kill("SIGKILL");
  await first.exited;
  const second = await shared();
  const again = await second.call("plan_targeting", { file });
  expect(again.runId).not.toBe(runId);
  expect(await ended(second, again.runId)).toMatchObject({ status: "planned" });
  await slow();
  const resumed = await second.call("resume_run", { runId });
  expect(resumed).toMatchObject({ runId, status: "running" });
  expect(await ended(second, runId)).toMatchObject({ runId, status: "planned" });
  expect(await writes()).toBe(0);
});

test("a way back that takes long goes on as well, and applies", async () => {
  const { slow, fast, ended, file } = await slowlyPlanned();
  const patient = await shared(PATIENT);
  const { runId } = await patient.call("plan_targeting", { file });
  expect(await patient.call("apply_plan", { runId })).toMatchObject({ status: "succeeded" });
  const server = await shared();
  await slow();
  const going = await server.call("undo_run", { runId });
  expect(going).toMatchObject({ status: "running", tool: "undo_run" });
  const planned = await ended(server, going.runId);
  expect(planned).toMatchObject({ runId: going.runId, status: "planned", tool: "undo_run", undo: { exact: 1 } });
  await fast();
  expect(await patient.call("apply_plan", { runId: going.runId })).toMatchObject({ status: "succeeded" });
});

test("apply_plan that has to look again for long goes on in the background, and asks where it takes away", async () => {
  const { slow, ended, file, writes } = await slowlyPlanned();
  const patient = await shared(PATIENT);
  const { runId } = await patient.call("plan_targeting", { file });
  writeFileSync(file, readFileSync(file, "utf8").replace(/\["a"\]\}\]/, "[]}]"));
  const emptying = await patient.call("plan_targeting", { file });
  expect(emptying).toMatchObject({ status: "planned", changes: { contexts: { count: 2 } } });
  const server = await shared();
  await slow();
  const asking = await server.call("apply_plan", { runId: emptying.runId });
  expect(asking).toMatchObject({ status: "running", runId: emptying.runId });
  const waiting = await ended(server, emptying.runId);
  expect(waiting).toMatchObject({ status: "needs_confirmation", tool: "apply_plan", runId: emptying.runId });
  expect(await writes()).toBe(0);
  await slow();
  const going = await server.call("apply_plan", { runId });
  expect(going).toMatchObject({ status: "running", runId });
  expect(await ended(server, runId)).toMatchObject({ status: "succeeded", tool: "apply_plan" });
  expect(await writes()).toBe(1);
  // What was approved is now done. What was already done before is skipped.
  const agreed = await server.call("apply_plan", { confirmation: waiting.confirmation?.token });
  const done = await ended(server, agreed.runId);
  expect(done).toMatchObject({
    status: "succeeded",
    runId: emptying.runId,
    approval: { decision: "approved", channel: "token" },
  });
});

test.each([
  ["within its call", PATIENT],
  ["behind its call", {}],
])(
  "a plan made %s whose looking again fails at a read is interrupted, and resume_run goes on with it",
  async (_, wait) => {
    const { slow, fast, ended, control, file, writes } = await slowlyPlanned();
    const planning = await shared(wait);
    if (wait !== PATIENT) await slow();
    const { runId } = await planning.call("plan_targeting", { file });
    expect(await ended(planning, runId)).toMatchObject({ status: "planned" });
    const server = await shared({ TARGETING_MCP_RETRY_BUDGET_MS: "300" });
    await slow();
    const going = await server.call("apply_plan", { runId });
    expect(going).toMatchObject({ status: "running", runId });
    await control("POST", "/faults", { faults: [{ kind: "status", status: 503, on: "getOption", times: 100 }] });
    const failed = await ended(server, runId);
    expect(failed).toMatchObject({ status: "interrupted", runId });
    expect(failed.text).toContain("resume_run");
    expect(failed.text).not.toContain("Then make the call again");
    expect(await writes()).toBe(0);
    await fast();
    const other = await shared(PATIENT);
    expect(await other.call("get_run", { runId })).toMatchObject({ status: "interrupted", runId });
    expect(await other.call("resume_run", { runId })).toMatchObject({ status: "succeeded", runId });
    expect(await writes()).toBe(1);
  },
);

test("resume_run of a plan that takes something away, and was interrupted before it began, asks for what it takes", async () => {
  const { slow, fast, ended, control, file, writes } = await slowlyPlanned();
  writeFileSync(file, readFileSync(file, "utf8").replace(/\["a"\]\}\]/, "[]}]"));
  const { runId } = await (await shared(PATIENT)).call("plan_targeting", { file });
  await slow();
  const server = await shared({ TARGETING_MCP_RETRY_BUDGET_MS: "300" });
  expect(await server.call("apply_plan", { runId })).toMatchObject({ status: "running", runId });
  await control("POST", "/faults", { faults: [{ kind: "status", status: 503, on: "getOption", times: 100 }] });
  expect(await ended(server, runId)).toMatchObject({ status: "interrupted", runId });
  await fast();
  const other = await shared(PATIENT);
  const asking = await other.call("resume_run", { runId });
  expect(asking).toMatchObject({ status: "needs_confirmation", runId });
  expect(asking.text).toContain("removes 1 Context ID from 1 option");
  expect(await writes()).toBe(0);
  const done = await other.call("resume_run", { runId, confirmation: asking.confirmation?.token });
  expect(done).toMatchObject({ status: "succeeded", runId, approval: { decision: "approved", channel: "token" } });
  expect(await writes()).toBe(1);
});
