import { defined, groupedBy } from "../platform/by-key.ts";
import type { CreatedWithoutId, Done, OptionEffect, TargetingEffect, UncertainObject } from "../runs/kind.ts";
import { nameProblem } from "../spec/names-and-contexts.ts";
import { digestOfContexts } from "./base.ts";
import {
  itemCount,
  NOTHING_PLANNED,
  type ParentRef,
  type PlanItem,
  type PlannedTargeting,
  type SeenOption,
  type StatePlan,
} from "./plan.ts";
import {
  type IntendedUndo,
  type Intent,
  impossible,
  inOrder,
  intended,
  nameOf,
  type Present,
  type PresentOption,
  removeConflictingChanges,
  type TargetingUndo,
  type UndoPlan,
  type UndoRow,
} from "./undo-plan.ts";

export function targetingsIn({ targetings, options, unresolved }: Done): readonly string[] {
  const within = [...options, ...unresolved].flatMap(({ targeting }) => targeting ?? []);
  return [...new Set([...targetings.map(({ _id }) => _id), ...within])];
}

/**
 * Returns the options whose Context IDs must be read for an undo. If a group gets Context IDs back, these are compared
 * with those of all groups.
 */
export function contentsNeeded(done: Done, present: Present): readonly string[] {
  const { targeting, options } = present;
  const needed = new Set<string>();
  let groups = false;
  const byName = new Map([...options.values()].map((option) => [option.name, option]));
  for (const one of [...done.options, ...foundByName(done, new Map([[targeting._id, present]])).found]) {
    if (one.targeting !== targeting._id) continue;
    const there = options.get(one._id);
    // With another number of Context IDs, the option has changed since the run. It stays, so its IDs are not needed.
    if (one.did === "created" && there?.contextCount === one.left.contexts.length) needed.add(one._id);
    // This option may be the deleted one, created again. Its Context IDs show whether it is.
    const again = one.did === "deleted" && one.before !== undefined ? byName.get(one.before.name) : undefined;
    if (again !== undefined && again.contextCount > 0) needed.add(again._id);
    const { added = [], removed = [] } = one.did === "changed" ? (one.contexts ?? {}) : {};
    if (added.length + removed.length > 0) needed.add(one._id);
    groups ||= one.did === "deleted" && one.before?.type === "collection" && one.before.contexts.length > 0;
    groups ||= there?.type === "collection" && removed.length > 0;
  }
  if (groups) for (const { _id, type } of options.values()) if (type === "collection") needed.add(_id);
  return [...needed].filter((id) => (options.get(id)?.contextCount ?? 0) > 0);
}

/**
 * Plans the undo of a run. A field is restored if it still has the value that the run wrote. `nameTaken`: the
 * targetings whose previous name another targeting has now.
 */
export function undoPlan(
  done: Done,
  present: ReadonlyMap<string, Present>,
  nameTaken: ReadonlySet<string> = new Set(),
): UndoPlan {
  const rows: UndoRow[] = [
    ...done.unresolved.map((object) => ({ ...doubted(object), undo: "unresolved" }) as const),
    ...done.unknown.map(
      (object) => ({ ...doubted(object), undo: "impossible", reasons: ["unknownOutcome"] }) satisfies UndoRow,
    ),
  ];
  const byName = foundByName(done, present);
  for (const { targeting, left } of byName.missing) {
    rows.push({ targeting, name: left.name, undo: "impossible", reasons: ["idUnknown"] });
  }
  const options = [...done.options, ...byName.found];
  const byTargeting = groupedBy(options, ({ targeting }) => targeting);
  for (const option of byTargeting.get(undefined) ?? []) rows.push(unplaced(option));
  const targetings: TargetingUndo[] = [];
  for (const _id of targetingsIn(done)) {
    const own = done.targetings.find((one) => one._id === _id);
    const options = byTargeting.get(_id) ?? [];
    const there = present.get(_id);
    const isTaken = nameTaken.has(_id);
    if (there === undefined) rows.push(...targetingGone(own, _id, options, { targetings, isTaken }));
    else if (own?.did !== "deleted") rows.push(...targetingThere(own, options, there, { targetings, isTaken }));
  }
  return { targetings, rows };
}

/**
 * Finds created options whose IDs could not be read: by name, in the groups in which they were created. `missing`:
 * those that were not found, or whose name several options have.
 */
function foundByName({ withoutId = [] }: Done, present: ReadonlyMap<string, Present>) {
  const found: OptionEffect[] = [];
  const missing: CreatedWithoutId[] = [];
  const targetings = new Set(withoutId.map(({ targeting }) => targeting));
  const byName = new Map(
    [...targetings].map((_id) => [_id, uniqueByName([...(present.get(_id)?.options.values() ?? [])])]),
  );
  for (const one of withoutId) {
    const { targeting, left, group } = one;
    const options = byName.get(targeting);
    const inGroup = group === undefined ? left.parent : options?.get(group)?._id;
    const there = options?.get(left.name);
    if (there !== undefined && there.parent === inGroup) {
      found.push({ did: "created", _id: there._id, targeting, left: { ...left, parent: there.parent } });
    } else if (present.has(targeting)) missing.push(one);
  }
  return { found, missing };
}

