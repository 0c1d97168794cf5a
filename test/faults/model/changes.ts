import type { StoredLimits } from "./facts.ts";
import type { Actor, Option, Project } from "./project.ts";
import { optionRecord, targetingRecord } from "./records.ts";
import type { Rename, Update } from "./requests.ts";
import {
  contextLimitExceeded,
  contextsHeldByGroups,
  type ItemOutcome,
  NO_OPTION,
  NO_TARGETING,
  NOT_SUPPORTED,
  optionIn,
  optionNameTaken,
  refusal,
  targetingIn,
  targetingNameTaken,
} from "./rules.ts";

/** Renames a targeting. */
export function renameTargeting(project: Project, actor: Actor, item: Rename): ItemOutcome {
  const targeting = targetingIn(project, item._id);
  if (targeting === undefined) return NO_TARGETING;
  const taken = item.name === targeting.name ? undefined : targetingNameTaken(project, item.name, targeting.id);
  if (taken !== undefined) return taken;
  project.renameTargeting(actor, targeting, item.name);
  return { data: targetingRecord(targeting) };
}

/**
 * What the items of one update request see of each other, since they run concurrently (management-api 4.1): what an
 * item takes away from a group may still be there for the others, only a freed name is free.
 */
export class UpdateRequest {
  readonly #heldAtFirst = new Map<string, ReadonlySet<string>>();
  readonly #childrenAtFirst = new Map<string, ReadonlySet<string>>();
  readonly #project: Project;

  constructor(project: Project) {
    this.#project = project;
    for (const group of project.groups()) {
      this.#heldAtFirst.set(group.id, new Set(group.contexts));
      this.#childrenAtFirst.set(group.id, new Set(group.children));
    }
  }

  /** Groups other than one, each with every Context ID that it had or got during the request. */
  otherGroups(own: Option): readonly Option[] {
    return this.#project
      .groups()
      .filter((group) => group.id !== own.id)
      .map((group) => ({
        ...group,
        contexts: new Set([...(this.#heldAtFirst.get(group.id) ?? []), ...group.contexts]),
      }));
  }

  /** How many sub-options of a group are certainly left: those that came during the request do not count. */
  childrenLeft(group: Option): number {
    return [...(this.#childrenAtFirst.get(group.id) ?? [])].filter((id) => group.children.has(id)).length;
  }
}

/** Applies one item of an option update request, or nothing of it. */
export function updateOption(
  project: Project,
  limits: StoredLimits,
  actor: Actor,
  item: Update,
  request: UpdateRequest,
): ItemOutcome {
  const option = optionIn(project, item._id);
  if (option === undefined) return NO_OPTION;
  const after = contextsAfter(option, item);
  const refused =
    (item.name === undefined || item.name === option.name
      ? undefined
      : optionNameTaken(project, option.targeting, item.name, option.id)) ??
    badMove(project, option, item, request) ??
    (item.exposeChildren !== undefined && !option.isGroup ? NOT_SUPPORTED : undefined) ??
    badContexts(project, limits, option, after, request);
  if (refused !== undefined) return refused;
  if (item.name !== undefined) project.renameOption(actor, option, item.name);
  if (item.parent !== undefined) project.moveOption(actor, option, item.parent ?? undefined);
  if (item.exposeChildren !== undefined) project.exposeChildren(actor, option, item.exposeChildren);
  const remove = [...option.contexts].filter((id) => !after.has(id));
  project.changeContexts(actor, option, { add: [...after], remove });
  return { data: optionRecord(option) };
}

/** Applies only the `add` of an item, as happens when it fails in between (management-api 4.1). */
export function addOnly(project: Project, limits: StoredLimits, actor: Actor, item: Update, request: UpdateRequest) {
  const { add, remove } = item.contexts ?? {};
  if (add === undefined || remove === undefined) return;
  updateOption(project, limits, actor, { _id: item._id, contexts: { add } }, request);
}

function contextsAfter(option: Option, { contexts: { add = [], remove = [], set } = {} }: Update): Set<string> {
  const after = new Set(set ?? [...option.contexts, ...add]);
  for (const id of remove) after.delete(id);
  return after;
}

/** management-api 7.2 TARGETING_CATEGORY_LOCKED, and 7.4 cases 4, 5 and 6. */
function badMove(project: Project, option: Option, item: Update, request: UpdateRequest) {
  if (item.parent === undefined) return undefined;
  if (option.isGroup) return NOT_SUPPORTED;
  if (item.parent !== null) {
    const parent = optionIn(project, item.parent);
    if (parent?.targeting !== option.targeting) return NO_OPTION;
    if (!parent.isGroup || parent.parent !== undefined) return NOT_SUPPORTED;
    if (option.locked && option.parent === undefined) return refusal(400, "TARGETING_CATEGORY_LOCKED");
  }
  if (option.parent === undefined || option.parent === (item.parent ?? undefined)) return undefined;
  const from = project.options.get(option.parent);
  const isLast = from !== undefined && from.contexts.size === 0 && request.childrenLeft(from) <= 1;
  return isLast ? NOT_SUPPORTED : undefined;
}

/** management-api 7.4 case 7, unique own Context IDs, and the limits of 8.1. */
function badContexts(
  project: Project,
  limits: StoredLimits,
  option: Option,
  after: ReadonlySet<string>,
  request: UpdateRequest,
) {
  if (option.isGroup) {
    if (after.size === 0 && option.contexts.size > 0 && request.childrenLeft(option) === 0) return NOT_SUPPORTED;
    const added = [...after].filter((id) => !option.contexts.has(id));
    const held = added.length === 0 ? undefined : contextsHeldByGroups(request.otherGroups(option), added, project);
    if (held !== undefined) return held;
  }
  return contextLimitExceeded(limits, project, [{ before: option.contexts.size, after }]);
}
