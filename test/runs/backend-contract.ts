import { setTimeout as delay, setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import type { Backend } from "../../src/runs/backend.ts";
import { ShareFullError, withShares } from "../../src/runs/backend.ts";
import { inLines, moveRun, type RunHeader, type RunSummary, StoreUnavailableError } from "../../src/runs/store.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import { reopenRun, restRun, startRun, summaryOf, wasStarted } from "../support/records.ts";
import { transitionContract } from "./transitions.ts";

const newRunId = ulidSource(Date.now, Math.random);
/** How often a stop is requested at the moment when a request is announced. */
const STOPS = 40;
const never = new AbortController().signal;
const HOUR_MS = 3_600_000;

function headerOf(more: Partial<RunHeader> = {}): RunHeader {
  return {
    ...{ runId: newRunId(), kind: "contract", call: { tool: "some_tool", input: { ids: ["1"] } } },
    ...{ project: "project", caller: "me", environment: "sandbox", createdAt: 7, fingerprint: "same" },
    ...more,
  };
}

function summaryNow({ caller, fingerprint }: RunHeader, status: string, open: boolean): RunSummary {
  return { tool: "some_tool", caller, fingerprint, status, counts: { items: 1 }, startedAt: 7, updatedAt: 8, open };
}

async function all<T>(entries: AsyncIterable<T> | undefined): Promise<readonly T[]> {
  const list: T[] = [];
  for await (const entry of entries ?? []) list.push(entry);
  return list;
}

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  return Buffer.concat(await all(bytes)).toString("utf8");
}

async function* pieces(...texts: readonly string[]): AsyncGenerator<string> {
  yield* texts;
}

/**
 * Tests that every backend must pass. `make` creates an empty backend for two processes that share it: each finds what
 * the other has stored. `clock` is that of the first process.
 */
