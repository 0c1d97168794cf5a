import { LIMITS } from "../../spec/limits.ts";
import type { OptionType } from "../../spec/records.ts";
import {
  addIncreases,
  type Claims,
  claimGroupContexts,
  increasesByNewOptions,
  noClaims,
  ownContextError,
  projectContextError,
  type RequiredIncreases,
  repeatedNames,
  requiredLimitError,
  takeOverAsNew,
} from "./claims.ts";
import { applyUnit, type BusinessError, businessError, type Checked, type ItemsRule } from "./outcome.ts";
import type { NewOption, OptionToAdd } from "./requests.ts";
import { idsBy, optionRecordOf, type Project, putOption, type StoredOption, type StoredTargeting } from "./store.ts";

/** Adds options. All items without an error are added, or none of them (management-api 4.1). */
export const addOptions: ItemsRule<OptionToAdd> = (project, items, interference, sources) => {
  const repeated = repeatedNames(items.map((item) => ({ place: item.targeting, names: namesOf(item) })));
  let errors = checkItems(project, items, repeated, new Map());
  const overfull = productErrors(project, items, errors);
  if (overfull.size > 0) errors = checkItems(project, items, repeated, overfull);
  const at = new Date(sources.now()).toISOString();
  const checked = items.map((item, index): Checked => {
    const error = errors[index];
    if (error !== undefined) return { error };
    return {
      write: () => {
        const { targeting, parent } = item;
        const option = writeNewOption(project, item, { targeting, parent, at }, sources.newId);
        if (parent === undefined) takeOverAsNew(project, targeting, option._id);
        return optionRecordOf(option);
      },
    };
  });
  return applyUnit(checked, interference);
};

/**
 * Checks the items of a request. `settled`: the errors that are already known, by index of the item. An item with an
 * error takes no Context IDs and no space, but later items may still not repeat its names.
 */
function checkItems(
  project: Project,
  items: readonly OptionToAdd[],
  repeated: readonly (number | undefined)[],
  settled: ReadonlyMap<number, BusinessError>,
): readonly (BusinessError | undefined)[] {
  const claims = noClaims(project);
  const added = new Map<string, number>();
  return items.map((item, index) => {
    const error = settled.get(index) ?? itemError(claims, item, repeated[index], added.get(item.targeting) ?? 0);
    if (error === undefined) added.set(item.targeting, (added.get(item.targeting) ?? 0) + sizeOf(item));
    return error;
  });
}

function itemError(
  claims: Claims,
  item: OptionToAdd,
  repeated: number | undefined,
  added: number,
): BusinessError | undefined {
  const { project } = claims;
  const targeting = project.targetings.get(item.targeting);
  if (targeting === undefined) return businessError("TARGETING_NOT_FOUND");
  const misplaced = item.parent === undefined ? shapeError(item) : placeError(project, item, item.parent);
  if (misplaced !== undefined) return misplaced;
  if (repeated !== undefined) return businessError("TARGETING_CATEGORY_NAME_DUPLICATE", { duplicateOfIndex: repeated });
  const taken = namesTaken(targeting, namesOf(item));
  if (taken !== undefined) return taken;
  const limit = LIMITS.targetingOptions.value;
  if (targeting.optionCount + added + sizeOf(item) > limit) {
    return businessError("TARGETING_CATEGORY_LIMIT_EXCEEDED", { targeting: targeting._id, limit });
  }
  return claimContexts(claims, [item], targeting._id);
}

/** Checks an option that is added to a group (management-api 7.4 cases 3 and 4). */
function placeError(project: Project, item: OptionToAdd, parent: string): BusinessError | undefined {
  if (typeOf(item) === "collection" || item.children !== undefined || item.exposeChildren !== undefined) {
    return businessError("TARGETING_CATEGORY_NOT_SUPPORTED");
  }
  return parentError(project, item.targeting, parent);
}

/** Returns an error if the option `parent` is not a top-level group of the targeting (management-api 7.4 case 4). */
export function parentError(project: Project, targeting: string, parent: string): BusinessError | undefined {
  const group = project.options.get(parent);
  if (group === undefined || group.targeting !== targeting) return businessError("TARGETING_CATEGORY_NOT_FOUND");
  const isTopLevelGroup = group.type === "collection" && group.parent === undefined;
  return isTopLevelGroup ? undefined : businessError("TARGETING_CATEGORY_NOT_SUPPORTED");
}

