import { expect, test } from "vitest";
import * as z from "zod";
import { undoPlan } from "../../src/plans/undo.ts";
import type { Present, PresentOption } from "../../src/plans/undo-plan.ts";
import type { OptionEffect } from "../../src/runs/kind.ts";
import { callsOf } from "../support/clients.ts";
import { warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const requestsIn = z.object({ requests: z.array(z.object({ operation: z.string() })) });

async function session() {
  const { client, sandbox } = await startSession({ env: { TARGETING_MCP_CONFIRM: "off" } });
  const call = callsOf(client);
  /** Changes something as another user of the API would. */
  const asOthers = async (path: string, items: readonly object[]) => {
    const answer = await fetch(`${sandbox.url}/context-targeting${path}`, {
      method: "POST",
      headers: { "x-api-key": "sandbox-key", "content-type": "application/json" },
      body: JSON.stringify({ items }),
    });
    expect(await answer.json()).toMatchObject({ results: [{ success: true }] });
  };
  const writes = async () => {
    const { requests } = requestsIn.parse(await sandbox.control("GET", "/requests"));
    return requests.filter(({ operation }) => !operation.startsWith("get") && operation !== "listOptions").length;
  };
  return { call, sandbox, asOthers, writes };
}

test("Context IDs that no longer fit into an option are impossible to restore", async () => {
  const { call, sandbox } = await session();
  const targeting = await sandbox.targeting("Full");
  const [full, other] = await sandbox.options(targeting, [
    { name: "Full", contexts: ["a", "b", "c"] },
    { name: "Free" },
  ]);
  const items = [
    { _id: full, remove: ["a", "b"] },
    { _id: other, add: ["x"] },
  ];
  const { runId } = await call("update_contexts", { items });
  const contexts = Array.from({ length: 49_999 }, (_, at) => `q${at}`);
  await sandbox.control("POST", "/seed", { options: [{ _id: full, targeting, name: "Full", contexts }] });
  const plan = await call("undo_run", { runId });
  expect(plan.text).toContain("1 will be undone exactly, 1 impossible to undo; nothing was sent");
  const why = "2 Context IDs: an option holds at most 50,000 Context IDs and 8 MB of them";
  expect(plan.text).toContain(`"Full" (${full}): ${why}`);
  const applied = await call("apply_plan", { runId: plan.runId });
  expect(applied).toMatchObject({ status: "succeeded", counts: { succeeded: 1 } });
  expect(applied.text).toContain(`Not undone: "Full" (${full}): ${why}. Once nothing prevents it`);
});

test("Context IDs of a restored group that another group has now are counted, and can be restored later", async () => {
  const { call, sandbox, asOthers } = await session();
  const targeting = await sandbox.targeting("Groups");
  const [group] = await sandbox.options(targeting, [{ name: "Old", type: "collection", contexts: ["h1", "h2", "h3"] }]);
  const { runId } = await call("delete_options", { ids: [group] });
  await sandbox.options(targeting, [{ name: "New", type: "collection", contexts: ["h1", "h2", "n"] }]);
  const [theirs] = (await call("get_option", { targetingId: targeting, name: "New" })).text.match(/\b01\w{24}\b/) ?? [];
  const plan = await call("undo_run", { runId });
  expect(plan.text).toContain("1 will be undone with a new ID, 1 impossible to undo");
  const why = "2 Context IDs: another group now holds some of its Context IDs";
  expect(plan.text).toContain(`"Old" (${group}): ${why}`);
  expect(plan.text).toContain('create "Old", with 1 Context ID');
  expect((await call("apply_plan", { runId: plan.runId })).text).toContain(`Not undone: "Old" (${group}): ${why}`);
  await asOthers("/category/bulk/update", [{ _id: theirs, contexts: { remove: ["h1", "h2"] } }]);
  const rest = await call("undo_run", { runId });
  expect(rest.text).toContain(`Run ${plan.runId} has undone the rest before.`);
  expect((await call("apply_plan", { runId: rest.runId })).text).toContain("2 added");
  const none = await call("undo_run", { runId });
  expect(none.text).toContain(`this run was undone before by runs ${plan.runId} and ${rest.runId}`);
  const back = [rest, plan].map((undo) => `undo_run {"runId":"${undo.runId}"}`).join(" and ");
  expect(none.text).toContain(`${back} plan to restore what each of them undid`);
});

test("a plan says that names of other targetings are not checked, and a failed undo teaches the next plan", async () => {
  const { call, sandbox, asOthers } = await session();
  const targeting = await sandbox.targeting("Old name");
  const { runId } = await call("rename_targetings", { items: [{ _id: targeting, name: "New name" }] });
  await asOthers("/bulk/create", [{ name: "Old name" }]);
  const plan = await call("undo_run", { runId });
  const note = "Not checked, because the service cannot list targetings: whether another targeting has the name now.";
  expect(plan.text).toContain(note);
  expect(plan.notes).toEqual([note]);
  const failed = await call("apply_plan", { runId: plan.runId });
  expect(failed).toMatchObject({ status: "failed" });
  const again = await call("undo_run", { runId });
  expect(again.text).toContain("1 impossible to undo; nothing was sent");
  expect(again.text).toContain("another targeting has the name now");
  // The failed undo has undone nothing.
  expect(again.text).not.toContain("undone before");
  expect((await call("get_run", { runId })).text).toContain(
    `Run ${plan.runId} could not undo anything of this run, which cannot be resumed. Once nothing prevents it`,
  );
});

test("a run in a targeting that was deleted and restored says that the new one stays as it is", async () => {
  const { call, sandbox, writes } = await session();
  const targeting = await sandbox.targeting("Shop");
  const [one, two] = await sandbox.options(targeting, [{ name: "One" }, { name: "Two" }]);
  const runs = [
    await call("bulk_add_options", { targetingId: targeting, items: [{ name: "New" }] }),
    await call("update_options", { items: [{ _id: one, name: "Mine" }] }),
    await call("delete_options", { ids: [two] }),
  ];
  const { runId } = await call("delete_targeting", { ids: [targeting] });
  const restored = await call("undo_run", { runId });
  await call("apply_plan", { runId: restored.runId });
  const before = await writes();
  for (const [at, { runId }] of runs.entries()) {
    const { text } = await call("undo_run", { runId });
    expect(text).toContain(
      `Targeting ${targeting} no longer exists. If it was restored, it has a new ID, and this undo changes nothing in it.`,
    );
    const words = ["none of its changes is left", "1 changed since", "1 impossible to undo"];
    expect(text).toContain(words[at]);
  }
  expect(await writes()).toBe(before);
});

/** Returns a targeting with options that have a number of Context IDs, without reading them. */
function presentWith(options: number, contextCount: number): Present {
  const all = Array.from({ length: options }, (_, at): readonly [string, PresentOption] => {
    const _id = `01J${String(at).padStart(23, "0")}`;
    return [_id, { _id, name: `Option ${at}`, type: "atomic", parent: null, contextCount }];
  });
  return { targeting: { _id: TARGETING, name: "Shop" }, options: new Map(all) };
}

const TARGETING = "01J0000000000000000000000T";

function deletedOption(_id: string, name: string, contexts: readonly string[]): OptionEffect {
  return { did: "deleted", _id, targeting: TARGETING, before: { name, type: "atomic", parent: null, contexts } };
}

test.each([
  [99_999, 0, "targetingFull"],
  [100, 1999, "projectFull"],
] as const)("of %i options with %i Context IDs each, those that would exceed a limit stay deleted: %s", (...given) => {
  const [options, contextCount, reason] = given;
  const contexts = Array.from({ length: 60 }, (_, at) => `c${at}`);
  const effects = [
    deletedOption("01J000000000000000000000A1", "First", contexts),
    deletedOption("01J000000000000000000000A2", "Last", contexts),
  ];
  const done = { targetings: [], options: effects, unknown: [], unresolved: [] };
  const { targetings, rows } = undoPlan(done, new Map([[TARGETING, presentWith(options, contextCount)]]));
  expect(targetings.flatMap(({ plan }) => plan.items)).toMatchObject([{ kind: "create", name: "First" }]);
  expect(rows).toMatchObject([
    { name: "First", undo: "caveat" },
    { name: "Last", undo: "impossible", reasons: [reason] },
  ]);
});
