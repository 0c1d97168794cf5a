import { getLocation, type ParseErrorCode, visit } from "jsonc-parser";
import { BYTE_ORDER_MARK } from "../../files/delimited.ts";
import { type DesiredTargeting, type ParentWish, type Problems, spotOf, UnreadableFile } from "./desired.ts";
import {
  ADVICE_FOR_ROWS,
  addOption,
  CONTEXT_FIELDS,
  checkVersion,
  type Drafts,
  type Entry,
  entriesOf,
  kindOf,
  type ListNode,
  MAX_DEPTH,
  MAX_NODES,
  type MapNode,
  type Node,
  readTargeting,
  textIn,
  tooDeep,
  tooMany,
} from "./tree.ts";

const WORDS: Readonly<Partial<Record<ParseErrorCode, string>>> = {
  1: "this is not valid JSON",
  2: "a number is not in the form that JSON requires",
  3: "a property name in double quotes is missing here",
  4: "a value is missing here",
  5: "a colon is missing here",
  6: "a comma is missing here",
  7: "a closing brace is missing here",
  8: "a closing bracket is missing here",
  9: "there is more text after the end of the JSON value",
  10: "JSON has no comments",
  12: "a text in quotes is not closed",
  13: "a number does not end",
  14: "a \\u escape is not valid",
  15: "an escape with \\ is not valid",
  16: "a text contains a control character",
};

export interface NodeCount {
  nodes: number;
}

/** Parses strict JSON that begins on line `firstLine`. Throws UnreadableFile for wrong syntax or an exceeded limit. */
export function jsonNodes(text: string, firstLine = 1, count: NodeCount = { nodes: 0 }): Node {
  const open: (ListNode | MapNode)[] = [];
  let key: Omit<Entry, "value"> | undefined;
  let root: Node | undefined;
  const place = (line: number, character: number) => ({ line: firstLine + line, column: character + 1 });
  const put = (node: Node): void => {
    count.nodes += 1;
    if (count.nodes > MAX_NODES) throw tooMany(node);
    const inside = open.at(-1);
    if (inside === undefined) root = node;
    else if (inside.kind === "list") inside.items.push(node);
    else if (key !== undefined) inside.entries.push({ ...key, value: node });
  };
  const begin = (node: ListNode | MapNode): void => {
    put(node);
    open.push(node);
    if (open.length > MAX_DEPTH) throw tooDeep(node);
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
        const isText = typeof value === "string";
        const known = typeof value === "number" || typeof value === "boolean" ? value : null;
        put(isText ? { kind: "text", text: value, isPlain: false, ...spot } : { kind: "value", value: known, ...spot });
      },
      onError: (code, _offset, _length, line, character) => {
        throw new UnreadableFile(
          place(line, character),
          `the JSON cannot be read: ${WORDS[code] ?? "its syntax is wrong"}`,
          "Fix the syntax; an editor with JSON support marks the position.",
        );
      },
    },
    { disallowComments: true, allowTrailingComma: false },
  );
  // `onError` has thrown if the text is empty, so there is a root.
  if (root === undefined) throw new Error("the JSON parser gave no value and no error");
  return root;
}

/** Returns the path to the value at an offset in a JSON text, such as `options[1].name`. Empty for the whole value. */
export function jsonPathAt(text: string, offset: number): string {
  const steps = getLocation(text, offset).path.map((step) =>
    typeof step === "number" ? `[${step}]` : `.${JSON.stringify(step).slice(1, -1)}`,
  );
  return steps.join("").slice(1);
}

const ROW_FIELDS = ["_id", "name", "parentName", "type", "exposeChildren", "op", ...CONTEXT_FIELDS];

/** Reads NDJSON. A first line with version or targeting is optional. Throws an UnreadableFile, as `jsonNodes` does. */
export function readNdjson(text: string, drafts: Drafts): DesiredTargeting | undefined {
  const { problems } = drafts;
  const count = { nodes: 0 };
  let targeting: DesiredTargeting | undefined;
  let line = 0;
  let isFirst = true;
  for (const one of linesOf(text)) {
    line += 1;
    if (one.trim() === "") continue;
    const node = jsonNodes(one, line, count);
    if (node.kind !== "map") {
      problems.add(node, `a line must be an object, not ${kindOf(node)}`, 'Write {"name": …} on each line.');
    } else if (isFirst && node.entries.some(({ key }) => key === "version" || key === "targeting")) {
      const fields = entriesOf(node, ["version", "targeting"], "the first line", problems);
      checkVersion(fields.get("version"), node, problems);
      targeting = readTargeting(fields.get("targeting"), problems);
    } else readRow(node, drafts);
    isFirst = false;
  }
  if (isFirst) problems.add({ line: 1, column: 1 }, "the file is empty", "Write an option on each line.");
  return targeting;
}

function readRow(node: MapNode, drafts: Drafts): void {
  const fields = entriesOf(node, ROW_FIELDS, "an option", drafts.problems, ADVICE_FOR_ROWS);
  const entry = fields.get("parentName");
  const parent = parentOf(entry, drafts.problems);
  addOption(fields, { spot: node, parent, parentSpot: entry && spotOf(entry) }, drafts);
}

/** Reads the group that a row names. Null and `[]` mean the top level. An empty text means that the row names none. */
function parentOf(entry: Entry | undefined, problems: Problems): ParentWish {
  if (entry === undefined) return { kind: "keep" };
  const { value } = entry;
  if (value.kind === "value" && value.value === null) return { kind: "top" };
  if (value.kind === "list" && value.items.length === 0) return { kind: "top" };
  const name = textIn(value, entry, "parentName", problems);
  return name === undefined || name.trim() === "" ? { kind: "keep" } : { kind: "name", name };
}

function* linesOf(text: string): Generator<string> {
  let from = text.startsWith(BYTE_ORDER_MARK) ? 1 : 0;
  for (let end = text.indexOf("\n", from); end >= 0; end = text.indexOf("\n", from)) {
    yield text.slice(from, end);
    from = end + 1;
  }
  yield text.slice(from);
}
