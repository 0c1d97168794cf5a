import * as z from "zod";

/** The fields of a sub-option to create. */
const childFields = () => ({
  name: z.string(),
  contexts: z.array(z.string()).optional().describe("Context IDs"),
});

/** The fields of an option to create. Names and Context IDs are checked item by item later. */
export const optionFields = () => ({
  ...childFields(),
  type: z.enum(["atomic", "collection"]).optional().describe("collection: an option group; default atomic"),
  children: z.array(z.strictObject(childFields())).optional().describe("New sub-options; makes it a group"),
  exposeChildren: z.boolean().optional().describe("Groups only"),
});
