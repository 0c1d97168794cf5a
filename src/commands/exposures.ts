import { statSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../observe/log.ts";
import { SEAL_KEY_FILE } from "../runs/files/side-stores.ts";
import { NO_TRACES } from "../runtime/observers.ts";
import { SETTINGS } from "../settings/registry.ts";
import { type Settings, type SettingsInput, settingText } from "../settings/settings.ts";
import { isPlain, type Setting } from "../settings/value-types.ts";
import type { Check } from "./doctor-machine.ts";

type Exposure = Check & { readonly state: "note" | "problem"; readonly remedy: string };

/** Checks the permissions of files with secrets, and whether addresses that receive keys are encrypted. */
export function exposures(settings: Settings, input: SettingsInput): readonly Exposure[] {
  return [...openFiles(settings), ...plainAddresses(settings, input)];
}

/** Logs what is wrong with the settings. `problem` is the reason why there are no traces. */
export function logStartWarnings(log: Log, settings: Settings, input: SettingsInput, problem: unknown): void {
  for (const variable of settings.unknownVariables)
    log.warn("this variable is not a setting; check its spelling", { variable });
  if (problem !== undefined) log.warn(NO_TRACES, { error: problem });
  for (const { found, remedy } of exposures(settings, input)) log.warn(found, { remedy });
}

/**
 * Checks the permissions of files and folders with secrets. Windows has access lists instead of modes, so nothing is
 * checked there.
 */
function openFiles({ stateDir, sealKey, http }: Settings): readonly Exposure[] {
  if (process.platform === "win32") return [];
  const sealFile = sealKey === undefined ? join(stateDir, SEAL_KEY_FILE) : undefined;
  return [
    // The files in the folder have their own permissions, but an open folder shows their names.
    ...openOne("state folder", stateDir, { right: "700", why: "it contains runs", ifForAll: "note" }),
    ...openOne("seal key", sealFile, { right: "600", why: "a program that reads it can confirm deletions" }),
    ...openOne("access file", http.accessFile, { right: "600", why: "it contains keys and tokens" }),
  ];
}

interface OwnPath {
  readonly right: string;
  readonly why: string;
  readonly ifForAll?: Exposure["state"];
}

function openOne(
  about: string,
  path: string | undefined,
  { right, why, ifForAll = "problem" }: OwnPath,
): readonly Exposure[] {
  const mode = path === undefined ? 0 : modeOf(path);
  const isForAll = (mode & 0o007) !== 0;
  if (!isForAll && (mode & 0o070) === 0) return [];
  const who = isForAll ? "every user of this machine" : "its group";
  const found = `${path} is open to ${who} (mode ${mode.toString(8)}), and ${why}`;
  // Access for the group may be intended, as on a mounted volume, so it is only a note. Access for all users is never
  // intended.
  return [{ about, state: isForAll ? ifForAll : "note", found, remedy: `chmod ${right} ${path}` }];
}

/** Returns the permissions of a file. 0 if this process cannot access it, because others then cannot read it either. */
function modeOf(path: string): number {
  try {
    return (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o777;
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown) return 0;
    throw thrown;
  }
}

const SENDERS: readonly (readonly [Setting<string>, string])[] = [
  [SETTINGS.targetingApiUrl, "the key of the management API is sent"],
  [SETTINGS.eventApiUrl, "the key of the event API is sent"],
  [SETTINGS.publicUrl, "callers send their tokens and keys"],
];

/** Checks whether keys are sent unencrypted. Keys of a sandbox are public, so they do not matter. */
function plainAddresses({ environment }: Settings, input: SettingsInput): readonly Exposure[] {
  if (environment.kind === "sandbox") return [];
  return SENDERS.flatMap(([setting, what]): readonly Exposure[] => {
    const address = settingText(setting, input)?.text;
    if (address === undefined || !isPlain(address)) return [];
    return [
      {
        about: "addresses",
        state: "note",
        found: `${setting.variable} is ${address}: ${what} unencrypted over http`,
        remedy: `Set ${setting.variable} to an https:// address.`,
      },
    ];
  });
}
