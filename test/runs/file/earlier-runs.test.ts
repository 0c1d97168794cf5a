import { mkdtemp, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sourceOfEvents } from "../../../src/events/run/source.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { fileBackend } from "../../../src/runs/files/backend.ts";
import { runsIn } from "../../../src/runs/files/run-folder.ts";
import { ulidSource } from "../../../src/spec/ulid.ts";
import { sentEvents } from "../../support/sent-events.ts";

const newRunId = ulidSource(Date.now, Math.random);

function sending(stateDir: string, track = async () => ({ statusCode: 200, message: "ok" })) {
  const { runs: store } = fileBackend({ stateDir, clock: systemClock, keep: { days: 30, runs: 500 } });
  return sentEvents({
    ...{ api: { track }, store, clock: systemClock, newRunId, project: "project", environment: "sandbox" },
    ...{ retryBudgetMs: 1000, words: ({ code }) => code },
  });
}

function planned(uid: string) {
  const events = [{ uid, eventName: "app_open" }];
  return { source: sourceOfEvents(events), items: 1, onUnknown: "report" } as const;
}

async function listed(runs: ReturnType<typeof sending>): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { runId } of runs.list("me")) ids.push(runId);
  return ids;
}

test("runs of events that a version before kept in their own folder are found, listed, resumed and stay there", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const before = sending(stateDir);
  const done = before.start(planned("done"), "me");
  await done.rest;
  const cut = before.start(planned("cut"), "me");
  cut.stop("interrupted");
  await cut.rest;
  expect(cut.status()).toBe("interrupted");
  // As the version before left it: in another folder, with headers that name no kind.
  await rename(join(stateDir, "runs"), join(stateDir, "event-runs"));
  for (const runId of await runsIn(join(stateDir, "event-runs"))) {
    const file = join(stateDir, "event-runs", runId, "run.json");
    const { kind, ...header } = JSON.parse(await readFile(file, "utf8"));
    expect(kind).toBe("events");
    await writeFile(file, JSON.stringify(header));
  }

  const after = sending(stateDir);
  const fresh = after.start(planned("fresh"), "me");
  await fresh.rest;
  const [doneId, cutId, freshId] = [done, cut, fresh].map(({ header }) => header.runId);
  expect(await listed(after)).toEqual([freshId, cutId, doneId]);
  expect((await after.find(String(doneId)))?.status()).toBe("succeeded");
  const { going } = await after.findEarlierRun(planned("cut"), "me");
  expect(going?.header.runId).toBe(cutId);
  await going?.rest;
  expect(going?.status()).toBe("succeeded");
  expect(await runsIn(join(stateDir, "event-runs"))).toEqual([cutId, doneId]);
  expect(await runsIn(join(stateDir, "runs"))).toEqual([freshId]);
  expect(await readdir(join(stateDir, "event-runs", String(cutId)))).toContain("record.4.json");
});
