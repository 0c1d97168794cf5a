import { expect, test } from "vitest";
import type { JournalEntry, Step } from "../../../src/changes/rows/entries.ts";
import { StepMaker } from "../../../src/changes/rows/steps.ts";
import { settleAnswers } from "../../../src/changes/settle/settle-items.ts";
import { takeBack } from "../../../src/changes/settle/take-back.ts";
import { entriesOf, fakeDriver, idAt, START } from "../fake-driver.ts";

const GROUP = { id: idAt(-5000) };
const taken = { code: "TARGETING_CATEGORY_NAME_DUPLICATE" };

test("a swap that can be neither finished nor undone leaves the rename in doubt, and no other change of the option", () => {
  const make = StepMaker.after({ length: 0 });
  const given = { objects: [0] };
  const placeholder = make.updateOption(GROUP, { contexts: { add: ["tmp-1"] } }, given);
  const temporary = make.updateOption(GROUP, { name: "tmp 1" }, { ...given, prepares: true, formerName: "Old" });
  const removal = make.updateOption(GROUP, { contexts: { remove: ["tmp-1"] } }, given);
  const rename = make.updateOption(GROUP, { name: "New" }, given);
  const restoring = make.updateOption(GROUP, { name: "Old" }, { ...given, undoes: taken });
  const done = [placeholder, temporary, removal].map(({ id }) => ({ step: id, to: "done" as const, _id: GROUP.id }));
  const entries: JournalEntry[] = [
    { t: "objects", objects: [{ index: 0, _id: GROUP.id, name: "New" }] },
    { t: "steps", steps: [placeholder, temporary, removal, rename, restoring] },
    { t: "answer", at: START, changes: [...done, { step: rename.id, to: "failed", reason: taken, undone: true }] },
  ];
  const { driver } = fakeDriver(entries);
  const then = takeBack(driver, restoring, taken, StepMaker.after(driver.state.steps));
  expect(then?.changes).toMatchObject([
    { step: restoring.id, to: "failed", undone: true },
    { step: rename.id, to: "unknown", reason: { code: "PARTLY_APPLIED" } },
  ]);
  driver.change(then?.changes ?? []);
  driver.record({ t: "resume", at: START + 1 });
  expect(driver.state.ready()).toEqual([rename.id]);
});

/** A change of Context IDs in three parts: two were applied, and the third one is refused now. */
async function refusedPart() {
  const make = StepMaker.after({ length: 0 });
  const steps = ["a", "b", "c"].map((id) => make.updateOption(GROUP, { contexts: { add: [id] } }, { objects: [0] }));
  const { driver, state } = fakeDriver(entriesOf(steps));
  driver.change([0, 1].map((step) => ({ step, to: "done", _id: GROUP.id })));
  const refuse = async (id: number, statusCode: number, errorCode: string): Promise<void> => {
    const step = state.steps.at(id);
    if (step === undefined) throw new RangeError("no such step");
    await settleAnswers(
      driver,
      [step],
      [{ step, result: { index: 0, success: false, error: { statusCode, errorCode } } }],
    );
  };
  await refuse(2, 422, LIMIT);
  const reversed = (step: Step | undefined) => step?.operation === "updateOptions" && step.item.contexts;
  expect([3, 4].map((id) => reversed(state.steps.at(id)))).toEqual([{ remove: ["b"] }, { remove: ["a"] }]);
  return { driver, state, refuse };
}

const LIMIT = "TARGETING_CONTEXT_LIMIT_EXCEEDED";

test("a change of which only some parts were applied is unknown if a part of its reversal is refused", async () => {
  const { driver, state, refuse } = await refusedPart();
  await refuse(3, 400, "TARGETING_INVALID_REQUEST");
  expect(state.standing(0)).toBe("unknown");
  expect(state.reason(0)).toMatchObject({ code: "PARTLY_APPLIED", detail: { because: "TARGETING_INVALID_REQUEST" } });
  expect(state.ready()).toEqual([]);
  // A resumed run tries the whole reversal again.
  driver.record({ t: "resume", at: START + 1 });
  for (const step of [3, 4]) {
    expect(state.ready()).toEqual([step]);
    driver.change([{ step, to: "done", _id: GROUP.id }]);
  }
  expect(state.standing(0)).toBe("failed");
  expect(state.reason(0)).toMatchObject({ code: LIMIT });
});

test("a change of which only some parts were applied has failed if its option does not exist any more", async () => {
  const { state, refuse } = await refusedPart();
  for (const step of [3, 4]) await refuse(step, 404, "TARGETING_CATEGORY_NOT_FOUND");
  expect(state.standing(0)).toBe("failed");
  expect(state.reason(0)).toMatchObject({ code: LIMIT });
});
