import { placeOf } from "../files/rows.ts";
import type { ByteSource } from "../platform/bytes.ts";
import type { WriteCall } from "./call.ts";
import { givenIn, rowsIn } from "./call-rows.ts";
import { planCreateTargetings } from "./plan/create-targetings.ts";
import { OptionDrafts } from "./plan/option-drafts.ts";
import { Plan } from "./plan/plan.ts";
import { planRenameTargetings, planUpdateOptions } from "./plan/renames.ts";
import { targetsOf } from "./plan/update-contexts.ts";
import { contextRows } from "./rows/context-rows.ts";
import { ObjectList } from "./rows/object-list.ts";
import { optionRows } from "./rows/option-rows.ts";
import { StepList } from "./rows/step-list.ts";
import type { PlannedWork } from "./state/run-work.ts";

/**
 * What a call is about, before anything is read for it: the objects that its plan will count and report, none of them
 * settled, and no steps. `bytes` is the content of its file, where it has one. Throws a FileError where the file cannot
 * be read.
 */
export async function givenObjects(call: WriteCall, bytes: ByteSource | undefined): Promise<PlannedWork> {
  switch (call.tool) {
    case "create_targetings":
      return workOf(planCreateTargetings(call.input).objects);
    case "rename_targetings":
      return workOf(planRenameTargetings(call.input).objects);
    case "update_options":
      return workOf(planUpdateOptions(call.input).objects);
    case "delete_targeting":
      return listed({ ids: call.input.ids, names: call.input.names?.map(({ currentName }) => currentName) });
    case "delete_options":
      return listed(call.input);
    case "bulk_add_options": {
      const plan = new Plan();
      const drafts = new OptionDrafts(plan, call.input.targetingId);
      for await (const batch of rowsIn(call.input, optionRows, bytes)) drafts.take(batch);
      return workOf(plan.objects);
    }
    case "update_contexts": {
      const objects = new ObjectList();
      for (const one of await givenIn(call.input, contextRows, bytes)) {
        const targets = "item" in one ? targetsOf(one.item) : [];
        for (const target of targets) objects.add({ ...placeOf(one), ...target });
        if (targets.length === 0) objects.add(placeOf(one));
      }
      return workOf(objects);
    }
  }
}

/** Objects without any step. */
function workOf(objects: ObjectList): PlannedWork {
  return { objects, steps: new StepList(), settlements: [] };
}

function listed({
  ids = [],
  names = [],
}: {
  readonly ids?: readonly string[] | undefined;
  readonly names?: readonly string[] | undefined;
}): PlannedWork {
  const objects = new ObjectList();
  for (const _id of ids) objects.add({ index: objects.length, _id });
  for (const name of names) objects.add({ index: objects.length, name });
  return workOf(objects);
}
