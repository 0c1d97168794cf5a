import { type ArrivedEvent, type Expectation, isWanted, placeFrom } from "./expectations.ts";

/** Whether all expected events came within the time allowed, and how long they took. */
export interface TookResult {
  readonly met: boolean;
  /** Milliseconds from the first expected event to the last; absent where not all of them came. */
  readonly tookMs?: number;
}

/** The positions of the events of one expectation, and how many of them are needed. */
interface Wanted {
  readonly positions: readonly number[];
  readonly needed: number;
}

/**
 * The shortest time in which all expected events came: of each expectation as many as its `count`, or one. With `inOrder`
 * one expectation after the other, where they ever came so.
 */
export function checkTook(
  arrived: readonly ArrivedEvent[],
  expect: readonly Expectation[],
  { inOrder = false, withinMs }: { readonly inOrder?: boolean | undefined; readonly withinMs: number },
): TookResult {
  const inTime = arrived.toSorted((one, other) => one.arrivedAt - other.arrivedAt);
  const times = inTime.map(({ arrivedAt }) => arrivedAt);
  const wanted = expect
    .filter(({ count }) => count !== 0)
    .map((expectation): Wanted => {
      const positions = [...inTime.keys()].filter((position) => isWanted(inTime[position], expectation));
      return { positions, needed: expectation.count ?? 1 };
    });
  if (wanted.length === 0) return { met: true, tookMs: 0 };
  const tookMs = (inOrder ? shortest(times, wanted, true) : undefined) ?? shortest(times, wanted, false);
  return tookMs === undefined ? { met: false } : { met: tookMs <= withinMs, tookMs };
}

/** The least time from a wanted event to the one with which all are there; undefined where they never are. */
function shortest(times: readonly number[], wanted: readonly Wanted[], inOrder: boolean): number | undefined {
  const starts = inOrder ? (wanted[0]?.positions ?? []) : wanted.flatMap(({ positions }) => positions);
  let least: number | undefined;
  for (const start of starts) {
    const end = endOf(wanted, start, inOrder);
    if (end === undefined) continue;
    const took = (times[end] ?? 0) - (times[start] ?? 0);
    least = Math.min(least ?? took, took);
  }
  return least;
}

/** The position with which all that is wanted is there, from a start on. */
function endOf(wanted: readonly Wanted[], start: number, inOrder: boolean): number | undefined {
  let after = start;
  let end = start;
  for (const { positions, needed } of wanted) {
    const last = positions[placeFrom(positions, after) + needed - 1];
    if (last === undefined) return undefined;
    end = Math.max(end, last);
    if (inOrder) after = last + 1;
  }
  return end;
}
