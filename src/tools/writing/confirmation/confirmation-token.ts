import { CONFIRMATION_MS } from "../../../changes/confirmation.ts";
import type { ToolContext } from "../../context.ts";
import { ToolError } from "../../definition.ts";
import { type Agreement, type Confirmation, openConfirmation, sealConfirmation } from "./confirmation-seal.ts";

/** Seals what a person is to agree to, in the form that answers have; `effect` says what it is. */
export async function askFor(
  planned: Pick<Agreement, "run" | "digest">,
  effect: string,
  { clock, sealKey, caller }: ToolContext,
) {
  const expiresAt = Math.floor((clock.now() + CONFIRMATION_MS) / 1000) * 1000;
  const token = sealConfirmation(await sealKey(), { ...planned, caller, expiresAt });
  return { token, effect, expiresAt: new Date(expiresAt).toISOString() };
}

/** What a token stands for, expired or not. Throws a ToolError when this server did not give it to this caller. */
export async function confirmationIn(
  token: string,
  { sealKey, caller, clock }: Pick<ToolContext, "sealKey" | "caller" | "clock">,
): Promise<Confirmation> {
  const confirmation = openConfirmation(await sealKey(), token, { caller, now: clock.now() });
  if (confirmation !== undefined) return confirmation;
  throw new ToolError("confirmation is not a token that this server gave to this caller", "Call again without it.");
}

/**
 * Throws a ToolError when a confirmation starts nothing by now: it is too old, or the server has become strict since it
 * was given.
 */
export function checkCounts({ expiresAt }: Confirmation, { clock, confirm }: ToolContext): void {
  const leftMs = expiresAt - clock.now();
  // One that ends later than any that is given now was given while the clock was ahead.
  if (leftMs < 0 || leftMs > CONFIRMATION_MS) throw expired();
  if (confirm !== "strict") return;
  throw new ToolError(
    "a confirmation is no approval where TARGETING_MCP_CONFIRM is strict; nothing was done",
    "Call again without it: a person is asked where one can be reached.",
  );
}

/** The refusal of a confirmation that is too old. */
export function expired(): ToolError {
  return new ToolError("the confirmation has expired; nothing was done", "Call again without it to plan anew.");
}
