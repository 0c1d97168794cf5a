import * as z from "zod";
import { type Change, type Conflict, conflicts } from "../model/targeting-model.ts";
import { defined } from "../platform/by-key.ts";
import type { Fixed } from "../platform/json.ts";
import type { ChangedOption, FieldChange, OptionEffect, OptionState } from "../runs/kind.ts";
import { LIMITS } from "../spec/limits.ts";
import { bytesOf, nameProblem } from "../spec/names-and-contexts.ts";
import type { OptionType } from "../spec/records.ts";
import { type ServiceOption, ulid } from "./base.ts";
import { type DifferingField, difference, knownOption, type ShownValue, type StatePlan, shownValue } from "./plan.ts";

/**
 * How far an undo restores an object. `exact`: completely. `caveat`: with differences. `notOurs`: not restored, because
 * others have changed it since the run. `impossible`: not restored, for a given reason. `unresolved`: it is not known
 * yet whether the run changed it.
 */
export const UNDO_LABELS = ["unresolved", "exact", "caveat", "notOurs", "impossible"] as const;
export type RowLabel = (typeof UNDO_LABELS)[number];

/** Why an object is restored with differences, or why it is not restored. */
const UNDO_REASONS = [
  /** The object gets a new ID. Everything that refers to its old ID stays disconnected. */
  "newId",
  /** The group no longer exists. A deleted option is restored at the top level, and a moved one is not moved back. */
  "groupGone",
  /** These Context IDs stay, because the option may already have had them before the run. */
  "notRead",
  /** The previous value was not stored, so it is unknown. */
  "notKept",
  "unknownOutcome",
  /** The ID of the created option could not be read, and its name does not identify it any more. */
  "idUnknown",
  "nameTaken",
  /** The previous name breaks the rules for names (management-api 8.3). */
  "nameInvalid",
  /** The undo would leave a group that has neither sub-options nor Context IDs. */
  "emptyGroup",
  /** Another group has the Context IDs now. */
  "heldByGroup",
  /** The option, the targeting or the project would exceed its limit (management-api 8.1). */
  "optionFull",
  "targetingFull",
  "projectFull",
  "targetingGone",
  /** The option that the run created was deleted, and another option now has its name. */
  "createdAgain",
] as const;
export type UndoReason = (typeof UNDO_REASONS)[number];

/** A row of an undo plan: what the undo does with an object, or which field of the object it cannot restore. */
export const undoRow = z.strictObject({
  targeting: ulid.optional(),
  _id: ulid.optional(),
  name: z.string(),
  undo: z.enum(UNDO_LABELS),
  reasons: z.array(z.enum(UNDO_REASONS)).optional(),
  /**
   * The field that is not restored. `left`: its value right after the run. `now`: its current value; with the reason
   * `nameTaken`, the name that another object has now.
   */
  field: difference.shape.field.optional(),
  left: shownValue.optional(),
  now: shownValue.optional(),
  contextIds: z.int().optional(),
  /** With the reason `emptyGroup`: the name of the group that would become empty. */
  group: z.string().optional(),
  /** Where the plan restores the object: the index of its targeting's plan, and of the item in that plan. */
  at: z.strictObject({ targeting: z.int(), item: z.int() }).optional(),
});
export type UndoRow = Fixed<z.infer<typeof undoRow>>;

export interface TargetingUndo {
  readonly plan: StatePlan;
  /** The items that create deleted options again, with the old IDs of these options. */
  readonly standsFor: readonly { readonly item: number; readonly _id: string }[];
}

export interface UndoPlan {
  readonly targetings: readonly TargetingUndo[];
  readonly rows: readonly UndoRow[];
}

export function countsOfRows(rows: readonly UndoRow[]): Readonly<Record<RowLabel, number>> {
  const counts = { unresolved: 0, exact: 0, caveat: 0, notOurs: 0, impossible: 0 };
  for (const { undo } of rows) counts[undo] += 1;
  return counts;
}

const PASSING: ReadonlySet<UndoReason> = new Set([
  "nameTaken",
  "emptyGroup",
  "heldByGroup",
  "optionFull",
  "targetingFull",
  "projectFull",
]);

/** Returns whether an object that is not restored now can be restored later, after others change something back. */
export function mayBeUndoneLater({ undo, field, reasons = [] }: UndoRow): boolean {
  return undo === "notOurs" ? field !== "deleted" : undo === "impossible" && reasons.some((one) => PASSING.has(one));
}

