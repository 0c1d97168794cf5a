import type { WriteCall } from "../call.ts";
import { givenIn, rowsIn } from "../call-file.ts";
import type { ByteSource } from "../files/bytes.ts";
import { contextRows } from "../files/context-rows.ts";
import { optionRows } from "../files/option-rows.ts";
import { placeOf } from "../files/rows.ts";
import { RunTables } from "../run-tables.ts";
import { planCreateTargetings } from "./create-targetings.ts";
import { OptionDrafts } from "./option-drafts.ts";
import { Plan } from "./plan.ts";
import { planRenameTargetings, planUpdateOptions } from "./renames.ts";
import { targetsOf } from "./update-contexts.ts";

/**
 * What a call is about, before anything is read for it: the objects that its plan will count and report, none of them
 * settled, and no steps. `bytes` is the content of its file, where it has one. Throws a FileError where the file cannot
 * be read.
 */
export async function givenObjects(call: WriteCall, bytes: ByteSource | undefined): Promise<RunTables> {
  switch (call.tool) {
    case "create_targetings":
      return objectsOf(planCreateTargetings(call.input));
    case "rename_targetings":
      return objectsOf(planRenameTargetings(call.input));
    case "update_options":
      return objectsOf(planUpdateOptions(call.input));
    case "delete_targeting":
      return listed({ ids: call.input.ids });
    case "delete_options":
      return listed(call.input);
    case "bulk_add_options": {
      const plan = new Plan();
      const drafts = new OptionDrafts(plan, call.input.targetingId);
      for await (const batch of rowsIn(call.input, optionRows, bytes)) drafts.take(batch);
      return plan.tables;
    }
    case "update_contexts": {
      const tables = new RunTables();
      for (const one of await givenIn(call.input, contextRows, bytes)) {
        const targets = "item" in one ? targetsOf(one.item) : [];
        for (const target of targets) tables.objects.add({ ...placeOf(one), ...target });
        if (targets.length === 0) tables.objects.add(placeOf(one));
      }
      return tables;
    }
  }
}

/** The objects of a plan without its steps. */
function objectsOf({ objects }: Plan): RunTables {
  const tables = new RunTables();
  for (let object = 0; object < objects.length; object += 1) {
    const about = objects.at(object);
    if (about !== undefined) tables.objects.add(about);
  }
  return tables;
}

function listed({
  ids = [],
  names = [],
}: {
  readonly ids?: readonly string[] | undefined;
  readonly names?: readonly string[] | undefined;
}): RunTables {
  const tables = new RunTables();
  for (const _id of ids) tables.objects.add({ index: tables.objects.length, _id });
  for (const name of names) tables.objects.add({ index: tables.objects.length, name });
  return tables;
}
