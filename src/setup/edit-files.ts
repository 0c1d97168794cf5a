import { isDeepStrictEqual } from "node:util";
import {
  findNodeAtLocation,
  getNodeValue,
  type JSONPath,
  type Node,
  type ParseError,
  parseTree,
  stripComments,
  visit,
} from "jsonc-parser";
import { parse, stringify } from "smol-toml";
import { parseJson } from "../platform/json.ts";
import {
  ENTRY_NAME,
  type Entry,
  type Fields,
  inputId,
  type ServerList,
  tableIn,
  tableOf,
  UnsafeChange,
} from "./config-file.ts";

interface JsonForm {
  readonly more?: Readonly<Record<string, string>>;
  /** Whether the host asks the person for keys, with the questions in the file's field `inputs`. */
  readonly asks?: boolean;
  readonly reads: { readonly comments: boolean; readonly trailingCommas: boolean };
  readonly title: string;
}

/** Fields of a server over HTTP. Removed when a command is written: a host expects either an address or a command. */
const REMOTE_FIELDS = ["url", "serverUrl", "httpUrl", "headers", "headersHelper", "oauth"];

/** Edits the servers in a JSON file (key `section`). Refuses comments if the host cannot read them. */
export function jsonList(section: string, form: JsonForm): ServerList {
  const { more = {}, asks = false } = form;
  return {
    entryIn: (content) => {
      const servers = tableIn(fileOf(content, section).value, section);
      return Object.hasOwn(servers, ENTRY_NAME) ? tableIn(servers, ENTRY_NAME) : undefined;
    },
    fieldsOf: ({ command, args, values, references }: Entry, old = {}) => {
      const oldEnv = tableIn(old, "env");
      // `oldEnv` stands first to keep the order of its variables, and again to replace the references.
      const env = { ...oldEnv, ...references, ...oldEnv, ...values };
      return { ...localPart(old), ...more, command, args, ...(Object.keys(env).length > 0 && { env }) };
    },
    withFields: (content, fields) => {
      const { text, value } = fileOf(content, section);
      const servers = { ...tableIn(value, section), [ENTRY_NAME]: fields };
      const after = { ...value, ...(asks && withInputs(value, fields)), [section]: servers };
      return `${changedFile({ text, value }, after, form)}${/\S/.test(text.replace(/^\{\}$/, "")) ? "" : "\n"}`;
    },
    without: (content) => {
      const { text, value } = fileOf(content, section);
      const { [ENTRY_NAME]: entry, ...servers } = tableIn(value, section);
      if (entry === undefined) return content;
      const { inputs, ...rest } = value;
      const kept = asks ? inputsWithoutOurs(inputs, text) : inputs;
      return changedFile(
        { text, value },
        { ...rest, ...(kept !== undefined && { inputs: kept }), [section]: servers },
        form,
      );
    },
  };
}

/** Returns the text of the changed file. Everything else stays as it is, except what the host cannot read. */
function changedFile(
  { text, value }: ReturnType<typeof fileOf>,
  after: Fields,
  { reads, title }: Pick<JsonForm, "reads" | "title">,
): string {
  const edited = editedJson(text, value, after);
  const left = reads.comments ? [] : commentsIn(edited).map(({ comment }) => comment);
  if (left.length > 0) {
    // The edit moves lines, so the line is that of the same comment in the person's file.
    const there = commentsIn(text).find(({ comment }) => left.includes(comment));
    throw new UnsafeChange(
      `it has a comment (line ${there?.line ?? 1}), but ${title} cannot read files with comments. Remove them`,
    );
  }
  const changed = reads.trailingCommas ? edited : withoutTrailingCommas(edited);
  const isReadable = reads.comments || reads.trailingCommas || parseJson(changed) !== undefined;
  if (!isReadable || !isDeepStrictEqual(parsed(changed)?.value, structuredClone(after))) {
    throw new UnsafeChange("it is written in a form that this program cannot edit");
  }
  return changed;
}

