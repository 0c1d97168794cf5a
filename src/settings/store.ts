import { SettingsError } from "./error.ts";
import type { HttpSettings } from "./http.ts";
import { SETTINGS, type Setting } from "./registry.ts";

/** Where the database is that processes on several machines share, and what this process does in it. */
export interface StoreSettings {
  readonly url: string;
  readonly listenUrl: string | undefined;
  readonly connections: number;
  /** Whether this process drives runs. */
  readonly drives: boolean;
  readonly parallelProjects: number;
}

/** Reads the settings of the store; undefined without one. Throws a SettingsError where nobody could drive its runs. */
export function readStoreSettings(
  read: <Value, Fallback>(setting: Setting<Value, Fallback>) => Value | Fallback,
  ownKeys: HttpSettings["ownKeys"],
): StoreSettings | undefined {
  const url = read(SETTINGS.store);
  const store = {
    listenUrl: read(SETTINGS.storeListen),
    connections: read(SETTINGS.storeConnections),
    drives: read(SETTINGS.drive),
    parallelProjects: read(SETTINGS.parallelProjects),
  };
  const { variable } = SETTINGS.drive;
  if (!store.drives && url === undefined) {
    throw new SettingsError(`${variable} (--drive) is off, and TARGETING_MCP_STORE is missing`, variable);
  }
  if (!store.drives && ownKeys) {
    throw new SettingsError(`${variable} (--drive) is off: no worker has the keys that callers bring`, variable);
  }
  return url === undefined ? undefined : { ...store, url };
}
