/** A targeting that was seen: its name may have changed since. */
export interface SeenTargeting {
  readonly _id: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly seenAt: number;
}

/** What a name stands for: one targeting, or those that may have been meant. */
type NameResolution =
  | { readonly kind: "one"; readonly _id: string }
  | { readonly kind: "unknown" | "ambiguous"; readonly candidates: readonly SeenTargeting[] };

/** The targetings of one project that were seen before: the service has no operation that lists them. */
export interface TargetingMemory {
  /** Writes down targetings under their present names. */
  remember(targetings: readonly { readonly _id: string; readonly name: string }[]): Promise<void>;
  /** Strikes out targetings that are no more. */
  forget(ids: readonly string[]): Promise<void>;
  /** All of them, the last seen first. */
  recent(): Promise<readonly SeenTargeting[]>;
  /** Finds the targeting of a name, as it is written. */
  resolve(name: string): Promise<NameResolution>;
}
