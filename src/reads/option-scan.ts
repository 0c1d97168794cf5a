import type { ManagementApi } from "../api/management.ts";
import type { OptionRecord } from "../spec/records.ts";
import { type ContentsSource, contextIdsOf } from "./option-contents.ts";
import { type Step, type Walk, type WalkPosition, walkOptions } from "./option-lists.ts";
import { type Fetched, MANY_UNREAD, sideBySide } from "./side-by-side.ts";

/** An option must meet all conditions. */
export interface Wanted {
  /** A part of the name, in any case. */
  readonly search?: string | undefined;
  readonly contextIds?: readonly string[] | undefined;
  readonly empty?: boolean | undefined;
}

export interface Hit {
  readonly step: Step;
  readonly matched?: readonly string[];
}

interface ScanJob {
  readonly walk: Walk;
  readonly from: WalkPosition;
  readonly wanted: Wanted;
  readonly contents: Pick<ContentsSource, "store" | "fresh">;
}

/** The option that was checked last, and its hit. Options without a hit may be left out. */
type Scanned = Fetched<Step, Hit>;

/** Checks options in order, from a position on. Reads Context IDs only if the search needs them. */
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
  const source = { ...job.contents, targetingId: walk.targetingId };
  const ids = new Set(wanted.contextIds);
  await source.store?.refresh();
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

/** Returns whether an option has no Context IDs, and a group no sub-options either. */
export function isEmpty({ type, contextCount, childCount, children = [] }: OptionRecord): boolean {
  if (contextCount !== 0) return false;
  return type !== "collection" || (childCount ?? children.length) === 0;
}

/** Returns the empty options, and the groups that are empty once these are deleted. */
export function emptyOptions(options: readonly OptionRecord[]): readonly OptionRecord[] {
  const inside = new Map<string, number>();
  for (const option of options) {
    if (isEmpty(option) && typeof option.parent === "string") {
      inside.set(option.parent, (inside.get(option.parent) ?? 0) + 1);
    }
  }
  return options.filter((option) => isEmpty(option) || isLeftEmpty(option, inside.get(option._id) ?? 0));
}

/** Returns whether a group becomes empty when this many sub-options leave it (management-api 7.4, case 6). */
export function isLeftEmpty(
  { contextCount, childCount }: Pick<OptionRecord, "contextCount" | "childCount">,
  leaving: number,
): boolean {
  return contextCount === 0 && childCount === leaving;
}

function folded(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
