import { hkdfSync } from "node:crypto";
import type { Log } from "../observe/log.ts";
import { systemClock } from "../platform/clock.ts";
import { type Backend, withShares } from "../runs/backend.ts";
import { fileBackend } from "../runs/files/backend.ts";
import { RunStoreError, StoreUnavailableError } from "../runs/store.ts";
import type { CommandLine } from "../settings/command-line.ts";
import type { Settings } from "../settings/settings.ts";
import { SettingsError } from "../settings/value-types.ts";
import { inputOf, settingsFrom } from "./settings-input.ts";

const WAIT_MS = 30_000;
const AGAIN_MS = 500;

/** Returns the store that the settings name. Does not yet connect or open files. */
export async function backendOf(settings: Settings): Promise<Backend> {
  const { stateDir, keep, share, store } = settings;
  const kept = { ...keep, bytes: share.bytes };
  if (store === undefined) return withShares(fileBackend({ stateDir, clock: systemClock, keep: kept }), share);
  const { postgresBackend } = await import("../runs/postgres/backend.ts");
  return withShares(postgresBackend({ ...store, clock: systemClock, keep: kept }), share);
}

/**
 * Returns whether the configured store can be used. With `migrates`, first updates its tables. Logs weaknesses of the
 * store. Writes to standard error why it cannot be used.
 */
export async function isStoreReady(
  { store, sealKey }: Pick<Settings, "store" | "sealKey">,
  { migrates, log }: { readonly migrates: boolean; readonly log: Pick<Log, "warn"> },
): Promise<boolean> {
  if (store === undefined) return true;
  const { prepareStore } = await import("../runs/postgres/start.ts");
  try {
    const onAway = (error: unknown): void => log.warn("waiting for the store", { error });
    for (const weakness of await whenReachable(() => prepareStore(store, { migrates, sealKey }), onAway)) {
      log.warn(weakness, {});
    }
    return true;
  } catch (thrown) {
    tellOf(thrown);
    return false;
  }
}

/**
 * Repeats `work` for half a minute while the store cannot be reached, because a database often starts together with the
 * server, and needs time after a crash. Then throws the last StoreUnavailableError. Throws other errors at once. Calls
 * `onAway` with the first error.
 */
export async function whenReachable<T>(work: () => Promise<T>, onAway?: (thrown: unknown) => void): Promise<T> {
  const begin = systemClock.monotonic();
  let isKnown = false;
  for (;;) {
    try {
      return await work();
    } catch (thrown) {
      const isOver = systemClock.monotonic() - begin >= WAIT_MS;
      if (isOver || !(thrown instanceof StoreUnavailableError)) throw thrown;
      if (!isKnown) onAway?.(thrown);
      isKnown = true;
    }
    await systemClock.sleep(AGAIN_MS);
  }
}

export async function runMigrate(line: CommandLine): Promise<number> {
  const { store } = settingsFrom({ ...inputOf(line), overHttp: true });
  if (store === undefined) return withoutStore("migrate");
  const { migrateStore } = await import("../runs/postgres/start.ts");
  try {
    const { found, wanted } = await migrateStore(store);
    const words = found >= wanted ? "" : ` now (${found} to ${wanted})`;
    process.stdout.write(`the tables are up to date${words}\n`);
    return 0;
  } catch (thrown) {
    tellOf(thrown);
    return 1;
  }
}

/** Closes a store after `ms` milliseconds. A store that does not answer would otherwise keep the process alive. */
export function giveUpAfter(backend: Pick<Backend, "close">, ms: number): void {
  setTimeout(() => void backend.close().catch(() => undefined), ms).unref();
}

export function withoutStore(command: string): number {
  process.stderr.write(
    `targeting-mcp: ${command} requires TARGETING_MCP_STORE, set to the postgres:// address of a database\n`,
  );
  return 1;
}

function tellOf(thrown: unknown): void {
  if (!(thrown instanceof RunStoreError)) throw thrown;
  process.stderr.write(`targeting-mcp: ${thrown.message}. ${thrown.remedy}\n`);
}

const KEY_BYTES = 32;

/** What a key is for. Each purpose has its own key, so that data signed for one is not valid for another. */
type SealPurpose = "confirmation" | "question" | "page";

/** Returns a function that derives a key for each purpose from the configured key (base64), or else the stored one. */
export function sealKeys(sealKey: string | undefined, kept: () => Promise<Uint8Array>) {
  let root = sealKey === undefined ? undefined : Buffer.from(sealKey, "base64");
  return async (purpose: SealPurpose): Promise<Uint8Array> => {
    root ??= Buffer.from(await kept());
    return new Uint8Array(hkdfSync("sha256", root, "", purpose, KEY_BYTES));
  };
}

/** Throws an error of the store as a SettingsError, so that a command reports it at its start like a wrong setting. */
export function asSetting(thrown: unknown): never {
  if (!(thrown instanceof RunStoreError)) throw thrown;
  throw new SettingsError(`${thrown.message}. ${thrown.remedy}`);
}
