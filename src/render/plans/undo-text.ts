import type { ListedChange } from "../../plans/diff/plan.ts";
import { countsOfRows, type RowLabel, UNDO_LABELS, type UndoReason, type UndoRow } from "../../plans/undo/way-back.ts";
import { shown } from "../fence.ts";
import { changeLine, contextIds, count, FIELD_WORDS, place, value } from "./words.ts";

/** What each label means, where rows are counted. */
const LABEL_WORDS: Readonly<Record<RowLabel, readonly [one: string, many: string]>> = {
  unresolved: [
    "is unresolved (its request was sent and not answered)",
    "are unresolved (their requests were sent and not answered)",
  ],
  exact: ["goes back exactly", "go back exactly"],
  caveat: ["goes back with a caveat", "go back with a caveat"],
  notOurs: ["is left alone, since others changed it since", "are left alone, since others changed them since"],
  impossible: ["cannot go back", "cannot go back"],
};

const REASON_WORDS: Readonly<Record<UndoReason, string>> = {
  newId: "comes back under a new ID, which ad products and campaigns that referred to the old one do not know",
  groupGone: "its group is gone",
  notRead: "was not read before, so that what was added stays",
  notKept: "its former value was not kept",
  unknownOutcome: "it is not known whether the run changed it",
  nameTaken: "another option has the name now",
  emptyGroup: "a group would be left without sub-options and own Context IDs",
  heldByGroup: "another group holds Context IDs of it now",
  targetingGone: "its targeting is gone",
};

/** How many objects go back how: "3 go back exactly, 1 cannot go back". */
export function undoCounts(rows: readonly UndoRow[]): string {
  const counts = countsOfRows(rows);
  const told = UNDO_LABELS.flatMap((label) =>
    counts[label] === 0 ? [] : [`${count(counts[label])} ${LABEL_WORDS[label][counts[label] === 1 ? 0 : 1]}`],
  );
  return told.length === 0 ? "everything is as it was before" : told.join(", ");
}

/** One object and what becomes of it, on one line; `changes` are those of its item. */
export function undoLine(
  { name, _id, undo, reasons, field, left, now, contextIds: many }: UndoRow,
  changes: readonly ListedChange[] = [],
): string {
  const why = reasonWords({ reasons }).join("; ");
  if (changes.length > 0) return `${undo}: ${changes.map(changeWords).join("; ")}${why === "" ? "" : `: ${why}`}`;
  const what = `${undo}: ${shown(name)}${_id === undefined ? "" : ` (${_id})`}`;
  const about = field === undefined ? "" : `: ${many === undefined ? FIELD_WORDS[field] : contextIds(many)}`;
  const told = field === "parent" ? place : value;
  const values =
    field === undefined || left === undefined || now === undefined
      ? ""
      : `: the run left ${told(left)}, there is ${told(now)} now`;
  return `${what}${about}${values}${why === "" ? "" : `: ${why}`}`;
}

/** Why an object does not go back, or not exactly. */
export function reasonWords({ reasons = [] }: Pick<UndoRow, "reasons">): readonly string[] {
  return reasons.map((reason) => REASON_WORDS[reason]);
}

const VERBS: Readonly<Record<ListedChange["kind"], string>> = {
  created: "create",
  renamed: "rename",
  moved: "move",
  contexts: "Context IDs",
  settings: "set",
  deleted: "delete",
  adopted: "",
};

/** A change that an undo makes, with its verb. */
export function changeWords(change: ListedChange): string {
  return `${VERBS[change.kind]} ${changeLine(change)}`;
}
