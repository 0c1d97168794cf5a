import { appendFile, cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import iconv from "iconv-lite";
import { describe, expect, it } from "vitest";
import { messageFor } from "../../src/answers/failures.ts";
import { AmbiguousError, BusyError, NotSentError, RejectedError } from "../../src/api/errors.ts";
import type { EventAnswer } from "../../src/api/events.ts";
import type { EventRun, PlannedEvents } from "../../src/events/run/event-runs.ts";
import { EventRunState } from "../../src/events/run/run-state.ts";
import { sourceOfEvents, sourceOfFile } from "../../src/events/run/source.ts";
import { hasCode } from "../../src/platform/files.ts";
import { type ByteSource, digestOf } from "../../src/platform/held-folder.ts";
import { fileRunStore } from "../../src/runs/files/run-store.ts";
import { countsOf, failureGroups } from "../../src/runs/report.ts";
import type { RunStore } from "../../src/runs/store.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import { sentEvents } from "../support/sent-events.ts";
import { virtualClock } from "./virtual-clock.ts";

const OK: EventAnswer = { statusCode: 200, message: "ok" };
const operation = "trackEvent" as const;

function callOf(count: number, onUnknown: PlannedEvents["onUnknown"] = "report"): PlannedEvents {
  const events = Array.from({ length: count }, (_, n) => ({ uid: `user-${n % 5}`, eventName: "app_open", n }));
  return { source: sourceOfEvents(events), items: count, onUnknown };
}

/** Returns events of different users. */
function distinct(count: number): PlannedEvents {
  const events = Array.from({ length: count }, (_, n) => ({ uid: `user-${n}`, eventName: "app_open" }));
  return { source: sourceOfEvents(events), items: count, onUnknown: "report" };
}

/** Returns for how many users the files of a folder contain the identifier as it was sent. */
async function uidsIn(folder: string): Promise<number> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = files.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  const texts = paths.map(textOrGone);
  return new Set((await Promise.all(texts)).flatMap((text) => text.match(/user-\d+/g) ?? [])).size;
}

/** Returns the text of a file; "" if the file was renamed or removed since the folder was read. */
async function textOrGone(path: string): Promise<string> {
  return readFile(path, "utf8").catch((error: unknown) => {
    if (hasCode(error, "ENOENT")) return "";
    throw error;
  });
}

async function pieces(bytes: ByteSource): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes()) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

const newRunId = ulidSource(() => 1_700_000_000_000, Math.random);

async function newFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), "targeting-mcp-"));
}

type Track = (body: string) => Promise<EventAnswer>;

function runsIn(folder: string, track: Track) {
  return runsOver(fileRunStore(folder, virtualClock()), track);
}

function runsOver(store: RunStore, track: Track, clock = virtualClock()) {
  return sentEvents({
    api: { track },
    store,
    clock,
    newRunId,
    project: "project",
    environment: "sandbox",
    retryBudgetMs: 1000,
    words: ({ code }) => code,
  });
}

/** Returns the text of a run's journal. */
async function journalOf(folder: string, runId: string): Promise<string> {
  return readFile(join(folder, runId, "journal.ndjson"), "utf8");
}

