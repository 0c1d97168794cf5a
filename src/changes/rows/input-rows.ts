import * as z from "zod";
import {
  actionIn,
  type CellContexts,
  cellReader,
  contextActionIn,
  contextsReader,
  damagedName,
  type SplitCells,
} from "../../files/cells.ts";
import { type Header, NONE } from "../../files/columns.ts";
import type { TextCells } from "../../files/damage.ts";
import {
  fieldProblem,
  groupIn,
  invalidRow,
  type MoreOfSheet,
  type RowContent,
  type RowShape,
} from "../../files/rows.ts";
import { truthReader } from "../../files/truth.ts";
import type { Reason } from "../../runs/outcome.ts";
import { type AddOptionInput, ARGUMENTS, type UpdateContextsItem } from "../call.ts";

const option = ARGUMENTS.bulk_add_options().items.element.extend({
  parentName: z.string().nullish(),
  _id: z.string().optional(),
  op: z.string().optional(),
});

/** A row of a file that describes an option. Later rows may add Context IDs to the same option. */
export interface OptionRow extends AddOptionInput {
  _id?: string | undefined;
  readonly contexts?: string[] | undefined;
  type?: "atomic" | "collection" | undefined;
  exposeChildren?: boolean | undefined;
  parentName?: string | undefined;
}

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

export const optionRows = {
  columns: OPTION_COLUMNS,
  required: [["name"]],
  fromCells(header, more) {
    const id = cellReader(header, "_id");
    const name = cellReader(header, "name");
    const parentName = cellReader(header, "parentName");
    const type = cellReader(header, "type");
    const exposeChildren = cellReader(header, "exposeChildren");
    const isGroupIn = truthReader(more.signs?.type);
    const isExposedIn = truthReader(more.signs?.exposeChildren);
    const op = cellReader(header, "op");
    const contexts = contextsReader(header, more.separator);
    const problemOf = rowChecker(header, more, "add");
    const oneContextARow = header.at("contextId") >= 0;
    const problemIn = (cells: readonly string[], asText: TextCells, found: CellContexts, group: string) => {
      const contextAction = contextActionIn(op(cells));
      if ("reason" in found) return found.reason;
      if (contextAction === null) return invalidRow("op", { value: op(cells).slice(0, 40) }).reason;
      if (contextAction === "remove") return invalidRow("removeElsewhere", {}).reason;
      const damaged =
        damagedName(name(cells), "name", asText?.has(header.at("name"))) ??
        damagedName(group, "group", asText?.has(header.at("parentName")));
      if (damaged !== undefined) return damaged;
      if (isGroupIn(type(cells)) === null) return invalidRow("type", { value: type(cells).slice(0, 40) }).reason;
      const value = exposeChildren(cells);
      return isExposedIn(value) === null
        ? invalidRow("exposeChildren", { value: value.slice(0, 40) }).reason
        : undefined;
    };
    return (cells, asText) => {
      const group = parentName(cells).trim() === NONE ? "" : parentName(cells);
      const found = contexts(cells, asText);
      const row: OptionRow = { name: name(cells), contexts: "reason" in found ? [] : found.contexts };
      const isGroup = isGroupIn(type(cells)) ?? undefined;
      if (isGroup !== undefined) row.type = isGroup ? "collection" : "atomic";
      const exposed = isExposedIn(exposeChildren(cells));
      // A column of checkboxes has a FALSE in every row, even for options that are not groups.
      if (exposed === true || (exposed === false && isGroup === true)) row.exposeChildren = exposed;
      if (group.trim() !== "") row.parentName = group;
      const _id = id(cells).trim();
      if (_id !== "") row._id = _id;
      const key = oneContextARow ? row.name : _id === "" ? undefined : `_id ${_id}`;
      const notMeant = problemOf(cells);
      const reason = notMeant ?? problemIn(cells, asText, found, group);
      if (reason === undefined) return { item: row, key };
      // A row of another targeting says nothing about an option of this one.
      const isOther = notMeant?.detail?.problem === "otherTargeting";
      return { reason, ...(group !== "" && { group }), ...(!isOther && { readable: { item: row, key } }) };
    };
  },
  fromValue(value): RowContent<OptionRow> {
    const group = groupIn(value);
    const parsed = option.safeParse(value);
    if (!parsed.success) return { reason: fieldProblem(parsed.error.issues, option, value), group };
    const { op = "", parentName, ...item } = parsed.data;
    const wanted = contextActionIn(op);
    if (wanted === null) return { ...invalidRow("op", { value: op.slice(0, 40) }), group };
    if (wanted === "remove") return { ...invalidRow("removeElsewhere", {}), group };
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
    // The group was created. The rows of its failed sub-options name it as their group, so that they can be sent again
    // as they are.
    return failed.map(({ about, reason }) => ({
      row: { ...item.children?.[about.child ?? 0], parentName: item.name },
      reason,
    }));
  },
} satisfies RowShape<OptionRow>;

const change = ARGUMENTS.update_contexts().items.element;

/** One option in an exported file. `update_contexts` ignores its group, its type and `exposeChildren`. */
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

export type ContextRow = Omit<UpdateContextsItem, "split" | "calledName"> &
  Partial<Record<Op, string[] | undefined>> & { split?: SplitCells | undefined; calledName?: string | undefined };

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

