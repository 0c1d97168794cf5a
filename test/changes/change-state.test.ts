import { describe, expect, test } from "vitest";
import { RunState } from "../../src/changes/change-state.ts";
import { Plan } from "../../src/changes/plan/plan.ts";
import type { JournalEntry } from "../../src/changes/rows/entries.ts";
import { StepMaker } from "../../src/changes/rows/steps.ts";
import type { Reason } from "../../src/runs/outcome.ts";
import { objectResults } from "../support/object-results.ts";
import { sent } from "./fake-driver.ts";

const T = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const O = "01BX5ZZKBKACTAV9WEVGEMMVRZ";
const made = (number: number): string => `01BX5ZZKBKACTAV9WEVGEMM${String(number).padStart(3, "0")}`;
const refusal: Reason = { code: "TARGETING_CATEGORY_NAME_DUPLICATE", statusCode: 409 };

function stateOf(entries: readonly JournalEntry[]): RunState {
  const state = new RunState();
  for (const entry of entries) state.apply(entry);
  return state;
}

const rows = (count: number): JournalEntry => ({
  t: "rows",
  index: 0,
  line: 2,
  items: Array.from({ length: count }, (_, row) => ({ targeting: T, name: `Row ${row}` })),
});
const objects = (count: number): JournalEntry => ({
  t: "objects",
  objects: Array.from({ length: count }, (_, index) => ({ index })),
});
const outcomes = (state: RunState) =>
  objectResults(state).map(({ outcome, reason }) => (reason === undefined ? outcome : `${outcome} ${reason.code}`));

describe("rows", () => {
  test("that were made together have succeeded, each with its ID", () => {
    const answer: JournalEntry = { t: "answer", at: 11, changes: [], made: { from: 1, ids: [made(1), null, made(3)] } };
    const state = stateOf([rows(5), sent(1, 2, 3), answer]);
    expect(state.counts()).toMatchObject({ pending: 2, succeeded: 3 });
    expect([0, 1, 2, 3, 4].map((object) => state.idOf(object))).toEqual([
      undefined,
      made(1),
      undefined,
      made(3),
      undefined,
    ]);
    expect(state.ready()).toEqual([0, 4]);
    expect(state.objects.at(3)).toEqual({ index: 3, line: 5, name: "Row 3" });
  });

  test("end one by one where their answers differ", () => {
    const changes = [
      { step: 0, to: "done", _id: made(0) },
      { step: 1, to: "failed", reason: refusal },
      { step: 2, to: "suspect" },
    ] as const;
    const stop: JournalEntry = { t: "stop", cause: "cancelled", at: 12 };
    const state = stateOf([rows(4), sent(0, 1, 2), { t: "answer", at: 11, changes }, stop]);
    expect(outcomes(state)).toEqual([
      "succeeded",
      `failed ${refusal.code}`,
      "unknown NO_ANSWER",
      "notApplied CANCELLED",
    ]);
    expect(state.firstSent(2)?.at).toBe(10);
    state.apply({ t: "resume", at: 13 });
    expect(state.ready()).toEqual([2, 3]);
    expect(outcomes(state)).toEqual(["succeeded", `failed ${refusal.code}`, "pending", "pending"]);
    state.apply({ t: "send", steps: [2], at: 14, again: true });
    state.apply({ t: "answer", at: 15, changes: [{ step: 2, to: "suspect" }] });
    expect(state.firstSent(2)?.at).toBe(10);
  });

  test("that were in flight when it stopped are unknown", () => {
    const state = stateOf([rows(3), sent(0, 1), { t: "stop", cause: "interrupted", at: 11 }]);
    expect(outcomes(state)).toEqual(["unknown NO_ANSWER", "unknown NO_ANSWER", "notApplied INTERRUPTED"]);
  });
});

