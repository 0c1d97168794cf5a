import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { AmbiguousError, RejectedError } from "../../src/api/errors.ts";
import type { EventAnswer } from "../../src/api/events.ts";
import { fileRunStore } from "../../src/bulk/file-store.ts";
import { countsOf, failureGroups } from "../../src/bulk/report.ts";
import { EVENT_FORM } from "../../src/events/event-form.ts";
import { type EventRun, EventRuns, type PlannedEvents } from "../../src/events/event-runs.ts";
import { sourceOfEvents } from "../../src/events/event-source.ts";
import { ulidSource } from "../../src/spec/ulid.ts";
import { virtualClock } from "./virtual-clock.ts";

const OK: EventAnswer = { statusCode: 200, message: "ok" };
const operation = "trackEvent" as const;

function callOf(count: number, onUnknown: PlannedEvents["onUnknown"] = "report"): PlannedEvents {
  const events = Array.from({ length: count }, (_, n) => ({ uid: `user-${n % 5}`, eventName: "app_open", n }));
  return { source: sourceOfEvents(events), items: count, onUnknown };
}

/** Whether the identifier of any user stands in any file of a folder. */
async function holdsUid(folder: string): Promise<boolean> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  const texts = files.filter((one) => one.isFile()).map((one) => readFile(join(one.parentPath, one.name), "utf8"));
  return (await Promise.all(texts)).some((text) => text.includes("user-"));
}

const newRunId = ulidSource(() => 1_700_000_000_000, Math.random);

async function newFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), "targeting-mcp-"));
}

function runsIn(folder: string, track: (body: string) => Promise<EventAnswer>): EventRuns {
  const clock = virtualClock();
  return new EventRuns({
    api: { track },
    store: fileRunStore(folder, clock.now, EVENT_FORM),
    clock,
    newRunId,
    project: "project",
    environment: "sandbox",
    retryBudgetMs: 1000,
    words: ({ code }) => code,
  });
}

/** A copy of the folder without the lease, which a dead process does not hold. */
async function asACrashLeavesIt(folder: string, runId: string): Promise<string> {
  const copy = await newFolder();
  await cp(folder, copy, { recursive: true });
  for (const file of await readdir(join(copy, runId))) {
    if (file.startsWith("driver")) await rm(join(copy, runId, file));
  }
  return copy;
}

async function all<T>(entries: AsyncIterable<T>): Promise<readonly T[]> {
  const list: T[] = [];
  for await (const entry of entries) list.push(entry);
  return list;
}

async function rested(run: EventRun | undefined) {
  await run?.rest;
  return { status: run?.status(), counts: run && countsOf(run.state) };
}

describe("a run of events", () => {
  it("is found and listed by a later process, as it ended", async () => {
    const folder = await newFolder();
    const run = runsIn(folder, async () => OK).start(callOf(250), "me");
    expect(run.status()).toBe("running");
    expect(await rested(run)).toMatchObject({ status: "succeeded", counts: { items: 250, succeeded: 250 } });
    const later = runsIn(folder, async () => OK);
    const found = await later.find(run.header.runId);
    expect(found?.status()).toBe("succeeded");
    expect(found?.state.objects[3]).toMatchObject({
      index: 3,
      name: "app_open",
      uid: expect.stringMatching(/^\w{64}$/),
    });
    expect(await holdsUid(folder)).toBe(false);
    const listed = await all(later.list("me"));
    expect(listed).toMatchObject([{ runId: run.header.runId, tool: "track_events", status: "succeeded", open: false }]);
    expect(await all(later.list("somebody else"))).toEqual([]);
  });

  it("after a crash says unknown of what had left unanswered, and resume sends the rest once", async () => {
    const folder = await newFolder();
    const sent: number[] = [];
    let answerAll = () => {};
    const answered = new Promise<void>((resolve) => {
      answerAll = resolve;
    });
    const dying = runsIn(folder, async (body) => {
      sent.push(JSON.parse(body).n);
      if (sent.length > 30) await answered;
      return OK;
    });
    const { runId } = dying.start(callOf(1500), "me").header;
    while (sent.length < 35) await setImmediate();
    const later = runsIn(await asACrashLeavesIt(folder, runId), async (body) => {
      sent.push(JSON.parse(body).n);
      return OK;
    });
    const found = await later.find(runId);
    expect(found?.status()).toBe("interrupted");
    const { unknown = 0, succeeded = 0, pending = 0 } = found === undefined ? {} : countsOf(found.state);
    expect(unknown).toBeGreaterThanOrEqual(5);
    expect(unknown + succeeded + pending).toBe(1500);
    expect(await rested(await later.resume(runId))).toMatchObject({
      status: "partial",
      counts: { unknown, succeeded: 1500 - unknown, pending: 0 },
    });
    expect(new Set(sent).size).toBe(sent.length);
    const ended = dying.stopAll();
    answerAll();
    await ended;
  });

  it("stops when told, and goes on from there, with nothing sent twice", async () => {
    const folder = await newFolder();
    const sent: number[] = [];
    const runs = runsIn(folder, async (body) => {
      sent.push(JSON.parse(body).n);
      if (sent.length === 40) await Promise.resolve().then(() => run.stop("cancelled"));
      return OK;
    });
    const run = runs.start(callOf(300), "me");
    const { status, counts } = await rested(run);
    expect(status).toBe("cancelled");
    expect(counts).toMatchObject({ succeeded: sent.length, unattempted: 300 - sent.length, pending: 0 });
    expect(failureGroups(run.state)).toMatchObject([{ outcome: "unattempted", reason: { code: "CANCELLED" } }]);
    const resumed = await runsIn(folder, async (body) => {
      sent.push(JSON.parse(body).n);
      return OK;
    }).resume(run.header.runId);
    expect(await rested(resumed)).toMatchObject({ status: "succeeded", counts: { succeeded: 300 } });
    expect([...sent].sort((one, other) => one - other)).toEqual(Array.from({ length: 300 }, (_, n) => n));
  });

  it("resumes what is unknown only where the call says so", async () => {
    const lose = (): Promise<EventAnswer> => Promise.reject(new AmbiguousError({ operation, reason: "reset" }));
    const resumedWith = async (onUnknown: "report" | "resend") => {
      const folder = await newFolder();
      const run = runsIn(folder, lose).start(callOf(3, onUnknown), "me");
      expect(await rested(run)).toMatchObject({ status: "unknown", counts: { unknown: 3 } });
      return rested(await runsIn(folder, async () => OK).resume(run.header.runId));
    };
    expect(await resumedWith("report")).toMatchObject({ status: "unknown", counts: { unknown: 3 } });
    expect(await resumedWith("resend")).toMatchObject({ status: "succeeded", counts: { succeeded: 3 } });
  });

  it("ends where no event can be sent, and says why", async () => {
    const refuse = (): Promise<EventAnswer> =>
      Promise.reject(new RejectedError({ operation, kind: "unauthorized", statusCode: 401, route: "POST /event" }));
    const run = runsIn(await newFolder(), refuse).start(callOf(500), "me");
    expect((await rested(run)).status).toBe("failed");
    expect(failureGroups(run.state)[0]).toMatchObject({
      reason: { code: "EVENTS_ENDED", detail: { kind: "unauthorized" } },
    });
  });

  it("sends nothing that is not journalled", async () => {
    let sent = 0;
    const run = runsIn("/dev/null/nowhere", async () => {
      sent += 1;
      return OK;
    }).start(callOf(5), "me");
    expect(await rested(run)).toMatchObject({ status: "interrupted", counts: { unattempted: 5 } });
    expect(sent).toBe(0);
  });
});
