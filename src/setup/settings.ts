import { delimiter } from "node:path";
import { routesOf, settingsFrom } from "../runtime/settings-input.ts";
import { SETTING_LIST, SETTINGS } from "../settings/registry.ts";
import { type Platform, type SettingsInput, settingText } from "../settings/settings.ts";
import { folders, path, type Setting, seed } from "../settings/value-types.ts";
import {
  bytesOf,
  type Entry,
  type Fields,
  isFileError,
  isFilledIn,
  isReference,
  type Launch,
  modeForOthers,
  tableIn,
  tableOf,
  textOf,
  UnsafeChange,
} from "./config-file.ts";

import { HOSTS, type Host } from "./hosts.ts";

/** Returns this server's entry for a host, from the present settings, with references instead of keys. */
export function entryOf(host: Host, input: SettingsInput, launch: Launch): Entry {
  const values: Record<string, string> = {};
  const references: Record<string, string> = {};
  for (const setting of SETTING_LIST) {
    const { variable, secret, anyCase } = setting;
    const given = settingText(setting, input);
    if (anyCase === true) continue;
    if (!secret && given !== undefined) values[variable] = writtenText(setting, given.text);
    if (secret && (given !== undefined || isNeeded(variable, input))) references[variable] = host.reference(variable);
  }
  return { ...launch, values, references };
}

/** Returns the fields of an entry without the variables whose flag was given without a value, such as `--confirm=`. */
export function withoutEmptied(fields: Fields, { flags }: Pick<SettingsInput, "flags">): Fields {
  const emptied = SETTING_LIST.flatMap(({ flag, variable }) =>
    flag !== undefined && flags.get(flag)?.trim() === "" ? [variable] : [],
  );
  if (emptied.length === 0) return fields;
  const left = Object.entries(tableIn(fields, "env")).filter(([name]) => !emptied.includes(name));
  return { ...fields, env: Object.fromEntries(left) };
}

/** Returns the text of a setting with absolute paths, because a host may start the server in another folder. */
function writtenText({ form }: Setting<unknown>, text: string): string {
  if (form === path) return path.read(text) ?? text;
  if (form === seed) {
    const choice = seed.read(text);
    return typeof choice === "object" ? choice.file : text;
  }
  return form === folders ? (folders.read(text) ?? []).join(delimiter) : text;
}

/** Returns whether a key is needed: if the address of its API is set and the mode is not sandbox. */
function isNeeded(variable: string, input: SettingsInput): boolean {
  if (settingText(SETTINGS.mode, input)?.text === "sandbox") return false;
  const address = { TARGETING_API_KEY: SETTINGS.targetingApiUrl, EVENT_APP_KEY: SETTINGS.eventApiUrl };
  if (variable !== "TARGETING_API_KEY" && variable !== "EVENT_APP_KEY") return false;
  return settingText(address[variable], input) !== undefined;
}

export function givenKeys(input: SettingsInput): ReadonlyMap<string, string> {
  const keys = new Map<string, string>();
  for (const setting of SETTING_LIST) {
    const given = setting.secret && setting.anyCase !== true ? settingText(setting, input) : undefined;
    if (given !== undefined) keys.set(setting.variable, given.text);
  }
  return keys;
}

export function keysHeld(fields: Fields): readonly string[] {
  const env = tableOf(fields.env) ?? {};
  return SETTING_LIST.flatMap(({ variable, secret }) => {
    const value = env[variable];
    return secret && typeof value === "string" && !isReference(value) ? [variable] : [];
  });
}

/**
 * Replace secrets that only the host knows, to check the other settings: a key that is long enough for every kind of
 * key, and the address of a database.
 */
const PLACEHOLDERS = ["A".repeat(44), "postgres://localhost/store"];

/** Throws a SettingsError if the server would not start with these fields, or calls would report one as invalid. */
export function checkAsServer(fields: Fields, { references }: Entry, input: SettingsInput): void {
  const keys = givenKeys(input);
  const placeholders = new Map(
    SETTING_LIST.filter(({ secret }) => secret).map(({ variable, form }) => [
      variable,
      PLACEHOLDERS.find((text) => form.read(text) !== undefined),
    ]),
  );
  const handedOn: readonly unknown[] = Array.isArray(fields.env_vars) ? fields.env_vars : [];
  const named = handedOn.flatMap((name) => (typeof name === "string" ? [[name, ""]] : []));
  const env = { ...references, ...Object.fromEntries(named), ...tableOf(fields.env) };
  const environment = Object.fromEntries(
    Object.entries(env).flatMap(([variable, value]) => {
      if (isFilledIn(value)) return [[variable, value]];
      const secret = keys.get(variable) ?? placeholders.get(variable);
      return secret === undefined ? [] : [[variable, secret]];
    }),
  );
  routesOf(settingsFrom({ ...input, flags: new Map(), environment }));
}

/** Returns a `doctor` command with the program and settings (except keys) with which the host starts the server. */
export function doctorLine({ command, args }: Entry, fields: Fields, platform: NodeJS.Platform): string {
  const env = tableOf(fields.env) ?? {};
  const flags = SETTING_LIST.flatMap(({ variable, flag, secret }) => {
    const value = env[variable];
    return secret || flag === undefined || !isFilledIn(value) ? [] : [`--${flag}=${value}`];
  });
  return commandLine([command, ...args, "doctor", ...flags], platform);
}

export function commandLine(words: readonly string[], platform: NodeJS.Platform): string {
  return words.map((word) => quoted(word, platform)).join(" ");
}

function quoted(word: string, platform: NodeJS.Platform): string {
  if (/^[\w@%+=:,./-]+$/.test(word) || (platform === "win32" && /^[\w+=:./\\-]+$/.test(word))) return word;
  return platform === "win32" ? `"${word}"` : `'${word.replaceAll("'", "'\\''")}'`;
}

type OpenFile = Readonly<Record<"title" | "found" | "remedy", string>>;

/** Returns configuration files that contain keys of this server and that other users can read. */
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
      // A file that cannot be read is skipped here: `setup` reports it.
      if (!(thrown instanceof UnsafeChange || isFileError(thrown))) throw thrown;
    }
  }
  return found;
}

export function openWords(file: string, held: readonly string[], mode: number): string {
  return `${file} contains ${held.join(" and ")}, and other users can read it (mode ${mode.toString(8)})`;
}
