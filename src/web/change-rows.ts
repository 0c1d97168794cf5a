import { LOSS_TITLES, WITHIN_TITLE } from "../answers/approvals.ts";
import { many } from "../answers/message-words.ts";
import type { WriteCall } from "../changes/call.ts";
import type { ChangeRun } from "../changes/change-run.ts";
import type { RunState } from "../changes/change-state.ts";
import { effectsOfRun, namesOf, readPreviousValues } from "../changes/done.ts";
import type { EffectObject, EffectPart } from "../changes/rows/entries.ts";
import type { ParentRef, PlanItem, StatePlan } from "../plans/plan.ts";
import { type PlanDocument, plansOf } from "../plans/plan-document.ts";
import { cutText } from "../platform/text.ts";
import type { ChangedOption, Done, OptionEffect, TargetingEffect } from "../runs/kind.ts";
import type { ToolServices } from "../tools/define-tool.ts";
import { kindOfPart } from "./effect-parts.ts";
import { freedBy } from "./waiting.ts";
import type { ChangeRow, ChangeSide } from "./wire.ts";

// Makes rows of changes from a plan, from the effect of a call that waits for approval, and from the journal of a run.

const MAX_LETTERS = 300;

export function cut(name: string): string {
  return cutText(name, MAX_LETTERS);
}

/** One side of a row: the object before or after the change, with all its Context IDs. The page gets only the first. */
export interface WholeSide extends Omit<ChangeSide, "contextIds"> {
  readonly all?: readonly string[] | undefined;
}

/** A row with the ID of its object. Rows are sorted by group and then by ID, which is the order of creation. */
export interface Placed extends Omit<ChangeRow, "before" | "after"> {
  readonly _id?: string | undefined;
  readonly before?: WholeSide | undefined;
  readonly after?: WholeSide | undefined;
  /** Set if it is unknown which Context IDs the option gets, because the stored effect has only their number. */
  readonly lacksIds?: true | undefined;
  /**
   * Set if the option is deleted only because its targeting is. The Context IDs of such an option are unknown until the
   * targeting has been read from the service. A row with the Context IDs then replaces this row.
   */
  readonly isInside?: true | undefined;
}

function ids(all: readonly string[]): Pick<WholeSide, "count" | "all"> {
  return { count: all.length, all };
}

/** Marks the row that is about the targeting itself instead of one of its options. */
export const ITSELF = "(targeting)";

export function changesOfPlan(document: PlanDocument): readonly Placed[] {
  return plansOf(document).flatMap((plan) => [
    ...ofPlannedTargeting(plan),
    ...plan.items.map((item) => ofItem(plan, item, (id) => cut(document.groups[id] ?? id))),
  ]);
}

function ofPlannedTargeting({ targeting }: StatePlan): readonly Placed[] {
  const { _id, name, rename, delete: isDeleted } = targeting;
  const says = ITSELF;
  if (isDeleted) return [{ kind: "deleted", _id, before: { name: cut(name), says } }];
  if (_id === undefined) return [{ kind: "created", after: { name: cut(name), says } }];
  if (rename === undefined) return [];
  return [{ kind: "changed", _id, before: { name: cut(name), says }, after: { name: cut(rename), says } }];
}

function ofItem(plan: StatePlan, item: PlanItem, groupName: (id: string) => string): Placed {
  const nameOf = (parent: ParentRef): string | null => {
    if (parent === null) return null;
    if ("_id" in parent) return renamed(plan, parent._id) ?? groupName(parent._id);
    const group = plan.items[parent.item];
    return group?.kind === "create" ? cut(group.name) : "";
  };
  if (item.kind === "create") {
    const isGroup = item.type === "collection" || undefined;
    const after = { name: cut(item.name), isGroup, ...ids(item.contexts) };
    return { kind: "created", group: nameOf(item.parent), after };
  }
  const { _id, seen } = item;
  const isGroup = seen.type === "collection" || undefined;
  const was = seen.parent === null ? null : groupName(seen.parent);
  const name = cut(seen.name);
  if (item.kind === "delete") {
    return { kind: "deleted", _id, group: was, before: { name, isGroup, count: seen.contexts } };
  }
  const isMoved = item.parent !== undefined;
  const group = item.parent === undefined ? was : nameOf(item.parent);
  const before = { name, isGroup, ...(isMoved && { within: was }) };
  const after = { name: cut(item.name ?? seen.name), isGroup, ...(isMoved && { within: group }) };
  const { add = [], remove = [] } = item.contexts ?? {};
  const [shownBefore, shownAfter] = showing(seen.exposeChildren ?? false, item.exposeChildren);
  return {
    ...{ kind: "changed", _id, group },
    before: { ...before, ...ids(remove), ...shownBefore },
    after: { ...after, ...ids(add), ...shownAfter },
  };
}

