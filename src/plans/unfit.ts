import type { ChangedOption, DoneOption, OptionState, Went } from "../runs/kind.ts";
import type { DifferingField, ShownValue } from "./diff/plan.ts";
import type { Intent, Present, PresentOption, UndoReason, UndoRow } from "./way-back.ts";

/** An option as it would be once all has gone back. */
interface After {
  readonly key: string;
  readonly name: string;
  readonly isGroup: boolean;
  readonly parent: string | null;
  /** How many Context IDs it would hold. */
  readonly count: number;
  readonly intent?: Intent | undefined;
}

/**
 * Takes out what cannot go back besides the rest: into a group that is gone, under a name that another option has, so
 * that two groups would hold a Context ID, or that a group would be left with nothing. What is taken out may be needed
 * by something else, so that all is looked at again until nothing is taken out any more.
 */
export function leaveOutUnfit(all: Intended, present: Present): void {
  const checks = [keepGroupsInUse, findGroups, checkNames, checkOwnContexts, checkGroups];
  for (;;) {
    if (!checks.some((check) => check(all, present))) return;
  }
}

function afterAll({ intents }: Intended, { options }: Present): ReadonlyMap<string, After> {
  const after = new Map<string, After>();
  for (const there of options.values()) {
    const intent = intents.get(there._id);
    if (intent?.kind === "delete") continue;
    const { name = there.name, parent = there.parent, add = [], remove = [] } = intent ?? {};
    const isGroup = there.type === "collection";
    const count = there.contextCount + add.length - remove.length;
    after.set(there._id, { key: there._id, name, isGroup, parent, count, intent });
  }
  for (const intent of intents.values()) {
    if (intent.kind !== "create") continue;
    const { key, name = "", parent = null, type, add } = intent;
    after.set(key, { key, name, isGroup: type === "collection", parent, count: add.length, intent });
  }
  return after;
}

/** Takes an option out, or the one field of it that does not fit, and says why. */
function leave(
  { intents, rows }: Intended,
  present: Present,
  intent: Intent,
  row: Pick<UndoRow, "undo" | "reasons" | "field" | "left" | "now" | "contextIds">,
): void {
  const { key, there, kind, name = "" } = intent;
  rows.push({ targeting: present.targeting._id, _id: key, name: there?.name ?? name, ...row });
  if (kind !== "change" || isEmptyChange(intent)) intents.delete(key);
}

function impossible(reason: UndoReason): { readonly undo: "impossible"; readonly reasons: readonly [UndoReason] } {
  return { undo: "impossible", reasons: [reason] };
}

/** A group is not deleted while others' sub-options would stay in it. */
function keepGroupsInUse(all: Intended, present: Present): boolean {
  const inside = new Map<string, number>();
  for (const { parent } of afterAll(all, present).values()) {
    if (parent !== null) inside.set(parent, (inside.get(parent) ?? 0) + 1);
  }
  let found = false;
  for (const intent of [...all.intents.values()]) {
    const staying = inside.get(intent.key) ?? 0;
    if (intent.kind !== "delete" || staying === 0) continue;
    found = true;
    leave(all, present, intent, { undo: "notOurs", field: "subOptions", left: 0, now: staying });
  }
  return found;
}

/** What went into a group that is not there any more. */
function findGroups(all: Intended, present: Present): boolean {
  const after = afterAll(all, present);
  let found = false;
  for (const intent of [...all.intents.values()]) {
    const { parent } = intent;
    if (typeof parent !== "string" || after.get(parent)?.isGroup === true) continue;
    found = true;
    if (intent.kind === "create") {
      intent.parent = null;
      intent.caveats.push("groupGone");
    } else {
      intent.parent = undefined;
      leave(all, present, intent, { ...impossible("groupGone"), field: "parent" });
    }
  }
  return found;
}

