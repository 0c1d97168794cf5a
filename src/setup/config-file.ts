import { randomUUID } from "node:crypto";
import { access, chmod, constants, lstat, mkdir, readFile, realpath, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { moveIntoPlace, removeFile, unlessMissing } from "../platform/files.ts";
import { isJsonObject } from "../platform/json.ts";
import { SETTING_LIST } from "../settings/registry.ts";

export const ENTRY_NAME = "targeting";

export interface Entry {
  readonly command: string;
  readonly args: readonly string[];
  readonly values: Readonly<Record<string, string>>;
  /** For each variable of a key: the reference that is written to the file instead of the key. */
  readonly references: Readonly<Record<string, string>>;
}

export type Fields = Readonly<Record<string, unknown>>;

/** Reads and edits this server's entry in a host's file. Throws an UnsafeChange if that is not safe. */
export interface ServerList {
  /** Returns the fields of this server's entry. Undefined if the file has no such entry. */
  readonly entryIn: (content: string) => Fields | undefined;
  /** Returns the fields of the new entry. Keeps old fields that it does not set, except those of a remote server. */
  readonly fieldsOf: (entry: Entry, old: Fields | undefined) => Fields;
  /** Returns the file's text with these fields in this server's entry, and with questions for its keys (`inputs`). */
  readonly withFields: (content: string, fields: Fields) => string;
  /** Returns the file's text without this server's entry and the questions that only this entry uses. */
  readonly without: (content: string) => string;
}

/** Thrown if a file cannot be changed safely. The message completes the sentence "FILE cannot be changed safely: …". */
export class UnsafeChange extends Error {}

/** Returns the name under which a host stores a key after it has asked the person for it. */
export function inputId(variable: string): string {
  return variable.toLowerCase().replaceAll("_", "-");
}

/** Returns whether a text is empty, or only a reference to a variable without a default value. */
export function isReference(text: string): boolean {
  return /^\s*(?:\$\{(?:env:|input:)?[\w-]+(?::-)?\}\s*)?$/.test(text);
}

/** Returns whether a value is real: not empty, and not just a reference to a variable. */
export function isFilledIn(text: unknown): text is string {
  return typeof text === "string" && !/^\s*(?:\$\{[^}]*\}\s*)?$/.test(text);
}

/** Returns the object with this name; empty if there is none. Throws an UnsafeChange for anything else. */
export function tableIn(parent: Fields, name: string): Fields {
  if (!Object.hasOwn(parent, name)) return {};
  const found = tableOf(parent[name]);
  if (found === undefined) throw new UnsafeChange(`${JSON.stringify(name)} is not an object`);
  return found;
}

export function tableOf(value: unknown): Fields | undefined {
  // Copies the object, so that all its properties are its own, even one named __proto__.
  return isJsonObject(value) ? { ...value } : undefined;
}

export type Launch = Pick<Entry, "command" | "args">;

/** Returns the command that downloads and starts the published package. On Windows, only a shell can start npx. */
export function publishedLaunch(platform: NodeJS.Platform): Launch {
  const args = ["-y", packageJson.name];
  return platform === "win32" ? { command: "cmd", args: ["/c", "npx", ...args] } : { command: "npx", args };
}

/** Matches a path in the cache of npx. The cache has a folder for each combination of packages. */
const IN_NPX_CACHE = /^(.*[\\/]_npx[\\/][^\\/]+)[\\/]node_modules[\\/]/;

/**
 * Returns the command with which a host starts this program. If npx downloaded this program from a registry, the host
 * uses npx as well. Otherwise, it starts the main file with this Node. Both then have full paths, because desktop hosts
 * often have another PATH than a terminal.
 */
export async function launchOf(file: string, platform: NodeJS.Platform, node: string): Promise<Launch> {
  const [, folder] = IN_NPX_CACHE.exec(file) ?? [];
  if (folder !== undefined && (await isOfRegistry(join(folder, "package.json")))) return publishedLaunch(platform);
  return { command: node, args: [join(dirname(file), "main.js")] };
}

