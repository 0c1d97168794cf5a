import * as z from "zod";
import type { Fixed } from "../platform/json.ts";
import type { OptionType } from "../spec/records.ts";
import { difference, type StatePlan, shownValue, ulid } from "./diff/plan.ts";

/**
 * How an object goes back: as it was, with a caveat, not at all since others changed it, or not at all; `unresolved`:
 * its request was not answered, and what became of it is found out before anything goes back.
 */
export const UNDO_LABELS = ["unresolved", "exact", "caveat", "notOurs", "impossible"] as const;
export type RowLabel = (typeof UNDO_LABELS)[number];

/** Why an object goes back with a caveat, or not at all. */
const UNDO_REASONS = [
  /** It comes back under a new ID: what referred to the old one does not. */
  "newId",
  /** It comes back at the top level, since its group is gone. */
  "groupGone",
  /** Context IDs that were added stay, since it was not read whether they were there before. */
  "notRead",
  /** Its former value was not kept. */
  "notKept",
  /** It cannot be told whether the run changed it. */
  "unknownOutcome",
  /** Another option has its former name now. */
  "nameTaken",
  /** A group would be left without sub-options and own Context IDs. */
  "emptyGroup",
  /** Another group holds the Context IDs now. */
  "heldByGroup",
  /** Its targeting is gone. */
  "targetingGone",
] as const;
export type UndoReason = (typeof UNDO_REASONS)[number];

/** One object of the undone run, or one field of it that does not go back, and what becomes of it: as it is written. */
export const undoRow = z.strictObject({
  targeting: ulid.optional(),
  _id: ulid.optional(),
  name: z.string(),
  undo: z.enum(UNDO_LABELS),
  reasons: z.array(z.enum(UNDO_REASONS)).optional(),
  /** What is left alone: the value that the run left, and the one that is there now. */
  field: difference.shape.field.optional(),
  left: shownValue.optional(),
  now: shownValue.optional(),
  /** How many Context IDs it is about. */
  contextIds: z.int().optional(),
  /** Where its item is: the position of the plan of its targeting, and the one in that plan. */
  at: z.strictObject({ targeting: z.int(), item: z.int() }).optional(),
});
export type UndoRow = Fixed<z.infer<typeof undoRow>>;

/** What goes back in one targeting. */
export interface TargetingBack {
  readonly plan: StatePlan;
  /** By the position of the item that creates an option: the deleted option that it stands for. */
  readonly standsFor: readonly { readonly item: number; readonly _id: string }[];
}

/** The way back from a run. */
export interface WayBack {
  readonly targetings: readonly TargetingBack[];
  readonly rows: readonly UndoRow[];
}

/** How many rows have which label. */
export function countsOfRows(rows: readonly UndoRow[]): Readonly<Record<RowLabel, number>> {
  const counts = { unresolved: 0, exact: 0, caveat: 0, notOurs: 0, impossible: 0 };
  for (const { undo } of rows) counts[undo] += 1;
  return counts;
}

/** An option as it is now. Its Context IDs are known only where the way back depends on them. */
export interface PresentOption {
  readonly _id: string;
  readonly name: string;
  readonly type: OptionType;
  readonly parent: string | null;
  readonly exposeChildren?: boolean | undefined;
  readonly contextCount: number;
  readonly contexts?: readonly string[] | undefined;
}

/** A targeting as it is now. */
export interface Present {
  readonly targeting: { readonly _id: string; readonly name: string };
  readonly options: ReadonlyMap<string, PresentOption>;
}

/** An option that goes back, while it is looked at whether that fits; `key` is its ID, of a deleted one the old ID. */
export interface Intent {
  readonly key: string;
  readonly kind: "create" | "change" | "delete";
  readonly there?: PresentOption | undefined;
  name?: string | undefined;
  type?: OptionType | undefined;
  /** The key of its group, or null for the top level. */
  parent?: string | null | undefined;
  exposeChildren?: boolean | undefined;
  add: readonly string[];
  remove: readonly string[];
  readonly caveats: UndoReason[];
}
