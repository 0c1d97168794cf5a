import type * as z from "zod";
import type { Fixed } from "../../platform/json.ts";
import type { difference, exceededLimit, shownValue, statePlan } from "./plan-schema.ts";

/** What applying a file would do, as plain data. */
export type StatePlan = Fixed<z.infer<typeof statePlan>>;

/** The targeting of a plan. */
export type PlannedTargeting = StatePlan["targeting"];

/** One object that would be created, changed or deleted. */
export type PlanItem = StatePlan["items"][number];
export type CreateItem = Extract<PlanItem, { readonly kind: "create" }>;
export type ChangeItem = Extract<PlanItem, { readonly kind: "change" }>;
export type DeleteItem = Extract<PlanItem, { readonly kind: "delete" }>;

/** Where an option will be. */
export type ParentRef = CreateItem["parent"];

/** An option as the plan saw it. */
export type SeenOption = DeleteItem["seen"];

/** How an option's Context IDs change. */
export type ContextsChange = NonNullable<ChangeItem["contexts"]>;

/** What differs between the sides of a plan. */
export type Difference = Fixed<z.infer<typeof difference>>;

/** A field in which the sides differ. */
export type DifferingField = Difference["field"];

/** The value of a field as it is shown. */
export type ShownValue = z.infer<typeof shownValue>;

/** A limit that the plan would exceed. */
export type ExceededLimit = Fixed<z.infer<typeof exceededLimit>>;

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
