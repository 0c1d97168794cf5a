import type { ChangedOption, DoneOption, OptionState, Went } from "../../runs/done.ts";
import type { DifferingField, ShownValue } from "../diff/plan.ts";
import type { Intent, Present, PresentOption, UndoRow } from "./way-back.ts";

/** What is to go back in a targeting, by key, and what is left alone. */
export interface Intended {
  readonly intents: Map<string, Intent>;
  readonly rows: UndoRow[];
}

/** Compares field by field what a run left in a targeting with what is there now. */
export function intended(options: readonly DoneOption[], present: Present): Intended {
  const all: Intended = { intents: new Map(), rows: [] };
  for (const option of options) {
    const there = present.options.get(option._id);
    if (option.did === "created") created(option._id, option.left, there, present, all);
    else if (option.did === "changed") changed(option, there, present, all);
    else deleted(option, present, all);
  }
  return all;
}

/** The value of a place as it is shown. */
function shownGroup(parent: string | null, { options }: Present): ShownValue {
  return parent === null ? null : (options.get(parent)?.name ?? parent);
}

/** What the run created is deleted while it is as the run left it. */
function created(
  _id: string,
  left: OptionState,
  there: PresentOption | undefined,
  present: Present,
  { intents, rows }: Intended,
): void {
  if (there === undefined) return;
  const differs = (field: DifferingField, was: ShownValue, now: ShownValue): void => {
    rows.push({ ...about(present), _id, name: there.name, undo: "notOurs", field, left: was, now });
  };
  if (there.name !== left.name) differs("name", left.name, there.name);
  else if (there.parent !== left.parent) {
    differs("parent", shownGroup(left.parent, present), shownGroup(there.parent, present));
  } else if ((there.exposeChildren ?? false) !== (left.exposeChildren ?? false)) {
    differs("exposeChildren", left.exposeChildren ?? false, there.exposeChildren ?? false);
  } else if (!holdsExactly(there, left.contexts)) differs("contexts", left.contexts.length, there.contextCount);
  else intents.set(_id, { key: _id, kind: "delete", there, add: [], remove: [], caveats: [] });
}

function holdsExactly({ contextCount, contexts }: PresentOption, left: readonly string[]): boolean {
  if (contextCount !== left.length) return false;
  const held = new Set(contexts);
  return left.every((id) => held.has(id));
}

function about({ targeting }: Present): { readonly targeting: string } {
  return { targeting: targeting._id };
}

/** What a field of an option becomes; undefined where it stays. */
interface Back<Value> {
  readonly value: Value;
}

function changed(
  option: ChangedOption,
  there: PresentOption | undefined,
  present: Present,
  { intents, rows }: Intended,
): void {
  const { _id, name, parent, exposeChildren, contexts } = option;
  if (there === undefined) {
    const left = name?.to ?? (parent === undefined ? undefined : shownGroup(parent.to, present));
    rows.push({ ...about(present), _id, name: name?.to ?? _id, undo: "notOurs", field: "deleted", left });
    return;
  }
  const tell = (row: Pick<UndoRow, "undo" | "field" | "left" | "now" | "reasons">): void => {
    rows.push({ ...about(present), _id, name: there.name, ...row });
  };
  const field = <Value extends string | boolean | null>(
    key: DifferingField,
    went: Went<Value> | undefined,
    now: Value,
    shown: (value: Value) => ShownValue = (value) => value,
  ): Back<Value> | undefined => {
    if (went === undefined || now === went.from) return undefined;
    const values = { field: key, left: shown(went.to), now: shown(now) };
    if (now !== went.to) tell({ undo: "notOurs", ...values });
    else if (went.from === undefined) tell({ undo: "impossible", ...values, reasons: ["notKept"] });
    else return { value: went.from };
    return undefined;
  };
  const held = new Set(there.contexts);
  const intent: Intent = {
    ...{ key: _id, kind: "change", there },
    name: field("name", name, there.name)?.value,
    parent: field("parent", parent, there.parent, (id) => shownGroup(id, present))?.value,
    exposeChildren: field("exposeChildren", exposeChildren, there.exposeChildren ?? false)?.value,
    add: (contexts?.removed ?? []).filter((id) => !held.has(id)),
    remove: (contexts?.added ?? []).filter((id) => held.has(id)),
    caveats: [],
  };
  const unsure = contexts?.unsure ?? 0;
  if (unsure > 0) {
    const stays = { ...about(present), _id, name: there.name, undo: "caveat", reasons: ["notRead"] } as const;
    rows.push({ ...stays, field: "contexts", contextIds: unsure });
  }
  if (!isEmptyChange(intent)) intents.set(_id, intent);
}

/** Whether nothing of an option goes back any more. */
export function isEmptyChange({ name, parent, exposeChildren, add, remove }: Intent): boolean {
  return name === undefined && parent === undefined && exposeChildren === undefined && add.length + remove.length === 0;
}

/** What the run deleted is created again. */
function deleted(
  { _id, before }: Extract<DoneOption, { readonly did: "deleted" }>,
  present: Present,
  { intents, rows }: Intended,
): void {
  if (present.options.has(_id)) return;
  if (before === undefined) {
    rows.push({ ...about(present), _id, name: _id, undo: "impossible", field: "deleted", reasons: ["notKept"] });
    return;
  }
  const { name, type, parent, exposeChildren, contexts } = before;
  const fields = { name, type, parent, exposeChildren, add: contexts, remove: [] };
  intents.set(_id, { key: _id, kind: "create", ...fields, caveats: ["newId"] });
}
