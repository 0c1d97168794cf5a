import type { NameMatch } from "../../spec/name-match.ts";

/** A targeting that was seen: its name may have changed since. */
export interface SeenTargeting {
  readonly _id: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly seenAt: number;
}

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
