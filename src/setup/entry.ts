import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };

/** The name of the server in every configuration. */
export const ENTRY_NAME = "targeting";

/** How a host starts the server. */
export interface Entry {
  readonly command: string;
  readonly args: readonly string[];
  /** Values by variable. */
  readonly values: Readonly<Record<string, string>>;
  /** The variables that are set in the person's environment, and the reference to each in the file. */
  readonly references: Readonly<Record<string, string>>;
}

/** A table of names and values, of a file or a part of it. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * How the configuration of a host stores its servers. Every function throws an UnsafeChange if the file cannot be
 * changed safely.
 */
export interface ServerList {
  /** Returns the fields of this server's entry; undefined if the file has no entry. */
  readonly entryIn: (content: string) => Fields | undefined;
  /** Returns the fields that an entry gets; those of an old entry that are not named now stay. */
  readonly fieldsOf: (entry: Entry, old: Fields | undefined) => Fields;
  /** Returns the content of the file with these fields as this server's entry. Everything else stays verbatim. */
  readonly withFields: (content: string, fields: Fields) => string;
  /** Returns the content of the file without this server's entry. Everything else stays verbatim. */
  readonly without: (content: string) => string;
}

/** A file that is not changed; the message completes "FILE cannot be changed safely: …". */
export class UnsafeChange extends Error {}

/** Returns the name under which a host that asks for a key stores the answer. */
export function inputId(variable: string): string {
  return variable.toLowerCase().replaceAll("_", "-");
}

/** Returns whether a text only refers to a value stored elsewhere. A reference with a default value does not count. */
export function isReference(text: string): boolean {
  return /^\s*(?:\$\{(?:env:|input:)?[\w-]+(?::-)?\}\s*)?$/.test(text);
}

/** Returns whether a text of a file is a value: an empty text or a reference is none. */
export function isFilledIn(text: unknown): text is string {
  return typeof text === "string" && !/^\s*(?:\$\{[^}]*\}\s*)?$/.test(text);
}

/** The table with this name; empty if there is none. Throws an UnsafeChange if the name has another type of value. */
export function tableIn(parent: Fields, name: string): Fields {
  if (!Object.hasOwn(parent, name)) return {};
  const found = tableOf(parent[name]);
  if (found === undefined) throw new UnsafeChange(`${JSON.stringify(name)} is not an object`);
  return found;
}

/** Returns a value as a table; undefined if it is not one. */
export function tableOf(value: unknown): Fields | undefined {
  // In a copy, all properties are own properties, including one named __proto__.
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

/** How a host starts the command. */
export type Launch = Pick<Entry, "command" | "args">;

/** Returns the command that fetches the published package. On Windows npx is a script, which only a shell starts. */
export function publishedLaunch(platform: NodeJS.Platform): Launch {
  const args = ["-y", packageJson.name];
  return platform === "win32" ? { command: "cmd", args: ["/c", "npx", ...args] } : { command: "npx", args };
}

/** The folder in which npx stores what it downloaded: one for each command line. */
const IN_NPX_CACHE = /^(.*[\\/]_npx[\\/][^\\/]+)[\\/]node_modules[\\/]/;

/**
 * Returns how to start this program again. If npx downloaded it from a registry, npx starts it. Otherwise this Node
 * starts its main file: in a clone, or after an installation from an archive or a global one. Node is given with its
 * full path, because hosts on a desktop often have another PATH than a terminal.
 */
export async function launchOf(file: string, { platform, node }: LaunchOptions): Promise<Launch> {
  const [, folder] = IN_NPX_CACHE.exec(file) ?? [];
  if (folder !== undefined && (await isOfRegistry(join(folder, "package.json")))) return publishedLaunch(platform);
  return { command: node, args: [join(dirname(file), "main.js")] };
}

interface LaunchOptions {
  readonly platform: NodeJS.Platform;
  /** The path of the Node that runs. */
  readonly node: string;
}

/** Returns whether npx was called with a version of the package, and not with an archive, a folder or an address. */
async function isOfRegistry(manifest: string): Promise<boolean> {
  try {
    const { dependencies } = tableOf(JSON.parse(await readFile(manifest, "utf8"))) ?? {};
    const asked = tableOf(dependencies)?.[packageJson.name];
    return typeof asked === "string" && !/[:/\\]/.test(asked);
  } catch {
    // A cache of another form: the path works in any case.
    return false;
  }
}
