import { delimiter, isAbsolute } from "node:path";
import { type CommandLine, oneTooMany } from "../settings/command-line.ts";

/**
 * Takes the words of a command line as folders that files may be read from and written to, beside --allowed-dirs:
 * installers of bundles pass a list of folders that way. A `${…}` that an installer left in place is ignored.
 * Throws a SettingsError for a word that is no absolute path.
 */
export function wordsAsFolders({ words, flags }: CommandLine): CommandLine {
  const folders = words.filter((word) => !/^\$\{[^}]*\}$/.test(word));
  const stray = folders.find((folder) => !isAbsolute(folder));
  if (stray !== undefined) throw oneTooMany(stray);
  if (folders.length === 0) return { words: [], flags };
  const all = [flags.get("allowed-dirs"), ...folders].filter((one) => one !== undefined);
  return { words: [], flags: new Map([...flags, ["allowed-dirs", all.join(delimiter)]]) };
}
