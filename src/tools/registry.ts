import type * as z from "zod";
import type { ToolContext } from "./context.ts";
import type { ToolDefinition, ToolOutcome } from "./definition.ts";
import { generateEventTestsTool } from "./events/generate-event-tests.ts";
import { inspectEvents } from "./events/inspect-events.ts";
import { listEventTypesTool } from "./events/list-event-types.ts";
import { runEventTestsTool } from "./events/run-event-tests.ts";
import { trackEvent } from "./events/track-event.ts";
import { trackEvents } from "./events/track-events.ts";
import { applyPlan } from "./plans/apply-plan.ts";
import { planTargeting } from "./plans/plan-targeting.ts";
import { undoRun } from "./plans/undo-run.ts";
import { cancelRun } from "./runs/cancel-run.ts";
import { decideRun } from "./runs/decide-run.ts";
import { getRun } from "./runs/get-run.ts";
import { resumeRun } from "./runs/resume-run.ts";
import { bulkAddOptions } from "./targeting/bulk-add-options.ts";
import { createTargetings } from "./targeting/create-targetings.ts";
import { deleteOptions } from "./targeting/delete-options.ts";
import { deleteTargeting } from "./targeting/delete-targeting.ts";
import { getOption } from "./targeting/get-option.ts";
import { getTargeting } from "./targeting/get-targeting.ts";
import { listOptions } from "./targeting/list-options.ts";
import { renameTargetings } from "./targeting/rename-targetings.ts";
import { updateContexts } from "./targeting/update-contexts.ts";
import { updateOptions } from "./targeting/update-options.ts";

/** Arguments that fit, ready to run; or what is wrong with them. */
export type Prepared =
  | { readonly fits: true; readonly input: unknown; readonly run: (context: ToolContext) => Promise<ToolOutcome> }
  | { readonly fits: false; readonly issues: readonly z.core.$ZodIssue[] };

/** A tool whose input type is hidden: it takes arguments of any kind, checks them, and runs. */
export interface Tool extends Omit<ToolDefinition, "handler"> {
  readonly prepare: (given: unknown) => Prepared;
}

/** Every tool, in the order in which they are listed. */
export const TOOLS: readonly Tool[] = [
  toolOf(getTargeting),
  toolOf(listOptions),
  toolOf(getOption),
  toolOf(createTargetings),
  toolOf(renameTargetings),
  toolOf(deleteTargeting),
  toolOf(bulkAddOptions),
  toolOf(updateOptions),
  toolOf(updateContexts),
  toolOf(deleteOptions),
  toolOf(planTargeting),
  toolOf(applyPlan),
  toolOf(undoRun),
  toolOf(getRun),
  toolOf(resumeRun),
  toolOf(cancelRun),
  toolOf(listEventTypesTool),
  toolOf(trackEvent),
  toolOf(trackEvents),
  toolOf(generateEventTestsTool),
  toolOf(runEventTestsTool),
  toolOf(inspectEvents),
];

/** The tools that only views call, for clients that show views. */
export const VIEW_TOOLS: readonly Tool[] = [toolOf(decideRun)];

/** A tool by its name. Throws a RangeError where there is none. */
export function toolNamed(name: string): Tool {
  const tool = [...TOOLS, ...VIEW_TOOLS].find((one) => one.name === name);
  if (tool === undefined) throw new RangeError(`there is no tool ${name}`);
  return tool;
}

/** Hides the input type of a definition. */
export function toolOf<Input extends z.ZodObject>(definition: ToolDefinition<Input>): Tool {
  let schema: Input | undefined;
  const input = () => {
    schema ??= definition.input();
    return schema;
  };
  return {
    ...definition,
    input,
    prepare(given) {
      const parsed = input().safeParse(given);
      if (!parsed.success) return { fits: false, issues: parsed.error.issues };
      return { fits: true, input: parsed.data, run: (context) => definition.handler(parsed.data, context) };
    },
  };
}
