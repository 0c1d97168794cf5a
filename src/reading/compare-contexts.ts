import { isApiError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import { mapConcurrently, readOptionContents } from "./option-contents.ts";

/** How many options are looked into one by one where nothing speaks for another writer. */
const LOOKED_INTO = 100;

/** An option with the Context IDs that it is to hold. */
interface Expected {
  readonly _id: string;
  readonly contexts: readonly string[];
}

/** Options that hold other Context IDs than expected, and those that could not be read. */
interface Compared {
  readonly different: ReadonlySet<string>;
  readonly unread: ReadonlySet<string>;
}

/**
 * Tells which options hold other Context IDs than expected, and which could not be read. Lists tell how many each has,
 * not which: where `isAlone`, so that nothing speaks for another writer, a hundred are looked into, spread over all, and
 * the right number has to do for the others; but once one of them differs, every one is looked into.
 */
export async function compareContexts(
  api: ManagementApi,
  expected: readonly Expected[],
  { isAlone, signal }: { readonly isAlone: boolean; readonly signal: AbortSignal },
): Promise<Compared> {
  const step = isAlone ? Math.max(1, Math.ceil(expected.length / LOOKED_INTO)) : 1;
  const [different, unread] = [new Set<string>(), new Set<string>()];
  const compare = async ({ _id, contexts }: Expected): Promise<undefined> => {
    try {
      const held = new Set((await readOptionContents(api, _id, signal)).contexts);
      if (contexts.some((each) => !held.has(each))) different.add(_id);
    } catch (thrown) {
      if (!isApiError(thrown) && !signal.aborted) throw thrown;
      // What is gone by now cannot be looked at later either.
      if (isApiError(thrown) && thrown.effect === "rejected") different.add(_id);
      else unread.add(_id);
    }
  };
  const part = (isFirst: boolean) => expected.filter((_, at) => (at % step === 0) === isFirst);
  await mapConcurrently(part(true), compare);
  if (different.size > 0) await mapConcurrently(part(false), compare);
  return { different, unread };
}
