import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { textOf } from "../support/clients.ts";
import { startSession } from "../support/writing.ts";

const purchase = (tx_id: string) => ({ uid: `user-${tx_id}`, eventName: "purchase", tx_id, items: [{ item_id: "i" }] });

/** A session in which the answer to the second event is lost. */
async function losingSecond(env: Readonly<Record<string, string>> = {}) {
  const session = await startSession({ env });
  const lost = { on: "trackEvent", nth: 2, kind: "reset", applied: true };
  await session.control("/faults", { faults: [lost] });
  return session;
}

test("get_run shows the input of an event whose answer was lost, of a list and of a file", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const csv = join(folder, "purchases.csv");
  await writeFile(csv, "uid,eventName,tx_id\nu-1,purchase,T-1\nu-1,purchase,T-2\nu-1,purchase,T-3\n");
  for (const args of [{ items: ["T-1", "T-2", "T-3"].map(purchase) }, { file: csv }]) {
    const { client } = await losingSecond({ TARGETING_MCP_ALLOWED_DIRS: folder });
    const sent = await client.callTool("track_events", args);
    expect(sent.structuredContent).toMatchObject({ status: "partial", counts: { succeeded: 2, unknown: 1 } });
    const { runId } = sent.structuredContent ?? {};
    const shown = await client.callTool("get_run", { runId, includeInput: true });
    expect(shown.structuredContent).toMatchObject({
      results: [{ outcome: "unknown", input: { tx_id: expect.any(String) } }],
    });
    expect(textOf(shown)).toMatch(/"tx_id":"T-\d"/);
  }
});