/** Copies the folder without the lease, because a dead process holds none. */
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
    expect(await uidsIn(folder)).toBe(0);
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
    const resumed = await later.resume(runId);
    expect(await rested(resumed)).toMatchObject({
      status: "partial",
      counts: { unknown, succeeded: 1500 - unknown, pending: 0 },
    });
    const [lost] = resumed === undefined ? [] : failureGroups(resumed.state);
    expect(lost).toMatchObject({ outcome: "unknown", reason: { detail: { effect: "ended" } } });
    expect(lost && messageFor(lost.reason).message).toMatch(/it may or may not have been sent and recorded$/);
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
    expect(counts).toMatchObject({ succeeded: sent.length, notApplied: 300 - sent.length, pending: 0 });
    expect(failureGroups(run.state)).toMatchObject([{ outcome: "notApplied", reason: { code: "CANCELLED" } }]);
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
      const { sent, resent } = run.state.requests;
      const resumed = await runsIn(folder, async () => OK).resume(run.header.runId);
      const ended = await rested(resumed);
      const requests = resumed?.state.requests;
      return { ...ended, sentMore: (requests?.sent ?? 0) - sent, resentMore: (requests?.resent ?? 0) - resent };
    };
    expect(await resumedWith("report")).toMatchObject({ status: "unknown", counts: { unknown: 3 }, sentMore: 0 });
    expect(await resumedWith("resend")).toMatchObject({
      ...{ status: "succeeded", counts: { succeeded: 3 } },
      ...{ sentMore: 3, resentMore: 3 },
    });
  });

  it("counts as sent again what an earlier process had begun to send, and nothing else", async () => {
    const folder = await newFolder();
    const clock = virtualClock();
    const store = fileRunStore(folder, clock);
    const busy = new BusyError({ operation, statusCode: 429, retryAfterMs: 10 });
    const run = runsOver(store, () => Promise.reject(busy), clock).start(callOf(30), "me");
    expect(await rested(run)).toMatchObject({ status: "failed", counts: { notApplied: 30 } });
    const { sent, resent } = run.state.requests;
    const tried = sent - resent;
    expect(tried).toBeGreaterThan(0);
    expect(tried).toBeLessThan(30);
    const later = runsOver(store, async () => OK, clock);
    await rested(await later.resume(run.header.runId));
    const again = await runsOver(store, async () => OK, clock).find(run.header.runId);
    expect(again?.state.requests).toMatchObject({ sent: sent + 30, resent: resent + tried });
  });

  it("sends all events anew where the run of the same call has ended, and names that run", async () => {
    const loseOne = (body: string): Promise<EventAnswer> =>
      JSON.parse(body).n === 1
        ? Promise.reject(new AmbiguousError({ operation, reason: "reset" }))
        : Promise.resolve(OK);
    const folder = await newFolder();
    const run = runsIn(folder, loseOne).start(callOf(3, "resend"), "me");
    expect(await rested(run)).toMatchObject({ status: "partial", counts: { succeeded: 2, unknown: 1 } });
    const later = runsIn(folder, async () => OK);
    expect(await later.findEarlierRun(callOf(3, "resend"), "me")).toEqual({
      ended: { runId: run.header.runId, status: "partial", open: true },
    });
    expect(later.isDriving).toBe(false);
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
    expect(await rested(run)).toMatchObject({ status: "interrupted", counts: { notApplied: 5 } });
    expect(sent).toBe(0);
  });

  it("keeps after a crash only the users of events that may still be sent or are unknown, once anybody looks", async () => {
    const folder = await newFolder();
    let answered = 0;
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const dying = runsIn(folder, async () => {
      answered += 1;
      if (answered > 400) await held;
      return OK;
    });
    const { runId } = dying.start(distinct(1500), "me").header;
    while (answered < 410) await setImmediate();
    const left = await asACrashLeavesIt(folder, runId);
    expect(await uidsIn(left)).toBe(1500);
    const later = runsIn(left, async () => OK);
    const [listed] = await all(later.list("me"));
    expect(listed).toMatchObject({ status: "interrupted", open: true });
    const { pending = 0, succeeded = 0, unknown = 0 } = listed?.counts ?? {};
    expect(succeeded).toBeGreaterThan(0);
    expect(unknown).toBeLessThanOrEqual(400);
    expect(pending + succeeded + unknown).toBe(1500);
    expect(await uidsIn(left)).toBe(pending + unknown);
    expect((await rested(await later.resume(runId))).counts).toMatchObject({ succeeded: 1500 - unknown, unknown });
    expect(await uidsIn(left)).toBe(unknown);
    const ended = dying.stopAll();
    release();
    await ended;
  });

  it("takes the same call up again after an interruption, and sends nothing twice", async () => {
    const folder = await newFolder();
    const sent: number[] = [];
    const first = runsIn(folder, async (body) => {
      sent.push(JSON.parse(body).n);
      if (sent.length === 40) await Promise.resolve().then(() => run.stop("interrupted"));
      return OK;
    });
    const run = first.start(callOf(300), "me");
    expect((await rested(run)).status).toBe("interrupted");
    const later = runsIn(folder, async (body) => {
      sent.push(JSON.parse(body).n);
      return OK;
    });
    expect(await later.findEarlierRun(callOf(300), "somebody else")).toEqual({});
    expect(await later.findEarlierRun(callOf(299), "me")).toEqual({});
    const { going: again } = await later.findEarlierRun(callOf(300), "me");
    expect(again?.header.runId).toBe(run.header.runId);
    expect(await rested(again)).toMatchObject({ status: "succeeded", counts: { succeeded: 300 } });
    expect(new Set(sent).size).toBe(sent.length);
    expect(await later.findEarlierRun(callOf(300), "me")).toEqual({});
  });

  it("takes a cancelled call up again only within the hour", async () => {
    const folder = await newFolder();
    const clock = virtualClock();
    const store = fileRunStore(folder, clock);
    const runs = runsOver(store, async () => OK, clock);
    const run = runs.start(callOf(300), "me");
    run.stop("cancelled");
    expect((await rested(run)).status).toBe("cancelled");
    await clock.sleep(3_600_000);
    expect(await runs.findEarlierRun(callOf(300), "me")).toEqual({});
    const second = runs.start(callOf(300), "me");
    second.stop("cancelled");
    await second.rest;
    await clock.sleep(3_500_000);
    const { going: again } = await runs.findEarlierRun(callOf(300), "me");
    expect(again?.header.runId).toBe(second.header.runId);
    expect(await rested(again)).toMatchObject({ status: "succeeded" });
  });

  it("says of what it sends again that it may be doubled, and never that it was not attempted", async () => {
    const lose = (): Promise<EventAnswer> => Promise.reject(new AmbiguousError({ operation, reason: "reset" }));
    const folder = await newFolder();
    const run = runsIn(folder, lose).start(callOf(3, "resend"), "me");
    expect(await rested(run)).toMatchObject({ counts: { unknown: 3 } });
    const refuse = (): Promise<EventAnswer> =>
      Promise.reject(new NotSentError({ operation, reason: "connection refused" }));
    const unreachable = await runsIn(folder, refuse).resume(run.header.runId);
    expect(await rested(unreachable)).toMatchObject({ status: "unknown", counts: { unknown: 3, notApplied: 0 } });
    const resumed = await runsIn(folder, async () => OK).resume(run.header.runId);
    expect(await rested(resumed)).toMatchObject({ status: "succeeded", counts: { succeeded: 3 } });
    expect(resumed?.state.maybeTwice).toHaveLength(3);
  });

  it("sends again what a later call asked for, also where the process of that call died before it left", async () => {
    const lose = (): Promise<EventAnswer> => Promise.reject(new AmbiguousError({ operation, reason: "reset" }));
    const folder = await newFolder();
    const planned = callOf(2);
    const run = runsIn(folder, lose).start(planned, "me");
    const { runId } = run.header;
    expect(await rested(run)).toMatchObject({ status: "unknown", counts: { unknown: 2 } });
    // What the repeated call stores: the events again, and in the journal that they are sent again.
    await writeFile(join(folder, runId, "input"), await pieces(planned.source.bytes));
    await appendFile(join(folder, runId, "journal.ndjson"), '{"t":"resume","resend":true,"at":1}\n');
    const found = await runsIn(folder, async () => OK).find(runId);
    expect(await rested(found)).toMatchObject({ status: "interrupted", counts: { pending: 2 } });
    const resumed = await runsIn(folder, async () => OK).resume(runId);
    expect(await rested(resumed)).toMatchObject({ status: "succeeded", counts: { succeeded: 2 } });
    expect(resumed?.state.maybeTwice).toHaveLength(2);
    expect(await uidsIn(folder)).toBe(0);
  });

  it.each([
    ["a journal of zeros", "journal.ndjson", (whole: Buffer) => whole.fill(0)],
    ["a journal with zeros in the middle", "journal.ndjson", (whole: Buffer) => whole.fill(0, 40, whole.length - 20)],
    ["an invalid header", "run.json", (whole: Buffer) => whole.fill(0)],
  ] as const)("damaged (%s) is sent again only by a call with onUnknown: resend", async (_damage, file, damaged) => {
    const folder = await newFolder();
    const clock = virtualClock();
    let sent = 0;
    const runs = () =>
      runsOver(
        fileRunStore(folder, clock),
        async () => {
          sent += 1;
          return OK;
        },
        clock,
      );
    for (const tool of ["track_events", "track_event"] as const) {
      const first = runs();
      const call = { ...callOf(120), tool };
      const run = first.start(call, "me");
      await first.stopAll();
      expect((await rested(run)).status).toBe("interrupted");
      const path = join(folder, run.header.runId, file);
      await writeFile(path, damaged(await readFile(path)));
      const send = (again: PlannedEvents) =>
        tool === "track_event" ? runs().sendOne(again, "me") : runs().once(again, "me", clock.now());
      sent = 0;
      const refusal = { runId: run.header.runId, remedy: expect.stringContaining('onUnknown "resend"') };
      await expect(send(call)).rejects.toMatchObject(refusal);
      await expect(runs().runToContinue(call, "me")).rejects.toMatchObject(refusal);
      expect(sent).toBe(0);
      const resent = (await send({ ...call, onUnknown: "resend" })).run;
      expect(resent.header.runId).not.toBe(run.header.runId);
      expect(await rested(resent)).toMatchObject({ status: "succeeded" });
      // Later identical calls are not refused again, because the events were sent on purpose.
      expect(await rested((await send(call)).run)).toMatchObject({ status: "succeeded" });
      expect(sent).toBe(240);
    }
  });

  it("damaged concerns no other calls, even if results are unknown", async () => {
    const folder = await newFolder();
    const clock = virtualClock();
    const lose = (): Promise<EventAnswer> => Promise.reject(new AmbiguousError({ operation, reason: "reset" }));
    const first = { ...callOf(3), tool: "track_events" } as const;
    const run = runsOver(fileRunStore(folder, clock), lose, clock).start(first, "me");
    expect(await rested(run)).toMatchObject({ status: "unknown", counts: { unknown: 3 } });
    await writeFile(join(folder, run.header.runId, "journal.ndjson"), Buffer.alloc(400));
    const runs = runsOver(fileRunStore(folder, clock), async () => OK, clock);
    const other = { ...distinct(4), tool: "track_events" } as const;
    expect(await runs.sentWithoutResult(other, "me")).toBeUndefined();
    expect(await rested((await runs.once(other, "me", clock.now())).run)).toMatchObject({ status: "succeeded" });
  });

  it("does not hold on to a run that could not be journalled", async () => {
    const folder = await newFolder();
    const store = fileRunStore(folder, virtualClock());
    const full = { ...store, journal: () => Promise.reject(new Error("no space left on device")) };
    const failing = runsOver(full, async () => OK).start(callOf(5), "me");
    expect(await rested(failing)).toMatchObject({ status: "interrupted", counts: { notApplied: 5 } });
    expect(await store.isDriven(failing.header.runId)).toBe(false);
  });
});

