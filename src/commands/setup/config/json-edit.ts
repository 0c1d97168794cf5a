import { isDeepStrictEqual } from "node:util";
import { findNodeAtLocation, type JSONPath, type Node, parseTree, stripComments, visit } from "jsonc-parser";
import { tableOf } from "../entry.ts";

/**
 * Changes a JSON text, perhaps with comments, from one value to another; what both have stays to the letter. The
 * library's own editing would lay out the lines next to a change anew, and pull comments away from what they are about.
 */
export function editedJson(text: string, before: unknown, after: unknown, path: JSONPath = []): string {
  if (isDeepStrictEqual(before, after)) return text;
  const old = tableOf(before);
  const fresh = tableOf(after);
  if (old !== undefined && fresh !== undefined) {
    const all = Object.entries(fresh).reduce((rest, [name, value]) => {
      if (!Object.hasOwn(old, name)) return withLast(rest, path, value, name);
      return editedJson(rest, old[name], value, [...path, name]);
    }, text);
    const gone = Object.keys(old).filter((name) => !Object.hasOwn(fresh, name));
    return gone.reduce((rest, name) => withoutChild(rest, [...path, name]), all);
  }
  if (Array.isArray(before) && Array.isArray(after) && isDeepStrictEqual(before, after.slice(0, before.length))) {
    return after.slice(before.length).reduce((rest: string, value: unknown) => withLast(rest, path, value), text);
  }
  const goneItems = Array.isArray(before) && Array.isArray(after) ? itemsGone(before, after) : undefined;
  // The last one first, so that the places of the others stay.
  if (goneItems !== undefined)
    return goneItems.reduceRight((rest, index) => withoutChild(rest, [...path, index]), text);
  const { start, end } = placeOf(nodeAt(text, path));
  return text.slice(0, start) + written(after, layoutOf(text), path.length) + text.slice(end);
}

/** The properties of an object, in order; none of anything else. */
export function propertiesOf(node: Node | undefined): readonly { readonly name: string; readonly value: Node }[] {
  if (node?.type !== "object") return [];
  return (node.children ?? []).flatMap(({ children: [name, value] = [] }) =>
    name === undefined || value === undefined ? [] : [{ name: String(name.value), value }],
  );
}

/** The line of the first comment, counted from 1; undefined where there is none. */
export function lineOfComment(text: string): number | undefined {
  let first: number | undefined;
  visit(text, {
    onComment: (_offset, _length, line) => {
      first ??= line + 1;
    },
  });
  return first;
}

/** The text without the commas that nothing follows in their object or list. */
export function withoutTrailingCommas(text: string): string {
  const trailing: number[] = [];
  let comma: number | undefined;
  const follows = (): void => {
    comma = undefined;
  };
  const ends = (): void => {
    if (comma !== undefined) trailing.push(comma);
    comma = undefined;
  };
  visit(
    text,
    {
      onSeparator: (character, offset) => {
        comma = character === "," ? offset : undefined;
      },
      ...{ onObjectBegin: follows, onArrayBegin: follows, onObjectProperty: follows, onLiteralValue: follows },
      ...{ onObjectEnd: ends, onArrayEnd: ends },
    },
    { allowTrailingComma: true },
  );
  return trailing.reduceRight((rest, at) => rest.slice(0, at) + rest.slice(at + 1), text);
}

interface Layout {
  readonly unit: string;
  readonly eol: string;
}

function layoutOf(text: string): Layout {
  const [first] = nodeAt(text, []).children ?? [];
  const indent = first === undefined ? "" : indentBefore(text, first.offset);
  return { unit: indent === undefined || indent === "" ? "  " : indent, eol: text.includes("\r\n") ? "\r\n" : "\n" };
}

/** What stands before a place in its line; undefined where that is more than an indentation. */
function indentBefore(text: string, offset: number): string | undefined {
  const before = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
  return /\S/.test(before) ? undefined : before;
}

function written(value: unknown, { unit, eol }: Layout, depth: number): string {
  return JSON.stringify(value, null, unit).replaceAll("\n", eol + unit.repeat(depth));
}

/** Puts a value behind the last one of an object or list, on a line of its own. */
function withLast(text: string, path: JSONPath, value: unknown, name?: string): string {
  const node = nodeAt(text, path);
  const layout = layoutOf(text);
  const { unit, eol } = layout;
  const last = node.children?.at(-1);
  const start = last === undefined ? node.offset + 1 : placeOf(last).end;
  const closing = placeOf(node).end - 1;
  // Comments, and perhaps a comma that nothing follows.
  const between = text.slice(start, closing);
  const kept = between.trimEnd();
  const comma = last === undefined || stripComments(kept).includes(",") ? "" : ",";
  const depth = path.length + 1;
  const indent = (last && indentBefore(text, last.offset)) || unit.repeat(depth);
  const label = name === undefined ? "" : `${JSON.stringify(name)}: `;
  const end = between.includes("\n") ? between.slice(kept.length) : eol + unit.repeat(depth - 1);
  const added = `${eol}${indent}${label}${written(value, layout, depth)}`;
  return text.slice(0, start) + comma + kept + added + end + text.slice(closing);
}

/** The positions of the items that a list has lost; undefined where it has changed in another way. */
function itemsGone(before: readonly unknown[], after: readonly unknown[]): readonly number[] | undefined {
  const isKept = (item: unknown): boolean => after.some((one) => isDeepStrictEqual(one, item));
  if (!isDeepStrictEqual(before.filter(isKept), after)) return undefined;
  return before.flatMap((item, index) => (isKept(item) ? [] : [index]));
}

/** Takes a property or an item of a list out, and the comma that it leaves behind. */
function withoutChild(text: string, path: JSONPath): string {
  const value = nodeAt(text, path);
  const child = value.parent?.type === "property" ? value.parent : value;
  const children = child.parent?.children ?? [];
  const index = children.indexOf(child);
  const { start, end } = placeOf(child);
  const [previous, next] = [children[index - 1], children[index + 1]];
  if (next !== undefined) return text.slice(0, start) + text.slice(next.offset);
  if (previous !== undefined) return text.slice(0, placeOf(previous).end) + text.slice(end);
  return text.slice(0, start) + text.slice(end).replace(/^\s*,/, "");
}

function nodeAt(text: string, path: JSONPath): Node {
  const root = parseTree(text, [], { allowTrailingComma: true });
  const node = root && findNodeAtLocation(root, path);
  if (node === undefined) throw new Error(`there is nothing at ${path.join(".")}`);
  return node;
}

function placeOf({ offset, length }: Node): { readonly start: number; readonly end: number } {
  return { start: offset, end: offset + length };
}
