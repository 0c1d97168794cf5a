import { hkdfSync, randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SettingsError } from "../settings/error.ts";

/** The name of the file in the state folder. */
export const SEAL_KEY_FILE = "seal.key";
const KEY_BYTES = 32;
/** Reading is retried, since another process may be writing the file at that moment. */
const READ_TRIES = 20;
const READ_WAIT_MS = 25;

/** What a key seals. Each purpose has its own key, so that a seal of one is invalid for another. */
type SealPurpose = "confirmation" | "question";

/** Gives the key of a purpose: 32 bytes, the same for all processes that share the setting or the state folder. */
export type SealKeys = (purpose: SealPurpose) => Promise<Uint8Array>;

/**
 * Keys for seals, made from the setting (base64) or else from a file in the state folder, which is created at the
 * first use, readable by its owner only. Throws a SettingsError when that file cannot be had.
 */
export function sealKeys({
  sealKey,
  stateDir,
}: {
  readonly sealKey: string | undefined;
  readonly stateDir: string;
}): SealKeys {
  let root: Promise<Uint8Array> | undefined;
  return async (purpose) => {
    root ??= sealKey === undefined ? keyIn(stateDir) : Promise.resolve(Buffer.from(sealKey, "base64"));
    return new Uint8Array(hkdfSync("sha256", await root, "", purpose, KEY_BYTES));
  };
}

async function keyIn(stateDir: string): Promise<Uint8Array> {
  const file = join(stateDir, SEAL_KEY_FILE);
  try {
    await mkdir(stateDir, { recursive: true, mode: 0o700 });
    await writeFile(file, randomBytes(KEY_BYTES).toString("base64"), { flag: "wx", mode: 0o600 });
  } catch (cause) {
    if (!hasCode(cause, "EEXIST")) throw unusable(file, cause instanceof Error ? cause.message : String(cause));
  }
  for (let tries = 1; tries <= READ_TRIES; tries += 1) {
    const key = Buffer.from(await readFile(file, "utf8"), "base64");
    if (key.length >= KEY_BYTES) return key;
    await delay(READ_WAIT_MS);
  }
  throw unusable(file, "it holds no key; remove it, and a new one is made");
}

function unusable(file: string, why: string): SettingsError {
  const message = `the key that seals confirmations cannot be kept in ${file} (${why}); TARGETING_MCP_STATE_DIR names another folder`;
  return new SettingsError(message, "TARGETING_MCP_STATE_DIR");
}

function hasCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === code;
}
