// Requests of rows that follow each other: the next one leaves before the answer of the one before is read.
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { NotSentError } from "../../../src/api/errors.ts";
import type { BulkAnswer } from "../../../src/api/management.ts";
import type { JournalEntry } from "../../../src/changes/rows/entries.ts";
import { drive } from "../../../src/changes/send/drive.ts";
import type { ChangeDriver } from "../../../src/changes/settle/change-driver.ts";
import { RunState } from "../../../src/changes/state/change-state.ts";
import { LeaseLostError, soleTurn } from "../../../src/runs/turn.ts";
import { fakeDriver, idAt } from "../fake-driver.ts";

const TARGETING = idAt(-1000);
const REQUESTS = [
  [0, 1],
  [2, 3],
  [4, 5],
];

/** The answer of the service, whose sums say that all items succeeded, whatever the results say. */
type Answer = (steps: readonly number[]) => BulkAnswer["results"];

const made: Answer = (steps) =>
  steps.map((step, index) => ({ index, success: true, data: { _id: idAt(step), contextCount: 0 } }));

interface Given extends Partial<ChangeDriver> {
  readonly answer?: Answer;
  /** Whether the turn has to be waited for. */
  readonly waits?: boolean;
}

/** Begins to drive six rows in three requests; the log says when each left, and when each was read. */
function begun(given: Given) {
  const { answer = made, waits = false, ...parts } = given;
  const items = Array.from({ length: 6 }, (_, row) => ({ targeting: TARGETING, name: `Row ${row}` }));
  const planned: JournalEntry[] = [
    { t: "rows", index: 0, line: 2, items },
    { t: "planned", requests: 3, at: 0 },
    { t: "newest", targeting: TARGETING, _id: null },
  ];
  const faked = fakeDriver(planned, {
    ...parts,
    send: async (_operation, steps, { fence, beforeReading }) => {
      fence.mayLeave();
      faked.log.push(`leaves ${steps.join(" ")}`);
      fence.hasLeft();
      await setImmediate();
      await beforeReading?.(true);
      faked.log.push(`read ${steps.join(" ")}`);
      return { results: answer(steps) };
    },
  });
  const turn = soleTurn(faked.time);
  const driving = drive(
    faked.driver,
    (work, onWait) => {
      if (waits) onWait();
      return work(turn);
    },
    () => "interrupted",
    REQUESTS,
  );
  return { ...faked, driving };
}

async function driven(given: Given = {}) {
  const { driving, ...faked } = begun(given);
  await driving;
  return faked;
}

/** What a process would find that reads the journal up to an entry. */
function stateAfter(journal: readonly JournalEntry[], entries: number): RunState {
  const state = new RunState();
  for (const entry of journal.slice(0, entries)) state.apply(entry);
  return state;
}

test("a request leaves first, and then the answer before it is read; the last one is read at once", async () => {
  const { log, state } = await driven();
  expect(log).toEqual([
    ...["send", "intend", "leaves 0 1"],
    ...["send", "intend", "leaves 2 3", "read 0 1", "answer"],
    ...["send", "intend", "leaves 4 5", "read 2 3", "answer"],
    ...["read 4 5", "answer", "stop"],
  ]);
  expect(state.counts()).toMatchObject({ succeeded: 6 });
  expect([0, 3, 5].map((row) => state.idOf(row))).toEqual([idAt(0), idAt(3), idAt(5)]);
  expect(state.requests).toMatchObject({ sent: 3, resent: 0 });
});

test("where the turn has to be waited for, it is read before", async () => {
  const { log } = await driven({ waits: true });
  expect(log.filter((line) => /^(leaves|read)/.test(line))).toEqual([
    ...["leaves 0 1", "read 0 1"],
    ...["leaves 2 3", "read 2 3"],
    ...["leaves 4 5", "read 4 5"],
  ]);
});

