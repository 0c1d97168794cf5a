// How an answer, or an error instead of one, changes the state of a run.
import { describe, expect, test } from "vitest";
import { type ApiError, BusyError, NotSentError, RejectedError } from "../../../src/api/errors.ts";
import type { JournalEntry } from "../../../src/changes/rows/entries.ts";
import { StepMaker } from "../../../src/changes/rows/steps.ts";
import { type Batch, handleError, settleAnswer } from "../../../src/changes/settle/send-request.ts";
import { HeldBackError } from "../../../src/runs/turn.ts";
import type { BulkResult } from "../../../src/spec/records.ts";
import { changesIn, entriesOf, fakeDriver, idAt, sent } from "../fake-driver.ts";

const TARGETING = idAt(-1000);
const OPTION = idAt(-900);
const operation = "deleteOptions" as const;

const done = (index: number, _id = idAt(index)): BulkResult => ({ index, success: true, data: { _id } });
const failed = (index: number, statusCode: number, errorCode?: string, detail = {}): BulkResult => ({
  index,
  success: false,
  error: { statusCode, ...(errorCode !== undefined && { errorCode }), detail },
});
const rejected = (kind: RejectedError["kind"], statusCode: number, errorCode?: string) =>
  new RejectedError({ kind, statusCode, operation, route: "POST /x", errorCode });
const batchOf = (ids: readonly number[], more: Partial<Batch> = {}): Batch => ({
  ids,
  failures: 0,
  uncatched: 0,
  refused: 0,
  ...more,
});

/**
 * Creates a run that deletes options, all in one request that was sent. `suspect` are those whose earlier attempt got
 * no answer.
 */
function deleting(count: number, suspect: readonly number[] = []) {
  const make = StepMaker.after({ length: 0 });
  const steps = Array.from({ length: count }, (_, object) =>
    make.deleteOption({ id: idAt(-object) }, false, { objects: [object] }),
  );
  const send = sent(...steps.keys());
  const doubt: JournalEntry = { t: "answer", at: 11, changes: suspect.map((step) => ({ step, to: "suspect" })) };
  return fakeDriver([...entriesOf(steps), send, ...(suspect.length > 0 ? [doubt, send] : [])]);
}

describe("UNCATCHED", () => {
  const uncatched = (index: number) => failed(index, 500, "UNCATCHED");

  test("is sent again after a pause that grows", async () => {
    const waits: number[] = [];
    for (const tries of [0, 1, 2]) {
      const { driver } = deleting(2);
      const batch = batchOf([0, 1], { failures: tries, uncatched: tries });
      const next = await settleAnswer(driver, batch, { results: [uncatched(0), uncatched(1)] });
      expect(next).toMatchObject({ kind: "resend", batch: { ids: [0, 1], uncatched: tries + 1 } });
      if (next.kind === "resend") waits.push(next.waitMs);
    }
    expect(waits).toEqual([225, 450, 900]);
  });

  test("of a unit that fails every time halves it, and of a single item fails that one", async () => {
    const several = deleting(2);
    const tried = { failures: 3, uncatched: 3 };
    const answer = { results: [uncatched(0), uncatched(1)] };
    expect(await settleAnswer(several.driver, batchOf([0, 1], tried), answer)).toEqual({ kind: "halve", ids: [0, 1] });
    const one = deleting(1);
    expect(await settleAnswer(one.driver, batchOf([0], tried), { results: [uncatched(0)] })).toEqual({
      kind: "settled",
    });
    expect(changesIn(one.journal).filter((change) => change !== "")).toEqual(["0 failed UNCATCHED"]);
  });

  test("leaves an update that adds and removes in doubt: its add may be applied", async () => {
    const make = StepMaker.after({ length: 0 });
    const step = make.updateOption({ id: OPTION }, { contexts: { add: ["a"], remove: ["b"] } }, { objects: [0] });
    const first = fakeDriver([...entriesOf([step]), sent(0)]);
    await settleAnswer(first.driver, batchOf([0]), { results: [uncatched(0)] });
    expect(changesIn(first.journal)).toEqual(["0 suspect"]);
    const last = fakeDriver([...entriesOf([step]), sent(0)]);
    await settleAnswer(last.driver, batchOf([0], { uncatched: 3 }), { results: [uncatched(0)] });
    expect(changesIn(last.journal)).toEqual(["0 unknown PARTLY_APPLIED"]);
  });
});

