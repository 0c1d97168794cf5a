import { stat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { SETTINGS } from "../settings/registry.ts";
import { type SettingsInput, settingText } from "../settings/settings.ts";
import { type Entry, type Fields, isFilledIn, tableOf } from "./entry.ts";
import { HOSTS, type Host, programFound } from "./hosts.ts";
import { commandLine, doctorLine } from "./settings.ts";

export interface Task {
  readonly host: Host;
  readonly file: string;
  readonly entry: Entry;
  readonly input: SettingsInput;
  readonly found: boolean;
}

/**
 * Returns what is still missing, a check, and a first question to the agent. `keys` were just written into the file.
 */
export async function nextSteps(
  { host, file, entry, input, found }: Task,
  fields: Fields,
  keys: Fields,
): Promise<readonly string[]> {
  const env = tableOf(fields.env) ?? {};
  const names = Object.keys(entry.references);
  const referred = names.filter((variable) => !isFilledIn(env[variable]));
  const kept = names.filter((variable) => isFilledIn(env[variable]) && !Object.hasOwn(keys, variable));
  const added = Object.keys(keys);
  const own = await ownCommand(host, entry, input);
  const withKeys = names.length === 0 ? "" : ` (with ${names.join(" and ")} in the environment)`;
  return [
    ...(found ? [] : [`${host.title} was not found on this machine. Check that it is installed for this account.`]),
    ...(added.length > 0 ? [`${file} now contains ${added.join(" and ")} as plain text.`] : []),
    ...(kept.length > 0 ? [`${file} still contains ${kept.join(" and ")}, as before.`] : []),
    ...(referred.length > 0 ? [missing(host, file, referred, input)] : []),
    ...(host.trust === undefined ? [] : [host.trust]),
    ...(hasNoFolder(fields) ? [folderLine(wordOf(host), await usualFolders(input))] : []),
    ...(own === undefined ? [] : [`Alternatively, this command of ${host.title} writes the same entry:\n${own}`]),
    `Restart ${host.title}. To check the same settings${withKeys}:\n${doctorLine(entry, fields, input.platform)}`,
    ...firstQuestion(env, names),
  ];
}

function wordOf(host: Host): string {
  return Object.keys(HOSTS).find((word) => HOSTS[word] === host) ?? "HOST";
}

/** Returns the host's own command. Undefined if it is not installed or cannot add the entry. */
async function ownCommand({ own }: Host, entry: Entry, input: SettingsInput): Promise<string | undefined> {
  const args = own?.add(entry);
  if (own === undefined || args === undefined || !(await programFound(own.program, input))) return undefined;
  return commandLine([own.program, ...args], input.platform);
}

function missing(host: Host, file: string, referred: readonly string[], { environment }: SettingsInput): string {
  const keys = referred.join(" and ");
  const absent = referred.filter((variable) => (environment[variable] ?? "").trim() === "");
  const sentence = WHERE_KEYS_COME_FROM[host.keysFrom](keys, host.title, file);
  if (host.keysFrom !== "environment" || absent.length === 0) return sentence;
  return `${sentence} Not set here: ${absent.join(" and ")}. Until it is set there, every call reports that it is missing.`;
}

const WHERE_KEYS_COME_FROM = {
  environment: (keys, host) => `${host} takes ${keys} from the environment that it is started in.`,
  question: (keys, host) => `${host} asks for ${keys} when it first starts the server, and keeps the answer.`,
  file: (keys, host, file) => `Now write ${keys} into ${file}: ${host} reads keys from this file.`,
} as const satisfies Record<Host["keysFrom"], (keys: string, host: string, file: string) => string>;

/** Returns a first question to the agent. It contains a targeting's ID, because the service cannot list targetings. */
function firstQuestion(env: Fields, references: readonly string[]): readonly string[] {
  const isLive = (address: string, key: string): boolean =>
    isFilledIn(env[address]) && (isFilledIn(env[key]) || references.includes(key));
  if (env.TARGETING_MCP_MODE !== "sandbox" && isLive("TARGETING_API_URL", "TARGETING_API_KEY")) {
    return ['Then ask: "What is in the targeting 01…?", with an ID from the console.'];
  }
  if (env.TARGETING_MCP_MODE !== "sandbox" && isLive("EVENT_API_URL", "EVENT_APP_KEY")) {
    return ['Then ask: "Which events can I send, and what does a purchase need?"'];
  }
  if (isFilledIn(env.TARGETING_MCP_SANDBOX_URL) || isFilledIn(env.TARGETING_MCP_MODE)) {
    return ['It uses a sandbox. Then ask: "Create a targeting News with the options Sports and Weather."'];
  }
  return [
    "You can try it now: it uses a sandbox with the data of a small shop. For the real service, run " +
      "this command again with --targeting-api-url and --event-api-url.",
    'Then ask: "Which targetings are there, and what is in them?"',
  ];
}

const { variable, flag } = SETTINGS.allowedDirs;

function hasNoFolder(fields: Fields): boolean {
  return !isFilledIn(tableOf(fields.env)?.[variable]);
}

/** Asks for folders to read and save files in, unless the settings or the entry already name some. */
export async function withFolders(
  input: SettingsInput,
  old: Fields | undefined,
  ask: ((question: string) => Promise<boolean>) | undefined,
): Promise<SettingsInput> {
  const isSaid = settingText(SETTINGS.allowedDirs, input) !== undefined || (old !== undefined && !hasNoFolder(old));
  if (isSaid || ask === undefined || flag === undefined) return input;
  const allowed: string[] = [];
  for (const folder of await usualFolders(input)) {
    if (await ask(`May files in ${folder} be read, and new ones be saved there?`)) allowed.push(folder);
  }
  if (allowed.length === 0) return input;
  return { ...input, flags: new Map([...input.flags, [flag, allowed.join(delimiter)]]) };
}

async function usualFolders({ home, environment }: SettingsInput): Promise<readonly string[]> {
  const named = [environment.XDG_DOWNLOAD_DIR, environment.XDG_DOCUMENTS_DIR];
  const usual = ["Downloads", "Documents"].map((name, at) => named[at] || join(home, name));
  const found = await Promise.all(usual.map(async (folder) => ((await isFolder(folder)) ? [folder] : [])));
  return found.flat();
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

function folderLine(word: string, folders: readonly string[]): string {
  const shown = folders.length === 0 ? "FOLDER" : folders.join(delimiter);
  return `No folder is allowed, so files cannot be read or saved. To allow some: targeting-mcp setup ${word} --allowed-dirs="${shown}"`;
}
