import { claimContexts, namesOf, shapeError, writeNewOption } from "./add-options.ts";
import { type Claims, lockedTargetings, noClaims, repeatedNames } from "./claims.ts";
import {
  applyUnit,
  type BusinessError,
  businessError,
  type Checked,
  type ItemOutcome,
  type ItemsRule,
  type Outcome,
} from "./outcome.ts";
import type { GetQuery, ListQuery, TargetingRename, TargetingToCreate } from "./requests.ts";
import {
  dropTargeting,
  idsBy,
  optionRecordOf,
  type Project,
  putTargeting,
  renameStoredTargeting,
  targetingRecordOf,
} from "./store.ts";

/** Creates targetings: all without an error, or none (management-api 4.1). */
export const createTargetings: ItemsRule<TargetingToCreate> = (project, items, interference, sources) => {
  const claims = noClaims(project);
  const repeated = repeatedNames(items.map(({ name }) => ({ place: project._id, names: [name] })));
  const at = new Date(sources.now()).toISOString();
  const checked = items.map((item, index): Checked => {
    const error = createError(claims, item, index, repeated[index]);
    if (error !== undefined) return { error };
    return {
      write: () => {
        const targeting = putTargeting(project, {
          _id: sources.newId(),
          name: item.name,
          createdAt: at,
          updatedAt: at,
        });
        for (const option of item.options ?? []) {
          writeNewOption(project, option, { targeting: targeting._id, at }, sources.newId);
        }
        return targetingRecordOf(targeting);
      },
    };
  });
  return applyUnit(checked, interference);
};

function createError(
  claims: Claims,
  item: TargetingToCreate,
  index: number,
  repeated: number | undefined,
): BusinessError | undefined {
  if (repeated !== undefined) return businessError("TARGETING_NAME_DUPLICATE", { duplicateOfIndex: repeated });
  const taken = nameTaken(claims.project, item.name);
  if (taken !== undefined) return taken;
  const options = item.options ?? [];
  const [repeats] = repeatedNames([{ place: item.name, names: options.flatMap(namesOf) }]);
  if (repeats !== undefined) return businessError("TARGETING_CATEGORY_NAME_DUPLICATE", { duplicateOfIndex: index });
  for (const option of options) {
    const error = shapeError(option);
    if (error !== undefined) return error;
  }
  return claimContexts(claims, options);
}

/** Returns an error if a targeting has the name. The error has its ID, except for an audience targeting (4.3). */
function nameTaken(project: Project, name: string, except?: string): BusinessError | undefined {
  const holders = idsBy(project.targetingNames, name, except);
  if (holders.length === 0) return undefined;
  const existingId = holders.find((id) => project.targetings.has(id));
  return businessError("TARGETING_NAME_DUPLICATE", existingId === undefined ? undefined : { existingId });
}

/** Renames targetings one by one, so an item can use a name that an earlier item gives up (management-api 4.1). */
export const renameTargetings: ItemsRule<TargetingRename> = (project, items, interference, sources) => {
  const at = new Date(sources.now()).toISOString();
  return items.map((item, index): ItemOutcome => {
    if (interference?.hits(index)) return { error: interference.error };
    const targeting = project.targetings.get(item._id);
    if (targeting === undefined) return { error: businessError("TARGETING_NOT_FOUND") };
    const taken = item.name === targeting.name ? undefined : nameTaken(project, item.name, item._id);
    if (taken !== undefined) return { error: taken };
    renameStoredTargeting(project, targeting, item.name, at);
    return { data: targetingRecordOf(targeting) };
  });
};

/** Deletes all targetings without errors, or none (management-api 4.1). Those of running campaigns are locked (7.2). */
export const deleteTargetings: ItemsRule<string> = (project, ids, interference) => {
  const locked = lockedTargetings(project);
  const named = new Set<string>();
  const checked = ids.map((id): Checked => {
    const targeting = project.targetings.get(id);
    if (targeting === undefined || named.has(id)) return { error: businessError("TARGETING_NOT_FOUND") };
    if (locked.has(id)) return { error: businessError("TARGETING_LOCKED") };
    named.add(id);
    return {
      write: () => {
        dropTargeting(project, targeting);
        return { _id: id };
      },
    };
  });
  return applyUnit(checked, interference);
};

export function getTargeting(project: Project, id: string): Outcome {
  const targeting = project.targetings.get(id);
  if (targeting === undefined) return { error: businessError("TARGETING_NOT_FOUND") };
  return { body: targetingRecordOf(targeting) };
}

/** Lists top-level options, or those of `parent`, in the order of creation (management-api 7.4 case 8, 8.1). */
export function listOptions(project: Project, targetingId: string, query: ListQuery): Outcome {
  const targeting = project.targetings.get(targetingId);
  if (targeting === undefined) return { error: businessError("TARGETING_NOT_FOUND") };
  const parent = query.parent === undefined ? undefined : project.options.get(query.parent);
  if (query.parent !== undefined && parent?.targeting !== targetingId) {
    return { error: businessError("TARGETING_CATEGORY_NOT_FOUND") };
  }
  if (parent?.type === "atomic") return { error: businessError("TARGETING_CATEGORY_NOT_SUPPORTED") };
  const list = parent?.children ?? targeting.topLevel;
  const items = list.page(query.offset, query.limit).flatMap((id) => {
    const option = project.options.get(id);
    return option === undefined ? [] : [optionRecordOf(option)];
  });
  return { body: { items, total: list.size } };
}

/** Returns an option with one page of its Context IDs (management-api 8.1). */
export function getOption(project: Project, id: string, query: GetQuery): Outcome {
  const option = project.options.get(id);
  if (option === undefined) return { error: businessError("TARGETING_CATEGORY_NOT_FOUND") };
  const contexts = option.contexts.slice(query.offset, query.offset + query.limit);
  return { body: { ...optionRecordOf(option), contexts } };
}
