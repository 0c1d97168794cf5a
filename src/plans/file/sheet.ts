import { actionIn, BETWEEN_CONTEXTS, contextActionIn, splitter } from "../../files/cells.ts";
import { NONE, type ValidColumns } from "../../files/columns.ts";
import { damageIn } from "../../files/damage.ts";
import type { SheetForm } from "../../files/input-file.ts";
import type { OpenedFile } from "../../files/rows.ts";
import { type SheetHeader, type SheetRow, sheetRows } from "../../files/sheet-rows.ts";
import { truthReader } from "../../files/truth.ts";
import { detached } from "../../platform/text.ts";
import { isUlid } from "../../spec/names-and-contexts.ts";
import {
  type ContextsWish,
  type DesiredOption,
  type DesiredTargeting,
  type ParentWish,
  quoted,
  type Spot,
  type Suspect,
  spotOf,
} from "./desired.ts";
import {
  addContextId,
  CONTEXT_FIELDS,
  type ContextAction,
  type Drafts,
  idIn,
  joinedWishes,
  MAX_NODES,
  type NamedFile,
  nameIn,
  tooMany,
  wishFor,
} from "./tree.ts";

/** The columns of a desired state, which may be in any order. */
export const desiredRows: ValidColumns = {
  columns: [
    ...["_id", "name", "parentName", "type", "exposeChildren"],
    ...CONTEXT_FIELDS,
    ...["contextId", "op", "action", "targeting"],
  ],
  required: [["_id", "name"]],
};

export interface ReadSheet {
  readonly targeting?: DesiredTargeting | undefined;
  readonly suspects: readonly Suspect[];
  readonly hasActions?: true;
  readonly columns: readonly { readonly heading: string; readonly column: string }[];
}

export async function readSheet({ file, bytes }: OpenedFile, drafts: Drafts): Promise<ReadSheet> {
  let rows: Rows | undefined;
  let values = 0;
  const read = sheetRows({ bytes, file, shape: desiredRows, withPlaces: true }, (header) => {
    rows = new Rows(header, file.sheet, drafts);
  });
  for await (const batch of read) {
    for (const row of batch) {
      values += row.cells.length;
      if (values + (rows?.contextIds ?? 0) > MAX_NODES) throw tooMany(spotIn(row, 0));
      rows?.add(row);
    }
  }
  const { targeting, suspects = [], hasActions = false } = rows ?? {};
  const columns = rows?.columns() ?? [];
  return { targeting, suspects, columns, ...(hasActions && { hasActions }) };
}

/** Returns the position of a cell: its line and column in a text file, its row and column in a workbook. */
function spotIn({ line, places }: SheetRow, at: number): Spot {
  const place = places?.[at];
  return place === undefined ? { line, column: at + 1 } : spotOf(place);
}

interface Cell extends Spot {
  readonly text: string;
  readonly isText: boolean;
}

/** The Context IDs of a row: what to do with them, and the file that contains them, if there is one. */
interface SheetContexts {
  readonly wish?: ContextsWish;
  readonly spot: Spot;
  readonly file?: Omit<NamedFile, "row">;
}

const KEEP: ParentWish = { kind: "keep" };
const TOP: ParentWish = { kind: "top" };

class Rows {
  readonly suspects: Suspect[] = [];
  targeting: DesiredTargeting | undefined;
  hasActions = false;
  contextIds = 0;
  readonly #header: SheetHeader;
  readonly #drafts: Drafts;
  readonly #separator: string;
  readonly #textsOf: ReturnType<typeof splitter>;
  readonly #isGroup: ReturnType<typeof truthReader>;
  readonly #isExposed: ReturnType<typeof truthReader>;
  readonly #oneARow: boolean;
  /** Whether each cell has one Context ID, even if it contains a separator. */
  readonly #isOne: boolean;
  /** The indexes of options by ID. If each row has one Context ID, options without an ID are indexed by name. */
  readonly #known = new Map<string, number>();

  constructor(header: SheetHeader, { separator, signs }: SheetForm = {}, drafts: Drafts) {
    this.#header = header;
    this.#drafts = drafts;
    this.#oneARow = header.at("contextId") >= 0;
    this.#isOne = this.#oneARow && separator === undefined;
    this.#separator = separator ?? BETWEEN_CONTEXTS;
    this.#textsOf = splitter(this.#separator);
    this.#isGroup = truthReader(signs?.type);
    this.#isExposed = truthReader(signs?.exposeChildren);
  }

  columns(): ReadSheet["columns"] {
    const { names, cells } = this.#header;
    return names.flatMap((column, at) => (column === "" ? [] : [{ heading: (cells[at] ?? "").trim(), column }]));
  }

