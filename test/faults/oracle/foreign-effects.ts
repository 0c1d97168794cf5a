import type { Change } from "../model/project.ts";
import type { Evidence } from "./evidence.ts";

/** Returns the changes that the run made although the call did not request them. */
export function foreignEffects(evidence: Evidence): readonly string[] {
  const { log } = evidence.of;
  return log
    .filter((change) => change.actor === "run" && !isAskedFor(evidence, change))
    .map((change) => `not asked for: ${JSON.stringify(change).slice(0, 300)}`);
}

function isAskedFor(evidence: Evidence, change: Change): boolean {
  const wishes = evidence.judged.map(({ wish }) => wish);
  const isOwn = evidence.changes(change.id).some(({ actor, what }) => actor === "run" && /Created$/.test(what));
  const isFromDeleted = (id: string | undefined): boolean => id !== undefined && evidence.isDeletedBy("run", id);
  switch (change.what) {
    case "targetingCreated":
      return wishes.some((wish) => wish.kind === "targeting" && wish.name === change.name);
    case "optionCreated":
      return wishes.some(
        (wish) =>
          wish.kind === "option" &&
          wish.name === change.name &&
          evidence.targetingsOf(wish.targeting).includes(change.targeting),
      );
    case "targetingDeleted":
      return isOwn || wishes.some((wish) => wish.kind === "targetingGone" && wish.id === change.id);
    case "optionDeleted":
      return (
        isOwn ||
        isFromDeleted(change.targeting) ||
        wishes.some((wish) => wish.kind === "optionGone" && evidence.keysOf(wish).includes(change.id))
      );
    case "moved":
      return (
        isFromDeleted(change.from) ||
        wishes.some((wish) => wish.kind === "update" && wish.id === change.id && wish.parent !== undefined)
      );
    case "contexts":
      return (
        isOwn ||
        wishes.some((wish) => wish.kind === "contexts" && evidence.keysOf(wish).includes(change.id)) ||
        isGivenToExisting(evidence, change)
      );
    default:
      return wishes.some((wish) => (wish.kind === "update" || wish.kind === "targetingName") && wish.id === change.id);
  }
}

/**
 * Returns whether `addContexts` explains a change: an existing option got the Context IDs of the item with its name.
 */
function isGivenToExisting(evidence: Evidence, change: Change): boolean {
  const { input } = evidence.of.schedule.call;
  if (!("onExisting" in input) || input.onExisting !== "addContexts") return false;
  const names = [evidence.of.project.options.get(change.id)?.name, evidence.of.before.options.get(change.id)?.name];
  return evidence.judged.some(({ wish }) => wish.kind === "option" && names.includes(wish.name));
}
