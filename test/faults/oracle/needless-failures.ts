import { applyBulk } from "../model/apply.ts";
import { isContextId, isName } from "../model/facts.ts";
import type { BulkRequest } from "../model/requests.ts";
import { isError } from "../model/rules.ts";
import type { Judged } from "../oracle.ts";
import type { ApprovalRequest } from "../wishes.ts";
import type { Evidence } from "./evidence.ts";
import { fieldsOf } from "./updates.ts";

/** Returns objects that are unknown or not applied although nothing disturbed the schedule. */
export function needlesslyOpen(evidence: Evidence): readonly string[] {
  return evidence.judged.flatMap(({ index, result }) => {
    const isOpen = result.outcome === "unknown" || result.outcome === "notApplied";
    return isOpen && result.reason?.code !== "NEEDS_FAILED"
      ? [`${index} ${JSON.stringify(result)}: open, though nothing happened`]
      : [];
  });
}

/**
 * Returns needless failures: objects that failed although nothing disturbed them, and that the service would accept as
 * it is now. This includes cycles of renames, which only wait for each other.
 */
export function needlessFailures(evidence: Evidence): readonly string[] {
  const ring = isFailedRing(evidence) ? ["a ring of names failed, though temporary names would have made it work"] : [];
  const alone = evidence.judged.flatMap((judged) => {
    const { result, wish } = judged;
    const at = `${judged.index}.${judged.child}.${judged.grandchild} ${JSON.stringify(result)}`;
    if (result.outcome !== "failed" || WRONG_BY_THEMSELVES.has(result.reason?.code ?? "")) return [];
    if (isOneOfSeveral(evidence, wish)) return [];
    const request = requestFor(evidence, wish, judged);
    if (request === undefined) return [];
    return wouldWork(evidence, request) ? [`${at}: failed, though it would work`] : [];
  });
  return [...ring, ...alone];
}

/** Returns whether all failed renames of a call would work if none of the objects had its old name. */
function isFailedRing(evidence: Evidence): boolean {
  const { project } = evidence.of;
  const failed = evidence.judged.filter(
    ({ wish, result }) =>
      result.outcome === "failed" &&
      result.reason?.code !== "DUPLICATE_IN_INPUT" &&
      isRename(wish) &&
      !isOneOfSeveral(evidence, wish),
  );
  // If several of these also move, a temporary name could leave one of them half changed. Such a cycle may fail.
  const withMore = failed.filter(({ wish }) => wish.kind === "update" && fieldsOf(wish).length > 1);
  let works = failed.length > 1 && withMore.length < 2;
  project.attempt(() => {
    for (const [position, { wish }] of failed.entries()) {
      const id = "id" in wish ? wish.id : "";
      const [option, targeting] = [project.options.get(id), project.targetings.get(id)];
      if (option !== undefined) project.renameOption("other", option, `free ${position}`);
      if (targeting !== undefined) project.renameTargeting("other", targeting, `free ${position}`);
    }
    for (const judged of failed) {
      const request = requestFor(evidence, judged.wish, judged);
      const [outcome] =
        request === undefined ? [] : applyBulk(project, evidence.of.schedule.settings.limits, "other", request);
      works &&= outcome !== undefined && !isError(outcome);
    }
    return false;
  });
  return works;
}

function isRename(wish: ApprovalRequest): boolean {
  return wish.kind === "targetingName" || (wish.kind === "update" && wish.name !== undefined);
}

/** Reasons that are faults of the call itself. */
const WRONG_BY_THEMSELVES = new Set(["DUPLICATE_IN_INPUT", "INVALID_ITEM"]);

/**
 * Returns whether several items concern one option. They are sent as one item (management-api 4.1), and fail together.
 */
function isOneOfSeveral(evidence: Evidence, wish: ApprovalRequest): boolean {
  if (wish.kind !== "update" && wish.kind !== "contexts") return false;
  const [key] = evidence.keysOf(wish);
  return evidence.judged.filter((each) => evidence.keysOf(each.wish)[0] === key).length > 1;
}

function wouldWork(evidence: Evidence, request: BulkRequest): boolean {
  const { project, schedule } = evidence.of;
  let works = false;
  project.attempt(() => {
    const [outcome] = applyBulk(project, schedule.settings.limits, "other", request);
    works = outcome !== undefined && !isError(outcome);
    return false;
  });
  return works;
}

/** Returns the request that would do what a wish wants; undefined if its input is invalid. */
function requestFor(evidence: Evidence, wish: ApprovalRequest, { index }: Judged): BulkRequest | undefined {
  switch (wish.kind) {
    case "targeting":
      return isName(wish.name) ? { operation: "createTargetings", items: [{ name: wish.name }] } : undefined;
    case "option":
      return addRequest(evidence, wish);
    case "targetingName":
      if (!isName(wish.name)) return undefined;
      return { operation: "renameTargetings", items: [{ _id: wish.id, name: wish.name }] };
    case "update": {
      const { kind: _, id, ...changes } = wish;
      if (Object.values(changes).every((value) => value === undefined)) return undefined;
      if (changes.name !== undefined && !isName(changes.name)) return undefined;
      return { operation: "updateOptions", items: [{ _id: id, ...changes }] };
    }
    case "targetingGone":
      return { operation: "deleteTargetings", items: [wish.id] };
    case "optionGone":
      return { operation: "deleteOptions", items: evidence.keysOf(wish).slice(0, 1) };
    case "nothing":
      return undefined;
    case "contexts":
      return contextsRequest(evidence, wish, index);
  }
}

function addRequest(evidence: Evidence, wish: Extract<ApprovalRequest, { kind: "option" }>): BulkRequest | undefined {
  const [targeting] = evidence.targetingsOf(wish.targeting);
  const isValid = isName(wish.name) && wish.contexts.every(isContextId);
  // A group that failed together with its sub-options may now be empty, which the service refuses.
  if (targeting === undefined || !isValid || (wish.isGroup && wish.contexts.length === 0)) return undefined;
  const { name, parent, isGroup } = wish;
  const contexts = [...new Set(wish.contexts)];
  const groups =
    parent !== undefined && "name" in parent ? evidence.of.project.optionsNamed(targeting, parent.name) : [];
  const place = parent === undefined ? undefined : "id" in parent ? parent.id : groups[0]?.id;
  if (parent !== undefined && place === undefined) return undefined;
  const item = { targeting, name, contexts, ...(isGroup ? { type: "collection" as const } : {}) };
  return { operation: "addOptions", items: [place === undefined ? item : { ...item, parent: place }] };
}

function contextsRequest(
  evidence: Evidence,
  wish: Extract<ApprovalRequest, { kind: "contexts" }>,
  index: number,
): BulkRequest | undefined {
  const { call } = evidence.of.schedule;
  const item = call.tool === "update_contexts" ? call.input.items[index] : undefined;
  const [_id] = evidence.keysOf(wish);
  if (item === undefined || _id === undefined) return undefined;
  const { add = [], remove = [], set } = item;
  const isValid = [...add, ...remove, ...(set ?? [])].every(isContextId);
  const isBoth = add.some((each) => remove.includes(each));
  if (!isValid || isBoth || item.addFrom !== undefined || item.removeFrom !== undefined) return undefined;
  const contexts = set === undefined ? { add: [...add], remove: [...remove] } : { set: [...set] };
  return { operation: "updateOptions", items: [{ _id, contexts }] };
}
