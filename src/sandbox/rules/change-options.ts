import { LIMITS } from "../../spec/limits.ts";
import { namesTaken, parentError } from "./add-options.ts";
import {
  addIncreases,
  type Claims,
  claimGroupContexts,
  increasesByHeirs,
  inheritRequiredSetting,
  isOptionLocked,
  noClaims,
  ownContextError,
  projectContextError,
  type RequiredIncreases,
  repeatedNames,
  requiredLimitError,
  storedGroupName,
} from "./claims.ts";
import {
  applyUnit,
  type BusinessError,
  businessError,
  type Checked,
  type ItemOutcome,
  type ItemsRule,
} from "./outcome.ts";
import type { ContextChanges, OptionUpdate } from "./requests.ts";
import {
  contextBytesOf,
  dropOption,
  moveStoredOption,
  optionRecordOf,
  type Project,
  renameStoredOption,
  replaceContexts,
  type StoredOption,
} from "./store.ts";

interface UpdateClaims extends Claims {
  readonly arrivals: Map<string, number>;
  readonly hadNoContexts: Set<string>;
}

const NOT_SUPPORTED = businessError("TARGETING_CATEGORY_NOT_SUPPORTED");

/** Updates options. An item that fails does not affect the others (management-api 4.1). */
export const updateOptions: ItemsRule<OptionUpdate> = (project, items, interference, sources) => {
  const claims: UpdateClaims = { ...noClaims(project), arrivals: new Map(), hadNoContexts: new Set() };
  const repeated = repeatedNames(items.map((item) => newNameOf(project, item)));
  const at = new Date(sources.now()).toISOString();
  return items.map((item, index): ItemOutcome => {
    const option = project.options.get(item._id);
    if (interference?.hits(index)) {
      if (option !== undefined && interference.addApplied) applyAddAlone(claims, option, item);
      return { error: interference.error };
    }
    if (option === undefined) return { error: businessError("TARGETING_CATEGORY_NOT_FOUND") };
    const error = updateError(claims, option, item, repeated[index]);
    if (error !== undefined) return { error };
    writeUpdate(claims, option, item, at);
    return { data: optionRecordOf(option) };
  });
};

/** Returns the targeting of an option (`place`) and its new name in `names`, which is empty if the name stays. */
function newNameOf(project: Project, item: OptionUpdate): { place: string; names: readonly string[] } {
  const option = project.options.get(item._id);
  const changes = item.name !== undefined && option !== undefined && option.name !== item.name;
  return { place: option?.targeting ?? "", names: changes && item.name !== undefined ? [item.name] : [] };
}

function updateError(
  claims: UpdateClaims,
  option: StoredOption,
  item: OptionUpdate,
  repeated: number | undefined,
): BusinessError | undefined {
  return (
    typeError(claims.project, option, item) ??
    moveError(claims, option, item.parent) ??
    nameError(claims.project, option, item.name, repeated) ??
    (item.contexts === undefined ? undefined : contextsError(claims, option, item.contexts))
  );
}

/** Checks whether a change fits the option's type (management-api 7.4 cases 2, 5 and 9). */
function typeError(project: Project, option: StoredOption, item: OptionUpdate): BusinessError | undefined {
  const isGroup = option.type === "collection";
  if (isUnchangeable(project, option)) return NOT_SUPPORTED;
  if (!isGroup && item.exposeChildren !== undefined) return NOT_SUPPORTED;
  return isGroup && item.parent !== undefined ? NOT_SUPPORTED : undefined;
}

/** Returns whether the API cannot change an option: it is a group inside a group, or an option inside such a group. */
function isUnchangeable(project: Project, option: StoredOption): boolean {
  if (option.parent === undefined) return false;
  return option.type === "collection" || project.options.get(option.parent)?.parent !== undefined;
}

