/**
 * How much of a write is applied if its answer is lost: nothing, everything, every second item (only for operations
 * that apply items one by one), or everything later, while the write locks the project.
 */
export type Effect = "none" | "whole" | "part" | { readonly lateMs: number };

/** A fault of one write request. Shares are in [0, 1). */
export type Fault =
  | { readonly kind: "busy"; readonly retryAfterMs: number }
  /** Items from a share of the request on are not applied (management-api 4.2 rule 3). */
  | { readonly kind: "takeover"; readonly from: number; readonly retryAfterMs: number }
  | { readonly kind: "status"; readonly statusCode: 500 | 502; readonly effect: Effect }
  | { readonly kind: "reset" | "timeout"; readonly effect: Effect }
  | { readonly kind: "notSent" }
  /** Items from a share of the request on fail unexpectedly (management-api 4.1). */
  | { readonly kind: "uncatched"; readonly from: number; readonly addFirst: boolean }
  /** The key is refused, and the run ends; or something on the way takes exception to the request, this once. */
  | { readonly kind: "refused"; readonly as: "unauthorized" | "forbidden" | "validation" | "tooLarge" }
  /** The request is delayed: before it is applied, or between applying it and the answer. */
  | { readonly kind: "slow"; readonly ms: number; readonly moment: "before" | "after" };
