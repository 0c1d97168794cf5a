import type { Clock } from "../api/clock.ts";
import type { RunJournal } from "../bulk/store.ts";
import type { EventEntry, EventRunState } from "./event-run-state.ts";

/** Writes what happens to a run into its journal and its state. */
export interface EventRecorder {
  readonly record: (entry: EventEntry) => void;
  /** Records what became of an event. It need not be on the disk before the next flush. */
  readonly settle: (entry: EventEntry) => void;
  /** Writes what `settle` was told and the journal does not have yet. */
  readonly end: () => void;
}

/** Makes a recorder for which events that were simply accepted take one line for many. */
export function recorder(journal: RunJournal<EventEntry>, state: EventRunState, clock: Clock): EventRecorder {
  let accepted: number[] = [];
  const end = (): void => {
    if (accepted.length > 0) journal.append({ t: "accepted", objects: accepted, at: clock.now() });
    accepted = [];
  };
  const record = (entry: EventEntry): void => {
    end();
    journal.append(entry);
    state.apply(entry);
  };
  return {
    record,
    settle(entry) {
      if (!isSimplyAccepted(entry)) return record(entry);
      accepted.push(entry.object);
      state.apply(entry);
    },
    end,
  };
}

type Settled = Extract<EventEntry, { readonly t: "settled" }>;

/** Whether an entry says no more than that an event was accepted at the first attempt. */
function isSimplyAccepted(entry: EventEntry): entry is Settled {
  if (entry.t !== "settled" || entry.outcome !== "succeeded" || entry.attempts !== 1) return false;
  return entry.verdict === undefined && entry.maybeTwice === undefined && entry.reason === undefined;
}
