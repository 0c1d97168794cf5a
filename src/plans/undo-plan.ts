import * as z from "zod";
import type { Fixed } from "../platform/json.ts";
import type { OptionType } from "../spec/records.ts";
import { difference, type StatePlan, shownValue, ulid } from "./diff/plan.ts";

/**
 * How an object is undone. `exact`: completely. `caveat`: with differences. `notOurs`: not at all, because others
 * changed it since. `impossible`: not at all, for the reasons given. `unresolved`: still open, because the outcome of
 * its request is unknown.
 */
export const UNDO_LABELS = ["unresolved", "exact", "caveat", "notOurs", "impossible"] as const;
export type RowLabel = (typeof UNDO_LABELS)[number];

/** Why an object is restored with differences, or not at all. */
const UNDO_REASONS = [
  /** The object gets a new ID. References to the old ID stay broken. */
  "newId",
  /** The option is restored at the top level, because its group no longer exists. */
  "groupGone",
  /** Added Context IDs stay, because it is unknown whether the option held them before. */
  "notRead",
  /** The previous value was not stored. */
  "notKept",
  /** It is unknown whether the run changed the object. */
  "unknownOutcome",
  /** Another option now has the previous name. */
  "nameTaken",
  /** The service does not accept the previous name (management-api 8.3). */
  "nameInvalid",
  /** A group would have neither sub-options nor Context IDs. */
  "emptyGroup",
  /** Another group now holds the Context IDs. */
  "heldByGroup",
  /** The targeting no longer exists. */
  "targetingGone",
] as const;
export type UndoReason = (typeof UNDO_REASONS)[number];

/** The undo of one object, or of one field that cannot be restored. */
export const undoRow = z.strictObject({
  targeting: ulid.optional(),
  _id: ulid.optional(),
  name: z.string(),
  undo: z.enum(UNDO_LABELS),
  reasons: z.array(z.enum(UNDO_REASONS)).optional(),
  /** The field that is not restored, with the value after the run (`left`) and the current value (`now`). */
  field: difference.shape.field.optional(),
  left: shownValue.optional(),
  now: shownValue.optional(),
  /** The number of Context IDs that this is about. */
  contextIds: z.int().optional(),
  /** The positions of the targeting's plan, and of the item in that plan. */
  at: z.strictObject({ targeting: z.int(), item: z.int() }).optional(),
});
export type UndoRow = Fixed<z.infer<typeof undoRow>>;

export interface TargetingUndo {
  readonly plan: StatePlan;
  /** For each item that creates an option again: the position of the item, and the ID of the deleted option. */
  readonly standsFor: readonly { readonly item: number; readonly _id: string }[];
}

export interface UndoPlan {
  readonly targetings: readonly TargetingUndo[];
  readonly rows: readonly UndoRow[];
}

/** Returns the number of rows for each label. */
export function countsOfRows(rows: readonly UndoRow[]): Readonly<Record<RowLabel, number>> {
  const counts = { unresolved: 0, exact: 0, caveat: 0, notOurs: 0, impossible: 0 };
  for (const { undo } of rows) counts[undo] += 1;
  return counts;
}

/** An option in its current state. Its Context IDs are present only if the undo depends on them. */
export interface PresentOption {
  readonly _id: string;
  readonly name: string;
  readonly type: OptionType;
  readonly parent: string | null;
  readonly exposeChildren?: boolean | undefined;
  readonly contextCount: number;
  readonly contexts?: readonly string[] | undefined;
}

/** The current state of a targeting. */
export interface Present {
  readonly targeting: { readonly _id: string; readonly name: string };
  readonly options: ReadonlyMap<string, PresentOption>;
  /** Set if only the options of the undone run are known. Conflicts with other options are then not found. */
  readonly isPartial?: true;
}

/** The planned change of one option in an undo. `key` is its ID; for a deleted option, its old ID. */
export interface Intent {
  readonly key: string;
  readonly kind: "create" | "change" | "delete";
  readonly there?: PresentOption | undefined;
  name?: string | undefined;
  type?: OptionType | undefined;
  /** The key of the group. Null for the top level. */
  parent?: string | null | undefined;
  exposeChildren?: boolean | undefined;
  add: readonly string[];
  remove: readonly string[];
  readonly caveats: UndoReason[];
}
