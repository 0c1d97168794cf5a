import type { ManagementApi } from "../api/management.ts";
import type { OptionRecord } from "../spec/records.ts";
import { type ContentsStore, contextIdsOf } from "./contents-store.ts";
import { type Step, type Walk, type WalkPosition, walkOptions } from "./option-walk.ts";
import { sideBySide, type Told } from "./side-by-side.ts";

/** What is looked for: options to which all of it applies. */
export interface Wanted {
  /** A part of the name, whatever its case. */
  readonly search?: string | undefined;
  /** Context IDs of which the option holds any. */
  readonly contextIds?: readonly string[] | undefined;
  /** Those without Context IDs; of groups those without sub-options, too. */
  readonly empty?: boolean | undefined;
}

/** An option that was looked for. */
export interface Hit {
  readonly step: Step;
  /** Those of the wanted Context IDs that it holds. */
  readonly matched?: readonly string[];
}

/** Where contents are read. */
interface Contents {
  readonly store?: ContentsStore | undefined;
  readonly fresh?: boolean | undefined;
}

/**
 * Looks at options from a position on, in the order of the walk, reading the Context IDs of several side by side where it
 * needs them. Throws what `walkOptions` and `contextIdsOf` throw.
 */
export function scanOptions(
  api: ManagementApi,
  job: { readonly walk: Walk; readonly from: WalkPosition; readonly wanted: Wanted; readonly contents: Contents },
): AsyncGenerator<Told<Step, Hit>, void> {
  const { walk, from, wanted, contents } = job;
  const part = wanted.search === undefined ? undefined : folded(wanted.search);
  const ids = wanted.contextIds === undefined ? undefined : new Set(wanted.contextIds);
  const source = { ...contents, targetingId: walk.targetingId };
  return sideBySide<Step, Hit>({
    async *source(signal) {
      if (ids !== undefined) await contents.store?.refresh();
      yield* walkOptions(api, { ...walk, signal }, from);
    },
    map(step, signal) {
      const { option } = step;
      if (part !== undefined && !folded(option.name).includes(part)) return undefined;
      if (wanted.empty === true && !isEmpty(option)) return undefined;
      if (ids === undefined) return { step };
      if (option.contextCount === 0) return undefined;
      return contextIdsOf(api, option, source, signal).then((held) => {
        const matched = held.filter((id) => ids.has(id));
        return matched.length === 0 ? undefined : { step, matched };
      });
    },
    signal: walk.signal,
    pace: api.pace,
  });
}

/** Whether an option is without Context IDs, and a group without sub-options, too. */
export function isEmpty({ type, contextCount, childCount, children = [] }: OptionRecord): boolean {
  if (contextCount !== 0) return false;
  return type !== "collection" || (childCount ?? children.length) === 0;
}

function folded(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
