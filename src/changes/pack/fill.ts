import { exchange } from "./exchange.ts";
import { fillWithLight } from "./fill-light.ts";
import { type Filling, move } from "./filling.ts";
import { heavyPlaces, isHeavy, type PackingInput, totals } from "./packing-input.ts";

/**
 * Fills `count` requests: the heavy weights are spread evenly, then those that found no place are
 * exchanged for others until little room is left, then the light ones fill up. With `leaveRoom`, the heavy ones leave
 * the light ones their part of every request. Calls `put` with each position and its request. Gives the positions
 * that found no place, always fewer than there were, in their order.
 */
export function fillRequests(
  input: PackingInput,
  positions: Int32Array,
  count: number,
  leaveRoom: boolean,
  put: (position: number, request: number) => void,
): Int32Array {
  const { shares, bounds } = input;
  const heavy = positions
    .filter((position) => isHeavy(input, position))
    .sort((a, b) => (shares[b] ?? 0) - (shares[a] ?? 0) || a - b);
  const light = positions.filter((position) => !isHeavy(input, position));
  const filling: Filling = {
    count,
    free: bounds.map((bound) => new Float64Array(count).fill(bound)),
    members: Array.from({ length: count }, () => []),
    reserve: totals(input, leaveRoom ? light : []).map((total) => total / count),
  };
  const waiting = exchange(input, filling, spread(input, filling, heavy));
  filling.members.forEach((members, request) => {
    for (const position of members) put(position, request);
  });
  const left = fillWithLight(input, light, filling.free, put);
  const rest = Int32Array.from([...waiting, ...left]).sort();
  if (rest.length < positions.length) return rest;
  const [alone = 0] = rest;
  put(alone, 0);
  return rest.subarray(1);
}

/** Puts each weight, the heaviest first, into the request with most room. Gives the weights without a place. */
function spread(input: PackingInput, filling: Filling, heavy: Int32Array): readonly number[] {
  const waiting: number[] = [];
  for (const position of heavy) {
    const request = roomiest(input, filling, position);
    if (request === undefined) waiting.push(position);
    else move(input, filling, { into: [position], out: [], request });
  }
  return waiting;
}

/** The request whose scarcest limit has most room left once it has taken the weight. */
function roomiest(input: PackingInput, filling: Filling, position: number): number | undefined {
  const needs = heavyPlaces(input, position).map((at) => ({
    free: filling.free[at] ?? new Float64Array(),
    need: input.columns[at]?.[position] ?? 0,
    bound: input.bounds[at] ?? 1,
    reserve: filling.reserve[at] ?? 0,
  }));
  let best: number | undefined;
  let most = -1;
  for (let request = 0; request < filling.count; request += 1) {
    let least = Number.POSITIVE_INFINITY;
    for (const { free, need, bound, reserve } of needs) {
      const room = free[request] ?? 0;
      const left = room - need;
      // The reserve does not count for a nearly empty request, since very large weights would find no place otherwise.
      const kept = left < reserve && room + reserve < bound;
      least = Math.min(least, kept ? -1 : left / bound);
      if (least <= most) break;
    }
    if (least < 0 || least <= most || !fits(input, filling, position, request)) continue;
    best = request;
    most = least;
  }
  return best;
}

function fits(input: PackingInput, filling: Filling, position: number, request: number): boolean {
  for (let place = 0; place < input.columns.length; place += 1) {
    if ((input.columns[place]?.[position] ?? 0) > (filling.free[place]?.[request] ?? 0)) return false;
  }
  return true;
}
