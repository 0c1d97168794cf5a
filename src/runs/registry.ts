import { undefinedIf } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { isJsonObject, parseJson } from "../platform/json.ts";
import { ulidTime } from "../spec/names-and-contexts.ts";
import type { Ending, ListedRun, Run, RunForm, RunsContext } from "./kind.ts";
import { type ExecutableRun, ExecutionRefusedError, type Refusal } from "./kind.ts";
import { summaryOf } from "./report.ts";
import {
  DamagedRunError,
  isUnreadable,
  isUnstarted,
  moveRun,
  type OrphanedRuns,
  type RunPart,
  type RunRecord,
  type RunStore,
  type RunSummary,
  type Status,
  type StoredRun,
  undefinedIfUnreadable,
} from "./store.ts";
import { releaseOnError } from "./turn.ts";

interface AnyKindRuns {
  readonly kind: Pick<RunForm<unknown, unknown>, "name" | "tools">;
  readonly isDriving: boolean;
  driven(runId: string): Run | undefined;
  find(runId: string): Promise<Run | undefined>;
  resume(runId: string): Promise<Run | undefined>;
  claim(stored: StoredRun): Promise<Run | undefined>;
  cancel(runId: string, onUnstored?: () => void): Promise<Run | undefined>;
  withdraw(runId: string, ending?: Ending): Promise<Run | undefined>;
  settle(runId: string): Promise<void>;
  stopAll(): Promise<void>;
  recoverOrphans(): Promise<void>;
}

type Context = Pick<RunsContext, "store" | "project" | "environment" | "mayExecute">;

/** An interrupted run. `left`: how many of its items are not applied, by its record. 1 if the record has no counts. */
export type Interrupted = Pick<ListedRun, "runId" | "tool"> & { readonly left: number };

const AFTER = "~";
/** What is reported instead of the stored status and counts, if the stored data of a run is damaged. */
const DAMAGED = { status: "unknown", counts: {}, open: false, isDamaged: true } as const;
const LOOKED_AT = 20;

export class Runs {
  readonly #store: RunStore;
  readonly #context: Context;
  readonly #kinds: readonly AnyKindRuns[];

  constructor(context: Context, kinds: readonly AnyKindRuns[]) {
    this.#store = context.store;
    this.#context = context;
    this.#kinds = kinds;
  }

  get isDriving(): boolean {
    return this.#kinds.some(({ isDriving }) => isDriving);
  }

  /** Returns a run that this process executes. Does not check whether another process has taken it over. */
  driven(runId: string): Run | undefined {
    return this.#drivenKind(runId)?.driven(runId);
  }

  /** Access to runs whose process has ended. Undefined for a store of this machine, where only calls resume them. */
  get left(): OrphanedRuns | undefined {
    return this.#store.left;
  }

  async isToBeClaimed(runId: string): Promise<boolean> {
    return this.#store.left !== undefined && (await this.#store.record(runId))?.status === "running";
  }

