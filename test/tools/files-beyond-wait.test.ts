// If a file takes longer to read than a call may wait, the call answers with its run, which continues.
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isChangeRun } from "../../src/changes/change-run.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { applyPlan } from "../../src/tools/apply-plan.ts";
import { bulkAddOptions } from "../../src/tools/bulk-add-options.ts";
import type { ToolContext } from "../../src/tools/define-tool.ts";
import { getRun } from "../../src/tools/get-run.ts";
import { planTargeting } from "../../src/tools/plan-targeting.ts";
import { resumeRun } from "../../src/tools/resume-run.ts";
import { trackEvents } from "../../src/tools/track-events.ts";
import { startService } from "../changes/service.ts";
import { answerOf, eventTools } from "../support/event-tools.ts";
import { testServices } from "../support/tool-context.ts";

/** A call whose wait ends before anything that takes time, but whose file can be opened. */
const AT_ONCE = {
  ...{ arrivedAt: 0, waitMs: 1 },
  clock: {
    ...systemClock,
    now: () => 1,
    sleep: (ms: number) => (ms > 0 ? new Promise<never>(() => {}) : Promise.resolve()),
  },
} as const;

/** Starts a service with its tools. `file` writes a file. */
async function started() {
  const { changes, runs, api, targeting, option } = await startService();
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const context: ToolContext = {
    ...testServices(systemClock, 20_000),
    ...{ management: api, changes, runs, project: { id: "test", name: "test" }, confirm: "off", caller: "tester" },
    ...{ signal: new AbortController().signal, canAsk: () => false, allowedDirs: [folder], ...AT_ONCE },
  };
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text);
    return name;
  };
  /** Waits until a run that continues after its call has ended. Returns its report. */
  const ended = async (told: Readonly<Record<string, unknown>>) => {
    expect(told).toMatchObject({ status: "running" });
    const runId = String(told.runId);
    const run = await runs.findOwn(runId, "tester");
    if (run === undefined || !isChangeRun(run)) throw new Error("there is no such run");
    await run.rest;
    return answerOf(getRun, { runId }, context);
  };
  return { context, file, ended, targetingId: await targeting("Spring"), api, option, changes };
}

test("rows are added, of a sheet of whatever form, and how it was read is told", async () => {
  const { context, file, ended, targetingId } = await started();
  const rows = await file("options.csv", "Nr;Option;Article\n1;Red;a\n;;b\n2;Blue;c\n");
  const given = { targetingId, file: rows, columns: { contextId: "Article" }, fillDown: ["name"] };
  const { structured, text } = await ended((await answerOf(bulkAddOptions, given, context)).structured);
  expect(structured).toMatchObject({ status: "succeeded", counts: { items: 2, succeeded: 2 } });
  expect(text).toContain("separated by semicolons");
});

test("the same call made again attaches to the run, whether or not it could read the file", async () => {
  const { context, file, ended, targetingId } = await started();
  const given = { targetingId, file: await file("options.csv", "name\nRed\n") };
  const first = await answerOf(bulkAddOptions, given, context);
  const slow = { ...context, clock: systemClock, waitMs: Date.now() + 60_000 };
  const [again, later] = await Promise.all([
    answerOf(bulkAddOptions, given, context),
    answerOf(bulkAddOptions, given, slow),
  ]);
  expect([again.structured.runId, later.structured.runId]).toEqual([first.structured.runId, first.structured.runId]);
  expect((await ended(first.structured)).structured).toMatchObject({ status: "succeeded", counts: { succeeded: 1 } });
});

test("rows that are about another targeting fail, by its ID and by its name", async () => {
  const { context, file, ended, targetingId } = await started();
  await context.memory.remember([{ _id: targetingId, name: "Spring" }]);
  const rows = `targeting,name\n${targetingId},Red\nSpring,Blue\nAutumn,Green\n`;
  const given = { targetingId, file: await file("options.csv", rows) };
  const { structured } = await ended((await answerOf(bulkAddOptions, given, context)).structured);
  expect(structured).toMatchObject({ status: "partial", counts: { items: 3, succeeded: 2, failed: 1 } });
});

test("a file without the column that it needs ends its run with the reason, and nothing is sent", async () => {
  const { context, file, ended, targetingId } = await started();
  const given = { targetingId, file: await file("options.csv", "colour\nRed\n") };
  const { structured, text } = await ended((await answerOf(bulkAddOptions, given, context)).structured);
  expect(structured).toMatchObject({ status: "failed", counts: { succeeded: 0 }, requests: { sent: 0 } });
  expect(text).toContain("the file has no column for name");
  expect(text).not.toContain("resume_run");
  // The run would read the same file again, so resume_run says the same as this answer.
  const refused = answerOf(resumeRun, { runId: String(structured.runId) }, context);
  await expect(refused).rejects.toThrow("the file has no column for name");
  await expect(refused).rejects.toMatchObject({ remedy: expect.stringContaining("Then make the call again.") });
  expect(await context.runs.findOwn(String(structured.runId), "tester")).toMatchObject({
    state: { resumed: undefined },
  });
});

