import { expect, test } from "vitest";
import type { JournalEntry } from "../../../src/changes/rows/entries.ts";
import { StepMaker } from "../../../src/changes/rows/steps.ts";
import { takeBack } from "../../../src/changes/settle/take-back.ts";
import { fakeDriver, idAt, START } from "../fake-driver.ts";

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
