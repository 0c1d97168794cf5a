import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { WriteCall } from "../../src/changes/call.ts";
import { readTargeting } from "../../src/plans/read-targeting.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { ulidSource } from "../../src/spec/ulid.ts";
import { applyPlan } from "../../src/tools/apply-plan.ts";
import type { ToolContext } from "../../src/tools/context.ts";
import type { ToolOutcome } from "../../src/tools/define-tool.ts";
import { resumeRun } from "../../src/tools/resume-run.ts";
import { undoRun } from "../../src/tools/undo-run.ts";
import { startService } from "../changes/service.ts";
import { testServices } from "../support/tool-context.ts";

const { signal } = new AbortController();

/** A service, and the tools over it, as one caller who is not asked for a yes. */
async function started() {
  const service = await startService();
  const { changes, runs, api } = service;
  const context: ToolContext = {
    ...testServices(systemClock, 20_000),
    ...{
      management: api,
      changes,
      runs,
      project: { id: "test", name: "test" },
      confirm: "off",
      caller: "tester",
      arrivedAt: Date.now(),
      signal,
    },
    canAsk: () => false,
  };
  const made = async (call: WriteCall) => {
    const run = await changes.start(await changes.keep(call, "tester"), await changes.plan(call, signal));
    if (run === undefined) throw new Error("the run was started before");
    await run.rest;
    return run;
  };
  const add = async (
    targetingId: string,
    items: Extract<WriteCall, { tool: "bulk_add_options" }>["input"]["items"],
  ) => {
    const { state } = await made({ tool: "bulk_add_options", input: { targetingId, items } });
    return Array.from({ length: state.objects.length }, (_, object) => state.idOf(object) ?? "");
  };
  const undo = async (runId: string) => answerOf(await undoRun.handler({ runId }, context));
  const apply = async (runId: string) => answerOf(await applyPlan.handler({ runId }, context));
  /** Undoes a run as a whole; gives the answer of the undo's own run. */
  const undone = async (runId: string) => {
    const planned = await undo(runId);
    expect(planned.structured).toMatchObject({ tool: "undo_run", status: "planned", undoes: runId });
    const id = String(planned.structured.runId);
    const applied = await apply(id);
    expect(applied.structured, applied.text).toMatchObject({ runId: id, tool: "apply_plan", status: "succeeded" });
    return { runId: id, planned };
  };
  /** What a targeting holds, by names, so that options that came back under new IDs compare as the same. */
  const holds = async (targetingId: string) => {
    const { targeting, options } = await readTargeting(api, targetingId, { signal });
    const names = new Map(options.map(({ _id, name }) => [_id, name]));
    const rows = options.map(({ name, type, parent, exposeChildren, contexts }) =>
      JSON.stringify([name, type, parent && names.get(parent), exposeChildren, [...contexts].sort()]),
    );
    return { name: targeting.name, options: rows.sort() };
  };
  return { ...service, context, made, add, undo, apply, undone, holds };
}

function answerOf(outcome: ToolOutcome) {
  if ("ask" in outcome) throw new Error("nobody is to be asked");
  return outcome;
}

const SHOP = [
  { name: "Plain", contexts: ["a", "b"] },
  { name: "Other", contexts: ["c"] },
  {
    name: "Group",
    type: "collection",
    exposeChildren: true,
    contexts: ["g"],
    children: [{ name: "In", contexts: ["i"] }],
  },
  { name: "Bare", type: "collection", children: [{ name: "First" }, { name: "Second", contexts: ["s"] }] },
] as const;

/** What each tool changes in the shop, given the IDs of its options in their order. */
const CHANGES: Readonly<Record<string, (targetingId: string, ids: readonly string[]) => WriteCall>> = {
  bulk_add_options: (targetingId) => ({
    tool: "bulk_add_options",
    input: {
      targetingId,
      items: [
        { name: "New", contexts: ["n"] },
        { name: "New group", children: [{ name: "New inside" }] },
      ],
    },
  }),
  "bulk_add_options to options that exist": (targetingId) => ({
    tool: "bulk_add_options",
    input: {
      targetingId,
      items: [{ name: "Plain", contexts: ["a", "more"] }, { name: "New" }],
      onExisting: "addContexts",
    },
  }),
  update_options: (_, [plain = "", other = "", group = "", inside = "", bare = ""]) => ({
    tool: "update_options",
    input: {
      items: [
        { _id: plain, name: "Other" },
        { _id: other, name: "Plain", parent: bare },
        { _id: inside, parent: null },
        { _id: group, exposeChildren: false },
      ],
    },
  }),
  update_contexts: (_, [plain = "", other = "", group = ""]) => ({
    tool: "update_contexts",
    input: {
      items: [
        { _id: plain, add: ["a", "x"], remove: ["b", "never"] },
        { _id: other, set: ["y", "z"] },
        { _id: group, add: ["h"] },
      ],
    },
  }),
  delete_options: (_, [plain = "", , group = "", inside = "", bare = ""]) => ({
    tool: "delete_options",
    input: { ids: [plain, group, inside, bare] },
  }),
};

