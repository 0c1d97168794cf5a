import { contextActionIn } from "../../files/cells.ts";
import {
  type ContextsWish,
  type DesiredOption,
  type ParentWish,
  type Problems,
  quoted,
  type Spot,
  spotOf,
} from "./desired.ts";
import type { Entry } from "./node.ts";
import { contextsIn, idIn, nameIn, textIn, truthIn, typeIn } from "./values.ts";

/** A file of Context IDs that a row names, to be read once the rows are known. */
export interface NamedFile {
  readonly path: string;
  readonly spot: Spot;
  /** The position of the row among the options. */
  readonly row: number;
}

/** Rows as they are read: the options so far, and what is still to be looked up for them. */
export interface Drafts {
  readonly options: DesiredOption[];
  readonly files: NamedFile[];
  readonly problems: Problems;
}

/** What a row is besides its fields. */
export interface RowPlace {
  readonly spot: Spot;
  readonly parent: ParentWish;
  /** Where its parent stands, if the row says that itself. */
  readonly parentSpot?: Spot | undefined;
  /** Something else than `type` that makes it a group: its children. */
  readonly isGroup?: boolean;
}

/** The fields that say which Context IDs an option holds; a row has one of them at most. */
export const CONTEXT_FIELDS = ["contexts", "contextsFile", "contextsAtLeast"] as const;

/** The text of a field, and where it stands; undefined where there is none. Another value is a problem. */
export function textField(
  fields: ReadonlyMap<string, Entry>,
  field: string,
  problems: Problems,
): { readonly text: string; readonly spot: Spot } | undefined {
  const entry = fields.get(field);
  const text = entry && textIn(entry.value, entry, field, problems);
  return entry === undefined || text === undefined ? undefined : { text, spot: spotOf(entry) };
}

/** Adds the option that the fields of an object describe; gives its position. */
export function addOption(fields: ReadonlyMap<string, Entry>, place: RowPlace, drafts: Drafts): number {
  const { problems, options, files } = drafts;
  const row = options.length;
  const text = (field: string) => textField(fields, field, problems);
  const [id, name, type, file] = [text("_id"), text("name"), text("type"), text("contextsFile")];
  const expose = fields.get("exposeChildren");
  const [held, second] = CONTEXT_FIELDS.flatMap((field) => fields.get(field) ?? []);
  if (held !== undefined && second !== undefined) tellBoth(held, second, problems);
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

function tellBoth(first: Entry, second: Entry, problems: Problems): void {
  problems.add(
    second,
    `an option has both ${first.key} and ${second.key}`,
    "Keep one: contexts and contextsFile say exactly what it holds, contextsAtLeast what it holds among others.",
    [first.line, second.line],
  );
}

/** The Context IDs that fields name; `op`, which only rows have, says whether they are set, added or removed. */
function contextsOf(fields: ReadonlyMap<string, Entry>, problems: Problems): ContextsWish | undefined {
  const op = textField(fields, "op", problems);
  const said = op && contextActionIn(op.text);
  if (op !== undefined && said === null) {
    problems.add(op.spot, `op is ${quoted(op.text)}`, "Write set, add or remove, or leave it out.");
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