/** Returns the questions for keys (`inputs`) without those that only this entry uses. Undefined if none is left. */
function inputsWithoutOurs(inputs: unknown, text: string): unknown {
  if (!Array.isArray(inputs)) return inputs;
  const isOurs = (input: unknown): boolean => {
    const { id, description } = tableOf(input) ?? {};
    if (typeof id !== "string" || typeof description !== "string" || id !== inputId(description)) return false;
    return isDeepStrictEqual(input, questionFor(description)) && text.split(`\${input:${id}}`).length <= 2;
  };
  const kept = inputs.filter((input) => !isOurs(input));
  return kept.length === 0 && inputs.length > 0 ? undefined : kept;
}

function questionFor(variable: string): Fields {
  return { type: "promptString", id: inputId(variable), description: variable, password: true };
}

/** The byte order mark, with which editors on Windows start files. */
const MARK = "\uFEFF";

function localPart(old: Fields): Fields {
  const isLocal = ([name, value]: readonly [string, unknown]): boolean =>
    !REMOTE_FIELDS.includes(name) && (name !== "type" || value === "stdio");
  return Object.fromEntries(Object.entries(old).filter(isLocal));
}

function withInputs(file: Fields, fields: Fields): Fields {
  const asked = Object.entries(tableIn(fields, "env")).flatMap(([variable, value]) =>
    value === `\${input:${inputId(variable)}}` ? [variable] : [],
  );
  if (asked.length === 0) return {};
  const given: unknown = file.inputs ?? [];
  const inputs: readonly unknown[] = Array.isArray(given) ? given : [undefined];
  const ids = inputs.map((input) => {
    const question = tableOf(input);
    if (question === undefined) throw new UnsafeChange('"inputs" is not a list of objects');
    return question.id;
  });
  const added = asked.flatMap((variable) => {
    return ids.includes(inputId(variable)) ? [] : [questionFor(variable)];
  });
  return added.length === 0 ? {} : { inputs: [...inputs, ...added] };
}

function fileOf(content: string, section: string): { readonly text: string; readonly value: Fields } {
  const unmarked = content.startsWith(MARK) ? content.slice(1) : content;
  const text = /\S/.test(unmarked) ? unmarked : "{}";
  const found = parsed(text);
  if (found === undefined) throw new UnsafeChange("it is not valid JSON");
  const { root, value } = found;
  const file = root.type === "object" ? tableOf(value) : undefined;
  if (file === undefined) throw new UnsafeChange("it must contain one JSON object");
  const [servers] = repeated(root, [section, "inputs"]);
  const [entry] = repeated(servers, [ENTRY_NAME]);
  repeated(entry, namesIn(entry));
  const [env] = repeated(entry, ["env"]);
  repeated(env, namesIn(env));
  return { text, value: file };
}

/** Returns the values with these names. Throws an UnsafeChange if a name occurs twice: its value is then unclear. */
function repeated(node: Node | undefined, names: readonly string[]): readonly (Node | undefined)[] {
  return names.map((name) => {
    const found = propertiesOf(node).filter((one) => one.name === name);
    if (found.length > 1)
      throw new UnsafeChange(`it contains ${JSON.stringify(name)} more than once in the same object`);
    return found[0]?.value;
  });
}

function namesIn(node: Node | undefined): readonly string[] {
  return propertiesOf(node).map(({ name }) => name);
}

function parsed(text: string): { readonly root: Node; readonly value: unknown } | undefined {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  if (root === undefined || errors.length > 0) return undefined;
  // Objects of the parser have no prototype. Copies of them have one, so that they can be compared with others.
  return { root, value: structuredClone(getNodeValue(root)) };
}

/**
 * Changes a JSON text so that its value `before` becomes `after`, and keeps its comments. The editing functions of the
 * library would reformat other lines, and separate comments from their values.
 */
function editedJson(text: string, before: unknown, after: unknown, path: JSONPath = []): string {
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
  // The last item is removed first, so that the positions of the others do not change.
  if (goneItems !== undefined)
    return goneItems.reduceRight((rest, index) => withoutChild(rest, [...path, index]), text);
  const { start, end } = placeOf(nodeAt(text, path));
  return text.slice(0, start) + written(after, layoutOf(text), path.length) + text.slice(end);
}

