import { businessError, type Outcome } from "../outcome.ts";
import type { GetQuery, ListQuery } from "../request-schemas.ts";
import type { Project } from "../stored/project.ts";
import { optionRecordOf, targetingRecordOf } from "../stored/stored-records.ts";

/** Get a Targeting. */
export function getTargeting(project: Project, id: string): Outcome {
  const targeting = project.targetings.get(id);
  if (targeting === undefined) return { error: businessError("TARGETING_NOT_FOUND") };
  return { body: targetingRecordOf(targeting) };
}

/** List Options: the top level in creation order, or the sub-options of `parent` (management-api 7.4 case 8, 8.1). */
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

/** Get an Option, with one page of its Context IDs (management-api 8.1). */
export function getOption(project: Project, id: string, query: GetQuery): Outcome {
  const option = project.options.get(id);
  if (option === undefined) return { error: businessError("TARGETING_CATEGORY_NOT_FOUND") };
  const contexts = [...option.contexts].slice(query.offset, query.offset + query.limit);
  return { body: { ...optionRecordOf(option), contexts } };
}
