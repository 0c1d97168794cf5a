import * as z from "zod";
import { FORMATS } from "../files/rows.ts";
import { ENCODINGS } from "../files/text.ts";
import type { AddOptionsInput } from "./plan/add-options.ts";
import type { CreateTargetingsInput } from "./plan/create-targetings.ts";
import type { DeleteOptionsInput, DeleteTargetingsInput } from "./plan/deletes.ts";
import type { RenameTargetingsInput, UpdateOptionsInput } from "./plan/renames.ts";
import type { UpdateContextsInput } from "./plan/update-contexts.ts";
import type { OnExisting } from "./rows/inputs.ts";

/** A write as the caller asked for it: kept with the run, so that a run needs nothing from the caller again. */
export type WriteCall =
  | { readonly tool: "create_targetings"; readonly input: CreateTargetingsInput }
  | { readonly tool: "rename_targetings"; readonly input: RenameTargetingsInput }
  | { readonly tool: "delete_targeting"; readonly input: DeleteTargetingsInput }
  | { readonly tool: "bulk_add_options"; readonly input: AddOptionsInput }
  | { readonly tool: "update_options"; readonly input: UpdateOptionsInput }
  | { readonly tool: "update_contexts"; readonly input: UpdateContextsInput }
  | { readonly tool: "delete_options"; readonly input: DeleteOptionsInput };

/** The name of a tool that writes to the management API. */
export type WriteTool = WriteCall["tool"];

/** What a call wants done about names that exist; only `bulk_add_options` can say. */
export function onExistingOf(call: WriteCall): OnExisting {
  return call.tool === "bulk_add_options" ? (call.input.onExisting ?? "fail") : "fail";
}

const ids = z.array(z.string());
const file = z.object({ format: z.enum(FORMATS), encoding: z.enum(ENCODINGS), digest: z.string() });
const child = z.object({ name: z.string(), contexts: ids.optional() });
const option = child.extend({
  type: z.enum(["atomic", "collection"]).optional(),
  children: z.array(child).optional(),
  exposeChildren: z.boolean().optional(),
});

const namedTargeting = {
  _id: z.string().optional(),
  currentName: z.string().optional(),
  ids: ids.optional(),
  near: ids.optional(),
};

/** A call as it is read back from a run's folder. */
export const writeCall: z.ZodType<WriteCall> = z.discriminatedUnion("tool", [
  z.object({
    tool: z.literal("create_targetings"),
    input: z.object({ items: z.array(z.object({ name: z.string(), options: z.array(option).optional() })) }),
  }),
  z.object({
    tool: z.literal("rename_targetings"),
    input: z.object({ items: z.array(z.object({ ...namedTargeting, name: z.string() })) }),
  }),
  z.object({
    tool: z.literal("delete_targeting"),
    input: z.object({ ids, names: z.array(z.object({ ...namedTargeting, currentName: z.string() })).optional() }),
  }),
  z.object({
    tool: z.literal("bulk_add_options"),
    input: z.object({
      targetingId: z.string(),
      items: z.array(option.extend({ parent: z.string().optional(), parentName: z.string().optional() })),
      file: file.optional(),
      onExisting: z.enum(["fail", "skip", "addContexts"]).optional(),
    }),
  }),
  z.object({
    tool: z.literal("update_options"),
    input: z.object({
      targetingId: z.string().optional(),
      items: z.array(
        z.object({
          _id: z.string().optional(),
          currentName: z.string().optional(),
          name: z.string().optional(),
          parent: z.string().nullish(),
          parentName: z.string().optional(),
          exposeChildren: z.boolean().optional(),
        }),
      ),
    }),
  }),
  z.object({
    tool: z.literal("update_contexts"),
    input: z.object({
      targetingId: z.string().optional(),
      file: file.optional(),
      items: z.array(
        z.object({
          _id: z.string().optional(),
          _ids: ids.optional(),
          name: z.string().optional(),
          names: ids.optional(),
          add: ids.optional(),
          remove: ids.optional(),
          set: ids.optional(),
          addFrom: ids.optional(),
          removeFrom: ids.optional(),
        }),
      ),
    }),
  }),
  z.object({
    tool: z.literal("delete_options"),
    input: z.object({
      ids: ids.optional(),
      names: ids.optional(),
      targetingId: z.string().optional(),
      onlyEmpty: z.boolean().optional(),
    }),
  }),
]);
