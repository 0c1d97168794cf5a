import type { OptionType } from "../../spec/records.ts";
import type { Problem } from "../file/desired.ts";

/** Where an option will be: null for the top level, a group that is there, or one that the plan creates (its item). */
export type ParentRef = null | { readonly _id: string } | { readonly item: number };

/** An option as the plan saw it, so that a later look shows whether it has changed. */
export interface SeenOption {
  readonly name: string;
  readonly parent: string | null;
  readonly type: OptionType;
  readonly exposeChildren?: boolean | undefined;
  /** How many Context IDs, and the digest of them. */
  readonly contexts: number;
  readonly digest: string;
  /** Of groups: how many sub-options. */
  readonly subOptions?: number | undefined;
}

/**
 * How well an item of a way back brings back what was: exactly, with a difference that is said, or not at all. Absent in
 * the plan of a desired state.
 */
type UndoLabel = "exact" | "caveat";

/** An option that is created. A group stands before the options that go into it. */
export interface CreateItem {
  readonly kind: "create";
  readonly undo?: UndoLabel | undefined;
  /** The line of the file. */
  readonly line: number;
  readonly name: string;
  readonly type: OptionType;
  readonly parent: ParentRef;
  readonly exposeChildren?: boolean | undefined;
  readonly contexts: readonly string[];
}

/** How an option's Context IDs change. `after` is the digest of the result; absent where they are only to be there. */
export interface ContextsChange {
  readonly add: readonly string[];
  readonly remove: readonly string[];
  readonly after?: string | undefined;
}

/** An option that changes; fields that stay are absent. */
export interface ChangeItem {
  readonly kind: "change";
  readonly undo?: UndoLabel | undefined;
  readonly line: number;
  readonly _id: string;
  readonly seen: SeenOption;
  readonly name?: string | undefined;
  readonly parent?: ParentRef | undefined;
  readonly exposeChildren?: boolean | undefined;
  readonly contexts?: ContextsChange | undefined;
}

/** An option that is deleted, since it stood in the base and is gone from the file. */
export interface DeleteItem {
  readonly kind: "delete";
  readonly undo?: UndoLabel | undefined;
  readonly _id: string;
  readonly seen: SeenOption;
}

/** One object that would be created, changed or deleted. */
export type PlanItem = CreateItem | ChangeItem | DeleteItem;

/** A field in which the sides differ; `deleted` and `added` are about the option as a whole. */
export type DifferingField =
  | "name"
  | "parent"
  | "type"
  | "exposeChildren"
  | "contexts"
  | "deleted"
  | "added"
  | "subOptions";

/** The value of a field as it is shown: of parents the name (null: top level), of Context IDs their number. */
export type ShownValue = string | number | boolean | null;

/** What differs between the sides of a plan: what others changed, what both changed, or what no longer fits. */
export interface Difference {
  readonly _id?: string | undefined;
  readonly name: string;
  readonly field: DifferingField;
  readonly base?: ShownValue | undefined;
  readonly file?: ShownValue | undefined;
  readonly service?: ShownValue | undefined;
  readonly planned?: ShownValue | undefined;
  /** The line of the file that speaks of it. */
  readonly line?: number | undefined;
}

/** A limit that the plan would exceed: of the service (management-api 8.1), or a setting. */
export interface ExceededLimit {
  readonly limit: string;
  /** What the limit is about: an option, a targeting, the project. */
  readonly of: string;
  /** How much is there, how much it would be, and how much fits. */
  readonly there: number;
  readonly wanted: number;
  readonly fits: number;
}

/** The targeting of a plan. */
export interface PlannedTargeting {
  /** Absent where the plan creates it. */
  readonly _id?: string | undefined;
  /** Its name now, or the one that it gets when it is created. */
  readonly name: string;
  /** Another name that it gets. */
  readonly rename?: string | undefined;
  /** It is deleted with all its options, which are the items then: the undone run created it. */
  readonly delete?: true | undefined;
}

/** What applying a file would do, as plain data. */
export interface StatePlan {
  readonly targeting: PlannedTargeting;
  readonly items: readonly PlanItem[];
  /** Options that are there under the name of a row without `_id`. */
  readonly adopted: readonly { readonly _id: string; readonly name: string; readonly line: number }[];
  readonly drift: readonly Difference[];
  readonly conflicts: readonly Difference[];
  /** By name, without a base: what only the targeting has. */
  readonly onlyThere: readonly { readonly _id: string; readonly name: string }[];
  readonly limits: readonly ExceededLimit[];
  readonly problems: readonly Problem[];
  /** How many options the targeting had at planning time. */
  readonly optionsThere: number;
}

/** How many objects a plan changes; the targeting itself counts where it is created or renamed. */
export function itemCount({ items, targeting }: StatePlan): number {
  return items.length + (isChanged(targeting) ? 1 : 0);
}

function isChanged({ _id, rename, delete: isDeleted }: PlannedTargeting): boolean {
  return _id === undefined || rename !== undefined || isDeleted === true;
}

/** Whether a plan may be applied as far as it can tell itself. */
export function isApplicable({ conflicts, limits, problems }: StatePlan): boolean {
  return conflicts.length + limits.length + problems.length === 0;
}

/** A plan without anything in it, but for its targeting. */
export const NOTHING_PLANNED: Omit<StatePlan, "targeting"> = {
  ...{ items: [], adopted: [], drift: [], conflicts: [], onlyThere: [], limits: [], problems: [], optionsThere: 0 },
};
