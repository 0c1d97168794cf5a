import { createHash } from "node:crypto";
import type { Loss, Plan } from "./plan/plan.ts";

/** How long a person has to decide, in milliseconds. */
export const CONFIRMATION_MS = 600_000;
/** An `update_contexts` that takes away more Context IDs than this needs a confirmation. */
const UNASKED_CONTEXT_IDS = 100;

/** Whether a plan takes away so much that a person has to agree: decided by what it does, not only by the tool. */
export function needsConfirmation({ losses }: Plan): boolean {
  let contextIds = 0;
  for (const { kind, count, empties } of losses) {
    if (kind !== "contextIds" || empties) return true;
    contextIds += count;
  }
  return contextIds > UNASKED_CONTEXT_IDS;
}

/** A digest of what a plan takes away: a confirmation counts only for the same digest. */
export function lossDigest(losses: readonly Loss[]): string {
  const sorted = [...losses].sort((a, b) => (a._id < b._id ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("base64url");
}
