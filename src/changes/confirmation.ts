import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import * as z from "zod";
import type { WriteCall } from "./call.ts";
import { changeOf } from "./change-kinds.ts";
import type { Loss, Plan } from "./plan/plan.ts";

/** How long a person has to decide, in milliseconds. */
export const CONFIRMATION_MS = 600_000;
/** An `update_contexts` that takes away more than this asks first (contract, Confirmation). */
const UNASKED_CONTEXT_IDS = 100;

/** What a confirmation stands for: a planned run, what it was planned to take away, who asked, and until when. */
const sealed = z.object({ run: z.string(), digest: z.string(), caller: z.string(), expiresAt: z.number() });
export type Confirmation = z.infer<typeof sealed>;

/** Whether a plan takes away so much that a person has to agree: decided by what it does, not only by the tool. */
export function needsConfirmation(call: WriteCall, { losses }: Plan): boolean {
  if (changeOf(call).deletes) return losses.length > 0;
  const contextIds = losses.reduce((sum, loss) => sum + loss.count, 0);
  return contextIds > UNASKED_CONTEXT_IDS || losses.some((loss) => loss.empties);
}

/** A short text that changes when anything of what a plan takes away does. */
export function lossDigest(losses: readonly Loss[]): string {
  const sorted = [...losses].sort((a, b) => (a._id < b._id ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("base64url");
}

/** Seals a confirmation, so that nobody can make or change one. `key` has at least 32 bytes. */
export function sealConfirmation(key: Uint8Array, confirmation: Confirmation): string {
  const payload = Buffer.from(JSON.stringify(confirmation)).toString("base64url");
  return `${payload}.${signature(key, payload)}`;
}

/** Opens a sealed confirmation; undefined when it is none of ours or was changed. Whether it expired is not looked at. */
export function openConfirmation(key: Uint8Array, token: string): Confirmation | undefined {
  const [payload = "", mark = "", ...more] = token.split(".");
  const expected = Buffer.from(signature(key, payload));
  const given = Buffer.from(mark);
  if (more.length > 0 || expected.length !== given.length || !timingSafeEqual(expected, given)) return undefined;
  return sealed.safeParse(JSON.parse(Buffer.from(payload, "base64url").toString("utf8"))).data;
}

function signature(key: Uint8Array, payload: string): string {
  return createHmac("sha256", key).update(`confirmation ${payload}`).digest("base64url");
}