/** The current state of an option. `contexts` is absent if the undo does not need the Context IDs. */
export interface PresentOption extends Omit<ServiceOption, "contexts" | "contextCount" | "digest"> {
  readonly contextCount: number;
  readonly contexts?: readonly string[] | undefined;
}

export interface Present {
  readonly targeting: { readonly _id: string; readonly name: string };
  readonly options: ReadonlyMap<string, PresentOption>;
  /** Set if only the options of the undone run are known, so that conflicts with other options cannot be found. */
  readonly isPartial?: true;
}

/** A change that an undo makes to an option. `key`: the ID of the option, which is the old ID if it was deleted. */
export interface Intent {
  readonly key: string;
  readonly kind: "create" | "change" | "delete";
  readonly there?: PresentOption | undefined;
  name?: string | undefined;
  type?: OptionType | undefined;
  parent?: string | null | undefined;
  exposeChildren?: boolean | undefined;
  add: readonly string[];
  remove: readonly string[];
  /** Only of a group to be created: how many of its Context IDs it does not get, because another group has them now. */
  heldByGroups?: number;
  readonly caveats: UndoReason[];
}

/**
 * Removes those changes from an undo that the service would refuse because of other options: the deletion of a group
 * with other sub-options, a move into a missing group, a taken name, a Context ID in two groups, an empty group, or an
 * exceeded limit. Removing one change can make another one conflict, so this is repeated.
 */
export function removeConflictingChanges(all: IntendedUndo, present: Present): void {
  if (present.isPartial) return;
  const options = new Map([...present.options].map(([id, there]) => [id, knownOption(there)]));
  for (;;) {
    const changes = new Map([...all.intents].map(([key, intent]) => [key, changeBack(intent)]));
    const found = conflicts(options, changes);
    let kind: Conflict["kind"] | undefined;
    for (const conflict of found) {
      if (kind !== undefined && conflict.kind !== kind) break;
      if (settle(conflict, found, all, present)) kind = conflict.kind;
    }
    if (kind === undefined && !fitIntoLimits(all, present)) return;
  }
}

/**
 * Removes those changes from an undo that would exceed a limit, the last ones first. Of the project's Context IDs, only
 * those of this targeting are known. Returns false if everything fits.
 */
function fitIntoLimits(all: IntendedUndo, present: Present): boolean {
  const before = all.rows.length;
  const intents = [...all.intents.values()];
  for (const intent of intents) {
    if (intent.there === undefined || intent.add.length === 0 || !isOverfull(intent, intent.there)) continue;
    const contextIds = intent.add.length;
    intent.add = [];
    leave(all, present, intent, { ...impossible("optionFull"), field: "contexts", contextIds });
  }
  let [options, contextIds] = [present.options.size, 0];
  for (const { contextCount } of present.options.values()) contextIds += contextCount;
  for (const { kind, there, add, remove } of all.intents.values()) {
    if (kind === "create") options += 1;
    else if (kind === "delete") options -= 1;
    contextIds += add.length - (kind === "delete" ? (there?.contextCount ?? 0) : remove.length);
  }
  for (const intent of inOrder([...all.intents.values()]).toReversed()) {
    const { kind, add } = intent;
    const isTooMany = contextIds > LIMITS.projectContextIds.value && add.length > 0;
    if (kind === "create" && (isTooMany || options > LIMITS.targetingOptions.value)) {
      options -= 1;
      leave(all, present, intent, { ...impossible(isTooMany ? "projectFull" : "targetingFull") });
    } else if (kind === "change" && isTooMany) {
      intent.add = [];
      leave(all, present, intent, { ...impossible("projectFull"), field: "contexts", contextIds: add.length });
    } else continue;
    contextIds -= add.length;
  }
  return all.rows.length > before;
}

function isOverfull({ add, remove }: Intent, { contextCount, contexts = [] }: PresentOption): boolean {
  const count = contextCount + add.length - remove.length;
  if (count > LIMITS.optionContextIds.value) return true;
  // Counting bytes takes time. It is not needed if this number of Context IDs fits even if each has the maximum size.
  if (count * LIMITS.contextIdBytes.value <= LIMITS.optionContextBytes.value) return false;
  return bytesOf(contexts) + bytesOf(add) - bytesOf(remove) > LIMITS.optionContextBytes.value;
}

