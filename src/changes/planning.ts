import type { Plan } from "./plan/plan.ts";

/** A plan that is still being made, since its reads take long. */
export interface Planning {
  readonly plan: Promise<Plan>;
  /** Stops planning: `plan` then rejects, unless it was made already. */
  stop(): void;
}

/** Whether a plan is still being made. */
export function isGoing(plan: Plan | Planning): plan is Planning {
  return "plan" in plan;
}