  add(row: SheetRow): void {
    const { options, files, problems } = this.#drafts;
    const { cells } = row;
    const columns = this.#header.cells.length;
    const beyond = cells.findIndex((cell, at) => at >= columns && cell !== "");
    if (beyond >= 0) {
      problems.add(
        spotIn(row, beyond),
        `the row has more cells than the ${columns} columns of the header`,
        "If a cell contains the separator of the columns, put the cell in quotes.",
      );
      return;
    }
    const at = (column: string): Cell | undefined => {
      const position = this.#header.at(column);
      const text = cells[position] ?? "";
      return text.trim() === ""
        ? undefined
        : { text: detached(text), isText: row.asText?.has(position) === true, ...spotIn(row, position) };
    };
    this.#noteTargeting(at("targeting"));
    const contexts = this.#contexts(at);
    const option = this.#option(at, contexts, spotIn(row, 0));
    const index = this.#indexOf(option);
    const first = options[index];
    options[index] = first === undefined ? option : this.#merged(first, option);
    if (contexts?.file !== undefined) files.push({ ...contexts.file, row: index });
  }

  /** Returns the index of the earlier option that a row continues, or otherwise the index for a new option. */
  #indexOf(option: DesiredOption): number {
    const { options } = this.#drafts;
    const key = option._id ?? (this.#oneARow ? option.name : undefined);
    const before = key === undefined ? undefined : this.#known.get(key);
    const first = before === undefined ? undefined : options[before];
    // Several rows can be about one option: in a sheet with one Context ID in each row, all with its ID or (without
    // IDs) its name. In other sheets, they have its ID, name and Context IDs. Any other row that repeats an ID is
    // reported as a problem later.
    const continues = this.#oneARow || (option.contexts !== undefined && option.name === first?.name);
    if (before !== undefined && continues) return before;
    if (key !== undefined) this.#known.set(key, options.length);
    return options.length;
  }

