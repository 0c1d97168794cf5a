import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "../../platform/clock.ts";
import { createFile, makeFolder, replaceFile } from "../../platform/durable-files.ts";
import { RunStoreError } from "../store.ts";
import { machineLock } from "./project-lock.ts";
import { unlessMissing } from "./run-folder.ts";

/** The name of the file in the state folder. */
export const SEAL_KEY_FILE = "seal.key";
const KEY_BYTES = 32;
/** Where the file system has no links, another process may be writing the file at this moment. */
const READ_TRIES = 20;
const READ_WAIT_MS = 25;

/**
 * The key of a state folder: 32 bytes, made at the first use, readable by its owner only. One that is empty or too short,
 * as after a power failure, is made again: what was sealed before counts no more. Throws a RunStoreError where no key
 * can be had.
 */
export async function sealKeyIn(stateDir: string): Promise<Uint8Array> {
  const file = join(stateDir, SEAL_KEY_FILE);
  try {
    await makeFolder(stateDir);
    return (await keyIn(file, READ_TRIES)) ?? (await keyMadeAgain(file, stateDir));
  } catch (cause) {
    throw unusable(file, cause instanceof Error ? cause.message : String(cause));
  }
}

/** The key in a file, which is made where it is not there; undefined where it stays too short. */
async function keyIn(file: string, tries: number): Promise<Uint8Array | undefined> {
  for (let left = tries; left > 0; left -= 1) {
    const text = await unlessMissing(readFile(file, "utf8"));
    if (text === undefined) await createFile(file, newKey());
    const key = Buffer.from(text ?? (await readFile(file, "utf8")), "base64");
    if (key.length >= KEY_BYTES) return key;
    await delay(READ_WAIT_MS);
  }
  return undefined;
}

/** One process at a time, so that all of them have the same key then. */
function keyMadeAgain(file: string, stateDir: string): Promise<Uint8Array> {
  const lock = machineLock((name) => join(stateDir, "locks", name), systemClock);
  return lock.hold(
    SEAL_KEY_FILE,
    async () => {
      const madeMeanwhile = await keyIn(file, 1);
      if (madeMeanwhile !== undefined) return madeMeanwhile;
      const key = newKey();
      await replaceFile(file, key);
      return Buffer.from(key, "base64");
    },
    new AbortController().signal,
  );
}

function newKey(): string {
  return randomBytes(KEY_BYTES).toString("base64");
}

function unusable(file: string, why: string): RunStoreError {
  return new RunStoreError(
    `the key that seals confirmations cannot be kept in ${file} (${why})`,
    "TARGETING_MCP_STATE_DIR names another folder.",
  );
}
