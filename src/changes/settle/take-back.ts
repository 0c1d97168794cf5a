import { defined } from "../../platform/by-key.ts";
import { ownReason, type Reason } from "../../runs/outcome.ts";
import type { ContextChanges } from "../../spec/records.ts";
import { type Step, targetOf } from "../rows/entries.ts";
import type { StepMaker } from "../rows/steps.ts";
import type { ChangeDriver, Consequences } from "./evidence.ts";

/**
 * Reverses those parts of a change that were applied before the service refused another part of it, and drops the parts
 * that were not sent. So an object with the outcome `failed` is never half changed. Returns undefined if no part was
 * applied. The object becomes `unknown` if its parts cannot be reversed: other steps need it, a part has no answer, or
 * a part changed more than its Context IDs.
 */
export function takeBack(driver: ChangeDriver, step: Step, reason: Reason, maker: StepMaker): Consequences | undefined {
  const [object] = step.objects;
  if (isPartOfReversal(step)) return partly(step, reason);
  if (object === undefined || step.prepares) return undefined;
  const done = driver.state.doneSteps(object).filter((earlier) => earlier.undoes === undefined);
  if (step.undoes !== undefined) return afterFailedReversal(driver, step, step.undoes);
  if (done.length === 0) return undefined;
  const renamed = done.find((earlier) => earlier.formerName !== undefined);
  if (renamed !== undefined) {
    const hasMore = [step, ...done].some((one) => changesMoreThan("name", one));
    return restoreName(step, renamed, { reason, hasMore }, maker);
  }
  const { objects } = step;
  const id = driver.state.idOf(object);
  if (id === undefined || driver.state.isNeeded(object)) return partly(step, reason);
  const left = driver.state.openSteps(object).filter((other) => other.id !== step.id);
  if (left.some((other) => driver.state.isSuspect(other.id))) return partly(step, reason);
  const failed = { step: step.id, to: "failed", reason, undone: true } as const;
  const changes = [failed, ...left.map((other) => ({ step: other.id, to: "replaced" }) as const)];
  const created = done.find((earlier) => earlier.operation === "addOptions");
  if (created !== undefined) {
    const inTree = created.weight.groupItems > 0;
    return { changes, steps: [maker.deleteOption({ id }, inTree, { objects, undoes: reason })] };
  }
  // Of other changes, only those of Context IDs are reversed: the earlier group, name or setting is not known here.
  if (done.some((one) => changesMoreThan("contexts", one))) return partly(step, reason);
  const steps: Step[] = [];
  for (const earlier of done.reverse()) {
    const last = earlier === done.at(-1);
    const after = steps.slice(-1).map((previous) => previous.id);
    const contexts = earlier.operation === "updateOptions" ? earlier.item.contexts : undefined;
    const inverse = inverseOf(contexts ?? {});
    const kind = last ? { undoes: reason } : ({ prepares: true } as const);
    steps.push(maker.updateOption({ id }, { contexts: inverse }, { objects, after, ...kind }));
  }
  return { changes, steps };
}

/** Returns whether a step reverses a part of a failed change, but not the last one, which has `undoes`. */
export function isPartOfReversal({ prepares, formerName }: Step): boolean {
  // A step that sets a temporary name has `prepares` as well.
  return prepares === true && formerName === undefined;
}

/** Restores the old name after the second step of a name swap was refused. The object's other changes stay. */
function restoreName(
  step: Step,
  renamed: Step,
  { reason, hasMore }: { readonly reason: Reason; readonly hasMore: boolean },
  maker: StepMaker,
): Consequences {
  const id = targetOf(renamed) ?? "";
  const name = renamed.formerName ?? "";
  const undoes = hasMore ? ownReason("PARTLY_APPLIED", { because: reason.code }) : reason;
  const fields = { objects: step.objects, undoes };
  const back =
    step.operation === "renameTargetings"
      ? maker.renameTargeting(id, name, fields)
      : maker.updateOption({ id }, { name }, fields);
  return { changes: [{ step: step.id, to: "failed", reason, undone: true }], steps: [back] };
}

function changesMoreThan(only: "name" | "contexts", { item, bindings }: Step): boolean {
  return bindings.some(({ field }) => field === "parent") || Object.keys(item ?? {}).some((field) => field !== only);
}

/**
 * Decides what to do after the service refused a step that reverses another one. The object becomes `unknown`, and a
 * resumed run tries to reverse the step again. If the refused step would have restored an old name, a resumed run sets
 * the new name instead.
 */
function afterFailedReversal(driver: ChangeDriver, undoing: Step, reason: Reason): Consequences {
  const steps = driver.state.stepsChanging(targetOf(undoing) ?? "");
  const wanted = steps.find(
    (step) => step.prepares === undefined && step.undoes === undefined && step.item?.name !== undefined,
  );
  const isRenamed = steps.some((step) => step.formerName !== undefined);
  if (!isRenamed || wanted === undefined) return partly(undoing, reason);
  const given = { step: undoing.id, to: "failed", reason, undone: true } as const;
  return { changes: [given, ...partly(wanted, reason).changes] };
}

function partly(step: Step, reason: Reason): Consequences {
  const because = ownReason("PARTLY_APPLIED", { because: reason.code });
  return { changes: [{ step: step.id, to: "unknown", reason: because }] };
}

function inverseOf({ add, remove }: ContextChanges): ContextChanges {
  return defined({ add: remove, remove: add });
}
