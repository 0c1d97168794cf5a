import { actionIn, cellReader } from "../../files/cells.ts";
import type { Header } from "../../files/columns.ts";
import { invalidRow, type MoreOfSheet } from "../../files/rows.ts";
import type { Reason } from "../../runs/outcome.ts";

/**
 * Makes what finds the problem of a row that asks for something that its tool does not do: another action than `does`, or
 * a change of another targeting than that of the call.
 */
export function rowChecker(
  header: Header,
  { targeting }: MoreOfSheet,
  does: "add" | "edit",
): (cells: readonly string[]) => Reason | undefined {
  const action = cellReader(header, "action");
  const named = cellReader(header, "targeting");
  return (cells) => {
    const value = named(cells).trim();
    if (value !== "" && targeting !== undefined && !targeting.includes(value)) {
      return invalidRow("otherTargeting", { value: value.slice(0, 40) }).reason;
    }
    const wanted = actionIn(action(cells));
    if (wanted === null) return invalidRow("action", { value: action(cells).slice(0, 40) }).reason;
    if (wanted === undefined || wanted === does) return undefined;
    return invalidRow("actionElsewhere", { action: wanted, does }).reason;
  };
}
