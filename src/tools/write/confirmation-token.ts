import { createHmac, timingSafeEqual } from "node:crypto";
import { CONFIRMATION_MS } from "../../changes/run-rules.ts";
import { ulidBytes, ulidOfBytes } from "../../spec/ulid.ts";
import type { ToolContext, ToolServices } from "../context.ts";
import { type ToolAnswer, ToolError } from "../define-tool.ts";

/** Creates the token for an approval, in the form that answers use. `effect` describes what the person approves. */
export async function askFor(
  planned: Pick<Agreement, "run" | "digest">,
  effect: string,
  { clock, sealKey, caller }: ToolContext,
) {
  const expiresAt = Math.floor((clock.now() + CONFIRMATION_MS) / 1000) * 1000;
  const token = sealConfirmation(await sealKey(), { ...planned, caller, expiresAt });
  return { token, effect, expiresAt: new Date(expiresAt).toISOString() };
}

/** Reads a token, expired or not. Throws a ToolError if this server did not issue it to this caller. */
export async function confirmationIn(
  token: string,
  { sealKey, caller, clock }: Pick<ToolContext, "sealKey" | "caller" | "clock">,
): Promise<Confirmation> {
  const confirmation = openConfirmation(await sealKey(), token, { caller, now: clock.now() });
  if (confirmation !== undefined) return confirmation;
  throw new ToolError("confirmation is not a token that this server gave to this caller", "Call again without it.");
}

/**
 * Throws a ToolError if a confirmation can no longer start anything: it has expired, or the server has become strict
 * since it was issued.
 */
export function checkCounts({ expiresAt }: Confirmation, { clock, confirm }: ToolContext): void {
  const leftMs = expiresAt - clock.now();
  // A token that ends later than any issued now was issued while the clock was ahead.
  if (leftMs < 0 || leftMs > CONFIRMATION_MS) throw expired();
  if (confirm !== "strict") return;
  throw new ToolError(
    "TARGETING_MCP_CONFIRM is strict, so a confirmation does not count as approval; nothing was done",
    "Call again without it. The server then asks a person itself, if it can reach one.",
  );
}

/** Returns the error for a confirmation that has expired. */
export function expired(): ToolError {
  return new ToolError("the confirmation has expired; nothing was done", "Call again without it to plan again.");
}

interface Agreement {
  readonly run: string;
  readonly digest: string;
  readonly caller: string;
  /** In milliseconds since 1970, rounded to whole seconds. */
  readonly expiresAt: number;
}

export interface Confirmation extends Pick<Agreement, "run" | "expiresAt"> {
  /** Whether the token was issued for exactly this effect. */
  readonly isFor: (digest: string) => boolean;
}

/** The sizes of the parts of a token, in bytes: 30 in all, which are 40 characters. */
const RUN = 16;
const SECONDS = 3;
const MARK = 5;
const EFFECT = 6;
const SECONDS_ROUND = 2 ** (8 * SECONDS);
const TOKEN_LETTERS = 40;

/**
 * Signs a confirmation in 40 characters, so that nobody can make or change one. The token contains the run and the
 * expiry. The caller and the effect are only in its two signatures; the second one is checked when the effect has been
 * computed again. `key` has at least 32 bytes.
 */
export function sealConfirmation(key: Uint8Array, agreement: Agreement): string {
  const seconds = Buffer.alloc(4);
  seconds.writeUInt32BE(Math.floor(agreement.expiresAt / 1000) % SECONDS_ROUND);
  const { mark, effect } = sealsOf(key, agreement);
  return Buffer.concat([ulidBytes(agreement.run), seconds.subarray(4 - SECONDS), mark, effect]).toString("base64url");
}

/**
 * Opens a signed confirmation. Returns undefined if this server did not sign it, if it was changed, or if it was issued
 * for another caller. Does not check the expiry. `now` (milliseconds since 1970) selects one of the times that its
 * three bytes can mean.
 */
function openConfirmation(
  key: Uint8Array,
  token: string,
  { caller, now }: { readonly caller: string; readonly now: number },
): Confirmation | undefined {
  const bytes = Buffer.from(token, "base64url");
  // Different characters that decode to the same bytes are not a valid token.
  if (token.length !== TOKEN_LETTERS || bytes.toString("base64url") !== token) return undefined;
  const run = ulidOfBytes(bytes.subarray(0, RUN));
  const expiresAt = nearestTime(bytes.readUIntBE(RUN, SECONDS), now);
  const given = { mark: bytes.subarray(RUN + SECONDS, RUN + SECONDS + MARK), effect: bytes.subarray(-EFFECT) };
  const sealsFor = (digest: string) => sealsOf(key, { run, digest, caller, expiresAt });
  if (!timingSafeEqual(sealsFor("").mark, given.mark)) return undefined;
  return { run, expiresAt, isFor: (digest) => timingSafeEqual(sealsFor(digest).effect, given.effect) };
}

/** Returns the time nearest to now that ends in these seconds. */
function nearestTime(seconds: number, now: number): number {
  const round = Math.round((now / 1000 - seconds) / SECONDS_ROUND);
  return (round * SECONDS_ROUND + seconds) * 1000;
}

function sealsOf(key: Uint8Array, { run, digest, caller, expiresAt }: Agreement) {
  const about = JSON.stringify([run, caller, Math.floor(expiresAt / 1000)]);
  const seal = (text: string, bytes: number) => createHmac("sha256", key).update(text).digest().subarray(0, bytes);
  return {
    mark: seal(`confirmation ${about}`, MARK),
    effect: seal(`effect ${about} ${digest}`, EFFECT),
  };
}

export interface InView {
  readonly runId: string;
  readonly digest: string;
}

type Sealing = Pick<ToolContext, "sealKey" | "caller">;

/** Returns whether the settings accept a decision in a view. Only the host keeps the model from deciding there. */
export function mayDecideInView({ confirm, trustViews }: Pick<ToolServices, "confirm" | "trustViews">): boolean {
  return confirm !== "strict" || trustViews;
}

/**
 * Returns the data with which a person decides in a view. The secret is valid only for this run, its effect and this
 * caller.
 */
export async function decisionFor(about: InView, sealing: Sealing): Promise<NonNullable<ToolAnswer["decision"]>> {
  return { runId: about.runId, secret: (await secretOf(about, sealing)).toString("base64url") };
}

/** Returns whether a secret was issued for this run, its effect and this caller. */
export async function isSecretFor(about: InView, given: string, sealing: Sealing): Promise<boolean> {
  const [bytes, secret] = [Buffer.from(given, "base64url"), await secretOf(about, sealing)];
  return bytes.length === secret.length && timingSafeEqual(bytes, secret);
}

async function secretOf({ runId, digest }: InView, { sealKey, caller }: Sealing): Promise<Buffer> {
  const about = JSON.stringify(["decision in a view", runId, digest, caller]);
  return createHmac("sha256", await sealKey())
    .update(about)
    .digest();
}