/** An option that keeps its present name may hold one that another one wants: each loss is looked at in turn. */
function checkNames(all: Intended, present: Present): boolean {
  const holders = new Map<string, After[]>();
  const hold = (name: string, one: After): number => {
    const list = holders.get(name);
    if (list === undefined) holders.set(name, [one]);
    return list?.push(one) ?? 1;
  };
  const doubled: string[] = [];
  for (const one of afterAll(all, present).values()) if (hold(one.name, one) > 1) doubled.push(one.name);
  let found = false;
  for (let name = doubled.pop(); name !== undefined; name = doubled.pop()) {
    const list = holders.get(name) ?? [];
    // Names that were double before are not the way back's doing.
    const at = list.findLastIndex(({ intent }) => intent?.kind === "create" || intent?.name === name);
    const one = list[at];
    if (list.length < 2 || one?.intent === undefined) continue;
    found = true;
    list.splice(at, 1);
    doubled.push(name);
    const { intent } = one;
    if (intent.kind === "change") intent.name = undefined;
    leave(all, present, intent, { ...impossible("nameTaken"), field: "name", now: name });
    const kept = intent.kind === "change" ? intent.there?.name : undefined;
    if (kept !== undefined && hold(kept, one) > 1) doubled.push(kept);
  }
  return found;
}

/** Groups share no own Context IDs (management-api 7.2). */
function checkOwnContexts(all: Intended, present: Present): boolean {
  const givers = [...all.intents.values()].filter(
    ({ type, there, add }) => (type ?? there?.type) === "collection" && add.length > 0,
  );
  if (givers.length === 0) return false;
  const holders = new Map<string, string>();
  for (const there of present.options.values()) {
    const intent = all.intents.get(there._id);
    if (there.type !== "collection" || intent?.kind === "delete") continue;
    const taken = new Set(intent?.remove);
    for (const id of there.contexts ?? []) if (!taken.has(id)) holders.set(id, there._id);
  }
  let found = false;
  for (const intent of givers) {
    const fits = intent.add.filter((id) => !holders.has(id));
    for (const id of fits) holders.set(id, intent.key);
    if (fits.length === intent.add.length) continue;
    found = true;
    const contextIds = intent.add.length - fits.length;
    const before = intent.kind;
    intent.add = fits;
    if (before === "create") {
      if (!intent.caveats.includes("heldByGroup")) intent.caveats.push("heldByGroup");
    } else leave(all, present, intent, { ...impossible("heldByGroup"), field: "contexts", contextIds });
  }
  return found;
}

/** A group has sub-options or own Context IDs (management-api 7.4, cases 1, 6 and 7). */
function checkGroups(all: Intended, present: Present): boolean {
  const after = afterAll(all, present);
  const filled = new Set([...after.values()].map(({ parent }) => parent));
  const leaving = new Map<string, Intent>();
  for (const intent of all.intents.values()) {
    const from = intent.there?.parent;
    if (typeof from === "string" && (intent.kind === "delete" || intent.parent !== undefined))
      leaving.set(from, intent);
  }
  let found = false;
  for (const { key, isGroup, count, intent } of after.values()) {
    if (!isGroup || count > 0 || filled.has(key)) continue;
    const last = leaving.get(key);
    if (intent?.kind === "create") {
      found = true;
      leave(all, present, intent, impossible("emptyGroup"));
    } else if (intent !== undefined && intent.remove.length > 0) {
      found = true;
      const contextIds = intent.remove.length;
      intent.remove = [];
      leave(all, present, intent, { ...impossible("emptyGroup"), field: "contexts", contextIds });
    } else if (last !== undefined) {
      found = true;
      if (last.kind === "change") last.parent = undefined;
      leave(all, present, last, { ...impossible("emptyGroup"), field: last.kind === "change" ? "parent" : undefined });
    }
  }
  return found;
}

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
function isEmptyChange({ name, parent, exposeChildren, add, remove }: Intent): boolean {
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
