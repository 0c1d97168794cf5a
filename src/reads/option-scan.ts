import type { ManagementApi } from "../api/management.ts";
import type { ContentsStore } from "../runs/backend.ts";
import type { OptionRecord } from "../spec/records.ts";
import { contextIdsOf } from "./option-contents.ts";
import { type Step, type Walk, type WalkPosition, walkOptions } from "./option-walk.ts";
import { MANY_UNREAD, sideBySide, type Told } from "./side-by-side.ts";

/** What is looked for: options to which all of it applies. */
export interface Wanted {
  /** A part of the name, whatever its case. */
  readonly search?: string | undefined;
  /** Context IDs of which the option holds any. */
  readonly contextIds?: readonly string[] | undefined;
  /** Those without Context IDs; of groups those without sub-options, too. */
  readonly empty?: boolean | undefined;
}

export interface Hit {
  readonly step: Step;
  /** Those of the wanted Context IDs that it holds. */
  readonly matched?: readonly string[];
}

interface Contents {
  readonly store?: ContentsStore | undefined;
  readonly fresh?: boolean | undefined;
}

interface ScanJob {
  readonly walk: Walk;
  readonly from: WalkPosition;
  readonly wanted: Wanted;
  readonly contents: Contents;
}

/** What was looked at last, and whether it was looked for. Those before it that were not are not told one by one. */
export type Scanned = Told<Step, Hit>;

/**
 * Looks at options from a position on, in the order of the walk; where it needs their Context IDs, those of several side
 * by side. Throws what `walkOptions` and `contextIdsOf` throw.
 */
export async function* scanOptions(api: ManagementApi, job: ScanJob): AsyncGenerator<Scanned, void> {
  const { walk, from, wanted } = job;
  const isNamed = nameTest(wanted.search);
  const fits = ({ option }: Step): boolean => isNamed(option) && (wanted.empty !== true || isEmpty(option));
  if (wanted.contextIds === undefined) {
    for await (const step of walkOptions(api, walk, from)) {
      yield { from: step, value: fits(step) ? { step } : undefined };
    }
    return;
  }
  const { store, fresh } = job.contents;
  const source = { store, fresh, targetingId: walk.targetingId };
  const ids = new Set(wanted.contextIds);
  await store?.refresh();
  yield* sideBySide<Step, Hit>({
    source: (signal) => walkOptions(api, { ...walk, signal }, from),
    map(step, signal, withoutRead) {
      if (!fits(step) || step.option.contextCount === 0) return undefined;
      return contextIdsOf(api, step.option, source, signal, withoutRead).then((held) => {
        const matched = held.filter((id) => ids.has(id));
        return matched.length === 0 ? undefined : { step, matched };
      });
    },
    unreadAhead: MANY_UNREAD,
    signal: walk.signal,
    pace: api.pace,
  });
}

function nameTest(search: string | undefined): (option: OptionRecord) => boolean {
  if (search === undefined) return () => true;
  const part = folded(search);
  return ({ name }) => folded(name).includes(part);
}

/** Whether an option is without Context IDs, and a group without sub-options, too. */
export function isEmpty({ type, contextCount, childCount, children = [] }: OptionRecord): boolean {
  if (contextCount !== 0) return false;
  return type !== "collection" || (childCount ?? children.length) === 0;
}

function folded(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