/**
 * Sorts the changes of an undo: creations first, then changes, then deletions with groups last. Creations keep their
 * order, but a group comes before its sub-options.
 */
export function inOrder(intents: readonly Intent[]): readonly Intent[] {
  const created = new Map(intents.flatMap((one) => (one.kind === "create" ? [[one.key, one]] : [])));
  const placed = intents.flatMap((one) => {
    const group = one.kind === "create" ? created.get(one.parent ?? "") : undefined;
    return group === undefined ? [one] : [group, one];
  });
  const rank = ({ kind, there }: Intent): number => {
    if (kind === "create") return 0;
    if (kind === "change") return 1;
    return there?.type === "collection" ? 3 : 2;
  };
  return [...new Set(placed)].sort((one, other) => rank(one) - rank(other));
}

function changeBack({ key: ref, kind, name, type, parent, add, remove }: Intent): Change {
  if (kind === "delete") return { kind, ref };
  if (kind === "create") {
    const group = type === "collection";
    return { kind, ref, name: name ?? "", group, parent: parent ?? null, expose: false, contexts: add };
  }
  return { kind: "update", ref, ...defined({ name, parent }), add, remove };
}

/**
 * Removes from an undo the change that causes a conflict. An option whose group is missing is created at the top level
 * instead. Returns false if there is nothing to remove.
 */
function settle(conflict: Conflict, found: readonly Conflict[], all: IntendedUndo, present: Present): boolean {
  const intent = all.intents.get(conflict.ref);
  const takeOut = (one: Intent, row: RemovedChange): true => {
    leave(all, present, one, row);
    return true;
  };
  if (conflict.kind === "empty") return resolveEmptyGroup(conflict, { ...all, ...present }, takeOut);
  if (intent === undefined) return false;
  switch (conflict.kind) {
    case "inUse":
      return takeOut(intent, { undo: "notOurs", field: "subOptions", ...subOptionsOf(intent.key, all, present) });
    case "noGroup":
      if (intent.kind === "create") {
        intent.parent = null;
        intent.caveats.push("groupGone");
        return true;
      }
      intent.parent = undefined;
      return takeOut(intent, { ...impossible("groupGone"), field: "parent" });
    case "name":
      if (intent.name !== conflict.value) return false;
      if (intent.kind === "change") intent.name = undefined;
      return takeOut(intent, { ...impossible("nameTaken"), field: "name", now: conflict.value });
    case "owner": {
      if (!intent.add.includes(conflict.value)) return false;
      const held = new Set(found.flatMap((one) => (one.kind === "owner" && one.ref === intent.key ? [one.value] : [])));
      const contextIds = intent.add.filter((id) => held.has(id)).length;
      intent.add = intent.add.filter((id) => !held.has(id));
      if (intent.kind !== "create") {
        return takeOut(intent, { ...impossible("heldByGroup"), field: "contexts", contextIds });
      }
      intent.heldByGroups = (intent.heldByGroups ?? 0) + contextIds;
      return true;
    }
  }
}

function subOptionsOf(group: string, { left }: IntendedUndo, { options }: Present) {
  const now = [...options.values()].filter(({ parent }) => parent === group).length;
  return { left: left.get(group) ?? 0, now };
}

/**
 * Keeps an undo from leaving an empty group: the group keeps its Context IDs or, if the undo removes none, a
 * sub-option. A group that the undo would create is not created.
 */
function resolveEmptyGroup(
  { ref, leaving }: Extract<Conflict, { readonly kind: "empty" }>,
  { intents, options }: Pick<IntendedUndo, "intents"> & Pick<Present, "options">,
  takeOut: (intent: Intent, row: RemovedChange) => true,
): boolean {
  const intent = intents.get(ref);
  const empty = { ...impossible("emptyGroup"), group: options.get(ref)?.name ?? intent?.name };
  const last = intents.get(leaving.at(-1) ?? "");
  if (intent?.kind === "create") return takeOut(intent, empty);
  if (intent !== undefined && intent.remove.length > 0) {
    const contextIds = intent.remove.length;
    intent.remove = [];
    return takeOut(intent, { ...empty, field: "contexts", contextIds });
  }
  if (last === undefined) return false;
  if (last.kind === "change") last.parent = undefined;
  return takeOut(last, { ...empty, field: last.kind === "change" ? "parent" : undefined });
}

