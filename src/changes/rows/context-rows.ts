import * as z from "zod";
import { cellReader, contextActionIn, contextsReader, damagedName, type SplitCells } from "../../files/cells.ts";
import { fieldProblem } from "../../files/fields.ts";
import { invalidRow, type RowContent, type RowShape } from "../../files/rows.ts";
import type { UpdateContextsItem } from "./inputs.ts";
import { rowChecker } from "./sheet-columns.ts";

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

/** An option as saved files have it: what stands there of its place is not looked at. */
const saved = z.strictObject({
  _id: z.string().optional(),
  name: z.string().optional(),
  op: z.string().optional(),
  contexts: z.array(z.string()),
  parent: z.string().nullish(),
  parentName: z.string().nullish(),
  type: z.string().optional(),
  exposeChildren: z.boolean().optional(),
});

const OPS = ["add", "remove", "set"] as const;
type Op = (typeof OPS)[number];

/** A row of a file: changes to the Context IDs of an option. */
export type ContextRow = Omit<UpdateContextsItem, "split"> &
  Partial<Record<Op, string[] | undefined>> & { split?: SplitCells | undefined };

/** The columns of a file of changes to Context IDs. */
const CONTEXT_COLUMNS = [
  "_id",
  "name",
  "op",
  "contextId",
  "contexts",
  "action",
  "parentName",
  "type",
  "exposeChildren",
  "targeting",
] as const;

/**
 * How files for `update_contexts` are read. Where a row names both `_id` and `name`, they have to agree; Context IDs are
 * added where nothing else is said. What a sheet says of groups is not looked at.
 */
export const contextRows: RowShape<ContextRow> = {
  columns: CONTEXT_COLUMNS,
  required: [
    ["_id", "name"],
    ["contextId", "contexts"],
  ],
  fromCells(header, more) {
    const id = cellReader(header, "_id");
    const name = cellReader(header, "name");
    const op = cellReader(header, "op");
    const contexts = contextsReader(header, more.separator);
    const problemOf = rowChecker(header, more, "edit");
    const oneContextARow = header.at("contextId") >= 0;
    return (cells) => {
      const problem = problemOf(cells);
      if (problem !== undefined) return { reason: problem };
      const wanted = contextActionIn(op(cells)) === undefined ? "add" : contextActionIn(op(cells));
      if (wanted === null || wanted === undefined) return invalidRow("op", { value: op(cells).slice(0, 40) });
      const _id = id(cells).trim();
      const calledName = name(cells).trim();
      const option = _id === "" ? { name: name(cells) } : calledName === "" ? { _id } : { _id, calledName };
      // The rows of a set belong together: without the unusable one, the set would remove its Context ID.
      const key =
        oneContextARow || _id !== ""
          ? `${wanted} ${_id === "" ? "name" : "_id"} ${_id === "" ? option.name : _id}`
          : undefined;
      if (option.name?.trim() === "") return invalidRow("noOption", {});
      const damaged = option.name === undefined ? undefined : damagedName(option.name, "name");
      if (damaged !== undefined) return { reason: damaged };
      const found = contexts(cells);
      if ("reason" in found) return wanted === "set" ? { ...found, key } : found;
      if (found.isBlank) return invalidRow("noContextId", {});
      return { item: { ...option, [wanted]: found.contexts, ...(found.split && { split: found.split }) }, key };
    };
  },
  fromValue(value) {
    if (typeof value === "object" && value !== null && "contexts" in value) return savedRow(value);
    const parsed = change.safeParse(value);
    return parsed.success ? { item: parsed.data } : { reason: fieldProblem(parsed.error.issues, change) };
  },
  merge(item, further) {
    if (item.calledName !== further.calledName) return invalidRow("rowsDisagree", { column: "name" }).reason;
    for (const op of OPS) for (const contextId of further[op] ?? []) item[op]?.push(contextId);
    if (further.split !== undefined) {
      item.split = { ...further.split, cells: [...(item.split?.cells ?? []), ...further.split.cells] };
    }
    return undefined;
  },
  rest({ _id, _ids, name, names, calledName, split: _, ...changes }, failed) {
    return failed.map(({ about, reason }) => {
      const given = about._id === undefined ? { name: about.name } : { _id: about._id };
      return { row: { ...given, ...changes }, reason };
    });
  },
};

function savedRow(value: object): RowContent<ContextRow> {
  const parsed = saved.safeParse(value);
  if (!parsed.success) return { reason: fieldProblem(parsed.error.issues, saved) };
  const { _id, name, op = "", contexts } = parsed.data;
  const wanted = contextActionIn(op);
  if (wanted === null) return invalidRow("op", { value: op.slice(0, 40) });
  if ((_id ?? name ?? "").trim() === "") return invalidRow("noOption", {});
  const option = _id === undefined ? { name } : name === undefined ? { _id } : { _id, calledName: name };
  return { item: { ...option, [wanted ?? "add"]: contexts } };
}
