import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, call } from "../support/clients.ts";
import { COMMAND, cleanEnvironment, OPENING, startCommand, toolCall } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

test("a run of events goes on after its call, and the run tools find it beside the others", async () => {
  const sandbox = await startService();
  const env = cleanEnvironment({
    ...sandbox.live,
    TARGETING_MCP_WAIT_MS: "300",
  });
  const release = await sandbox.hold("trackEvent");
  const client = await CLIENTS["2025 client"]({ args: [COMMAND], env });
  const events = Array.from({ length: 20 }, (_, number) => ({ uid: `user-${number}`, eventName: "app_open" }));
  const running = await call(client, "track_events", { events });
  expect(running.status).toBe("running");
  await release();
  const look = () => call(client, "get_run", { runId: running.runId, waitMs: 10_000 });
  await expect.poll(async () => (await look()).status).toBe("succeeded");
  const done = await look();
  expect(done).toMatchObject({ status: "succeeded", counts: { items: 20, succeeded: 20 } });
  await client.callTool("create_targetings", { items: [{ name: "Spring" }] });
  const { runs } = await call(client, "get_run");
  expect(runs.map(({ tool }) => tool)).toEqual(["create_targetings", "track_events"]);
});

test("events come from a file too, and a row that is none is refused at its place", async () => {
  const sandbox = await startService();
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-files-"));
  await writeFile(
    join(folder, "events.csv"),
    "uid,eventName,item_id,price,quantity\nu1,app_open,,,\nu2,add_to_cart,sku-1,free,2\nu3,add_to_cart,sku-1,,2\n",
  );
  const env = cleanEnvironment({
    EVENT_API_URL: sandbox.url,
    EVENT_APP_KEY: "sandbox-app-key",
    TARGETING_MCP_ALLOWED_DIRS: folder,
  });
  const client = await CLIENTS["2026 client, modern"]({ args: [COMMAND], env });
  const result = await call(client, "track_events", { file: join(folder, "events.csv") });
  expect(result).toMatchObject({
    status: "partial",
    counts: { items: 3, succeeded: 2, failed: 1 },
  });
  const lines = (await client.readResource(`targeting://runs/${result.runId}/results`)).trim().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { index: 0, line: 2, outcome: "succeeded" },
    { index: 1, line: 3, outcome: "succeeded", predicted: "uncertain", rule: "wrongType price" },
    { index: 2, line: 4, outcome: "failed", predicted: "ignored", rule: "requiredMissing price" },
  ]);
  expect(lines[0]).not.toContain("predicted");
  const both = await client.callTool("track_events", { file: "x.csv", events: [] });
  expect(both.isError).toBe(true);
});

test("after kill -9 the same call goes on, sends nothing twice, and keeps no user that is settled", async () => {
  const sandbox = await startService();
  const env = cleanEnvironment({ EVENT_API_URL: sandbox.url, EVENT_APP_KEY: "sandbox-app-key" });
  const events = Array.from({ length: 5000 }, (_, number) => ({ uid: `person-${number}`, eventName: "app_open" }));
  const release = await sandbox.hold("trackEvent", { nth: 900 });
  const killed = startCommand([], env);
  for (const message of [...OPENING, toolCall("track", "track_events", { events })]) killed.send(message);
  await expect.poll(() => sandbox.events().length).toBeGreaterThan(700);
  killed.child.kill("SIGKILL");
  await killed.exited;
  await release();

  const client = await CLIENTS["2025 client"]({ args: [COMMAND], env });
  const { runs } = await call(client, "get_run");
  expect(runs).toMatchObject([{ tool: "track_events", status: "interrupted" }]);
  const { unknown = 0, pending = 0 } = z
    .looseObject({ counts: z.record(z.string(), z.number()) })
    .parse(runs[0]).counts;
  const state = env.TARGETING_MCP_STATE_DIR ?? "";
  expect(await peopleIn(state)).toBe(pending + unknown);

  const again = await call(client, "track_events", { events });
  expect(again).toMatchObject({
    runId: runs[0]?.runId,
    status: "partial",
    counts: { items: 5000, succeeded: 5000 - unknown, unknown, pending: 0 },
  });
  expect(again.text).toContain("made before and had not finished");
  const arrived = sandbox.events().map(({ uid }) => uid);
  expect(new Set(arrived).size).toBe(arrived.length);
  expect(arrived.length).toBeGreaterThanOrEqual(5000 - unknown);
  expect(await peopleIn(state)).toBe(unknown);
});

/** Returns for how many people the files of a folder contain the identifier as it was sent. */
async function peopleIn(folder: string): Promise<number> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  const texts = files.filter((one) => one.isFile()).map((one) => readFile(join(one.parentPath, one.name), "utf8"));
  return new Set((await Promise.all(texts)).flatMap((text) => text.match(/person-\d+/g) ?? [])).size;
}
