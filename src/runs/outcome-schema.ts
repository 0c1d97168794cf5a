import * as z from "zod";

const number = z.number().exactOptional();
const text = z.string().exactOptional();

export const reason = z.object({
  /** An error code of the API (management-api 7.2), or one of our own (`OWN_CODES`). */
  code: z.string(),
  statusCode: number,
  detail: z.record(z.string(), z.unknown()).exactOptional(),
  operation: z
    .enum(["createTargetings", "renameTargetings", "deleteTargetings", "addOptions", "updateOptions", "deleteOptions"])
    .exactOptional(),
  /** What the refused item said (`sentFields`), where the code means several things that only this tells apart. */
  sent: z.array(z.string()).readonly().exactOptional(),
});

export const asked = z.enum([
  "agreed_in_client",
  "agreed_in_view",
  "agreed_on_page",
  "agreed_by_token",
  "agreed_in_terminal",
  "not_needed",
]);

export const takenName = z.object({ given: z.string(), name: z.string() });
export const nearIds = z.object({
  count: z.number(),
  first: z.array(z.object({ given: z.string(), held: z.string() })),
});
export const rowCounts = z.object({ read: z.number(), merged: z.number(), skipped: z.number() });

/** The line of a journal that says how a run stopped, as it is read back. */
export const stopEntry = z.object({
  t: z.literal("stop"),
  cause: z.enum(["finished", "cancelled", "interrupted", "ended"]),
  reason: reason.exactOptional(),
  at: z.number(),
});

const placed = { parent: z.string().nullable().exactOptional(), parentName: z.string().nullable().exactOptional() };
const side = z.union([z.string(), z.object({ name: text, ...placed })]).exactOptional();

export const knownChange = z.object({
  /** Of a rename the names, of a move the groups, of both together all of it. */
  from: side,
  to: side,
  /** How many Context IDs come and go, and of how many nothing is to be done. */
  added: number,
  removed: number,
  alreadyThere: number,
  absent: number,
});

export const reportedObject = z.object({
  /** Position in the caller's `items`, or the data row of the file, counted from 0. */
  index: z.number(),
  /** The line of the file, counted from 1. */
  line: number,
  /** Position in the item's `children` or `options`. */
  child: number,
  /** Position in the `children` of an option of a new targeting. */
  grandchild: number,
  name: text,
  /** The ID that the caller gave, where it gave one. */
  _id: text,
  /** Of an event: the SHA-256 hash of its `uid`, in hexadecimal. */
  uid: text,
  /** Of an event: which of its misspelt names were corrected, each as `eventName addToCart → add_to_cart`. */
  mended: z.array(z.string()).readonly().exactOptional(),
  change: knownChange.exactOptional(),
  /** How many Context IDs its option is to hold after the run, by the read before and what the run changes. */
  contextCount: number,
});
