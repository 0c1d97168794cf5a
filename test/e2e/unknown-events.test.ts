import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { textOf } from "../support/clients.ts";
import { startSession } from "../support/writing.ts";

const purchase = (tx_id: string) => ({ uid: `user-${tx_id}`, eventName: "purchase", tx_id, items: [{ item_id: "i" }] });

/** Starts a session in which the answer to the second event is lost. */
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
    expect(textOf(shown)).toMatch(
      /^Next: inspect_events \{"uids":\["[^"]+"\]\} shows which of these events arrived\. Send /m,
    );
    expect(textOf(shown)).not.toContain("Next: get_run");
  }
});

test("an event without a result is held back from any call for 10 minutes, whatever the order of its keys", async () => {
  const { client, control } = await startSession();
  const event = { uid: "u-1", eventName: "purchase", tx_id: "T-9", items: [{ item_id: "i", quantity: 2 }] };
  const turned = { items: [{ quantity: 2, item_id: "i" }], tx_id: "T-9", eventName: "purchase", uid: "u-1" };
  await control("/faults", { faults: [{ on: "trackEvent", kind: "reset", applied: true }] });
  const first = await client.callTool("track_events", { events: [purchase("T-8"), event] });
  expect(first.structuredContent).toMatchObject({ counts: { unknown: 1 } });
  const lost = z.object({ events: z.array(z.object({ body: z.looseObject({ tx_id: z.string() }) })) });
  const seen = async () =>
    lost.parse((await client.callTool("inspect_events", { limit: 50 })).structuredContent).events.length;
  const recorded = await seen();
  const again = await client.callTool("track_events", { events: [purchase("T-8"), turned] });
  expect(textOf(again)).toContain(
    "an identical event was sent less than 10 minutes ago, and the result is unknown (item 1 of this call)",
  );
  const unknown = await client.callTool("get_run", { runId: first.structuredContent?.runId, includeInput: true });
  const same = /"tx_id":"T-8"/.test(textOf(unknown)) ? purchase("T-8") : turned;
  for (const [tool, args] of [
    ["track_event", same],
    ["track_events", { events: [purchase("T-7"), same] }],
  ] as const) {
    const held = await client.callTool(tool, args);
    expect(held.isError).toBe(true);
    expect(textOf(held)).toContain("an identical event was sent less than 10 minutes ago, and the result is unknown");
    expect(textOf(held)).toContain(String(first.structuredContent?.runId));
  }
  expect(await seen()).toBe(recorded);
  const sent = await client.callTool("track_event", { ...same, onUnknown: "resend" });
  expect(sent.structuredContent).toMatchObject({ counts: { succeeded: 1 } });
  expect(await seen()).toBe(recorded + 1);
});
