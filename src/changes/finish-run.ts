import type { ManagementApi } from "../api/management.ts";
import type { TargetingMemory } from "../runs/backend/backend.ts";
import type { Finishing } from "../runs/kind.ts";
import type { Reason } from "../runs/outcome.ts";
import type { WriteCall } from "./call.ts";
import { changeOf, fileOf } from "./change-kinds.ts";
import type { AppliedObjects, RenewBase } from "./plan/desired/desired-changes.ts";
import type { RunState } from "./state/change-state.ts";

/** What finishing a run of changes needs. */
export interface FinishingWorld {
  readonly api: ManagementApi;
  /** How long one request is retried, in milliseconds. */
  readonly retryBudgetMs: number;
  /** Gives the sentence for a reason, for reject files. */
  readonly words: (reason: Reason) => string;
  /** Stores the names of targetings that runs created or renamed, and forgets deleted ones. */
  readonly memory: TargetingMemory;
  /** Renews the base of a file that was applied; absent: there are no such runs. */
  readonly renewBase?: RenewBase;
}

/**
 * Keeps the rows of a run's file that failed, and the names of the targetings that it made, renamed or deleted; renews
 * the base of the file that it applied.
 */
export async function finishChange(
  { header: { call }, state, part, keep }: Finishing<WriteCall, RunState>,
  { words, memory, renewBase, api, retryBudgetMs }: FinishingWorld,
): Promise<void> {
  const { rejects } = changeOf(call);
  const file = fileOf(call);
  // Loaded late: most calls have no file.
  const failed = file === undefined ? undefined : (await import("../files/rejects.ts")).failedRows(state);
  try {
    if (file !== undefined && failed !== undefined) {
      const rows = failed.size > 0 ? rejects?.(part("input"), file, { failed, words }) : undefined;
      await keep("rejects", rows ?? nothing());
    }
  } finally {
    const { named, gone } = targetingsOf(state);
    if (named.length > 0) await memory.remember(named);
    if (gone.length > 0) await memory.forget(gone);
  }
  const base = call.tool === "apply_plan" ? call.input.base : undefined;
  if (base === undefined) return;
  const reading = { api, signal: AbortSignal.timeout(retryBudgetMs) };
  await renewBase?.(base, { plan: part("input"), objects: endingsOf(state) }, reading);
}

/** How the objects of a plan ended. */
export function endingsOf(state: Pick<RunState, "standing" | "idOf">): AppliedObjects {
  return {
    isDone(object) {
      const standing = state.standing(object);
      return standing === "succeeded" || standing === "alreadyDone";
    },
    idOf: (object) => state.idOf(object),
  };
}

/** The targetings that a run created or renamed, and those that it deleted. */
function targetingsOf(state: RunState) {
  const { steps, objects } = state;
  const named: { readonly _id: string; readonly name: string }[] = [];
  const gone: string[] = [];
  for (const step of steps.parts()) {
    const { operation } = step;
    const isDelete = operation === "deleteTargetings";
    if (!(isDelete || operation === "createTargetings" || operation === "renameTargetings")) continue;
    const [object = -1] = step.objects;
    const _id = state.idOf(object);
    const outcome = state.standing(object);
    if (_id === undefined) continue;
    if (isDelete && (outcome === "succeeded" || outcome === "alreadyDone")) gone.push(_id);
    if (!isDelete && outcome === "succeeded") named.push({ _id, name: objects.at(object)?.name ?? "" });
  }
  return { named, gone };
}

async function* nothing(): AsyncGenerator<never> {}
