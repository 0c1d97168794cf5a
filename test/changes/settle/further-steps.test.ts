// A refusal does not always mean a failure. The run may wait for another change, change the existing object, or use a
// temporary name.
import { describe, expect, test } from "vitest";
import type { OnExisting } from "../../../src/changes/call.ts";
import { leftoverNames } from "../../../src/changes/change-kinds.ts";
import type { JournalEntry, Step } from "../../../src/changes/rows/entries.ts";
import { StepMaker } from "../../../src/changes/rows/steps.ts";
import { mayWorkLater } from "../../../src/changes/settle/reconcile.ts";
import { existingOption, settleAnswers } from "../../../src/changes/settle/settle-items.ts";
import { takeBack } from "../../../src/changes/settle/take-back.ts";
import { changesIn, entriesOf, fakeDriver, idAt, sent } from "../fake-driver.ts";

const [A, B, OTHER, TARGETING] = [idAt(1), idAt(2), idAt(3), idAt(4)];
const nameTaken = (...existingIds: string[]) => ({
  code: "TARGETING_CATEGORY_NAME_DUPLICATE",
  detail: { existingIds },
});

function planned(steps: readonly Step[], ...after: readonly JournalEntry[]) {
  return fakeDriver([...entriesOf(steps), ...after]);
}

describe("a refused change waits for another one", () => {
  const make = StepMaker.after({ length: 0 });
  const first = make.updateOption({ id: A }, { name: "Two" }, { objects: [0] });
  const second = make.updateOption({ id: B }, { name: "One" }, { objects: [1] });
  const { state } = planned([first, second]);

  test("that holds the name which it wants", () => {
    expect(mayWorkLater(state, first, nameTaken(B))).toBe(true);
    expect(mayWorkLater(state, first, nameTaken(OTHER))).toBe(false);
    expect(mayWorkLater(state, first, nameTaken(A))).toBe(false);
  });

  test("that holds the Context ID which it wants", () => {
    const reason = (_id: string) => ({
      code: "TARGETING_COLLECTION_CONTEXT_DUPLICATED",
      detail: { conflicts: [{ value: "x", collection: { _id, name: "Group" } }] },
    });
    expect(mayWorkLater(state, first, reason(B))).toBe(true);
    expect(mayWorkLater(state, first, reason(OTHER))).toBe(false);
  });

  test("that makes room under a limit", () => {
    const full = { code: "TARGETING_CONTEXT_LIMIT_EXCEEDED" };
    const making = StepMaker.after({ length: 0 });
    const grows = making.updateOption({ id: A }, { contexts: { add: ["a"] } }, { objects: [0] });
    const shrinks = making.updateOption({ id: B }, { contexts: { remove: ["b"] } }, { objects: [1] });
    expect(mayWorkLater(planned([grows, shrinks]).state, grows, full)).toBe(true);
    expect(mayWorkLater(planned([grows]).state, grows, full)).toBe(false);
  });

  test("and no other reason, nor a create or a delete, waits at all", () => {
    expect(mayWorkLater(state, first, { code: "TARGETING_CATEGORY_NOT_FOUND" })).toBe(false);
    const remove = StepMaker.after({ length: 2 }).deleteOption({ id: A }, false, { objects: [0] });
    expect(mayWorkLater(state, remove, nameTaken(B))).toBe(false);
  });
});

describe("an option whose name the targeting already has", () => {
  function met(onExisting: OnExisting, contexts: readonly string[] = ["a"]) {
    const item = contexts.length > 0 ? { name: "Shoes", contexts } : { name: "Shoes" };
    const step = StepMaker.after({ length: 0 }).addOption(item, { targeting: { id: TARGETING } }, { objects: [0] });
    const { driver } = planned([step]);
    return existingOption({ ...driver, onExisting }, step, nameTaken(A), StepMaker.after(driver.state.steps));
  }

  test("needs no request where there are no Context IDs to give", () => {
    expect(met("addContexts", [])).toMatchObject({ settlements: [{ outcome: "alreadyDone" }] });
  });
});

test("a group whose name is taken, though no list shows it, fails after one smaller request, and is not sent for ever", async () => {
  const group = { name: "SHOES", children: [{ name: "One" }, { name: "Two" }] };
  const step = StepMaker.after({ length: 0 }).addOption(
    group,
    { targeting: { id: TARGETING } },
    { objects: [0, 1, 2] },
  );
  const { driver, journal, state } = planned([step]);
  const refuse = async (id: number): Promise<void> => {
    const sent = state.steps.at(id);
    if (sent === undefined) throw new RangeError("no such step");
    const error = { statusCode: 409, errorCode: "TARGETING_CATEGORY_NAME_DUPLICATE", detail: { existingIds: [A] } };
    await settleAnswers(driver, [sent], [{ step: sent, result: { index: 0, success: false, error } }]);
  };
  await refuse(0);
  expect(state.steps.at(1)?.item).toMatchObject({ name: "SHOES", children: [{ name: "One" }] });
  await refuse(1);
  expect(changesIn(journal)).toEqual(["0 replaced", "1 failed TARGETING_CATEGORY_NAME_DUPLICATE"]);
});

describe("what earlier parts of an object did is taken back", () => {
  const make = StepMaker.after({ length: 0 });
  const create = make.addOption({ name: "Long" }, { targeting: { id: TARGETING } }, { objects: [0] });
  const grow = make.updateOption({ object: 0 }, { contexts: { add: ["a"] } }, { objects: [0], after: [0] });
  const full = { code: "TARGETING_CONTEXT_LIMIT_EXCEEDED" };

  test("and where nothing was done, nothing is", () => {
    const { driver } = planned([create, grow]);
    expect(takeBack(driver, create, full, StepMaker.after(driver.state.steps))).toBeUndefined();
  });

  test("Context IDs that were added are removed, and those that were removed are added", () => {
    const making = StepMaker.after({ length: 0 });
    const contexts = { add: ["a"], remove: ["b"] };
    const one = making.updateOption({ id: A }, { contexts }, { objects: [0] });
    const two = making.updateOption({ id: A }, { contexts: { add: ["c"] } }, { objects: [0], after: [0] });
    const { driver } = fakeDriver([
      { t: "objects", objects: [{ index: 0, _id: A }] },
      { t: "steps", steps: [one, two] },
      sent(0),
      { t: "answer", at: 11, changes: [{ step: 0, to: "done" }] },
    ]);
    expect(takeBack(driver, two, full, StepMaker.after(driver.state.steps))?.steps).toMatchObject([
      { operation: "updateOptions", item: { contexts: { add: ["b"], remove: ["a"] } }, undoes: full },
    ]);
  });
});

test("a temporary name is stranded until its thing has the wanted name, or its old one again", () => {
  const make = StepMaker.after({ length: 0 });
  const temporary = make.updateOption(
    { id: A },
    { name: "tmp 1" },
    { objects: [0], prepares: true, formerName: "One" },
  );
  const wanted = make.updateOption({ id: A }, { name: "Two" }, { objects: [0], after: [0] });
  const done = (step: number): JournalEntry => ({ t: "answer", at: 11, changes: [{ step, to: "done" }] });
  const { state } = planned([temporary, wanted], sent(0), done(0));
  expect(leftoverNames(state)).toEqual([{ _id: A, temporaryName: "tmp 1", formerName: "One", isSure: true }]);
  state.apply(sent(1));
  state.apply(done(1));
  expect(leftoverNames(state)).toEqual([]);
});
