import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, type Said, textOf } from "../support/clients.ts";
import { COMMAND } from "../support/server-process.ts";
import { startSession, warmSessions } from "../support/writing.ts";

const warm = warmSessions();

const listed = z.object({
  runs: z.array(z.object({ runId: z.string(), tool: z.string(), status: z.string() })),
  cursor: z.string().optional(),
});
const found = z.object({ options: z.array(z.object({ _id: z.string(), name: z.string() })) });

/**
 * Creates a targeting with a group of two sub-options and two regular options. The server does not ask for approval.
 */
async function service(env: Record<string, string> = {}) {
  const session = await warm({ env: { TARGETING_MCP_CONFIRM: "off", TARGETING_MCP_WAIT_MS: "120000", ...env } });
  const targetingId = await session.sandbox.targeting("News");
  const [group = "", one = "", two = ""] = await session.sandbox.options(targetingId, [
    { name: "Ball games", children: [{ name: "Football" }, { name: "Rugby" }] },
    { name: "One", contexts: ["a", "b"] },
    { name: "Two", contexts: ["c"] },
  ]);
  await session.client.callTool("get_targeting", { targetingId });
  await session.writesSent();
  return { ...session, targetingId, group, one, two };
}
const UNKNOWN = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
type Service = Awaited<ReturnType<typeof service>>;

async function namesIn({ client, targetingId }: Service): Promise<readonly string[]> {
  const { structuredContent } = await client.callTool("list_options", { targetingId, all: true });
  return found
    .parse(structuredContent)
    .options.map(({ name }) => name)
    .sort();
}

/** For each tool that writes: a call that has an effect, but fails for one item. */
const CALLS: Readonly<Record<string, (of: Service) => Record<string, unknown>>> = {
  bulk_add_options: ({ targetingId }) => ({ targetingId, items: [{ name: "New" }, { name: "One" }] }),
  update_options: ({ one, two, group }) => ({
    items: [
      { _id: one, name: "Two", parent: group },
      { _id: two, name: "One" },
    ],
  }),
  update_contexts: ({ one, two }) => ({
    items: [
      { _id: one, add: ["z"], remove: ["a"] },
      { _id: two, set: ["q"] },
    ],
  }),
  delete_options: ({ one }) => ({ ids: [one] }),
  create_targetings: () => ({ items: [{ name: "Weather", options: [{ name: "Rain", contexts: ["r"] }] }] }),
  rename_targetings: ({ targetingId }) => ({ items: [{ _id: targetingId, name: "Headlines" }] }),
  delete_targeting: ({ targetingId }) => ({ ids: [targetingId] }),
};

test.each(Object.keys(CALLS))("a dry run of %s is applied by apply_plan as it was shown", async (tool) => {
  const of = await service();
  const args = CALLS[tool]?.(of);
  const dry = await of.write(tool, { ...args, dryRun: true });
  expect(dry).toMatchObject({ tool, status: "planned" });
  expect(dry.nextSteps.join()).toContain(`apply_plan {"runId":"${dry.runId}"}`);
  expect(await of.writesSent()).toEqual([]);
  const applied = await of.write("apply_plan", { runId: dry.runId });
  expect(applied).toMatchObject({ tool, runId: dry.runId });
  expect({ ...applied.counts, pending: applied.counts.succeeded, succeeded: 0 }).toEqual(dry.counts);
  expect(applied.failures.map(({ errorCode, indexes }) => ({ errorCode, indexes }))).toEqual(
    dry.failures.map(({ errorCode, indexes }) => ({ errorCode, indexes })),
  );
  expect(new Set(await of.writesSent())).toEqual(new Set(dry.plan?.map(({ operation }) => operation)));
  // Called again, apply_plan reports the same run and sends nothing.
  expect(await of.write("apply_plan", { runId: dry.runId })).toMatchObject({
    runId: dry.runId,
    counts: applied.counts,
  });
  expect(await of.writesSent()).toEqual([]);
});