/** Returns an error with the IDs of options that already have one of the names. The option `except` may have them. */
export function namesTaken(
  targeting: StoredTargeting,
  names: readonly string[],
  except?: string,
): BusinessError | undefined {
  const existingIds = names.flatMap((name) => idsBy(targeting.names, name, except));
  return existingIds.length === 0 ? undefined : businessError("TARGETING_CATEGORY_NAME_DUPLICATE", { existingIds });
}

/**
 * Returns the errors of new top-level options, by index of the item. An ad product can require all new options of a
 * targeting. If the new options of a targeting together exceed the limit of the ad product, all of them fail
 * (management-api 7.2).
 */
function productErrors(
  project: Project,
  items: readonly OptionToAdd[],
  errors: readonly (BusinessError | undefined)[],
): ReadonlyMap<number, BusinessError> {
  const topLevel = new Map<string, number[]>();
  for (const [index, item] of items.entries()) {
    if (errors[index] !== undefined || item.parent !== undefined) continue;
    const indexes = topLevel.get(item.targeting) ?? [];
    indexes.push(index);
    topLevel.set(item.targeting, indexes);
  }
  const before: RequiredIncreases = new Map();
  const failed = new Map<number, BusinessError>();
  for (const [targeting, indexes] of topLevel) {
    const increases = increasesByNewOptions(project, targeting, indexes.length);
    const error = requiredLimitError(project, increases, before);
    if (error === undefined) addIncreases(before, increases);
    else for (const index of indexes) failed.set(index, error);
  }
  return failed;
}

/** Returns the type of a new option. Without `type`, an option with `children` is a group (assumed). */
function typeOf(option: NewOption): OptionType {
  return option.type ?? (option.children === undefined ? "atomic" : "collection");
}

export function namesOf(option: NewOption): readonly string[] {
  return [option.name, ...(option.children ?? []).map((child) => child.name)];
}

function sizeOf(option: NewOption): number {
  return 1 + (option.children?.length ?? 0);
}

/** Checks whether the fields of a new option fit its type (management-api 7.4 cases 1 and 2). */
export function shapeError(option: NewOption): BusinessError | undefined {
  const isGroup = typeOf(option) === "collection";
  const hasContent = (option.children ?? []).length > 0 || (option.contexts ?? []).length > 0;
  const wrong = isGroup ? !hasContent : option.children !== undefined || option.exposeChildren !== undefined;
  return wrong ? businessError("TARGETING_CATEGORY_NOT_SUPPORTED") : undefined;
}

/** Checks the Context IDs of options created together. Records them in `claims`. `targeting`: absent if it is new. */
export function claimContexts(
  claims: Claims,
  options: readonly NewOption[],
  targeting?: string,
): BusinessError | undefined {
  const own: Claims = { ...claims, groupContexts: new Map() };
  for (const group of options) {
    if (typeOf(group) !== "collection") continue;
    const contexts = new Set(group.contexts);
    const error = ownContextError(claims, contexts) ?? ownContextError(own, contexts);
    if (error !== undefined) return error;
    const collection = { name: group.name };
    const name = targeting === undefined ? { collection } : { collection, targeting: { _id: targeting } };
    claimGroupContexts(own, contexts, name);
  }
  const all = options.flatMap((option) => [option, ...(option.children ?? [])]);
  const count = all.reduce((total, { contexts }) => total + new Set(contexts).size, 0);
  const error = projectContextError(claims, count);
  if (error !== undefined) return error;
  for (const [value, group] of own.groupContexts) claims.groupContexts.set(value, group);
  claims.contextsAdded += count;
  return undefined;
}

export function writeNewOption(
  project: Project,
  option: NewOption,
  place: { readonly targeting: string; readonly parent?: string | undefined; readonly at: string },
  newId: () => string,
): StoredOption {
  const { targeting, at } = place;
  const put = ({ name, contexts = [], exposeChildren }: NewOption, type: OptionType, parent: string | undefined) =>
    putOption(project, {
      _id: newId(),
      targeting,
      name,
      type,
      parent,
      exposeChildren,
      contexts,
      createdAt: at,
      updatedAt: at,
    });
  const stored = put(option, typeOf(option), place.parent);
  for (const child of option.children ?? []) put(child, "atomic", stored._id);
  return stored;
}
