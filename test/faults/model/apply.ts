import { addOnly, renameTargeting, UpdateRequest, updateOption } from "./changes.ts";
import { addOption, createTargeting } from "./creates.ts";
import { deleteOption, deleteTargeting } from "./deletes.ts";
import type { StoredLimits } from "./facts.ts";
import type { Actor, Project } from "./project.ts";
import type { BulkRequest } from "./requests.ts";
import { type ItemOutcome, isError, refusal } from "./rules.ts";

/** Which items of a request a fault prevents. */
export interface Disturbance {
  /** Items that are not applied because another request took the lock (management-api 4.2 rule 3). */
  readonly takenOver?: (index: number) => boolean;
  readonly retryAfterMs?: number;
  /** Items that fail with `UNCATCHED`. In a request that is applied as a unit, one such item makes all fail. */
  readonly uncatched?: (index: number) => boolean;
  /** Whether such an update has already applied its `add` when it fails (management-api 4.1). */
  readonly addFirst?: boolean;
}

const UNCATCHED = refusal(500, "UNCATCHED");

/** Applies a bulk request (management-api 4.1). Returns the outcome of each item. */
export function applyBulk(
  project: Project,
  limits: StoredLimits,
  actor: Actor,
  request: BulkRequest,
  disturbance: Disturbance = {},
): readonly ItemOutcome[] {
  const { takenOver, uncatched, retryAfterMs = 0, addFirst = false } = disturbance;
  const busy = refusal(409, "CONTEXT_TARGETING_WRITE_IN_PROGRESS", { retryAfterMs });
  const unless = (index: number, apply: () => ItemOutcome): ItemOutcome => (takenOver?.(index) ? busy : apply());
  if (request.operation === "renameTargetings") {
    return request.items.map((item, index) =>
      unless(index, () => (uncatched?.(index) ? UNCATCHED : renameTargeting(project, actor, item))),
    );
  }
  if (request.operation === "updateOptions") {
    const together = new UpdateRequest(project);
    return request.items.map((item, index) =>
      unless(index, () => {
        if (!uncatched?.(index)) return updateOption(project, limits, actor, item, together);
        if (addFirst) addOnly(project, limits, actor, item, together);
        return UNCATCHED;
      }),
    );
  }
  const fails = request.items.some((_, index) => uncatched?.(index));
  let outcomes: readonly ItemOutcome[] = [];
  const unit = (): void => {
    outcomes = applyUnit(project, limits, actor, request, unless);
  };
  if (fails) {
    project.attempt(() => {
      unit();
      return false;
    });
    return outcomes.map((outcome) => (isError(outcome) ? outcome : UNCATCHED));
  }
  unit();
  return outcomes;
}

function applyUnit(
  project: Project,
  limits: StoredLimits,
  actor: Actor,
  request: Exclude<BulkRequest, { readonly operation: "renameTargetings" | "updateOptions" }>,
  unless: (index: number, apply: () => ItemOutcome) => ItemOutcome,
): readonly ItemOutcome[] {
  switch (request.operation) {
    case "createTargetings":
      return request.items.map((item, index) => unless(index, () => createTargeting(project, limits, actor, item)));
    case "addOptions":
      return request.items.map((item, index) => unless(index, () => addOption(project, limits, actor, item)));
    case "deleteTargetings":
      return request.items.map((id, index) => unless(index, () => deleteTargeting(project, actor, id)));
    case "deleteOptions": {
      const taken = request.items.filter((_, index) => !isError(unless(index, () => ({ data: {} }))));
      const together = new Set(taken);
      return request.items.map((id, index) => unless(index, () => deleteOption(project, actor, id, together)));
    }
  }
}
