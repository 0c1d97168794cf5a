import { contextActionIn } from "../../files/cells.ts";
import { nameProblemWords, thousands } from "../../platform/text.ts";
import { LIMITS } from "../../spec/limits.ts";
import { contextIdProblem, isUlid, nameProblem, trimContextId } from "../../spec/names-and-contexts.ts";
import {
  type ContextsWish,
  type DesiredOption,
  type DesiredTargeting,
  type ParentWish,
  type Problems,
  quoted,
  type Spot,
  spotOf,
  UnreadableFile,
} from "./desired.ts";

/** A text. `isPlain`: it is not in quotation marks, which is possible only in YAML. */
interface TextNode extends Spot {
  readonly kind: "text";
  readonly text: string;
  readonly isPlain: boolean;
}

/** A number, boolean or null in JSON. In YAML, all values are read as texts. */
interface ValueNode extends Spot {
  readonly kind: "value";
  readonly value: number | boolean | null;
}

export interface ListNode extends Spot {
  readonly kind: "list";
  readonly items: Node[];
}

/** A key with its value. `line`, `column` and `offset` (in characters) are the position of the key. */
export interface Entry extends Spot {
  readonly key: string;
  readonly offset: number;
  readonly value: Node;
}

export interface MapNode extends Spot {
  readonly kind: "map";
  readonly entries: Entry[];
  /** Whether the object is in braces. In JSON, it always is; in YAML, braces are optional. */
  readonly isFlow: boolean;
}

export type Node = TextNode | ValueNode | ListNode | MapNode;

/** The maximum number of values in a file. An alias in YAML counts as all the values that it repeats. */
export const MAX_NODES = 1_000_000;
export const MAX_DEPTH = 20;