describe("a run that died while it was started", () => {
  /**
   * Creates a run of ten events that was never executed, as if its process had died. `left` says which parts were
   * already stored.
   */
  async function leftBehind(left: readonly ("input" | "started" | "torn journal")[]) {
    const folder = await newFolder();
    const store = fileRunStore(folder, virtualClock());
    // A dead process does not search for other runs either.
    const dead = { journal: () => Promise.reject(new Error("dead")), list: async () => [] };
    const failing = runsOver({ ...store, ...dead }, async () => OK);
    const { runId } = failing.start(callOf(10), "me").header;
    await failing.stopAll();
    const files = await readdir(join(folder, runId));
    for (const file of files) if (file.startsWith("record.")) await rm(join(folder, runId, file));
    if (!left.includes("input")) await rm(join(folder, runId, "input"));
    if (left.includes("started")) {
      await writeFile(join(folder, runId, "record.1.json"), JSON.stringify({ version: 1, status: "running" }));
    }
    if (left.includes("torn journal")) await writeFile(join(folder, runId, "journal.ndjson"), '{"t":"begin","it');
    const sent: number[] = [];
    const runs = runsIn(folder, async (body) => {
      sent.push(JSON.parse(body).n);
      return OK;
    });
    return { folder, runId, runs, sent };
  }

  const all10 = { status: "succeeded", counts: { items: 10, succeeded: 10 } };

  it.each([
    [["input"]],
    [["input", "torn journal"]],
    [["input", "started"]],
    [["input", "started", "torn journal"]],
  ] as const)("with its events kept (%j): it is listed with what is left, and sends all of it once", async (left) => {
    const { runId, runs, sent } = await leftBehind(left);
    expect(await all(runs.list("me"))).toMatchObject([
      { runId, status: "interrupted", open: true, counts: { items: 10, pending: 10 } },
    ]);
    expect((await runs.find(runId))?.status()).toBe("interrupted");
    expect(await rested(await runs.resume(runId))).toMatchObject(all10);
    expect(sent.toSorted((one, other) => one - other)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await rested(await runs.resume(runId))).toMatchObject(all10);
    expect(sent).toHaveLength(10);
  });

  it("is taken up by the same call, too", async () => {
    const { runId, runs, sent } = await leftBehind(["input", "started"]);
    const { going } = await runs.findEarlierRun(callOf(10), "me");
    expect(going?.header.runId).toBe(runId);
    expect(await rested(going)).toMatchObject(all10);
    expect(sent).toHaveLength(10);
  });

  it("without its events: that is said, and the same call begins anew", async () => {
    const { runId, runs, sent } = await leftBehind(["started"]);
    await expect(runs.resume(runId)).rejects.toThrow(/never started.*nothing was sent/);
    await expect(runs.find(runId)).rejects.toThrow(/never started.*nothing was sent/);
    expect(await all(runs.list("me"))).toEqual([]);
    expect(await runs.findEarlierRun(callOf(10), "me")).toEqual({});
    expect(sent).toEqual([]);
  });

  it("is never removed as one that nobody started, once anybody has looked", async () => {
    const { folder, runId, runs } = await leftBehind(["input"]);
    await all(runs.list("me"));
    expect((await fileRunStore(folder, virtualClock()).record(runId))?.status).toBe("interrupted");
    expect(await pieces(runs.part(runId, "input"))).toContain("user-0");
  });

  it("is not sent again where only its journal is lost, and keeps its events", async () => {
    const lose = (): Promise<EventAnswer> => Promise.reject(new AmbiguousError({ operation, reason: "reset" }));
    const folder = await newFolder();
    const run = runsIn(folder, lose).start(callOf(3, "resend"), "me");
    expect(await rested(run)).toMatchObject({ counts: { unknown: 3 } });
    await writeFile(join(folder, run.header.runId, "journal.ndjson"), "");
    const later = runsIn(folder, async () => OK);
    await expect(later.resume(run.header.runId)).rejects.toThrow("journal of run");
    expect(await pieces(later.part(run.header.runId, "input"))).toContain("user-0");
  });

  it("says of events that were not kept whole that they cannot be sent", async () => {
    const { folder, runId, runs, sent } = await leftBehind(["input"]);
    const store = fileRunStore(folder, virtualClock());
    const begun = runsOver({ ...store, list: async () => [] }, async () => OK);
    (await begun.resume(runId))?.stop("interrupted");
    await begun.stopAll();
    const [first = ""] = (await pieces(runs.part(runId, "input"))).split("\n");
    await writeFile(join(folder, runId, "input"), `${first}\n`);
    const resumed = await runs.resume(runId);
    expect(await rested(resumed)).toMatchObject({ counts: { items: 10, succeeded: sent.length } });
    expect(sent.length).toBeLessThanOrEqual(1);
    const [group] = failureGroups(resumed?.state ?? new EventRunState());
    expect(group?.reason.detail?.error).toMatch(/9 events of run .* were not stored, so they cannot be sent/);
  });
});

