import { parseJson } from "../../../platform/json.ts";
import {
  type ContextsWish,
  type DesiredOption,
  type ParentWish,
  type Problems,
  quoted,
  type Spot,
  type Suspect,
  spotOf,
} from "../desired.ts";
import { CONTEXT_FIELDS, type Drafts } from "../draft.ts";
import { MOST_NODES, tooMany } from "../node.ts";
import { addContextId, idIn, nameIn, typeIn } from "../values.ts";
import { type Cell, csvCells } from "./csv-cells.ts";
import { looksDamaged } from "./spreadsheet.ts";

/** The columns of a CSV file; it needs `_id` or `name`, in any order. */
const COLUMNS = ["_id", "name", "parentName", "type", "exposeChildren", ...CONTEXT_FIELDS];

/** What a cell says that means none, or the top level; a blank cell keeps what is there. */
const NONE = "[]";

/**
 * Reads CSV: an option a row. Gives the texts that a spreadsheet may have made of others. Throws an UnreadableFile
 * where quotes do not match.
 */
export function readCsv(text: string, drafts: Drafts): readonly Suspect[] {
  const rows = new Rows(drafts);
  let header: readonly string[] | undefined;
  let values = 0;
  for (const cells of csvCells(text)) {
    if (header === undefined) {
      header = readHeader(cells, drafts.problems);
      if (header.length === 0) break;
      continue;
    }
    values += cells.length;
    const [first] = cells;
    if (first !== undefined && values + rows.contextIds > MOST_NODES) throw tooMany(first);
    rows.add(cells, header);
  }
  if (header === undefined) {
    drafts.problems.add(
      { line: 1, column: 1 },
      "the file is empty",
      `Its first line names columns: ${COLUMNS.join(",")}.`,
    );
  }
  return rows.suspects;
}

/** The names of the columns; none where the rows below make no sense. */
function readHeader(cells: readonly Cell[], problems: Problems): readonly string[] {
  const names = cells.map(({ text }) => text.trim());
  const [only] = cells;
  const separator = names.length === 1 ? /[;\t]/.exec(names[0] ?? "")?.[0] : undefined;
  if (separator !== undefined && only !== undefined) {
    problems.add(
      only,
      `the columns are separated by ${separator === ";" ? "semicolons" : "tabs"}`,
      "Save it with commas: CSV UTF-8 (comma delimited).",
    );
    return [];
  }
  for (const [at, cell] of cells.entries()) {
    const name = names[at] ?? "";
    const first = names.indexOf(name);
    if (name !== "" && first !== at)
      problems.add(cell, `the column ${quoted(name)} stands twice`, "Keep one of them.", [cell.line, cell.line]);
    else if (name !== "" && !COLUMNS.includes(name)) {
      problems.add(cell, `${quoted(name)} is no column of a desired state`, `Columns: ${COLUMNS.join(", ")}.`);
    }
  }
  if (names.includes("_id") || names.includes("name")) return names;
  problems.add(
    only ?? { line: 1, column: 1 },
    "the first line names neither the column _id nor name",
    `Columns: ${COLUMNS.join(", ")}.`,
  );
  return [];
}

class Rows {
  readonly suspects: Suspect[] = [];
  contextIds = 0;
  readonly #drafts: Drafts;

  constructor(drafts: Drafts) {
    this.#drafts = drafts;
  }

