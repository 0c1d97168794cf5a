import { expect, test } from "vitest";
import { CLIENTS, callsOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

test("a name that is only temporary is told until it is settled, with how to settle it", async () => {
  const service = await startService();
  const env = cleanEnvironment({ ...service.live, TARGETING_MCP_LOG_LEVEL: "error" });
  const call = callsOf(await CLIENTS["2025 client"]({ args: [COMMAND], env }));
  const made = await call("create_targetings", { items: [{ name: "Red" }, { name: "Blue" }] });
  const [red = "", blue = ""] = made.results.map(({ _id }) => _id);
  // The service first refuses both renames, because each name is in use. Then one targeting gets a temporary name. The
  // third request fails, because the service refuses the key.
  await service.control("POST", "/faults", {
    faults: [{ kind: "status", status: 401, on: "renameTargetings", nth: 3 }],
  });
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
