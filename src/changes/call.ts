import type { InputFile } from "../files/input-file.ts";
import type { AddOptionsInput } from "./plan/add-options.ts";
import type { CreateTargetingsInput } from "./plan/create-targetings.ts";
import type { DeleteOptionsInput, DeleteTargetingsInput } from "./plan/deletes.ts";
import type { BaseFile } from "./plan/desired-changes.ts";
import type { Plan } from "./plan/plan.ts";
import type { RenameTargetingsInput, UpdateOptionsInput } from "./plan/renames.ts";
import type { UpdateContextsInput } from "./plan/update-contexts.ts";

/** The tools that plan a desired state or a way back, whose runs `apply_plan` starts. */
export type PlanningTool = "plan_targeting" | "undo_run";

/** A planned desired state: the plan itself is kept beside the run. */
interface ApplyPlanInput {
  /** The tool that planned it, which the run is told under until it is started. */
  readonly plannedBy: PlanningTool;
  /** Absent where the plan creates the targeting. */
  readonly targetingId?: string | undefined;
  /** Its further targetings, where it changes several. */
  readonly furtherIds?: readonly string[] | undefined;
  /** The run that it undoes, which is not resumed once the undo starts. */
  readonly undoes?: string | undefined;
  /** The sheet that it was made of, which is kept beside it. */
  readonly sheet?: InputFile | undefined;
  /** SHA-256 of the kept plan, in hexadecimal digits. */
  readonly digest: string;
  /** The base beside the file that was planned, which is renewed when the run ends. */
  readonly base?: BaseFile | undefined;
}

/** What each tool that writes to the management API takes. */
export interface Inputs {
  readonly create_targetings: CreateTargetingsInput;
  readonly rename_targetings: RenameTargetingsInput;
  readonly delete_targeting: DeleteTargetingsInput;
  readonly bulk_add_options: AddOptionsInput;
  readonly update_options: UpdateOptionsInput;
  readonly update_contexts: UpdateContextsInput;
  readonly delete_options: DeleteOptionsInput;
  readonly apply_plan: ApplyPlanInput;
}

/** The name of a tool that writes to the management API. */
export type WriteTool = keyof Inputs;

/** A write as the caller asked for it: kept with the run, so that a run needs nothing from the caller again. */
export type WriteCall<Tool extends WriteTool = WriteTool> = {
  readonly [T in Tool]: { readonly tool: T; readonly input: Inputs[T] };
}[Tool];

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
