import type { WriteCall } from "./call.ts";
import { givenIn, rowsIn } from "./call-rows.ts";
import { planAddOptions } from "./plan/add-options.ts";
import { planCreateTargetings } from "./plan/create-targetings.ts";
import { planDeleteOptions, planDeleteTargetings } from "./plan/deletes.ts";
import { optionFinder } from "./plan/option-names.ts";
import type { Plan, PlanningContext } from "./plan/plan.ts";
import {
  planRenameTargetings,
  planUpdateOptions,
  type RenameTargetingsInput,
  type UpdateOptionsInput,
} from "./plan/renames.ts";
import { namesNow } from "./plan/targeting-names.ts";
import { planUpdateContexts } from "./plan/update-contexts.ts";
import { contextRows } from "./rows/context-rows.ts";
import { optionRows } from "./rows/option-rows.ts";

/** Takes a call apart into steps. Reads what it must; throws an ApiError when such a read fails. */
export async function planCall(call: WriteCall, context: PlanningContext): Promise<Plan> {
  switch (call.tool) {
    case "create_targetings":
      return planCreateTargetings(call.input);
    case "rename_targetings":
      return planRenameTargetings(call.input, await namesNow(namedIds(call.input.items), context));
    case "delete_targeting":
      return planDeleteTargetings(call.input, context);
    case "bulk_add_options":
      return planAddOptions(call.input, rowsIn(call.input, optionRows, context.bytes), context);
    case "update_options":
      return planUpdateOptions(call.input, await optionFinder(call.input.targetingId, hasNames(call.input), context));
    case "update_contexts":
      return planUpdateContexts(call.input, await givenIn(call.input, contextRows, context.bytes), context);
    case "delete_options":
      return planDeleteOptions(call.input, context);
  }
}

function hasNames({ items }: UpdateOptionsInput): boolean {
  return items.some(({ currentName, parentName }) => (currentName ?? parentName) !== undefined);
}

function namedIds(items: RenameTargetingsInput["items"]): readonly string[] {
  return items.flatMap(({ _id, currentName }) => (_id === undefined || currentName === undefined ? [] : [_id]));
}
