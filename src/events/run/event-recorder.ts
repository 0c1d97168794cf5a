import type { Clock } from "../../platform/clock.ts";
import type { Driving } from "../../runs/kind.ts";
import type { EventCall, EventEntry, EventRunState } from "./event-run-state.ts";

/** Records the entries of a run of events, many outcomes in one line. */
export interface EventRecorder {
  readonly record: (entry: EventEntry) => void;
  /** Records the outcome of an event. It is on the disk 100 ms later, unless the disk takes long. */
  readonly settle: (entry: EventEntry) => void;
  /** Resolves when all that was recorded is on the disk. Throws when that fails. */
  readonly flush: () => Promise<void>;
  /** Appends the outcomes that still wait, and ends the writing by itself. */
  readonly end: () => void;
}

/** How long outcomes wait for others to be written with them, in milliseconds; the disk takes some time, too. */
const SETTLED_WAIT_MS = 50;

/** Makes a recorder for which events that were simply accepted take one line for many. */
export function recorder(run: Driving<EventCall, EventEntry, EventRunState>, clock: Clock): EventRecorder {
  const ended = new AbortController();
  let accepted: number[] = [];
  /** When the first event was settled whose outcome is not on the disk yet. */
  let settledAt: number | undefined;
  let isWatched = false;
  const writeAccepted = (): void => {
    if (accepted.length > 0) run.append({ t: "accepted", objects: accepted, at: clock.now() });
    accepted = [];
  };
  const record = (entry: EventEntry): void => {
    writeAccepted();
    run.record(entry);
  };
  /** Writes what was settled once it has waited long enough, unless it was written with something else. */
  const writeInTime = async (): Promise<void> => {
    isWatched = true;
    while (settledAt !== undefined) {
      const left = settledAt + SETTLED_WAIT_MS - clock.now();
      if (left > 0) {
        await sleepUnless(ended.signal, clock, left);
        if (ended.signal.aborted) return;
        continue;
      }
      writeAccepted();
      settledAt = undefined;
      // The next flush throws what goes wrong here.
      run.write();
    }
    isWatched = false;
  };
  return {
    record,
    settle(entry) {
      settledAt ??= clock.now();
      if (!isWatched) void writeInTime();
      if (!isSimplyAccepted(entry)) return record(entry);
      accepted.push(entry.object);
      run.state.apply(entry);
    },
    flush() {
      writeAccepted();
      settledAt = undefined;
      return run.flush();
    },
    end() {
      ended.abort();
      writeAccepted();
    },
  };
}

async function sleepUnless(stopped: AbortSignal, clock: Clock, ms: number): Promise<void> {
  try {
    await clock.sleep(ms, stopped);
  } catch (thrown) {
    if (!stopped.aborted) throw thrown;
  }
}

type Settled = Extract<EventEntry, { readonly t: "settled" }>;

/** Whether an entry says no more than that an event was accepted at the first attempt. */
function isSimplyAccepted(entry: EventEntry): entry is Settled {
  if (entry.t !== "settled" || entry.outcome !== "succeeded" || entry.attempts !== 1) return false;
  return entry.verdict === undefined && entry.maybeTwice === undefined && entry.reason === undefined;
}
