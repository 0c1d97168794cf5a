import * as z from "zod";
import { cellReader, contextsReader, needColumn } from "../../files/cells.ts";
import { fieldProblem } from "../../files/fields.ts";
import { invalidRow, type RowShape } from "../../files/rows.ts";
import type { UpdateContextsItem } from "./inputs.ts";

const ids = z.array(z.string()).optional();
const change = z.strictObject({
  _id: z.string().optional(),
  _ids: ids,
  name: z.string().optional(),
  names: ids,
  add: ids,
  remove: ids,
  set: ids,
  addFrom: ids,
  removeFrom: ids,
});

const OPS = ["add", "remove", "set"] as const;
type Op = (typeof OPS)[number];

/** A row of a file: changes to the Context IDs of an option. */
export type ContextRow = UpdateContextsItem & Partial<Record<Op, string[] | undefined>>;

/** The columns of a file of changes to Context IDs. */
const CONTEXT_COLUMNS = ["_id", "name", "op", "contextId", "contexts"] as const;

const REMEDY = `Columns of a file of changes: ${CONTEXT_COLUMNS.join(", ")}; op is ${OPS.join(", ")}.`;

/** How files for `update_contexts` are read. Where a row names both `_id` and `name`, the `_id` counts. */
export const contextRows: RowShape<ContextRow> = {
  columns: CONTEXT_COLUMNS,
  fromCells(header) {
    needColumn(header, header.at("_id") < 0 ? "name" : "_id", REMEDY);
    needColumn(header, "op", REMEDY);
    needColumn(header, header.at("contextId") < 0 ? "contexts" : "contextId", REMEDY);
    const id = cellReader(header, "_id");
    const name = cellReader(header, "name");
    const op = cellReader(header, "op");
    const contexts = contextsReader(header);
    const oneContextARow = header.at("contextId") >= 0;
    return (cells) => {
      const given = op(cells).trim();
      const wanted = OPS.find((one) => one === given);
      const _id = id(cells).trim();
      const option = _id === "" ? { name: name(cells) } : { _id };
      // The rows of a set belong together: without the unusable one, the set would remove its Context ID.
      const key = oneContextARow ? `${wanted} ${_id === "" ? "name" : "_id"} ${option._id ?? option.name}` : undefined;
      if (wanted === undefined) return invalidRow("op", { value: given.slice(0, 40) });
      if (option.name === "") return invalidRow("noOption", {});
      const found = contexts(cells);
      if ("reason" in found) return wanted === "set" ? { ...found, key } : found;
      if (found.contexts.length === 0 && wanted !== "set") return invalidRow("noContextId", {});
      return { item: { ...option, [wanted]: found.contexts }, key };
    };
  },
  fromValue(value) {
    const parsed = change.safeParse(value);
    return parsed.success ? { item: parsed.data } : { reason: fieldProblem(parsed.error.issues, change) };
  },
  merge(item, further) {
    for (const op of OPS) for (const contextId of further[op] ?? []) item[op]?.push(contextId);
    return undefined;
  },
  rest({ _id, _ids, name, names, ...changes }, failed) {
    return failed.map(({ about, reason }) => {
      const given = about._id === undefined ? { name: about.name } : { _id: about._id };
      return { row: { ...given, ...changes }, reason };
    });
  },
};
