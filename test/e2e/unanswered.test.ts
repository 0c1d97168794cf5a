import { describe, expect, test } from "vitest";
import { type Answer, CLIENTS, textOf } from "../support/clients.ts";
import { hold } from "../support/hold.ts";
import { type Connect, checkedReport, startSession } from "../support/writing.ts";

type Said = Awaited<ReturnType<Answer>>;

const connect = CLIENTS["2025 client"];
const YES: Said = { action: "accept", content: { confirm: true } };

/** A session in which the person answers when the test says so, and two options that may be deleted. */
async function thinking(connect: Connect, waitMs = "3000") {
  const asked: string[] = [];
  const answers: ((said: Said) => void)[] = [];
  const answer = (message: string): Promise<Said> => {
    asked.push(message);
    return new Promise((resolve) => {
      answers.push(resolve);
    });
  };
  const session = await startSession({ connect, answer, env: { TARGETING_MCP_WAIT_MS: waitMs } });
  const targetingId = await session.sandbox.targeting("News");
  const ids = await session.sandbox.options(targetingId, [{ name: "One" }, { name: "Two" }]);
  await session.writesSent();
  // What a deletion needs is loaded with the first one.
  await session.client.callTool("delete_options", { ids, dryRun: true });
  const statusOf = async (runId: string | undefined) =>
    checkedReport(await session.client.callTool("get_run", { runId })).status;
  return { ...session, asked, answers, targetingId, ids, statusOf };
}

describe("a question of a 2025-era client that nobody answers", () => {
  test("is answered at the wait, and a later yes starts the run", async () => {
    const { client, answers, asked, ids, statusOf, writesSent } = await thinking(connect);
    const given = await client.callTool("delete_options", { ids });
    const report = checkedReport(given);
    expect(asked).toHaveLength(1);
    expect(report).toMatchObject({ status: "needs_confirmation", counts: { items: 2, pending: 2 } });
    expect(report.confirmation).toBeUndefined();
    expect(given.isError ?? false).toBe(false);
    expect(textOf(given)).toMatch(/has not answered the question yet: nothing was changed/);
    expect(textOf(given)).toContain("deletes 2 options");
    expect(await statusOf(report.runId)).toBe("needs_confirmation");
    expect(await writesSent()).toEqual([]);
    answers[0]?.(YES);
    await expect.poll(() => statusOf(report.runId)).toBe("succeeded");
    expect(await writesSent()).toEqual(["deleteOptions"]);
  });

  test("a later no ends the run, and a later close leaves it", async () => {
    const { client, answers, ids, statusOf, writesSent } = await thinking(connect);
    const declined = checkedReport(await client.callTool("delete_options", { ids }));
    answers[0]?.({ action: "decline" });
    await expect.poll(() => statusOf(declined.runId)).toBe("cancelled");
    const closed = checkedReport(await client.callTool("delete_options", { ids: ids.slice(0, 1) }));
    answers[1]?.({ action: "cancel" });
    expect(await statusOf(closed.runId)).toBe("needs_confirmation");
    expect(await writesSent()).toEqual([]);
  });

  test("a later yes to what has changed meanwhile starts nothing", async () => {
    const { client, answers, ids, statusOf, writesSent, control, targetingId } = await thinking(connect);
    const report = checkedReport(await client.callTool("delete_options", { ids }));
    await control("/seed", { options: [{ _id: ids[0], targeting: targetingId, name: "Renamed" }] });
    answers[0]?.(YES);
    const look = async () => checkedReport(await client.callTool("get_run", { runId: report.runId, waitMs: 1000 }));
    await expect.poll(async () => (await look()).confirmation?.effect).toContain("Renamed");
    expect(await statusOf(report.runId)).toBe("needs_confirmation");
    expect(await writesSent()).toEqual([]);
  });

  test("a run that was cancelled is not started by a later yes", async () => {
    const { client, answers, ids, statusOf, writesSent } = await thinking(connect);
    const { runId } = checkedReport(await client.callTool("delete_options", { ids }));
    expect(checkedReport(await client.callTool("cancel_run", { runId })).status).toBe("cancelled");
    answers[0]?.(YES);
    const again = checkedReport(await client.callTool("delete_options", { ids }));
    expect(again.status).toBe("needs_confirmation");
    expect(await statusOf(runId)).toBe("cancelled");
    expect(await writesSent()).toEqual([]);
  });
});

test("in the 2026-07-28 era the wait begins anew with the reply", async () => {
  const session = await thinking(CLIENTS["2026 client, modern"], "1000");
  const calling = session.client.callTool("delete_options", { ids: session.ids });
  await expect.poll(() => session.answers.length).toBe(1);
  // The person thinks for longer than a call may take: another one, made meanwhile, has run out of its time.
  const release = await hold(session.sandbox.url, "getTargeting");
  const late = await session.client.callTool("get_targeting", { targetingId: session.targetingId });
  expect(late.isError).toBe(true);
  await release();
  session.answers[0]?.(YES);
  const report = checkedReport(await calling);
  // A busy machine may need more than the wait for the deletion itself.
  expect(["succeeded", "running"]).toContain(report.status);
  const done = async () => checkedReport(await session.client.callTool("get_run", { runId: report.runId }));
  await expect.poll(done).toMatchObject({ status: "succeeded", counts: { succeeded: 2 } });
});
