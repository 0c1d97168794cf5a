import { thousands } from "../../platform/text.ts";
import { type Spot, UnreadableFile } from "./desired.ts";

/** `isPlain`: without quotes, which only YAML allows. */
interface TextNode extends Spot {
  readonly kind: "text";
  readonly text: string;
  readonly isPlain: boolean;
}

/** In JSON. In YAML, such values are texts. */
interface ValueNode extends Spot {
  readonly kind: "value";
  readonly value: number | boolean | null;
}

export interface ListNode extends Spot {
  readonly kind: "list";
  readonly items: Node[];
}

/** Line, column and `offset` (in characters) are the position of the key. */
export interface Entry extends Spot {
  readonly key: string;
  readonly offset: number;
  readonly value: Node;
}

export interface MapNode extends Spot {
  readonly kind: "map";
  readonly entries: Entry[];
  /** Whether the object is written in braces. */
  readonly isFlow: boolean;
}

/** A value in a YAML or JSON text. */
export type Node = TextNode | ValueNode | ListNode | MapNode;

/** The maximum number of values in a file. A YAML alias counts as many values as it repeats. */
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

/** Returns the kind of a node for messages. */
export function kindOf(node: Node): string {
  if (node.kind === "value") return node.value === null ? "null" : `a ${typeof node.value}`;
  if (node.kind === "text") return node.isPlain && node.text === "" ? "nothing" : "a text";
  return node.kind === "list" ? "a list" : "an object";
}
