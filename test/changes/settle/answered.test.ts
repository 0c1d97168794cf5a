import { describe, expect, test } from "vitest";
import type { JournalEntry } from "../../../src/changes/rows/entries.ts";
import { StepMaker } from "../../../src/changes/rows/steps.ts";
import { type Batch, settleAnswer } from "../../../src/changes/settle/send-request.ts";
import type { BulkResult } from "../../../src/spec/records.ts";
import { changesIn, fakeDriver, idAt } from "../fake-driver.ts";

const TARGETING = idAt(-1000);
const OPTION = idAt(-900);

const done = (index: number, _id = idAt(index)): BulkResult => ({ index, success: true, data: { _id } });
const failed = (index: number, statusCode: number, errorCode?: string, detail = {}): BulkResult => ({
  index,
  success: false,
  error: { statusCode, ...(errorCode !== undefined && { errorCode }), detail },
});
const batchOf = (ids: readonly number[], more: Partial<Batch> = {}): Batch => ({
  ids,
  failures: 0,
  uncatched: 0,
  refused: 0,
  ...more,
});
const objects = (count: number): JournalEntry => ({
  t: "objects",
  objects: Array.from({ length: count }, (_, index) => ({ index })),
});
const sent = (...steps: number[]): JournalEntry => ({ t: "send", steps, at: 10, again: false });

/** A run that deletes options one by one, of which the first `count` are in flight. */
function deleting(count: number) {
  const make = StepMaker.after({ length: 0 });
  const steps = Array.from({ length: count }, (_, object) =>
    make.deleteOption({ id: idAt(-object) }, false, { objects: [object] }),
  );
  return fakeDriver([objects(count), { t: "steps", steps }, sent(...steps.keys())]);
}

test("items that the service was too busy for are sent again, alone, after the longest wait that it asks for", async () => {
  const { driver, journal } = deleting(3);
  const busy = (index: number, retryAfterMs: number) =>
    failed(index, 409, "CONTEXT_TARGETING_WRITE_IN_PROGRESS", { retryAfterMs });
  const next = await settleAnswer(driver, batchOf([0, 1, 2]), { results: [busy(0, 300), done(1), busy(2, 700)] });
  expect(next).toMatchObject({ kind: "resend", waitMs: 700, batch: { ids: [0, 2], failures: 0 } });
  expect(changesIn(journal)).toEqual(["1 done"]);
});

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
    const first = fakeDriver([objects(1), { t: "steps", steps: [step] }, sent(0)]);
    await settleAnswer(first.driver, batchOf([0]), { results: [uncatched(0)] });
    expect(changesIn(first.journal)).toEqual(["0 suspect"]);
    const last = fakeDriver([objects(1), { t: "steps", steps: [step] }, sent(0)]);
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
