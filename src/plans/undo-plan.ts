import * as z from "zod";
import type { Fixed } from "../platform/json.ts";
import type { OptionType } from "../spec/records.ts";
import { difference, type StatePlan, shownValue, ulid } from "./diff/plan.ts";

/**
 * How an object is undone: `exact`; `caveat`, with differences; `notOurs`, not undone because others changed it since;
 * `impossible`; or `unresolved`, until the outcome of its unanswered request is known.
 */
export const UNDO_LABELS = ["unresolved", "exact", "caveat", "notOurs", "impossible"] as const;
export type RowLabel = (typeof UNDO_LABELS)[number];

/** Why an object is restored with differences, or not at all. */
const UNDO_REASONS = [
  /** It gets a new ID, and references to the old one stay broken. */
  "newId",
  /** It is restored at the top level, because its group is gone. */
  "groupGone",
  /** Added Context IDs stay, because it is unknown whether they were there before. */
  "notRead",
  /** Its previous value was not stored. */
  "notKept",
  /** It is unknown whether the run changed it. */
  "unknownOutcome",
  /** Another option now has its previous name. */
  "nameTaken",
  /** The service refuses its previous name (management-api 8.3). */
  "nameInvalid",
  /** A group would have no sub-options and no own Context IDs. */
  "emptyGroup",
  /** Another group now has the Context IDs. */
  "heldByGroup",
  /** Its targeting is gone. */
  "targetingGone",
] as const;
export type UndoReason = (typeof UNDO_REASONS)[number];

/** An object of the undone run, or a field of it that is not restored, with the planned result, as stored. */
export const undoRow = z.strictObject({
  targeting: ulid.optional(),
  _id: ulid.optional(),
  name: z.string(),
  undo: z.enum(UNDO_LABELS),
  reasons: z.array(z.enum(UNDO_REASONS)).optional(),
  /** The field that stays, with the value that the run left and the current one. */
  field: difference.shape.field.optional(),
  left: shownValue.optional(),
  now: shownValue.optional(),
  /** The number of Context IDs concerned. */
  contextIds: z.int().optional(),
  /** The position of its item: of the targeting's plan, and within that plan. */
  at: z.strictObject({ targeting: z.int(), item: z.int() }).optional(),
});
export type UndoRow = Fixed<z.infer<typeof undoRow>>;

/** The undo in one targeting. */
export interface TargetingUndo {
  readonly plan: StatePlan;
  /** For each item that creates an option again: its position, and the ID of the deleted option. */
  readonly standsFor: readonly { readonly item: number; readonly _id: string }[];
}

/** The undo plan of a run. */
export interface UndoPlan {
  readonly targetings: readonly TargetingUndo[];
  readonly rows: readonly UndoRow[];
}

/** Returns the number of rows per label. */
export function countsOfRows(rows: readonly UndoRow[]): Readonly<Record<RowLabel, number>> {
  const counts = { unresolved: 0, exact: 0, caveat: 0, notOurs: 0, impossible: 0 };
  for (const { undo } of rows) counts[undo] += 1;
  return counts;
}

/** An option in its current state. Its Context IDs are known only if the undo depends on them. */
export interface PresentOption {
  readonly _id: string;
  readonly name: string;
  readonly type: OptionType;
  readonly parent: string | null;
  readonly exposeChildren?: boolean | undefined;
  readonly contextCount: number;
  readonly contexts?: readonly string[] | undefined;
}

/** A targeting in its current state. */
export interface Present {
  readonly targeting: { readonly _id: string; readonly name: string };
  readonly options: ReadonlyMap<string, PresentOption>;
  /** Only the options of the undone run are known, so conflicts with other options are not. */
  readonly isPartial?: true;
}

/** The planned undo of one option. `key` is its ID; for a deleted option, the old ID. */
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
