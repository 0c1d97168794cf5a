import { nameProblemWords, thousands } from "../../platform/text.ts";
import { LIMITS } from "../../spec/limits.ts";
import { contextIdProblem, isUlid, nameProblem, trimContextId } from "../../spec/names-and-contexts.ts";
import { type Problems, quoted, type Spot, UnreadableFile } from "./desired.ts";

/** A text. `isPlain`: it has no quotation marks, which only YAML allows. */
interface TextNode extends Spot {
  readonly kind: "text";
  readonly text: string;
  readonly isPlain: boolean;
}

/** A number, boolean or null in JSON. YAML values of this kind are read as texts. */
interface ValueNode extends Spot {
  readonly kind: "value";
  readonly value: number | boolean | null;
}

export interface ListNode extends Spot {
  readonly kind: "list";
  readonly items: Node[];
}

/** A key with its value. `line`, `column` and `offset` (in characters) are those of the key. */
export interface Entry extends Spot {
  readonly key: string;
  readonly offset: number;
  readonly value: Node;
}

export interface MapNode extends Spot {
  readonly kind: "map";
  readonly entries: Entry[];
  /** Whether the object is written in braces, as in JSON. */
  readonly isFlow: boolean;
}

export type Node = TextNode | ValueNode | ListNode | MapNode;

/** The maximum number of values in a file. A YAML alias counts as all values that it repeats. */
export const MAX_NODES = 1_000_000;
export const MAX_DEPTH = 20;

export function tooDeep(spot: Spot): UnreadableFile {
  return new UnreadableFile(
    spot,
    `the file nests more than ${MAX_DEPTH} levels deep here`,
    "A desired state needs seven levels: options, their children, and lists of Context IDs.",
  );
}

export function tooMany(
  spot: Spot,
  most = MAX_NODES,
  what = "values up to here, including repeated ones",
): UnreadableFile {
  return new UnreadableFile(
    spot,
    `the file has more than ${thousands(most)} ${what}`,
    "Put Context IDs into separate files (contextsFile), or describe each targeting in its own file.",
  );
}

export function kindOf(node: Node): string {
  if (node.kind === "value") return node.value === null ? "null" : `a ${typeof node.value}`;
  if (node.kind === "text") return node.isPlain && node.text === "" ? "nothing" : "a text";
  return node.kind === "list" ? "a list" : "an object";
}

/** Returns the entries of an object by key. Reports repeated and unknown keys. */
export function entriesOf(
  map: MapNode,
  valid: readonly string[],
  what: string,
  problems: Problems,
): ReadonlyMap<string, Entry> {
  const entries = new Map<string, Entry>();
  for (const entry of map.entries) {
    const first = entries.get(entry.key);
    if (first !== undefined) {
      problems.add(
        entry,
        `${what} has ${quoted(entry.key)} twice: on line ${first.line} and on line ${entry.line}`,
        "Keep one of the two.",
        [first.line, entry.line],
      );
    } else if (valid.includes(entry.key)) entries.set(entry.key, entry);
    else
      problems.add(entry, `${quoted(entry.key)} is not a field of ${what}`, `Fields of ${what}: ${valid.join(", ")}.`);
  }
  return entries;
}

export function textIn(node: Node, spot: Spot, field: string, problems: Problems): string | undefined {
  if (node.kind === "text" && !(node.isPlain && node.text === "")) return node.text;
  const found = kindOf(node);
  const remedy =
    node.kind === "value" && node.value !== null
      ? `Write the value in quotes: ${JSON.stringify(String(node.value))}.`
      : `Write a text, or leave ${field} out.`;
  return problems.add(spot, `${field} must be a text, not ${found}`, remedy);
}

/** Returns an ID in upper case, as the service writes it. Reports a problem if it is invalid. */
export function idIn(text: string, spot: Spot, problems: Problems): string | undefined {
  const id = text.trim().toUpperCase();
  if (isUlid(id)) return id;
  return problems.add(
    spot,
    `_id ${quoted(text)} is not an ID of the service`,
    "IDs are 26 digits and letters, as export writes them. Without _id the option is found by its name, or created.",
  );
}

/** Returns a name. Reports a problem if it breaks the rules of the service (management-api 8.3). */
export function nameIn(text: string, spot: Spot, problems: Problems): string | undefined {
  const problem = nameProblem(text);
  if (problem === undefined) return text;
  const { nameMinLength, nameMaxLength } = LIMITS;
  return problems.add(
    spot,
    `the name ${quoted(text)} ${nameProblemWords(problem)}`,
    `Names have ${nameMinLength.value} to ${nameMaxLength.value} characters: Korean and English letters, digits, spaces, ~ % & + -, no space at either end.`,
  );
}

/** Adds a trimmed Context ID (management-api 8.1), or reports a problem, whose message ends with `where`. */
export function addContextId(ids: Set<string>, text: string, spot: Spot, problems: Problems, where = ""): void {
  const id = trimContextId(text);
  const problem = contextIdProblem(id);
  if (problem === undefined) {
    ids.add(id);
    return;
  }
  const words = {
    empty: "a Context ID is empty",
    tooLong: `the Context ID ${quoted(id)} has ${problem.bytes} bytes; the maximum is ${LIMITS.contextIdBytes.value}`,
    halfCharacter: `the Context ID ${quoted(id)} contains half of a character, which UTF-8 cannot encode`,
  };
  problems.add(spot, words[problem.rule] + where, "Correct this Context ID, or remove it.");
}

/** Returns the Context IDs in a list. Reports a problem if the node is not a list. */
export function contextsIn(node: Node, spot: Spot, field: string, problems: Problems): readonly string[] | undefined {
  if (node.kind !== "list") {
    return problems.add(
      spot,
      `${field} must be a list of Context IDs, not ${kindOf(node)}`,
      `Write [] for none, or leave ${field} out so that it is not managed.`,
    );
  }
  const ids = new Set<string>();
  for (const item of node.items) {
    const text = textIn(item, item, `each entry of ${field}`, problems);
    if (text !== undefined) addContextId(ids, text, item, problems);
  }
  return [...ids];
}

/** Returns a boolean. Reports a problem if the node is not true or false without quotation marks. */
export function truthIn(node: Node, spot: Spot, problems: Problems): boolean | undefined {
  if (node.kind === "value" && typeof node.value === "boolean") return node.value;
  const text = node.kind === "text" && node.isPlain ? node.text : undefined;
  if (text === "true" || text === "false") return text === "true";
  return problems.add(spot, "exposeChildren must be true or false", "Write true or false without quotes.");
}

/** Returns the type of an option. Reports a problem if the type is unknown. */
export function typeIn(text: string, spot: Spot, problems: Problems): "atomic" | "collection" | undefined {
  if (text === "atomic" || text === "collection") return text;
  return problems.add(spot, `${quoted(text)} is not a type of an option`, "Write collection (a group) or atomic.");
}
