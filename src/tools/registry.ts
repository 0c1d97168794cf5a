import type * as z from "zod";
import { applyPlan } from "./apply-plan.ts";
import { bulkAddOptions } from "./bulk-add-options.ts";
import { cancelRun } from "./cancel-run.ts";
import type { ToolContext } from "./context.ts";
import { createTargetings } from "./create-targetings.ts";
import { decideRun } from "./decide-run.ts";
import type { ToolDefinition, ToolOutcome } from "./define-tool.ts";
import { deleteOptions } from "./delete-options.ts";
import { deleteTargeting } from "./delete-targeting.ts";
import { generateEventTestsTool } from "./generate-event-tests.ts";
import { getOption } from "./get-option.ts";
import { getRun } from "./get-run.ts";
import { getTargeting } from "./get-targeting.ts";
import { inspectEvents } from "./inspect-events.ts";
import { listEventTypesTool } from "./list-event-types.ts";
import { listOptions } from "./list-options.ts";
import { planTargeting } from "./plan-targeting.ts";
import { renameTargetings } from "./rename-targetings.ts";
import { resumeRun } from "./resume-run.ts";
import { runEventTestsTool } from "./run-event-tests.ts";
import { trackEvent } from "./track-event.ts";
import { trackEvents } from "./track-events.ts";
import { undoRun } from "./undo-run.ts";
import { updateContexts } from "./update-contexts.ts";
import { updateOptions } from "./update-options.ts";

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
