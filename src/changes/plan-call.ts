import type { WriteCall } from "./call.ts";
import { givenIn, rowsIn } from "./call-rows.ts";
import { planAddOptions } from "./plan/add-options.ts";
import { noteWhatWasThere } from "./plan/before.ts";
import { planCreateTargetings } from "./plan/create-targetings.ts";
import { planDeleteOptions, planDeleteTargetings } from "./plan/deletes.ts";
import type { Plan, PlanningContext } from "./plan/plan.ts";
import { planRenameTargetings, planUpdateOptions } from "./plan/renames.ts";
import { planUpdateContexts } from "./plan/update-contexts.ts";
import { contextRows } from "./rows/context-rows.ts";
import { optionRows } from "./rows/option-rows.ts";

/**
 * Takes a call apart into steps. Reads what it must, and what its report will say of before; throws an ApiError when a
 * read fails that it must have.
 */
export async function planCall(call: WriteCall, context: PlanningContext): Promise<Plan> {
  const plan = await planOf(call, context);
  // What changes Context IDs has looked at what there is, item by item.
  if (call.tool !== "update_contexts") await noteWhatWasThere(plan, context);
  return plan;
}

function planOf(call: WriteCall, context: PlanningContext): Plan | Promise<Plan> {
  switch (call.tool) {
    case "create_targetings":
      return planCreateTargetings(call.input);
    case "rename_targetings":
      return planRenameTargetings(call.input);
    case "delete_targeting":
      return planDeleteTargetings(call.input, context);
    case "bulk_add_options":
      return planAddOptions(call.input, rowsIn(call.input, optionRows, context.bytes), context);
    case "update_options":
      return planUpdateOptions(call.input);
    case "update_contexts":
      return givenIn(call.input, contextRows, context.bytes).then((given) =>
        planUpdateContexts(call.input, given, context),
      );
    case "delete_options":
      return planDeleteOptions(call.input, context);
  }
}