describe("undoing a run of", () => {
  test.each(Object.entries(CHANGES))("%s gives the first state, and undoing that the second", async (_, change) => {
    const { targeting, add, made, undone, holds } = await started();
    const targetingId = await targeting("News");
    const ids = await add(targetingId, SHOP);
    const first = await holds(targetingId);
    const run = await made(change(targetingId, ids));
    expect(run.status()).toBe("succeeded");
    const second = await holds(targetingId);
    expect(second).not.toEqual(first);
    const back = await undone(run.header.runId);
    expect(await holds(targetingId)).toEqual(first);
    const forth = await undone(back.runId);
    expect(await holds(targetingId)).toEqual(second);
    await undone(forth.runId);
    expect(await holds(targetingId)).toEqual(first);
  });

  test("rename_targetings gives all names back", async () => {
    const { targeting, made, undone, holds } = await started();
    const [one, two] = [await targeting("One"), await targeting("Two")];
    const items = [
      { _id: one, name: "1st" },
      { _id: two, name: "2nd" },
    ];
    const run = await made({ tool: "rename_targetings", input: { items } });
    expect(run.status()).toBe("succeeded");
    const { planned } = await undone(run.header.runId);
    expect(planned.structured.undo).toEqual({ exact: 2, caveat: 0, notOurs: 0, impossible: 0 });
    expect([(await holds(one)).name, (await holds(two)).name]).toEqual(["One", "Two"]);
  });

  test("create_targetings deletes them, and undoing that creates them again", async () => {
    const { made, undo, apply, undone, holds, api } = await started();
    const items = [{ name: "One", options: SHOP }, { name: "Two" }];
    const run = await made({ tool: "create_targetings", input: { items } });
    const one = run.state.idOf(0) ?? "";
    const before = await holds(one);
    const back = await undone(run.header.runId);
    await expect(api.getTargeting(one)).rejects.toThrow();
    const forth = await undo(back.runId);
    expect(forth.structured.undo).toMatchObject({ exact: 0, impossible: 0 });
    const applied = await apply(String(forth.structured.runId));
    expect(applied.structured, applied.text).toMatchObject({ status: "succeeded" });
    const results = z.array(z.looseObject({ _id: z.string(), name: z.string() })).parse(applied.structured.results);
    expect(await holds(results.find(({ name }) => name === "One")?._id ?? "")).toEqual(before);
  });

  test("delete_targeting creates it again with all that it held", async () => {
    const { targeting, add, made, undo, apply, holds } = await started();
    const targetingId = await targeting("News");
    await add(targetingId, SHOP);
    const first = await holds(targetingId);
    const run = await made({ tool: "delete_targeting", input: { ids: [targetingId] } });
    const planned = await undo(run.header.runId);
    const applied = await apply(String(planned.structured.runId));
    expect(applied.structured).toMatchObject({ status: "succeeded" });
    const [created] = z.array(z.looseObject({ _id: z.string() })).parse(applied.structured.results);
    expect(await holds(created?._id ?? "")).toEqual(first);
  });
});

