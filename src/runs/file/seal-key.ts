import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { hasCode } from "../../platform/file-error.ts";
import { RunStoreError } from "../backend/store.ts";

/** The name of the file in the state folder. */
export const SEAL_KEY_FILE = "seal.key";
const KEY_BYTES = 32;
/** Another process may be writing the file at this moment, so that it is read again after a short wait. */
const READ_TRIES = 20;
const READ_WAIT_MS = 25;

/**
 * The key of a state folder: 32 bytes, made at the first use, readable by its owner only. Throws a RunStoreError where
 * it cannot be had.
 */
export async function sealKeyIn(stateDir: string): Promise<Uint8Array> {
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

function unusable(file: string, why: string): RunStoreError {
  return new RunStoreError(
    `the key that seals confirmations cannot be kept in ${file} (${why})`,
    "TARGETING_MCP_STATE_DIR names another folder.",
  );
}
