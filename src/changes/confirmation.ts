import { createHash } from "node:crypto";
import type { Standing } from "../runs/outcome.ts";
import type { RunHeader } from "../runs/store.ts";
import type { WriteCall } from "./call.ts";
import { changeOf } from "./change-kinds.ts";
import type { Loss, Plan } from "./plan/plan.ts";
import type { Step } from "./rows/entries.ts";
import { RowBlock } from "./rows/row-block.ts";
import type { RunState } from "./state/change-state.ts";

/** How long a person has to decide, in milliseconds. */
export const CONFIRMATION_MS = 600_000;
/** An `update_contexts` that takes away more Context IDs than this needs a confirmation. */
const UNASKED_CONTEXT_IDS = 100;

/** Whether a plan takes away so much that a person has to agree: decided by what it does, not only by the tool. */
export function needsConfirmation({ losses }: Pick<Plan, "losses">): boolean {
  let contextIds = 0;
  for (const { kind, count, empties } of losses) {
    if (kind !== "contextIds" || empties) return true;
    contextIds += count;
  }
  return contextIds > UNASKED_CONTEXT_IDS;
}

/** A digest of what a plan takes away: a confirmation counts only for the same digest. */
export function lossDigest(losses: readonly Loss[]): string {
  const sorted = [...losses].sort((a, b) => (a._id < b._id ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("base64url");
}

/** How many steps that delete or take away Context IDs are about objects that are not known to be done. */
export function leftToTakeAway(state: Pick<RunState, "steps" | "standing">): number {
  let left = 0;
  for (const step of state.steps.parts()) {
    if (step instanceof RowBlock || !takesAway(step)) continue;
    if (step.objects.some((object) => OPEN.has(state.standing(object)))) left += 1;
  }
  return left;
}

const OPEN: ReadonlySet<Standing> = new Set(["pending", "notApplied", "unknown"]);

function takesAway(step: Step): boolean {
  if (step.operation === "deleteOptions" || step.operation === "deleteTargetings") return true;
  if (step.operation !== "updateOptions") return false;
  const { remove = [], set } = step.item.contexts ?? {};
  return remove.length > 0 || set !== undefined;
}

type Left = { readonly header: RunHeader<WriteCall>; readonly state: Pick<RunState, "planned" | "updatedAt"> };

/**
 * Whether a run may be resumed for the same call. A deletion may hit other things by now. A run without a plan would be
 * planned anew, and may need a confirmation.
 */
export function mayGoOn({ header, state }: Left): boolean {
  const { deletes, mayTakeAway } = changeOf(header.call);
  return !deletes && (state.planned || !mayTakeAway);
}

/** Whether another process may go on with a run: what a person agreed to is done soon, or not without asking again. */
export function mayBeTakenUp({ header, state }: Left, now: number): boolean {
  const { mayTakeAway } = changeOf(header.call);
  return !mayTakeAway || (state.planned && now - state.updatedAt < CONFIRMATION_MS);
}