test("a dry run is planned, nothing of it is sent, and it is applied", async () => {
  const { context, file, ended, targetingId, api } = await started();
  const given = { targetingId, file: await file("options.csv", "name\nRed\nBlue\n"), dryRun: true };
  const told = (await answerOf(bulkAddOptions, given, context)).structured;
  const planned = await ended(told);
  expect(planned.structured).toMatchObject({ status: "planned", counts: { items: 2, pending: 2 } });
  expect(planned.text).toContain("apply_plan");
  expect((await api.getTargeting(targetingId, {})).optionCount).toBe(0);
  await expect(answerOf(resumeRun, { runId: String(told.runId) }, context)).rejects.toThrow("dry run");
  const applied = await answerOf(applyPlan, { runId: String(told.runId) }, context);
  expect((await ended(applied.structured)).structured).toMatchObject({ status: "succeeded", counts: { succeeded: 2 } });
});

test("a dry run is not applied where it would do something else by now", async () => {
  const { context, file, ended, targetingId, option } = await started();
  const given = {
    targetingId,
    file: await file("options.csv", "name\nRed\nBlue\n"),
    onExisting: "skip",
    dryRun: true,
  } as const;
  const told = (await answerOf(bulkAddOptions, given, context)).structured;
  await ended(told);
  await option({ name: "Red", targeting: targetingId });
  const applied = await answerOf(applyPlan, { runId: String(told.runId) }, context);
  const { structured, text } = await ended(applied.structured);
  expect(structured).toMatchObject({ counts: { succeeded: 0 }, requests: { sent: 0 } });
  expect(text).toContain("has changed since it was shown");
});

test("a dry run whose server ended before it was planned is made again by its call alone", async () => {
  const { context, targetingId, changes } = await started();
  const call = { tool: "bulk_add_options", input: { targetingId, items: [{ name: "Red" }] } } as const;
  const { runId } = await changes.keep(call, "tester", undefined, { dryRun: true, unplanned: true });
  const { structured } = await answerOf(getRun, { runId }, context);
  expect(structured).toMatchObject({
    status: "interrupted",
    nextSteps: [expect.stringContaining("make the call again")],
  });
  expect(structured).not.toHaveProperty("neverPlanned");
  await expect(answerOf(resumeRun, { runId }, context)).rejects.toThrow("never planned");
});

test.each(["plan_targeting", "undo_run"] as const)(
  "a plan of %s whose server ended before it stored the plan is made again by its call alone",
  async (plannedBy) => {
    const { context, targetingId, changes } = await started();
    const call = { tool: "apply_plan", input: { plannedBy, targetingId, digest: "0" } } as const;
    const { runId } = await changes.keep(call, "tester", undefined);
    const { structured, text } = await answerOf(getRun, { runId }, context);
    expect(structured).toMatchObject({
      status: "interrupted",
      nextSteps: [expect.stringContaining("make the call again")],
    });
    expect(text).not.toContain("resume_run");
    await expect(answerOf(resumeRun, { runId }, context)).rejects.toThrow("not stored");
  },
);

test.each([
  ["a file", (file: string) => ({ file })],
  ["what stands in the call", () => ({ desired: { version: 1, options: [{ name: "Red" }] } })],
])("a desired state is planned from %s, and a state with problems says where they are", async (_, from) => {
  const { context, file, ended, targetingId } = await started();
  const state = await file("state.json", JSON.stringify({ version: 1, options: [{ name: "Red" }] }));
  const planned = await ended((await answerOf(planTargeting, { ...from(state), targetingId }, context)).structured);
  expect(planned.structured).toMatchObject({ status: "planned", counts: { items: 1, pending: 1 } });
  const wrong = { version: 1, options: [{ name: "Red" }, { name: "Red" }] };
  const bad = await answerOf(planTargeting, { desired: wrong, targetingId }, context);
  const { text } = await ended(bad.structured);
  expect(text).toContain("the desired state has 1 problem (options[1]");
});

test.each([
  ["a plan that is applied", "Option,Context IDs\nRed,a\nBlue,b\n", { rows: { Done: 2 } }],
  ["a plan with problems", "Option,Context IDs\nRed,a\nRed,b\n", { rows: { Failed: 1, "Not applied": 1 } }],
])("a sheet comes back with results: %s", async (_, text, expected) => {
  const { context, file, ended, targetingId } = await started();
  const given = { targetingId, file: await file("state.csv", text) };
  const planned = await ended((await answerOf(planTargeting, given, context)).structured);
  const runId = String(planned.structured.runId);
  const isWell = !text.includes("Red,b");
  if (isWell) {
    const applied = await answerOf(applyPlan, { runId }, context);
    if (applied.structured.status === "running") await ended(applied.structured);
  } else {
    expect(planned.text).toContain('the name "Red" occurs twice');
    await expect(answerOf(applyPlan, { runId }, context)).rejects.toThrow("problem");
  }
  const saved = await answerOf(getRun, { runId, saveTo: "results.csv" }, context);
  expect(saved.structured).toMatchObject(expected);
});

