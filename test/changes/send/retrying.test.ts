import { describe, expect, test } from "vitest";
import { AmbiguousError, RejectedError } from "../../../src/api/errors.ts";
import type { BulkAnswer, ManagementApi } from "../../../src/api/management.ts";
import { Changes } from "../../../src/changes/changes.ts";
import { targetingMemory } from "../../../src/runs/files/backend.ts";
import { processLock } from "../../../src/runs/files/lease.ts";
import { countsOf, failureGroups } from "../../../src/runs/report.ts";
import { ulidSource } from "../../../src/spec/names-and-contexts.ts";
import type { BulkResult } from "../../../src/spec/records.ts";
import { ROUTES } from "../../../src/spec/routes.ts";
import { VirtualTime } from "../../faults/virtual-time.ts";
import { memoryRunStore } from "../../support/memory-store.ts";
import { readingApi, ulidOf } from "../../support/tool-context.ts";

const START = Date.UTC(2026, 2, 1, 12);
const BUDGET_MS = 60_000;
const INVALID = { kind: "validation", statusCode: 400 } as const;

/** Returns the service's answer to a request: its names, how many requests there were before, and the time. */
type Reply = (names: readonly string[], request: number, time: VirtualTime) => readonly BulkResult[];

const made = (index: number): BulkResult => ({ index, success: true, data: { _id: ulidOf(index) } });
const refused = (index: number, error: BulkResult["error"]): BulkResult => ({ index, success: false, error });

/** Creates targetings in virtual time with a service that answers with `reply`. */
async function creating(count: number, reply: Reply) {
  const time = new VirtualTime(START);
  const sent: { readonly at: number; readonly items: number }[] = [];
  const bulk: ManagementApi["bulk"] = async (_operation, { json }): Promise<BulkAnswer> => {
    const items: readonly { readonly name: string }[] = JSON.parse(Buffer.from(json).toString("utf8"));
    sent.push({ at: time.now(), items: items.length });
    time.advance(10);
    return {
      results: reply(
        items.map(({ name }) => name),
        sent.length - 1,
        time,
      ),
    };
  };
  const changes = new Changes({
    api: { ...readingApi([]).api, bulk },
    routes: ROUTES,
    store: memoryRunStore(),
    lock: processLock(time),
    clock: time,
    random: () => 0.5,
    newRunId: ulidSource(
      () => time.now(),
      () => 0.5,
    ),
    project: "test",
    environment: "sandbox",
    ...{ retryBudgetMs: BUDGET_MS, requestTimeoutMs: 60_000 },
    words: ({ code }) => code,
    memory: targetingMemory({ now: () => time.now(), onProblem: () => {} }),
  });
  const items = Array.from({ length: count }, (_, number) => ({ name: `Targeting ${number}` }));
  const call = { tool: "create_targetings", input: { items } } as const;
  const run = await changes.start(
    await changes.keep(call, "tester"),
    await changes.plan(call, new AbortController().signal),
  );
  await run?.rest;
  if (run === undefined) throw new Error("the run did not start");
  return { sent, counts: countsOf(run.state), failures: failureGroups(run.state), tookMs: time.now() - START };
}

describe("waits that the service asks for inside results", () => {
  const busy = (retryAfterMs: unknown) => ({
    statusCode: 409,
    errorCode: "CONTEXT_TARGETING_WRITE_IN_PROGRESS",
    detail: { retryAfterMs },
  });

  test.each([
    [1e9, 2000],
    [Number.MAX_VALUE, 2000],
    [1200, 1200],
    ["700", 700],
    [0, 50],
    [-5, 50],
    ["soon", 50],
    [null, 50],
  ])("%j is a wait of %d ms: the documents say 0 to 2,000, and less than 50 is too eager", async (asked, waited) => {
    const { sent, counts } = await creating(2, (names, request) =>
      request === 0 ? [made(0), refused(1, busy(asked))] : names.map((_, index) => made(index)),
    );
    expect(counts).toMatchObject({ items: 2, succeeded: 2 });
    expect(sent.map(({ items }) => items)).toEqual([2, 1]);
    expect((sent[1]?.at ?? 0) - (sent[0]?.at ?? 0) - 10).toBe(waited);
  });
});

describe("a request that is halved", () => {
  test("shares its retry budget with its halves: 100 items that fail every time end within it", async () => {
    const uncatched = { statusCode: 500, errorCode: "UNCATCHED" };
    const { counts, tookMs } = await creating(100, (names) => names.map((_, index) => refused(index, uncatched)));
    expect(tookMs).toBeLessThanOrEqual(BUDGET_MS + 1000);
    expect(counts).toMatchObject({ items: 100, succeeded: 0, unknown: 0, pending: 0 });
  });

  test("so does one whose halves find no answer", async () => {
    const { tookMs, counts } = await creating(64, (names) => {
      if (names.length > 1) {
        throw new RejectedError({ ...INVALID, operation: "createTargetings", route: "POST /" });
      }
      if (names[0] === "Targeting 0") return [made(0)];
      throw new AmbiguousError({ operation: "createTargetings", reason: "reset" });
    });
    expect(tookMs).toBeLessThanOrEqual(BUDGET_MS + 1000);
    expect(counts).toMatchObject({ succeeded: 1, unknown: 1, notApplied: 62 });
  });

  test("what its parts spend on answers is not taken from it", async () => {
    let isLost = false;
    const { counts, tookMs } = await creating(64, (names, _, time) => {
      if (names.length > 1) {
        throw new RejectedError({ ...INVALID, operation: "createTargetings", route: "POST /" });
      }
      time.advance(2000);
      if (names[0] !== "Targeting 63" || isLost) return [made(0)];
      isLost = true;
      throw new AmbiguousError({ operation: "createTargetings", reason: "reset" });
    });
    expect(tookMs).toBeGreaterThan(2 * BUDGET_MS);
    expect(counts).toMatchObject({ succeeded: 64 });
  });
});
