import * as z from "zod";
import type { Reason } from "../../runs/outcome.ts";
import type { Step } from "../rows/entries.ts";
import type { RunState } from "../state/change-state.ts";
import { existingIds } from "./lost-answers/reconcile.ts";

const conflicts = z.array(z.looseObject({ collection: z.looseObject({ _id: z.string().optional() }).optional() }));

/**
 * Whether a refused change may work once another change of the same run is applied: the name, the Context ID or the
 * place that it wants is held by something that this run changes too.
 */
export function mayWorkLater(state: RunState, step: Step, reason: Reason): boolean {
  if (step.operation !== "updateOptions" && step.operation !== "renameTargetings") return false;
  const isChanged = (id: string | undefined): boolean =>
    id !== undefined && id !== targetOf(step) && state.stepsChanging(id).length > 0;
  switch (reason.code) {
    case "TARGETING_NAME_DUPLICATE":
    case "TARGETING_CATEGORY_NAME_DUPLICATE":
      return existingIds(reason).some(isChanged);
    case "TARGETING_COLLECTION_CONTEXT_DUPLICATED": {
      const parsed = conflicts.safeParse(reason.detail?.conflicts);
      return parsed.success && parsed.data.some(({ collection }) => isChanged(collection?._id));
    }
    case "TARGETING_CATEGORY_NOT_SUPPORTED":
      return isMove(step) && state.hasOther(step.id, isMove);
    case "TARGETING_CONTEXT_LIMIT_EXCEEDED":
      return state.hasOther(step.id, takesContextIdsAway);
    default:
      return false;
  }
}

/** The ID of what a step changes. */
export function targetOf(step: Step): string | undefined {
  return step.bindings.find((binding) => binding.field === "_id")?.id;
}

/** The name that a step gives, if it gives one. */
export function wantedName(step: Step): string | undefined {
  return step.item?.name;
}

/** An update weighs as a group item when, and only when, it names a `parent` (management-api 8.1). */
function isMove(step: Step): boolean {
  return step.operation === "updateOptions" && step.weight.groupItems > 0;
}

function takesContextIdsAway(step: Step): boolean {
  if (step.operation !== "updateOptions") return false;
  const { remove, set } = step.item.contexts ?? {};
  return (remove ?? set) !== undefined;
}