/** Rows in files for `update_contexts`. If a row has `_id` and `name`, both must be of the same option. */
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
    const group = cellReader(header, "parentName");
    const problemOf = rowChecker(header, more, "edit");
    const oneContextARow = header.at("contextId") >= 0;
    let groupOfOption = "";
    return (cells, asText, isContinued) => {
      const ownGroup = group(cells).trim() === NONE ? "" : group(cells).trim();
      const isOtherGroup = isContinued && ownGroup !== "" && groupOfOption !== "" && ownGroup !== groupOfOption;
      if (!isContinued || groupOfOption === "") groupOfOption = ownGroup;
      const problem = problemOf(cells);
      if (problem !== undefined) return { reason: problem };
      const wanted = contextActionIn(op(cells)) === undefined ? "add" : contextActionIn(op(cells));
      if (wanted === null || wanted === undefined) return invalidRow("op", { value: op(cells).slice(0, 40) });
      const _id = id(cells).trim();
      const calledName = name(cells).trim();
      const option = _id === "" ? { name: name(cells) } : calledName === "" ? { _id } : { _id, calledName };
      // Rows that set all Context IDs of one option share a key: if one of them is invalid, all fail, because setting
      // only the others would remove its Context ID. Other rows share a key only if they also have the same name, so
      // that a row with a wrong name fails alone.
      const named = _id === "" ? `name ${option.name}` : `_id ${_id}${wanted === "set" ? "" : ` ${calledName}`}`;
      const key = oneContextARow || _id !== "" ? `${wanted} ${named}` : undefined;
      if (option.name?.trim() === "") return invalidRow("noOption", {});
      const damaged =
        option.name === undefined ? undefined : damagedName(option.name, "name", asText?.has(header.at("name")));
      if (damaged !== undefined) return { reason: damaged };
      const invalid = (row: { readonly reason: Reason }) => (wanted === "set" ? { ...row, key } : row);
      if (isOtherGroup) return invalid(invalidRow("otherGroup", {}));
      const found = contexts(cells, asText);
      if ("reason" in found) return invalid(found);
      if (found.isBlank) return invalidRow("noContextId", {});
      return { item: { ...option, [wanted]: found.contexts, ...(found.split && { split: found.split }) }, key };
    };
  },
  fromValue(value) {
    if (typeof value === "object" && value !== null && "contexts" in value) return savedRow(value);
    const parsed = change.safeParse(value);
    return parsed.success ? { item: parsed.data } : { reason: fieldProblem(parsed.error.issues, change, value) };
  },
  merge(item, further) {
    item.calledName ??= further.calledName;
    if (item.calledName !== (further.calledName ?? item.calledName)) {
      return invalidRow("rowsDisagree", { column: "name" }).reason;
    }
    for (const op of OPS) for (const contextId of further[op] ?? []) item[op]?.push(contextId);
    if (further.split !== undefined) {
      item.split = { ...further.split, cells: [...(item.split?.cells ?? []), ...further.split.cells] };
    }
    return undefined;
  },
  isReplacement: ({ set }) => set !== undefined,
  rest({ _id, _ids, name, names, calledName, split: _, ...changes }, failed) {
    return failed.map(({ about, reason }) => {
      const given = about._id === undefined ? { name: about.name } : { _id: about._id };
      return { row: { ...given, ...changes }, reason };
    });
  },
};

function savedRow(value: object): RowContent<ContextRow> {
  const parsed = saved.safeParse(value);
  if (!parsed.success) return { reason: fieldProblem(parsed.error.issues, saved, value) };
  const { _id, name, op = "", contexts } = parsed.data;
  const wanted = contextActionIn(op);
  if (wanted === null) return invalidRow("op", { value: op.slice(0, 40) });
  if ((_id ?? name ?? "").trim() === "") return invalidRow("noOption", {});
  const option = _id === undefined ? { name } : name === undefined ? { _id } : { _id, calledName: name };
  return { item: { ...option, [wanted ?? "add"]: contexts } };
}

/** Returns a function that checks whether a row is meant for this call, by its action and its targeting. */
function rowChecker(header: Header, { targeting }: MoreOfSheet, does: "add" | "edit") {
  const action = cellReader(header, "action");
  const named = cellReader(header, "targeting");
  return (cells: readonly string[]): Reason | undefined => {
    const value = named(cells).trim();
    if (value !== "" && targeting !== undefined && !targeting.includes(value)) {
      return invalidRow("otherTargeting", { value: value.slice(0, 40) }).reason;
    }
    const ofIds = contextActionIn(action(cells)) ?? undefined;
    // Without the column `op`, a person may write its values in the column `action`. Such a row is refused: otherwise
    // the value Set would add Context IDs, as Edit does.
    if (does === "edit" && header.at("op") < 0 && ofIds !== undefined) {
      return invalidRow("actionElsewhere", { action: ofIds, does }).reason;
    }
    const wanted = actionIn(action(cells));
    if (wanted === null) return invalidRow("action", { value: action(cells).slice(0, 40) }).reason;
    if (wanted === undefined || wanted === does) return undefined;
    return invalidRow("actionElsewhere", { action: wanted, does }).reason;
  };
}
