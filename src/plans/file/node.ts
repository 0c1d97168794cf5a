import { thousands } from "../../platform/text.ts";
import { type Spot, UnreadableFile } from "./desired.ts";

/** A text. `isPlain`: written without quotes, as only YAML can. */
interface TextNode extends Spot {
  readonly kind: "text";
  readonly text: string;
  readonly isPlain: boolean;
}

/** A number, a truth value or null of JSON. YAML has only texts here. */
interface ValueNode extends Spot {
  readonly kind: "value";
  readonly value: number | boolean | null;
}

export interface ListNode extends Spot {
  readonly kind: "list";
  readonly items: Node[];
}

/** A property; the spot is that of its key, `offset` the position of the key in the text. */
export interface Entry extends Spot {
  readonly key: string;
  readonly offset: number;
  readonly value: Node;
}

export interface MapNode extends Spot {
  readonly kind: "map";
  readonly entries: Entry[];
  /** Whether it stands in braces. */
  readonly isFlow: boolean;
}

/** A value of a YAML or JSON text, with its place. */
export type Node = TextNode | ValueNode | ListNode | MapNode;

/** How much one file may hold; what is repeated by aliases counts each time. */
export const MOST_NODES = 1_000_000;
export const MOST_DEPTH = 20;

/** The error for a file that nests deeper than is read. */
export function tooDeep(spot: Spot): UnreadableFile {
  return new UnreadableFile(
    spot,
    `the file nests more than ${MOST_DEPTH} levels deep here`,
    "A desired state needs seven levels: options, their children, and lists of Context IDs.",
  );
}

/** The error for a file that holds more values than are read. */
export function tooMany(spot: Spot): UnreadableFile {
  return new UnreadableFile(
    spot,
    `the file holds more than ${thousands(MOST_NODES)} values up to here, repeated ones included`,
    "Put Context IDs into files of their own (contextsFile), or describe each targeting in a file of its own.",
  );
}

/** What a node is, in words. */
export function kindOf(node: Node): string {
  if (node.kind === "value") return node.value === null ? "null" : `a ${typeof node.value}`;
  if (node.kind === "text") return node.isPlain && node.text === "" ? "nothing" : "a text";
  return node.kind === "list" ? "a list" : "an object";
}
