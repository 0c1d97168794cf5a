import type { ManagementApi } from "../api/management.ts";
import { isMissing } from "../reading/find-options.ts";
import { mapConcurrently, readOptionContents } from "../reading/option-contents.ts";
import { readOptions } from "../reading/option-lists.ts";
import type { OptionRecord } from "../spec/records.ts";
import { digestOfContexts, type ServiceOption, type ServiceTargeting } from "./base/service-targeting.ts";

/** How a targeting is read. */
export interface HowToRead {
  readonly signal: AbortSignal;
  /** Called with how many options have been read, and how many there are. */
  readonly onProgress?: ((read: number, of: number) => void) | undefined;
}

/**
 * Reads a targeting as a whole: all options with all Context IDs, each once. An option that is deleted meanwhile is
 * left out. Throws the ApiError of a read, and a ListError where lists change each time that they are read.
 */
export async function readTargeting(
  api: ManagementApi,
  targetingId: string,
  { signal, onProgress }: HowToRead,
): Promise<ServiceTargeting> {
  const { _id, name } = await api.getTargeting(targetingId, { signal });
  const placed: { readonly record: OptionRecord; readonly parent: string | null }[] = [];
  for await (const record of readOptions(api, targetingId, signal, { subOptions: false })) {
    placed.push({ record, parent: null });
    if (record.type === "atomic" || record.childCount === 0) continue;
    for await (const child of readOptions(api, targetingId, signal, { parent: record._id })) {
      placed.push({ record: child, parent: record._id });
    }
  }
  let read = 0;
  const options = await mapConcurrently(placed, async ({ record, parent }) => {
    const contexts = await contextsOf(api, record, signal);
    read += 1;
    onProgress?.(read, placed.length);
    return contexts && serviceOption(record, parent, contexts);
  });
  return { targeting: { _id, name }, options };
}

async function contextsOf(
  api: ManagementApi,
  { _id, contextCount }: OptionRecord,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  if (contextCount === 0) return [];
  try {
    return (await readOptionContents(api, _id, signal)).contexts;
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw thrown;
  }
}

/** An option that was listed, in its group or at the top level (null), with the Context IDs that were read of it. */
export function serviceOption(record: OptionRecord, parent: string | null, contexts: readonly string[]): ServiceOption {
  const { _id, name, type = record.childCount === undefined ? "atomic" : "collection", exposeChildren } = record;
  const isGroup = type === "collection";
  return {
    _id,
    name,
    type,
    parent,
    ...(isGroup && { exposeChildren: exposeChildren ?? false }),
    contexts,
    digest: digestOfContexts(contexts),
  };
}
