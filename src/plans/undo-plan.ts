import * as z from "zod";
import type { Fixed } from "../platform/json.ts";
import type { OptionType } from "../spec/records.ts";
import { type ServiceOption, ulid } from "./base.ts";
import { difference, type StatePlan, shownValue } from "./diff/plan.ts";

/**
 * How far an undo restores an object. `exact`: completely. `caveat`: with differences. `notOurs`: not at all, because
 * others have changed the object. `impossible`: not at all, for the given reasons. `unresolved`: the outcome of its
 * request is unknown.
 */
export const UNDO_LABELS = ["unresolved", "exact", "caveat", "notOurs", "impossible"] as const;
export type RowLabel = (typeof UNDO_LABELS)[number];

/** Why an object is restored with differences, or not at all. */
const UNDO_REASONS = [
  /** The object gets a new ID, so references to the old one stay broken. */
  "newId",
  /** The option is restored at the top level. */
  "groupGone",
  /** Added Context IDs stay, because the option may have held them before. */
  "notRead",
  /** The previous value was not stored. */
  "notKept",
  "unknownOutcome",
  "nameTaken",
  /** The previous name is not a valid name (management-api 8.3). */
  "nameInvalid",
  /** A group would have neither sub-options nor Context IDs. */
  "emptyGroup",
  /** Another group now holds the Context IDs. */
  "heldByGroup",
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
  /** The field that is not restored: its value after the run (`left`), and the current one (`now`). */
  field: difference.shape.field.optional(),
  left: shownValue.optional(),
  now: shownValue.optional(),
  contextIds: z.int().optional(),
  /** The positions of the targeting's plan, and of the item in it. */
  at: z.strictObject({ targeting: z.int(), item: z.int() }).optional(),
});
export type UndoRow = Fixed<z.infer<typeof undoRow>>;

export interface TargetingUndo {
  readonly plan: StatePlan;
  /** The items that create an option again, with the ID of the deleted option. */
  readonly standsFor: readonly { readonly item: number; readonly _id: string }[];
}

export interface UndoPlan {
  readonly targetings: readonly TargetingUndo[];
  readonly rows: readonly UndoRow[];
}

export function countsOfRows(rows: readonly UndoRow[]): Readonly<Record<RowLabel, number>> {
  const counts = { unresolved: 0, exact: 0, caveat: 0, notOurs: 0, impossible: 0 };
  for (const { undo } of rows) counts[undo] += 1;
  return counts;
}

/** An option as it is now, with Context IDs only if the undo depends on them. */
export interface PresentOption extends Omit<ServiceOption, "contexts" | "contextCount" | "digest"> {
  readonly contextCount: number;
  readonly contexts?: readonly string[] | undefined;
}

export interface Present {
  readonly targeting: { readonly _id: string; readonly name: string };
  readonly options: ReadonlyMap<string, PresentOption>;
  /** Whether only the options of the undone run are known, so that conflicts with other options are not found. */
  readonly isPartial?: true;
}

/** A change that an undo makes. `key` is the ID of the option; for a deleted option, its old ID. */
export interface Intent {
  readonly key: string;
  readonly kind: "create" | "change" | "delete";
  readonly there?: PresentOption | undefined;
  name?: string | undefined;
  type?: OptionType | undefined;
  parent?: string | null | undefined;
  exposeChildren?: boolean | undefined;
  add: readonly string[];
  remove: readonly string[];
  readonly caveats: UndoReason[];
}
