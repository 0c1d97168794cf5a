import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Answer, CLIENTS, textOf } from "../support/clients.ts";
import { cleanEnvironment } from "../support/server-process.ts";
import { checkedReport, inCallOrder, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

/** Starts a session whose client declines every question, and creates a targeting with two options. */
async function shop(connect: (typeof CLIENTS)[keyof typeof CLIENTS] = CLIENTS["2026 client, modern"]) {
  const asked: string[] = [];
  const answer: Answer = (message) => {
    asked.push(message);
    return { action: "decline" };
  };
  const stateDir = cleanEnvironment().TARGETING_MCP_STATE_DIR ?? "";
  const session = await startSession({ connect, answer, env: { TARGETING_MCP_STATE_DIR: stateDir } });
  const [targetingId = ""] = ids(await session.write("create_targetings", { items: [{ name: "Shop" }] }));
  const items = [{ name: "One", contexts: ["a"] }, { name: "Two" }];
  const made = await session.write("bulk_add_options", { targetingId, items });
  await session.writesSent();
  return { session, stateDir, asked, made, options: ids(made) };
}

const ids = (report: Parameters<typeof inCallOrder>[0]): readonly string[] =>
  inCallOrder(report).flatMap(({ _id }) => _id ?? []);

describe.each(Object.entries(CLIENTS))("%s", (_name, connect) => {
  test("a declined call made again answers that it was declined, and asks nobody", async () => {
    const { session, asked, options } = await shop(connect);
    const [one, two] = options;
    const declined = checkedReport(await session.client.callTool("delete_options", { ids: [one] }));
    const again = await session.client.callTool("delete_options", { ids: [one] });
    expect(checkedReport(again)).toMatchObject({
      runId: declined.runId,
      status: "cancelled",
      counts: { items: 1, notApplied: 1 },
      approval: { decision: "declined", channel: "client" },
    });
    expect(textOf(again)).toMatch(
      /the same call was declined less than a minute ago, so nobody was asked again\. If the person wants it after all, the same call asks again in 10 minutes/i,
    );
    expect(asked).toHaveLength(1);
    const shown = checkedReport(await session.client.callTool("get_run", { runId: declined.runId }));
    expect(shown.status).toBe("cancelled");
    expect(shown.notes).toContainEqual(expect.stringContaining("the question was: "));
    // A call with other arguments asks again.
    await session.client.callTool("delete_options", { ids: [two] });
    expect(asked).toHaveLength(2);
    expect(await session.writesSent()).toEqual([]);
  });
});

test("ten minutes after it was declined, the same call asks again", async () => {
  const { session, stateDir, asked, options } = await shop();
  const drop = async () => checkedReport(await session.client.callTool("delete_options", { ids: options }));
  const { runId = "" } = await drop();
  const file = join(stateDir, "runs", runId, "record.2.json");
  const record = await readFile(file, "utf8");
  await writeFile(
    file,
    record.replace(/"at":(\d+)/g, (_, at) => `"at":${Number(at) - 600_000}`),
  );
  expect((await drop()).runId).not.toBe(runId);
  expect(asked).toHaveLength(2);
});

test("a plan that was declined in the client has ended", async () => {
  const { session, asked, made } = await shop();
  const { structuredContent } = await session.client.callTool("undo_run", { runId: made.runId });
  const { runId } = structuredContent ?? {};
  for (let times = 0; times < 2; times += 1) {
    const applied = await session.client.callTool("apply_plan", { runId });
    expect(checkedReport(applied)).toMatchObject({
      runId,
      status: "cancelled",
      approval: { decision: "declined", channel: "client" },
    });
  }
  expect(asked).toHaveLength(1);
  expect(await session.writesSent()).toEqual([]);
});

test("a call that is declined while it is planned again is declined, too", async () => {
  const asked: string[] = [];
  const session: Awaited<ReturnType<typeof startSession>> = await startSession({
    connect: CLIENTS["2026 client, modern"],
    env: { TARGETING_MCP_WAIT_MS: "4000" },
    async answer(message) {
      asked.push(message);
      await session.control("/faults", { faults: [{ kind: "slow", delayMs: 9000, on: "read", probability: 1 }] });
      return { action: "decline" };
    },
  });
  const [targetingId = ""] = ids(await session.write("create_targetings", { items: [{ name: "Shop" }] }));
  const options = ids(await session.write("bulk_add_options", { targetingId, items: [{ name: "One" }] }));
  await session.writesSent();
  for (let times = 0; times < 2; times += 1) {
    const answered = checkedReport(await session.client.callTool("delete_options", { ids: options }));
    expect(answered).toMatchObject({ status: "cancelled", approval: { decision: "declined", channel: "client" } });
  }
  expect(asked).toHaveLength(1);
  expect(await session.writesSent()).toEqual([]);
});