type RemovedChange = Pick<UndoRow, "undo" | "reasons" | "field" | "left" | "now" | "contextIds" | "group">;

/**
 * Adds a row that says why a change is not undone, or not completely. Removes the change from the undo, unless the
 * caller has taken only one field out of it and others remain.
 */
function leave({ intents, rows }: IntendedUndo, present: Present, intent: Intent, row: RemovedChange): void {
  const { key, there, kind, name = "" } = intent;
  rows.push(rowOf(present, key, there?.name ?? name, row));
  if (kind !== "change" || isEmptyChange(intent)) intents.delete(key);
}

export function impossible(reason: UndoReason) {
  return { undo: "impossible", reasons: [reason] } as const;
}

/** The changes that an undo makes, by option, and the rows for everything that it does not restore. */
export interface IntendedUndo {
  readonly intents: Map<string, Intent>;
  readonly rows: UndoRow[];
  /** By group: how many sub-options the run created in it or moved into it. */
  readonly left: ReadonlyMap<string, number>;
}

/** Plans the changes of an undo: compares, field by field, what the run left with the current state. */
export function intended(options: readonly OptionEffect[], present: Present): IntendedUndo {
  const all: IntendedUndo = { intents: new Map(), rows: [], left: subOptionsLeft(options) };
  const isBack = backAgain(options, present);
  const own = new Set(options.map(({ _id }) => _id));
  const names = new Set([...present.options.values()].flatMap(({ _id, name }) => (own.has(_id) ? [] : [name])));
  for (const option of options) {
    const there = present.options.get(option._id);
    // The option that the run created was deleted, and another option now has its name. Others may have created it, so
    // it stays.
    if (option.did === "created" && there === undefined && names.has(option.left.name)) {
      const row = { undo: "notOurs", field: "deleted", reasons: ["createdAgain"] } as const;
      all.rows.push(rowOf(present, option._id, option.left.name, row));
    } else if (option.did === "created") created(option._id, option.left, there, present, all);
    else if (option.did === "changed") changed(option, there, present, all);
    else if (!isBack(option)) deleted(option, present, all);
  }
  return all;
}

/**
 * Returns a function that tells whether a deleted option was already created again, with another ID but equal in all
 * else. Context IDs that were not read count as different.
 */
function backAgain(options: readonly OptionEffect[], present: Present): (option: OptionEffect) => boolean {
  const before = new Map(
    options.flatMap((one) => (one.did === "deleted" && one.before ? [[one._id, one.before]] : [])),
  );
  if (before.size === 0) return () => false;
  // An option that the run itself created or changed does not count as created again, because the undo changes it.
  const own = new Set(options.map(({ _id }) => _id));
  const others = [...present.options.values()].filter(({ _id, parent }) => !own.has(_id) && !own.has(parent ?? ""));
  const byName = new Map(others.map((option) => [option.name, option]));
  const groupOf = (parent: string | null): string | undefined =>
    parent === null ? undefined : (present.options.get(parent)?.name ?? before.get(parent)?.name ?? parent);
  return ({ _id }) => {
    const was = before.get(_id);
    const there = was && byName.get(was.name);
    if (was === undefined || there === undefined || present.options.has(_id)) return false;
    return (
      there.type === was.type &&
      groupOf(there.parent) === groupOf(was.parent) &&
      (there.exposeChildren ?? false) === (was.exposeChildren ?? false) &&
      there.contextCount === was.contexts.length &&
      (was.contexts.length === 0 || holdsExactly(there, was.contexts))
    );
  };
}

function subOptionsLeft(options: readonly OptionEffect[]): ReadonlyMap<string, number> {
  const left = new Map<string, number>();
  for (const option of options) {
    const parent = option.did === "created" ? option.left.parent : option.did === "changed" ? option.parent?.to : null;
    if (parent !== undefined && parent !== null) left.set(parent, (left.get(parent) ?? 0) + 1);
  }
  return left;
}

function shownGroup(parent: string | null, { options }: Present): ShownValue {
  return parent === null ? null : (options.get(parent)?.name ?? parent);
}

