import { describe, expect, test } from "vitest";
import type { Step } from "../../../src/changes/rows/entries.ts";
import { StepMaker } from "../../../src/changes/rows/steps.ts";
import { breakCycles } from "../../../src/changes/settle/drive.ts";
import { entriesOf, fakeDriver, idAt, sent } from "../fake-driver.ts";

const IDS = [idAt(0), idAt(1)] as const;
const taken = (id: string) => ({ code: "TARGETING_CATEGORY_NAME_DUPLICATE", detail: { existingIds: [id] } });

/** Two options that should swap their names, and were both refused. `more` returns what else each of them changes. */
function swapped(more: (index: number) => object) {
  const make = StepMaker.after({ length: 0 });
  const steps = IDS.map(
    (id, object): Step =>
      make.updateOption({ id }, { name: `Of ${1 - object}`, ...more(object) }, { objects: [object] }),
  );
  const changes = IDS.map((_, step) => ({ step, to: "deferred" as const, reason: taken(idAt(1 - step)) }));
  return fakeDriver([...entriesOf(steps), sent(...steps.keys()), { t: "answer", at: 11, changes }]);
}

describe("a circle", () => {
  test("takes along what its one member changes besides, so that this is refused before any name has moved", () => {
    const { driver, state } = swapped((index) => (index === 1 ? { exposeChildren: true } : {}));
    const [step] = breakCycles(driver, state.deferredSteps());
    expect(step?.bindings).toEqual([{ field: "_id", id: IDS[1] }]);
    expect(step?.item).toMatchObject({ exposeChildren: true });
  });

  test("is left alone where several members change more than their names", () => {
    const { driver, state } = swapped(() => ({ exposeChildren: true }));
    expect(breakCycles(driver, state.deferredSteps())).toEqual([]);
  });
});