describe("what has changed since a dry run was shown", () => {
  test("is said, nothing is sent, and the new plan can be applied", async () => {
    const of = await service();
    const { targetingId } = of;
    const items = [{ name: "Spring" }, { name: "Summer" }];
    const { runId } = await of.write("bulk_add_options", { targetingId, items, dryRun: true });
    await of.sandbox.options(targetingId, [{ name: "Spring" }]);
    await of.writesSent();
    const changed = await of.write("apply_plan", { runId });
    expect(changed).toMatchObject({ status: "planned", runId, counts: { failed: 1, pending: 1 } });
    expect(changed.notes.join()).toContain(
      "has changed since it was shown, so nothing was sent: 1 more item would fail",
    );
    expect(await of.writesSent()).toEqual([]);
    expect(await of.write("apply_plan", { runId })).toMatchObject({ status: "partial", counts: { succeeded: 1 } });
    expect(await namesIn(of)).toContain("Summer");
  });

  test("counts where more would be deleted", async () => {
    const of = await service();
    const { runId } = await of.write("delete_options", { ids: [of.group], dryRun: true });
    await of.sandbox.options(of.targetingId, [{ name: "Tennis", parent: of.group }]);
    await of.writesSent();
    const changed = await of.write("apply_plan", { runId });
    expect(changed).toMatchObject({ status: "planned", runId });
    expect(changed.notes.join()).toContain("has changed since it was shown");
    expect(await of.writesSent()).toEqual([]);
    expect(await namesIn(of)).toContain("Ball games");
  });

  test("counts where as many other Context IDs would be deleted", async () => {
    const of = await service();
    const [one = ""] = await of.sandbox.options(of.targetingId, [{ name: "Racing", contexts: ["a", "b"] }]);
    const runs = [
      await of.write("delete_options", { ids: [one], dryRun: true }),
      await of.write("delete_targeting", { ids: [of.targetingId], dryRun: true }),
    ];
    const answer = await fetch(`${of.sandbox.url}/context-targeting/category/bulk/update`, {
      method: "POST",
      headers: { "x-api-key": "sandbox-key", "content-type": "application/json" },
      body: JSON.stringify({ items: [{ _id: one, contexts: { add: ["theirs"], remove: ["a"] } }] }),
    });
    expect(await answer.json()).toMatchObject({ results: [{ success: true }] });
    await of.writesSent();
    for (const { runId } of runs) {
      const changed = await of.write("apply_plan", { runId });
      expect(changed).toMatchObject({ status: "planned", runId });
      expect(changed.notes.join()).toContain(
        "so nothing was sent: names, groups, Context IDs or details have changed; the counts are the same",
      );
    }
    expect(await of.writesSent()).toEqual([]);
    expect(await of.write("apply_plan", { runId: runs[0]?.runId })).toMatchObject({ status: "succeeded" });
  });

  test("does not count where it does not matter", async () => {
    const of = await service();
    const { runId } = await of.write("update_options", { items: [{ _id: of.one, name: "Uno" }], dryRun: true });
    await of.sandbox.options(of.targetingId, [{ name: "Something else" }]);
    const again = await of.write("apply_plan", { runId, dryRun: true });
    expect(again.notes).toContain("the effect is still as it was shown");
    expect(await of.write("apply_plan", { runId })).toMatchObject({ status: "succeeded" });
    expect(await namesIn(of)).toContain("Uno");
  });
});

