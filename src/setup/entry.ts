import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };

export const ENTRY_NAME = "targeting";

export interface Entry {
  readonly command: string;
  readonly args: readonly string[];
  readonly values: Readonly<Record<string, string>>;
  /** By environment variable: the reference in the file. The file does not contain the value. */
  readonly references: Readonly<Record<string, string>>;
}

export type Fields = Readonly<Record<string, unknown>>;

/** Edits the list of servers in a host's configuration file. Throws an UnsafeChange if that is not safe. */
export interface ServerList {
  /** Returns the fields of this server's entry. Undefined if the file has no such entry. */
  readonly entryIn: (content: string) => Fields | undefined;
  /** Returns the fields of a new entry. Fields of the old entry that are not set now stay. */
  readonly fieldsOf: (entry: Entry, old: Fields | undefined) => Fields;
  /** Writes the fields of this server's entry. Everything else in the file stays verbatim. */
  readonly withFields: (content: string, fields: Fields) => string;
  /** Removes this server's entry. Everything else in the file stays verbatim. */
  readonly without: (content: string) => string;
}

/** A file cannot be changed safely. The message completes the sentence "FILE cannot be changed safely: …". */
export class UnsafeChange extends Error {}

/** Returns the name under which a host stores a key that it has asked the person for. */
export function inputId(variable: string): string {
  return variable.toLowerCase().replaceAll("_", "-");
}

/** Returns whether a text is a reference to a variable. References with a default value do not count. */
export function isReference(text: string): boolean {
  return /^\s*(?:\$\{(?:env:|input:)?[\w-]+(?::-)?\}\s*)?$/.test(text);
}

/** Returns whether a value is filled in. An empty text and a reference are not. */
export function isFilledIn(text: unknown): text is string {
  return typeof text === "string" && !/^\s*(?:\$\{[^}]*\}\s*)?$/.test(text);
}

/**
 * Returns the table with a name. Empty if there is none. Throws an UnsafeChange if the name has another kind of value.
 */
export function tableIn(parent: Fields, name: string): Fields {
  if (!Object.hasOwn(parent, name)) return {};
  const found = tableOf(parent[name]);
  if (found === undefined) throw new UnsafeChange(`${JSON.stringify(name)} is not an object`);
  return found;
}

export function tableOf(value: unknown): Fields | undefined {
  // A copy has all properties as its own, even one named __proto__.
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

export type Launch = Pick<Entry, "command" | "args">;

/** Returns the command that downloads and starts the published package. On Windows, only a shell can start npx. */
export function publishedLaunch(platform: NodeJS.Platform): Launch {
  const args = ["-y", packageJson.name];
  return platform === "win32" ? { command: "cmd", args: ["/c", "npx", ...args] } : { command: "npx", args };
}

/** Matches a path in the cache of npx, which has one folder for each command line. */
const IN_NPX_CACHE = /^(.*[\\/]_npx[\\/][^\\/]+)[\\/]node_modules[\\/]/;

/**
 * Returns how a host starts this program. If npx downloaded it from a registry, npx starts it. Otherwise, this Node
 * starts its main file. Desktop hosts often have another PATH than a terminal, so Node has its full path.
 */
export async function launchOf(file: string, { platform, node }: LaunchOptions): Promise<Launch> {
  const [, folder] = IN_NPX_CACHE.exec(file) ?? [];
  if (folder !== undefined && (await isOfRegistry(join(folder, "package.json")))) return publishedLaunch(platform);
  return { command: node, args: [join(dirname(file), "main.js")] };
}

interface LaunchOptions {
  readonly platform: NodeJS.Platform;
  readonly node: string;
}

/** Returns whether npx downloaded the package from a registry, and not from an archive, a folder or an address. */
async function isOfRegistry(manifest: string): Promise<boolean> {
  try {
    const { dependencies } = tableOf(JSON.parse(await readFile(manifest, "utf8"))) ?? {};
    const asked = tableOf(dependencies)?.[packageJson.name];
    return typeof asked === "string" && !/[:/\\]/.test(asked);
  } catch {
    // If the manifest cannot be read, the main file is started by its path, which always works.
    return false;
  }
}
