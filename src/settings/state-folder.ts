import { posix, win32 } from "node:path";

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