describe("steps about one object", () => {
  const make = StepMaker.after({ length: 0 });
  const option = make.addOption({ name: "Long" }, { targeting: { id: T } }, { objects: [0] });
  const second = make.updateOption({ object: 0 }, { contexts: { add: ["a"] } }, { objects: [0], after: [0] });
  const long = [objects(1), { t: "steps", steps: [option, second] }] as const;
  const first: JournalEntry = { t: "answer", at: 11, changes: [{ step: 0, to: "done", _id: O }] };

  test("leave in their order, and the last one decides", () => {
    const state = stateOf(long);
    expect(state.ready()).toEqual([0]);
    state.apply(sent(0));
    state.apply(first);
    expect([state.ready(), outcomes(state), state.idOf(0)]).toEqual([[1], ["pending"], O]);
    expect(state.doneSteps(0)).toEqual([option]);
    state.apply({ t: "answer", at: 12, changes: [{ step: 1, to: "done" }] });
    expect(outcomes(state)).toEqual(["succeeded"]);
  });

  test("leave it unknown where only the first was applied", () => {
    const state = stateOf([...long, sent(0), first, { t: "stop", cause: "cancelled", at: 12 }]);
    expect(outcomes(state)).toEqual(["unknown PARTLY_APPLIED"]);
  });

  test("replace another one", () => {
    const instead = { ...second, bindings: [{ field: "_id", id: O }], after: [] } as const;
    const changes = [{ step: 0, to: "replaced" }] as const;
    const answer: JournalEntry = { t: "answer", at: 11, changes, steps: [instead] };
    const state = stateOf([rows(1), sent(0), answer]);
    expect([state.ready(), outcomes(state)]).toEqual([[1], ["pending"]]);
    state.apply({ t: "answer", at: 12, changes: [{ step: 1, to: "done" }] });
    expect(outcomes(state)).toEqual(["succeeded"]);
  });

  test("that take it back make it fail for the reason why", () => {
    const undoing = StepMaker.after({ length: 2 }).deleteOption({ id: O }, false, { objects: [0], undoes: refusal });
    const changes = [{ step: 1, to: "failed", reason: refusal, undone: true }] as const;
    const state = stateOf([...long, sent(0), first, sent(1), { t: "answer", at: 12, changes, steps: [undoing] }]);
    expect([state.ready(), outcomes(state)]).toEqual([[2], ["pending"]]);
    state.apply({ t: "answer", at: 13, changes: [{ step: 2, to: "done" }] });
    expect(outcomes(state)).toEqual([`failed ${refusal.code}`]);
  });
});

test("what is to be made inside of something that is refused was not attempted, nor was what needs it", () => {
  const make = StepMaker.after({ length: 0 });
  const children = [{ name: "Child" }];
  const steps = [
    make.addOption({ name: "Group", children }, { targeting: { id: T } }, { objects: [0, 1] }),
    make.addOption({ name: "Later" }, { targeting: { id: T }, parent: { object: 0 } }, { objects: [2] }),
  ];
  const plan = [objects(3), { t: "steps", steps }] as const;
  expect(stateOf(plan).isNeeded(0)).toBe(true);
  expect(stateOf(plan).ready()).toEqual([0]);
  const changes = [{ step: 0, to: "failed", reason: refusal }] as const;
  const state = stateOf([...plan, sent(0), { t: "answer", at: 11, changes }]);
  expect(outcomes(state)).toEqual([`failed ${refusal.code}`, "notApplied NEEDS_FAILED", "notApplied NEEDS_FAILED"]);
  expect(state.ready()).toEqual([]);
});

test("a deferred step waits until something changed, and one thing is changed by one step at a time", () => {
  const make = StepMaker.after({ length: 0 });
  const steps = [
    make.updateOption({ id: O }, { name: "B" }, { objects: [0] }),
    make.updateOption({ id: T }, { name: "C" }, { objects: [1] }),
    make.updateOption({ id: O }, { exposeChildren: true }, { objects: [2] }),
  ];
  const changes = [{ step: 0, to: "deferred", reason: refusal }] as const;
  const state = stateOf([objects(3), { t: "steps", steps }, sent(0), { t: "answer", at: 11, changes }]);
  expect(state.deferredSteps()).toEqual([{ step: steps[0], reason: refusal, changedSince: false }]);
  state.apply(sent(1));
  state.apply({ t: "answer", at: 12, changes: [{ step: 1, to: "done" }] });
  expect(state.deferredSteps()[0]?.changedSince).toBe(true);
  state.apply({ t: "answer", at: 13, changes: [{ step: 0, to: "pending" }] });
  expect(state.ready()).toEqual([0]);
  expect(state.stepsChanging(O).map(({ id }) => id)).toEqual([0, 2]);
});

test("an object keeps its first outcome, but for one that was not attempted", () => {
  const settled = (outcome: "failed" | "notApplied" | "succeeded"): JournalEntry => ({
    t: "settled",
    settlements: [{ object: 0, outcome }],
  });
  expect(outcomes(stateOf([objects(1), settled("failed"), settled("succeeded")]))).toEqual(["failed"]);
  expect(outcomes(stateOf([objects(1), settled("notApplied"), settled("succeeded")]))).toEqual(["succeeded"]);
});

test("a plan is taken over once", () => {
  const state = stateOf([rows(1)]);
  expect(() => state.adopt(new Plan())).toThrow(RangeError);
});
