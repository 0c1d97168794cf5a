import { posix, win32 } from "node:path";
import { SettingsError } from "./error.ts";
import type { HttpSettings, Read } from "./http.ts";
import { SETTINGS } from "./registry.ts";

const NAME = "targeting-mcp";

/** The facts that the state folder depends on. */
export interface Platform {
  readonly platform: NodeJS.Platform;
  /** The home folder of the person. */
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** The folder in which programs of this platform keep what must survive a restart. It may not exist yet. */
export function stateFolder({ platform, home, environment }: Platform): string {
  if (platform === "win32") {
    return win32.join(environment.LOCALAPPDATA ?? win32.join(home, "AppData", "Local"), NAME);
  }
  if (platform === "darwin") return posix.join(home, "Library", "Application Support", NAME);
  const given = environment.XDG_STATE_HOME;
  // The XDG base directory specification says that a relative path is to be ignored.
  const base = given !== undefined && posix.isAbsolute(given) ? given : posix.join(home, ".local", "state");
  return posix.join(base, NAME);
}

/**
 * Where the database is that processes on several machines share, and what this process does in it; undefined without
 * one. Throws a SettingsError where nobody could drive its runs.
 */
export function readStoreSettings(read: Read, ownKeys: HttpSettings["ownKeys"]) {
  const url = read(SETTINGS.store);
  const store = {
    listenUrl: read(SETTINGS.storeListen),
    connections: read(SETTINGS.storeConnections),
    /** Whether this process drives runs. */
    drives: read(SETTINGS.drive),
    parallelProjects: read(SETTINGS.parallelProjects),
  } as const;
  const { variable } = SETTINGS.drive;
  if (!store.drives && url === undefined) {
    throw new SettingsError(`${variable} (--drive) is off, and TARGETING_MCP_STORE is missing`, variable);
  }
  if (!store.drives && ownKeys) {
    throw new SettingsError(`${variable} (--drive) is off: no worker has the keys that callers bring`, variable);
  }
  return url === undefined ? undefined : ({ ...store, url } as const);
}
