import { failedRows } from "../files/rejects.ts";
import type { TargetingMemory } from "../runs/backend/targeting-names.ts";
import type { Finishing } from "../runs/kind.ts";
import type { Reason } from "../runs/outcome.ts";
import { objectResults } from "../runs/report.ts";
import type { WriteCall } from "./call.ts";
import { changeOf, fileOf } from "./change-kinds.ts";
import type { RunState } from "./state/change-state.ts";

/** What finishing a run needs of the world. */
interface FinishingWorld {
  /** Gives the sentence for a reason, for reject files. */
  readonly words: (reason: Reason) => string;
  readonly memory: TargetingMemory;
}

/** Keeps the rows of a run's file that failed, and the names of the targetings that it made, renamed or deleted. */
export async function finish(
  { header: { call }, state, part, keep }: Finishing<WriteCall, RunState>,
  { words, memory }: FinishingWorld,
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
