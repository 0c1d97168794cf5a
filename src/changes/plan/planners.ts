export { planAddOptions } from "./add-options.ts";
export { notePreviousValues, noteTargetingFacts, optionFinder, readCurrentNames } from "./current-values.ts";
export { planDeleteOptions, planDeleteTargetings } from "./deletes.ts";
export { OptionDrafts } from "./option-drafts.ts";
export { Plan } from "./plan.ts";
export { planDesired } from "./plan-desired.ts";
export { planCreateTargetings, planRenameTargetings, planUpdateOptions } from "./targetings.ts";
export { planUpdateContexts, targetsOf } from "./update-contexts.ts";
