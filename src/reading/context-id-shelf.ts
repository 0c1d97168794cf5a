import type { Clock } from "../platform/clock.ts";

/** What an option looked like when its Context IDs were read; anything else means that they may have changed. */
interface OptionVersion {
  readonly _id: string;
  readonly updatedAt?: string | undefined;
  readonly contextCount?: number | undefined;
}

/** Context IDs of options, kept for a short while, so that a scan for another one need not read them again. */
export interface ContextIdShelf {
  /** Undefined where they were never read, too long ago, or of another version of the option. */
  get(option: OptionVersion): ReadonlySet<string> | undefined;
  put(option: OptionVersion, contextIds: ReadonlySet<string>): void;
}

const KEPT_MS = 10 * 60_000;
/** A project holds 200,000 at most (management-api 8.1); a second project's worth may stay beside it. */
const MOST_CONTEXT_IDS = 400_000;

/** Makes an empty shelf. When it is full, what was put first goes first. */
export function contextIdShelf(clock: Clock): ContextIdShelf {
  const shelf = new Map<string, { readonly version: string; readonly at: number; readonly ids: ReadonlySet<string> }>();
  let held = 0;
  const drop = (optionId: string) => {
    held -= shelf.get(optionId)?.ids.size ?? 0;
    shelf.delete(optionId);
  };
  return {
    get(option) {
      const kept = shelf.get(option._id);
      if (kept === undefined) return undefined;
      if (kept.version === versionOf(option) && clock.now() - kept.at < KEPT_MS) return kept.ids;
      drop(option._id);
      return undefined;
    },
    put(option, ids) {
      drop(option._id);
      for (const oldest of shelf.keys()) {
        if (held + ids.size <= MOST_CONTEXT_IDS) break;
        drop(oldest);
      }
      shelf.set(option._id, { version: versionOf(option), at: clock.now(), ids });
      held += ids.size;
    },
  };
}

function versionOf({ updatedAt, contextCount }: OptionVersion): string {
  return `${updatedAt} ${contextCount}`;
}
