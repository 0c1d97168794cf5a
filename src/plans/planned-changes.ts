import type { ServiceTargeting } from "./base/service-targeting.ts";
import type { PlanItem, StatePlan } from "./diff/plan.ts";
import type { lookAgain } from "./diff/stale.ts";

/** What matters of an option that is there now. */
type OptionThere = Pick<
  ServiceTargeting["options"][number],
  "_id" | "name" | "type" | "parent" | "exposeChildren" | "contexts"
>;

/** A plan, and what is there now, as those who carry it out need it. */
export interface PlannedChanges {
  readonly targeting: StatePlan["targeting"];
  readonly items: readonly PlanItem[];
  readonly alreadyDone: ReadonlySet<number>;
  readonly stale: ReturnType<typeof lookAgain>["stale"];
  readonly there: ReadonlyMap<string, OptionThere>;
  /** Options of which it cannot be told whether the undone run made them: they are left alone, and reported. */
  readonly unclear?: readonly { readonly _id: string; readonly name: string }[];
  /** Those of further targetings, where a way back has several. */
  readonly further: readonly PlannedChanges[];
}

/** A plan beside the state that it was made from. */
export function asPlanned({ targeting, items }: StatePlan, there: ServiceTargeting | undefined): PlannedChanges {
  const options = new Map(there?.options.map((option) => [option._id, option]));
  return { targeting, items, alreadyDone: new Set(), stale: [], there: options, further: [] };
}
