import { describe, expect, test } from "vitest";
import { type Answer, CLIENTS, textOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { hold } from "../support/hold.ts";
import { type Connect, checkedReport, startSession } from "../support/writing.ts";

type Said = Awaited<ReturnType<Answer>>;

const YES: Said = { action: "accept", content: { confirm: true } };

/** Starts a session in which the test decides when the person answers a question. */
async function thinking(connect: Connect, waitMs: string) {
  const answers: { readonly message: string; readonly say: (said: Said) => void }[] = [];
  const answer = (message: string): Promise<Said> =>
    new Promise((resolve) => {
      answers.push({ message, say: resolve });
    });
  const session = await startSession({ connect, answer, env: { TARGETING_MCP_WAIT_MS: waitMs } });
  /** Creates two options, one of them with this name, and a call that deletes both. */
  const deletable = async (name: string) => {
    const targetingId = await session.sandbox.targeting(`About ${name}`);
    const ids = await session.sandbox.options(targetingId, [{ name }, { name: "Other" }]);
    // The first deletion loads the code, which takes time.
    await session.client.callTool("delete_options", { ids, dryRun: true });
    return { targetingId, ids, deleting: () => session.client.callTool("delete_options", { ids }) };
  };
  const statusOf = async (runId: string | undefined) =>
    checkedReport(await session.client.callTool("get_run", { runId })).status;
  return { ...session, answers, deletable, statusOf };
}

const NAMES = ["Agreed to", "Declined", "Closed", "Renamed", "Cancelled"] as const;

/**
 * Deletions by a 2025-era client, all at once. Their calls have answered after the wait, and the person has not decided
 * yet.
 */
const unanswered = perFile(async () => {
  const session = await thinking(CLIENTS["2025 client"], "3000");
  const deletable: Awaited<ReturnType<typeof session.deletable>>[] = [];
  for (const name of NAMES) deletable.push(await session.deletable(name));
  await session.writesSent();
  const given = await Promise.all(deletable.map(({ deleting }) => deleting()));
  return {
    ...session,
    /** Returns the deletion of the option with this name. */
    of(name: (typeof NAMES)[number]) {
      const [what, answer] = [deletable[NAMES.indexOf(name)], given[NAMES.indexOf(name)]];
      if (what === undefined || answer === undefined) throw new Error("no such deletion");
      const questions = session.answers.filter(({ message }) => message.includes(`"${name}"`));
      expect(questions).toHaveLength(1);
      return { ...what, given: answer, report: checkedReport(answer), say: (said: Said) => questions[0]?.say(said) };
    },
  };
});

describe("a question of a 2025-era client that nobody answers", () => {
  test("is answered at the wait, and a later yes starts the run", async () => {
    const { of, client, statusOf, writesSent } = await unanswered();
    const { given, report, say } = of("Agreed to");
    expect(report).toMatchObject({ status: "needs_confirmation", counts: { items: 2, pending: 2 } });
    expect(report.confirmation).toBeUndefined();
    expect(given.isError ?? false).toBe(false);
    expect(textOf(given)).toMatch(/has not answered the question yet: nothing was changed/);
    expect(textOf(given)).toContain("deletes 2 options");
    expect(await statusOf(report.runId)).toBe("needs_confirmation");
    const resumed = await client.callTool("resume_run", { runId: report.runId });
    expect(textOf(resumed)).toContain("A person decides where they were asked, on the page or in the client.");
    expect(await writesSent()).toEqual([]);
    say(YES);
    await expect.poll(() => statusOf(report.runId)).toBe("succeeded");
    expect(await writesSent()).toEqual(["deleteOptions"]);
  });

  test("a later no ends the run, and a later close leaves it", async () => {
    const { of, statusOf, writesSent } = await unanswered();
    const [declined, closed] = [of("Declined"), of("Closed")];
    declined.say({ action: "decline" });
    await expect.poll(() => statusOf(declined.report.runId)).toBe("cancelled");
    closed.say({ action: "cancel" });
    expect(await statusOf(closed.report.runId)).toBe("needs_confirmation");
    expect(await writesSent()).toEqual([]);
  });

  test("a later yes to what has changed meanwhile starts nothing", async () => {
    const { of, client, writesSent, control } = await unanswered();
    const { report, say, ids, targetingId } = of("Renamed");
    await control("/seed", { options: [{ _id: ids[0], targeting: targetingId, name: "Another name" }] });
    say(YES);
    const look = async () => checkedReport(await client.callTool("get_run", { runId: report.runId }));
    const effect: unknown = expect.stringContaining("Another name");
    await expect.poll(look).toMatchObject({ status: "needs_confirmation", confirmation: { effect } });
    expect(await writesSent()).toEqual([]);
  });

  test("a run that was cancelled is not started by a later yes", async () => {
    const { of, client, statusOf, writesSent } = await unanswered();
    const { report, say, deleting } = of("Cancelled");
    const { runId } = report;
    expect(checkedReport(await client.callTool("cancel_run", { runId })).status).toBe("cancelled");
    say(YES);
    expect(checkedReport(await deleting()).status).toBe("needs_confirmation");
    expect(await statusOf(runId)).toBe("cancelled");
    expect(await writesSent()).toEqual([]);
  });
});

test("a call made again while its question is open asks about the same run, and declining it ends that", async () => {
  const session = await thinking(CLIENTS["2025 client"], "3000");
  const { deleting } = await session.deletable("Once");
  await session.writesSent();
  const first = checkedReport(await deleting());
  expect(first.status).toBe("needs_confirmation");
  const again = checkedReport(await deleting());
  expect(again).toMatchObject({ status: "needs_confirmation", runId: first.runId });
  const last = deleting();
  await expect.poll(() => session.answers.length).toBe(3);
  session.answers[2]?.say({ action: "decline" });
  expect(checkedReport(await last).status).toBe("cancelled");
  expect(await session.statusOf(first.runId)).toBe("cancelled");
  // The run was declined, so a later approval of an earlier question does not start it.
  session.answers[0]?.say(YES);
  expect(await session.statusOf(first.runId)).toBe("cancelled");
  expect(await session.writesSent()).toEqual([]);
});

test("in the 2026-07-28 era the wait begins anew with the reply", async () => {
  const session = await thinking(CLIENTS["2026 client, modern"], "1000");
  const { deleting, targetingId } = await session.deletable("One");
  const calling = deleting();
  await expect.poll(() => session.answers.length).toBe(1);
  // The person needs longer than a call may take: another call that starts now reaches its time limit first.
  const release = await hold(session.sandbox.url, "getTargeting");
  const late = await session.client.callTool("get_targeting", { targetingId });
  expect(late.isError).toBe(true);
  await release();
  session.answers[0]?.say(YES);
  const report = checkedReport(await calling);
  // On a busy machine, the deletion itself may take longer than the call waits.
  expect(["succeeded", "running"]).toContain(report.status);
  const done = async () => checkedReport(await session.client.callTool("get_run", { runId: report.runId }));
  await expect.poll(done).toMatchObject({ status: "succeeded", counts: { succeeded: 2 } });
});
