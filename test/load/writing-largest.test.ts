import { expect, test } from "vitest";
import { CLIENTS } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { closedPort } from "../support/stub-server.ts";
import { checkedReport, type Report, startSession } from "../support/writing.ts";

const idsOf = ({ results }: Report) => results.flatMap(({ _id }) => _id ?? []);

/** Returns a name of 36 letters that mostly take three tokens each. No allowed letter takes more. */
const longName = (number: number) => `${"\uAD82".repeat(31)}${String(number).padStart(5, "0")}`;

test("the largest answers stay below the limit", async () => {
  const session = await startSession();
  const targetingId = idsOf(await session.write("create_targetings", { items: [{ name: longName(0) }] }))[0];
  const items = Array.from({ length: 200 }, (_, number) => ({ name: longName(number), contexts: ["c"] }));
  const made = await session.write("bulk_add_options", { targetingId, items });
  expect(made.results.length).toBeGreaterThan(5);
  // The same items in another order are another call. The same call would find its objects already created.
  const again = await session.write("bulk_add_options", { targetingId, items: items.toReversed() });
  expect(again).toMatchObject({ failures: [{ count: 200 }] });
  const names = [...items.map(({ name }) => name), ...items.map(({ name }) => `${name}_`)];
  const asked = await session.write("delete_options", { targetingId, names, ids: ["\u202E".repeat(1000), ""] });
  expect(asked).toMatchObject({ status: "needs_confirmation", counts: { items: 402, pending: 200, failed: 202 } });
  expect(asked.confirmation?.effect).toContain(longName(0));
  expect(asked.failures.length).toBeGreaterThan(0);
});

test("an embedded sandbox on a port of one's own shows what the command wrote", async () => {
  const { port } = new URL(await closedPort());
  const client = await CLIENTS["2026 client, legacy"]({
    args: [COMMAND],
    env: cleanEnvironment({ TARGETING_MCP_SANDBOX_PORT: port }),
  });
  const report = checkedReport(await client.callTool("create_targetings", { items: [{ name: "Sports fans" }] }));
  expect(report).toMatchObject({ environment: "sandbox", status: "succeeded" });
  const state: unknown = await (await fetch(`http://127.0.0.1:${port}/_sandbox/state`)).json();
  expect(state).toMatchObject({ projects: [{ targetings: [{ _id: idsOf(report)[0], name: "Sports fans" }] }] });
  const journal: unknown = await (await fetch(`http://127.0.0.1:${port}/_sandbox/requests`)).json();
  expect(journal).toMatchObject({ requests: [{ operation: "createTargetings", applied: true }] });
});