function propertiesOf(node: Node | undefined): readonly { readonly name: string; readonly value: Node }[] {
  if (node?.type !== "object") return [];
  return (node.children ?? []).flatMap(({ children: [name, value] = [] }) =>
    name === undefined || value === undefined ? [] : [{ name: String(name.value), value }],
  );
}

function commentsIn(text: string): readonly { readonly line: number; readonly comment: string }[] {
  const found: { readonly line: number; readonly comment: string }[] = [];
  visit(text, {
    onComment: (offset, length, line) => {
      found.push({ line: line + 1, comment: text.slice(offset, offset + length).trim() });
    },
  });
  return found;
}

function withoutTrailingCommas(text: string): string {
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
      onObjectBegin: follows,
      onArrayBegin: follows,
      onObjectProperty: follows,
      onLiteralValue: follows,
      onObjectEnd: ends,
      onArrayEnd: ends,
    },
    { allowTrailingComma: true },
  );
  return trailing.reduceRight((rest, at) => rest.slice(0, at) + rest.slice(at + 1), text);
}

function layoutOf(text: string) {
  const [first] = nodeAt(text, []).children ?? [];
  const indent = first === undefined ? "" : indentBefore(text, first.offset);
  return { unit: indent === undefined || indent === "" ? "  " : indent, eol: text.includes("\r\n") ? "\r\n" : "\n" };
}

/** Returns the white space before a position in a text. Undefined if the line has other text before that position. */
function indentBefore(text: string, offset: number): string | undefined {
  const before = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
  return /\S/.test(before) ? undefined : before;
}

function written(value: unknown, { unit, eol }: ReturnType<typeof layoutOf>, depth: number): string {
  return JSON.stringify(value, null, unit).replaceAll("\n", eol + unit.repeat(depth));
}

/** Adds a value on its own line at the end of an object or a list. */
function withLast(text: string, path: JSONPath, value: unknown, name?: string): string {
  const node = nodeAt(text, path);
  const layout = layoutOf(text);
  const { unit, eol } = layout;
  const last = node.children?.at(-1);
  const start = last === undefined ? node.offset + 1 : placeOf(last).end;
  const closing = placeOf(node).end - 1;
  // The text after the last value: comments, and possibly a comma.
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

/** Returns the indexes of items that were removed from a list. Undefined if the list was changed in another way. */
function itemsGone(before: readonly unknown[], after: readonly unknown[]): readonly number[] | undefined {
  const isKept = (item: unknown): boolean => after.some((one) => isDeepStrictEqual(one, item));
  if (!isDeepStrictEqual(before.filter(isKept), after)) return undefined;
  return before.flatMap((item, index) => (isKept(item) ? [] : [index]));
}

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
  if (node === undefined) throw new Error(`the file has no value at ${path.join(".")}`);
  return node;
}

function placeOf({ offset, length }: Node): { readonly start: number; readonly end: number } {
  return { start: offset, end: offset + length };
}

const SECTION = "mcp_servers";

/** How many seconds Codex waits for the server to start. The first start downloads the package. */
const FIRST_START_S = 60;

/** Edits the list of servers in a TOML file. Refuses a file in which this server's entry is not a table of its own. */
export const tomlList: ServerList = {
  entryIn: (content) => {
    const servers = tableIn(tomlIn(content), SECTION);
    return Object.hasOwn(servers, ENTRY_NAME) ? tableIn(servers, ENTRY_NAME) : undefined;
  },
  fieldsOf: tomlFieldsOf,
  withFields: withTomlFields,
  without: withoutTomlEntry,
};

