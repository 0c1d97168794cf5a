import { contextActionIn } from "../../files/cells.ts";
import {
  type ContextsWish,
  type DesiredOption,
  type DesiredTargeting,
  type ParentWish,
  type Problems,
  quoted,
  type Spot,
  spotOf,
} from "./desired.ts";
import {
  contextsIn,
  type Entry,
  entriesOf,
  idIn,
  kindOf,
  type MapNode,
  type Node,
  nameIn,
  textIn,
  truthIn,
  typeIn,
} from "./node.ts";

/** A file with the Context IDs of a row. It is read after all rows were read. */
export interface NamedFile {
  readonly path: string;
  readonly spot: Spot;
  readonly row: number;
}

/** The options that were read so far, and the files of Context IDs that are still to be read. */
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

/** The fields for Context IDs. A row may have only one of them. */
export const CONTEXT_FIELDS = ["contexts", "contextsFile", "contextsAtLeast"] as const;

/** Returns the text of a field. Undefined if the field is absent, or if it is not a text, which is reported. */
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
  const { problems, options, files } = drafts;
  const row = options.length;
  const id = textField(fields, "_id", problems);
  const name = textField(fields, "name", problems);
  const type = textField(fields, "type", problems);
  const file = textField(fields, "contextsFile", problems);
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
  if (file !== undefined) files.push({ path: file.text, spot: file.spot, row });
  const option: DesiredOption = {
    ...spotOf(place.spot),
    _id: id && idIn(id.text, id.spot, problems),
    name: name && nameIn(name.text, name.spot, problems),
    parent: place.parent,
    type: (type && typeIn(type.text, type.spot, problems)) ?? (place.isGroup === true ? "collection" : undefined),
    exposeChildren: expose && truthIn(expose.value, expose, problems),
    contexts: contextsOf(fields, problems),
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

/** Reads the Context IDs of an option. In rows, `op` says whether they are set, added or removed. */
function contextsOf(fields: ReadonlyMap<string, Entry>, problems: Problems): ContextsWish | undefined {
  const op = textField(fields, "op", problems);
  const said = op && contextActionIn(op.text);
  if (op !== undefined && said === null) {
    problems.add(op.spot, `the op ${quoted(op.text)} is not known`, "Write set, add or remove, or leave op out.");
  }
  for (const field of ["contexts", "contextsAtLeast"] as const) {
    const entry = fields.get(field);
    const ids = entry && contextsIn(entry.value, entry, field, problems);
    if (ids === undefined) continue;
    if (said === "remove") return { ids: [], atLeast: true, remove: ids };
    return { ids, atLeast: field === "contextsAtLeast" || said === "add" };
  }
  return undefined;
}

const ROOT_FIELDS = ["version", "targeting", "options"];
const OPTION_FIELDS = ["_id", "name", "type", "exposeChildren", ...CONTEXT_FIELDS, "children"];
const CHILD_FIELDS = ["_id", "name", "type", ...CONTEXT_FIELDS];

/** Reads a YAML or JSON file into `drafts`. Returns the targeting that the file names. */
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
    problems.add(options, `options must be a list, not ${kindOf(options.value)}`, "Begin each option with -.");
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
      "Write targeting with its _id, its name, or both, below it.",
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
  const fields = entriesOf(map, OPTION_FIELDS, "an option", drafts.problems);
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
  addOption(entriesOf({ ...map, entries }, CHILD_FIELDS, "a sub-option", problems), { spot: map, parent }, drafts);
}

const GROUP_FIELDS = ["children", "exposeChildren"];

function optionMap(node: Node, problems: Problems): MapNode | undefined {
  if (node.kind === "map") return node;
  const name = node.kind === "text" && node.text !== "" ? `Write name: ${node.text.slice(0, 36)}.` : "Give its name.";
  return problems.add(node, `an option must be an object, not ${kindOf(node)}`, name);
}

/** Returns whether a file is of another kind. If so, reports one problem instead of one per key. */
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
