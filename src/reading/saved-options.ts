import type { ManagementApi } from "../api/management.ts";
import type { OptionRecord, OptionType } from "../spec/records.ts";
import { isMissing } from "./find-options.ts";
import { mapConcurrently, readOptionContents } from "./option-contents.ts";
import { readOptions } from "./option-lists.ts";

/** How many options are read at the same time, and given on together. */
const BATCH = 8;

/** An option, and where it is a sub-option the name of its group. */
export interface PlacedOption {
  readonly option: OptionRecord;
  readonly groupName?: string | undefined;
}

/** An option as a row of a file that `bulk_add_options` reads. */
export interface SavedOption {
  readonly name: string;
  readonly type?: OptionType;
  readonly exposeChildren?: boolean;
  readonly contexts?: readonly string[];
  readonly parent?: string;
  readonly parentName?: string;
}

/** Every option of a targeting, each group followed by its sub-options. Throws ApiErrors. */
export async function* placedOptions(
  api: ManagementApi,
  targetingId: string,
  signal: AbortSignal,
): AsyncGenerator<PlacedOption> {
  for await (const option of readOptions(api, targetingId, signal, { subOptions: false })) {
    yield { option };
    if (option.type === "atomic" || option.childCount === 0) continue;
    for await (const child of readOptions(api, targetingId, signal, { parent: option._id })) {
      yield { option: child, groupName: option.name };
    }
  }
}

/**
 * Options with their Context IDs, as files for `bulk_add_options` have them, a few at a time. Takes one Get an Option
 * for each option that has Context IDs; one that is gone meanwhile is left out. Throws ApiErrors.
 */
export async function* withContexts(
  api: ManagementApi,
  options: Iterable<PlacedOption> | AsyncIterable<PlacedOption>,
  signal: AbortSignal,
): AsyncGenerator<readonly SavedOption[]> {
  const read = async (placed: PlacedOption): Promise<SavedOption | undefined> => {
    const { option } = placed;
    if (option.contextCount === 0) return savedOption(placed, []);
    try {
      return savedOption(placed, (await readOptionContents(api, option._id, signal)).contexts);
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      throw thrown;
    }
  };
  let batch: PlacedOption[] = [];
  for await (const placed of options) {
    batch.push(placed);
    if (batch.length < BATCH) continue;
    yield await mapConcurrently(batch, read);
    batch = [];
  }
  if (batch.length > 0) yield await mapConcurrently(batch, read);
}

/**
 * An option as a row of a file; `contexts` undefined leaves its Context IDs out. A sub-option names its group, or, where
 * no name is given, points to it.
 */
export function savedOption({ option, groupName }: PlacedOption, contexts: readonly string[] | undefined): SavedOption {
  const { name, type, exposeChildren, parent } = option;
  if (groupName === undefined && typeof parent === "string") {
    return { name, parent, ...(contexts !== undefined && { contexts }) };
  }
  const isGroup = groupName === undefined && type === "collection";
  return {
    name,
    ...(groupName === undefined ? { type: type ?? "atomic" } : { parentName: groupName }),
    ...(isGroup && exposeChildren !== undefined && { exposeChildren }),
    ...(contexts !== undefined && { contexts }),
  };
}
