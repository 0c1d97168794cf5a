import type { ByteSource } from "../platform/bytes.ts";
import { orUnreadable, type RunPart, type RunStore } from "./backend/store.ts";
import { isOfKind, toolOf } from "./entries.ts";
import type { ListedRun, Run, RunForm, RunsContext } from "./kind.ts";
import { summaryOf } from "./report.ts";

/** The runs of one kind, for those who know no kind. */
export interface AnyKindRuns {
  readonly kind: Pick<RunForm<unknown, unknown>, "name" | "tools">;
  readonly isDriving: boolean;
  driven(runId: string): Run | undefined;
  find(runId: string): Promise<Run | undefined>;
  resume(runId: string): Promise<Run | undefined>;
  cancel(runId: string): Promise<Run | undefined>;
  withdraw(runId: string): Promise<Run | undefined>;
  stopAll(): Promise<void>;
  tidyLeft(): Promise<void>;
}

/** A run that was cut short and waits to be taken up. */
export interface Interrupted {
  readonly runId: string;
  readonly tool: string;
}

/** How many runs are looked at for those that were interrupted, however many are kept. */
const LOOKED_AT = 20;

/** All runs of a project, of whatever kind. What is kept of a kind that is not among these is left alone. */
export class Runs {
  readonly #store: RunStore;
  readonly #of: Pick<RunsContext, "project" | "environment">;
  readonly #kinds: readonly AnyKindRuns[];

  constructor(
    { store, project, environment }: Pick<RunsContext, "store" | "project" | "environment">,
    kinds: readonly AnyKindRuns[],
  ) {
    this.#store = store;
    this.#of = { project, environment };
    this.#kinds = kinds;
  }

  /** Whether this process drives any run now. */
  get isDriving(): boolean {
    return this.#kinds.some(({ isDriving }) => isDriving);
  }

  /** A run by its ID, driven or at rest; undefined when there is none. Throws a RunStoreError where it cannot be read. */
  async find(runId: string): Promise<Run | undefined> {
    return this.#driven(runId) ?? (await this.#kindOf(runId))?.find(runId);
  }

  /** Takes up a run where it stopped. Gives it as it is where somebody drives it, or it waits; undefined: there is none. */
  async resume(runId: string): Promise<Run | undefined> {
    return this.#driven(runId) ?? (await this.#kindOf(runId))?.resume(runId);
  }

  /**
   * Cancels a run, in whatever process it is driven: nothing more leaves once this has resolved, but for requests whose
   * intent is on the disk. Gives the run; undefined when there is none.
   */
  async cancel(runId: string): Promise<Run | undefined> {
    return (await this.#kindOf(runId))?.cancel(runId);
  }

  /** Ends a run that was not started, so that nobody can start it any more; undefined where there is none such. */
  async withdraw(runId: string): Promise<Run | undefined> {
    return (await this.#kindOf(runId))?.withdraw(runId);
  }

  /** The runs of a caller, the newest first; of those that were not started the ones that wait for a person's yes. */
  async *list(caller: string): AsyncGenerator<ListedRun> {
    for (const kind of this.#kinds) await kind.tidyLeft();
    for (const runId of await this.#store.list(caller)) {
      const told = this.#driven(runId) === undefined ? await this.#store.summary(runId) : undefined;
      const listed = told ?? (await this.#lookedAt(runId));
      if (listed?.caller === caller && this.#knows(listed.tool)) yield { runId, ...listed };
    }
  }

  /** The runs of a caller that were cut short and that nobody goes on with, the newest first; a few of them. */
  async interrupted(caller: string): Promise<readonly Interrupted[]> {
    const found: Interrupted[] = [];
    for (const runId of (await this.#store.unfinished({ caller, ...this.#of })).slice(0, LOOKED_AT)) {
      const told = await this.#store.summary(runId);
      if ((told !== undefined && told.status !== "interrupted") || this.#driven(runId) !== undefined) continue;
      const tool = told?.tool ?? (await this.#startedTool(runId));
      if (tool !== undefined && this.#knows(tool) && !(await this.#store.isDriven(runId))) found.push({ runId, tool });
    }
    return found;
  }

  /** What was kept of a run beside its journal. */
  part(runId: string, part: RunPart): ByteSource {
    return this.#store.part(runId, part);
  }

  /** Stops all runs between two requests, and resolves when the requests in flight are answered and journaled. */
  async stopAll(): Promise<void> {
    await Promise.all(this.#kinds.map((kind) => kind.stopAll()));
  }

  /** Removes runs that need not be kept any longer. */
  tidy(): Promise<void> {
    return this.#store.tidy();
  }

  #driven(runId: string): Run | undefined {
    for (const kind of this.#kinds) {
      const run = kind.driven(runId);
      if (run !== undefined) return run;
    }
    return undefined;
  }

  #knows(tool: string): boolean {
    return this.#kinds.some(({ kind }) => kind.tools.includes(tool));
  }

  async #kindOf(runId: string): Promise<AnyKindRuns | undefined> {
    const driven = this.#kinds.find((kind) => kind.driven(runId) !== undefined);
    if (driven !== undefined) return driven;
    const stored = await this.#store.read(runId);
    return stored && this.#kinds.find(({ kind }) => isOfKind(kind, stored.header));
  }

  /** A run in short that has none kept; undefined where it cannot be read, or there is nothing of it yet. */
  async #lookedAt(runId: string) {
    const stored = await orUnreadable(this.#store.read(runId));
    const run = stored && (await orUnreadable(this.find(runId)));
    // Without anything to agree to, it is about to be started, or its server died before it was.
    if (run === undefined || (!stored?.started && run.state.objects.length === 0)) return undefined;
    return summaryOf(run.header, run.state, run.status());
  }

  /** The tool of a run that was started; undefined where it was not, or cannot be read. */
  async #startedTool(runId: string): Promise<string | undefined> {
    const stored = await orUnreadable(this.#store.read(runId));
    return stored?.started ? toolOf(stored.header.call) : undefined;
  }
}
