import type { ObjectResult } from "../../../src/runs/report.ts";
import type { ApprovalRequest } from "../wishes.ts";
import type { Evidence } from "./evidence.ts";

type CreateWish = Extract<ApprovalRequest, { readonly kind: "targeting" | "option" }>;

/** Compares the outcome of a creation with what the run created. */
export function checkCreate(evidence: Evidence, wish: CreateWish, result: ObjectResult): readonly string[] {
  const made =
    wish.kind === "targeting"
      ? evidence.madeByRun(wish.name)
      : evidence.targetingsOf(wish.targeting).flatMap((id) => evidence.madeByRun(wish.name, id));
  const left = made.filter((id) => !evidence.isDeletedBy("run", id));
  const here = left.filter((id) => !evidence.isDeletedBy("other", id));
  const wrong = here.length > 1 ? [`made ${here.length} times`] : [];
  const isRefused = result.outcome === "failed" || result.outcome === "notApplied";
  if (isRefused && isMadeForAnother(evidence, wish)) return wrong;
  switch (result.outcome) {
    case "succeeded":
      return [...wrong, ...checkMade(evidence, wish, result, left)];
    case "alreadyDone":
    case "skipped":
      if (left.length > 0) wrong.push(`${result.outcome}, though the run made it`);
      if ((result.outcome === "skipped") !== isSkipping(evidence))
        wrong.push(`${result.outcome}, not as the call says`);
      return [...wrong, ...checkThere(evidence, wish, result)];
    case "failed":
      return [
        ...wrong,
        ...(here.length > 0 && !isShadowed(evidence, wish, result) ? ["failed, though the run made it"] : []),
        ...addedAnyway(evidence, wish),
      ];
    case "notApplied":
      return [
        ...wrong,
        ...(here.length > 0 ? ["notApplied, though the run made it"] : []),
        ...addedAnyway(evidence, wish),
      ];
    default:
      return wrong;
  }
}

/**
 * Returns whether another user gave the name of a new targeting to an older one in the console, before the lost request
 * was sent again. The service then names only one of the two. If it names the older one, the run reports that the
 * targeting already existed (architecture, step 7).
 */
function isShadowed(evidence: Evidence, wish: CreateWish, { reason }: ObjectResult): boolean {
  const existing = reason?.detail?.existingId;
  if (wish.kind !== "targeting" || typeof existing !== "string") return false;
  return evidence
    .changes(existing)
    .some((change) => change.actor === "other" && change.what === "targetingRenamed" && change.to === wish.name);
}

/**
 * Returns whether another item with the same name succeeded or is unknown. Then what the run created belongs to that
 * item.
 */
function isMadeForAnother(evidence: Evidence, wish: CreateWish): boolean {
  return evidence.judged.some(
    (each) =>
      each.wish !== wish &&
      each.wish.kind === wish.kind &&
      each.wish.name === wish.name &&
      (each.wish.kind === "targeting" || wish.kind === "targeting" || sameTargeting(each.wish, wish)) &&
      (each.result.outcome === "succeeded" || each.result.outcome === "unknown"),
  );
}

function sameTargeting(
  a: Extract<ApprovalRequest, { kind: "option" }>,
  b: Extract<ApprovalRequest, { kind: "option" }>,
): boolean {
  return JSON.stringify(a.targeting) === JSON.stringify(b.targeting);
}

function checkMade(evidence: Evidence, wish: CreateWish, result: ObjectResult, left: readonly string[]): string[] {
  const [id] = left;
  if (id === undefined) {
    const isRight = givenContexts(evidence, wish, result) || isLookalike(evidence, wish, result);
    return isRight ? [] : ["succeeded, though the run did not make it"];
  }
  const wrong: string[] = [];
  if (result._id !== undefined && !left.includes(result._id)) wrong.push(`the ID is another's: made ${left.join()}`);
  const { project } = evidence.of;
  if (wish.kind === "targeting") {
    if (!project.targetings.has(id) && !evidence.isDeletedBy("other", id)) wrong.push("succeeded, but gone");
    return wrong;
  }
  const option = project.options.get(id);
  if (option === undefined) {
    if (!evidence.isDeletedBy("other", id)) wrong.push("succeeded, but gone");
    return wrong;
  }
  const wanted = [...new Set(wish.contexts.map((context) => context.trim()))].sort();
  const isOthers = evidence.isChangedByOther(id, "contexts");
  if (!isOthers && JSON.stringify(wanted) !== JSON.stringify([...option.contexts].sort())) {
    wrong.push(`holds ${option.contexts.size} Context IDs instead of ${wanted.length}`);
  }
  if (option.isGroup !== wish.isGroup) wrong.push(`is ${option.isGroup ? "a group" : "no group"}`);
  if (!isInParent(evidence, wish, option.parent) && !evidence.isChangedByOther(id, "moved")) {
    wrong.push(`is in ${option.parent}`);
  }
  return wrong;
}

