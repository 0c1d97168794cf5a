import type { StoredLimits } from "./facts.ts";
import type { Actor, Project, Targeting } from "./project.ts";
import { optionRecord, targetingRecord } from "./records.ts";
import type { AddedOption, NewOption, NewTargeting } from "./requests.ts";
import {
  contextLimitExceeded,
  contextsHeldByGroups,
  type ItemOutcome,
  NO_OPTION,
  NO_TARGETING,
  NOT_SUPPORTED,
  optionIn,
  optionLimitExceeded,
  optionNameTaken,
  refusal,
  targetingIn,
  targetingNameTaken,
} from "./rules.ts";

/** Creates a targeting with all its options, or nothing. */
export function createTargeting(project: Project, limits: StoredLimits, actor: Actor, item: NewTargeting): ItemOutcome {
  const taken = targetingNameTaken(project, item.name);
  if (taken !== undefined) return taken;
  let outcome: ItemOutcome | undefined;
  project.attempt(() => {
    const targeting = project.createTargeting(actor, { name: item.name });
    for (const option of item.options ?? []) {
      const made = createOption(project, limits, actor, targeting, option);
      if ("error" in made) {
        outcome = made;
        return false;
      }
    }
    outcome = { data: targetingRecord(targeting) };
    return true;
  });
  return outcome ?? refusal(500, "UNCATCHED");
}

/** Adds an option with all its sub-options, or nothing. */
export function addOption(project: Project, limits: StoredLimits, actor: Actor, item: AddedOption): ItemOutcome {
  const targeting = targetingIn(project, item.targeting);
  if (targeting === undefined) return NO_TARGETING;
  const refused = badParent(project, item);
  return refused ?? createOption(project, limits, actor, targeting, item);
}

/** Checks cases 3 and 4 of management-api 7.4. A `parent` that is not an option of the targeting is a 404. */
function badParent(project: Project, item: AddedOption) {
  if (item.parent === undefined) return undefined;
  if (item.type === "collection" || item.children !== undefined || item.exposeChildren !== undefined) {
    return NOT_SUPPORTED;
  }
  const parent = optionIn(project, item.parent);
  if (parent?.targeting !== item.targeting) return NO_OPTION;
  return parent.isGroup && parent.parent === undefined ? undefined : NOT_SUPPORTED;
}

function createOption(
  project: Project,
  limits: StoredLimits,
  actor: Actor,
  targeting: Targeting,
  item: NewOption & { readonly parent?: string | undefined },
): ItemOutcome {
  const { name, type, contexts = [], children = [], exposeChildren, parent } = item;
  const isGroup = type === "collection" || item.children !== undefined;
  if (isGroup && type === "atomic") return NOT_SUPPORTED;
  if (!isGroup && exposeChildren !== undefined) return NOT_SUPPORTED;
  if (isGroup && children.length === 0 && contexts.length === 0) return NOT_SUPPORTED;
  const names = [name, ...children.map((child) => child.name)];
  for (const each of names) {
    const taken = optionNameTaken(project, targeting.id, each);
    if (taken !== undefined) return taken;
  }
  if (new Set(names).size < names.length) return refusal(409, "TARGETING_CATEGORY_NAME_DUPLICATE", {});
  const held = isGroup ? contextsHeldByGroups(project.groups(), contexts, project) : undefined;
  const grown = [contexts, ...children.map((child) => child.contexts ?? [])];
  const refused =
    held ??
    contextLimitExceeded(
      limits,
      project,
      grown.map((ids) => ({ before: 0, after: new Set(ids) })),
    ) ??
    optionLimitExceeded(limits, targeting, names.length);
  if (refused !== undefined) return refused;
  const made = project.createOption(actor, {
    targeting: targeting.id,
    name,
    isGroup,
    parent,
    exposeChildren,
    contexts,
  });
  for (const child of children) {
    const { contexts: own = [] } = child;
    const place = { targeting: targeting.id, parent: made.id };
    project.createOption(actor, { ...place, name: child.name, isGroup: false, contexts: own });
  }
  return { data: optionRecord(made) };
}
