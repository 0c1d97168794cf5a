import * as z from "zod";
import { cellReader, contextsReader, needColumn } from "../../files/cells.ts";
import { fieldProblem } from "../../files/fields.ts";
import { invalidRow, type RowContent, type RowShape } from "../../files/rows.ts";
import type { AddOptionInput } from "./inputs.ts";

const ids = z.array(z.string());
const child = z.strictObject({ name: z.string(), contexts: ids.optional() });
const option = z.strictObject({
  ...child.shape,
  type: z.enum(["atomic", "collection"]).optional(),
  children: z.array(child).optional(),
  exposeChildren: z.boolean().optional(),
  parent: z.string().optional(),
  parentName: z.string().optional(),
});

/** An option of a file; rows about one option add Context IDs to it. */
export interface OptionRow extends AddOptionInput {
  readonly contexts?: string[] | undefined;
  type?: "atomic" | "collection" | undefined;
  exposeChildren?: boolean | undefined;
  parentName?: string | undefined;
}

/** The columns of a file of options. */
const OPTION_COLUMNS = ["name", "contextId", "contexts", "parentName", "type", "exposeChildren"] as const;

/** How files for `bulk_add_options` are read. */
export const optionRows = {
  columns: OPTION_COLUMNS,
  fromCells(header) {
    needColumn(header, "name", `Columns of a file of options: ${OPTION_COLUMNS.join(", ")}.`);
    const name = cellReader(header, "name");
    const parentName = cellReader(header, "parentName");
    const type = cellReader(header, "type");
    const exposeChildren = cellReader(header, "exposeChildren");
    const contexts = contextsReader(header);
    const oneContextARow = header.at("contextId") >= 0;
    return (cells) => {
      const found = contexts(cells);
      if ("reason" in found) return found;
      const row: OptionRow = { name: name(cells), contexts: found.contexts };
      const typed = type(cells).trim();
      if (typed === "atomic" || typed === "collection") row.type = typed;
      else if (typed !== "") return invalidRow("type", { value: typed.slice(0, 40) });
      const exposed = exposeChildren(cells).trim().toLowerCase();
      if (exposed === "true" || exposed === "false") row.exposeChildren = exposed === "true";
      else if (exposed !== "") return invalidRow("exposeChildren", { value: exposed.slice(0, 40) });
      const group = parentName(cells);
      if (group !== "") row.parentName = group;
      return { item: row, key: oneContextARow ? row.name : undefined };
    };
  },
  fromValue(value): RowContent<OptionRow> {
    const parsed = option.safeParse(value);
    return parsed.success ? { item: parsed.data } : { reason: fieldProblem(parsed.error.issues, option) };
  },
  merge(item: OptionRow, further: AddOptionInput) {
    for (const field of ["type", "exposeChildren", "parentName"] as const) {
      const differs = item[field] !== undefined && further[field] !== undefined && item[field] !== further[field];
      if (differs) return invalidRow("rowsDisagree", { column: field }).reason;
    }
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