test("rows of an import come back with results", async () => {
  const { context, file, ended, targetingId } = await started();
  const rowsGiven = await file("options.csv", "Option;Artikel\nRed;a\nx_y;b\n");
  const how = { columns: { contexts: "Artikel" }, separator: "/" };
  const given = { targetingId, file: rowsGiven, ...how };
  const { structured } = await ended((await answerOf(bulkAddOptions, given, context)).structured);
  const saved = await answerOf(getRun, { runId: String(structured.runId), saveTo: "results.csv" }, context);
  expect(saved.structured).toMatchObject({ rows: { Done: 1, Failed: 1 } });
  const again = JSON.stringify({ targetingId, file: "results.csv", ...how });
  expect(saved.text).toContain(
    `\nNext: fix the cells that Problem and How to fix describe, then: bulk_add_options ${again}`,
  );
  const rows = await readFile(join(context.allowedDirs[0] ?? "", "results.csv"), "utf8");
  expect(rows.split("\r\n")[2]).toMatch(/^x_y;b;;Add;Add;Failed;"The name has 1 character/);
});

test("a dry run of events, or of a plan, is answered in time, whatever its reading takes", async () => {
  const { context, file, ended, targetingId } = await started();
  /** The file can still be opened, but then the wait ends. The call does not know the format of the file by then. */
  const overOnceOpened = () => {
    let waits = 0;
    const sleep = () => (waits++ === 0 ? new Promise<never>(() => {}) : Promise.resolve());
    return { ...context, waitMs: 45_000, arrivedAt: 0, clock: { ...systemClock, now: () => 60_000, sleep } };
  };
  const events = await file("events.csv", "uid,eventName,method\nann,sign_up,mail\n");
  const dry = answerOf(trackEvents, { file: events, dryRun: true }, overOnceOpened());
  await expect(dry).rejects.toThrow("nothing was sent");
  const state = await file("state.csv", "Option\nRed\n");
  const planned = await ended((await answerOf(planTargeting, { file: state, targetingId }, context)).structured);
  const again = answerOf(applyPlan, { runId: String(planned.structured.runId), dryRun: true }, context);
  await expect(again).rejects.toMatchObject({ remedy: expect.stringContaining("apply_plan without dryRun") });
  const applied = await answerOf(applyPlan, { runId: String(planned.structured.runId) }, context);
  const done =
    applied.structured.status === "running" ? (await ended(applied.structured)).structured : applied.structured;
  expect(done).toMatchObject({ status: "succeeded" });
});

test("events of a file are sent, and a file without rows of events says so", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { context, sandbox } = await eventTools({ allowedDirs: [folder] });
  const late = { ...context, ...AT_ONCE };
  const sent = async (text: string, file = "events.csv") => {
    await writeFile(join(folder, file), text);
    const { structured } = await answerOf(trackEvents, { file }, late);
    // The run of a file that cannot be read may end at once.
    expect(structured.status).toMatch(/running|failed/);
    const run = await context.runs.findOwn(String(structured.runId), "local");
    await run?.rest;
    return answerOf(getRun, { runId: String(structured.runId) }, context);
  };
  const good = await sent("uid;eventName;method\nann;sign_up;mail\nbob;sign_up;mail\n");
  expect(good.structured).toMatchObject({ status: "succeeded", counts: { items: 2, succeeded: 2 } });
  expect(sandbox.events()).toHaveLength(2);
  const bad = await sent("user;what\nann;login\n");
  expect(bad.structured).toMatchObject({ status: "failed", counts: { items: 1, failed: 1 } });
  expect(bad.text).toContain("unknown columns");
  expect(bad.text).not.toContain("autocorrect");
  expect(bad.text).not.toContain("expected recorded");
  expect(bad.structured).not.toHaveProperty("rejectsUri");
  const runId = String(bad.structured.runId);
  for await (const piece of context.runs.part(runId, "input")()) expect(piece).toHaveLength(0);
  await expect(answerOf(getRun, { runId, saveTo: "results.csv" }, context)).rejects.toThrow("no event of this run");
  const json = await sent('{"uid":"ann"}', "events.json");
  expect(json.text).toContain("not one JSON array");
  const failed = answerOf(getRun, { runId: String(json.structured.runId), saveTo: "failed.ndjson" }, context);
  await expect(failed).rejects.toThrow("no row of this run failed");
  expect((await sent("uid,eventName\n")).text).toContain("there are no events to send");
});
