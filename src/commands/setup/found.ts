import { access, constants } from "node:fs/promises";
import { dirname, posix, win32 } from "node:path";
import type { Platform } from "../../settings/state-folder.ts";
import { isFileError, isThere } from "./config/file.ts";
import { HOSTS, type Host } from "./hosts.ts";

/** The words for the hosts of which this machine has the command, the configuration, or the folder of it. */
export async function hostsFound(platform: Platform): Promise<readonly string[]> {
  const found = await Promise.all(
    Object.entries(HOSTS).map(async ([word, host]) => ((await isHere(host, platform)) ? [word] : [])),
  );
  return found.flat();
}

/** Whether this machine has the command of a host, its configuration, or the folder of it. */
export async function isHere(host: Host, platform: Platform): Promise<boolean> {
  const file = host.file(platform);
  const folder = dirname(file);
  if ((await isSeen(file)) || (folder !== platform.home && (await isSeen(folder)))) return true;
  return host.own !== undefined && (await programFound(host.own.program, platform));
}

/** Whether a path is there; one that cannot be looked at is not. */
async function isSeen(path: string): Promise<boolean> {
  try {
    return await isThere(path);
  } catch (thrown) {
    if (isFileError(thrown)) return false;
    throw thrown;
  }
}

/** Whether a program can be started by its name alone. */
export async function programFound(
  program: string,
  { platform, environment }: Platform,
  canStart: (file: string) => Promise<boolean> = isStartable,
): Promise<boolean> {
  const { delimiter, join } = platform === "win32" ? win32 : posix;
  const isWindows = platform === "win32";
  const folders = (environment.PATH ?? environment.Path ?? "").split(delimiter).filter((folder) => folder !== "");
  const endings = isWindows ? (environment.PATHEXT ?? ".COM;.EXE;.BAT;.CMD").split(";") : [""];
  const files = folders.flatMap((folder) => endings.map((ending) => join(folder, program + ending)));
  const there = await Promise.all(files.map((file) => canStart(file)));
  return there.includes(true);
}

async function isStartable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return true;
  } catch {
    // Whatever is the matter with it: it cannot be started.
    return false;
  }
}
