import type { ManagementApi } from "../api/management.ts";
import type { ContentsStore } from "../runs/backend.ts";
import type { OptionRecord } from "../spec/records.ts";
import { contextIdsOf } from "./option-contents.ts";
import { type Step, type Walk, type WalkPosition, walkOptions } from "./option-walk.ts";
import { type Fetched, MANY_UNREAD, sideBySide } from "./side-by-side.ts";

/** The conditions of a search. An option must match all of them. */
export interface Wanted {
  /** A part of the name. Upper and lower case are equal. */
  readonly search?: string | undefined;
  /** Context IDs, any of which the option has. */
  readonly contextIds?: readonly string[] | undefined;
  /** Options without Context IDs; groups must also have no sub-options. */
  readonly empty?: boolean | undefined;
}

export interface Hit {
  readonly step: Step;
  /** The wanted Context IDs that the option has. */
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

/** The option that was checked last, and its hit, if any. Options before it without a hit may be omitted. */
export type Scanned = Fetched<Step, Hit>;

/** Checks options from a position on, in the order of the walk, reading Context IDs of several at a time if needed. */
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

/** Returns whether an option has no Context IDs, and, for a group, no sub-options either. */
export function isEmpty({ type, contextCount, childCount, children = [] }: OptionRecord): boolean {
  if (contextCount !== 0) return false;
  return type !== "collection" || (childCount ?? children.length) === 0;
}

/** Returns the options that are empty, and the groups that would be empty without them. */
export function emptyOptions(options: readonly OptionRecord[]): readonly OptionRecord[] {
  const inside = new Map<string, number>();
  for (const option of options) {
    if (isEmpty(option) && typeof option.parent === "string") {
      inside.set(option.parent, (inside.get(option.parent) ?? 0) + 1);
    }
  }
  return options.filter((option) => isEmpty(option) || isLeftEmpty(option, inside.get(option._id) ?? 0));
}

/**
 * Returns whether a group without own Context IDs is empty after this many sub-options leave it (management-api 7.4,
 * case 6).
 */
export function isLeftEmpty(
  { contextCount, childCount }: Pick<OptionRecord, "contextCount" | "childCount">,
  leaving: number,
): boolean {
  return contextCount === 0 && childCount === leaving;
}

function folded(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
