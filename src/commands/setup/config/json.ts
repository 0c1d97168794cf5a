import { isDeepStrictEqual } from "node:util";
import { getNodeValue, type Node, type ParseError, parseTree } from "jsonc-parser";
import {
  ENTRY_NAME,
  type Entry,
  type Fields,
  inputId,
  type ServerList,
  tableIn,
  tableOf,
  UnsafeChange,
} from "../entry.ts";
import { editedJson, lineOfComment, propertiesOf, withoutTrailingCommas } from "./json-edit.ts";

/** What sets one JSON configuration apart from another. */
interface JsonForm {
  /** Fields of every entry. */
  readonly more?: Readonly<Record<string, string>>;
  /** The host asks for keys: each that is referred to stands among the `inputs` of the file. */
  readonly asks?: boolean;
  /** What the host's own parser reads beside JSON: comments, and commas that nothing follows. */
  readonly reads: { readonly comments: boolean; readonly trailingCommas: boolean };
  /** What the host is called, where it is said what it cannot read. */
  readonly title: string;
}

/** Fields of a server that is reached over HTTP, of all hosts; beside a command they would be misunderstood. */
const REMOTE_FIELDS = ["url", "serverUrl", "httpUrl", "headers", "headersHelper", "oauth"];

/**
 * A JSON file, perhaps with comments, with the servers under `section`. What is written is a file that the host can read:
 * without a byte order mark, and without commas that it does not read; where it reads no comments, one that has some is
 * refused.
 */
export function jsonList(section: string, form: JsonForm): ServerList {
  const { more = {}, asks = false } = form;
  return {
    entryIn: (content) => {
      const servers = tableIn(fileOf(content, section).value, section);
      return Object.hasOwn(servers, ENTRY_NAME) ? tableIn(servers, ENTRY_NAME) : undefined;
    },
    fieldsOf: ({ command, args, values, references }: Entry, old = {}) => {
      const oldEnv = tableIn(old, "env");
      // Once more in front, so that they keep their order.
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

/** The content of a file with another value; what both values have stays to the letter, as far as the host reads it. */
function changedFile(
  { text, value }: ReturnType<typeof fileOf>,
  after: Fields,
  { reads, title }: Pick<JsonForm, "reads" | "title">,
): string {
  const edited = editedJson(text, value, after);
  const comment = reads.comments ? undefined : lineOfComment(edited);
  if (comment !== undefined) {
    throw new UnsafeChange(
      `it has a comment (line ${comment}), and ${title} reads no file with comments; take them out`,
    );
  }
  const changed = reads.trailingCommas ? edited : withoutTrailingCommas(edited);
  const isStrict = !(reads.comments || reads.trailingCommas);
  if (!isDeepStrictEqual(parsed(changed)?.value, structuredClone(after)) || (isStrict && !isJson(changed))) {
    throw new UnsafeChange("something in it is not understood");
  }
  return changed;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The questions of a file without those that only this server's entry refers to; undefined where none is left. */
function inputsWithoutOurs(inputs: unknown, text: string): unknown {
  if (!Array.isArray(inputs)) return inputs;
  const isOurs = (input: unknown): boolean => {
    const { id, description } = tableOf(input) ?? {};
    if (typeof id !== "string" || typeof description !== "string" || id !== inputId(description)) return false;
    // Another server of the file may ask the same question.
    return isDeepStrictEqual(input, questionFor(description)) && text.split(`\${input:${id}}`).length <= 2;
  };
  const kept = inputs.filter((input) => !isOurs(input));
  return kept.length === 0 && inputs.length > 0 ? undefined : kept;
}

function questionFor(variable: string): Fields {
  return { type: "promptString", id: inputId(variable), description: variable, password: true };
}

/** The byte order mark, which editors of Windows put in front. */
const MARK = "\uFEFF";

function localPart(old: Fields): Fields {
  const isLocal = ([name, value]: readonly [string, unknown]): boolean =>
    !REMOTE_FIELDS.includes(name) && (name !== "type" || value === "stdio");
  return Object.fromEntries(Object.entries(old).filter(isLocal));
}

/** The questions of the file, with one for each key that the entry asks for; those that are there stay as they are. */
function withInputs(file: Fields, fields: Fields): Fields {
  const asked = Object.entries(tableIn(fields, "env")).flatMap(([variable, value]) =>
    value === `\${input:${inputId(variable)}}` ? [variable] : [],
  );
  if (asked.length === 0) return {};
  const given: unknown = file.inputs ?? [];
  const inputs: readonly unknown[] = Array.isArray(given) ? given : [undefined];
  const ids = inputs.map((input) => {
    const question = tableOf(input);
    if (question === undefined) throw new UnsafeChange('what stands under "inputs" is no list of objects');
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
  if (file === undefined) throw new UnsafeChange("it does not hold one JSON object");
  const [servers] = repeated(root, [section, "inputs"]);
  const [entry] = repeated(servers, [ENTRY_NAME]);
  repeated(entry, namesIn(entry));
  const [env] = repeated(entry, ["env"]);
  repeated(env, namesIn(env));
  return { text, value: file };
}

/**
 * The values under names. Throws an UnsafeChange where one stands there more than once: programs differ on which
 * counts.
 */
function repeated(node: Node | undefined, names: readonly string[]): readonly (Node | undefined)[] {
  return names.map((name) => {
    const found = propertiesOf(node).filter((one) => one.name === name);
    if (found.length > 1) throw new UnsafeChange(`it has ${JSON.stringify(name)} more than once in one place`);
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
  // What the parser makes has no prototype, which a copy has.
  return { root, value: structuredClone(getNodeValue(root)) };
}