describe("rows of a file", () => {
  const rows: JournalEntry = {
    t: "rows",
    index: 0,
    items: ["A", "B", "C"].map((name) => ({ targeting: TARGETING, name })),
  };

  test("that all succeeded are journaled as one list of IDs", async () => {
    const { driver, journal } = fakeDriver([rows, sent(0, 1, 2)]);
    const results = [done(0), { index: 1, success: true }, done(2)];
    expect(await settleAnswer(driver, batchOf([0, 1, 2]), { results })).toEqual({ kind: "settled" });
    expect(journal).toMatchObject([{ t: "answer", changes: [], made: { from: 0, ids: [idAt(0), null, idAt(2)] } }]);
  });

  test("are settled one by one where a single one failed", async () => {
    const { driver, journal, state } = fakeDriver([rows, sent(0, 1, 2)]);
    await settleAnswer(driver, batchOf([0, 1, 2]), { results: [done(0), failed(1, 400, "X"), done(2)] });
    expect(changesIn(journal)).toEqual(["0 done", "1 failed X", "2 done"]);
    expect(state.counts()).toMatchObject({ succeeded: 2, failed: 1, pending: 0 });
  });
});

describe("a delete of something that is not there", () => {
  const gone = { results: [failed(0, 404, "TARGETING_CATEGORY_NOT_FOUND")] };

  test("has failed on the first try: it was never there, or is another project's", async () => {
    const { driver, journal } = deleting(1);
    await settleAnswer(driver, batchOf([0]), gone);
    expect(changesIn(journal)).toEqual(["0 failed TARGETING_CATEGORY_NOT_FOUND"]);
  });

  test("was done by the attempt whose answer was lost", async () => {
    const { driver, journal } = deleting(1);
    driver.change([{ step: 0, to: "suspect" }]);
    await settleAnswer(driver, batchOf([0]), gone);
    expect(changesIn(journal)).toEqual(["0 suspect", "0 alreadyDone"]);
  });
});

async function ended(error: ApiError, count = 2, suspect: readonly number[] = [], more: Partial<Batch> = {}) {
  const { driver, journal, state } = deleting(count, suspect);
  const ids = Array.from({ length: count }, (_, id) => id);
  const next = await handleError(driver, batchOf(ids, more), error);
  return { next, changes: changesIn(journal), state };
}

test("a busy service is asked again after its wait, and never sooner than 50 ms", async () => {
  const busy = (retryAfterMs: number) => ended(new BusyError({ operation, statusCode: 409, retryAfterMs }));
  expect((await busy(1200)).next).toMatchObject({ kind: "resend", waitMs: 1200, batch: { failures: 0 } });
  expect((await busy(0)).next).toMatchObject({ kind: "resend", waitMs: 50 });
});

describe("a request that never left", () => {
  test("is sent again, and puts nothing in doubt", async () => {
    const { next, changes } = await ended(new NotSentError({ operation, reason: "refused" }));
    expect(next).toMatchObject({ kind: "resend", waitMs: 225, batch: { failures: 1 }, reason: { code: "NOT_SENT" } });
    expect(changes).toEqual([]);
  });

  test("costs nothing of the retry budget where it was held back", async () => {
    const cause = new HeldBackError("this process stood still");
    const { next } = await ended(new NotSentError({ operation, reason: "held back" }, { cause }));
    expect(next).toMatchObject({ kind: "resend", waitMs: 0, isFree: true, batch: { failures: 0 } });
  });
});

describe("a rejection", () => {
  test.each([
    ["unauthorized", 401, undefined],
    ["forbidden", 403, undefined],
    ["wrongRoute", 404, undefined],
    ["redirect", 302, undefined],
    ["business", 404, "PROJECT_NOT_FOUND"],
  ] as const)("that every further request would meet ends the run: %s", async (kind, statusCode, errorCode) => {
    const { next, changes } = await ended(rejected(kind, statusCode, errorCode));
    expect(next.kind).toBe("end");
    expect(changes).toHaveLength(2);
    for (const change of changes) expect(change).toContain(" refused ");
  });

  test("that ends the run leaves in doubt what an earlier attempt may have applied", async () => {
    const { changes } = await ended(rejected("unauthorized", 401), 2, [1]);
    expect(changes).toEqual(["0 refused UNAUTHORIZED", "1 unknown NO_ANSWER"]);
  });

  test.each([
    ["tooLarge", 413],
    ["validation", 400],
  ] as const)("of several items is halved until the one at fault stands alone: %s", async (kind, statusCode) => {
    expect((await ended(rejected(kind, statusCode))).next).toEqual({ kind: "halve", ids: [0, 1] });
    const alone = await ended(rejected(kind, statusCode), 1);
    expect(alone.next).toEqual({ kind: "settled" });
    expect(alone.changes).toHaveLength(1);
    expect(alone.changes[0]).toMatch(/^0 failed /);
  });

  test("of one item in doubt is tried again a few times, and then proves nothing about the first attempt", async () => {
    const again = await ended(rejected("validation", 400), 1, [0]);
    expect(again.next).toMatchObject({ kind: "resend", batch: { refused: 1, failures: 0 } });
    const last = await ended(rejected("validation", 400), 1, [0], { refused: 2 });
    expect(last.next).toEqual({ kind: "settled" });
    expect(last.changes).toEqual(["0 unknown NO_ANSWER"]);
  });
});
