import type { KeptLease } from "./lease.ts";
import type { RunJournal } from "./store.ts";

/** Another process has taken a run over: this one drives it no more, and writes nothing about it. */
export class RunTakenOver extends Error {
  constructor() {
    super("another process has taken this run over");
  }
}

/** A journal that its driver writes as long as the run is its own. */
export interface HeldJournal<Entry> extends RunJournal<Entry> {
  /** Whether another process has taken the run over. */
  isLost(): boolean;
  /** Looks whether the run is still held. */
  isHeld(): Promise<boolean>;
}

/**
 * Binds a journal to the lease of its run. A process that stood still may wake up after another one has taken the run
 * over: what it would write then is left out, and `flush` and `close` throw RunTakenOver.
 */
export function heldJournal<Entry>(journal: RunJournal<Entry>, lease: KeptLease): HeldJournal<Entry> {
  let isLost = false;
  const isHeld = async (): Promise<boolean> => {
    isLost ||= !(await lease.renew());
    return !isLost;
  };
  return {
    append: (entry) => journal.append(entry),
    write: () => journal.write(),
    isLost: () => isLost,
    isHeld,
    async flush() {
      if (!(await isHeld())) throw new RunTakenOver();
      await journal.flush();
    },
    async close() {
      if (await isHeld()) return journal.close();
      await journal.close("discard");
      throw new RunTakenOver();
    },
  };
}