  #noteTargeting(cell: Cell | undefined): void {
    if (cell === undefined) return;
    const text = cell.text.trim();
    const value = isUlid(text.toUpperCase()) ? { _id: text.toUpperCase() } : { name: text };
    this.targeting ??= { ...spotOf(cell), ...value };
    const { _id, name } = this.targeting;
    if (_id === value._id && name === value.name) return;
    this.#drafts.problems.add(
      cell,
      `the row belongs to the targeting ${quoted(text)}, but the rows above belong to ${quoted(_id ?? name ?? "")}`,
      "Plan the rows of one targeting at a time.",
    );
  }

  #option(at: (column: string) => Cell | undefined, contexts: SheetContexts | undefined, spot: Spot): DesiredOption {
    const { problems } = this.#drafts;
    const id = at("_id");
    const name = at("name");
    const parent = at("parentName");
    const type = at("type");
    const expose = at("exposeChildren");
    if (id === undefined && name === undefined) {
      problems.add(spot, "a row has neither _id nor name", "Give its name, or the _id that export wrote.");
    }
    const action = at("action");
    const wanted = action && actionIn(action.text);
    if (action !== undefined) this.hasActions = true;
    if (action !== undefined && wanted === null) {
      problems.add(
        action,
        `the Action ${quoted(action.text)} is not known`,
        "Write Add, Edit or Remove, or leave the cell empty.",
      );
    }
    const kind = type && this.#type(type);
    const exposed = expose && this.#truth(expose);
    return {
      line: spot.line,
      column: spot.column,
      isRemoved: wanted === "remove" ? true : undefined,
      _id: id && this.#id(id),
      name: name && this.#name(name),
      parent: this.#parent(parent),
      type: kind,
      // A column of checkboxes has a FALSE in every row, even for options that are not groups.
      exposeChildren: exposed === false && kind === "atomic" ? undefined : exposed,
      contexts: contexts?.wish,
      spots: {
        _id: id && spotOf(id),
        name: name && spotOf(name),
        parent: parent && spotOf(parent),
        type: type && spotOf(type),
        exposeChildren: expose && spotOf(expose),
        contexts: contexts?.spot,
      },
    };
  }

  #merged(first: DesiredOption, further: DesiredOption): DesiredOption {
    const { problems } = this.#drafts;
    const isOther = (field: "name" | "type" | "exposeChildren"): boolean =>
      further[field] !== undefined && first[field] !== undefined && further[field] !== first[field];
    const differs =
      isOther("name") ||
      isOther("type") ||
      isOther("exposeChildren") ||
      (further.parent.kind !== "keep" && JSON.stringify(further.parent) !== JSON.stringify(first.parent));
    if (differs || (further.isRemoved ?? false) !== (first.isRemoved ?? false)) {
      problems.add(
        further,
        `this row and line ${first.line} describe the same option, but differ in more than the Context IDs`,
        "Write the same name, group, type, exposeChildren and Action in all rows of an option.",
        [first.line, further.line],
      );
    }
    const one = first.contexts;
    const other = further.contexts;
    if (one === undefined || other === undefined) return { ...first, contexts: one ?? other };
    if (one.atLeast !== other.atLeast) {
      problems.add(
        further,
        `rows of the option on line ${first.line} mix Set with Add or Remove`,
        "Write Set in all of them, or in none.",
        [first.line, further.line],
      );
    }
    return { ...first, contexts: joinedWishes(one, other) };
  }

  #id(cell: Cell): string | undefined {
    if (!/^\d{1,6}$/.test(cell.text.trim())) return idIn(cell.text, cell, this.#drafts.problems);
    return this.#drafts.problems.add(
      cell,
      `_id ${quoted(cell.text)} is not an ID of the service`,
      'IDs are 26 digits and letters, as export writes them. If the column numbers the rows, leave it out: columns {"_id":""}.',
    );
  }

  /** Reads a name. A name that looks damaged is not checked here: it is accepted if the service or the base has it. */
  #name(cell: Cell): string | undefined {
    if (!this.#isSuspect(cell, cell.text, "name")) return nameIn(cell.text, cell, this.#drafts.problems);
    return cell.text;
  }

  #parent(cell: Cell | undefined): ParentWish {
    if (cell === undefined) return KEEP;
    if (cell.text.trim() === NONE) return TOP;
    this.#isSuspect(cell, cell.text, "parentName");
    return { kind: "name", name: cell.text };
  }

  #type(cell: Cell): DesiredOption["type"] {
    const isGroup = this.#isGroup(cell.text);
    if (typeof isGroup === "boolean") return isGroup ? "collection" : "atomic";
    return this.#drafts.problems.add(
      cell,
      `the value ${quoted(cell.text.trim())} of Is Group cannot be read as yes or no`,
      "Write yes for a group or no for an option, or leave the cell empty.",
    );
  }

  #truth(cell: Cell): boolean | undefined {
    const truth = this.#isExposed(cell.text);
    if (typeof truth === "boolean") return truth;
    return this.#drafts.problems.add(
      cell,
      "exposeChildren must be true or false, or yes or no",
      "Write yes or no, or leave the cell empty.",
    );
  }

  #isSuspect(cell: Cell, text: string, field: Suspect["field"]): boolean {
    const damage = damageIn(text, cell.isText);
    // The check of names reports invisible characters in more detail.
    if (damage === undefined || (damage.damage === "invisible" && field === "name")) return false;
    this.suspects.push({ ...spotOf(cell), text, field });
    return true;
  }

  #contexts(at: (column: string) => Cell | undefined): SheetContexts | undefined {
    const { problems } = this.#drafts;
    const [cell, second] = [...CONTEXT_FIELDS, "contextId"].flatMap((field) => at(field) ?? []);
    const action = this.#contextAction(at("op"));
    if (cell === undefined) return undefined;
    const spot = spotOf(cell);
    if (second !== undefined) {
      problems.add(
        second,
        "a row may have only one of contexts, contextsFile, contextsAtLeast and contextId",
        "Keep only one of these fields.",
        [cell.line, second.line],
      );
      return { spot };
    }
    if (at("contextsFile") !== undefined) {
      return { wish: wishFor([], action), spot, file: { path: cell.text, spot, action } };
    }
    const isOne = this.#isOne && at("contextId") !== undefined;
    const texts = this.#texts(cell, isOne);
    if (texts === undefined) return { spot };
    const ids = new Set<string>();
    for (const text of texts) {
      this.#isSuspect(cell, text, "contexts");
      addContextId(ids, text, cell, problems);
    }
    this.contextIds += texts.length;
    const isTakenApart = !isOne && texts.length > 1 && !cell.text.trim().startsWith("[");
    const split = isTakenApart ? { split: { cells: [cell.text], separator: this.#separator } } : {};
    const isAdded = at("contextsAtLeast") !== undefined && action !== "remove";
    return { wish: { ...wishFor([...ids], isAdded ? "add" : action), ...split }, spot };
  }

  #contextAction(cell: Cell | undefined): ContextAction {
    const action = cell && contextActionIn(cell.text);
    if (cell !== undefined && action === null) {
      this.#drafts.problems.add(
        cell,
        `the Context Action ${quoted(cell.text)} is not known`,
        "Write Set, Add or Remove, or leave the cell empty.",
      );
    }
    return action ?? "set";
  }

  #texts(cell: Cell, isOne: boolean): readonly string[] | undefined {
    if (isOne) return cell.text.trim() === NONE ? [] : [cell.text];
    const texts = this.#textsOf(cell.text);
    if (texts !== undefined) return cell.text.trim().startsWith("[") ? texts : texts.filter((one) => one.trim() !== "");
    return this.#drafts.problems.add(
      cell,
      "the cell begins with [ but is not a JSON array of texts",
      'Write ["a", "b"], or separate Context IDs by |; an ID that begins with [ needs the array.',
    );
  }
}
