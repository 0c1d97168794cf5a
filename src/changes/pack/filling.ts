import type { PackingInput } from "./packing-input.ts";

/** Requests that are being filled. */
export interface Filling {
  readonly count: number;
  /** By place and request, how much of a limit is free. */
  readonly free: readonly Float64Array[];
  /** By request, the heavy weights in it. */
  readonly members: readonly number[][];
  /** By place, the room that heavy weights leave free. */
  readonly reserve: readonly number[];
}

/** Heavy weights that enter and leave a request. */
export interface Move {
  readonly request: number;
  readonly into: readonly number[];
  readonly out: readonly number[];
}

/** Makes a move. */
export function move({ columns }: PackingInput, filling: Filling, { request, into, out }: Move): void {
  const members = filling.members[request] ?? [];
  for (const position of out) members.splice(members.indexOf(position), 1);
  members.push(...into);
  columns.forEach((column, place) => {
    const free = filling.free[place];
    if (free === undefined) return;
    for (const position of out) free[request] = (free[request] ?? 0) + (column[position] ?? 0);
    for (const position of into) free[request] = (free[request] ?? 0) - (column[position] ?? 0);
  });
}
