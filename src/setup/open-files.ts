import type { Platform } from "../settings/settings.ts";
import { bytesOf, isFileError, modeForOthers, textOf } from "./config-file.ts";
import { UnsafeChange } from "./entry.ts";
import { HOSTS } from "./hosts.ts";
import { commandLine, keysHeld } from "./settings.ts";

/** A file of a host that holds keys of this server, and that others can read. */
interface OpenFile {
  /** What the host is called. */
  readonly title: string;
  readonly found: string;
  /** The command that leaves the file to its owner. */
  readonly remedy: string;
}

/** The files of hosts that hold keys of this server, and that others than their owner can read. */
export async function openHostFiles(platform: Platform): Promise<readonly OpenFile[]> {
  const found: OpenFile[] = [];
  for (const { title, file: fileOf, list } of Object.values(HOSTS)) {
    const file = fileOf(platform);
    try {
      const bytes = await bytesOf(file);
      const entry = bytes && list.entryIn(textOf(bytes));
      const held = entry === undefined ? [] : keysHeld(entry);
      const mode = held.length === 0 ? undefined : await modeForOthers(file);
      if (mode === undefined) continue;
      const remedy = commandLine(["chmod", "600", file], platform.platform);
      found.push({ title, found: openWords(file, held, mode), remedy });
    } catch (thrown) {
      // A file that cannot be read by this program is a matter of `setup`.
      if (!(thrown instanceof UnsafeChange || isFileError(thrown))) throw thrown;
    }
  }
  return found;
}

/** That a file holds keys and is open to others. */
export function openWords(file: string, held: readonly string[], mode: number): string {
  return `${file} holds ${held.join(" and ")}, and is open to others (mode ${mode.toString(8)})`;
}
