import { LIMITS } from "../../spec/limits.ts";
import {
  addIncreases,
  increasesByHeirs,
  inheritRequiredSetting,
  type RequiredIncreases,
  requiredLimitError,
} from "./claims.ts";
import {
  applyUnit,
  type BusinessError,
  businessError,
  type Checked,
  type Interference,
  type ItemOutcome,
} from "./outcome.ts";
import { dropOption, moveStoredOption, type Project, type StoredOption } from "./store.ts";
import { isUnchangeable } from "./update-options.ts";

/** Refuses a whole request that deletes too many option groups and sub-options (management-api 7.2). */
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
 * Deletes options. Those without an error are deleted all together or not at all (management-api 4.1). Remaining
 * sub-options of a deleted group become top-level options.
 */
export function deleteOptions(
  project: Project,
  ids: readonly string[],
  interference: Interference | undefined,
): readonly ItemOutcome[] {
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
}

/** Removes groups from `targets` whose sub-options cannot inherit the settings of the group. */
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

/** Removes sub-options from `targets`: a group without own Context IDs must keep one (management-api 7.4 case 6). */
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