export function backendContract(name: string, make: (clock?: Clock) => Promise<readonly [Backend, Backend]>): void {
  transitionContract(name, make);
  describe(`${name}: a run`, () => {
    test("is read as it was created, and is started by one alone", async () => {
      const [{ runs }, { runs: others }] = await make();
      const header = headerOf();
      await runs.create(header);
      expect(await others.read(header.runId)).toMatchObject({ header, record: { version: 0, status: "planning" } });
      const started = await Promise.all([startRun(runs, header.runId), startRun(others, header.runId)]);
      expect(started.toSorted()).toEqual([false, true]);
      expect(await wasStarted(others, header.runId)).toBe(true);
      expect(await runs.read(newRunId())).toBeUndefined();
      expect(await summaryOf(runs, newRunId())).toBeUndefined();
    });

    test("has the journal that its holders wrote, in order, which can be read again and again", async () => {
      const [{ runs }, { runs: others }] = await make();
      const { runId } = await created(runs);
      for (const text of ["one", "two"]) {
        const lease = await runs.lease(runId);
        if (lease === undefined) throw new Error("nobody holds it");
        const journal = await runs.journal(runId, lease);
        journal.append([`{"t":`, Buffer.from(`"${text}"`), "}"]);
        journal.append([`{"t":"after ${text}"}`]);
        await journal.flush();
        await journal.intend(lease);
        await journal.close();
        await lease.release();
      }
      const { entries } = (await others.read(runId)) ?? {};
      const lines = ["one", "after one", "two", "after two"].map((text) => `{"t":"${text}"}`);
      expect(await all(entries)).toEqual(lines);
      expect(await all(entries)).toEqual(lines);
    });

    test("shows what it would do, and keeps parts beside its journal, of which the last one counts", async () => {
      const [{ runs }, { runs: others }] = await make();
      const { runId } = await created(runs);
      await runs.parts.keep(runId, "proposed", inLines([['{"t":"a"}'], ['{"t":', '"b"}']]));
      expect(await all((await others.read(runId))?.proposed)).toEqual(['{"t":"a"}', '{"t":"b"}']);
      expect(await textOf(others.parts.read(runId, "input")())).toBe("");
      await runs.parts.keep(runId, "input", pieces("first"));
      await runs.parts.keep(runId, "input", pieces("sec", "ond"));
      await runs.parts.keep(runId, "removed", pieces("gone"));
      expect(await textOf(others.parts.read(runId, "input")())).toBe("second");
      expect(await textOf(others.parts.read(runId, "removed")())).toBe("gone");
    });

    test("has parts that are read whole or not at all, although they are replaced meanwhile", async () => {
      const [{ runs }, { runs: others }] = await make();
      const { runId } = await created(runs);
      const large = Array.from({ length: 40 }, () => "x".repeat(100_000));
      await runs.parts.keep(runId, "input", pieces(...large));
      let read = 0;
      const readWhole = async (): Promise<void> => {
        for await (const piece of others.parts.read(runId, "input")()) {
          if (read === 0) await runs.parts.keep(runId, "input", pieces("short"));
          read += piece.length;
        }
      };
      const error = await readWhole().then(() => undefined, String);
      expect(error ?? read).toEqual(
        error === undefined ? 4_000_000 : expect.stringContaining("changed while it was read"),
      );
    });

    test("is counted with its content and what it would do, until it is discarded", async () => {
      const [{ runs }, { runs: others }] = await make();
      const { runId, fingerprint, caller } = await created(runs);
      const alone = await others.sizes.of([runId]);
      expect(alone).toBeGreaterThan(100);
      await runs.parts.keep(runId, "input", pieces("x".repeat(1000)));
      await runs.parts.keep(runId, "proposed", inLines([["y".repeat(499)]]));
      await runs.parts.keep(runId, "removed", pieces("z".repeat(1000)));
      expect((await others.sizes.of([runId])) - alone).toBe(1500);
      await others.discard(runId);
      expect(await runs.sizes.of([runId])).toBe(0);
      expect(await runs.read(runId)).toBeUndefined();
      expect(await runs.list({ caller })).not.toContain(runId);
      expect(await runs.list({ unfinished: "all" })).not.toContain(runId);
      expect(await runs.list({ lastOf: fingerprint })).not.toContain(runId);
    });

    test("over its caller's share is refused as a whole, and those of others are not", async () => {
      const [backend] = await make();
      const { runs, suites } = withShares(backend, { bytes: 2000, dryRuns: 2 });
      const [mine, more, theirs] = [headerOf(), headerOf(), headerOf({ caller: "you" })];
      await runs.create(mine);
      await runs.parts.keep(mine.runId, "input", pieces("x".repeat(1000)));
      await runs.create(more);
      await expect(runs.parts.keep(more.runId, "input", pieces("x".repeat(1000)))).rejects.toThrow(ShareFullError);
      expect(await runs.list({ caller: "me" })).toContain(mine.runId);
      expect(await runs.list({ caller: "me" })).not.toContain(more.runId);
      await runs.create(theirs);
      await runs.parts.keep(theirs.runId, "input", pieces("x".repeat(1000)));
      await expect(suites.put("me", "a1", "s".repeat(900))).rejects.toThrow(ShareFullError);
      expect(await suites.list("me")).toEqual([]);
      await suites.put("me", "a2", "s".repeat(500));
      await suites.put("me", "a2", "s".repeat(501));
      await expect(runs.parts.keep(mine.runId, "proposed", inLines([["y".repeat(800)]]))).rejects.toThrow(
        ShareFullError,
      );
      expect(await runs.list({ caller: "me" })).not.toContain(mine.runId);
    });

    test("counts towards the share of its caller, whichever keys the caller brings", async () => {
      const [backend, { suites: others }] = await make();
      const { runs, suites } = withShares(backend, { bytes: 2000, dryRuns: 2 });
      const withKeys = (at: number) => ({ caller: `keys:${at} me`, project: `project ${at}` });
      await runs.create(headerOf());
      await suites.put("keys:0 me", "a1", "s".repeat(900));
      expect(await others.storedBytes("me")).toBe(900);
      const [first, second] = [headerOf(withKeys(1)), headerOf(withKeys(2))];
      await runs.create(first);
      await runs.parts.keep(first.runId, "input", pieces("x".repeat(300)));
      await runs.create(second);
      await expect(runs.parts.keep(second.runId, "input", pieces("x".repeat(500)))).rejects.toThrow(ShareFullError);
      await expect(suites.put("keys:3 me", "a1", "s".repeat(900))).rejects.toThrow(ShareFullError);
      expect(await suites.list("keys:3 me")).toEqual([]);
      // A caller whose name ends in the same way still has its own share.
      const theirs = headerOf({ caller: "not me" });
      await runs.create(theirs);
      await runs.parts.keep(theirs.runId, "input", pieces("x".repeat(1000)));
      await suites.put("keys:1 not me", "a1", "s".repeat(300));
      expect(await runs.list({ unfinished: { callerName: "me" } })).not.toContain(theirs.runId);
      const dry = [4, 5, 6].map((at) => headerOf({ ...withKeys(at), caller: `keys:${at} dry`, dryRun: true }));
      for (const header of dry) {
        await runs.create(header);
        await moveRun(runs, header.runId, () => ({ status: "planned" }));
      }
      expect(await runs.list({ unfinished: { callerName: "dry" } })).toEqual([dry[2]?.runId, dry[1]?.runId]);
    });

    test("of a dry run replaces the oldest dry run of its caller, by number and by bytes, and nothing else", async () => {
      const [backend] = await make();
      const { runs } = withShares(backend, { bytes: 4000, dryRuns: 2 });
      const [plan, theirs] = [headerOf(), headerOf({ caller: "you", dryRun: true })];
      await runs.create(plan);
      await runs.create(theirs);
      const dry = Array.from({ length: 3 }, () => headerOf({ dryRun: true }));
      for (const header of dry) {
        await runs.create(header);
        await moveRun(runs, header.runId, () => ({ status: "planned" }));
      }
      const [first, second, third] = dry.map(({ runId }) => runId);
      expect(await runs.list({ caller: "me" })).toEqual(expect.arrayContaining([plan.runId, second, third]));
      expect(await runs.list({ caller: "me" })).not.toContain(first);
      const fourth = headerOf({ dryRun: true });
      await runs.create(fourth);
      await runs.parts.keep(fourth.runId, "input", pieces("x".repeat(2500)));
      await moveRun(runs, fourth.runId, () => ({ status: "planned" }));
      const fifth = headerOf({ dryRun: true });
      await runs.create(fifth);
      await runs.parts.keep(fifth.runId, "input", pieces("x".repeat(2500)));
      expect(await runs.list({ caller: "me" })).toEqual(expect.arrayContaining([plan.runId, fifth.runId]));
      expect(await runs.list({ caller: "me" })).not.toContain(fourth.runId);
      expect(await runs.list({ caller: "you" })).toContain(theirs.runId);
    });

    test("of a dry run that is being applied is not removed", async () => {
      const [backend] = await make();
      const { runs } = withShares(backend, { bytes: 4000, dryRuns: 1 });
      const applied = headerOf({ dryRun: true });
      await runs.create(applied);
      await moveRun(runs, applied.runId, () => ({ status: "planned" }));
      const lease = await runs.lease(applied.runId);
      await runs.create(headerOf({ dryRun: true }));
      expect(await runs.list({ caller: "me" })).toContain(applied.runId);
      await lease?.release();
    });

    test("of a dry run that could not be removed leaves it to others, who can remove or apply it", async () => {
      const [backend] = await make();
      const away = () => Promise.reject(new StoreUnavailableError("the store is away", "Try again."));
      const { runs } = withShares(backend, { bytes: 4000, dryRuns: 1 });
      const first = headerOf({ dryRun: true });
      await runs.create(first);
      await moveRun(runs, first.runId, () => ({ status: "planned" }));
      const broken = withShares({ ...backend, runs: { ...backend.runs, record: away } }, { bytes: 4000, dryRuns: 1 });
      await expect(broken.runs.create(headerOf({ dryRun: true }))).rejects.toThrow("the store is away");
      const lease = await runs.lease(first.runId);
      expect(lease).toBeDefined();
      await lease?.release();
    });

    test("of a dry run that is not planned yet is not removed", async () => {
      const [backend] = await make();
      const { runs } = withShares(backend, { bytes: 4000, dryRuns: 1 });
      const [first, second] = [headerOf({ dryRun: true }), headerOf({ dryRun: true })];
      await runs.create(first);
      await runs.create(second);
      expect(await runs.list({ caller: "me" })).toEqual(expect.arrayContaining([first.runId, second.runId]));
    });

    test("larger than a whole share is stopped while it is stored", async () => {
      const [backend] = await make();
      const { runs } = withShares(backend, { bytes: 2000, dryRuns: 2 });
      const header = headerOf();
      await runs.create(header);
      let taken = 0;
      async function* endless(): AsyncGenerator<string> {
        for (; taken < 100; taken += 1) yield "x".repeat(1000);
      }
      await expect(runs.parts.keep(header.runId, "input", endless())).rejects.toThrow(ShareFullError);
      expect(taken).toBeLessThan(5);
      expect(await runs.list({ caller: "me" })).not.toContain(header.runId);
    });

    test("has one driver at a time", async () => {
      const [{ runs }, { runs: others }] = await make();
      const { runId } = await created(runs);
      const lease = await runs.lease(runId);
      expect(lease?.isTakenOver).toBe(false);
      expect(await others.lease(runId)).toBeUndefined();
      expect(await others.isDriven(runId)).toBe(true);
      await lease?.check();
      await lease?.release();
      expect(await others.isDriven(runId)).toBe(false);
      const next = await others.lease(runId);
      expect(next).toBeDefined();
      await next?.release();
    });

    test("is planned and started by one lease, which says that it is driven before and after", async () => {
      const [{ runs }, { runs: others }] = await make();
      const { runId } = await created(runs);
      const lease = await runs.lease(runId);
      expect(await others.lease(runId)).toBeUndefined();
      expect(await others.isDriven(runId)).toBe(true);
      await startRun(runs, runId);
      expect(await others.isDriven(runId)).toBe(true);
      expect(await others.lease(runId)).toBeUndefined();
      await restRun(runs, runId, summaryNow(headerOf({ runId }), "succeeded", false));
      await lease?.release();
      expect(await others.isDriven(runId)).toBe(false);
    });

    test("is asked to stop as often as anybody asks, until that is taken back", async () => {
      const [{ runs }, { runs: others }] = await make();
      const { runId } = await created(runs);
      await others.stops.ask(runId);
      const asked = await runs.stops.asked(runId);
      expect(asked).toHaveLength(1);
      await others.stops.ask(runId);
      await runs.stops.forget(runId, asked);
      expect(await runs.stops.asked(runId)).toHaveLength(1);
    });

    test("takes no intent once somebody has asked to stop it, however closely the two follow each other", async () => {
      const [{ runs }, { runs: others }] = await make();
      for (let turn = 0; turn < STOPS; turn += 1) {
        const { runId } = await created(runs);
        const lease = await runs.lease(runId);
        if (lease === undefined) throw new Error("nobody holds it");
        const journal = await runs.journal(runId, lease);
        const asking = async () => {
          await delay((turn % 10) / 4);
          await others.stops.ask(runId);
          return all((await others.read(runId))?.entries);
        };
        const intending = async () => {
          journal.append([`{"t":"intent"}`]);
          const { stopAsked } = await journal.intend(lease);
          return stopAsked ?? (await runs.stops.asked(runId)).length > 0;
        };
        const [there, isToStop] = await Promise.all([asking(), intending()]);
        // If the driver did not see the stop, the request was announced before the stop was confirmed.
        if (!isToStop) expect(there).toEqual(['{"t":"intent"}']);
        await journal.close();
        await lease.release();
      }
    });

    test("tells its driver at once when somebody asks to stop it, where processes tell each other", async () => {
      const [{ runs }, { runs: others }] = await make();
      const [{ runId }, other] = [await created(runs), await created(runs)];
      const told: string[] = [];
      const off = runs.stops.watch?.(runId, () => told.push(runId));
      if (off === undefined) return;
      // After this, the driver is connected to the store and gets notices.
      await runs.lease(runId);
      await others.stops.ask(other.runId);
      await others.stops.ask(runId);
      await expect.poll(() => told).toEqual([runId]);
      off();
    });
  });

  describe(`${name}: runs`, () => {
    test("are listed to their caller, the newest first, and are found by their call", async () => {
      const [{ runs }, { runs: others }] = await make();
      const first = await created(runs);
      const theirs = await created(runs, { caller: "somebody else", fingerprint: "other" });
      const last = await created(others);
      expect(await runs.list({ caller: "me" })).toEqual([last.runId, first.runId]);
      expect(await runs.list({ caller: "me", before: last.runId })).toEqual([first.runId]);
      expect(await runs.list({ caller: "me", before: first.runId })).toEqual([]);
      expect(await others.list({ caller: "somebody else" })).toEqual([theirs.runId]);
      expect(await runs.list({ lastOf: "same" })).toEqual([last.runId]);
      expect(await runs.list({ lastOf: "nothing" })).toEqual([]);
      expect(await runs.list({ unfinished: { fingerprint: "same" } })).toEqual([last.runId, first.runId]);
      expect(await runs.list({ unfinished: { fingerprint: "other" } })).toEqual([theirs.runId]);
      const mine = { caller: "me", project: "project", environment: "sandbox" as const };
      expect(await runs.list({ unfinished: mine })).toEqual([last.runId, first.runId]);
      for (const other of [{ caller: "nobody" }, { project: "another" }, { environment: "live" as const }])
        expect(await runs.list({ unfinished: { ...mine, ...other } })).toEqual([]);
      await runs.discard(first.runId);
      expect(await others.list({ lastOf: "same" })).toEqual([last.runId]);
    });

    test("at rest have a summary, until they are taken up again", async () => {
      const [{ runs }, { runs: others }] = await make();
      const header = await created(runs);
      await startRun(runs, header.runId);
      const told = summaryNow(header, "interrupted", true);
      await restRun(runs, header.runId, told);
      expect(await summaryOf(others, header.runId)).toEqual(told);
      expect(await others.list({ unfinished: { fingerprint: "same" } })).toContain(header.runId);
      await restRun(runs, header.runId, summaryNow(header, "succeeded", false));
      await reopenRun(others, header.runId);
      expect(await summaryOf(runs, header.runId)).toBeUndefined();
      expect(await runs.list({ unfinished: { fingerprint: "same" } })).toContain(header.runId);
    });

    test("of the same call are made one after the other; what one of them throws is its own", async () => {
      const [{ runs }, { runs: others }] = await make();
      let inside = 0;
      const work = async (): Promise<number> => {
        inside += 1;
        expect(inside).toBe(1);
        await setImmediate();
        inside -= 1;
        return 1;
      };
      const failing = runs.withCallLock("same", () => Promise.reject(new RangeError("mine")));
      const done = [
        runs.withCallLock("same", work),
        others.withCallLock("same", work),
        runs.withCallLock("same", work),
      ];
      await expect(failing).rejects.toThrow("mine");
      expect(await Promise.all(done)).toEqual([1, 1, 1]);
    });
  });

  describe(`${name}: the rest`, () => {
    test("the lock lets one write of a project go at a time, and those of others beside it", async () => {
      const [{ lock }, { lock: other }] = await make();
      const seen: string[] = [];
      const write = (who: string) => async (turn: { readonly epoch: bigint }) => {
        seen.push(`${who} begins`);
        expect(turn.epoch).toBeGreaterThanOrEqual(0n);
        await setImmediate();
        seen.push(`${who} ends`);
      };
      await Promise.all([lock.hold("p", write("one"), never), other.hold("p", write("two"), never)]);
      expect(seen[1]).toBe(seen[0]?.replace("begins", "ends"));
      await expect(lock.hold("p", write("none"), AbortSignal.abort(new Error("given up")))).rejects.toThrow("given up");
    });

    test("the lock gives callers their turns one after the other, however much of each waits", async () => {
      const [{ lock }] = await make();
      const order: string[] = [];
      const work = (caller: string) => async () => {
        order.push(caller);
        await setImmediate();
      };
      const all = ["a", "a", "a", "b", "b"].map((caller) => lock.hold("p", work(caller), never, caller));
      await Promise.all(all);
      expect(order.join("")).toBe("ababa");
    });

    test("names are remembered until they are forgotten", async () => {
      const [backend, other] = await make();
      const options = { lasting: true, onProblem: () => expect.unreachable() };
      const [names, others] = [backend.names("p", options), other.names("p", options)];
      await names.remember([
        { _id: "1", name: "Spring" },
        { _id: "2", name: "Autumn" },
      ]);
      expect(await others.resolve("Spring")).toMatchObject({ kind: "one", thing: { _id: "1" }, isExact: true });
      await others.forget(["1"]);
      expect((await names.resolve("Spring")).kind).toBe("unknown");
      expect((await names.recent()).map(({ name }) => name)).toEqual(["Autumn"]);
      expect(await backend.names("another", options).recent()).toEqual([]);
      const odd = ["a\0b", "\ud800", "\ud801", '"quoted"', '"', String.raw`"\u0000"`].map((name) => ({
        _id: `id of ${name}`,
        name,
      }));
      await others.remember(odd);
      for (const { _id, name } of odd)
        expect(await names.resolve(name), JSON.stringify(name)).toMatchObject({ thing: { _id, name }, isExact: true });
      await names.forget(odd.map(({ _id }) => _id));
      expect((await others.recent()).map(({ name }) => name)).toEqual(["Autumn"]);
    });

    test("Context IDs are found again for exactly the record that they were read with", async () => {
      const [backend, other] = await make();
      const [contents, others] = [backend, other].map((one) => one.contents("p", () => expect.unreachable()));
      const option = (optionId: string, more: object = {}) => ({
        ...{ targetingId: "t", optionId, updatedAt: "2025-01-01T00:00:00.000Z", contextCount: 2 },
        ...more,
      });
      await contents?.put(option("a"), ['one \u0000 "quoted"\n', "한국어"]);
      await Promise.all(["b", "c", "b"].map((id) => contents?.put(option(id), [`${id}-1`, `${id}-2`])));
      await others?.refresh();
      expect(await others?.get(option("a"))).toEqual(['one \u0000 "quoted"\n', "한국어"]);
      const found = await Promise.all(["b", "nothing", "c"].map((id) => others?.get(option(id))));
      expect(found).toEqual([["b-1", "b-2"], undefined, ["c-1", "c-2"]]);
      for (const changed of [{ contextCount: 3 }, { updatedAt: "2025-01-02T00:00:00.000Z" }, { targetingId: "u" }])
        expect(await others?.get(option("a", changed)), JSON.stringify(changed)).toBeUndefined();
      await others?.put(option("a", { contextCount: 1 }), ["later"]);
      await contents?.refresh();
      expect(await contents?.get(option("a"))).toBeUndefined();
      expect(await contents?.get(option("a", { contextCount: 1 }))).toEqual(["later"]);
      const elsewhere = backend.contents("another", () => expect.unreachable());
      await elsewhere.refresh();
      expect(await elsewhere.get(option("b"))).toBeUndefined();
    });

    test("suites are kept for their caller, those kept last first", async () => {
      const [{ suites }, { suites: others }] = await make();
      await suites.put("me", "a1", "first");
      await suites.put("me", "b2", "second");
      await suites.put("somebody else", "a1", "theirs");
      expect(await others.get("me", "a1")).toBe("first");
      expect(await others.get("me", "c3")).toBeUndefined();
      await new Promise((resolve) => setTimeout(resolve, 5));
      await others.put("me", "a1", "first again");
      expect(await suites.list("me")).toEqual(["first again", "second"]);
      expect(await suites.list("nobody")).toEqual([]);
    });

    test("a yes is acted on once, and what came of it is known", async () => {
      const [{ suites }, { suites: others }] = await make();
      expect(await others.settled("yes")).toBeUndefined();
      expect((await Promise.all([suites.claim("yes"), others.claim("yes")])).toSorted()).toEqual([false, true]);
      expect(await others.settled("yes")).toBe("");
      await suites.settle("yes", "done");
      expect(await others.settled("yes")).toBe("done");
      expect(await others.claim("yes")).toBe(false);
    });

    test("a session that was ended is known as that to all, also by a clock that is wrong for a while", async () => {
      const wrong = { aheadMs: 0 };
      const clock = { ...systemClock, now: () => Date.now() + wrong.aheadMs };
      const [{ runs, endedSessions }, { endedSessions: others }] = await make(clock);
      await created(runs);
      expect(await others.has("session-1")).toBe(false);
      await endedSessions.add("session-1", Date.now() + HOUR_MS);
      expect(await others.has("session-1")).toBe(true);
      expect(await others.has("../seal")).toBe(false);
      for (const hours of [2, 13, 100, 1000]) {
        wrong.aheadMs = hours * HOUR_MS;
        await endedSessions.add(`session-${hours}`, clock.now() + HOUR_MS);
        expect([hours, await endedSessions.has("session-1")]).toEqual([hours, true]);
        wrong.aheadMs = 0;
        expect([hours, await others.has("session-1")]).toEqual([hours, true]);
      }
    });

    test("what is known of a caller's rights is known to all, the last of it alone", async () => {
      const [{ callerRights }, { callerRights: others }] = await make();
      expect(await others.read("oauth:https://issuer ann/../1")).toBeUndefined();
      await callerRights.keep("oauth:https://issuer ann/../1", "first");
      await others.keep("oauth:https://issuer ann/../1", "second");
      expect(await callerRights.read("oauth:https://issuer ann/../1")).toBe("second");
      expect(await callerRights.read("oauth:https://issuer ann")).toBeUndefined();
    });

    test("the key is long, and the same for all", async () => {
      const [backend, other] = await make();
      const keys = await Promise.all([backend.sealKey(), other.sealKey(), backend.sealKey()]);
      expect(keys[0]?.length).toBeGreaterThanOrEqual(32);
      expect(new Set(keys.map((key) => Buffer.from(key).toString("hex"))).size).toBe(1);
    });
  });
}

async function created(runs: Backend["runs"], more: Partial<RunHeader> = {}): Promise<RunHeader> {
  const header = headerOf(more);
  await runs.create(header);
  return header;
}
