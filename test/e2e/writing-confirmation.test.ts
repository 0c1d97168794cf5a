import { mkdtemp } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, textOf } from "../support/clients.ts";
import { COMMAND } from "../support/server-process.ts";
import { checkedReport, type Report, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

type Session = Awaited<ReturnType<typeof startSession>>;

const idOf = ({ results }: Report, position = 0): string => results[position]?._id ?? "";
const listOfRuns = z.looseObject({ runs: z.array(z.looseObject({ runId: z.string() })) });
const errorAnswer = z.looseObject({ error: z.object({ message: z.string(), remedy: z.string().optional() }) });

/**
 * Creates a targeting with a group of two sub-options and a regular option. Their requests do not count in
 * `writesSent`.
 */
async function withOptions(session: Session) {
  const targetingId = idOf(await session.write("create_targetings", { items: [{ name: "Sports fans" }] }));
  const made = await session.write("bulk_add_options", {
    targetingId,
    items: [
      { name: "Ball games", contexts: ["ball"], children: [{ name: "Football" }, { name: "Rugby" }] },
      { name: "Running", contexts: Array.from({ length: 150 }, (_, number) => `c${number}`) },
    ],
  });
  await session.writesSent();
  return { targetingId, group: idOf(made), football: idOf(made, 1), running: idOf(made, 3) };
}

/** Renames an option, as another user does in the console. */
async function rename({ control }: Session, { targetingId, running }: Awaited<ReturnType<typeof withOptions>>) {
  await control("/seed", { options: [{ _id: running, targeting: targetingId, name: "Renamed" }] });
}

async function planned(session: Session, tool: string, args: Record<string, unknown>): Promise<string> {
  const report = await session.write(tool, args);
  expect(report.status).toBe("needs_confirmation");
  return report.confirmation?.token ?? "";
}

/** Calls a tool that must refuse. Returns the text of its answer. */
async function refused(
  { client }: Pick<Session, "client">,
  tool: string,
  args: Record<string, unknown>,
): Promise<string> {
  const answer = await client.callTool(tool, args);
  expect(answer.isError).toBe(true);
  const { error } = errorAnswer.parse(answer.structuredContent);
  expect(textOf(answer)).toContain(error.message);
  expect(textOf(answer)).toContain(error.remedy ?? "");
  return textOf(answer);
}

describe("a client that can ask", () => {
  const connect = CLIENTS["2025 client"];

  test("a yes deletes, and the person saw what goes", async () => {
    const asked: string[] = [];
    const session = await startSession({
      connect,
      answer: (message) => {
        asked.push(message);
        return { action: "accept", content: { confirm: true } };
      },
    });
    const { group, running, targetingId } = await withOptions(session);
    const options = await session.write("delete_options", { ids: [group, running] });
    expect(options).toMatchObject({ status: "succeeded", counts: { items: 2, succeeded: 2 } });
    const targeting = await session.write("delete_targeting", { ids: [targetingId] });
    expect(targeting).toMatchObject({ status: "succeeded" });
    expect(asked).toEqual([
      expect.stringMatching(
        /1 option group with 1 own Context ID \(2 sub-options become top-level options\).*1 option with 150 Context IDs[\s\S]*"Ball games"/,
      ),
      expect.stringMatching(/deletes 1 targeting with 2 options[\s\S]*"Sports fans"/),
    ]);
    expect(await session.writesSent()).toEqual(["deleteOptions", "deleteTargetings"]);
    const other = await session.sandbox.targeting("Others");
    await session.sandbox.options(other, [
      { name: "Pets", type: "collection", children: [{ name: "Cats" }, { name: "Dogs" }] },
    ]);
    await session.write("delete_options", { targetingId: other, names: ["Pets", "Cats"] });
    expect(asked.at(-1)).toContain(
      'group with no own Context IDs and 2 sub-options; "Dogs" becomes a top-level option',
    );
  });

  test.each([
    ["accept", "ask"],
    ["accept", "strict"],
    ["cancel", "ask"],
  ] as const)(
    "an answer of %s without content deletes nothing (%s), and no token replaces it",
    async (action, confirm) => {
      const env = { TARGETING_MCP_CONFIRM: confirm };
      const session = await startSession({ connect, answer: () => ({ action }), env });
      const { running } = await withOptions(session);
      const report = await session.write("delete_options", { ids: [running] });
      expect(report).toMatchObject({ status: "needs_confirmation", counts: { items: 1, pending: 1 } });
      expect(report.confirmation).toBeUndefined();
      expect(JSON.stringify(report.notes)).toMatch(/150 Context IDs.*closed without a decision: nothing was changed/);
      expect(await session.writesSent()).toEqual([]);
    },
  );

  test("an approval names the user of this machine; a client that declines is not called a person", async () => {
    let action: "accept" | "decline" = "accept";
    const session = await startSession({ connect, answer: () => ({ action, content: { confirm: true } }) });
    const { running, football } = await withOptions(session);
    const by = userInfo().username;
    const done = await session.client.callTool("delete_options", { ids: [running] });
    expect(checkedReport(done).approval).toEqual({ decision: "approved", channel: "client", by });
    expect(textOf(done)).toContain(`Approved in the client by ${by}.`);
    action = "decline";
    const declined = await session.client.callTool("delete_options", { ids: [football] });
    expect(checkedReport(declined)).toMatchObject({ status: "cancelled", approval: { decision: "declined" } });
    expect(checkedReport(declined).approval).toEqual({ decision: "declined", channel: "client" });
    expect(textOf(declined)).toContain("The client declined.");
    expect(textOf(declined)).not.toMatch(/person (?:said|did not)/);
  });

  test("taking away much asks, and little does not", async () => {
    let questions = 0;
    const answer = () => {
      questions += 1;
      return { action: "decline" } as const;
    };
    const session = await startSession({ connect, answer });
    const { group, football, running } = await withOptions(session);
    const contextIds = Array.from({ length: 150 }, (_, number) => `c${number}`);
    const update = (item: object) => session.write("update_contexts", { items: [item] });
    expect(await update({ _id: running, remove: contextIds.slice(0, 100) })).toMatchObject({ status: "succeeded" });
    expect(await update({ _id: running, set: [...contextIds.slice(0, 120)] })).toMatchObject({ status: "succeeded" });
    expect(await update({ _id: football, remove: ["not there"] })).toMatchObject({ status: "succeeded" });
    expect(questions).toBe(0);
    expect(await update({ _id: running, remove: contextIds.slice(0, 101) })).toMatchObject({ status: "cancelled" });
    expect(await update({ _id: group, remove: ["ball"] })).toMatchObject({ status: "cancelled" });
    expect(await update({ _id: group, set: [] })).toMatchObject({ status: "cancelled" });
    expect(questions).toBe(3);
  });

  test("what changes while the person thinks is asked about anew", async () => {
    const asked: string[] = [];
    const session: Session = await startSession({
      connect,
      async answer(message) {
        asked.push(message);
        if (asked.length === 1) await rename(session, ids);
        return { action: "accept", content: { confirm: true } };
      },
    });
    const ids = await withOptions(session);
    expect(await session.write("delete_options", { ids: [ids.running] })).toMatchObject({ status: "succeeded" });
    expect(asked).toEqual([expect.stringContaining('"Running"'), expect.stringContaining('"Renamed"')]);
    expect(await session.writesSent()).toEqual(["deleteOptions"]);
  });
});

describe("a client that cannot ask", () => {
  const connect = CLIENTS["2026 client, modern"];

  test("the token alone acts, and used again it gives that run's report", async () => {
    const session = await startSession({ connect });
    const { group } = await withOptions(session);
    const report = await session.write("delete_options", { ids: [group] });
    expect(report).toMatchObject({ status: "needs_confirmation", counts: { items: 1, pending: 1 } });
    expect(report.confirmation?.effect).toMatch(
      /1 option group with 1 own Context ID \(2 sub-options become top-level options\)[\s\S]*"Ball games"/,
    );
    const inMs = Date.parse(report.confirmation?.expiresAt ?? "") - Date.now();
    expect(inMs).toBeGreaterThan(500_000);
    expect(inMs).toBeLessThanOrEqual(600_000);
    expect(await session.writesSent()).toEqual([]);
    const confirmation = report.confirmation?.token;
    const done = await session.write("delete_options", { confirmation });
    expect(done).toMatchObject({ status: "succeeded", runId: report.runId });
    const replayed = await session.write("delete_options", { confirmation });
    expect(replayed).toMatchObject({ status: "succeeded", runId: report.runId, counts: done.counts });
    expect(await session.writesSent()).toEqual(["deleteOptions"]);
  });

  test("a run that waits is shown and listed as it is, and once it is cancelled its token is refused", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    const session = await startSession({ connect, env: { TARGETING_MCP_STATE_DIR: stateDir } });
    const { group, running } = await withOptions(session);
    const args = { ids: [group, running, "01ARZ3NDEKTSV4RRFFQ69G5FAV"] };
    const report = await session.write("delete_options", args);
    expect(report).toMatchObject({ status: "needs_confirmation", counts: { items: 3, pending: 2, failed: 1 } });
    const { runId, counts } = report;
    const other = await connect({ args: [COMMAND], env: session.environment });
    for (const client of [session.client, other]) {
      const shown = await client.callTool("get_run", { runId });
      const { expiresAt } = report.confirmation ?? {};
      const confirmation = { expiresAt, channel: "token", effect: expect.stringContaining('"Ball games"') };
      expect(checkedReport(shown)).toMatchObject({ status: "needs_confirmation", counts, confirmation });
      const until = `until ${expiresAt?.slice(0, 10)}, ${expiresAt?.slice(11, 16)} UTC.`;
      for (const said of ['"Ball games"', until, "the token of this run, make the same delete_options call again"]) {
        expect(textOf(shown)).toContain(said);
      }
      const listed = await client.callTool("get_run", { status: "needs_confirmation" });
      expect(listed.structuredContent).toMatchObject({ runs: [{ runId, status: "needs_confirmation", counts }] });
    }
    const cancelled = checkedReport(await other.callTool("cancel_run", { runId }));
    expect(cancelled).toMatchObject({
      status: "cancelled",
      counts: { items: 3, notApplied: 2, failed: 1, pending: 0 },
    });
    expect(JSON.stringify(cancelled)).not.toContain("resume_run");
    const confirmation = report.confirmation?.token;
    for (const client of [session.client, other]) {
      expect(checkedReport(await client.callTool("get_run", { runId }))).toMatchObject({ status: "cancelled" });
      const told = await refused({ client }, "delete_options", { confirmation });
      expect(told).toContain("was cancelled before it was started");
      expect(await refused({ client }, "resume_run", { runId })).toContain("was cancelled before it was started");
    }
    expect(await session.writesSent()).toEqual([]);
    const anew = await session.write("delete_options", args);
    expect(anew.runId).not.toBe(runId);
    await session.write("delete_options", { confirmation: anew.confirmation?.token });
    expect(await session.writesSent()).toContain("deleteOptions");
  });

  test("the same call made again, in any process, asks about the run that waits already", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    const session = await startSession({ connect, env: { TARGETING_MCP_STATE_DIR: stateDir } });
    const { group, running } = await withOptions(session);
    const first = await session.write("delete_options", { ids: [group] });
    const other = await connect({ args: [COMMAND], env: session.environment });
    const [again, elsewhere] = [
      await session.write("delete_options", { ids: [group] }),
      checkedReport(await other.callTool("delete_options", { ids: [group] })),
    ];
    for (const report of [again, elsewhere]) {
      expect(report).toMatchObject({ status: "needs_confirmation", runId: first.runId });
      expect(report.confirmation?.effect).toContain('"Ball games"');
    }
    const different = await session.write("delete_options", { ids: [running] });
    expect(different.runId).not.toBe(first.runId);
    const listed = await other.callTool("get_run", { status: "needs_confirmation" });
    const waiting = listOfRuns.parse(listed.structuredContent).runs.map(({ runId }) => runId);
    expect(waiting.sort()).toEqual([first.runId, different.runId].sort());
    const done = checkedReport(await other.callTool("delete_options", { confirmation: elsewhere.confirmation?.token }));
    expect(done).toMatchObject({ status: "succeeded", runId: first.runId });
    for (const { confirmation } of [first, again]) {
      const told = await session.write("delete_options", { confirmation: confirmation?.token });
      expect(told).toMatchObject({ status: "succeeded", runId: first.runId });
    }
    expect(await session.writesSent()).toEqual(["deleteOptions"]);
  });

  test("the same call asks about what it would take away by now", async () => {
    const session = await startSession({ connect });
    const ids = await withOptions(session);
    const before = await session.write("delete_options", { ids: [ids.running] });
    await rename(session, ids);
    const after = await session.write("delete_options", { ids: [ids.running] });
    expect(after.runId).toBe(before.runId);
    expect(after.confirmation?.effect).toContain('"Renamed"');
    const stale = await session.write("delete_options", { confirmation: before.confirmation?.token });
    expect(stale).toMatchObject({ status: "needs_confirmation", runId: before.runId });
    expect(await session.writesSent()).toEqual([]);
    const done = await session.write("delete_options", { confirmation: after.confirmation?.token });
    expect(done).toMatchObject({ status: "succeeded", runId: before.runId });
  });

  test("strict refuses, and says why and what would go", async () => {
    const session = await startSession({ connect, env: { TARGETING_MCP_CONFIRM: "strict" } });
    const { running } = await withOptions(session);
    const words = await refused(session, "delete_options", { ids: [running] });
    expect(words).toContain("TARGETING_MCP_CONFIRM is strict");
    expect(words).toContain("start this server where a browser can be opened (TARGETING_MCP_PAGE)");
    expect(words).toContain("150 Context IDs");
    expect(await session.writesSent()).toEqual([]);
  });
});