describe("a stored dry run", () => {
  test("is paged through by get_run, and listed only where planned runs are asked for", async () => {
    const of = await service();
    const { targetingId } = of;
    const items = Array.from({ length: 60 }, (_, at) => ({ name: at < 30 ? `bad_${at}` : `Good ${at}` }));
    const { runId } = await of.write("bulk_add_options", { targetingId, items, dryRun: true });
    const pages: unknown[] = [];
    for (let cursor: string | undefined; pages.length < 100; ) {
      const { structuredContent } = await of.client.callTool("get_run", { runId, ...(cursor && { cursor }) });
      const page = z
        .object({ status: z.literal("planned"), results: z.array(z.unknown()), cursor: z.string().optional() })
        .loose()
        .parse(structuredContent);
      pages.push(...page.results);
      cursor = page.cursor;
      if (cursor === undefined) break;
    }
    expect(pages).toHaveLength(60);
    const recent = await of.client.callTool("get_run", {});
    expect(listed.parse(recent.structuredContent).runs.map((run) => run.runId)).not.toContain(runId);
    expect(textOf(recent)).toMatch(/\n\d+ dry runs? not listed: give status "planned"\./);
    const planned = await of.client.callTool("get_run", { status: "planned" });
    expect(listed.parse(planned.structuredContent).runs.map((run) => run.runId)).toContain(runId);
  });

  test("is counted on one page of the list, also if a page ends just before it", async () => {
    const of = await service();
    const { targetingId } = of;
    const rename = (name: string, dryRun: boolean) =>
      of.write("update_options", { items: [{ _id: of.one, name }], dryRun });
    await rename("First", false);
    for (const name of ["Second", "Third"]) await rename(name, true);
    await rename("Fourth", false);
    const counted: (string | undefined)[] = [];
    for (let cursor: string | undefined; counted.length < 10; ) {
      const answer = await of.client.callTool("get_run", { targetingId, limit: 1, ...(cursor && { cursor }) });
      counted.push(/(\d+) dry runs? not listed/.exec(textOf(answer))?.[1]);
      ({ cursor } = listed.parse(answer.structuredContent));
      if (cursor === undefined) break;
    }
    expect(counted).toEqual([undefined, "2"]);
  });

  test("has nothing to resume, and can be cancelled", async () => {
    const of = await service();
    const { runId } = await of.write("update_options", { items: [{ _id: of.one, name: "Uno" }], dryRun: true });
    const { structuredContent } = await of.client.callTool("resume_run", { runId });
    expect(JSON.stringify(structuredContent)).toContain("is a dry run that was not applied");
    expect(await of.write("cancel_run", { runId })).toMatchObject({ status: "cancelled" });
    await of.write("apply_plan", { runId });
    expect(await of.writesSent()).toEqual([]);
  });

  test("is not what the call itself goes on with", async () => {
    const of = await service();
    const args = { items: [{ _id: of.one, name: "Uno" }] };
    const dry = await of.write("update_options", { ...args, dryRun: true });
    const real = await of.write("update_options", args);
    expect(real).toMatchObject({ status: "succeeded" });
    expect(real.runId).not.toBe(dry.runId);
  });

  test("asks a person like the call, by the token of its tool", async () => {
    const of = await service({ TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_PAGE: "off" });
    const { runId } = await of.write("delete_options", { ids: [of.one], dryRun: true });
    const asked = await of.write("apply_plan", { runId });
    expect(asked).toMatchObject({ status: "needs_confirmation", runId, tool: "delete_options" });
    expect(await of.writesSent()).toEqual([]);
    const done = await of.write("delete_options", { confirmation: asked.confirmation?.token });
    expect(done).toMatchObject({ status: "succeeded", runId });
    expect(await namesIn(of)).not.toContain("One");
  });

  test.each([
    ["delete_options", ({ group, one }: Service) => ({ ids: [one, group, UNKNOWN] })],
    [
      "update_contexts",
      ({ one }: Service) => ({
        items: [
          { _id: one, set: [] },
          { _id: UNKNOWN, add: ["z"] },
        ],
      }),
    ],
  ] as const)("that waits for approval (%s) can be applied and checked again", async (tool, argsOf) => {
    const of = await service({ TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_PAGE: "off" });
    const { runId } = await of.write(tool, { ...argsOf(of), dryRun: true });
    const first = await of.write("apply_plan", { runId });
    expect(first).toMatchObject({ status: "needs_confirmation", runId });
    const checked = await of.write("apply_plan", { runId, dryRun: true });
    expect(checked.notes).toContain("the effect is still as it was shown");
    const second = await of.write("apply_plan", { runId });
    expect(second).toMatchObject({ status: "needs_confirmation", runId });
    expect(await of.writesSent()).toEqual([]);
    expect(await of.write(tool, { confirmation: first.confirmation?.token })).toMatchObject({ status: "partial" });
  });

  test("that waits for approval is not withdrawn by a check, which says what has changed", async () => {
    const of = await service({ TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_PAGE: "off" });
    const { runId } = await of.write("delete_options", { ids: [of.group, UNKNOWN], dryRun: true });
    await of.write("apply_plan", { runId });
    await of.sandbox.options(of.targetingId, [{ name: "Tennis", parent: of.group }]);
    const checked = await of.write("apply_plan", { runId, dryRun: true });
    expect(checked.notes.join()).toMatch(/has changed since it was shown, so nothing was sent: (?!.*more item)/);
    expect(checked.notes.join()).not.toContain("holds the new plan");
    expect(await of.write("get_run", { runId })).toMatchObject({ status: "needs_confirmation" });
  });

  test("that waits for an answer in a form can be applied again", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    const env = { TARGETING_MCP_PAGE: "off", TARGETING_MCP_STATE_DIR: stateDir, TARGETING_MCP_WAIT_MS: "2000" };
    let answer: Promise<Said> = new Promise(() => undefined);
    const { sandbox, write, client } = await startSession({ env, answer: () => answer });
    const targetingId = await sandbox.targeting("News");
    const [one = ""] = await sandbox.options(targetingId, [{ name: "One", contexts: ["a"] }]);
    await client.callTool("delete_options", { ids: [one], dryRun: true });
    const { runId } = await write("delete_options", { ids: [one], dryRun: true });
    expect(await write("apply_plan", { runId })).toMatchObject({ status: "needs_confirmation" });
    answer = Promise.resolve({ action: "accept", content: { confirm: true } });
    expect(await write("apply_plan", { runId })).toMatchObject({ status: "succeeded" });
  });

  test("of a file applies the file as it was read", async () => {
    const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    const of = await service({ TARGETING_MCP_ALLOWED_DIRS: folder });
    const file = join(folder, "options.csv");
    await writeFile(file, "name,contexts\nSpring,s\nSummer,t\n");
    const { targetingId } = of;
    const { runId } = await of.write("bulk_add_options", { targetingId, file, dryRun: true });
    await writeFile(file, "name,contexts\nAutumn,s\n");
    const { structuredContent } = await of.client.callTool("apply_plan", { runId });
    expect(structuredContent).toMatchObject({ status: "succeeded", counts: { succeeded: 2 } });
    expect(await namesIn(of)).toEqual(expect.arrayContaining(["Spring", "Summer"]));
  });

  test("is guarded by the settings as they are when it is applied", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    const env = { TARGETING_MCP_CONFIRM: "off", TARGETING_MCP_STATE_DIR: stateDir };
    const session = await startSession({ env });
    const targetingId = await session.sandbox.targeting("News");
    const items = [{ name: "Spring" }];
    const { runId } = await session.write("bulk_add_options", { targetingId, items, dryRun: true });
    await session.writesSent();
    const guarded = await CLIENTS["2025 client"]({
      args: [COMMAND],
      env: { ...session.environment, TARGETING_MCP_ALLOWED_TARGETINGS: "01ARZ3NDEKTSV4RRFFQ69G5FAV" },
    });
    const { isError } = await guarded.callTool("apply_plan", { runId });
    expect(isError).toBe(true);
    expect(await session.writesSent()).toEqual([]);
  });

  test("replaces the oldest dry run of its caller, and no reviewed plan", async () => {
    const of = await service({ TARGETING_MCP_CALLER_PLANS: "2" });
    const { targetingId } = of;
    const planOf = (name: string) =>
      of.write("bulk_add_options", { targetingId, items: [{ name }], dryRun: true }).then(({ runId = "" }) => runId);
    const desired = { version: 1, options: [{ name: "Reviewed", contexts: [] }] };
    const { structuredContent } = await of.client.callTool("plan_targeting", { targetingId, desired });
    const { runId: reviewed } = z.looseObject({ runId: z.string() }).parse(structuredContent);
    const [first, second, third] = [await planOf("First"), await planOf("Second"), await planOf("Third")];
    const planned = await of.client.callTool("get_run", { status: "planned" });
    const ids = listed.parse(planned.structuredContent).runs.map(({ runId }) => runId);
    expect(ids).toEqual(expect.arrayContaining([second, third, reviewed]));
    expect(ids).not.toContain(first);
    expect((await of.client.callTool("apply_plan", { runId: first })).isError).toBe(true);
  });

  test("replaces none whose call is not answered yet", async () => {
    const of = await service({ TARGETING_MCP_CALLER_PLANS: "2" });
    const calls = Array.from({ length: 8 }, (_, at) => ({
      ...{ targetingId: of.targetingId, dryRun: true },
      items: Array.from({ length: 500 }, (_, item) => ({ name: `Option ${at} ${item}` })),
    }));
    const reports = await Promise.all(calls.map((call) => of.write("bulk_add_options", call)));
    expect(reports.map(({ status }) => status)).toEqual(calls.map(() => "planned"));
  });
});