/** Checks the move of an option into the group `to`; null: the top level (management-api 7.2, 7.4 cases 4, 6). */
function moveError(
  claims: UpdateClaims,
  option: StoredOption,
  to: string | null | undefined,
): BusinessError | undefined {
  const from = option.parent;
  if (to === undefined || (to ?? undefined) === from) return undefined;
  const misplaced = to === null ? undefined : parentError(claims.project, option.targeting, to);
  if (misplaced !== undefined) return misplaced;
  if (from === undefined) {
    return isOptionLocked(claims.project, option._id) ? businessError("TARGETING_CATEGORY_LOCKED") : undefined;
  }
  const group = claims.project.options.get(from);
  if (group !== undefined && stayingChildren(claims, group) <= 1) {
    const keepsOwnContexts = group.contexts.length > 0 && !claims.hadNoContexts.has(group._id);
    if (!keepsOwnContexts) return NOT_SUPPORTED;
  }
  return to === null
    ? requiredLimitError(claims.project, increasesByHeirs(claims.project, from, [option._id], false))
    : undefined;
}

function stayingChildren(claims: UpdateClaims, group: StoredOption): number {
  return group.children.size - (claims.arrivals.get(group._id) ?? 0);
}

function nameError(
  project: Project,
  option: StoredOption,
  name: string | undefined,
  repeated: number | undefined,
): BusinessError | undefined {
  const targeting = project.targetings.get(option.targeting);
  if (name === undefined || name === option.name || targeting === undefined) return undefined;
  if (repeated !== undefined) return businessError("TARGETING_CATEGORY_NAME_DUPLICATE", { duplicateOfIndex: repeated });
  return namesTaken(targeting, [name], option._id);
}

/** Checks a change of Context IDs (management-api 7.2, 7.4 case 7, 8.1, 8.2 rule 1). */
function contextsError(claims: UpdateClaims, option: StoredOption, changes: ContextChanges): BusinessError | undefined {
  const after = contextsAfter(option.contexts, changes);
  if (option.type === "collection") {
    const empties = after.size === 0 && option.contexts.length > 0;
    if (empties && stayingChildren(claims, option) <= 0) return NOT_SUPPORTED;
    const held = new Set(option.contexts);
    const added = [...after].filter((value) => !held.has(value));
    const taken = ownContextError(claims, added, option._id);
    if (taken !== undefined) return taken;
  }
  const grows = after.size > option.contexts.length;
  const bytes = contextBytesOf(after);
  if (grows && after.size > LIMITS.optionContextIds.value) return businessError("TARGETING_CONTEXT_LIMIT_EXCEEDED");
  if (bytes > option.contextBytes && bytes > LIMITS.optionContextBytes.value) {
    return businessError("TARGETING_CONTEXT_LIMIT_EXCEEDED");
  }
  return projectContextError(claims, after.size - option.contexts.length);
}

/** Returns the Context IDs after a change: those of `set`, or `before` plus those of `add` minus those of `remove`. */
function contextsAfter(before: readonly string[], changes: ContextChanges): ReadonlySet<string> {
  if (changes.set !== undefined) return new Set(changes.set);
  const after = new Set(before);
  for (const value of changes.add ?? []) after.add(value);
  for (const value of changes.remove ?? []) after.delete(value);
  return after;
}

function writeUpdate(claims: UpdateClaims, option: StoredOption, item: OptionUpdate, at: string): void {
  if (item.parent !== undefined) writeMove(claims, option, item.parent ?? undefined);
  if (item.name !== undefined && item.name !== option.name) renameStoredOption(claims.project, option, item.name);
  if (item.exposeChildren !== undefined) option.exposeChildren = item.exposeChildren;
  if (item.contexts !== undefined) writeContexts(claims, option, contextsAfter(option.contexts, item.contexts));
  option.updatedAt = at;
}

function writeMove(claims: UpdateClaims, option: StoredOption, to: string | undefined): void {
  const from = option.parent;
  if (from === to) return;
  if (from !== undefined && to === undefined) inheritRequiredSetting(claims.project, from, option._id);
  moveStoredOption(claims.project, option, to);
  if (to !== undefined) claims.arrivals.set(to, (claims.arrivals.get(to) ?? 0) + 1);
}

function writeContexts(claims: UpdateClaims, option: StoredOption, after: ReadonlySet<string>): void {
  const before = option.contexts;
  if (option.type === "collection") {
    const freed = before.filter((value) => !after.has(value));
    claimGroupContexts(claims, freed, storedGroupName(claims.project, option._id));
    if (before.length === 0) claims.hadNoContexts.add(option._id);
  }
  claims.contextsAdded += Math.max(0, after.size - before.length);
  replaceContexts(claims.project, option, after);
}

