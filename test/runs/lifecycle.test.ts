import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { fileRunStore } from "../../src/runs/files/run-store.ts";
import { moveRun, transition } from "../../src/runs/store.ts";
import { ALL, MOVES, mayBe, runAt } from "./transitions.ts";

test("a run may become exactly what the design lists", () => {
  for (const from of ALL) {
    for (const to of ALL) {
      const isListed = Object.values(MOVES).some((move) => move.to === to && mayBe(move, from));
      const after = transition({ version: 4, status: from }, { status: to });
      expect({ from, to, after }).toEqual({ from, to, after: isListed ? { version: 5, status: to } : undefined });
    }
  }
});

test("what is final becomes nothing else, and what is declined or expired is final", () => {
  for (const from of ALL) {
    for (const to of ALL) {
      expect(transition({ version: 1, status: from, isFinal: true }, { status: to })).toBeUndefined();
      if (from === "declined" || from === "expired") {
        expect(transition({ version: 1, status: from }, { status: to })).toBeUndefined();
      }
    }
  }
});

test("files: each version is a file of its own, and nothing that was read late takes the place of a newer one", async () => {
  const folder = await mkdtemp(join(tmpdir(), "lifecycle-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [one, other] = [fileRunStore(folder, systemClock), fileRunStore(folder, systemClock)];
  const runId = await runAt(one, "waiting");
  const read = await other.record(runId);
  if (read === undefined) throw new Error("it was created");
  await moveRun(one, runId, () => ({ status: "running" }));
  await moveRun(one, runId, () => ({ status: "finished" }));
  const declined = transition(read, { status: "declined" });
  expect(declined && (await other.update(runId, declined))).toBe(false);
  expect(await other.record(runId)).toEqual({ version: 3, status: "finished" });
  expect((await readdir(join(folder, runId))).filter((file) => file.startsWith("record."))).toHaveLength(3);
});
