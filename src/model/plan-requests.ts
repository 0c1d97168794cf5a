import { candidates } from "./order.ts";
import type { Item } from "./targeting-model.ts";
import type { Work } from "./work.ts";

/** Above this many options and changes the first candidate is taken, without looking where each leads. */
const LOOKED_AHEAD = 2000;
/** A way to the end that takes more requests than this is not looked at any further. */
const LONGEST_LOOK = 200;

/** The requests that lead to what is wanted, or as far as they lead where nothing can go on. */
export interface PlannedWay {
  readonly requests: readonly (readonly Item[])[];
  /** Whether everything that is wanted is there after them. */
  readonly isWhole: boolean;
}

/**
 * Plays a work to its end: the requests, one after the other, if the service accepts all of them. Of several that could
 * be next the one is taken from which the end is nearest. Changes the model of the work.
 */
export function planRequests(work: Work): PlannedWay {
  const requests: (readonly Item[])[] = [];
  const looksAhead = work.model.options.size + work.changes.size <= LOOKED_AHEAD;
  // Each change needs at most a placeholder before it and one after it.
  const most = 3 * work.changes.size + 3;
  while (!work.isOver() && requests.length < most) {
    const next = looksAhead ? nearest(work) : candidates(work)[0];
    if (next === undefined) return { requests, isWhole: false };
    requests.push(next);
    work.done(next);
  }
  return { requests, isWhole: work.isOver() };
}

/** The candidate from which the end is nearest; the first one of several. */
function nearest(work: Work): readonly Item[] | undefined {
  const found = candidates(work, true);
  if (found.length < 2) return found[0];
  let best: readonly Item[] | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of found) {
    const trial = work.copy();
    trial.done(candidate);
    const requests = requestsToEnd(trial);
    if (best !== undefined && requests >= fewest) continue;
    best = candidate;
    fewest = requests;
  }
  return best;
}

/** How many requests it takes to the end where the first candidate is taken each time. */
function requestsToEnd(work: Work): number {
  for (let sent = 0; sent < LONGEST_LOOK; sent += 1) {
    if (work.isOver()) return sent;
    const [first] = candidates(work);
    if (first === undefined) break;
    work.done(first);
  }
  return Number.POSITIVE_INFINITY;
}
