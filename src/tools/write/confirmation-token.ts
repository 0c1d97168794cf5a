import { createHmac, timingSafeEqual } from "node:crypto";
import { CONFIRMATION_MS } from "../../changes/run-rules.ts";
import { ulidBytes, ulidOfBytes } from "../../spec/ulid.ts";
import type { ToolContext, ToolServices } from "../context.ts";
import { type ToolAnswer, ToolError } from "../define-tool.ts";

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

/** What a token means, expired or not. Throws a ToolError when this server did not give it to this caller. */
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
  return new ToolError("the confirmation has expired; nothing was done", "Call again without it to plan again.");
}

interface Agreement {
  readonly run: string;
  readonly digest: string;
  readonly caller: string;
  /** Milliseconds since 1970, in whole seconds. */
  readonly expiresAt: number;
}

export interface Confirmation extends Pick<Agreement, "run" | "expiresAt"> {
  /** Whether it was made for exactly this effect. */
  readonly standsFor: (digest: string) => boolean;
}

/** The parts of a token, in bytes: 30 in all, which are 40 letters. */
const RUN = 16;
const SECONDS = 3;
const MARK = 5;
const EFFECT = 6;
const SECONDS_ROUND = 2 ** (8 * SECONDS);
const TOKEN_LETTERS = 40;

/**
 * Seals an agreement in 40 letters, so that nobody can make or change one. It holds the run and when it expires; the
 * caller and the effect are only in its seals, of which the second one is looked at once the effect is known again.
 * `key` has at least 32 bytes.
 */
export function sealConfirmation(key: Uint8Array, agreement: Agreement): string {
  const seconds = Buffer.alloc(4);
  seconds.writeUInt32BE(Math.floor(agreement.expiresAt / 1000) % SECONDS_ROUND);
  const { mark, effect } = sealsOf(key, agreement);
  return Buffer.concat([ulidBytes(agreement.run), seconds.subarray(4 - SECONDS), mark, effect]).toString("base64url");
}

/**
 * Opens a sealed confirmation; undefined when it is none of ours, was changed, or was made for another caller. Whether it
 * expired is not looked at; `now` (milliseconds since 1970) tells which of the times it is that its few bytes may mean.
 */
function openConfirmation(
  key: Uint8Array,
  token: string,
  { caller, now }: { readonly caller: string; readonly now: number },
): Confirmation | undefined {
  const bytes = Buffer.from(token, "base64url");
  // Letters that mean the same bytes are no other token.
  if (token.length !== TOKEN_LETTERS || bytes.toString("base64url") !== token) return undefined;
  const run = ulidOfBytes(bytes.subarray(0, RUN));
  const expiresAt = nearestTime(bytes.readUIntBE(RUN, SECONDS), now);
  const given = { mark: bytes.subarray(RUN + SECONDS, RUN + SECONDS + MARK), effect: bytes.subarray(-EFFECT) };
  const sealsFor = (digest: string) => sealsOf(key, { run, digest, caller, expiresAt });
  if (!timingSafeEqual(sealsFor("").mark, given.mark)) return undefined;
  return { run, expiresAt, standsFor: (digest) => timingSafeEqual(sealsFor(digest).effect, given.effect) };
}

/** The time nearest to now whose seconds end like this. */
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

/** Whether a decision in a view counts by the settings: hosts alone keep the model from deciding there. */
export function mayDecideInView({ confirm, trustViews }: Pick<ToolServices, "confirm" | "trustViews">): boolean {
  return confirm !== "strict" || trustViews;
}

/** What a view is given with which a person decides: the secret is made for this run, its effect and this caller. */
export async function decisionFor(about: InView, sealing: Sealing): Promise<NonNullable<ToolAnswer["decision"]>> {
  return { runId: about.runId, secret: (await secretOf(about, sealing)).toString("base64url") };
}

/** Whether a secret is the one that was given for this run, its effect and this caller. */
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
