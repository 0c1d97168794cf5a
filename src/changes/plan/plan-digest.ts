import { createHash } from "node:crypto";
import { lossDigest } from "../confirmation.ts";
import { journalLine } from "../state/entry-schema.ts";
import type { Plan } from "./plan.ts";

/**
 * A digest of all that a plan would do: its objects, its steps, what would fail, and what it would take away. Two plans
 * with the same digest make the same changes.
 */
export function planDigest(plan: Plan): string {
  const hash = createHash("sha256").update(lossDigest(plan.losses));
  for (const entry of plan.entries()) {
    if (entry.t === "facts") continue;
    for (const piece of journalLine(entry)) hash.update(piece);
    hash.update("\n");
  }
  return hash.digest("base64url");
}
