import type { Plan } from "./plan/plan.ts";

/** A plan that is still being made, since its reads take long. */
export interface Planning<Made = Plan> {
  readonly plan: Promise<Made>;
  /** Stops planning: `plan` then rejects, unless it was made already. */
  stop(): void;
}

/** Whether a plan is still being made. */
export function isGoing<Made extends object>(plan: Made | Planning<Made>): plan is Planning<Made> {
  return "plan" in plan && plan.plan instanceof Promise;
}
