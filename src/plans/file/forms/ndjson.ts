import { BYTE_ORDER_MARK } from "../../../files/csv-text.ts";
import { type DesiredTargeting, type ParentWish, type Problems, spotOf } from "../desired.ts";
import { addOption, CONTEXT_FIELDS, type Drafts } from "../draft.ts";
import { type Entry, kindOf, type MapNode } from "../node.ts";
import { checkVersion, readTargeting } from "../tree.ts";
import { entriesOf, textIn } from "../values.ts";
import { jsonNodes } from "./json-nodes.ts";

const ROW_FIELDS = ["_id", "name", "parentName", "type", "exposeChildren", "op", ...CONTEXT_FIELDS];

/**
 * Reads NDJSON: an option a line, and perhaps version and targeting on the first. Throws an UnreadableFile at the first
 * line that is no JSON.
 */
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
      problems.add(
        node,
        `a line must be an object, and ${kindOf(node)} stands here`,
        'Write {"name": …} on each line.',
      );
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
  const fields = entriesOf(node, ROW_FIELDS, "an option", drafts.problems);
  const entry = fields.get("parentName");
  const parent = parentOf(entry, drafts.problems);
  addOption(fields, { spot: node, parent, parentSpot: entry && spotOf(entry) }, drafts);
}

/** Null and `[]` mean the top level; a blank text says nothing. */
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
