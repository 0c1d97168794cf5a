import * as z from "zod";
import { LIMITS } from "../../spec/limits.ts";

const id = z
  .string()
  .regex(/^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$/)
  .describe("The ID that export wrote; it decides which option is meant, whatever its name.");
const name = z
  .string()
  .min(LIMITS.nameMinLength.value)
  .max(LIMITS.nameMaxLength.value)
  .describe("Korean and English letters, digits, spaces, ~ % & + -. Another name than the option has is a rename.");
const contextIds = z.array(z.string().min(1));

const contents = {
  contexts: contextIds.optional().describe("Exactly these Context IDs; absent: not managed; []: none."),
  contextsFile: z.string().optional().describe("Exactly the Context IDs of a file beside this one, one a line."),
  contextsAtLeast: contextIds.optional().describe("These Context IDs among others: adds, never removes."),
};
const common = {
  _id: id.optional(),
  name: name.optional(),
  ...contents,
};

const child = z.strictObject({ ...common, type: z.literal("atomic").optional() });
const option = z.strictObject({
  ...common,
  type: z.enum(["atomic", "collection"]).optional().describe("collection is a group; children say that, too."),
  exposeChildren: z.boolean().optional().describe("Of groups alone."),
  children: z.array(child).optional().describe("The sub-options that are managed; others stay. [] means a group, too."),
});

/** A desired state in YAML or JSON, as its published JSON Schema says it: for editors. `readDesired` says more. */
const desiredState = z.strictObject({
  $schema: z.string().optional(),
  version: z.literal(1),
  targeting: z
    .strictObject({ _id: id.optional(), name: name.optional() })
    .optional()
    .describe("With _id, another name renames it; a new name without _id creates a targeting."),
  options: z.array(option),
});

/** The published JSON Schema of a desired state. */
export function desiredStateJsonSchema(): Record<string, unknown> {
  return { title: "The desired state of a targeting", ...z.toJSONSchema(desiredState) };
}
