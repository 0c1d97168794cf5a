import { describe, expect, test } from "vitest";
import { type Answer, CLIENTS, textOf } from "../support/clients.ts";
import { checkedReport, startSession } from "../support/writing.ts";

type Said = Awaited<ReturnType<Answer>>;

const OLDER = { "2026 client, legacy": CLIENTS["2026 client, legacy"], "2025 client": CLIENTS["2025 client"] };
const YES: Said = { action: "accept", content: { confirm: true } };

/** A session in which the person answers when the test says so, and two options that may be deleted. */
async function thinking(connect: (typeof CLIENTS)[keyof typeof CLIENTS], waitMs = "1500") {
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
  const statusOf = async (runId: string | undefined) =>
    checkedReport(await session.client.callTool("get_run", { runId })).status;
  return { ...session, asked, answers, targetingId, ids, statusOf };
}

describe.each(Object.entries(OLDER))("%s whose question nobody answers", (_name, connect) => {
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
    await expect.poll(() => statusOf(report.runId), { timeout: 15_000 }).toBe("succeeded");
    expect(await writesSent()).toEqual(["deleteOptions"]);
  });

  test("a later no ends the run, and a later close leaves it", async () => {
    const { client, answers, ids, statusOf, writesSent } = await thinking(connect);
    const declined = checkedReport(await client.callTool("delete_options", { ids }));
    answers[0]?.({ action: "decline" });
    await expect.poll(() => statusOf(declined.runId), { timeout: 15_000 }).toBe("cancelled");
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
    await expect.poll(async () => (await look()).confirmation?.effect, { timeout: 15_000 }).toContain("Renamed");
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
  await expect.poll(() => session.answers.length, { timeout: 15_000 }).toBe(1);
  // The person thinks for longer than a call may take.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  session.answers[0]?.(YES);
  expect(checkedReport(await calling)).toMatchObject({ status: "succeeded", counts: { succeeded: 2 } });
});