  async storedStatus(runId: string): Promise<Status | undefined> {
    return (await this.#store.record(runId))?.status;
  }

  async isUnstarted(runId: string): Promise<boolean | undefined> {
    const record = await this.#store.record(runId);
    return record && isUnstarted(record.status);
  }

  async hasWorker(project: string): Promise<boolean> {
    return (await this.#store.left?.hasWorker(project)) ?? true;
  }

  async refusal(run: ExecutableRun): Promise<Refusal | undefined> {
    return this.#context.mayExecute?.(run);
  }

  async checkExecutable(run: ExecutableRun): Promise<void> {
    const refusal = await this.refusal(run);
    if (refusal !== undefined) throw new ExecutionRefusedError(refusal);
  }

  async find(runId: string): Promise<Run | undefined> {
    return (await this.#kindOf(runId))?.find(runId);
  }

  /** Finds a run of the caller. The error for damaged data says whether all that the run removed is still stored. */
  async findOwn(runId: string, caller: string): Promise<Run | undefined> {
    try {
      const run = await this.find(runId);
      return run?.header.caller === caller ? run : undefined;
    } catch (thrown) {
      if (!(thrown instanceof DamagedRunError)) throw thrown;
      if (!(await this.#isOf(runId, caller))) return undefined;
      const header = thrown.header ?? (await undefinedIfUnreadable(this.stored(runId)))?.header;
      throw new DamagedRunError(runId, { holdsRemoved: await this.#holdsWholeRemoved(runId), header });
    }
  }

  stored(runId: string): Promise<StoredRun | undefined> {
    return this.#store.read(runId);
  }

  async #holdsWholeRemoved(runId: string): Promise<boolean> {
    let rest = "";
    let isAny = false;
    const decoder = new TextDecoder();
    for await (const chunk of this.part(runId, "removed")()) {
      const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split("\n");
      rest = lines.pop() ?? "";
      if (!lines.every((line) => parseJson(line) !== undefined)) return false;
      isAny ||= lines.length > 0;
    }
    return isAny && rest === "";
  }

  async resume(runId: string): Promise<Run | undefined> {
    return (await this.#kindOf(runId))?.resume(runId);
  }

  /**
   * Continues a run whose process has ended. Undefined if another process was faster, or if the run is not `running`
   * any more. Throws a RunStoreError or an ExecutionRefusedError.
   */
  async claim(runId: string): Promise<Run | undefined> {
    const stored = await this.#store.read(runId);
    return stored && this.#kindOfStored(stored)?.claim(stored);
  }

  async leaveToCalls(runId: string): Promise<void> {
    const lease = await this.#store.lease(runId);
    if (lease === undefined) return;
    const leave = ({ status }: RunRecord) => (status === "running" ? { status: "interrupted" as const } : undefined);
    await releaseOnError(lease, () => moveRun(this.#store, runId, leave, { lease }));
    await lease.release();
  }

  /**
   * Cancels a run in any process. After that, only requests already announced in the journal are sent. Calls `onUnstored`
   * if only this process, which executes the run, knows of it yet.
   */
  async cancel(runId: string, onUnstored?: () => void): Promise<Run | undefined> {
    return (await this.#kindOf(runId))?.cancel(runId, onUnstored);
  }

  /** Stores the status and summary of a run, if the process that executed it ended before it could do so. */
  async settle(runId: string): Promise<void> {
    await (await this.#kindOf(runId))?.settle(runId);
  }

  async withdraw(runId: string, ending?: Ending): Promise<Run | undefined> {
    return (await this.#kindOf(runId))?.withdraw(runId, ending);
  }

  /**
   * Yields a caller's runs, the newest first, after updating records of ended processes. Omits runs of other tools,
   * runs in a newer format, and runs that are not started and whose objects are not known yet.
   */
  async *list(caller: string): AsyncGenerator<ListedRun> {
    for (const kind of this.#kinds) await kind.recoverOrphans();
    for await (const runId of this.#idsOf(caller)) {
      const listed = await this.#listed(runId, caller);
      if (listed !== undefined) yield listed;
    }
  }

  async damaged(runId: string, caller: string): Promise<ListedRun | undefined> {
    const listed = (await this.#isOf(runId, caller)) ? await this.#listed(runId, caller) : undefined;
    return listed && { ...listed, ...DAMAGED };
  }

  async interrupted(caller: string): Promise<readonly Interrupted[]> {
    const { project, environment } = this.#context;
    const found: Interrupted[] = [];
    const unfinished = await this.#store.list({ unfinished: { caller, project, environment } });
    for (const runId of unfinished.slice(0, LOOKED_AT)) {
      const { status, rest } = (await this.#store.record(runId)) ?? {};
      if (rest?.isDamaged || this.#drivenKind(runId) !== undefined) continue;
      if (status !== "running" && status !== "interrupted") continue;
      const tool = rest?.tool ?? toolOf((await undefinedIfUnreadable(this.#store.read(runId)))?.header.call);
      if (tool !== undefined && this.#knows(tool) && !(await this.#store.isDriven(runId))) {
        const { pending = 0, notApplied = 0 } = rest?.counts ?? { pending: 1 };
        found.push({ runId, tool, left: pending + notApplied });
      }
    }
    return found;
  }

  open(): Promise<readonly string[]> {
    return this.#store.list({ unfinished: "all" });
  }

  part(runId: string, part: RunPart): ByteSource {
    return this.#store.parts.read(runId, part);
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.#kinds.map((kind) => kind.stopAll()));
  }

  retentionDoubt(): Promise<string | undefined> {
    return this.#store.retention.peek();
  }

  tidy(): Promise<void> {
    return this.#store.retention.tidy();
  }

  /** Returns whether a run belongs to a caller, even if its record cannot be read. */
  async #isOf(runId: string, caller: string): Promise<boolean> {
    const [next] = await this.#store.list({ caller, before: `${runId}${AFTER}` });
    return next === runId;
  }

  async #listed(runId: string, caller: string): Promise<ListedRun | undefined> {
    const stored = this.#drivenKind(runId) === undefined ? (await this.#store.record(runId))?.rest : undefined;
    const listed = stored ?? (await this.#lookedAt(runId).catch((thrown: unknown) => damagedSummary(thrown, caller)));
    if (listed?.caller !== caller || !(this.#knows(listed.tool) || listed.isDamaged)) return undefined;
    return { runId, ...listed, ...(listed.isDamaged && DAMAGED) };
  }

  async *#idsOf(caller: string): AsyncGenerator<string> {
    let before: string | undefined;
    for (;;) {
      const page = await this.#store.list({ caller, ...(before !== undefined && { before }) });
      yield* page;
      before = page.at(-1);
      if (before === undefined) return;
    }
  }

  #drivenKind(runId: string): AnyKindRuns | undefined {
    return this.#kinds.find((kind) => kind.driven(runId) !== undefined);
  }

  #knows(tool: string): boolean {
    return this.#kinds.some(({ kind }) => kind.tools.includes(tool));
  }

  async #kindOf(runId: string): Promise<AnyKindRuns | undefined> {
    const driven = this.#drivenKind(runId);
    if (driven !== undefined) return driven;
    const stored = await this.#store.read(runId);
    return stored && this.#kindOfStored(stored);
  }

  #kindOfStored({ header }: StoredRun): AnyKindRuns | undefined {
    return this.#kinds.find(({ kind }) => kind.name === header.kind);
  }

  /** Makes a summary of a run. Undefined if it has no content yet or is unreadable. Throws a DamagedRunError. */
  async #lookedAt(runId: string): Promise<RunSummary | undefined> {
    const stored = await unlessDamaged(this.#store.read(runId));
    const run = stored && (await unlessDamaged(this.find(runId)));
    // A run that is not started and has no objects has nothing to summarize.
    const isUnbegun = stored === undefined || isUnstarted(stored.record.status);
    if (run === undefined || (isUnbegun && run.state.objects.length === 0)) return undefined;
    return summaryOf(run.header, run.state, run.status());
  }
}

function toolOf(call: unknown): string | undefined {
  return isJsonObject(call) && typeof call.tool === "string" ? call.tool : undefined;
}

function unlessDamaged<T>(reading: Promise<T>): Promise<T | undefined> {
  return undefinedIf((thrown) => !(thrown instanceof DamagedRunError) && isUnreadable(thrown), reading);
}

function damagedSummary(thrown: unknown, caller: string): RunSummary {
  if (!(thrown instanceof DamagedRunError)) throw thrown;
  const at = ulidTime(thrown.runId);
  return { tool: "", caller, fingerprint: "", startedAt: at, updatedAt: at, ...DAMAGED };
}