function showing(from: boolean | undefined, to: boolean | undefined) {
  const words = (shows: boolean | undefined) =>
    shows === undefined ? {} : { says: shows ? "shows its sub-options" : "hides its sub-options" };
  return to === undefined ? [{}, {}] : [words(from), words(to)];
}

function renamed({ items }: StatePlan, id: string): string | undefined {
  const group = items.find((item) => item.kind === "change" && item._id === id);
  return group?.kind === "change" && group.name !== undefined ? cut(group.name) : undefined;
}

/**
 * Returns the changes of a call that waits for approval, from the effect that the person sees. The effect has only
 * counts of Context IDs, so the Context IDs are taken from the input of the call.
 */
export function rowsOfEffect(parts: readonly EffectPart[], { header: { call } }: ChangeRun): readonly Placed[] {
  const given = inputIds(call);
  const rows = new Map<string, Placed>();
  for (const { title, objects } of parts) {
    const isInside = title === WITHIN_TITLE;
    const kind = isInside ? "deleted" : kindOfPart(title);
    if (kind === undefined) continue;
    for (const [at, object] of objects.entries()) {
      const key = object._id ?? `${title} ${at}`;
      const before = rows.get(key);
      rows.set(key, {
        ...before,
        ...(kind === "changed" ? changedRow(object, given, before) : ofPart(object, title)),
        ...(isInside && { isInside }),
      });
    }
  }
  return [...rows.values()];
}

function ofPart({ name, _id, says, contextIds, freed = 0 }: EffectObject, title: string): Placed {
  const side = { name: cut(name) };
  if (kindOfPart(title) === "created") return { kind: "created", _id, after: { ...side, says } };
  if (title === LOSS_TITLES.targeting) return { kind: "deleted", _id, before: { ...side, says: ITSELF } };
  if (title === WITHIN_TITLE) return { kind: "deleted", _id, before: { ...side, says } };
  const isGroup = title === LOSS_TITLES.optionGroup;
  if (!isGroup) return { kind: "deleted", _id, before: { ...side, count: contextIds } };
  const stay = `group without its ${many(freed, "sub-option")}`;
  return { kind: "deleted", _id, before: { ...side, count: contextIds, isGroup, says: freed > 0 ? stay : undefined } };
}

/**
 * Returns the row of an option that loses or gets Context IDs. Losing and getting are two parts of the effect:
 * `earlier` is the row of this option from the other part.
 */
function changedRow(
  { name, _id = "", says, contextIds }: EffectObject,
  given: GivenIds,
  earlier: Placed | undefined,
): Placed {
  const { add = [], remove = [] } = given.get(_id) ?? given.get(name) ?? {};
  const side = { name: cut(name) };
  const { before = side, after = side, lacksIds } = earlier ?? {};
  const ofRow = { kind: "changed" as const, _id };
  if (contextIds === undefined) {
    // `add` may contain Context IDs that the option already has, which the effect does not count. If the counts differ,
    // it is unknown which ones are new.
    if (says !== `gets ${many(add.length, "Context ID")}`)
      return { ...ofRow, before, after: { ...after, says }, lacksIds: true };
    return { ...ofRow, before, after: { ...after, ...ids(add) }, lacksIds };
  }
  const isKnown = remove.length === contextIds;
  const lost = isKnown ? ids(remove) : { count: contextIds };
  return { ...ofRow, before: { ...before, ...lost }, after: isKnown ? after : { ...after, says }, lacksIds };
}

/** The Context IDs that a call adds to and removes from each option, by ID or name of the option. */
type GivenIds = ReadonlyMap<string, Partial<Record<"add" | "remove", readonly string[] | undefined>>>;

function inputIds({ tool, input }: WriteCall): GivenIds {
  if (tool !== "update_contexts") return new Map();
  return new Map(
    input.items.flatMap(({ _id, _ids = [], name, names = [], add, remove }) =>
      [_id, ..._ids, name, ...names].flatMap((key) => (key === undefined ? [] : [[key, { add, remove }] as const])),
    ),
  );
}

/**
 * The changes of a run. `freed`: by ID, the names of the sub-options that moved to the top level because their group
 * was deleted. A name is undefined if it is unknown.
 */
interface EndedRows {
  readonly rows: readonly Placed[];
  readonly freed: ReadonlyMap<string, string | undefined>;
}