/** Applies only the `add` of an update whose `remove` fails (management-api 4.1). */
function applyAddAlone(claims: UpdateClaims, option: StoredOption, item: OptionUpdate): void {
  const add = item.contexts?.add;
  if (add === undefined || item.contexts?.remove === undefined) return;
  if (contextsError(claims, option, { add }) !== undefined) return;
  writeContexts(claims, option, contextsAfter(option.contexts, { add }));
}

/** Returns the error of a request that would delete too many groups and sub-options (management-api 7.2). */
export function treeItemsError(project: Project, ids: readonly string[]): BusinessError | undefined {
  const limit = LIMITS.groupItems.value;
  const treeItems = [...new Set(ids)].filter((id) => {
    const option = project.options.get(id);
    return option !== undefined && (option.type === "collection" || option.parent !== undefined);
  });
  return treeItems.length > limit
    ? businessError("TARGETING_CATEGORY_TREE_ITEMS_LIMIT_EXCEEDED", { limit, count: treeItems.length })
    : undefined;
}

/**
 * Deletes all options without an error, or none (management-api 4.1). Sub-options that remain when their group is
 * deleted become top-level.
 */
export const deleteOptions: ItemsRule<string> = (project, ids, interference) => {
  const targets = new Map<string, StoredOption>();
  for (const id of ids) {
    const option = project.options.get(id);
    if (option !== undefined && !isUnchangeable(project, option)) targets.set(id, option);
  }
  const errors = new Map([...groupErrors(project, targets), ...lastChildErrors(project, targets)]);
  const seen = new Set<string>();
  const checked = ids.map((id): Checked => {
    const option = project.options.get(id);
    if (option === undefined || seen.has(id)) return { error: businessError("TARGETING_CATEGORY_NOT_FOUND") };
    seen.add(id);
    if (!targets.has(id)) return { error: errors.get(id) ?? businessError("TARGETING_CATEGORY_NOT_SUPPORTED") };
    return {
      write: () => {
        for (const child of [...option.children]) if (!targets.has(child)) promote(project, option, child);
        dropOption(project, option);
        return { _id: id };
      },
    };
  });
  return applyUnit(checked, interference);
};

/**
 * Removes from `targets` (the options to delete) each group whose remaining sub-options cannot inherit its settings,
 * because an ad product would require too many options. Returns the errors of these groups.
 */
function groupErrors(project: Project, targets: Map<string, StoredOption>): ReadonlyMap<string, BusinessError> {
  const before: RequiredIncreases = new Map();
  const errors = new Map<string, BusinessError>();
  for (const group of [...targets.values()].filter(({ type }) => type === "collection")) {
    const heirs = [...group.children].filter((child) => !targets.has(child));
    const increases = increasesByHeirs(project, group._id, heirs, true);
    const error = requiredLimitError(project, increases, before);
    if (error === undefined) {
      addIncreases(before, increases);
    } else {
      errors.set(group._id, error);
      targets.delete(group._id);
    }
  }
  return errors;
}

/**
 * If all sub-options of a group without own Context IDs would be deleted, but not the group, removes the last one from
 * `targets`, because the group would be empty (management-api 7.4 case 6). Returns the errors of these sub-options.
 */
function lastChildErrors(project: Project, targets: Map<string, StoredOption>): ReadonlyMap<string, BusinessError> {
  const staying = new Map<string, number>();
  const errors = new Map<string, BusinessError>();
  for (const option of [...targets.values()]) {
    const group = option.parent === undefined ? undefined : project.options.get(option.parent);
    if (group === undefined || targets.has(group._id)) continue;
    const left = (staying.get(group._id) ?? group.children.size) - 1;
    if (left <= 0 && group.contexts.length === 0) {
      errors.set(option._id, businessError("TARGETING_CATEGORY_NOT_SUPPORTED"));
      targets.delete(option._id);
    } else {
      staying.set(group._id, left);
    }
  }
  return errors;
}

function promote(project: Project, group: StoredOption, id: string): void {
  const child = project.options.get(id);
  if (child === undefined) return;
  inheritRequiredSetting(project, group._id, id);
  moveStoredOption(project, child, undefined);
}