export function tooDeep(spot: Spot): UnreadableFile {
  return new UnreadableFile(
    spot,
    `the file nests more than ${MAX_DEPTH} levels deep here`,
    "A desired state has at most seven levels, down to the Context IDs of a sub-option.",
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

/** For the error about a field that only other formats have: by field name, what to write instead. */
type Advice = ReadonlyMap<string, string>;

const TO_DELETE = "To delete an option, leave it out and use prune, or use a sheet with a column Action. ";
export const ADVICE_FOR_ROWS: Advice = new Map([
  ["action", TO_DELETE],
  ["parent", "Write the name of the group in parentName. "],
]);
const ADVICE_FOR_OPTIONS = adviceOnGroups("List the option in the children of its group instead. ");
const ADVICE_FOR_CHILDREN = adviceOnGroups(
  "Leave the field out: the sub-option belongs to the group whose children list it. ",
);

function adviceOnGroups(words: string): Advice {
  return new Map([
    ["action", TO_DELETE],
    ["parentName", words],
    ["parent", words],
  ]);
}

/** Returns the entries of an object by key. Reports keys that are repeated or unknown. */
export function entriesOf(
  map: MapNode,
  valid: readonly string[],
  what: string,
  problems: Problems,
  advice: Advice = new Map(),
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
      problems.add(
        entry,
        `${quoted(entry.key)} is not a field of ${what}`,
        `${advice.get(entry.key) ?? ""}Fields of ${what}: ${valid.join(", ")}.`,
      );
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

/** Returns an ID in upper case, as the service writes it. If it is invalid, reports a problem and returns undefined. */
export function idIn(text: string, spot: Spot, problems: Problems): string | undefined {
  const id = text.trim().toUpperCase();
  if (isUlid(id)) return id;
  return problems.add(
    spot,
    `_id ${quoted(text)} is not an ID of the service`,
    "IDs are 26 digits and letters, as export writes them. Without _id, the object is found by its name, or created.",
  );
}

/** Returns a name. Undefined, with a problem, if it breaks the rules of the service (management-api 8.3). */
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

/** Adds a trimmed Context ID, or a problem that ends with `where` if it is invalid (management-api 8.1). */
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

/** Returns the Context IDs in a list. If the node is no list, reports a problem and returns undefined. */
function contextsIn(node: Node, spot: Spot, field: string, problems: Problems): readonly string[] | undefined {
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

/** Returns a boolean. Undefined, with a problem, if the node is not `true` or `false` without quotation marks. */
function truthIn(node: Node, spot: Spot, problems: Problems): boolean | undefined {
  if (node.kind === "value" && typeof node.value === "boolean") return node.value;
  const text = node.kind === "text" && node.isPlain ? node.text : undefined;
  if (text === "true" || text === "false") return text === "true";
  return problems.add(spot, "exposeChildren must be true or false", "Write true or false without quotes.");
}

/** Returns the type of an option. If it is unknown, reports a problem and returns undefined. */
function typeIn(text: string, spot: Spot, problems: Problems): "atomic" | "collection" | undefined {
  if (text === "atomic" || text === "collection") return text;
  return problems.add(spot, `${quoted(text)} is not a type of an option`, "Write collection (a group) or atomic.");
}

export type ContextAction = "set" | "add" | "remove";

/** A file with Context IDs of an option. It is read after all rows. `row`: the index of the option. */
export interface NamedFile {
  readonly path: string;
  readonly spot: Spot;
  readonly row: number;
  readonly action: ContextAction;
}

/** The options of a file as far as they were read, and the files of Context IDs that are still to be read. */
export interface Drafts {
  readonly options: DesiredOption[];
  readonly files: NamedFile[];
  readonly problems: Problems;
}

export interface RowPlace {
  readonly spot: Spot;
  readonly parent: ParentWish;
  readonly parentSpot?: Spot | undefined;
  readonly isGroup?: boolean;
}

/** The fields for Context IDs. A row may have only one of these fields. */
export const CONTEXT_FIELDS = ["contexts", "contextsFile", "contextsAtLeast"] as const;

/** Returns the text of a field, undefined if absent. If it is not a text, reports a problem and returns undefined. */
function textField(
  fields: ReadonlyMap<string, Entry>,
  field: string,
  problems: Problems,
): { readonly text: string; readonly spot: Spot } | undefined {
  const entry = fields.get(field);
  const text = entry && textIn(entry.value, entry, field, problems);
  return entry === undefined || text === undefined ? undefined : { text, spot: spotOf(entry) };
}

/** Reads an option and adds it to `drafts`. Returns its index. */
export function addOption(fields: ReadonlyMap<string, Entry>, place: RowPlace, drafts: Drafts): number {
  const { problems, options } = drafts;
  const row = options.length;
  const id = textField(fields, "_id", problems);
  const name = textField(fields, "name", problems);
  const type = textField(fields, "type", problems);
  const expose = fields.get("exposeChildren");
  const [held, second] = CONTEXT_FIELDS.flatMap((field) => fields.get(field) ?? []);
  if (held !== undefined && second !== undefined) {
    problems.add(
      second,
      `an option has both ${held.key} and ${second.key}`,
      "Keep one: contexts and contextsFile list all its Context IDs, contextsAtLeast only some of them.",
      [held.line, second.line],
    );
  }
  const option: DesiredOption = {
    ...spotOf(place.spot),
    _id: id && idIn(id.text, id.spot, problems),
    name: name && nameIn(name.text, name.spot, problems),
    parent: place.parent,
    type: (type && typeIn(type.text, type.spot, problems)) ?? (place.isGroup === true ? "collection" : undefined),
    exposeChildren: expose && truthIn(expose.value, expose, problems),
    contexts: contextsOf(fields, row, drafts),
    spots: {
      _id: id?.spot,
      name: name?.spot,
      parent: place.parentSpot,
      type: type?.spot,
      exposeChildren: expose && spotOf(expose),
      contexts: held && spotOf(held),
    },
  };
  if (!fields.has("_id") && !fields.has("name")) {
    problems.add(place.spot, "an option has neither _id nor name", "Give its name, or the _id that export wrote.");
  }
  options.push(option);
  return row;
}

/** Returns what to do with Context IDs. For those in a file, `ids` is empty until the file is read. */
export function wishFor(ids: readonly string[], action: ContextAction): ContextsWish {
  if (action === "remove") return { ids: [], atLeast: true, remove: ids };
  return { ids, atLeast: action === "add" };
}

/** Joins what two rows of one option do with its Context IDs. Both must set Context IDs, or neither. */
export function joinedWishes(one: ContextsWish, other: ContextsWish): ContextsWish {
  const remove = [...new Set([...(one.remove ?? []), ...(other.remove ?? [])])];
  const ids = [...new Set([...one.ids, ...other.ids])];
  const cells = [...(one.split?.cells ?? []), ...(other.split?.cells ?? [])];
  const { separator } = one.split ?? other.split ?? {};
  // If rows of one option both add and remove Context IDs, it is unknown which of the split cells are removed. So
  // none are joined again.
  const isOne = remove.length === 0 || ids.length === 0;
  const split = isOne && separator !== undefined && { split: { cells, separator } };
  return { ids, atLeast: one.atLeast, ...(remove.length > 0 && { remove }), ...split };
}

/** Reads the Context IDs of an option. The field `op` of NDJSON rows says whether they are set, added or removed. */
function contextsOf(
  fields: ReadonlyMap<string, Entry>,
  row: number,
  { problems, files }: Drafts,
): ContextsWish | undefined {
  const op = textField(fields, "op", problems);
  const said = op && contextActionIn(op.text);
  if (op !== undefined && said === null) {
    problems.add(
      op.spot,
      `the op ${quoted(op.text)} is not known`,
      'Write "set", "add" or "remove" as op, or leave op out.',
    );
  }
  const action = said ?? "set";
  for (const field of ["contexts", "contextsAtLeast"] as const) {
    const entry = fields.get(field);
    const ids = entry && contextsIn(entry.value, entry, field, problems);
    if (ids === undefined) continue;
    return wishFor(ids, field === "contextsAtLeast" && said !== "remove" ? "add" : action);
  }
  const file = textField(fields, "contextsFile", problems);
  if (file === undefined) return undefined;
  files.push({ path: file.text, spot: file.spot, row, action });
  return wishFor([], action);
}

const ROOT_FIELDS = ["version", "targeting", "options"];
const OPTION_FIELDS = ["_id", "name", "type", "exposeChildren", ...CONTEXT_FIELDS, "children"];
const CHILD_FIELDS = ["_id", "name", "type", ...CONTEXT_FIELDS];

/** Reads a YAML or JSON file into `drafts`. Returns the targeting that the file names, if any. */
export function readTree(root: Node, drafts: Drafts): DesiredTargeting | undefined {
  const { problems } = drafts;
  if (root.kind !== "map") {
    const list =
      root.kind === "list" ? " To read a list of options alone, save it as NDJSON: one object on each line." : "";
    problems.add(
      root,
      `a desired state must be an object, not ${kindOf(root)}`,
      `Write version, targeting and options.${list}`,
    );
    return undefined;
  }
  if (isForeign(root, problems)) return undefined;
  const fields = entriesOf(root, [...ROOT_FIELDS, "$schema"], "a desired state", problems);
  checkVersion(fields.get("version"), root, problems);
  const options = fields.get("options");
  if (options === undefined) {
    problems.add(root, "options is missing", "List the options under options; [] lists none.");
  } else if (options.value.kind !== "list") {
    problems.add(
      options,
      `options must be a list, not ${kindOf(options.value)}`,
      "Write a list: with - before each option in YAML, or in [ ] in JSON.",
    );
  } else {
    for (const item of options.value.items) readOption(item, drafts);
  }
  return readTargeting(fields.get("targeting"), problems);
}

export function checkVersion(entry: Entry | undefined, where: Spot, problems: Problems): void {
  if (entry === undefined) {
    problems.add(where, "version is missing", "Write version: 1.");
    return;
  }
  const { value } = entry;
  const isOne =
    value.kind === "value" ? value.value === 1 : value.kind === "text" && value.isPlain && value.text === "1";
  if (isOne) return;
  const found =
    value.kind === "text" ? quoted(value.text) : value.kind === "value" ? String(value.value) : kindOf(value);
  problems.add(entry, `version ${found} is not known`, "This program reads version 1, written as a number.");
}

export function readTargeting(entry: Entry | undefined, problems: Problems): DesiredTargeting | undefined {
  if (entry === undefined) return undefined;
  if (entry.value.kind !== "map") {
    return problems.add(
      entry,
      `targeting must have _id or name, not ${kindOf(entry.value)}`,
      "Write _id, name, or both below targeting.",
    );
  }
  const fields = entriesOf(entry.value, ["_id", "name"], "targeting", problems);
  const id = textField(fields, "_id", problems);
  const name = textField(fields, "name", problems);
  if (entry.value.entries.length === 0)
    problems.add(entry, "targeting has neither _id nor name", "Give one of them, or both.");
  return {
    ...spotOf(fields.get("name") ?? fields.get("_id") ?? entry),
    _id: id?.text && idIn(id.text, id.spot, problems),
    name: name && nameIn(name.text, name.spot, problems),
  };
}

function readOption(node: Node, drafts: Drafts): void {
  const map = optionMap(node, drafts.problems);
  if (map === undefined) return;
  const fields = entriesOf(map, OPTION_FIELDS, "an option", drafts.problems, ADVICE_FOR_OPTIONS);
  const children = fields.get("children");
  const isGroup = children !== undefined;
  const row = addOption(fields, { spot: map, parent: { kind: "top" }, isGroup }, drafts);
  if (children === undefined) return;
  if (children.value.kind !== "list") {
    drafts.problems.add(
      children,
      `children must be a list, not ${kindOf(children.value)}`,
      "Write [] to manage none, or leave children out.",
    );
    return;
  }
  for (const child of children.value.items) readChild(child, { kind: "row", row }, drafts);
}

function readChild(node: Node, parent: ParentWish, drafts: Drafts): void {
  const { problems } = drafts;
  const map = optionMap(node, problems);
  if (map === undefined) return;
  const group = map.entries.find(({ key }) => key === "children" || key === "exposeChildren");
  if (group !== undefined) {
    problems.add(
      group,
      `a sub-option has ${group.key}, but a group cannot be inside a group`,
      "Put it at the top level.",
    );
  }
  const entries = group === undefined ? map.entries : map.entries.filter(({ key }) => !GROUP_FIELDS.includes(key));
  const fields = entriesOf({ ...map, entries }, CHILD_FIELDS, "a sub-option", problems, ADVICE_FOR_CHILDREN);
  addOption(fields, { spot: map, parent }, drafts);
}

const GROUP_FIELDS = ["children", "exposeChildren"];

function optionMap(node: Node, problems: Problems): MapNode | undefined {
  if (node.kind === "map") return node;
  const name = node.kind === "text" && node.text !== "" ? `Write name: ${node.text.slice(0, 36)}.` : "Give its name.";
  return problems.add(node, `an option must be an object, not ${kindOf(node)}`, name);
}

/** Returns whether a file is something else than a desired state. If so, reports only that, not each unknown key. */
function isForeign(root: MapNode, problems: Problems): boolean {
  const keys = new Set(root.entries.map(({ key }) => key));
  if (ROOT_FIELDS.some((field) => keys.has(field) && field !== "version") || keys.size === 0) return false;
  const [first] = root.entries;
  const found = [...keys].slice(0, 5).map(quoted).join(", ");
  problems.add(
    first ?? root,
    `this is not a desired state: it has neither targeting nor options, but ${found}`,
    "A desired state has version: 1, targeting and options; targeting-mcp export writes one.",
  );
  return true;
}
