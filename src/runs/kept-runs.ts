import { type Elsewhere, elsewhere } from "./elsewhere.ts";
import { understood } from "./entries.ts";
import type { ReadBack, Run, RunKind, RunsContext, RunView, ToolCall } from "./kind.ts";
import { LastRead } from "./last-read.ts";
import { type RunStatus, restingStatus } from "./report.ts";
import type { RunHeader } from "./store.ts";

/** A run of a kind as it was read. */
export interface KeptRun<Call, Entry, State> extends ReadBack<Entry, State> {
  readonly header: RunHeader<Call>;
  readonly started: boolean;
}

type World = Pick<RunsContext, "store" | "clock">;

/**
 * Reads a run; undefined where there is none, it is of another kind, or another process is just starting it.
 * `isDrivenHere` says that it is this process which holds its lease.
 */
export async function readBack<Call extends ToolCall, Entry, State extends RunView<Entry>, Given>(
  kind: RunKind<Call, Entry, State, Given>,
  { store }: Pick<World, "store">,
  runId: string,
  isDrivenHere = false,
): Promise<KeptRun<Call, Entry, State> | undefined> {
  const found = await store.read(runId);
  const stored = found && understood(kind, found);
  const read =
    stored &&
    (await kind.readBack({
      ...stored,
      part: (name) => store.part(runId, name),
      summary: () => store.summary(runId),
      isDriven: async () => !isDrivenHere && (await store.isDriven(runId)),
    }));
  return read && { header: stored.header, started: stored.started, ...read };
}

/** Reads the runs of a kind that this process does not drive. */
export class KeptRuns<Call extends ToolCall, Entry, State extends RunView<Entry>, Given> {
  readonly #kind: RunKind<Call, Entry, State, Given>;
  readonly #of: World;
  readonly #lastRead = new LastRead<KeptRun<Call, Entry, State>>();
  /** The runs that other processes drive, and that a call here waits for. */
  readonly #followed = new Map<string, Run<Call, State>>();
  readonly #ending = new AbortController();

  constructor(kind: RunKind<Call, Entry, State, Given>, of: World) {
    this.#kind = kind;
    this.#of = of;
  }

  /** A run as it is kept, and as the process that drives it goes on with it. */
  async find(runId: string): Promise<Run<Call, State> | undefined> {
    const followed = this.#followed.get(runId);
    if (followed !== undefined) return followed;
    const found = await this.#read(runId);
    if (found === undefined) return undefined;
    const mayBeDriven = found.started || !this.#kind.mayWait;
    const isDriven = () => this.#of.store.isDriven(runId);
    if (mayBeDriven && (await isDriven())) return this.#follow(found, isDriven);
    // It may have come to rest in between.
    return this.#atRest((mayBeDriven ? await this.#read(runId) : undefined) ?? found);
  }

  /** Waits for no other process any more. */
  end(): void {
    this.#ending.abort();
  }

  async #read(runId: string): Promise<KeptRun<Call, Entry, State> | undefined> {
    const { store } = this.#of;
    const read = () => readBack(this.#kind, this.#of, runId);
    return this.#lastRead.get(runId, await store.revision(runId), read);
  }

  #atRest(found: KeptRun<Call, Entry, State>): Run<Call, State> {
    const { header, state } = found;
    for (const entry of this.#kind.lost?.(state) ?? []) state.apply(entry);
    const status = statusOf(found, this.#kind.mayWait);
    return {
      ...{ kind: this.#kind.name, header, state },
      ...{ kept: Promise.resolve(), rest: Promise.resolve() },
      status: () => status,
      watch: () => () => {},
      stop: () => false,
    };
  }

  /** A run that another process drives; looked at by one for all who wait for it. */
  #follow({ header, state }: KeptRun<Call, Entry, State>, isDriven: () => Promise<boolean>): Run<Call, State> {
    const { runId } = header;
    const driven: Elsewhere<State> = elsewhere(state, {
      clock: this.#of.clock,
      signal: this.#ending.signal,
      isDriven,
      read: async () => (await this.#read(runId))?.state,
      whileFollowed: async (rest) => {
        this.#followed.set(runId, run);
        await rest;
        this.#followed.delete(runId);
      },
    });
    const run: Run<Call, State> = {
      kind: this.#kind.name,
      header,
      get state() {
        return driven.state();
      },
      status: () => (driven.isDriven() ? "running" : restingStatus(driven.state())),
      kept: Promise.resolve(),
      get rest() {
        return driven.rest();
      },
      watch: (watcher) => driven.watch(watcher),
      stop: () => false,
    };
    return run;
  }
}

/** A run that was not started waits for a yes, unless nobody could be asked for one since it was never planned. */
function statusOf<Call, Entry, State extends RunView<Entry>>(
  { header, started, isProposed, state }: KeptRun<Call, Entry, State>,
  mayWait: boolean,
): RunStatus {
  if (started || !mayWait) return restingStatus(state);
  return header.unplanned && !isProposed ? "interrupted" : "needs_confirmation";
}