/** Plans to delete an option that the run created. If the option has changed since, adds a row instead. */
function created(
  _id: string,
  left: OptionState,
  there: PresentOption | undefined,
  present: Present,
  { intents, rows }: IntendedUndo,
): void {
  if (there === undefined) return;
  const differs = (field: DifferingField, was: ShownValue, now: ShownValue): void => {
    rows.push(rowOf(present, _id, there.name, { undo: "notOurs", field, left: was, now }));
  };
  if (there.name !== left.name) differs("name", left.name, there.name);
  else if (there.parent !== left.parent) {
    differs("parent", shownGroup(left.parent, present), shownGroup(there.parent, present));
  } else if (left.exposeChildren !== undefined && (there.exposeChildren ?? false) !== left.exposeChildren) {
    differs("exposeChildren", left.exposeChildren, there.exposeChildren ?? false);
  } else if (!holdsExactly(there, left.contexts)) differs("contexts", left.contexts.length, there.contextCount);
  else intents.set(_id, { key: _id, kind: "delete", there, add: [], remove: [], caveats: [] });
}

/** Returns the name of an option that may no longer exist, or its ID if its name is unknown. */
export function nameOf(option: OptionEffect): string {
  if (option.did === "created") return option.left.name;
  const name = option.did === "changed" ? option.name?.to : option.before?.name;
  return name ?? option.called ?? option._id;
}

function holdsExactly({ contextCount, contexts }: PresentOption, left: readonly string[]): boolean {
  if (contextCount !== left.length) return false;
  const held = new Set(contexts);
  return left.every((id) => held.has(id));
}

function rowOf({ targeting }: Present, _id: string, name: string, row: RemovedChange): UndoRow {
  return { targeting: targeting._id, _id, name, ...row };
}

function changed(
  option: ChangedOption,
  there: PresentOption | undefined,
  present: Present,
  { intents, rows }: IntendedUndo,
): void {
  const { _id, name, parent, exposeChildren, contexts } = option;
  if (there === undefined) {
    const left = name?.to ?? (parent === undefined ? undefined : shownGroup(parent.to, present));
    rows.push(rowOf(present, _id, nameOf(option), { undo: "notOurs", field: "deleted", left }));
    return;
  }
  const addRow = (row: RemovedChange): number => rows.push(rowOf(present, _id, there.name, row));
  const field = <Value extends string | boolean | null>(
    key: DifferingField,
    went: FieldChange<Value> | undefined,
    now: Value,
    shown: (value: Value) => ShownValue = (value) => value,
  ): Value | undefined => {
    if (went === undefined || now === went.from) return undefined;
    const values = { field: key, left: shown(went.to), now: shown(now) };
    if (now !== went.to) addRow({ undo: "notOurs", ...values });
    else if (went.from === undefined) addRow({ ...impossible("notKept"), ...values });
    else if (key === "name" && nameProblem(String(went.from)) !== undefined)
      addRow({ ...impossible("nameInvalid"), ...values });
    else return went.from;
    return undefined;
  };
  const held = new Set(there.contexts);
  const intent: Intent = {
    key: _id,
    kind: "change",
    there,
    name: field("name", name, there.name),
    parent: field("parent", parent, there.parent, (id) => shownGroup(id, present)),
    exposeChildren: field("exposeChildren", exposeChildren, there.exposeChildren ?? false),
    add: (contexts?.removed ?? []).filter((id) => !held.has(id)),
    remove: (contexts?.added ?? []).filter((id) => held.has(id)),
    caveats: [],
  };
  const unsure = contexts?.unsure ?? 0;
  if (unsure > 0) addRow({ ...impossible("notRead"), field: "contexts", contextIds: unsure });
  if (!isEmptyChange(intent)) intents.set(_id, intent);
}

function isEmptyChange({ name, parent, exposeChildren, add, remove }: Intent): boolean {
  return name === undefined && parent === undefined && exposeChildren === undefined && add.length + remove.length === 0;
}

function deleted(
  option: Extract<OptionEffect, { readonly did: "deleted" }>,
  present: Present,
  { intents, rows }: IntendedUndo,
): void {
  const { _id, before } = option;
  if (present.options.has(_id)) return;
  if (before === undefined || nameProblem(before.name) !== undefined) {
    const reason = before === undefined ? "notKept" : "nameInvalid";
    rows.push(rowOf(present, _id, nameOf(option), { ...impossible(reason), field: "deleted" }));
    return;
  }
  const { contexts, ...fields } = before;
  intents.set(_id, { key: _id, kind: "create", ...fields, add: contexts, remove: [], caveats: ["newId"] });
}
