import { ownReason, type Reason } from "../../runs/outcome.ts";
import type { ContextChanges } from "../../spec/records.ts";
import { type Step, targetOf } from "../rows/entries.ts";
import type { StepMaker } from "../rows/steps.ts";
import type { ChangeDriver, Consequences } from "./evidence.ts";

/**
 * Reverses the applied parts of a change after one part was refused, and drops the remaining parts, so that `failed`
 * always means that nothing was applied. Returns undefined if there is nothing to reverse. The outcome is `unknown`
 * instead if other steps need the object, a part has no answer, or the object was moved or renamed.
 */
export function takeBack(driver: ChangeDriver, step: Step, reason: Reason, maker: StepMaker): Consequences | undefined {
  const [object] = step.objects;
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
  if (left.some((other) => driver.state.suspectSince(other.id) !== undefined)) return partly(step, reason);
  const failed = { step: step.id, to: "failed", reason, undone: true } as const;
  const changes = [failed, ...left.map((other) => ({ step: other.id, to: "replaced" }) as const)];
  const created = done.find((earlier) => earlier.operation === "addOptions");
  if (created !== undefined) {
    const inTree = created.weight.groupItems > 0;
    return { changes, steps: [maker.deleteOption({ id }, inTree, { objects, undoes: reason })] };
  }
  // The values before a move, a rename or a setting are not known here, so only changes of Context IDs are reversed.
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

/** Restores the old name after the second step of a name swap was refused. Other changes remain applied. */
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
 * Decides about a reversal that failed. A resumed run tries it again. If only the final name is missing, it sets that
 * name.
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
  return { ...(remove === undefined ? {} : { add: remove }), ...(add === undefined ? {} : { remove: add }) };
}
