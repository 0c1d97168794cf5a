import type { ObjectResult } from "../../../src/runs/report.ts";
import type { ApprovalRequest } from "../wishes.ts";
import type { Evidence } from "./evidence.ts";

/** Returns whether an earlier attempt, whose answer was lost, may have deleted the object. */
function mayBeSent(evidence: Evidence, id: string): boolean {
  const { schedule, service } = evidence.of;
  return service.inDoubt.has(id) || schedule.kills.length > 0 || schedule.diskFullAfter !== undefined;
}

type GoneWish = Extract<ApprovalRequest, { readonly kind: "targetingGone" | "optionGone" }>;

/** Compares the outcome of a deletion with whether the object was deleted, and by whom. */
export function checkGone(evidence: Evidence, wish: GoneWish, result: ObjectResult): readonly string[] {
  const { project } = evidence.of;
  const id = wish.kind === "targetingGone" ? wish.id : "id" in wish.target ? wish.target.id : result._id;
  if (id === undefined) return result.outcome === "failed" ? [] : [`${result.outcome} without an ID`];
  const isThere = wish.kind === "targetingGone" ? project.targetings.has(id) : project.options.has(id);
  const isByRun = evidence.isDeletedBy("run", id);
  switch (result.outcome) {
    case "succeeded":
      return isByRun && !isThere ? [] : ["succeeded, though the run did not delete it"];
    case "alreadyDone":
      if (isThere) return ["alreadyDone, but it is there"];
      return mayBeSent(evidence, id) ? [] : ["alreadyDone, though no answer was lost"];
    case "failed":
    case "notApplied":
      return isByRun ? [`${result.outcome}, though the run deleted it`] : [];
    default:
      return [];
  }
}
