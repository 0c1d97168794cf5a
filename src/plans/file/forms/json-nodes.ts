import { type ParseErrorCode, visit } from "jsonc-parser";
import { UnreadableFile } from "../desired.ts";
import {
  type Entry,
  type ListNode,
  type MapNode,
  MOST_DEPTH,
  MOST_NODES,
  type Node,
  tooDeep,
  tooMany,
} from "../node.ts";

/** What the parser finds wrong, in words, by its code. */
const WORDS: Readonly<Partial<Record<ParseErrorCode, string>>> = {
  1: "something stands here that is no JSON",
  2: "a number is written in a way that JSON does not have",
  3: "a property name in double quotes is missing here",
  4: "a value is missing here",
  5: "a colon is missing here",
  6: "a comma is missing here",
  7: "a closing brace is missing here",
  8: "a closing bracket is missing here",
  9: "something stands behind the end of the JSON value",
  10: "JSON has no comments",
  12: "a text in quotes does not end",
  13: "a number does not end",
  14: "a \\u escape is not valid",
  15: "an escape with \\ is not valid",
  16: "a control character stands in a text",
};

/** Counts the values of a file across the texts that are read of it. */
export interface NodeCount {
  nodes: number;
}

/**
 * Reads strict JSON into nodes with their places. `firstLine` is the line of the file on which the text begins. Throws
 * an UnreadableFile at the first fault of the syntax, and beyond the limits of depth and number.
 */
export function jsonNodes(text: string, firstLine = 1, count: NodeCount = { nodes: 0 }): Node {
  const open: (ListNode | MapNode)[] = [];
  let key: Omit<Entry, "value"> | undefined;
  let root: Node | undefined;
  const place = (line: number, character: number) => ({ line: firstLine + line, column: character + 1 });
  const put = (node: Node): void => {
    count.nodes += 1;
    if (count.nodes > MOST_NODES) throw tooMany(node);
    const inside = open.at(-1);
    if (inside === undefined) root = node;
    else if (inside.kind === "list") inside.items.push(node);
    else if (key !== undefined) inside.entries.push({ ...key, value: node });
  };
  const begin = (node: ListNode | MapNode): void => {
    put(node);
    open.push(node);
    if (open.length > MOST_DEPTH) throw tooDeep(node);
  };
  visit(
    text,
    {
      onObjectBegin: (_offset, _length, line, character) =>
        begin({ kind: "map", entries: [], isFlow: true, ...place(line, character) }),
      onArrayBegin: (_offset, _length, line, character) =>
        begin({ kind: "list", items: [], ...place(line, character) }),
      onObjectProperty: (property, offset, _length, line, character) => {
        key = { key: property, offset, ...place(line, character) };
      },
      onObjectEnd: () => void open.pop(),
      onArrayEnd: () => void open.pop(),
      onLiteralValue: (value: unknown, _offset, _length, line, character) => {
        const spot = place(line, character);
        if (typeof value === "string") put({ kind: "text", text: value, isPlain: false, ...spot });
        else if (typeof value === "number" || typeof value === "boolean") put({ kind: "value", value, ...spot });
        else put({ kind: "value", value: null, ...spot });
      },
      onError: (code, _offset, _length, line, character) => {
        throw new UnreadableFile(
          place(line, character),
          `the JSON cannot be read: ${WORDS[code] ?? "its syntax is wrong"}`,
          "Mend the syntax; editors that know JSON mark the place.",
        );
      },
    },
    { disallowComments: true, allowTrailingComma: false },
  );
  // An empty text is an error to the parser, which was thrown above.
  if (root === undefined) throw new Error("the JSON parser gave no value and no error");
  return root;
}
