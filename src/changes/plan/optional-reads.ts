import { isApiError } from "../../api/errors.ts";
import type { ManagementApi } from "../../api/management.ts";
import { findOptions } from "../../reading/find-options.ts";
import { mapConcurrently, type OptionContents, readOptionContents } from "../../reading/option-contents.ts";
import type { OptionRecord, TargetingRecord } from "../../spec/records.ts";
import type { PlanningContext } from "./plan.ts";

/**
 * Where a call changes more options than this, they are not read: one by one for their Context IDs, and in lists for
 * their names and groups.
 */
const MOST_READ = { alone: 500, listed: 5000 } as const;
/** One retry and a short timeout: the change goes on without these reads. */
const GENTLY = { mostTries: 2, timeoutMs: 5000 } as const;

/** Reads of former values. Each gives what could be read, and leaves out the rest. */
export interface OptionalReads {
  readonly records: (ids: readonly string[]) => Promise<ReadonlyMap<string, OptionRecord>>;
  readonly contents: (ids: readonly string[]) => Promise<ReadonlyMap<string, OptionContents>>;
  readonly targetings: (ids: readonly string[]) => Promise<ReadonlyMap<string, TargetingRecord>>;
}

/** Makes reads that a plan can do without: after one failed retry nothing more is read. */
export function optionalReads({ api, signal }: PlanningContext): OptionalReads {
  const gently: ManagementApi = {
    ...api,
    getTargeting: (id, options) => api.getTargeting(id, { ...options, ...GENTLY }),
    listOptions: (id, query, options) => api.listOptions(id, query, { ...options, ...GENTLY }),
    getOption: (id, query, options) => api.getOption(id, query, { ...options, ...GENTLY }),
  };
  const fails = { one: false };
  const each = async <Value>(ids: readonly string[], read: (id: string) => Promise<Value>) => {
    if (ids.length > MOST_READ.alone) return new Map<string, Value>();
    const known = await mapConcurrently([...new Set(ids)], async (id) => {
      const value = fails.one ? undefined : await unlessItFails(() => read(id), fails);
      return value === undefined ? undefined : ([id, value] as const);
    });
    return new Map(known);
  };
  return {
    contents: (ids) => each(ids, (id) => readOptionContents(gently, id, signal)),
    targetings: (ids) => each(ids, (id) => gently.getTargeting(id, { signal })),
    async records(ids) {
      if (ids.length === 0 || ids.length > MOST_READ.listed || fails.one) return new Map();
      const found = await unlessItFails(() => findOptions(gently, [...new Set(ids)], signal), fails);
      return found?.found ?? new Map();
    },
  };
}

/** A missing object does not stop further reads; any other failure does. */
async function unlessItFails<Value>(read: () => Promise<Value>, fails: { one: boolean }): Promise<Value | undefined> {
  try {
    return await read();
  } catch (thrown) {
    if (!isApiError(thrown)) throw thrown;
    fails.one ||= thrown.effect !== "rejected";
    return undefined;
  }
}
