import { thousands } from "../../platform/thousands.ts";
import { type ArrivedEvent, type Expectation, isWanted } from "./expectations.ts";

/** Whether events came in the order that was expected, and if not, which one broke it and by how much. */
export interface OrderResult {
  readonly met: boolean;
  readonly reason?: string;
}

/**
 * Looks whether the expected events came one after the other, in the order of `expect`: of each as many as its `count`,
 * or one. Expectations of none do not count.
 */
export function checkOrder(arrived: readonly ArrivedEvent[], expect: readonly Expectation[]): OrderResult {
  const inTime = arrived.toSorted((one, other) => one.arrivedAt - other.arrivedAt);
  let after = 0;
  let before: Before | undefined;
  for (const [index, expectation] of expect.entries()) {
    const needed = expectation.count ?? 1;
    if (needed === 0) continue;
    const name = `${JSON.stringify(expectation.eventName)} (expectation ${index + 1})`;
    const positions = [...inTime.keys()].filter((position) => isWanted(inTime[position], expectation));
    const usable = positions.filter((position) => position >= after);
    const last = usable[needed - 1];
    if (last === undefined)
      return { met: false, reason: whyBroken({ name, needed, positions, usable }, before, inTime) };
    after = last + 1;
    before = { name, position: last, arrivedAt: inTime[last]?.arrivedAt ?? 0 };
  }
  return { met: true };
}

interface Before {
  readonly name: string;
  readonly position: number;
  readonly arrivedAt: number;
}

interface Broken {
  readonly name: string;
  readonly needed: number;
  readonly positions: readonly number[];
  readonly usable: readonly number[];
}

function whyBroken(
  { name, needed, positions, usable }: Broken,
  before: Before | undefined,
  inTime: readonly ArrivedEvent[],
): string {
  const tooEarly = positions.length - usable.length;
  const latest = inTime[positions[tooEarly - 1] ?? -1];
  if (before === undefined || latest === undefined || positions.length < needed) {
    const came = positions.length === 0 ? "never came" : `came ${positions.length} times, not ${needed}`;
    return before === undefined ? `${name} ${came}` : `${name} ${came}; it was to come after ${before.name}`;
  }
  // One event cannot stand for two expectations.
  if (positions[tooEarly - 1] === before.position) return `${name} did not come again after ${before.name}`;
  const early = thousands(before.arrivedAt - latest.arrivedAt);
  const which = tooEarly === positions.length ? "" : `: ${usable.length} of ${needed} came after it`;
  return `${name} came ${early} ms before ${before.name}, not after it${which}`;
}