/** Returns the options by name: undefined if several have the name, because any of them may be the right one. */
function uniqueByName(options: readonly PresentOption[]): ReadonlyMap<string, PresentOption | undefined> {
  const byName = new Map<string, PresentOption | undefined>();
  for (const one of options) byName.set(one.name, byName.has(one.name) ? undefined : one);
  return byName;
}

/** Plans the undo of a run without reading the service, as if nothing had changed. Omits new options without IDs. */
export function undoPlanUnread(done: Done): UndoPlan {
  const present = new Map<string, Present>();
  const byTargeting = groupedBy(done.options, ({ targeting }) => targeting);
  for (const _id of targetingsIn(done)) {
    const own = done.targetings.find((one) => one._id === _id);
    if (own?.did === "deleted") continue;
    const name = own?.did === "changed" ? own.name.to : (own?.name ?? "");
    const left = (byTargeting.get(_id) ?? []).flatMap((option) => leftBy(option));
    const options = new Map(left.map((option) => [option._id, option]));
    present.set(_id, { targeting: { _id, name }, options, isPartial: true });
  }
  return undoPlan({ ...done, withoutId: [] }, present);
}

/** Returns an option as the run left it, or none if the run deleted it. Only fields that the run wrote are valid. */
function leftBy(option: OptionEffect): readonly PresentOption[] {
  const { _id } = option;
  if (option.did === "deleted") return [];
  if (option.did === "created") return [{ _id, ...option.left, contextCount: option.left.contexts.length }];
  const { name, parent, exposeChildren, contexts } = option;
  const written = { name: name?.to ?? _id, parent: parent?.to ?? null, exposeChildren: exposeChildren?.to };
  return [{ _id, type: "atomic", ...written, contextCount: 0, contexts: contexts?.added }];
}

/** Counts the objects that already have their previous state. An undo plan has no rows for them. */
export function alreadyUndone({ targetings, options }: Done, rows: readonly UndoRow[]): number {
  const inRows = new Set(rows.map(({ _id }) => _id));
  return [...targetings, ...options].filter(({ _id }) => !inRows.has(_id)).length;
}

function doubted({ _id, name, targeting }: UncertainObject): Pick<UndoRow, "targeting" | "_id" | "name"> {
  return { name: name ?? _id ?? "", ...defined({ _id, targeting }) };
}

function unplaced(option: OptionEffect): UndoRow {
  const { _id } = option;
  const name = nameOf(option);
  const unsure = option.did === "changed" ? (option.contexts?.unsure ?? 0) : 0;
  if (unsure > 0) return { _id, name, ...impossible("notRead"), field: "contexts", contextIds: unsure };
  return { _id, name, undo: "impossible", reasons: ["notKept"] };
}

interface PlannedSoFar {
  readonly targetings: TargetingUndo[];
  readonly isTaken: boolean;
}

function targetingGone(
  own: TargetingEffect | undefined,
  targeting: string,
  options: readonly OptionEffect[],
  { targetings, isTaken }: PlannedSoFar,
): readonly UndoRow[] {
  const rows: UndoRow[] = [];
  if (own?.did === "created") return rows;
  if (own?.did === "changed") {
    rows.push({ targeting, _id: targeting, name: own.name.to, undo: "notOurs", field: "deleted", left: own.name.to });
  }
  if (own?.did === "deleted" && own.name !== undefined && nameProblem(own.name) === undefined && !isTaken) {
    const empty: Present = { targeting: { _id: targeting, name: own.name }, options: new Map() };
    const all = intended(options, empty);
    removeConflictingChanges(all, empty);
    rows.push({ targeting, _id: targeting, name: own.name, undo: "caveat", reasons: ["newId"] });
    return [...rows, ...assembled(all, empty, { name: own.name }, targetings)];
  }
  if (own?.did === "deleted") {
    const reason = own.name === undefined ? "notKept" : isTaken ? "nameTaken" : "nameInvalid";
    rows.push({ targeting, _id: targeting, name: own.name ?? targeting, ...impossible(reason) });
  }
  for (const option of options) {
    if (option.did === "deleted") {
      rows.push({ targeting, _id: option._id, name: nameOf(option), undo: "impossible", reasons: ["targetingGone"] });
    } else if (option.did === "changed") {
      rows.push({ targeting, _id: option._id, name: nameOf(option), undo: "notOurs", field: "deleted" });
    }
  }
  return rows;
}

