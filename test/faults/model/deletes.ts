import type { Actor, Option, Project } from "./project.ts";
import { type ItemOutcome, NO_OPTION, NO_TARGETING, NOT_SUPPORTED, optionIn, refusal, targetingIn } from "./rules.ts";

/** Deletes a targeting with its options. */
export function deleteTargeting(project: Project, actor: Actor, id: string): ItemOutcome {
  const targeting = targetingIn(project, id);
  if (targeting === undefined) return NO_TARGETING;
  if (targeting.locked) return refusal(400, "TARGETING_LOCKED");
  project.deleteTargeting(actor, targeting);
  return { data: { _id: id } };
}

/**
 * Deletes an option. `together` are all IDs of the request: a group may lose its last sub-option if the request deletes
 * the group, too (management-api 7.4 case 6).
 */
export function deleteOption(project: Project, actor: Actor, id: string, together: ReadonlySet<string>): ItemOutcome {
  const option = optionIn(project, id);
  if (option === undefined) return NO_OPTION;
  if (leavesEmpty(project, option, together)) return NOT_SUPPORTED;
  project.deleteOption(actor, option);
  return { data: { _id: id } };
}

function leavesEmpty(project: Project, option: Option, together: ReadonlySet<string>): boolean {
  const group = option.parent === undefined ? undefined : project.options.get(option.parent);
  if (group === undefined || together.has(group.id)) return false;
  return group.contexts.size === 0 && group.children.size <= 1;
}

/**
 * Returns how many of these options are groups or sub-options. A delete request may have 150 of them (management-api
 * 8.1).
 */
export function treeItems(project: Project, ids: readonly string[]): number {
  return ids.filter((id) => {
    const option = optionIn(project, id);
    return option !== undefined && (option.isGroup || option.parent !== undefined);
  }).length;
}