/** Returns the changes of a run that are known to have been applied. Adds the names of its options to `groups`. */
export async function rowsOfEndedRun(
  { header: { runId }, state }: { readonly header: Pick<ChangeRun["header"], "runId">; readonly state: RunState },
  groups: Map<string, string>,
  { runs }: { readonly runs: Pick<ToolServices["runs"], "part"> },
): Promise<EndedRows> {
  const former = runs.part(runId, "former");
  const done = await effectsOfRun(state, former());
  const previous = await readPreviousValues(former());
  for (const option of done.options) {
    const name = nameAfter(option) ?? nameBefore(option);
    if (name !== undefined) groups.set(option._id, name);
  }
  const known = { groups, previous, names: knownNames(state, previous), options: done.options };
  const freed = freedBy(done, state);
  const others = done.options.filter(({ _id }) => !freed.has(_id));
  return {
    rows: [...done.targetings.map(ofTargeting), ...others.map((option) => ofOption(option, known))],
    freed: new Map([...freed].map((_id) => [_id, known.names.get(_id)])),
  };
}

/**
 * Returns names of objects by ID: the objects of the run, and the groups from or to which it moved options. If only the
 * name from before the run is known, returns that name.
 */
function knownNames(state: RunState, previous: Known["previous"]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const { _id, name } of previous.values()) if (name !== undefined) names.set(_id, name);
  for (let object = 0; object < state.objects.length; object += 1) {
    const { from, to } = state.objects.at(object)?.change ?? {};
    for (const side of [from, to]) {
      if (typeof side !== "object") continue;
      const { parent, parentName } = side;
      if (typeof parent === "string" && typeof parentName === "string") names.set(parent, parentName);
    }
  }
  return new Map([...names, ...namesOf(state)]);
}

function nameAfter(option: OptionEffect): string | undefined {
  return option.did === "created" ? option.left.name : option.did === "changed" ? option.name?.to : undefined;
}

function nameBefore(option: OptionEffect): string | undefined {
  return option.did === "deleted" ? option.before?.name : undefined;
}

function ofTargeting(targeting: TargetingEffect): Placed {
  const { _id } = targeting;
  const says = ITSELF;
  if (targeting.did === "created") return { kind: "created", _id, after: { name: cut(targeting.name), says } };
  if (targeting.did === "deleted") return { kind: "deleted", _id, before: { name: cut(targeting.name ?? _id), says } };
  const { from = "", to } = targeting.name;
  return { kind: "changed", _id, before: { name: cut(from), says }, after: { name: cut(to), says } };
}

interface Known {
  readonly groups: ReadonlyMap<string, string>;
  readonly previous: Awaited<ReturnType<typeof readPreviousValues>>;
  readonly names: ReadonlyMap<string, string>;
  readonly options: Done["options"];
}

function ofOption(option: OptionEffect, { groups, previous, names, options }: Known): Placed {
  const { _id } = option;
  const groupOf = (id: string | null | undefined): string | null | undefined => {
    if (id === null || id === undefined) return id;
    return cut(groups.get(id) ?? names.get(id) ?? nameOfDeleted(options, id) ?? `group ${id}`);
  };
  if (option.did === "created") {
    const { name, type, parent, contexts } = option.left;
    const after = { name: cut(name), isGroup: type === "collection" || undefined, ...ids(contexts) };
    return { kind: "created", _id, group: groupOf(parent), after };
  }
  if (option.did === "deleted") {
    const { name = names.get(_id) ?? _id, type, parent, contexts = [] } = option.before ?? {};
    const before = { name: cut(name), isGroup: type === "collection" || undefined, ...ids(contexts) };
    return { kind: "deleted", _id, group: groupOf(parent), before };
  }
  const before = previous.get(_id);
  const row = ofChanged(option, groupOf, names);
  if (option.parent !== undefined || before?.kind !== "option") return row;
  const { parent } = before;
  // A group whose name is unknown gets no heading, because several such groups would look like one.
  const name = groups.get(parent ?? "") ?? names.get(parent ?? "");
  return { ...row, group: typeof parent === "string" ? name && cut(name) : parent };
}

function nameOfDeleted(options: Done["options"], id: string): string | undefined {
  const found = options.find(({ _id }) => _id === id);
  return found === undefined ? undefined : nameBefore(found);
}

function ofChanged(
  { _id, name, parent, exposeChildren, contexts }: ChangedOption,
  groupOf: (id: string | null | undefined) => string | null | undefined,
  names: ReadonlyMap<string, string>,
): Placed {
  const present = name?.to ?? names.get(_id) ?? _id;
  const [shownBefore, shownAfter] = showing(exposeChildren?.from, exposeChildren?.to);
  const [from, to] = [groupOf(parent?.from), groupOf(parent?.to)];
  return {
    ...{ kind: "changed", _id, group: to },
    before: {
      name: cut(name === undefined ? present : (name.from ?? present)),
      // The previous group is unknown if it could not be read when the run was planned.
      ...(parent !== undefined && { within: from === undefined ? "an unknown place" : from }),
      ...ids(contexts?.removed ?? []),
      ...shownBefore,
    },
    after: {
      name: cut(present),
      ...(parent !== undefined && { within: to }),
      ...ids(contexts?.added ?? []),
      ...shownAfter,
    },
  };
}