test("a crash between two requests leaves both in doubt, each since it left", async () => {
  const { journal } = await driven();
  const second = journal.findIndex((entry) => entry.t === "send" && entry.steps[0] === 2);
  const state = new RunState();
  state.apply({ t: "rows", index: 0, items: Array.from({ length: 6 }, () => ({ targeting: TARGETING, name: "x" })) });
  for (const entry of journal.slice(0, second + 1)) state.apply(entry);
  expect(state.lostInFlight()).toEqual([
    [0, 1],
    [2, 3],
  ]);
  state.apply({ t: "stop", cause: "interrupted", at: 99 });
  const since = (step: number) => journal.find((entry) => entry.t === "send" && entry.steps[0] === step);
  expect([0, 1, 2, 3, 4].map((step) => state.suspectSince(step))).toEqual([
    ...[since(0), since(0), since(2), since(2)].map((entry) => (entry?.t === "send" ? entry.at : Number.NaN)),
    undefined,
  ]);
  expect(stateAfter(journal, 0).lostInFlight()).toEqual([]);
});

test("where the next request does not leave, the answer is applied to its own request", async () => {
  let connections = 0;
  const connect: ChangeDriver["connect"] = async (operation) => {
    connections += 1;
    if (connections === 2) throw new NotSentError({ operation, reason: "connection refused" });
  };
  const { state, log } = await driven({ connect });
  expect(state.counts()).toMatchObject({ succeeded: 6 });
  expect(log.filter((line) => /^(leaves|read)/.test(line)).slice(0, 3)).toEqual([
    "leaves 0 1",
    "read 0 1",
    "leaves 2 3",
  ]);
  expect(state.requests).toMatchObject({ sent: 4, resent: 1 });
});

test("a request that is withheld, since the run is to stop, leaves nothing in flight", async () => {
  let asked = 0;
  const stop = new AbortController();
  const { state } = await driven({
    signal: stop.signal,
    mayLeave: async () => {
      asked += 1;
      if (asked === 2) stop.abort();
      return asked === 1;
    },
  });
  expect(state.lostInFlight()).toEqual([]);
  expect(state.counts()).toMatchObject({ succeeded: 2 });
  expect(state.idOf(1)).toBe(idAt(1));
});

test("a lost turn costs the answer nothing", async () => {
  let intents = 0;
  const { state } = await driven({
    intend: async (turn) => {
      intents += 1;
      if (intents === 2) throw new LeaseLostError("another process has it");
      return turn.renew();
    },
  });
  expect(state.counts()).toMatchObject({ succeeded: 6 });
  expect(state.requests).toMatchObject({ sent: 3, resent: 0 });
});

test("results that contradict the sums are in doubt first, and applied once no other request is in flight", async () => {
  const refused: Answer = (steps) =>
    made(steps).map((result) =>
      steps[result.index] === 1
        ? {
            index: result.index,
            success: false,
            error: { statusCode: 400, errorCode: "TARGETING_CONTEXT_LIMIT_EXCEEDED" },
          }
        : result,
    );
  const { state, log, journal } = await driven({ answer: refused });
  expect(log.slice(0, 9)).toEqual([
    ...["send", "intend", "leaves 0 1"],
    ...["send", "intend", "leaves 2 3", "read 0 1", "answer", "answer"],
  ]);
  const [doubt] = journal.flatMap((entry) => (entry.t === "answer" ? [entry.changes] : []));
  expect(doubt).toEqual([0, 1].map((step) => ({ step, to: "suspect" })));
  expect(state.counts()).toMatchObject({ succeeded: 5, failed: 1 });
});

test("an error of this machine before the next request leaves costs the answer nothing", async () => {
  let intents = 0;
  const { driving, state } = begun({
    intend: async (turn) => {
      intents += 1;
      if (intents === 2) throw new Error("no space left on the disk");
      return turn.renew();
    },
  });
  await expect(driving).rejects.toThrow("no space left on the disk");
  expect(state.counts()).toMatchObject({ succeeded: 2 });
  expect(state.lostInFlight()).toEqual([[2, 3]]);
});
