import { createHmac, timingSafeEqual } from "node:crypto";
import { CONFIRMATION_MS } from "../../changes/change-kinds.ts";
import { ulidBytes, ulidOfBytes } from "../../spec/names-and-contexts.ts";
import { type ToolAnswer, type ToolContext, ToolError, type ToolServices } from "../define-tool.ts";

/** Returns a confirmation token, when it expires, and the text of the effect that a person approves with it. */
export async function askFor(
  planned: Pick<Agreement, "run" | "digest">,
  effect: string,
  { clock, sealKey, caller }: ToolContext,
) {
  const expiresAt = Math.floor((clock.now() + CONFIRMATION_MS) / 1000) * 1000;
  const token = sealConfirmation(await sealKey(), { ...planned, caller, expiresAt });
  return { token, effect, expiresAt: new Date(expiresAt).toISOString() };
}

/** Reads a token, which may have expired. Throws a ToolError if this server did not issue it to this caller. */
export async function confirmationIn(
  token: string,
  { sealKey, caller, clock }: Pick<ToolContext, "sealKey" | "caller" | "clock">,
): Promise<Confirmation> {
  const confirmation = openConfirmation(await sealKey(), token, { caller, now: clock.now() });
  if (confirmation !== undefined) return confirmation;
  throw new ToolError(
    "confirmation is not a token that this server gave to this caller",
    "Call again without confirmation.",
  );
}

/** Throws a ToolError if a token has expired, or if `confirm` is now `strict`, which accepts no tokens. */
export function checkCounts({ expiresAt }: Confirmation, { clock, confirm }: ToolContext): void {
  const leftMs = expiresAt - clock.now();
  // If more time is left than a token is ever valid, the clock was ahead when it was issued. Such a token is refused as
  // well.
  if (leftMs < 0 || leftMs > CONFIRMATION_MS) throw expired();
  if (confirm !== "strict") return;
  throw new ToolError(
    "TARGETING_MCP_CONFIRM is strict, so a confirmation does not count as approval; nothing was done",
    "Call again without confirmation. The server then asks a person itself, if it can reach one.",
  );
}

export function expired(): ToolError {
  return new ToolError("the confirmation has expired; nothing was done", "Call again without it to plan again.");
}

interface Agreement {
  readonly run: string;
  readonly digest: string;
  readonly caller: string;
  /** When the token expires, in milliseconds since 1970. A multiple of 1,000. */
  readonly expiresAt: number;
}

export interface Confirmation extends Pick<Agreement, "run" | "expiresAt"> {
  readonly isFor: (digest: string) => boolean;
}

/** The sizes of the four parts of a token in bytes. The 30 bytes together are 40 characters in base64url. */
const RUN = 16;
const SECONDS = 3;
const MARK = 5;
const EFFECT = 6;
const SECONDS_ROUND = 2 ** (8 * SECONDS);
const TOKEN_LETTERS = 40;

/**
 * Returns a token of 40 characters: the run, when the token expires, and two signatures. Both cover the caller, and the
 * second one also covers the effect. `key`: at least 32 bytes.
 */
export function sealConfirmation(key: Uint8Array, agreement: Agreement): string {
  const seconds = Buffer.alloc(4);
  seconds.writeUInt32BE(Math.floor(agreement.expiresAt / 1000) % SECONDS_ROUND);
  const { mark, effect } = sealsOf(key, agreement);
  return Buffer.concat([ulidBytes(agreement.run), seconds.subarray(4 - SECONDS), mark, effect]).toString("base64url");
}

/**
 * Reads a token. Undefined if this server did not sign it for this caller. The time in it has only three bytes, which
 * repeat every half year; the time nearest to `now` is meant.
 */
function openConfirmation(
  key: Uint8Array,
  token: string,
  { caller, now }: { readonly caller: string; readonly now: number },
): Confirmation | undefined {
  const bytes = Buffer.from(token, "base64url");
  // Several texts decode to the same bytes. Only the text that the encoder writes for these bytes is accepted.
  if (token.length !== TOKEN_LETTERS || bytes.toString("base64url") !== token) return undefined;
  const run = ulidOfBytes(bytes.subarray(0, RUN));
  const expiresAt = nearestTime(bytes.readUIntBE(RUN, SECONDS), now);
  const given = { mark: bytes.subarray(RUN + SECONDS, RUN + SECONDS + MARK), effect: bytes.subarray(-EFFECT) };
  const sealsFor = (digest: string) => sealsOf(key, { run, digest, caller, expiresAt });
  if (!timingSafeEqual(sealsFor("").mark, given.mark)) return undefined;
  return { run, expiresAt, isFor: (digest) => timingSafeEqual(sealsFor(digest).effect, given.effect) };
}

/** Returns the time nearest to `now` whose last three bytes, in seconds, are `seconds`. */
function nearestTime(seconds: number, now: number): number {
  const round = Math.round((now / 1000 - seconds) / SECONDS_ROUND);
  return (round * SECONDS_ROUND + seconds) * 1000;
}

function sealsOf(key: Uint8Array, { run, digest, caller, expiresAt }: Agreement) {
  const about = JSON.stringify([run, caller, Math.floor(expiresAt / 1000)]);
  const seal = (text: string, bytes: number) => createHmac("sha256", key).update(text).digest().subarray(0, bytes);
  return { mark: seal(`confirmation ${about}`, MARK), effect: seal(`effect ${about} ${digest}`, EFFECT) };
}

interface InView {
  readonly runId: string;
  readonly digest: string;
}

type Sealing = Pick<ToolContext, "sealKey" | "caller">;

/**
 * Returns whether a person may decide in a view that the host shows. This server cannot see whether the person or the
 * model decided there, so in strict mode, it must be set to trust the host (`trustViews`).
 */
export function mayDecideInView({ confirm, trustViews }: Pick<ToolServices, "confirm" | "trustViews">): boolean {
  return confirm !== "strict" || trustViews;
}

/** Returns the secret with which a view sends a decision, valid only for this run, this effect and this caller. */
export async function decisionFor(about: InView, sealing: Sealing): Promise<NonNullable<ToolAnswer["decision"]>> {
  return { runId: about.runId, secret: (await secretOf(about, sealing)).toString("base64url") };
}

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
