import { type Tool, toolOf } from "./define-tool.ts";

/** Functions that load the tools. Each tool is loaded with its first call, so that the server starts fast. */
const TOOLS: Readonly<Record<string, () => Promise<Tool>>> = {
  get_targeting: async () => toolOf((await import("./get-targeting.ts")).getTargeting),
  list_options: async () => toolOf((await import("./list-options.ts")).listOptions),
  get_option: async () => toolOf((await import("./get-option.ts")).getOption),
  create_targetings: async () => toolOf((await import("./create-targetings.ts")).createTargetings),
  rename_targetings: async () => toolOf((await import("./rename-targetings.ts")).renameTargetings),
  delete_targeting: async () => toolOf((await import("./delete-targeting.ts")).deleteTargeting),
  bulk_add_options: async () => toolOf((await import("./bulk-add-options.ts")).bulkAddOptions),
  update_options: async () => toolOf((await import("./update-options.ts")).updateOptions),
  update_contexts: async () => toolOf((await import("./update-contexts.ts")).updateContexts),
  delete_options: async () => toolOf((await import("./delete-options.ts")).deleteOptions),
  plan_targeting: async () => toolOf((await import("./plan-targeting.ts")).planTargeting),
  apply_plan: async () => toolOf((await import("./apply-plan.ts")).applyPlan),
  undo_run: async () => toolOf((await import("./undo-run.ts")).undoRun),
  get_run: async () => toolOf((await import("./get-run.ts")).getRun),
  resume_run: async () => toolOf((await import("./resume-run.ts")).resumeRun),
  cancel_run: async () => toolOf((await import("./cancel-run.ts")).cancelRun),
  list_event_types: async () => toolOf((await import("./list-event-types.ts")).listEventTypesTool),
  track_event: async () => toolOf((await import("./track-event.ts")).trackEvent),
  track_events: async () => toolOf((await import("./track-events.ts")).trackEvents),
  generate_event_tests: async () => toolOf((await import("./generate-event-tests.ts")).generateEventTestsTool),
  run_event_tests: async () => toolOf((await import("./run-event-tests.ts")).runEventTestsTool),
  inspect_events: async () => toolOf((await import("./inspect-events.ts")).inspectEvents),
};

const VIEW_TOOLS: typeof TOOLS = { decide_run: async () => toolOf((await import("./decide-run.ts")).decideRun) };

export function everyTool(): Promise<readonly Tool[]> {
  return Promise.all(Object.values(TOOLS).map((load) => load()));
}

export function everyViewTool(): Promise<readonly Tool[]> {
  return Promise.all(Object.values(VIEW_TOOLS).map((load) => load()));
}

export async function toolNamed(name: string): Promise<Tool> {
  const load = { ...TOOLS, ...VIEW_TOOLS }[name];
  if (load === undefined) throw new RangeError(`there is no tool ${name}`);
  return load();
}
