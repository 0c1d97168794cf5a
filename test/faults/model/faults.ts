/**
 * How much of a write is applied if its answer is lost: nothing, everything, every second item (if the operation
 * applies items one by one), or everything after `lateMs`. Until then the write locks the project.
 */
export type Effect = "none" | "whole" | "part" | { readonly lateMs: number };

/** A fault of one write request. `from` is a share of its items, in [0, 1). */
export type Fault =
  | { readonly kind: "busy"; readonly retryAfterMs: number }
  /** Another request takes the lock: the items after this share are not applied (management-api 4.2 rule 3). */
  | { readonly kind: "takeover"; readonly from: number; readonly retryAfterMs: number }
  | { readonly kind: "status"; readonly statusCode: 500 | 502; readonly effect: Effect }
  | { readonly kind: "reset" | "timeout"; readonly effect: Effect }
  | { readonly kind: "notSent" }
  /** The items after this share fail unexpectedly (management-api 4.1). */
  | { readonly kind: "uncatched"; readonly from: number; readonly addFirst: boolean }
  /** The service refuses the key, which ends the run. Or it refuses this request once. */
  | { readonly kind: "refused"; readonly as: "unauthorized" | "forbidden" | "validation" | "tooLarge" }
  /** The request is delayed: before it is applied, or between applying it and the answer. */
  | { readonly kind: "slow"; readonly ms: number; readonly moment: "before" | "after" };
