import { randomUUID } from "node:crypto";
import { mkdtemp, readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { fileBackend } from "../../src/runs/files/backend.ts";
import { memoryBackend } from "../support/memory-store.ts";
import { backendContract } from "./backend-contract.ts";

backendContract("in memory", async () => {
  const backend = memoryBackend();
  return [backend, backend];
});

backendContract("in files", async (clock = systemClock) => {
  const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const keep = { days: 30, runs: 500 };
  return [fileBackend({ stateDir, clock, keep }), fileBackend({ stateDir, clock: systemClock, keep })];
});

test("in files: the end of a session is forgotten a month after its tokens have expired", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { endedSessions } = fileBackend({ stateDir, clock: systemClock, keep: { days: 30, runs: 500 } });
  await endedSessions.add("session-1", Date.now() - 31 * 86_400_000);
  await endedSessions.add("session-2", Date.now());
  expect(await readdir(join(stateDir, "ended-sessions"))).toEqual(["session-2"]);
});

test("in files: the end of a session that another process is just storing stays", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { endedSessions } = fileBackend({ stateDir, clock: systemClock, keep: { days: 30, runs: 500 } });
  await endedSessions.add("session-1", Date.now());
  const fresh = `${randomUUID()}.new`;
  await writeFile(join(stateDir, "ended-sessions", fresh), "");
  await endedSessions.add("session-2", Date.now());
  expect(await readdir(join(stateDir, "ended-sessions"))).toContain(fresh);
});