describe("a confirmation", () => {
  test("counts only for its own tool, and beside nothing but what was planned", async () => {
    const session = await startSession({ fresh: true });
    const { running, group, targetingId } = await withOptions(session);
    const confirmation = await planned(session, "delete_options", { targetingId, names: ["Running"] });
    const beside = (args: object) => refused(session, "delete_options", { confirmation, ...args });
    expect(await refused(session, "update_contexts", { confirmation })).toContain("belongs to delete_options");
    expect(await refused(session, "delete_targeting", { confirmation })).toContain("belongs to delete_options");
    expect(await beside({ ids: [group] })).toContain("differ from the planned ones");
    expect(await beside({ ids: [running] })).toContain("differ from the planned ones");
    expect(await beside({ targetingId: "01JABCDEFGHJKMNPQRSTVWXYZ0" })).toContain("differ from the planned ones");
    expect(await beside({ targetingId, names: ["Ball games"] })).toContain("differ from the planned ones");
    expect(await beside({ dryRun: true })).toContain("dryRun was given together with confirmation");
    expect(await session.writesSent()).toEqual([]);
    const args = { confirmation, targetingName: "Sports fans", names: ["Running"], dryRun: false };
    expect(await session.write("delete_options", args)).toMatchObject({ status: "succeeded" });
  });

  test("does not outlive a change: what is different is shown anew, and the new token counts", async () => {
    const session = await startSession();
    const { group, football } = await withOptions(session);
    const confirmation = await planned(session, "delete_options", { ids: [group] });
    await session.control("/seed", { remove: [football] });
    const anew = await session.write("delete_options", { confirmation });
    expect(anew.status).toBe("needs_confirmation");
    expect(anew.notes.join()).toContain("has changed since the person approved it");
    expect(anew.confirmation?.effect).toContain("(1 sub-option becomes a top-level option)");
    expect(anew.confirmation?.token).not.toBe(confirmation);
    expect(await session.writesSent()).toEqual([]);
    const done = await session.write("delete_options", { confirmation: anew.confirmation?.token });
    expect(done).toMatchObject({ status: "succeeded" });
  });

  test("for what is gone meanwhile asks nobody anything", async () => {
    const session = await startSession();
    const { running } = await withOptions(session);
    const confirmation = await planned(session, "delete_options", { ids: [running] });
    await session.control("/seed", { remove: [running] });
    const report = await session.write("delete_options", { confirmation });
    expect(report).toMatchObject({ status: "failed", failures: [{ errorCode: "TARGETING_CATEGORY_NOT_FOUND" }] });
  });

  test("spent twice at the same time starts one run", async () => {
    const session = await startSession();
    const { running } = await withOptions(session);
    const confirmation = await planned(session, "delete_options", { ids: [running] });
    const reports = await Promise.all(
      Array.from({ length: 5 }, () => session.write("delete_options", { confirmation })),
    );
    expect(new Set(reports.map(({ runId }) => runId)).size).toBe(1);
    for (const { counts } of reports) expect(counts).toMatchObject({ items: 1, succeeded: 1 });
    expect(await session.writesSent()).toEqual(["deleteOptions"]);
  });

  test("spent at the same time in two servers starts one run, and both tell of all its items", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    const session = await startSession({ env: { TARGETING_MCP_STATE_DIR: stateDir } });
    const other = await CLIENTS["2025 client"]({ args: [COMMAND], env: session.environment });
    const { running, group } = await withOptions(session);
    const confirmation = await planned(session, "delete_options", { ids: [running, group] });
    const spend = async (client: Session["client"]) =>
      checkedReport(await client.callTool("delete_options", { confirmation }));
    const reports = await Promise.all([spend(session.client), spend(other)]);
    expect(new Set(reports.map(({ runId }) => runId)).size).toBe(1);
    for (const { counts } of reports) expect(counts.items).toBe(2);
    expect(await session.writesSent()).toEqual(["deleteOptions"]);
  });

  test("spent and cancelled at the same time: either the run is refused and nothing is sent, or it ran", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    const session = await startSession({ env: { TARGETING_MCP_STATE_DIR: stateDir } });
    const other = await CLIENTS["2025 client"]({ args: [COMMAND], env: session.environment });
    const { running } = await withOptions(session);
    const report = await session.write("delete_options", { ids: [running] });
    const { runId } = report;
    const [spent] = await Promise.all([
      session.client.callTool("delete_options", { confirmation: report.confirmation?.token }),
      other.callTool("cancel_run", { runId }),
    ]);
    const sent = await session.writesSent();
    const after = checkedReport(await other.callTool("get_run", { runId, waitMs: 5000 }));
    const isRefused = spent.isError === true || checkedReport(spent).status === "cancelled";
    if (isRefused) expect([sent, after.status, after.counts.notApplied]).toEqual([[], "cancelled", 1]);
    else expect([sent, after.status]).toEqual([["deleteOptions"], "succeeded"]);
  });

  test("cannot be gone around with resume_run", async () => {
    const session = await startSession();
    const { running } = await withOptions(session);
    const { runId } = await session.write("update_contexts", { items: [{ _id: running, set: [] }] });
    const refusal = await refused(session, "resume_run", { runId });
    expect(refusal).toContain("waits for approval");
    expect(refusal).toContain("call update_contexts with the confirmation that its answer gave");
    const { structuredContent } = await session.client.callTool("get_run", { runId });
    expect(structuredContent).toMatchObject({ status: "needs_confirmation" });
    expect(await session.writesSent()).toEqual([]);
  });
});

test("more deletions than allowed are refused before anything is read", async () => {
  const session = await startSession({ env: { TARGETING_MCP_MAX_DELETES: "2", TARGETING_MCP_CONFIRM: "off" } });
  const { group, football, running, targetingId } = await withOptions(session);
  for (const args of [
    { ids: [group, football, running] },
    { targetingId, ids: [group, football], names: ["Running"] },
  ]) {
    expect(await refused(session, "delete_options", args)).toContain("TARGETING_MCP_MAX_DELETES");
  }
  const ids = [targetingId, targetingId.replace(/.$/, "0"), targetingId.replace(/.$/, "1")];
  expect(await refused(session, "delete_targeting", { ids })).toContain("TARGETING_MCP_MAX_DELETES");
  expect(await session.writesSent()).toEqual([]);
  expect(await session.write("delete_options", { ids: [football, running] })).toMatchObject({ status: "succeeded" });
});
