import { statSync } from "node:fs";
import { join } from "node:path";
import { SEAL_KEY_FILE } from "../server/seal-key.ts";
import { givenText } from "../settings/given.ts";
import { isPlain } from "../settings/proxy.ts";
import { SETTINGS, type Setting } from "../settings/registry.ts";
import type { Settings, SettingsInput } from "../settings/settings.ts";
import type { Check } from "./doctor-machine.ts";

/** What others of this machine, or on the way to a service, could read: a check that is no "ok", with its remedy. */
export type Exposure = Check & { readonly state: "note" | "problem"; readonly remedy: string };

/** Looks at the files that hold secrets, and at the addresses to which keys go. Reads no content and sends nothing. */
export function exposures(settings: Settings, input: SettingsInput): readonly Exposure[] {
  return [...openFiles(settings), ...plainAddresses(settings, input)];
}

/** Secrets that lie in files, with the permissions that they should have. Windows keeps access lists instead. */
function openFiles({ stateDir, sealKey, http }: Settings): readonly Exposure[] {
  if (process.platform === "win32") return [];
  const sealFile = join(stateDir, SEAL_KEY_FILE);
  return [
    ...openOne("state folder", stateDir, "700", "it holds runs, with names and Context IDs"),
    ...(sealKey === undefined ? openOne("seal key", sealFile, "600", "whoever has it can confirm deletions") : []),
    ...(http.accessFile === undefined
      ? []
      : openOne("access file", http.accessFile, "600", "it holds keys and tokens")),
  ];
}

function openOne(about: string, path: string, right: string, why: string): readonly Exposure[] {
  const mode = modeOf(path);
  const isForAll = (mode & 0o007) !== 0;
  if (!isForAll && (mode & 0o070) === 0) return [];
  const who = isForAll ? "every user of this machine" : "its group";
  return [
    {
      about,
      // A group may be meant, as that of a mounted volume; everybody never is.
      state: isForAll ? "problem" : "note",
      found: `${path} is open to ${who} (mode ${mode.toString(8)}), and ${why}`,
      remedy: `chmod ${right} ${path}`,
    },
  ];
}

/** The permissions of a file; none where it is not there, or cannot be looked at: then it tells nothing either. */
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

/** Addresses of live services to which keys go without encryption. A sandbox is sent no key but its own public ones. */
function plainAddresses({ environment }: Settings, input: SettingsInput): readonly Exposure[] {
  if (environment.kind === "sandbox") return [];
  return SENDERS.flatMap(([setting, what]): readonly Exposure[] => {
    const address = givenText(setting, input)?.text;
    if (address === undefined || !isPlain(address)) return [];
    return [
      {
        about: "addresses",
        state: "note",
        found: `${setting.variable} is ${address}: ${what} over plain http, readable on the way`,
        remedy: `Let ${setting.variable} begin with https://.`,
      },
    ];
  });
}
