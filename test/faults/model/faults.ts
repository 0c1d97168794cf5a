/**
 * What becomes of a write whose answer is lost: nothing, all of it, every other item (item by item operations only),
 * or all of it later, while the write holds the project.
 */
export type Effect = "none" | "whole" | "part" | { readonly lateMs: number };

/** What goes wrong with one write request. Shares are in [0, 1). */
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
  /** It takes long before it is applied, or after that until it is answered. */
  | { readonly kind: "slow"; readonly ms: number; readonly moment: "before" | "after" };