test("a new group whose sub-options all exist fails in the dry run as when it is applied", async () => {
  const { client, targetingId } = await service();
  const items = [{ name: "Sports", children: [{ name: "One" }] }];
  const shown = await client.callTool("bulk_add_options", { targetingId, items, dryRun: true });
  const { runId } = z.object({ runId: z.string() }).parse(shown.structuredContent);
  const counts = { items: 2, failed: 2 };
  expect(shown.structuredContent).toMatchObject({ counts });
  const applied = await client.callTool("apply_plan", { runId });
  expect(applied.structuredContent).toMatchObject({ status: "failed", counts });
});

test("an option that exists outside of the group that is given for it stays there, and the answer says so", async () => {
  const of = await service();
  const { client, targetingId } = of;
  const items = [
    { name: "One", contexts: ["z"], parentName: "Ball games" },
    { name: "Football", contexts: ["f"], parentName: "Ball games" },
    { name: "Ball games", children: [{ name: "Two", contexts: ["t"] }] },
  ];
  for (const dryRun of [true, false]) {
    const added = await client.callTool("bulk_add_options", { targetingId, items, onExisting: "addContexts", dryRun });
    expect(textOf(added)).toMatch(/2 options that exist are not in the group that was given.*"Two", "One"/);
  }
});

test("a list of runs that an answer cannot hold says how many more there are", async () => {
  const { client, targetingId, one, write } = await service();
  for (let at = 0; at < 30; at += 1) await write("update_options", { items: [{ _id: one, name: `Name ${at}` }] });
  const given = await client.callTool("get_run", { targetingId, limit: 100 });
  const shown = listed.parse(given.structuredContent).runs.length;
  expect(textOf(given)).toContain(`${shown} runs, the newest first, and ${30 - shown} more:`);
  const few = await client.callTool("get_run", { targetingId, limit: 5 });
  expect(textOf(few)).toContain("5 runs, the newest first, and at least 1 more:");
});
