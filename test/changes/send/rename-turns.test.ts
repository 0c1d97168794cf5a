import { describe, expect, test } from "vitest";
import type { JournalEntry, Step } from "../../../src/changes/rows/entries.ts";
import { StepMaker } from "../../../src/changes/rows/steps.ts";
import { breakCycles, inTurn, retryOrderOf } from "../../../src/changes/settle/drive.ts";
import { fakeDriver, idAt } from "../fake-driver.ts";

const IDS = [idAt(0), idAt(1), idAt(2)] as const;
const taken = (id: string) => ({ code: "TARGETING_CATEGORY_NAME_DUPLICATE", detail: { existingIds: [id] } });

/** Options 0, 1, 2, each of which was refused the name of the option that `wants` gives it. */
function refused(wants: readonly number[], more: (index: number) => object = () => ({})) {
  const make = StepMaker.after({ length: 0 });
  const steps = wants.map(
    (_, object): Step =>
      make.updateOption(
        { id: IDS[object] ?? "" },
        { name: `Of ${wants[object]}`, ...more(object) },
        { objects: [object] },
      ),
  );
  const changes = wants.map((wanted, step) => ({ step, to: "deferred" as const, reason: taken(IDS[wanted] ?? "") }));
  const entries: JournalEntry[] = [
    { t: "objects", objects: wants.map((_, index) => ({ index })) },
    { t: "steps", steps },
    { t: "send", steps: steps.map(({ id }) => id), at: 10, again: false },
    { t: "answer", at: 11, changes },
  ];
  return fakeDriver(entries);
}

test("in a chain, each follows the one whose name it wants", () => {
  // 0 wants the name of 1, and 1 that of 2, which is free by then.
  const { state } = refused([1, 2]);
  expect(inTurn([0, 1], retryOrderOf(state))).toEqual([1, 0]);
});

test("steps without a turn leave first, in their order", () => {
  const { state } = refused([1, 2]);
  expect(inTurn([0, 5, 1, 4], retryOrderOf(state))).toEqual([5, 4, 1, 0]);
  expect(inTurn([2, 0], new Map())).toEqual([2, 0]);
});

describe("a circle", () => {
  test("is broken by a temporary name for one of its members, which remembers its old name", () => {
    const { driver, state } = refused([1, 2, 0]);
    const steps = breakCycles(driver, state.deferredSteps());
    expect(steps).toHaveLength(1);
    expect(steps[0]).toMatchObject({ operation: "updateOptions", prepares: true, id: 3 });
    expect(steps[0]?.item?.name).toMatch(/^tmp [0-9A-Z]{26}$/);
    // What the renames before it wants is the name that the option has now.
    expect([0, 1, 2].map((index) => `Of ${index}`)).toContain(steps[0]?.formerName);
  });

  test("takes along what its one member changes besides, so that this is refused before any name has moved", () => {
    const { driver, state } = refused([1, 0], (index) => (index === 1 ? { exposeChildren: true } : {}));
    const [step] = breakCycles(driver, state.deferredSteps());
    expect(step?.bindings).toEqual([{ field: "_id", id: IDS[1] }]);
    expect(step?.item).toMatchObject({ exposeChildren: true });
  });

  test("is left alone where several members change more than their names", () => {
    const { driver, state } = refused([1, 0], () => ({ exposeChildren: true }));
    expect(breakCycles(driver, state.deferredSteps())).toEqual([]);
  });

  test("is not seen in a chain", () => {
    const { driver, state } = refused([1, 2]);
    expect(breakCycles(driver, state.deferredSteps())).toEqual([]);
  });
});
