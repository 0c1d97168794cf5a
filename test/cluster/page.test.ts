import { expect, test } from "vitest";
import { browserOfTest, personAt } from "../support/page-person.ts";
import { startCommand } from "../support/server-process.ts";
import { startSession } from "../support/writing.ts";
import { call, startReplica, withPostgres } from "./cluster.ts";

const cluster = withPostgres();

test("on a shared store the page shows and decides the runs of this user of this machine alone", async () => {
  const browser = browserOfTest();
  const store = { TARGETING_MCP_STORE: await cluster.postgres.database() };
  const session = await startSession({ live: true, env: { ...browser.env, ...store } });
  const { environment } = session;
  const { BROWSER: _, TARGETING_MCP_STATE_DIR: __, ...settings } = environment;
  // The replica creates the tables of the store.
  const replica = await startReplica(settings);
  const made = await session.write("create_targetings", { items: [{ name: "Mine" }] });
  const theirs = await call(replica.url, "create_targetings", { items: [{ name: "Theirs" }] });
  expect(theirs.structuredContent).toMatchObject({ status: "succeeded" });
  const answer = session.client.callTool("delete_targeting", { ids: [made.results[0]?._id] });
  const here = await personAt(await browser.address());
  const run = await here.waiting();
  const other = browserOfTest();
  startCommand(["page"], { ...environment, ...other.env });
  const there = await personAt(await other.address());
  await there.waiting();
  expect(there.runs().map(({ tool }) => tool)).toEqual(["delete_targeting", "create_targetings"]);
  expect((await there.press(String(theirs.structuredContent?.runId), "cancel")).status).toBe(404);
  expect((await there.press(run.runId, "approve")).status).toBe(200);
  expect((await answer).structuredContent).toMatchObject({
    status: "succeeded",
    approval: { decision: "approved", channel: "page" },
  });
});
