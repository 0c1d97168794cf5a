import type { Plan } from "./plan/plan.ts";

/** A plan that is still being made: reads may take their time. */
export interface Planning {
  readonly plan: Promise<Plan>;
  /** Gives it up: `plan` is then rejected, or was made already. */
  stop(): void;
}

/** Whether a plan is still being made. */
export function isGoing(plan: Plan | Planning): plan is Planning {
  return "plan" in plan;
}
