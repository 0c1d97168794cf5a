import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { startSandbox } from "../../src/sandbox/index.ts";
import { CLIENTS, textOf } from "../support/clients.ts";
import { hold } from "../support/hold.ts";
import { COMMAND, cleanEnvironment, OPENING, startCommand, toolCall } from "../support/server-process.ts";

const answer = z.looseObject({
  runId: z.string(),
  status: z.string(),
  counts: z.record(z.string(), z.number()),
});
const listed = z.looseObject({ runs: z.array(z.looseObject({ runId: z.string(), tool: z.string() })) });

test("a run of events goes on after its call, and the run tools find it beside the others", async () => {
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  const env = cleanEnvironment({
    TARGETING_API_URL: sandbox.url,
    TARGETING_API_KEY: "sandbox-key",
    EVENT_API_URL: sandbox.url,
    EVENT_APP_KEY: "sandbox-app-key",
    TARGETING_MCP_WAIT_MS: "300",
  });
  const release = await hold(sandbox.url, "trackEvent");
  const client = await CLIENTS["2025 client"]({ args: [COMMAND], env });
  const events = Array.from({ length: 20 }, (_, number) => ({ uid: `user-${number}`, eventName: "app_open" }));
  const running = answer.parse((await client.callTool("track_events", { events })).structuredContent);
  expect(running.status).toBe("running");
  await release();
  const look = async () =>
    answer.parse((await client.callTool("get_run", { runId: running.runId, waitMs: 10_000 })).structuredContent);
  await expect.poll(async () => (await look()).status).toBe("succeeded");
  const done = await look();
  expect(done).toMatchObject({ status: "succeeded", counts: { items: 20, succeeded: 20 } });
  await client.callTool("create_targetings", { items: [{ name: "Spring" }] });
  const { runs } = listed.parse((await client.callTool("get_run", {})).structuredContent);
  expect(runs.map(({ tool }) => tool)).toEqual(["create_targetings", "track_events"]);
});

test("events come from a file too, and a row that is none is refused at its place", async () => {
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-files-"));
  await writeFile(
    join(folder, "events.csv"),
    "uid,eventName,item_id,price,quantity\nu1,app_open,,,\nu2,add_to_cart,sku-1,₩10,2\nu3,add_to_cart,sku-1,,2\n",
  );
  const env = cleanEnvironment({
    EVENT_API_URL: sandbox.url,
    EVENT_APP_KEY: "sandbox-app-key",
    TARGETING_MCP_ALLOWED_DIRS: folder,
  });
  const client = await CLIENTS["2026 client, modern"]({ args: [COMMAND], env });
  const result = await client.callTool("track_events", { file: join(folder, "events.csv") });
  expect(answer.parse(result.structuredContent)).toMatchObject({
    status: "partial",
    counts: { items: 3, succeeded: 2, failed: 1 },
  });
  const { runId } = answer.parse(result.structuredContent);
  const lines = (await client.readResource(`targeting://runs/${runId}/results`)).trim().split("\n");
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
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  const env = cleanEnvironment({ EVENT_API_URL: sandbox.url, EVENT_APP_KEY: "sandbox-app-key" });
  const events = Array.from({ length: 5000 }, (_, number) => ({ uid: `person-${number}`, eventName: "app_open" }));
  const release = await hold(sandbox.url, "trackEvent", { nth: 900 });
  const killed = startCommand([], env);
  for (const message of [...OPENING, toolCall("track", "track_events", { events })]) killed.send(message);
  await expect.poll(() => sandbox.events().length).toBeGreaterThan(700);
  killed.child.kill("SIGKILL");
  await killed.exited;
  await release();

  const client = await CLIENTS["2025 client"]({ args: [COMMAND], env });
  const { runs } = listed.parse((await client.callTool("get_run", {})).structuredContent);
  expect(runs).toMatchObject([{ tool: "track_events", status: "interrupted" }]);
  const { unknown = 0, pending = 0 } = z
    .looseObject({ counts: z.record(z.string(), z.number()) })
    .parse(runs[0]).counts;
  const state = env.TARGETING_MCP_STATE_DIR ?? "";
  expect(await peopleIn(state)).toBe(pending + unknown);

  const again = await client.callTool("track_events", { events });
  expect(answer.parse(again.structuredContent)).toMatchObject({
    runId: runs[0]?.runId,
    status: "partial",
    counts: { items: 5000, succeeded: 5000 - unknown, unknown, pending: 0 },
  });
  expect(textOf(again)).toContain("made before and had not finished");
  const arrived = sandbox.events().map(({ uid }) => uid);
  expect(new Set(arrived).size).toBe(arrived.length);
  expect(arrived.length).toBeGreaterThanOrEqual(5000 - unknown);
  expect(await peopleIn(state)).toBe(unknown);
});

/** How many people stand in the files of a folder with their own identifiers. */
async function peopleIn(folder: string): Promise<number> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  const texts = files.filter((one) => one.isFile()).map((one) => readFile(join(one.parentPath, one.name), "utf8"));
  return new Set((await Promise.all(texts)).flatMap((text) => text.match(/person-\d+/g) ?? [])).size;
}
