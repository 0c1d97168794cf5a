import * as z from "zod";
import type { Fixed } from "../platform/json.ts";
import type { OptionType } from "../spec/records.ts";
import { type ServiceOption, ulid } from "./base.ts";
import { difference, type StatePlan, shownValue } from "./diff/plan.ts";

/**
 * How far an undo restores an object. `exact`: completely. `caveat`: with differences. `notOurs`: not at all, because
 * others have changed it. `impossible`: not at all, for a given reason. `unresolved`: it is unknown whether the run
 * changed it.
 */
export const UNDO_LABELS = ["unresolved", "exact", "caveat", "notOurs", "impossible"] as const;
export type RowLabel = (typeof UNDO_LABELS)[number];

/** Why an object is restored with differences or not at all. */
const UNDO_REASONS = [
  /** The object gets a new ID. Whatever refers to the old ID stays disconnected. */
  "newId",
  /** The group no longer exists, so the option is restored at the top level. */
  "groupGone",
  /** The Context IDs stay, because the option may have held them before the run. */
  "notRead",
  /** The previous value was not stored. */
  "notKept",
  "unknownOutcome",
  "nameTaken",
  /** The previous name breaks the rules for names (management-api 8.3). */
  "nameInvalid",
  /** The undo would leave a group without sub-options and Context IDs. */
  "emptyGroup",
  /** Another group holds the Context IDs now. */
  "heldByGroup",
  "targetingGone",
] as const;
export type UndoReason = (typeof UNDO_REASONS)[number];

/** What an undo does with one object, or with one field that it cannot restore. */
export const undoRow = z.strictObject({
  targeting: ulid.optional(),
  _id: ulid.optional(),
  name: z.string(),
  undo: z.enum(UNDO_LABELS),
  reasons: z.array(z.enum(UNDO_REASONS)).optional(),
  /** The field that is not restored. `left` is its value after the run, `now` its current value. */
  field: difference.shape.field.optional(),
  left: shownValue.optional(),
  now: shownValue.optional(),
  contextIds: z.int().optional(),
  /** With `emptyGroup`: the name of the group that would become empty. */
  group: z.string().optional(),
  /** The index of the targeting's plan, and of the item in that plan. */
  at: z.strictObject({ targeting: z.int(), item: z.int() }).optional(),
});
export type UndoRow = Fixed<z.infer<typeof undoRow>>;

export interface TargetingUndo {
  readonly plan: StatePlan;
  /** The items that create a deleted option again, with the ID that it had. */
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

/** An option as it is now. Its Context IDs are read only if the undo depends on them. */
export interface PresentOption extends Omit<ServiceOption, "contexts" | "contextCount" | "digest"> {
  readonly contextCount: number;
  readonly contexts?: readonly string[] | undefined;
}

export interface Present {
  readonly targeting: { readonly _id: string; readonly name: string };
  readonly options: ReadonlyMap<string, PresentOption>;
  /** Set if only the options of the undone run were read. Conflicts with other options are then not found. */
  readonly isPartial?: true;
}

/** A change that an undo makes. `key` is the ID of the option, or the ID that it had before it was deleted. */
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
