import { isApiError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import { mapConcurrently, readOptionContents } from "./option-contents.ts";

/** How many options are looked into one by one, at the most: lists tell how many Context IDs each has, not which. */
const LOOKED_INTO = 100;

/** An option with the Context IDs that it is to hold. */
interface Expected {
  readonly _id: string;
  readonly contexts: readonly string[];
}

/**
 * Tells which options hold other Context IDs than expected, and which could not be read. Beyond the first hundred
 * nothing is read: those have the right number of them, and that has to do.
 */
export async function compareContexts(
  api: ManagementApi,
  expected: readonly Expected[],
): Promise<{ readonly different: ReadonlySet<string>; readonly unread: ReadonlySet<string> }> {
  const [different, unread] = [new Set<string>(), new Set<string>()];
  const never = new AbortController().signal;
  await mapConcurrently(expected.slice(0, LOOKED_INTO), async ({ _id, contexts }) => {
    try {
      const held = new Set((await readOptionContents(api, _id, never)).contexts);
      if (contexts.some((each) => !held.has(each))) different.add(_id);
    } catch (thrown) {
      if (!isApiError(thrown)) throw thrown;
      // What is gone by now cannot be looked at later either.
      if (thrown.effect === "rejected") different.add(_id);
      else unread.add(_id);
    }
    return undefined;
  });
  return { different, unread };
}
