import { NameIndex, type NameMatch } from "../../spec/name-match.ts";

/** A targeting that was seen: its name may have changed since. */
export interface SeenTargeting {
  readonly _id: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly seenAt: number;
}

/** The most targetings of a project that are remembered. */
export const MOST_REMEMBERED = 2000;
const CANDIDATES = 5;

/** The targetings of one project that were seen before: the service has no operation that lists them. */
export interface TargetingMemory {
  /** Stores targetings under their present names. */
  remember(targetings: readonly { readonly _id: string; readonly name: string }[]): Promise<void>;
  /** Removes targetings that were deleted. */
  forget(ids: readonly string[]): Promise<void>;
  /** All of them, the last seen first. */
  recent(): Promise<readonly SeenTargeting[]>;
  /** Finds the targeting of a name, as a `NameIndex` does; of an unknown one the last seen are candidates, too. */
  resolve(name: string): Promise<NameMatch<SeenTargeting>>;
}

/** The targeting of a name among those that were seen, the last seen first. */
export function namedAmong(seen: readonly SeenTargeting[], name: string): NameMatch<SeenTargeting> {
  const found = new NameIndex(seen).find(name);
  if (found.kind !== "unknown") return found;
  const near = new Set([...found.candidates, ...seen]);
  return { kind: "unknown", candidates: [...near].slice(0, CANDIDATES) };
}
