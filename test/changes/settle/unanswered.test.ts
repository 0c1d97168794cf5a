import { describe, expect, test } from "vitest";
import { AmbiguousError, type ApiError, BusyError, NotSentError, RejectedError } from "../../../src/api/errors.ts";
import type { JournalEntry } from "../../../src/changes/rows/entries.ts";
import { StepMaker } from "../../../src/changes/rows/steps.ts";
import { type Batch, handleError } from "../../../src/changes/settle/send-request.ts";
import { HeldBackError } from "../../../src/platform/fence.ts";
import { changesIn, fakeDriver, idAt } from "../fake-driver.ts";

const operation = "deleteOptions" as const;
const lost = new AmbiguousError({ operation, reason: "the connection was reset" });

function rejected(kind: RejectedError["kind"], statusCode: number, errorCode?: string): RejectedError {
  return new RejectedError({ kind, statusCode, operation, route: "POST /x", errorCode });
}

/** A run that deletes options, all in flight; `suspect` are those whose earlier attempt found no answer. */
function deleting(count: number, suspect: readonly number[] = []) {
  const make = StepMaker.after({ length: 0 });
  const steps = Array.from({ length: count }, (_, object) =>
    make.deleteOption({ id: idAt(-object) }, false, { objects: [object] }),
  );
  const send: JournalEntry = { t: "send", steps: steps.map(({ id }) => id), at: 10, again: false };
  const objects = steps.map((_, index) => ({ index }));
  const doubt: JournalEntry = { t: "answer", at: 11, changes: suspect.map((step) => ({ step, to: "suspect" })) };
  return fakeDriver([
    { t: "objects", objects },
    { t: "steps", steps },
    send,
    ...(suspect.length > 0 ? [doubt, send] : []),
  ]);
}

const batch = (ids: readonly number[], more: Partial<Batch> = {}): Batch => ({
  ids,
  failures: 0,
  uncatched: 0,
  refused: 0,
  ...more,
});

async function ended(error: ApiError, count = 2, suspect: readonly number[] = [], more: Partial<Batch> = {}) {
  const { driver, journal, state } = deleting(count, suspect);
  const ids = Array.from({ length: count }, (_, id) => id);
  const next = await handleError(driver, batch(ids, more), error);
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

test("a lost answer puts every item in doubt, since when it first left", async () => {
  const { next, changes, state } = await ended(lost);
  expect(next).toMatchObject({ kind: "resend", reason: { code: "NO_ANSWER" } });
  expect(changes).toEqual(["0 suspect", "1 suspect"]);
  expect(state.suspectSince(0)).toBe(10);
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
