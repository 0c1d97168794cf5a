import type { ManagementApi } from "../../src/api/management.ts";
import type { Line, RunJournal, RunStore } from "../../src/runs/store.ts";
import type { Lease } from "../../src/runs/turn.ts";
import type { Random } from "./random.ts";

/** Thrown by every action of a killed process, so that it does nothing more. */
export class Killed extends Error {}

/** A process that is killed after a certain number of actions, as by `kill -9`. */
export interface MortalProcess {
  readonly store: RunStore;
  readonly api: ManagementApi;
  isDead(): boolean;
  /** Ends the leases of the killed process, as the system does. */
  bury(): Promise<void>;
}

/**
 * Lets an engine run in a process that can be killed. Journal entries, flushes and requests count as actions. At action
 * number `dieAt`, the process dies before or after the action, and does nothing more. What was not flushed is lost,
 * except a random part of its beginning, because a disk may have written that.
 */
export function mortalProcess(
  { store, api }: { readonly store: RunStore; readonly api: ManagementApi },
  dieAt: number,
  random: Random,
): MortalProcess {
  const life = new Life(dieAt);
  const leases: Lease[] = [];
  const held = async (take: () => Promise<Lease | undefined>): Promise<Lease | undefined> => {
    const lease = await life.during(async () => {
      const taken = await take();
      if (taken !== undefined) leases.push(taken);
      return taken;
    });
    return lease && { ...lease, release: () => life.during(() => lease.release()) };
  };
  return {
    isDead: () => life.isOver(),
    bury: async () => {
      for (const lease of leases) await lease.release();
    },
    store: {
      ...store,
      update: (runId, record, lease) => life.during(() => store.update(runId, record, lease)),
      parts: {
        ...store.parts,
        keep: (runId, part, pieces) => life.during(() => store.parts.keep(runId, part, pieces)),
      },
      lease: (runId) => held(() => store.lease(runId)),
      journal: async (runId, lease) => mortalJournal(await store.journal(runId, lease), life, random),
    },
    api: {
      bulk: (...call) => life.during(() => api.bulk(...call)),
      getTargeting: (...call) => life.during(() => api.getTargeting(...call)),
      listOptions: (...call) => life.during(() => api.listOptions(...call)),
      getOption: (...call) => life.during(() => api.getOption(...call)),
    },
  };
}

/** A store whose disk is full after this many flushes. What is flushed later is lost. */
export function storeOnFullDisk(store: RunStore, flushes: number): RunStore {
  let left = flushes;
  return {
    ...store,
    journal: async (runId, lease) => {
      const journal = await store.journal(runId, lease);
      const buffer: Line[] = [];
      const flush = async (): Promise<void> => {
        if (left === 0) throw new Error("no space left on device");
        left -= 1;
        for (const line of buffer.splice(0)) journal.append(line);
        await journal.flush();
      };
      return {
        ...journal,
        append: (line) => void buffer.push(line),
        flush,
        intend: async (turn) => {
          await flush();
          return journal.intend(turn);
        },
        write: async () => {},
        close: async () => {
          await flush();
          await journal.close();
        },
      };
    },
  };
}

class Life {
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  isOver(): boolean {
    return this.#left < 0;
  }

  /** Returns whether the process is killed at the next action. */
  isEnding(): boolean {
    return this.#left === 0;
  }

  /** Counts an action. Throws Killed if the process dies before it. */
  live(): void {
    if (!this.isOver()) this.#left -= 1;
    if (this.isOver()) throw new Killed("killed");
  }

  /** Runs `work` as one action. The process may die before it, or after it but before anyone gets the result. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.live();
    try {
      return await work();
    } finally {
      this.live();
    }
  }
}

function mortalJournal(journal: RunJournal, life: Life, random: Random): RunJournal {
  const buffer: Line[] = [];
  const handOver = (): void => {
    const count = life.isEnding() ? random.below(buffer.length + 1) : buffer.length;
    for (const line of buffer.splice(0, count)) journal.append(line);
  };
  const flush = async (): Promise<void> => {
    if (!life.isOver()) {
      handOver();
      await journal.flush();
    }
    life.live();
  };
  return {
    ...journal,
    append: (line) => {
      life.live();
      buffer.push(line);
    },
    flush,
    intend: async (turn) => {
      if (!life.isOver()) handOver();
      const intent = await journal.intend(turn);
      life.live();
      return intent;
    },
    write: async () => {},
    close: async () => {
      await flush();
      await journal.close();
    },
  };
}