function targetingThere(
  own: Exclude<TargetingEffect, { readonly did: "deleted" }> | undefined,
  options: readonly OptionEffect[],
  there: Present,
  { targetings, isTaken }: PlannedSoFar,
): readonly UndoRow[] {
  const { _id, name } = there.targeting;
  const about = { targeting: _id, _id, name };
  const rows: UndoRow[] = [];
  const all = intended(options, there);
  removeConflictingChanges(all, there);
  let planned: PlannedTargeting = { _id, name };
  if (own?.did === "created") {
    const staying = [...there.options.keys()].filter((id) => all.intents.get(id)?.kind !== "delete").length;
    if (name === own.name && staying === 0) {
      planned = { _id, name, delete: true };
      rows.push({ ...about, undo: "exact" });
    } else if (name !== own.name) rows.push({ ...about, undo: "notOurs", field: "name", left: own.name, now: name });
    else rows.push({ ...about, undo: "notOurs", field: "added", left: countLeft(options), now: there.options.size });
  } else if (own !== undefined && name !== own.name.from) {
    const { from, to } = own.name;
    const values = { field: "name", left: to, now: name } as const;
    if (name !== to) rows.push({ ...about, undo: "notOurs", ...values });
    else if (from === undefined) rows.push({ ...about, ...impossible("notKept"), ...values });
    else if (nameProblem(from) !== undefined) rows.push({ ...about, ...impossible("nameInvalid"), ...values });
    else if (isTaken) rows.push({ ...about, ...impossible("nameTaken"), field: "name", now: from });
    else {
      planned = { _id, name, rename: from };
      rows.push({ ...about, undo: "exact" });
    }
  }
  return [...rows, ...assembled(all, there, planned, targetings)];
}

function countLeft(options: readonly OptionEffect[]): number {
  return options.filter(({ did }) => did === "created").length;
}

/** Adds the plan for undoing the changes in one targeting, if there are any. Returns the rows of its objects. */
function assembled(
  { intents, rows }: IntendedUndo,
  present: Present,
  targeting: PlannedTargeting,
  targetings: TargetingUndo[],
): readonly UndoRow[] {
  const ordered = inOrder([...intents.values()]);
  const positions = new Map(ordered.map(({ key }, item) => [key, item]));
  const subOptions = groupedBy(present.options.values(), ({ parent }) => parent);
  const refOf = (parent: string | null): ParentRef => {
    if (parent === null) return null;
    const item = intents.get(parent)?.kind === "create" ? positions.get(parent) : undefined;
    return item === undefined ? { _id: parent } : { item };
  };
  const items = ordered.map((intent): PlanItem => {
    const item = itemOf(intent, refOf, (id) => subOptions.get(id)?.length ?? 0);
    return { ...item, undo: intent.caveats.length === 0 ? "exact" : "caveat" };
  });
  const standsFor = ordered.flatMap(({ kind, key }, item) => (kind === "create" ? [{ item, _id: key }] : []));
  const plan: StatePlan = { ...NOTHING_PLANNED, targeting, items, optionsThere: present.options.size };
  const position = targetings.length;
  if (itemCount(plan) > 0) targetings.push({ plan, standsFor });
  const back = ordered.flatMap(({ key, name, there, caveats, heldByGroups = 0 }, item): readonly UndoRow[] => {
    const about = { targeting: present.targeting._id, _id: key, name: there?.name ?? name ?? "" };
    const at = { targeting: position, item };
    const row = caveats.length === 0 ? { undo: "exact" as const } : { undo: "caveat" as const, reasons: [...caveats] };
    const stays = { ...about, ...impossible("heldByGroup"), field: "contexts" as const, contextIds: heldByGroups };
    return [{ ...about, at, ...row }, ...(heldByGroups > 0 ? [stays] : [])];
  });
  return [...back, ...rows];
}

function itemOf(
  { key, kind, there, name, type = "atomic", parent, exposeChildren, add, remove }: Intent,
  refOf: (parent: string | null) => ParentRef,
  subOptions: (id: string) => number,
): PlanItem {
  if (kind === "create" || there === undefined) {
    const group = refOf(parent ?? null);
    return { kind: "create", line: 0, name: name ?? "", type, parent: group, exposeChildren, contexts: add };
  }
  const seen = seenOf(there, subOptions);
  if (kind === "delete") return { kind: "delete", _id: key, seen };
  return {
    kind: "change",
    line: 0,
    _id: key,
    seen,
    exposeChildren,
    name,
    parent: parent === undefined ? undefined : refOf(parent),
    ...(add.length + remove.length > 0 && { contexts: { add, remove, after: digestAfter(there, add, remove) } }),
  };
}

function digestAfter({ contexts = [] }: PresentOption, add: readonly string[], remove: readonly string[]): string {
  const taken = new Set(remove);
  return digestOfContexts([...contexts.filter((id) => !taken.has(id)), ...add]);
}

function seenOf(
  { _id, name, parent, type, exposeChildren, contextCount, contexts = [] }: PresentOption,
  subOptions: (id: string) => number,
): SeenOption {
  const seen = { name, parent, type, contexts: contextCount, digest: digestOfContexts(contexts), exposeChildren };
  return type === "collection" ? { ...seen, subOptions: subOptions(_id) } : seen;
}
