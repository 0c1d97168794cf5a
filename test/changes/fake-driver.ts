import type { BulkAnswer, ManagementApi } from "../../src/api/management.ts";
import { RunState } from "../../src/changes/change-state.ts";
import type { JournalEntry, Step, StepChange } from "../../src/changes/rows/entries.ts";
import { type ChangeDriver, ServerClock } from "../../src/changes/settle/evidence.ts";
import { permitWithoutLease } from "../../src/runs/turn.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import { VirtualTime } from "../faults/virtual-time.ts";
import { type HeldOption, readingApi } from "../support/tool-context.ts";

/** The time at which these tests start, in milliseconds since 1970. */
export const START = Date.UTC(2026, 2, 1, 12);

/** What a test decides about a driver. */
interface Given
  extends Partial<Pick<ChangeDriver, "onExisting" | "apartBy" | "lease" | "mayLeave" | "intend" | "connect">> {
  /** The options that reads return. */
  readonly held?: readonly HeldOption[];
  readonly api?: Partial<ManagementApi>;
  /** Return the answers to the requests, in order. */
  readonly answers?: readonly (() => BulkAnswer)[];
}

/** Creates a driver in virtual time whose journal is a list. `log` lists what happened, in order. */
export function fakeDriver(entries: readonly JournalEntry[], given: Given = {}) {
  const time = new VirtualTime(START);
  const state = new RunState();
  for (const entry of entries) state.apply(entry);
  const journal: JournalEntry[] = [];
  const log: string[] = [];
  const stop = new AbortController();
  const answers = [...(given.answers ?? [])];
  const record = (entry: JournalEntry): void => {
    journal.push(entry);
    log.push(entry.t);
    state.apply(entry);
  };
  const { held = [], api, answers: _, ...parts } = given;
  const driver: ChangeDriver = {
    api: { ...readingApi(held).api, ...api },
    state,
    clock: time,
    serverClock: new ServerClock(),
    random: () => 0.5,
    retryBudgetMs: 10_000,
    onExisting: "fail",
    signal: stop.signal,
    record,
    change: (changes, more = {}) => record({ t: "answer", at: time.now(), changes, ...more }),
    madeBefore: async () => undefined,
    flush: async () => void log.push("flush"),
    intend: (turn) => {
      log.push("intend");
      return turn.renew();
    },
    mayAnnounce: () => !stop.signal.aborted,
    mayLeave: async () => !stop.signal.aborted,
    lease: permitWithoutLease(time),
    compareAt: Number.POSITIVE_INFINITY,
    lostCreates: undefined,
    changedSince: async () => undefined,
    connect: async () => {},
    send: async (operation, steps) => {
      log.push(`${operation} ${steps.join(" ")}`);
      time.advance(10);
      const answer = answers.shift();
      if (answer === undefined) throw new RangeError("the test expects no further request");
      return answer();
    },
    progress: (ms) => void log.push(`waits ${ms}`),
    ...parts,
  };
  return { driver, state, time, journal, log, stop };
}

/** Returns the journal entries of a plan with these steps. */
export function entriesOf(steps: readonly Step[]): readonly JournalEntry[] {
  const count = Math.max(...steps.flatMap(({ objects }) => objects)) + 1;
  const objects = Array.from({ length: count }, (_, index) => ({ index }));
  return [
    { t: "objects", objects },
    { t: "steps", steps },
  ];
}

/** Returns the journal entry of a request that was sent with these steps. */
export const sent = (...steps: readonly number[]): JournalEntry => ({ t: "send", steps, at: 10, again: false });

/** Returns a ULID that was created this many milliseconds after the start. */
export function idAt(afterMs: number): string {
  return ulidSource(
    () => START + afterMs,
    () => 0.25,
  )();
}

/** Returns the changes in the answers of a journal, as `step to code`. */
export function changesIn(journal: readonly JournalEntry[]): readonly string[] {
  return journal.flatMap((entry) => (entry.t === "answer" ? entry.changes.map(words) : []));
}

function words(change: StepChange): string {
  return "reason" in change ? `${change.step} ${change.to} ${change.reason.code}` : `${change.step} ${change.to}`;
}
