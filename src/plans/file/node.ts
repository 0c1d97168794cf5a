import { thousands } from "../../platform/text.ts";
import { type Spot, UnreadableFile } from "./desired.ts";

/** A text. `isPlain`: written without quotes, which only YAML allows. */
interface TextNode extends Spot {
  readonly kind: "text";
  readonly text: string;
  readonly isPlain: boolean;
}

/** A number, a truth value or null of JSON. In YAML these are read as texts. */
interface ValueNode extends Spot {
  readonly kind: "value";
  readonly value: number | boolean | null;
}

export interface ListNode extends Spot {
  readonly kind: "list";
  readonly items: Node[];
}

/** A property with the position of its key. `offset` counts from the start of the text. */
export interface Entry extends Spot {
  readonly key: string;
  readonly offset: number;
  readonly value: Node;
}

export interface MapNode extends Spot {
  readonly kind: "map";
  readonly entries: Entry[];
  /** Whether it is written in braces. */
  readonly isFlow: boolean;
}

/** A value of a YAML or JSON text, with its position. */
export type Node = TextNode | ValueNode | ListNode | MapNode;

/** The maximum number of values in a file. Values repeated by aliases count each time. */
export const MAX_NODES = 1_000_000;
export const MAX_DEPTH = 20;

/** Returns the error for a file with too much nesting. */
export function tooDeep(spot: Spot): UnreadableFile {
  return new UnreadableFile(
    spot,
    `the file nests more than ${MAX_DEPTH} levels deep here`,
    "A desired state needs seven levels: options, their children, and lists of Context IDs.",
  );
}

/** Returns the error for a file with too many values. */
export function tooMany(
  spot: Spot,
  most = MAX_NODES,
  what = "values up to here, repeated ones included",
): UnreadableFile {
  return new UnreadableFile(
    spot,
    `the file holds more than ${thousands(most)} ${what}`,
    "Put Context IDs into files of their own (contextsFile), or describe each targeting in a file of its own.",
  );
}

/** Returns the kind of a node, in words. */
export function kindOf(node: Node): string {
  if (node.kind === "value") return node.value === null ? "null" : `a ${typeof node.value}`;
  if (node.kind === "text") return node.isPlain && node.text === "" ? "nothing" : "a text";
  return node.kind === "list" ? "a list" : "an object";
}
