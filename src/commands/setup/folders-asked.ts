import { stat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { givenText } from "../../settings/given.ts";
import { SETTINGS } from "../../settings/registry.ts";
import type { SettingsInput } from "../../settings/settings.ts";
import { type Fields, isFilledIn, tableOf } from "./entry.ts";

const { variable, flag } = SETTINGS.allowedDirs;

/** Whether a server with these fields may use files in no folder. */
export function hasNoFolder(fields: Fields): boolean {
  return !isFilledIn(tableOf(fields.env)?.[variable]);
}

/** The settings with the folders that a person allows, where none are given or in the entry already. */
export async function withFolders(
  input: SettingsInput,
  old: Fields | undefined,
  ask: ((question: string) => Promise<boolean>) | undefined,
): Promise<SettingsInput> {
  const isSaid = givenText(SETTINGS.allowedDirs, input) !== undefined || (old !== undefined && !hasNoFolder(old));
  if (isSaid || ask === undefined || flag === undefined) return input;
  const allowed: string[] = [];
  for (const folder of await usualFolders(input)) {
    if (await ask(`May files in ${folder} be read, and new ones be saved there?`)) allowed.push(folder);
  }
  if (allowed.length === 0) return input;
  return { ...input, flags: new Map([...input.flags, [flag, allowed.join(delimiter)]]) };
}

/** The folders in which people keep sheets, as far as they are there: downloads and documents. */
export async function usualFolders({ home, environment }: SettingsInput): Promise<readonly string[]> {
  const named = [environment.XDG_DOWNLOAD_DIR, environment.XDG_DOCUMENTS_DIR];
  const usual = ["Downloads", "Documents"].map((name, at) => named[at] || join(home, name));
  const found = await Promise.all(usual.map(async (folder) => ((await isFolder(folder)) ? [folder] : [])));
  return found.flat();
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    // What cannot be looked at is not offered.
    return false;
  }
}

/** How a folder is allowed later, by the word for the host. */
export function folderLine(word: string, folders: readonly string[]): string {
  const shown = folders.length === 0 ? "FOLDER" : folders.join(delimiter);
  return `No folder is allowed, so that no file is read or saved. To allow some: targeting-mcp setup ${word} --allowed-dirs="${shown}"`;
}
