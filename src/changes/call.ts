import * as z from "zod";
import type { SplitCells } from "../files/cells.ts";
import { inputFile } from "../files/input-file.ts";
import type { Fixed } from "../platform/json.ts";

const texts = (what: string) => z.array(z.string()).optional().describe(what);

const childFields = () => ({ name: z.string(), contexts: texts("Context IDs") });

const optionFields = () => ({
  ...childFields(),
  type: z.enum(["atomic", "collection"]).optional().describe("collection: an option group; default atomic"),
  children: z.array(z.strictObject(childFields())).optional().describe("New sub-options; makes it a group"),
  exposeChildren: z.boolean().optional().describe("Groups only"),
});

export const ARGUMENTS = {
  create_targetings: () => ({
    items: z.array(
      z.strictObject({
        name: z.string().describe("2 to 36 Korean or English letters, digits, spaces, ~ % & + -"),
        options: z.array(z.strictObject(optionFields())).optional(),
      }),
    ),
  }),
  rename_targetings: () => ({
    items: z.array(
      z.strictObject({
        _id: z.string().optional(),
        currentName: z.string().optional().describe("Or its name, if seen before"),
        name: z.string().describe("The new name"),
      }),
    ),
  }),
  delete_targeting: () => ({
    ids: z.array(z.string()).min(1).optional().describe("Several ULIDs"),
    names: z.array(z.string()).min(1).optional().describe("Several names, seen before"),
  }),
  bulk_add_options: () => ({
    items: z.array(
      z.strictObject({
        ...optionFields(),
        parent: z.string().optional().describe("ULID of the group to add it to"),
        parentName: z.string().optional().describe("Or the name of an existing or new group"),
      }),
    ),
    onExisting: z
      .enum(["fail", "skip", "addContexts"])
      .optional()
      .describe("When the name exists: fail (default), leave it, or add the Context IDs to it"),
  }),
  update_options: () => ({
    items: z.array(
      z.strictObject({
        _id: z.string().optional(),
        currentName: z.string().optional().describe("Or its name"),
        name: z.string().optional().describe("The new name"),
        parent: z.string().nullable().optional().describe("ULID of the group to move it to; null: out of its group"),
        parentName: z.string().optional().describe("Or its name"),
        exposeChildren: z.boolean().optional().describe("Groups only"),
      }),
    ),
  }),
  update_contexts: () => ({
    items: z.array(
      z.strictObject({
        _id: z.string().optional().describe("ULID of the option"),
        _ids: texts("Or several ULIDs"),
        name: z.string().optional().describe("Or its name, with targetingId"),
        names: texts("Or several names, with targetingId"),
        add: texts("Context IDs to add"),
        remove: texts("Context IDs to remove"),
        set: texts("Exactly these Context IDs"),
        addFrom: texts("Option IDs whose Context IDs are added"),
        removeFrom: texts("Option IDs whose Context IDs are removed"),
      }),
    ),
  }),
  delete_options: () => ({
    ids: z.array(z.string()).min(1).optional().describe("ULIDs of options, groups and sub-options"),
    names: z.array(z.string()).min(1).optional().describe("Names, with targetingId"),
    onlyEmpty: z
      .boolean()
      .optional()
      .describe(
        "Skip those with Context IDs or remaining sub-options; without ids and names, delete all empty options",
      ),
  }),
};

/** What the server found for the name of a targeting: its ID, several IDs, or similar names. */
const foundUnderName = {
  _id: z.string().optional(),
  ids: z.array(z.string()).optional(),
  near: z.array(z.string()).optional(),
};
const namedTargeting = z.object({ currentName: z.string(), ...foundUnderName });

const inTargeting = { targetingId: z.string().optional(), file: inputFile.optional() };
const { targetingId } = inTargeting;

const renamed = ARGUMENTS.rename_targetings();

/**
 * By tool: the arguments as a run stores them. They include what the server found for each targeting that the call
 * identifies by name.
 */
export const INPUTS = {
  create_targetings: z.object(ARGUMENTS.create_targetings()),
  rename_targetings: z.object({ ...renamed, items: z.array(renamed.items.element.extend(foundUnderName)) }),
  delete_targeting: z.object({
    ...ARGUMENTS.delete_targeting(),
    ids: z.array(z.string()),
    names: z.array(namedTargeting).optional(),
  }),
  bulk_add_options: z.object({ ...ARGUMENTS.bulk_add_options(), ...inTargeting, targetingId: z.string() }),
  update_options: z.object({ ...ARGUMENTS.update_options(), targetingId }),
  update_contexts: z.object({
    ...ARGUMENTS.update_contexts(),
    ...inTargeting,
    /** The Context IDs of removeEverywhere. `items`: the options that held them. */
    everywhere: z.array(z.string()).optional(),
  }),
  delete_options: z.object({ ...ARGUMENTS.delete_options(), targetingId }),
  /** The input of a run that applies a stored plan. The text of the plan is stored as a part of the run. */
  apply_plan: z.object({
    /** The tool that made the plan. Until the run starts, it is reported as a run of this tool. */
    plannedBy: z.enum(["plan_targeting", "undo_run"]),
    /** The targeting that the plan changes. Absent if the plan creates one, or if an undo plan changes nothing. */
    targetingId,
    furtherIds: z.array(z.string()).optional(),
    /** The ID of the run that the plan undoes. Once the undo has started, that run cannot be resumed. */
    undoes: z.string().optional(),
    /** SHA-256 of the stored plan, in hexadecimal digits. */
    digest: z.string(),
    /**
     * The location of the base, which is stored next to the planned file. It contains the state of the service at the
     * time of the export, and is updated when the run ends.
     */
    base: z.object({ root: z.string(), steps: z.array(z.string()) }).optional(),
    sheet: inputFile.optional(),
  }),
};

export type WriteTool = keyof typeof INPUTS;

export type Inputs = { readonly [Tool in WriteTool]: Fixed<z.infer<(typeof INPUTS)[Tool]>> };

export type WriteCall<Tool extends WriteTool = WriteTool> = {
  readonly [T in Tool]: { readonly tool: T; readonly input: Inputs[T] };
}[Tool];

export type PlanningTool = Inputs["apply_plan"]["plannedBy"];

/** The location of a base: the real path of an allowed folder, and the path segments below this folder. */
export type BaseFile = NonNullable<Inputs["apply_plan"]["base"]>;

export type NamedTargeting = Fixed<z.infer<typeof namedTargeting>>;

export type OnExisting = NonNullable<Inputs["bulk_add_options"]["onExisting"]>;

export type OptionInput = NonNullable<Inputs["create_targetings"]["items"][number]["options"]>[number];

export type ChildInput = NonNullable<OptionInput["children"]>[number];

type AddedOption = Inputs["bulk_add_options"]["items"][number];

export interface AddOptionInput extends AddedOption {
  /** The ID in a row of a file. If the targeting has no option with this ID, the row describes a new option. */
  readonly _id?: string | undefined;
}

type ChangedContexts = Inputs["update_contexts"]["items"][number];

export interface UpdateContextsItem extends ChangedContexts {
  /** The name in a row that also has an `_id`. If the option with this ID has another name, the row fails. */
  readonly calledName?: string | undefined;
  /** How the cells of a row were split into Context IDs. Undefined if no cell was split. */
  readonly split?: SplitCells | undefined;
}
