import { LIMITS } from "../../../spec/limits.ts";
import type { OptionRecord, TargetingRecord } from "../../../spec/records.ts";
import type { StoredOption, StoredTargeting } from "./project.ts";

/** A targeting as answers show it (fields assumed). */
export function targetingRecordOf(targeting: StoredTargeting): TargetingRecord {
  const { _id, name, optionCount, createdAt, updatedAt } = targeting;
  return { _id, name, optionCount, createdAt, updatedAt };
}

/** An option as answers show it (management-api 2.1; the first 50 sub-options and their number, 8.1). */
export function optionRecordOf(option: StoredOption): OptionRecord {
  const { _id, targeting, name, type, parent, exposeChildren, children, createdAt, updatedAt } = option;
  return {
    _id,
    targeting,
    name,
    type,
    ...(parent === undefined ? {} : { parent }),
    contextCount: option.contexts.size,
    ...(type === "collection"
      ? { exposeChildren, children: children.page(0, LIMITS.childrenShown.value), childCount: children.size }
      : {}),
    createdAt,
    updatedAt,
  };
}