  add(cells: readonly Cell[], header: readonly string[]): void {
    const { options, problems } = this.#drafts;
    if (cells.every(({ text }) => text.trim() === "")) return;
    const [first] = cells;
    const beyond = cells.slice(header.length).find(({ text }) => text !== "");
    if (first === undefined) return;
    if (beyond !== undefined) {
      problems.add(
        beyond,
        `the row has more cells than the ${header.length} columns of the first line`,
        "Put a cell with a comma in quotes.",
      );
      return;
    }
    const at = (column: string): Cell | undefined => {
      const cell = cells[header.indexOf(column)];
      return cell === undefined || cell.text.trim() === "" ? undefined : cell;
    };
    options.push(this.#option(at, spotOf(first)));
  }

  #option(at: (column: string) => Cell | undefined, spot: Spot): DesiredOption {
    const { problems } = this.#drafts;
    const [id, name, parent, type, expose] = [
      at("_id"),
      at("name"),
      at("parentName"),
      at("type"),
      at("exposeChildren"),
    ];
    const contexts = this.#contexts(at);
    if (id === undefined && name === undefined) {
      problems.add(spot, "a row has neither _id nor name", "Give its name, or the _id that export wrote.");
    }
    return {
      ...spot,
      _id: id && idIn(id.text, id, problems),
      name: name && this.#name(name),
      parent: this.#parent(parent),
      type: type && typeIn(type.text.trim(), type, problems),
      exposeChildren: expose && truthOf(expose, problems),
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

  /** A damaged text may still be what the service holds: that is looked at later, and the rules of names with it. */
  #name(cell: Cell): string | undefined {
    if (!this.#isSuspect(cell, cell.text, "name")) return nameIn(cell.text, cell, this.#drafts.problems);
    return cell.text;
  }

  #parent(cell: Cell | undefined): ParentWish {
    if (cell === undefined) return { kind: "keep" };
    if (cell.text.trim() === NONE) return { kind: "top" };
    this.#isSuspect(cell, cell.text, "parentName");
    return { kind: "name", name: cell.text };
  }

  #isSuspect(spot: Spot, text: string, field: Suspect["field"]): boolean {
    if (!looksDamaged(text)) return false;
    this.suspects.push({ ...spotOf(spot), text, field });
    return true;
  }

  #contexts(
    at: (column: string) => Cell | undefined,
  ): { readonly wish?: ContextsWish; readonly spot: Spot } | undefined {
    const { problems, files, options } = this.#drafts;
    const [cell, second] = CONTEXT_FIELDS.flatMap((field) => at(field) ?? []);
    if (cell === undefined) return undefined;
    const spot = spotOf(cell);
    if (second !== undefined) {
      problems.add(second, "a row has two of contexts, contextsFile and contextsAtLeast", "Keep one of them.", [
        cell.line,
        second.line,
      ]);
      return { spot };
    }
    if (cell === at("contextsFile")) {
      files.push({ path: cell.text, spot, row: options.length });
      return { spot };
    }
    const texts = this.#texts(cell);
    if (texts === undefined) return { spot };
    const ids = new Set<string>();
    for (const text of texts) {
      this.#isSuspect(cell, text, "contexts");
      addContextId(ids, text, cell, problems);
    }
    this.contextIds += texts.length;
    return { wish: { ids: [...ids], atLeast: cell === at("contextsAtLeast") }, spot };
  }

  /** `a|b`, or where the cell begins with `[` a JSON array of texts. */
  #texts(cell: Cell): readonly string[] | undefined {
    const text = cell.text.trim();
    if (!text.startsWith("["))
      return text
        .split("|")
        .map((one) => one.trim())
        .filter((one) => one !== "");
    const list = stringsIn(text);
    if (list !== undefined) return list;
    return this.#drafts.problems.add(
      cell,
      "the cell begins with [ and is no JSON array of texts",
      'Write ["a", "b"], or separate Context IDs by |; an ID that begins with [ needs the array.',
    );
  }
}

function stringsIn(text: string): readonly string[] | undefined {
  const value = parseJson(text);
  if (!Array.isArray(value)) return undefined;
  const list: readonly unknown[] = value;
  return list.every((one) => typeof one === "string") ? list : undefined;
}

/** Spreadsheets write truth values in capital letters. */
function truthOf(cell: Cell, problems: Problems): boolean | undefined {
  const text = cell.text.trim().toLowerCase();
  if (text === "true" || text === "false") return text === "true";
  return problems.add(cell, "exposeChildren must be true or false", "Write true, false, or nothing.");
}
