import { describe, expect, test } from "vitest";
import type { Backend } from "../../src/runs/backend.ts";
import { moveRun, type RunRecord, type RunStore, type Status, transition } from "../../src/runs/store.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";

// All transitions of a run, repeated here by hand from the design. Each is tested together with each other one.

const newRunId = ulidSource(Date.now, Math.random);

/** For each transition, the statuses before it and the status after it. */
export const MOVES = {
  "a plan is stored": { from: ["planning", "planned", "waiting"], to: "planned" },
  "an approval is asked for": { from: ["planning", "planned", "waiting"], to: "waiting" },
  "it is started": { from: ["planning", "planned", "waiting"], to: "running" },
  "it is claimed": { from: ["running"], to: "running" },
  "it is resumed": { from: ["interrupted", "finished", "cancelled"], to: "running" },
  "it cannot be planned now": { from: ["planning", "planned", "waiting"], to: "interrupted" },
  "it cannot be planned": { from: ["planning", "planned", "waiting"], to: "finished" },
  "its process ends": { from: ["running"], to: "interrupted" },
  "all is resolved": { from: ["running"], to: "finished" },
  "it is cancelled before": { from: ["planning", "planned", "waiting"], to: "cancelled", isFinal: true },
  "it is cancelled": { from: ["running"], to: "cancelled" },
  "it is cancelled at rest": { from: ["interrupted"], to: "cancelled" },
  "it is undone": { from: ["running", "interrupted", "finished", "cancelled"], to: "cancelled", isFinal: true },
  "it is declined": { from: ["planned", "waiting"], to: "declined" },
  "it expires": { from: ["planned", "waiting"], to: "expired" },
} as const satisfies Readonly<
  Record<string, { readonly from: readonly Status[]; readonly to: Status; readonly isFinal?: true }>
>;
type Move = (typeof MOVES)[keyof typeof MOVES];

export const ALL = [
  ...["planning", "planned", "waiting", "running", "interrupted", "finished", "cancelled", "declined", "expired"],
] as const satisfies readonly Status[];

/** For each status, the statuses that lead to it in order. */
const WAYS: Readonly<Record<Status, readonly Status[]>> = {
  planning: [],
  planned: ["planned"],
  waiting: ["waiting"],
  running: ["running"],
  interrupted: ["running", "interrupted"],
  finished: ["running", "finished"],
  cancelled: ["running", "cancelled"],
  declined: ["waiting", "declined"],
  expired: ["waiting", "expired"],
};

export async function runAt(store: RunStore, status: Status): Promise<string> {
  const runId = newRunId();
  await store.create({
    ...{ runId, kind: "changes", call: { tool: "t", input: {} }, project: "p", caller: "c", environment: "sandbox" },
    ...{ createdAt: 1, fingerprint: "f" },
  });
  for (const next of WAYS[status]) await moveRun(store, runId, () => ({ status: next }));
  return runId;
}

export function mayBe(move: Move, status: Status): boolean {
  return move.from.some((from) => from === status);
}

/** Makes a transition for a process that has read the record before. It fails if another process was faster. */
async function moved(store: RunStore, runId: string, move: Move, read: RunRecord): Promise<boolean> {
  const isFinal = "isFinal" in move ? { isFinal: move.isFinal } : {};
  const after = mayBe(move, read.status) ? transition(read, { status: move.to, ...isFinal }) : undefined;
  return after !== undefined && store.update(runId, after);
}

/** Tests that every store must pass when two processes change the status of a run. */
export function transitionContract(name: string, make: () => Promise<readonly [Backend, Backend]>): void {
  describe(`${name}: transitions`, () => {
    test("of two transitions by what was read at the same time one counts, and the other fails", async () => {
      const [{ runs: one }, { runs: other }] = await make();
      for (const status of ALL) {
        for (const first of Object.values(MOVES)) {
          if (!mayBe(first, status)) continue;
          for (const second of Object.values(MOVES)) {
            if (!mayBe(second, status)) continue;
            const runId = await runAt(one, status);
            const read = await one.record(runId);
            if (read === undefined) throw new Error("it was created");
            const did = await Promise.all([moved(one, runId, first, read), moved(other, runId, second, read)]);
            expect({ status, first, second, did: did.toSorted() }).toEqual({
              status,
              first,
              second,
              did: [false, true],
            });
            const to = did[0] ? first.to : second.to;
            expect(await other.record(runId)).toMatchObject({ version: read.version + 1, status: to });
          }
        }
      }
    });

    test("a transition that comes late is judged by where the run stands then", async () => {
      const [{ runs: one }, { runs: other }] = await make();
      for (const first of Object.values(MOVES)) {
        for (const second of Object.values(MOVES)) {
          const [status] = first.from;
          const runId = await runAt(one, status);
          const isFinal = "isFinal" in first;
          expect(await moveRun(one, runId, () => ({ status: first.to, ...(isFinal && { isFinal }) }))).toBeDefined();
          const late = await moveRun(other, runId, (read) =>
            mayBe(second, read.status) ? { status: second.to } : undefined,
          );
          const isStill = !isFinal && mayBe(second, first.to);
          expect({ first, second, status: late?.status }).toEqual({
            ...{ first, second, status: isStill ? second.to : undefined },
          });
          expect((await one.record(runId))?.status).toBe(isStill ? second.to : first.to);
        }
      }
    });
  });
}
