import type { ManagementApi } from "../api/management.ts";
import { failedRows } from "../files/rejects.ts";
import type { TargetingMemory } from "../runs/backend/targeting-names.ts";
import type { Finishing } from "../runs/kind.ts";
import type { Reason } from "../runs/outcome.ts";
import { objectResults } from "../runs/report.ts";
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
  const { rejects, learnt } = changeOf(call);
  const file = fileOf(call);
  const failed = file === undefined ? undefined : failedRows(state);
  try {
    if (file !== undefined && failed !== undefined) {
      const rows = failed.size > 0 ? rejects?.(part("input"), file, { failed, words }) : undefined;
      await keep("rejects", rows ?? nothing());
    }
  } finally {
    if (learnt === "remembered") await memory.remember(targetingsOf(state, ["succeeded"], mostTargetings(call, state)));
    if (learnt === "forgotten") {
      await memory.forget(targetingsOf(state, ["succeeded", "alreadyDone"]).map(({ _id }) => _id));
    }
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

/** How many objects of a call may be targetings: a plan has one at the most, which comes first. */
function mostTargetings({ tool }: WriteCall, { steps }: RunState): number | undefined {
  if (tool !== "apply_plan") return undefined;
  const operation = steps.partAt(0)?.operation;
  return operation === "createTargetings" || operation === "renameTargetings" ? 1 : 0;
}

/** The targetings of a run that ended in one of these ways, among the first `most` objects. */
function targetingsOf(state: RunState, outcomes: readonly string[], most?: number) {
  return objectResults(state, 0, most).flatMap(({ child, name = "", _id, outcome }) =>
    child === undefined && _id !== undefined && outcomes.includes(outcome) ? [{ _id, name }] : [],
  );
}

async function* nothing(): AsyncGenerator<never> {}