function isInParent(
  evidence: Evidence,
  wish: Extract<ApprovalRequest, { kind: "option" }>,
  parent: string | undefined,
): boolean {
  if (wish.parent === undefined) return parent === undefined;
  if (parent === undefined) return false;
  if ("id" in wish.parent) return parent === wish.parent.id;
  const changes = evidence.changes(parent);
  const names = changes.flatMap((change) => (change.what === "optionRenamed" ? [change.from, change.to] : []));
  const now = evidence.of.project.options.get(parent)?.name;
  return [now, ...names].includes(wish.parent.name);
}

/** Returns when a name was first sent, if its answer may have been lost on the way or with the process. */
function leftInDoubt({ of: { service, schedule } }: Evidence, name: string): number | undefined {
  const isLost = service.inDoubt.has(name) || schedule.kills.length > 0 || schedule.diskFullAfter !== undefined;
  return isLost ? service.leftAt.get(name) : undefined;
}

/**
 * Returns from when on an option that another user creates cannot be told from one that a lost request created: since
 * the request was sent. If the run had created nothing before, it cannot compare the clocks; then only its last list
 * before the request shows which options are older.
 */
function indistinctSince(evidence: Evidence, name: string, place: string): number | undefined {
  const sent = leftInDoubt(evidence, name);
  if (sent === undefined || evidence.hasCreatedBefore(sent)) return sent;
  return evidence.of.service.lastListed(place, sent) ?? sent;
}

/**
 * Returns whether another user, at about the time of the lost request, created exactly what that request contained. The
 * answers of the service cannot show the difference. Only here does an outcome rely on likelihood instead of proof.
 */
function isLookalike(evidence: Evidence, wish: CreateWish, { _id }: ObjectResult): boolean {
  if (_id === undefined) return false;
  const made = evidence.changes(_id).find((change) => change.actor === "other" && /Created$/.test(change.what));
  const option = evidence.of.project.options.get(_id);
  const since = indistinctSince(evidence, wish.name, option?.parent ?? option?.targeting ?? "");
  if (made === undefined || since === undefined || made.at < since) return false;
  if (evidence.of.schedule.kills.length === 0 && evidence.of.service.madeBesides(wish.name)) return false;
  if (wish.kind === "targeting") return true;
  const wanted = new Set(wish.contexts.map((each) => each.trim()));
  const looksSame =
    option?.isGroup === wish.isGroup &&
    option.contexts.size === wanted.size &&
    [...option.contexts].every((each) => wanted.has(each));
  return option === undefined || looksSame || evidence.isChangedByOther(_id, "contexts");
}

/** Returns whether the existing option got the Context IDs, as `addContexts` wants it. */
function givenContexts(evidence: Evidence, wish: CreateWish, { _id }: ObjectResult): boolean {
  const option = _id === undefined ? undefined : evidence.of.project.options.get(_id);
  if (wish.kind !== "option" || _id === undefined) return false;
  if (option === undefined) return evidence.isDeletedBy("other", _id);
  const { input } = evidence.of.schedule.call;
  if (!("onExisting" in input) || input.onExisting !== "addContexts") return false;
  return evidence.isChangedByOther(_id, "contexts") || wish.contexts.every((each) => option.contexts.has(each.trim()));
}

/** Checks that existing options with this name got no Context IDs, unless another item of the call added them. */
function addedAnyway(evidence: Evidence, wish: CreateWish): readonly string[] {
  if (wish.kind !== "option") return [];
  return evidence.optionsNamedBefore(wish.name).flatMap(({ id }) => {
    const held = new Set(evidence.of.before.options.get(id)?.contexts);
    const now = evidence.of.project.options.get(id)?.contexts ?? new Set();
    const isOthers = evidence.isChangedByOther(id, "contexts");
    return !isOthers && wish.contexts.some((each) => now.has(each.trim()) && !held.has(each.trim()))
      ? [`Context IDs were added to ${id}`]
      : [];
  });
}

/** Returns whether the call skips existing options. */
function isSkipping(evidence: Evidence): boolean {
  const { input } = evidence.of.schedule.call;
  return "onExisting" in input && input.onExisting === "skip";
}

/** Checks an option that is reported as already existing, for `skip` and `addContexts`. */
function checkThere(evidence: Evidence, wish: CreateWish, { _id }: ObjectResult): readonly string[] {
  if (wish.kind === "targeting") return ["a targeting cannot be there already"];
  const option = _id === undefined ? undefined : evidence.of.project.options.get(_id);
  if (_id === undefined) return ["alreadyDone without an ID"];
  if (option?.name === wish.name) return [];
  return evidence.isChangedByOther(_id, "optionRenamed") ? [] : [`alreadyDone, but ${_id} is not it`];
}
