import type { Reason } from "../../../runs/outcome.ts";
import type { StepOf } from "../../rows/entries.ts";
import { leftAsItIs } from "../../rows/existing.ts";
import type { StepMaker } from "../../rows/step-maker.ts";
import type { ChangeDriver, Consequences } from "../change-driver.ts";
import { existingIds } from "./reconcile.ts";

/**
 * What `onExisting` makes of an option whose name the targeting already has: `skip` leaves it, `addContexts` gives the
 * existing one the Context IDs. Undefined where the step fails.
 */
export function existingOption(
  driver: ChangeDriver,
  step: StepOf<"addOptions">,
  reason: Reason,
  maker: StepMaker,
): Consequences | undefined {
  const [object] = step.objects;
  const [existing] = existingIds(reason);
  if (driver.onExisting === "fail" || object === undefined || existing === undefined) return undefined;
  const { contexts = [] } = step.item;
  if (driver.onExisting === "addContexts" && contexts.length > 0) {
    const add = maker.updateOption({ id: existing }, { contexts: { add: contexts } }, { objects: [object] });
    return { changes: [{ step: step.id, to: "replaced" }], steps: [add] };
  }
  return {
    changes: [{ step: step.id, to: "replaced" }],
    settlements: [leftAsItIs(object, existing, driver.onExisting)],
  };
}
