import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };

/** The name under which every host lists the server. */
export const ENTRY_NAME = "targeting";

/** How a host starts the server. */
export interface Entry {
  readonly command: string;
  readonly args: readonly string[];
  /** The values of environment variables that the file contains. */
  readonly values: Readonly<Record<string, string>>;
  /** The environment variables whose values the file only refers to, with the reference to each. */
  readonly references: Readonly<Record<string, string>>;
}

/** An object of JSON, or a table of TOML. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * Edits a host's list of servers in the content of its configuration file. Every function throws an UnsafeChange if the
 * file cannot be changed safely.
 */
export interface ServerList {
  /** Returns the fields of this server's entry; undefined if the file has no entry. */
  readonly entryIn: (content: string) => Fields | undefined;
  /** Returns the fields of the new entry. Fields of an old entry that are not set now are kept. */
  readonly fieldsOf: (entry: Entry, old: Fields | undefined) => Fields;
  /** Returns the content of the file with this entry. Everything else stays verbatim. */
  readonly withFields: (content: string, fields: Fields) => string;
  /** Returns the content of the file without this server's entry. Everything else stays verbatim. */
  readonly without: (content: string) => string;
}

/** Thrown if a file cannot be changed safely. The message completes the sentence "FILE cannot be changed safely: …". */
export class UnsafeChange extends Error {}

/** Returns the name under which a host that asks for keys stores the answer. */
export function inputId(variable: string): string {
  return variable.toLowerCase().replaceAll("_", "-");
}

/** Returns whether a text is only a reference to a value. References with a default value do not count. */
export function isReference(text: string): boolean {
  return /^\s*(?:\$\{(?:env:|input:)?[\w-]+(?::-)?\}\s*)?$/.test(text);
}

/** Returns whether a field has a value of its own, that is, neither an empty text nor a reference. */
export function isFilledIn(text: unknown): text is string {
  return typeof text === "string" && !/^\s*(?:\$\{[^}]*\}\s*)?$/.test(text);
}

/**
 * Returns the table with this name; empty if it does not exist. Throws an UnsafeChange if the name has another kind of
 * value.
 */
export function tableIn(parent: Fields, name: string): Fields {
  if (!Object.hasOwn(parent, name)) return {};
  const found = tableOf(parent[name]);
  if (found === undefined) throw new UnsafeChange(`${JSON.stringify(name)} is not an object`);
  return found;
}

export function tableOf(value: unknown): Fields | undefined {
  // A copy has all properties as its own, including one named __proto__.
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

export type Launch = Pick<Entry, "command" | "args">;

/**
 * Returns the command that downloads and starts the published package. On Windows, npx is a script that only a shell
 * can start.
 */
export function publishedLaunch(platform: NodeJS.Platform): Launch {
  const args = ["-y", packageJson.name];
  return platform === "win32" ? { command: "cmd", args: ["/c", "npx", ...args] } : { command: "npx", args };
}

/** Matches a path in the npx cache. npx has one folder there for each command line. */
const IN_NPX_CACHE = /^(.*[\\/]_npx[\\/][^\\/]+)[\\/]node_modules[\\/]/;

/**
 * Returns how hosts can start this program. If npx downloaded it from a registry, npx starts it. Otherwise (in a clone,
 * or installed globally or from an archive), this Node starts its main file. Node has its full path, because desktop
 * hosts often have another PATH than a terminal.
 */
export async function launchOf(file: string, { platform, node }: LaunchOptions): Promise<Launch> {
  const [, folder] = IN_NPX_CACHE.exec(file) ?? [];
  if (folder !== undefined && (await isOfRegistry(join(folder, "package.json")))) return publishedLaunch(platform);
  return { command: node, args: [join(dirname(file), "main.js")] };
}

interface LaunchOptions {
  readonly platform: NodeJS.Platform;
  /** The path of the running Node. */
  readonly node: string;
}

/** Returns whether npx downloaded a version of the package from a registry, not an archive, a folder or an address. */
async function isOfRegistry(manifest: string): Promise<boolean> {
  try {
    const { dependencies } = tableOf(JSON.parse(await readFile(manifest, "utf8"))) ?? {};
    const asked = tableOf(dependencies)?.[packageJson.name];
    return typeof asked === "string" && !/[:/\\]/.test(asked);
  } catch {
    // The cache has an unknown form. The caller then uses the path of the main file, which always works.
    return false;
  }
}