/** Returns whether npx got the package from a registry, not from an archive, a folder or an address. */
async function isOfRegistry(manifest: string): Promise<boolean> {
  try {
    const { dependencies } = tableOf(JSON.parse(await readFile(manifest, "utf8"))) ?? {};
    const asked = tableOf(dependencies)?.[packageJson.name];
    return typeof asked === "string" && !/[:/\\]/.test(asked);
  } catch {
    // If the manifest cannot be read, the host starts the main file by its path, which needs no registry.
    return false;
  }
}

const PRIVATE = 0o600;
const OTHERS = 0o077;
/** Whether files have permissions. On Windows they have access lists, and a person's folders are already protected. */
const HAS_MODES = process.platform !== "win32";

/** Returns the file to which a link leads, or else the path. Throws an UnsafeChange if it leads to no file. */
export async function targetOf(file: string): Promise<string> {
  const target = await unlessMissing(realpath(file));
  if (target !== undefined) return target;
  if ((await unlessMissing(lstat(file))) !== undefined)
    throw new UnsafeChange("it is a link to a file that does not exist");
  return file;
}

export async function isThere(path: string): Promise<boolean> {
  return (await unlessMissing(stat(path))) !== undefined;
}

export function bytesOf(file: string): Promise<Buffer | undefined> {
  return unlessMissing(readFile(file));
}

/** Returns the text of a file with its byte order mark. Throws an UnsafeChange if it is not valid UTF-8. */
export function textOf(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UnsafeChange("it is not encoded in UTF-8");
  }
}

/** Throws if a file is read-only for this user. Replacing it would work, as only the folder must be writable. */
export async function checkWritable(file: string): Promise<void> {
  const found = await unlessMissing(stat(file));
  if (found === undefined) return;
  if ((found.mode & 0o222) === 0) throw new UnsafeChange("it is read-only");
  await access(file, constants.W_OK);
}

/** Returns the permissions of a file (such as 0o644) if others can access it. Undefined if only its owner can. */
export async function modeForOthers(file: string): Promise<number | undefined> {
  const found = HAS_MODES ? await unlessMissing(stat(file)) : undefined;
  return found !== undefined && (found.mode & OTHERS) !== 0 ? found.mode & 0o777 : undefined;
}

/** Makes a file readable only for its owner. Throws an UnsafeChange if the file system does not store permissions. */
export async function makePrivate(file: string): Promise<void> {
  await chmod(file, ((await stat(file)).mode & 0o777 & ~OTHERS) | PRIVATE);
  if ((await modeForOthers(file)) !== undefined) throw new UnsafeChange(NO_MODES);
}

const NO_MODES = "other users could read its keys, because its file system does not store permissions";

/** `done`: false if another program has changed the file. `kept`: the path of the backup; undefined for a new file. */
export type Exchange = { readonly done: false } | { readonly done: true; readonly kept: string | undefined };

interface FileContent {
  /** The content that the file must still have to be replaced; undefined: the file must not exist. */
  readonly before: Buffer | undefined;
  readonly after: string;
  /** Whether `after` contains keys, so that only the owner may be able to read the file. */
  readonly isPrivate: boolean;
}

/**
 * Replaces the content of a file in one step, so that no host reads a half-written file. Before that, writes a backup
 * into the same folder. Only the owner can read it. Throws an UnsafeChange if other users could read the keys.
 */