function tomlFieldsOf({ command, args, values, references }: Entry, old: Fields = {}): Fields {
  const env = { ...tableIn(old, "env"), ...values };
  const handedOn: readonly unknown[] = Array.isArray(old.env_vars) ? old.env_vars : [];
  const missing = Object.keys(references).filter((name) => !Object.hasOwn(env, name) && !handedOn.includes(name));
  const names = [...handedOn, ...missing];
  return {
    startup_timeout_sec: FIRST_START_S,
    ...Object.fromEntries(Object.entries(old).filter(([name]) => !REMOTE_CODEX_FIELDS.includes(name))),
    command,
    args,
    ...(names.length > 0 && { env_vars: names }),
    ...(Object.keys(env).length > 0 && { env }),
  };
}

/** Fields of a server over HTTP. Codex refuses an entry that has one of them together with a command. */
const REMOTE_CODEX_FIELDS = ["url", "bearer_token_env_var", "http_headers", "env_http_headers"];

function withTomlFields(content: string, fields: Fields): string {
  const before = tomlIn(content);
  const servers = tableIn(before, SECTION);
  if (Object.hasOwn(servers, ENTRY_NAME)) {
    if (areSame(servers[ENTRY_NAME], fields)) return content;
    return withTomlFields(withoutTomlEntry(content), fields);
  }
  const { command, args, startup_timeout_sec, ...rest } = fields;
  const ordered = { command, args, startup_timeout_sec, ...rest };
  const eol = content.includes("\r\n") ? "\r\n" : "\n";
  const block = stringify({ [SECTION]: { [ENTRY_NAME]: ordered } }).trimEnd();
  const kept = content === "" || content.endsWith("\n") ? content : content + eol;
  const after = `${kept}${/\S/.test(content) ? eol : ""}${block.replaceAll("\n", eol)}${eol}`;
  const expected = { ...before, [SECTION]: { ...servers, [ENTRY_NAME]: fields } };
  if (areSame(tomlOf(after), expected)) return after;
  throw new UnsafeChange(`its ${SECTION} must be written as tables`);
}

/** Matches the header of this server's table, or of a table inside it. */
const OWN_HEADER = /^\s*\[\s*(["']?)mcp_servers\1\s*\.\s*(["']?)targeting\2\s*(?:\.[^\]]*)?\]/;

function withoutTomlEntry(content: string): string {
  const before = tomlIn(content);
  const { [ENTRY_NAME]: entry, ...others } = tableIn(before, SECTION);
  if (entry === undefined) return content;
  const after = linesWithoutOurs(content.split(/(?<=\n)/)).join("");
  const left = tomlOf(after);
  const expected = { ...before, [SECTION]: others };
  if (left !== undefined && areSame({ ...left, [SECTION]: tableIn(left, SECTION) }, expected)) return after;
  throw new UnsafeChange(`its [${SECTION}.${ENTRY_NAME}] must be written as a separate table`);
}

/** Removes this server's table and the empty line before it. Comments after its fields belong to the next table. */
function linesWithoutOurs(lines: readonly string[]): readonly string[] {
  const kept: string[] = [];
  let between: string[] = [];
  let isOurs = false;
  for (const line of lines) {
    const isHeader = /^\s*\[/.test(line);
    const begins = isHeader && OWN_HEADER.test(line);
    if (begins && !isOurs && kept.at(-1)?.trim() === "") kept.pop();
    if (isHeader && !begins) kept.push(...between);
    if (isHeader) isOurs = begins;
    const isBetween = isOurs && /^\s*(?:#.*)?$/.test(line.trimEnd());
    if (isBetween) between.push(line);
    else between = [];
    if (!isOurs) kept.push(line);
  }
  return [...kept, ...(between.some((line) => line.trim() !== "") ? between : [])];
}

function tomlIn(content: string): Fields {
  const found = tomlOf(content);
  if (found === undefined) throw new UnsafeChange("it is not valid TOML");
  return found;
}

function tomlOf(content: string): Fields | undefined {
  try {
    return tableOf(parse(content, { integersAsBigInt: "asNeeded" }));
  } catch {
    // The parser's message is not shown, because it quotes the file, which may contain keys.
    return undefined;
  }
}

/** Returns whether two values are equal. Compares copies, because tables of the parser have no prototype. */
function areSame(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(structuredClone(one), structuredClone(other));
}
