import type { Reason } from "../../runs/outcome.ts";
import { contextParts } from "../plan/contexts/context-parts.ts";
import type { Step } from "../rows/entries.ts";
import type { StepMaker } from "../rows/step-maker.ts";
import type { ChangeDriver, Consequences } from "./change-driver.ts";
import { targetOf } from "./defer.ts";

/** The growth for parts between which the option may not grow. */
const NO_GROWTH = { ids: 0, bytes: 0 };

/**
 * A long change of Context IDs adds before it takes away, as far as the limits are known; what other options of the
 * project hold is not. Where a part is refused for a limit (management-api 8.1) though more is to be taken away, the
 * rest of the change is cut anew: into parts that take away as much as they add, and where one of these is refused,
 * into parts that only take away or only add. Undefined where that would not help.
 */
export function cutAnew(driver: ChangeDriver, step: Step, reason: Reason, maker: StepMaker): Consequences | undefined {
  const [object] = step.objects;
  const id = targetOf(step);
  const isLimit = reason.code === "TARGETING_CONTEXT_LIMIT_EXCEEDED" && step.operation === "updateOptions";
  if (!isLimit || object === undefined || id === undefined || step.undoes !== undefined || step.prepares) return;
  const later = driver.state.openSteps(object).filter((other) => other.id !== step.id && targetOf(other) === id);
  const own = contextsIn(step);
  const rest = later.map(contextsIn);
  const add = [own, ...rest].flatMap((each) => each.add);
  const remove = [own, ...rest].flatMap((each) => each.remove);
  const isPart = later.length > 0 || driver.state.doneSteps(object).length > 0;
  const grows = own.add.length > own.remove.length;
  const mayHelp = own.add.length > 0 && (grows ? remove.length > own.remove.length : own.remove.length > 0);
  if (!isPart || !mayHelp) return;
  const steps: Step[] = [];
  for (const contexts of contextParts({ add, remove }, { growth: NO_GROWTH, isPure: !grows })) {
    const after = steps.slice(-1).map((previous) => previous.id);
    steps.push(maker.updateOption({ id }, { contexts }, { objects: step.objects, after }));
  }
  return { changes: [step, ...later].map((old) => ({ step: old.id, to: "replaced" })), steps };
}

function contextsIn(step: Step): { readonly add: readonly string[]; readonly remove: readonly string[] } {
  const { add = [], remove = [] } = step.operation === "updateOptions" ? (step.item.contexts ?? {}) : {};
  return { add, remove };
}
