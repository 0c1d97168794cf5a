import * as z from "zod";

/** Why an object did not succeed, as it is read back. */
export const reason = z.object({
  code: z.string(),
  statusCode: z.number().exactOptional(),
  detail: z.record(z.string(), z.unknown()).exactOptional(),
  operation: z
    .enum(["createTargetings", "renameTargetings", "deleteTargetings", "addOptions", "updateOptions", "deleteOptions"])
    .exactOptional(),
  sent: z.array(z.string()).exactOptional(),
});

/** The line of a journal that says how a run stopped, as it is read back. */
export const stopEntry = z.object({
  t: z.literal("stop"),
  cause: z.enum(["finished", "cancelled", "interrupted", "ended"]),
  reason: reason.exactOptional(),
  at: z.number(),
});

const side = z
  .union([
    z.string(),
    z.object({
      name: z.string().exactOptional(),
      parent: z.string().nullable().exactOptional(),
      parentName: z.string().nullable().exactOptional(),
    }),
  ])
  .exactOptional();
const some = z.number().exactOptional();

/** What is counted and reported by itself, as it is read back. */
export const reportedObject = z.object({
  index: z.number(),
  line: z.number().exactOptional(),
  child: z.number().exactOptional(),
  grandchild: z.number().exactOptional(),
  name: z.string().exactOptional(),
  _id: z.string().exactOptional(),
  uid: z.string().exactOptional(),
  mended: z.array(z.string()).exactOptional(),
  change: z
    .object({ from: side, to: side, added: some, removed: some, alreadyThere: some, absent: some })
    .exactOptional(),
  contextCount: some,
});