describe("undo_run", () => {
  test("tells each label, what does not go back first, and leaves alone what others changed since", async () => {
    const { targeting, add, made, undo, apply, holds } = await started();
    const targetingId = await targeting("News");
    const [plain = "", other = "", group = "", inside = ""] = await add(targetingId, SHOP);
    const items = [
      { _id: plain, name: "Plain 2" },
      { _id: other, name: "Other 2" },
      { _id: inside, name: "In 2" },
      { _id: group, exposeChildren: false },
    ];
    const run = await made({ tool: "update_options", input: { items } });
    await made({ tool: "update_options", input: { items: [{ _id: plain, name: "Theirs" }] } });
    await add(targetingId, [{ name: "In" }]);
    const planned = await undo(run.header.runId);
    expect(planned.structured).toMatchObject({
      undo: { exact: 2, caveat: 0, notOurs: 1, impossible: 1 },
      counts: { items: 2 },
      results: [
        { _id: inside, undo: "impossible", reasons: ["nameTaken"], now: "In" },
        { _id: plain, undo: "notOurs", field: "name", left: "Plain 2", now: "Theirs" },
        { _id: other, undo: "exact" },
        { _id: group, undo: "exact" },
      ],
    });
    expect(planned.text).toContain('Changed since and will not be undone:\n- "Theirs"');
    expect(planned.text).toContain('"Plain 2" after the run, "Theirs" now');
    await apply(String(planned.structured.runId));
    const names = (await holds(targetingId)).options.map(
      (row) => z.tuple([z.string()]).rest(z.unknown()).parse(JSON.parse(row))[0],
    );
    expect(names.sort()).toEqual(["Bare", "First", "Group", "In", "In 2", "Other", "Second", "Theirs"]);
  });

  test("a plan that others overtook sends nothing, and leaves the undone run as it is", async () => {
    const { targeting, add, made, undo, apply, context } = await started();
    const targetingId = await targeting("News");
    const [plain = ""] = await add(targetingId, SHOP);
    const run = await made({ tool: "update_options", input: { items: [{ _id: plain, name: "Renamed" }] } });
    const planned = await undo(run.header.runId);
    await made({ tool: "update_options", input: { items: [{ _id: plain, name: "Theirs" }] } });
    const applied = await apply(String(planned.structured.runId));
    expect(applied.structured).toMatchObject({ status: "failed", requests: { sent: 0 } });
    const told = await context.runs.find(run.header.runId);
    expect(told?.state.stopped?.cause).toBe("finished");
  });

  test("undoing a run that was cut short takes back what it did, and it is not resumed then", async () => {
    const { targeting, changes, add, undo, undone, holds, context } = await started();
    const targetingId = await targeting("News");
    const [group = ""] = await add(targetingId, [{ name: "Group", type: "collection", contexts: ["g"] }]);
    // A request takes 150 sub-options.
    const items = Array.from({ length: 200 }, (_, at) => ({ name: `Option ${at}`, parent: group }));
    const call = { tool: "bulk_add_options", input: { targetingId, items } } as const;
    const run = await changes.start(await changes.keep(call, "tester"), await changes.plan(call, signal));
    if (run === undefined) throw new Error("the run was started before");
    run.watch(({ succeeded }) => {
      if (succeeded > 0) run.stop("interrupted");
    });
    await run.rest;
    expect(run.status()).toBe("interrupted");
    const left = (await holds(targetingId)).options.length - 1;
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThan(200);
    const planned = await undo(run.header.runId);
    expect(planned.structured.undo).toMatchObject({ exact: left, notOurs: 0, impossible: 0 });
    await undone(run.header.runId);
    expect((await holds(targetingId)).options).toHaveLength(1);
    await expect(resumeRun.handler({ runId: run.header.runId }, context)).rejects.toThrow("was undone");
    await expect(undo(run.header.runId)).rejects.toThrow("undone before");
  });

  test("is refused for runs that were not started, and for plans", async () => {
    const { targeting, add, made, undo, changes } = await started();
    const targetingId = await targeting("News");
    const [plain = ""] = await add(targetingId, SHOP);
    const run = await made({ tool: "update_options", input: { items: [{ _id: plain, name: "Renamed" }] } });
    const planned = await undo(run.header.runId);
    await expect(undo(String(planned.structured.runId))).rejects.toThrow("never started");
    const call = { tool: "delete_options", input: { ids: [plain] } } as const;
    const kept = await changes.keep(call, "tester");
    await changes.propose(kept, await changes.plan(call, signal));
    await expect(undo(kept.runId)).rejects.toThrow("never started");
    await expect(undo("01J0000000000000000000000X")).rejects.toThrow("this run can no longer be undone");
  });

  test("says of a run that is too old to be kept that its way back is gone with it", async () => {
    const { undo } = await started();
    const { days } = testServices(systemClock).keep;
    const began = Date.now() - (days + 1) * 86_400_000;
    const date = new Date(began).toISOString().slice(0, 10);
    await expect(undo(ulidSource(() => began, Math.random)())).rejects.toThrow(
      `it began on ${date}, and finished runs`,
    );
    await expect(undo(ulidSource(Date.now, Math.random)())).rejects.toThrow("no run with this ID");
  });

  test("says so where nothing has to go back", async () => {
    const { targeting, add, made, undo } = await started();
    const targetingId = await targeting("News");
    const [plain = ""] = await add(targetingId, SHOP);
    const run = await made({ tool: "update_contexts", input: { items: [{ _id: plain, add: ["a"] }] } });
    const { structured, text } = await undo(run.header.runId);
    expect(structured).toMatchObject({ status: "planned", counts: { items: 0 } });
    expect(structured).not.toHaveProperty("runId");
    expect(text).toContain("everything is as it was before");
  });
});
