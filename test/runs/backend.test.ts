import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/platform/clock.ts";
import { fileBackend } from "../../src/runs/files/backend.ts";
import { fileRunStore } from "../../src/runs/files/run-store.ts";
import { memoryBackend } from "../support/memory-store.ts";
import { backendContract } from "./backend-contract.ts";

backendContract("in memory", async () => {
  const backend = memoryBackend();
  return [backend, backend];
});

backendContract("in files", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const open = () => fileBackend({ stateDir, clock: systemClock, keep: { days: 30, runs: 500 } });
  return [open(), open()];
});

backendContract("in files, beside a run that a version before kept elsewhere", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const open = () => fileBackend({ stateDir, clock: systemClock, keep: { days: 30, runs: 500 } });
  await fileRunStore(join(stateDir, "event-runs"), systemClock).create({
    ...{ runId: "01ARZ3NDEKTSV4RRFFQ69G5FAV", call: {}, project: "project", caller: "earlier" },
    ...{ environment: "sandbox", createdAt: 1, fingerprint: "earlier" },
  });
  return [open(), open()];
});