describe("what became of events", () => {
  it("is on the disk 100 ms later, also while nothing else happens", async () => {
    const folder = await newFolder();
    let now = 0;
    let answered = 0;
    const sleeping: { readonly ms: number; readonly wake: () => void }[] = [];
    const clock = {
      now: () => now,
      monotonic: () => now,
      sleep: (ms: number) => new Promise<void>((wake) => void sleeping.push({ ms, wake })),
    };
    const held: (() => void)[] = [];
    const runs = runsOver(
      fileRunStore(folder, clock),
      async () => {
        answered += 1;
        if (answered > 20) await new Promise<void>((resolve) => void held.push(resolve));
        return OK;
      },
      clock,
    );
    const run = runs.start(distinct(60), "me");
    while (held.length < 16) await setImmediate();
    expect(countsOf(run.state)).toMatchObject({ succeeded: 20 });
    const [timer, ...others] = sleeping;
    expect(timer?.ms).toBeLessThan(100);
    expect(others).toEqual([]);
    now += timer?.ms ?? 0;
    timer?.wake();
    const accepted = async () => {
      const lines = (await journalOf(folder, run.header.runId)).split("\n").slice(0, -1);
      return lines.map((line) => JSON.parse(line)).flatMap(({ t, objects }) => (t === "accepted" ? objects : []));
    };
    // A part of them may already have been stored together with the announcement of later events.
    await expect.poll(accepted).toHaveLength(20);
    for (const answer of held) answer();
    answered = Number.NEGATIVE_INFINITY;
    expect((await rested(run)).status).toBe("succeeded");
  });
});

