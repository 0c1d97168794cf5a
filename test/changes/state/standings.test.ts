import { describe, expect, test } from "vitest";
import { ObjectList, StepList, StepMaker } from "../../../src/changes/rows/steps.ts";
import { Outcomes, StepStandings } from "../../../src/changes/state/standings.ts";
import { idAt } from "../fake-driver.ts";

const reason = { code: "X" };

function threeObjects() {
  const objects = new ObjectList();
  for (const index of [0, 1, 2]) objects.add({ index, ...(index === 1 && { _id: idAt(1) }) });
  return objects;
}

describe("outcomes", () => {
  test("count every object exactly once, however often it moves", () => {
    const outcomes = new Outcomes(threeObjects());
    outcomes.settle({ object: 0, outcome: "succeeded", _id: idAt(5) });
    outcomes.settle({ object: 1, outcome: "failed", reason });
    outcomes.settle({ object: 1, outcome: "succeeded" });
    outcomes.settle({ object: 2, outcome: "notApplied", reason });
    outcomes.settle({ object: 2, outcome: "unknown", reason });
    expect(outcomes.counts()).toEqual({
      pending: 0,
      succeeded: 1,
      alreadyDone: 0,
      failed: 1,
      notApplied: 0,
      unknown: 1,
    });
    expect([0, 1, 2].map((object) => outcomes.reason(object))).toEqual([undefined, reason, reason]);
  });

  test("give the ID of the service before that of the caller", () => {
    const outcomes = new Outcomes(threeObjects());
    expect([outcomes.idOf(0), outcomes.idOf(1)]).toEqual([undefined, idAt(1)]);
    outcomes.giveId(0, idAt(7));
    expect(outcomes.idOf(0)).toBe(idAt(7));
  });

  test("what is in doubt again is unknown, and only what did not succeed is tried again", () => {
    const outcomes = new Outcomes(threeObjects());
    outcomes.settle({ object: 0, outcome: "succeeded" });
    outcomes.settle({ object: 1, outcome: "alreadyDone" });
    outcomes.doubt(0, reason);
    outcomes.doubt(2, reason);
    expect([0, 1, 2].map((object) => outcomes.standing(object))).toEqual(["unknown", "alreadyDone", "pending"]);
    for (const object of [0, 1, 2]) outcomes.reopen(object);
    expect([0, 1, 2].map((object) => outcomes.standing(object))).toEqual(["pending", "alreadyDone", "pending"]);
    expect(outcomes.reason(0)).toBeUndefined();
  });

  test("follow objects that are added later", () => {
    const objects = threeObjects();
    const outcomes = new Outcomes(objects);
    objects.add({ index: 3 });
    outcomes.follow();
    expect(outcomes.counts().pending).toBe(4);
  });
});

describe("standings", () => {
  function standingsOf() {
    const steps = new StepList();
    const make = StepMaker.after({ length: 0 });
    steps.add(make.updateOption({ id: idAt(1) }, { name: "A" }, { objects: [0] }));
    steps.add(make.updateOption({ id: idAt(1) }, { name: "tmp" }, { objects: [0], prepares: true }));
    steps.add(make.deleteOption({ object: 1 }, false, { objects: [2] }));
    return new StepStandings(steps, threeObjects());
  }

  test("know which steps are about an object, change an ID, or need what the run makes", () => {
    const standings = standingsOf();
    expect(standings.ofObject(0)).toEqual([0, 1]);
    expect(standings.changing(idAt(1))).toEqual([0, 1]);
    expect(standings.boundTo(1)).toEqual([2]);
  });

  test("steps that prepare others come first among those that are pending", () => {
    expect([...standingsOf().inOrder()]).toEqual([1, 0, 2]);
  });

  test("a deferred step is open, and not pending, until it is tried again", () => {
    const standings = standingsOf();
    standings.defer(0, { reason, progress: 3 });
    expect([...standings.pending()]).toEqual([1, 2]);
    expect(standings.isOpen(0)).toBe(true);
    expect(standings.deferred()).toEqual([{ id: 0, reason, progress: 3 }]);
    standings.set(0, "pending");
    expect(standings.deferred()).toEqual([]);
    expect([...standings.pending()]).toEqual([0, 1, 2]);
  });

  test("the first time at which a step in doubt left counts", () => {
    const standings = standingsOf();
    standings.suspect(0, 10);
    standings.suspect(0, 20);
    expect(standings.suspectSince(0)).toBe(10);
    standings.clearSuspicion(0);
    expect(standings.suspectSince(0)).toBeUndefined();
  });

  test("an object has all done once its steps are, but for one that only prepares others", () => {
    const standings = standingsOf();
    expect(standings.hasAllDone(0)).toBe(false);
    standings.set(0, "done");
    expect(standings.hasAllDone(0)).toBe(true);
    expect([standings.isTouched(0), standings.isTouched(2)]).toEqual([true, false]);
  });
});
