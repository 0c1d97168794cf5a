import { isApiError } from "../../../api/errors.ts";
import { mapConcurrently } from "../../../reading/option-contents.ts";
import { readOptionNames } from "../../../reading/option-lists.ts";
import type { OptionItem, Step, StepChange } from "../../rows/entries.ts";
import type { ChangeDriver } from "../change-driver.ts";

/** A step that created something, and the change that its answer gave. */
export interface MadeStep {
  readonly step: Step;
  readonly change: StepChange;
}

/**
 * What was made, with the IDs of what was made inside. A targeting's answer names none of its options, and a group's 50
 * of its sub-options at the most, in an order that is not documented: so lists are read. Where the first group of a
 * request has them in the order in which they were sent, the others are taken to have, too. A read that fails leaves
 * the IDs out.
 */
export async function withInsideIds(driver: ChangeDriver, made: readonly MadeStep[]): Promise<readonly StepChange[]> {
  const first = made.find(({ step, change }) => step.objects.length > 2 && hasAll(step, change));
  const read = first === undefined ? undefined : await readInside(driver, first);
  const isInOrder = first !== undefined && isSame(first.change, read);
  return mapConcurrently(made, async (each) => {
    const { step, change } = each;
    if (each === first) return read ?? withoutIds(change);
    const isKnown = hasAll(step, change) && (isInOrder || step.objects.length === 2);
    if (step.objects.length === 1 || isKnown) return change;
    return (await readInside(driver, each)) ?? withoutIds(change);
  });
}

function hasAll({ objects }: Step, change: StepChange): boolean {
  return change.to === "done" && change.childIds?.length === objects.length - 1;
}

function isSame(one: StepChange, other: StepChange | undefined): boolean {
  if (one.to !== "done" || other?.to !== "done") return false;
  return JSON.stringify(one.childIds) === JSON.stringify(other.childIds);
}

function withoutIds(change: StepChange): StepChange {
  if (change.to !== "done") return change;
  const { childIds: _, ...rest } = change;
  return rest;
}

/** The change with IDs that were read; undefined where they cannot be. */
async function readInside(driver: ChangeDriver, { step, change }: MadeStep): Promise<StepChange | undefined> {
  if (change.to !== "done" || change._id === undefined) return change;
  try {
    const names = await namesInside(driver, step, change._id);
    return names && { ...change, childIds: namesOf(step).map((name) => names.get(name) ?? null) };
  } catch (thrown) {
    if (isApiError(thrown) || driver.signal.aborted) return undefined;
    throw thrown;
  }
}

async function namesInside(
  driver: ChangeDriver,
  step: Step,
  id: string,
): Promise<ReadonlyMap<string, string> | undefined> {
  if (step.operation === "createTargetings") return readOptionNames(driver.api, id, driver.signal);
  const place = step.bindings.find(({ field }) => field === "targeting");
  const targetingId = place === undefined ? undefined : driver.state.boundId(place);
  return targetingId === undefined ? undefined : readOptionNames(driver.api, targetingId, driver.signal, id);
}

/** The names of what a step makes inside, in the order of its objects. */
function namesOf(step: Step): readonly string[] {
  const inside = (option: OptionItem): readonly string[] => (option.children ?? []).map(({ name }) => name);
  if (step.operation === "addOptions") return inside(step.item);
  if (step.operation !== "createTargetings") return [];
  return (step.item.options ?? []).flatMap((option) => [option.name, ...inside(option)]);
}
