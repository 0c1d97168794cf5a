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
 * What the items of one update request see of each other. They run concurrently (management-api 4.1): other items may
 * still see what an item removed from a group. Only a name is free as soon as an item gives it up.
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

  /** Returns all other groups, each with all Context IDs that it has had at any time during the request. */
  otherGroups(own: Option): readonly Option[] {
    return this.#project
      .groups()
      .filter((group) => group.id !== own.id)
      .map((group) => ({
        ...group,
        contexts: new Set([...(this.#heldAtFirst.get(group.id) ?? []), ...group.contexts]),
      }));
  }

  /**
   * Returns how many of the sub-options that a group had before the request it still has. Sub-options that joined
   * during the request do not count, because other items may not see them yet.
   */
  childrenLeft(group: Option): number {
    return [...(this.#childrenAtFirst.get(group.id) ?? [])].filter((id) => group.children.has(id)).length;
  }
}

/** Applies one item of an update request, either completely or not at all. */
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

/**
 * Applies only the `add` of an item. This happens if the item fails between `add` and `remove` (management-api 4.1).
 */
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

/** Checks TARGETING_CATEGORY_LOCKED of management-api 7.2, and cases 4, 5 and 6 of 7.4. */
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

/** Checks case 7 of management-api 7.4, that groups share no own Context IDs, and the limits of 8.1. */
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
