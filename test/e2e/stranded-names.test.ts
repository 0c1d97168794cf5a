import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { startSandbox } from "../../src/sandbox/index.ts";
import { CLIENTS } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";

const answer = z.looseObject({
  runId: z.string(),
  status: z.string(),
  results: z.array(z.looseObject({ _id: z.string().optional(), name: z.string().optional() })).default([]),
  nextSteps: z.array(z.string()).default([]),
});

test("a name that is only temporary is told until it is settled, with how to settle it", async () => {
  const sandbox = await startSandbox({ lockWaitMs: 0 });
  onTestFinished(() => sandbox.close());
  const env = cleanEnvironment({
    TARGETING_API_URL: sandbox.url,
    TARGETING_API_KEY: "sandbox-key",
    TARGETING_MCP_STATE_DIR: await mkdtemp(join(tmpdir(), "targeting-mcp-")),
    TARGETING_MCP_MODE: "live",
    TARGETING_MCP_LOG_LEVEL: "error",
  });
  const client = await CLIENTS["2025 client"]({ args: [COMMAND], env });
  const call = async (name: string, args: Record<string, unknown>) => {
    const result = await client.callTool(name, args);
    return { ...answer.parse(result.structuredContent), text: JSON.stringify(result.content) };
  };
  const post = (path: string, body: unknown): Promise<unknown> =>
    fetch(sandbox.url + path, { method: "POST", body: JSON.stringify(body) });

  const made = await call("create_targetings", { items: [{ name: "Red" }, { name: "Blue" }] });
  const [red = "", blue = ""] = made.results.map(({ _id }) => _id);
  // Each is refused for the other's name; one gets a temporary name; then the key is refused.
  await post("/_sandbox/faults", { faults: [{ kind: "status", status: 401, on: "renameTargetings", nth: 3 }] });
  const items = [
    { _id: red, name: "Blue" },
    { _id: blue, name: "Red" },
  ];
  const renamed = await call("rename_targetings", { items });
  const later = await call("get_run", { runId: renamed.runId });
  for (const { nextSteps, text } of [renamed, later]) {
    const told = nextSteps.find((step) => step.includes("temporary name"));
    expect(told).toMatch(/resume_run/);
    expect(told).toContain(renamed.runId);
    expect(told).toMatch(/"tmp [0-9A-Z]{26}"/);
    expect(told).toContain(told?.includes(red) ? '"Red"' : '"Blue"');
    expect(text).toContain("temporary name");
  }

  const resumed = await call("resume_run", { runId: renamed.runId });
  expect(resumed.status).toBe("succeeded");
  expect(resumed.text).not.toContain("temporary name");
  expect((await call("get_run", { runId: renamed.runId })).text).not.toContain("temporary name");
});
