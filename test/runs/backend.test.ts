import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/platform/clock.ts";
import { fileBackend } from "../../src/runs/files/backend.ts";
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