export async function exchange(file: string, { before, after, isPrivate }: FileContent): Promise<Exchange> {
  await mkdir(dirname(file), { recursive: true });
  const found = (await unlessMissing(stat(file)))?.mode ?? PRIVATE;
  const mode = found & 0o777 & ~(isPrivate ? OTHERS : 0);
  const fresh = `${file}.${randomUUID()}.new`;
  const kept = before && `${file}.${new Date().toISOString().replaceAll(/[:.]/g, "-")}.backup`;
  const made: string[] = [];
  const make = async (path: string, content: string | Buffer, itsMode: number): Promise<void> => {
    await writeFile(path, "", { mode: PRIVATE, flag: "wx" });
    made.push(path);
    await chmod(path, itsMode);
    if (isPrivate && (await modeForOthers(path)) !== undefined) throw new UnsafeChange(NO_MODES);
    await writeFile(path, content);
  };
  const unmake = () => Promise.all(made.map((path) => removeFile(path)));
  try {
    await make(fresh, after, mode);
    if (before !== undefined && kept !== undefined) await make(kept, before, PRIVATE);
    // Checks that no host has changed the file. A change between this line and the replacement would be lost.
    const present = await bytesOf(file);
    if (before === undefined ? present !== undefined : !present?.equals(before)) {
      await unmake();
      return { done: false };
    }
    await moveIntoPlace(fresh, file);
    return { done: true, kept };
  } catch (thrown) {
    await unmake();
    throw thrown;
  }
}

export function isFileError(thrown: unknown): thrown is Error {
  return thrown instanceof Error && "code" in thrown && "syscall" in thrown;
}

const HIDDEN = "[redacted]";
const FROM_ENVIRONMENT = "[redacted: the value in your environment]";

/** Fields of an entry that tell how a server is started. They never contain keys. */
const PLAIN_FIELDS = ["command", "type", "cwd"];

/** Returns the change of this server's entry as lines without values that may be keys. `args` are shown as they are. */
export function linesChanged(
  list: ServerList,
  { old, fresh }: { readonly old: Fields | undefined; readonly fresh?: Fields },
  args: readonly string[],
): string {
  const linesOf = (fields: Fields | undefined): readonly string[] => {
    const text = fields && list.withFields("", shown(fields, args, old));
    return text?.trimEnd().split("\n") ?? [];
  };
  const [before, after] = [linesOf(old), linesOf(fresh)];
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return [
    ...before.slice(start, before.length - end).map((line) => `- ${line}`),
    ...after.slice(start, after.length - end).map((line) => `+ ${line}`),
  ].join("\n");
}

/** Returns the fields of an entry without values that may be keys. `old` are the fields that are replaced. */
function shown(fields: Fields, args: readonly string[], old: Fields | undefined): Fields {
  const oldEnv = tableOf(old?.env) ?? {};
  const one = (name: string, value: unknown): unknown => {
    const table = tableOf(value);
    if (name === "env" && table !== undefined)
      return mapped(table, (variable, text) => shownIn(variable, text, oldEnv));
    if (name === "headers" && table !== undefined) return mapped(table, () => HIDDEN);
    if (name === "args" && Array.isArray(value)) return shownArguments(value, args);
    if (typeof value === "number" || typeof value === "boolean") return value;
    return PLAIN_FIELDS.includes(name) || name === "env_vars" ? value : HIDDEN;
  };
  return mapped(fields, one);
}

function mapped(fields: Fields, change: (name: string, value: unknown) => unknown): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, change(name, value)]));
}

function shownIn(variable: string, value: unknown, old: Fields): unknown {
  if (typeof value !== "string") return HIDDEN;
  const setting = SETTING_LIST.find((one) => one.variable === variable);
  if (setting?.secret === false && setting.form.read(value) !== undefined) return value;
  if (isReference(value)) return value;
  return setting !== undefined && old[variable] !== value ? FROM_ENVIRONMENT : HIDDEN;
}

/** Hides arguments that may be keys. Their flags stay visible, so that people see what would be removed. */
function shownArguments(given: readonly unknown[], known: readonly string[]): readonly unknown[] {
  const flags = SETTING_LIST.flatMap(({ flag }) => (flag === undefined ? [] : [`--${flag}`]));
  return given.map((one, index) => {
    if (typeof one !== "string") return HIDDEN;
    const before = given[index - 1];
    const isSetting =
      flags.some((flag) => one.startsWith(`${flag}=`)) || (typeof before === "string" && flags.includes(before));
    return isSetting || known.includes(one) || /^--?[a-z][a-z-]*$/.test(one) ? one : HIDDEN;
  });
}
