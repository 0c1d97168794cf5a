import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CLIENTS, textOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

/** How much one caller may store in these tests, in bytes, and how much logs and indexes may need in addition. */
const SHARE_BYTES = 1_048_576;
const SLACK_BYTES = 300_000;

async function service(more: Record<string, string> = {}) {
  const sandbox = await startService();
  const env = cleanEnvironment({
    TARGETING_MCP_SANDBOX_URL: sandbox.url,
    TARGETING_MCP_LOG_LEVEL: "silent",
    TARGETING_MCP_CALLER_MB: "1",
    ...more,
  });
  const targetingId = await sandbox.targeting("Shoes");
  const client = await CLIENTS["2025 client"]({ args: [COMMAND], env });
  const call = async (name: string, args: Record<string, unknown>) => textOf(await client.callTool(name, args));
  return { call, stateDir: env.TARGETING_MCP_STATE_DIR ?? "", targetingId };
}

/** Returns the total size of all files in a folder. */
async function bytesBelow(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true });
  const sizes = await Promise.all(names.map(async (name) => stat(join(folder, name))));
  return sizes.reduce((sum, one) => sum + (one.isFile() ? one.size : 0), 0);
}

/** Creates a desired state of about 300 KB, a different one for each seed. */
function desired(seed: number) {
  const contexts = Array.from({ length: 100 }, (_, at) => `article-${seed}-${at}-${"x".repeat(40)}`);
  return { version: 1, options: Array.from({ length: 50 }, (_, at) => ({ name: `Option ${seed} ${at}`, contexts })) };
}

test("a caller who may only read does not fill the disk with plans", async () => {
  const { call, stateDir, targetingId } = await service({ TARGETING_MCP_READ_ONLY: "on" });
  const answers: string[] = [];
  for (let seed = 0; seed < 6; seed += 1) {
    answers.push(await call("plan_targeting", { targetingId, desired: desired(seed) }));
  }
  const refused = answers.filter((text) => text.includes("share of the store is full"));
  expect(answers[0]).not.toContain("share of the store");
  expect(refused.length).toBeGreaterThan(2);
  expect(refused[0]).toContain("may take 1 MB");
  expect(refused[0]).toContain("TARGETING_MCP_CALLER_MB");
  expect(await bytesBelow(stateDir)).toBeLessThan(SHARE_BYTES + SLACK_BYTES);
  // The refused plans are not stored as runs. The plans before them are still stored.
  const listed = await call("get_run", { status: "planned" });
  expect(listed.match(/plan_targeting/g)?.length).toBe(answers.length - refused.length);
});

test("plans that are cancelled do not stay for ever either", async () => {
  const { call, stateDir, targetingId } = await service({ TARGETING_MCP_READ_ONLY: "on" });
  for (let seed = 0; seed < 8; seed += 1) {
    const planned = await call("plan_targeting", { targetingId, desired: desired(seed) });
    const [runId] =
      /run (01[0-9A-Z]{24})/.exec(planned) ?? /(01[0-9A-Z]{24})/.exec(planned.replaceAll(targetingId ?? "", "")) ?? [];
    await call("cancel_run", { runId });
  }
  await expect.poll(() => bytesBelow(stateDir)).toBeLessThan(SHARE_BYTES + SLACK_BYTES);
  expect(await call("plan_targeting", { targetingId, desired: desired(9) })).not.toContain("share of the store");
});

test("a write that is refused for its share sends nothing, and a small one goes on", async () => {
  const { call, targetingId } = await service();
  const items = Array.from({ length: 400 }, (_, at) => ({
    name: `Option ${at}`,
    contexts: Array.from({ length: 20 }, (_, nth) => `article-${at}-${nth}-${"x".repeat(150)}`),
  }));
  expect(await call("bulk_add_options", { targetingId, items })).toContain("Nothing was sent");
  expect(await call("list_options", { targetingId })).not.toContain("Option 1");
  expect(await call("get_run", {})).not.toContain("bulk_add_options");
  expect(await call("bulk_add_options", { targetingId, items: items.slice(0, 3) })).toContain("Created 3 options");
});

test("events that are refused for their share are not sent", async () => {
  const { call } = await service();
  const events = Array.from({ length: 4000 }, (_, at) => ({
    uid: `user-${at}`,
    eventName: "page_view",
    page_id: "p".repeat(300),
  }));
  expect(await call("track_events", { events })).toContain("share of the store is full");
  expect(await call("inspect_events", {})).not.toContain("page_view");
});
