/** What the server is called in every configuration. */
export const ENTRY_NAME = "targeting";

/** How a host starts the server. */
export interface Entry {
  readonly command: string;
  readonly args: readonly string[];
  /** Values by variable. */
  readonly values: Readonly<Record<string, string>>;
  /** Variables whose values the person's environment has, and what stands for each in the file. */
  readonly references: Readonly<Record<string, string>>;
}

/** A table of names and values, of a file or a part of it. */
export type Fields = Readonly<Record<string, unknown>>;

/** How a host keeps its list of servers. Everything throws an UnsafeChange where the file cannot be changed safely. */
export interface ServerList {
  /** The fields of this server's entry; undefined where the file has none. */
  readonly entryIn: (content: string) => Fields | undefined;
  /** The fields that an entry gets; those of an old entry that are not named now stay. */
  readonly fieldsOf: (entry: Entry, old: Fields | undefined) => Fields;
  /** The content of the file with these fields as this server's entry; all else stays to the letter. */
  readonly withFields: (content: string, fields: Fields) => string;
  /** The content of the file without this server's entry; all else stays to the letter. */
  readonly without: (content: string) => string;
}

/** A file that is not changed; the message completes "FILE cannot be changed safely: …". */
export class UnsafeChange extends Error {}

/** What a host that asks for a key calls the answer. */
export function inputId(variable: string): string {
  return variable.toLowerCase().replaceAll("_", "-");
}

/** Whether a text only refers to a value in another place; a reference with a default value does not count. */
export function isReference(text: string): boolean {
  return /^\s*(?:\$\{(?:env:|input:)?[\w-]+(?::-)?\}\s*)?$/.test(text);
}

/** Whether a text of a file is a value: an empty text or a reference is none. */
export function isFilledIn(text: unknown): text is string {
  return typeof text === "string" && !/^\s*(?:\$\{[^}]*\}\s*)?$/.test(text);
}

/** The table under a name; empty where there is none. Throws an UnsafeChange where something else stands there. */
export function tableIn(parent: Fields, name: string): Fields {
  if (!Object.hasOwn(parent, name)) return {};
  const found = tableOf(parent[name]);
  if (found === undefined) throw new UnsafeChange(`what stands under ${JSON.stringify(name)} is no object`);
  return found;
}

/** A value as a table; undefined where it is none. */
export function tableOf(value: unknown): Fields | undefined {
  // A copy has every property of its own, one named __proto__ too.
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}
