import * as z from "zod";
import { cellReader, contextActionIn, contextsReader, damagedName, NONE, truthIn } from "../../files/cells.ts";
import { fieldProblem } from "../../files/fields.ts";
import { invalidRow, type RowContent, type RowShape } from "../../files/rows.ts";
import type { AddOptionInput } from "./inputs.ts";
import { rowChecker } from "./sheet-columns.ts";

const ids = z.array(z.string());
const child = z.strictObject({ name: z.string(), contexts: ids.optional() });
const option = z.strictObject({
  ...child.shape,
  type: z.enum(["atomic", "collection"]).optional(),
  children: z.array(child).optional(),
  exposeChildren: z.boolean().optional(),
  parent: z.string().optional(),
  parentName: z.string().nullish(),
  _id: z.string().optional(),
  op: z.string().optional(),
});

/** An option of a file; rows about one option add Context IDs to it. */
export interface OptionRow extends AddOptionInput {
  _id?: string | undefined;
  readonly contexts?: string[] | undefined;
  type?: "atomic" | "collection" | undefined;
  exposeChildren?: boolean | undefined;
  parentName?: string | undefined;
}

/** The columns of a file of options. */
const OPTION_COLUMNS = [
  "name",
  "contextId",
  "contexts",
  "parentName",
  "type",
  "exposeChildren",
  "action",
  "op",
  "_id",
  "targeting",
] as const;

/** How files for `bulk_add_options` are read. A row with the ID of an option of the targeting is about that one. */
export const optionRows = {
  columns: OPTION_COLUMNS,
  required: [["name"]],
  fromCells(header, more) {
    const id = cellReader(header, "_id");
    const name = cellReader(header, "name");
    const parentName = cellReader(header, "parentName");
    const type = cellReader(header, "type");
    const exposeChildren = cellReader(header, "exposeChildren");
    const op = cellReader(header, "op");
    const contexts = contextsReader(header, more.separator);
    const problemOf = rowChecker(header, more, "add");
    const oneContextARow = header.at("contextId") >= 0;
    return (cells) => {
      const problem = problemOf(cells);
      if (problem !== undefined) return { reason: problem };
      const found = contexts(cells);
      if ("reason" in found) return found;
      const contextAction = contextActionIn(op(cells));
      if (contextAction === null) return invalidRow("op", { value: op(cells).slice(0, 40) });
      if (contextAction === "remove") return invalidRow("removeElsewhere", {});
      const group = parentName(cells).trim() === NONE ? "" : parentName(cells);
      const damaged = damagedName(name(cells), "name") ?? damagedName(group, "group");
      if (damaged !== undefined) return { reason: damaged };
      const row: OptionRow = { name: name(cells), contexts: found.contexts };
      const isGroup = truthIn(type(cells));
      if (isGroup === null) return invalidRow("type", { value: type(cells).slice(0, 40) });
      if (isGroup !== undefined) row.type = isGroup ? "collection" : "atomic";
      const exposed = truthIn(exposeChildren(cells));
      if (exposed === null) return invalidRow("exposeChildren", { value: exposeChildren(cells).slice(0, 40) });
      if (exposed !== undefined) row.exposeChildren = exposed;
      if (group.trim() !== "") row.parentName = group;
      const _id = id(cells).trim();
      if (_id !== "") row._id = _id;
      const key = oneContextARow ? row.name : _id === "" ? undefined : `_id ${_id}`;
      return { item: row, key };
    };
  },
  fromValue(value): RowContent<OptionRow> {
    const parsed = option.safeParse(value);
    if (!parsed.success) return { reason: fieldProblem(parsed.error.issues, option) };
    const { op = "", parentName, ...item } = parsed.data;
    const wanted = contextActionIn(op);
    if (wanted === null) return invalidRow("op", { value: op.slice(0, 40) });
    if (wanted === "remove") return invalidRow("removeElsewhere", {});
    return { item: typeof parentName === "string" ? { ...item, parentName } : item };
  },
  merge(item: OptionRow, further: AddOptionInput) {
    if (item.name !== further.name) return invalidRow("rowsDisagree", { column: "name" }).reason;
    for (const field of ["_id", "type", "exposeChildren", "parentName"] as const) {
      const differs = item[field] !== undefined && further[field] !== undefined && item[field] !== further[field];
      if (differs) return invalidRow("rowsDisagree", { column: field }).reason;
    }
    item._id ??= further._id;
    item.type ??= further.type;
    item.exposeChildren ??= further.exposeChildren;
    item.parentName ??= further.parentName;
    for (const contextId of further.contexts ?? []) item.contexts?.push(contextId);
    return undefined;
  },
  rest(item, failed) {
    const whole = failed.find(({ about }) => about.child === undefined);
    if (whole !== undefined) return [{ row: item, reason: whole.reason }];
    // The group was made: its sub-options that failed follow it.
    return failed.map(({ about, reason }) => ({
      row: { ...item.children?.[about.child ?? 0], parentName: item.name },
      reason,
    }));
  },
} satisfies RowShape<OptionRow>;
