import { type Elsewhere, elsewhere } from "../runs/elsewhere.ts";
import { LastRead } from "../runs/last-read.ts";
import { type RunStatus, restingStatus, summaryOf } from "../runs/report.ts";
import { orUnreadable } from "../runs/store.ts";
import { unplannedState } from "./not-planned.ts";
import type { Plan } from "./plan/plan.ts";
import type { JournalEntry } from "./rows/entries.ts";
import type { ListedRun, Run, RunsContext } from "./run.ts";
import type { ChangeHeader, ChangeStore } from "./run-form.ts";
import { RunState } from "./state/change-state.ts";

/** A run as the disk has it. */
export interface KeptRun {
  readonly header: ChangeHeader;
  readonly started: boolean;
  readonly state: RunState;
  /** Whether it was planned: what it would do, or does, is known. */
  readonly planned: boolean;
}

/**
 * Reads a run; undefined when there is none. One that was not planned yet in its journal stands as what a person was
 * asked about, where somebody was, and else as what its caller gave.
 */
export async function readBack(store: ChangeStore, runId: string): Promise<KeptRun | undefined> {
  const stored = await store.read(runId);
  if (stored === undefined) return undefined;
  const { header, started } = stored;
  const journaled = started ? await stateFrom(stored.entries) : new RunState();
  const { planned } = journaled;
  if (planned || journaled.stopped !== undefined) return { header, started, planned, state: journaled };
  const proposed = await stateFrom(stored.proposed);
  if (proposed.objects.length > 0) return { header, started, planned: true, state: proposed };
  // One that is only kept is about to be planned, or to be started with its plan.
  if (!started && header.unplanned === undefined) return { header, started, planned, state: journaled };
  return { header, started, planned, state: await unplannedState(header.call, store.part(runId, "input")) };
}

async function stateFrom(entries: AsyncIterable<JournalEntry>): Promise<RunState> {
  let state = new RunState();
  for await (const entry of entries) {
    if (entry.t === "replan") state = new RunState();
    else state.apply(entry);
  }
  return state;
}

/** A run that nobody drives. */
function keptRun({ header, started, planned, state }: KeptRun): Run {
  const status = started ? restingStatus(state) : unstartedStatus(header, planned);
  return {
    header,
    state,
    status: () => status,
    asks: () => undefined,
    rest: Promise.resolve(),
    watch: () => () => {},
    stop: () => false,
  };
}

/** A run that another process drives, as it was read last; its counts grow while somebody waits for it. */
function runElsewhere({ header }: KeptRun, driven: Elsewhere<RunState>): Run {
  return {
    header,
    get state() {
      return driven.state();
    },
    status: () => (driven.isDriven() ? "running" : restingStatus(driven.state())),
    asks: () => undefined,
    get rest() {
      return driven.rest();
    },
    watch: (watcher) => driven.watch(watcher),
    stop: () => false,
  };
}

/** A run that was not started waits for a yes, unless nobody could be asked for one since it was never planned. */
function unstartedStatus({ unplanned }: ChangeHeader, planned: boolean): RunStatus {
  return unplanned && !planned ? "interrupted" : "needs_confirmation";
}

/** What is told of a plan to those who look at a run that waits: its objects, without what would be sent. */
export function* proposalOf(plan: Plan): Generator<JournalEntry> {
  for (const entry of plan.entries())
    if (entry.t === "objects" || entry.t === "settled" || entry.t === "facts") yield entry;
}

/** Whether a run was cancelled before it was started: nobody agreed to it, and nothing of it may be sent any more. */
export function isWithdrawn({ stopped }: RunState): boolean {
  const code = stopped?.reason?.code;
  return code === "WITHDRAWN" || code === "DECLINED";
}

/** Reads runs that this process does not drive. */
export class KeptRuns {
  readonly #of: Pick<RunsContext, "store" | "clock">;
  readonly #lastRead = new LastRead<KeptRun>();
  /** The runs that other processes drive, and that somebody here waits for. */
  readonly #followed = new Map<string, Run>();
  readonly #ending = new AbortController();

  constructor(of: Pick<RunsContext, "store" | "clock">) {
    this.#of = of;
  }

  /** A run as the disk has it, and as whoever else drives it goes on with it. */
  async find(runId: string): Promise<Run | undefined> {
    const followed = this.#followed.get(runId);
    if (followed !== undefined) return followed;
    const found = await this.#read(runId);
    if (found === undefined) return undefined;
    const isDriven = () => this.#of.store.isDriven(runId);
    if (found.started && (await isDriven())) return this.#follow(found, isDriven);
    // It may have come to rest in between.
    return keptRun((found.started ? await this.#read(runId) : undefined) ?? found);
  }

  async #read(runId: string): Promise<KeptRun | undefined> {
    const { store } = this.#of;
    return this.#lastRead.get(runId, await store.revision(runId), () => readBack(store, runId));
  }

  /** A run that another process drives; looked at by one for all who wait for it. */
  #follow(found: KeptRun, isDriven: () => Promise<boolean>): Run {
    const { runId } = found.header;
    const { clock } = this.#of;
    const followed: Run = runElsewhere(
      found,
      elsewhere(found.state, {
        clock,
        signal: this.#ending.signal,
        isDriven,
        read: async () => (await this.#read(runId))?.state,
        whileFollowed: async (rest) => {
          this.#followed.set(runId, followed);
          await rest;
          this.#followed.delete(runId);
        },
      }),
    );
    return followed;
  }

  /** Waits for no other process any more. */
  end(): void {
    this.#ending.abort();
  }
}

/**
 * The runs of a caller, the newest first; of those that were not started the ones that wait for a person's yes. `driven`
 * gives the runs that this process drives.
 */
export async function* listedRuns(
  store: ChangeStore,
  caller: string,
  {
    driven,
    find,
  }: {
    readonly driven: (runId: string) => Run | undefined;
    readonly find: (runId: string) => Promise<Run | undefined>;
  },
): AsyncGenerator<ListedRun> {
  for (const runId of await store.list(caller)) {
    const mine = driven(runId);
    if (mine !== undefined) {
      yield { runId, ...summaryOf(mine.header, mine.state, mine.status()) };
      continue;
    }
    const told = await store.summary(runId);
    if (told !== undefined) {
      yield { runId, ...told };
      continue;
    }
    const stored = await orUnreadable(store.read(runId));
    const run = stored && (await orUnreadable(find(runId)));
    // Without anything to agree to, it is about to be started, or its server died before it was.
    if (run === undefined || (!stored?.started && run.state.objects.length === 0)) continue;
    yield { runId, ...summaryOf(run.header, run.state, run.status()) };
  }
}
