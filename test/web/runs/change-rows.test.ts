import { expect, test } from "vitest";
import { RunState } from "../../../src/changes/change-state.ts";
import { StepMaker } from "../../../src/changes/rows/steps.ts";
import { rowsOfEndedRun } from "../../../src/web/change-rows.ts";
import { sent } from "../../changes/fake-driver.ts";

const OPTION = "01BX5ZZKBKACTAV9WEVGEMM001";
const GROUP = "01BX5ZZKBKACTAV9WEVGEMM002";
const OTHER = "01BX5ZZKBKACTAV9WEVGEMM003";

/** Returns what the page shows of a move, of which these lines of previous values are stored. */
async function shownMove(former: readonly object[]) {
  const state = new RunState();
  state.apply({ t: "objects", objects: [{ index: 0, name: "Boots", _id: OPTION }] });
  const step = StepMaker.after({ length: 0 }).updateOption({ id: OPTION }, { parent: GROUP }, { objects: [0] });
  state.apply({ t: "steps", steps: [step] });
  state.apply(sent(0));
  state.apply({ t: "answer", at: 11, changes: [{ step: 0, to: "done", _id: OPTION }] });
  const part = () =>
    async function* () {
      yield Buffer.from(former.map((line) => `${JSON.stringify(line)}\n`).join(""));
    };
  const { rows } = await rowsOfEndedRun({ header: { runId: "run" }, state }, new Map(), { runs: { part } });
  return rows.map(({ before, after }) => [before?.within, after?.within]);
}

test("a move whose previous group was not read is not shown as one from the top level", async () => {
  expect(await shownMove([])).toEqual([["an unknown place", `group ${GROUP}`]]);
  const previous = { kind: "option", _id: OPTION, name: "Boots", type: "atomic" };
  expect(await shownMove([{ ...previous, parent: null }])).toEqual([[null, `group ${GROUP}`]]);
  expect(await shownMove([{ ...previous, parent: OTHER }])).toEqual([[`group ${OTHER}`, `group ${GROUP}`]]);
});