describe("a file of events", () => {
  const CSV = [
    "uid,eventName,method",
    "user-0,sign_up,mail",
    "user-1,sign_up,",
    "user-2,sign_up,전화",
    "user-3,login,",
  ];

  async function fileCall(format: "csv" | "ndjson" | "json", text: string, encoding: "utf-8" | "euc-kr") {
    const content = encoding === "euc-kr" ? iconv.encode(text, "cp949") : Buffer.from(text);
    const bytes = async function* () {
      yield content;
    };
    const file = { format, encoding, digest: await digestOf(bytes) };
    return { source: sourceOfFile({ file, bytes, size: content.length }), items: 4, onUnknown: "report" } as const;
  }

  const rows = CSV.slice(1).map((line) => {
    const [uid, eventName, method] = line.split(",");
    return { uid, eventName, ...(method && { method }) };
  });

  it.each([
    ["csv", "utf-8", `${CSV.join("\n")}\n`],
    ["csv", "euc-kr", CSV.join("\r\n")],
    ["ndjson", "utf-8", rows.map((row) => JSON.stringify(row)).join("\n")],
    ["json", "utf-8", JSON.stringify(rows, null, 2)],
  ] as const)(
    "%s in %s: the rows that failed are kept, also across an interruption",
    async (format, encoding, text) => {
      const folder = await newFolder();
      const sent: string[] = [];
      const first = runsIn(folder, async (body) => {
        sent.push(body);
        await Promise.resolve().then(() => run.stop("interrupted"));
        throw new NotSentError({ operation, reason: "connection refused" });
      });
      const run = first.start(await fileCall(format, text, encoding), "me");
      expect(await rested(run)).toMatchObject({ status: "interrupted", counts: { failed: 2, notApplied: 2 } });
      sent.length = 0;
      const later = runsIn(folder, async (body) => {
        sent.push(body);
        return OK;
      });
      expect(await rested(await later.resume(run.header.runId))).toMatchObject({ counts: { succeeded: 2, failed: 2 } });
      expect(sent.map((body) => JSON.parse(body))).toEqual([rows[0], rows[2]]);
      const rejects = (await pieces(later.part(run.header.runId, "rejects"))).trim().split(/\r?\n/);
      const failed = rejects.filter((line) => line.includes("user-"));
      expect(failed).toEqual([
        expect.stringMatching(/user-1.*EVENT_IGNORED/),
        expect.stringMatching(/user-3.*EVENT_IGNORED/),
      ]);
      // The failed rows of a sheet are kept, because the sheet is returned with them.
      const kept = await pieces(later.part(run.header.runId, "input"));
      expect(kept.match(/user-\d/g)).toEqual(format === "csv" ? ["user-1", "user-3"] : null);
      expect((await later.find(run.header.runId))?.state.objects[3]).toMatchObject({ index: 3, name: "login" });
    },
  );
});
