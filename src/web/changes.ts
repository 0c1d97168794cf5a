import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import { doneBy } from "../changes/done.ts";
import type { EffectPart, Step } from "../changes/rows/entries.ts";
import type { RunState } from "../changes/state/change-state.ts";
import type { ParentRef, PlanItem, StatePlan } from "../plans/diff/plan.ts";
import { type PlanDocument, plansOf } from "../plans/plan-document.ts";
import { cutText } from "../platform/text.ts";
import type { ChangedOption, Done, DoneOption, DoneTargeting, Run } from "../runs/kind.ts";
import type { ToolServices } from "../tools/context.ts";
import { documentOf } from "../tools/kept-plan.ts";
import { kindOfPart } from "./waiting.ts";
import type { ChangeList, ChangeRow, ChangeSide, DidCounts } from "./wire.ts";

// What a run changes, or has changed, as rows with both sides. Of a plan they come from its document, of another run
// that waits from what is approved, and of a run that was carried out from what it really did.

/** The most rows of one answer, the most Context IDs of one side, and the longest name. */
const MOST_ROWS = 100;
const MOST_IDS = 5;
const MOST_LETTERS = 300;
const cut = (name: string): string => cutText(name, MOST_LETTERS);

/** A row with what orders it: its group, and its ID, by which options stand in the order in which they were made. */
interface Placed extends ChangeRow {
  readonly _id?: string | undefined;
}

interface AllChanges {
  readonly rows: readonly Placed[];
  readonly counts: DidCounts;
  readonly unchanged?: number | undefined;
}

/** A page of what a run changes, in the order of the targeting: those of a kind, or whose names or Context IDs fit. */
export async function changeList(run: Run, query: URLSearchParams, services: ToolServices): Promise<ChangeList> {
  const { rows, counts, unchanged } = await changesOfRun(run, services);
  const kind = query.get("kind") ?? "";
  const text = (query.get("search") ?? "").toLowerCase();
  const found = rows.filter((row) => (kind === "" || row.kind === kind) && (text === "" || holds(row, text)));
  const from = Math.max(0, Math.trunc(Number(query.get("from"))) || 0);
  const limit = Math.min(MOST_ROWS, Math.trunc(Number(query.get("limit"))) || MOST_ROWS);
  const shown = found.slice(from, from + limit).map(({ _id, ...row }) => row);
  return { rows: shown, total: found.length, counts, unchanged };
}

/** What was made last of a run, by its ID: pages of the same run are asked for one after the other. */
const last = new Map<string, { readonly mark: string; readonly changes: Promise<AllChanges> }>();
const MOST_KEPT = 2;

async function changesOfRun(run: Run, services: ToolServices): Promise<AllChanges> {
  const { runId } = run.header;
  const mark = `${run.state.updatedAt} ${run.status()} ${run.state.requests.sent}`;
  const known = last.get(runId);
  if (known?.mark === mark) return known.changes;
  const changes = allChanges(run, services);
  last.delete(runId);
  last.set(runId, { mark, changes });
  const [oldest] = last.keys();
  if (last.size > MOST_KEPT && oldest !== undefined) last.delete(oldest);
  return changes;
}

async function allChanges(run: Run, services: ToolServices): Promise<AllChanges> {
  if (!isChangeRun(run)) return withCounts([]);
  const { runId, call } = run.header;
  const isUnstarted = run.status() === "planned" || run.status() === "needs_confirmation";
  const document = call.tool === "apply_plan" ? await documentOf(runId, services) : undefined;
  const there = document?.plan.optionsThere ?? run.state.facts.optionsThere;
  if (isUnstarted) {
    if (document !== undefined) return withCounts(ofDocument(document), there);
    return withCounts(ofParts(run.state.facts.waits?.parts ?? [], run.state), there);
  }
  const names = new Map(Object.entries(document?.groups ?? {}));
  return withCounts(await ofDone(run, names, services), there);
}

function withCounts(rows: readonly Placed[], there?: number): AllChanges {
  const counts = { created: 0, changed: 0, deleted: 0 };
  for (const { kind } of rows) counts[kind] += 1;
  const unchanged = there === undefined ? undefined : Math.max(0, there - counts.changed - counts.deleted);
  return { rows: inOrder(rows), counts, unchanged };
}

/** Groups in the order in which they were made, then the top level; in each what was made first. */
function inOrder(rows: readonly Placed[]): readonly Placed[] {
  const first = new Map<string | null | undefined, string>();
  for (const { group, _id = "~" } of rows) {
    const known = first.get(group);
    if (known === undefined || _id < known) first.set(group, _id);
  }
  const rank = ({ group }: Placed): string => (group === null || group === undefined ? "~~" : (first.get(group) ?? ""));
  return rows.toSorted(
    (one, other) => compare(rank(one), rank(other)) || compare(one.group ?? "", other.group ?? "") || byId(one, other),
  );
}

function byId(one: Placed, other: Placed): number {
  return compare(one._id ?? "~", other._id ?? "~");
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function holds({ before, after, group }: Placed, text: string): boolean {
  const sides = [before, after].flatMap((side) => (side === undefined ? [] : [side.name, ...(side.contextIds ?? [])]));
  return [...sides, group ?? ""].some((one) => one.toLowerCase().includes(text));
}

/** Context IDs as a side shows them; none of none. */
function ids(all: readonly string[]): Pick<ChangeSide, "count" | "contextIds"> {
  return all.length === 0 ? {} : { count: all.length, contextIds: all.slice(0, MOST_IDS).map(cut) };
}

/** What a planned state, or an undo, would change. */
function ofDocument(document: PlanDocument): readonly Placed[] {
  return plansOf(document).flatMap((plan) => [
    ...ofPlannedTargeting(plan),
    ...plan.items.map((item) => ofItem(plan, item, (id) => cut(document.groups[id] ?? id))),
  ]);
}

function ofPlannedTargeting({ targeting }: StatePlan): readonly Placed[] {
  const { _id, name, rename, delete: isDeleted } = targeting;
  const says = "the targeting itself";
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
    const count = seen.contexts > 0 ? { count: seen.contexts } : {};
    return { kind: "deleted", _id, group: was, before: { name, isGroup, ...count } };
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

/** Whether a group shows its sub-options, before and after. */
function showing(from: boolean | undefined, to: boolean | undefined) {
  const words = (shows: boolean | undefined) =>
    shows === undefined ? {} : { says: shows ? "shows its sub-options" : "hides its sub-options" };
  return to === undefined ? [{}, {}] : [words(from), words(to)];
}

function renamed({ items }: StatePlan, id: string): string | undefined {
  const group = items.find((item) => item.kind === "change" && item._id === id);
  return group?.kind === "change" && group.name !== undefined ? cut(group.name) : undefined;
}

/** What a call that waits would do: all that is approved, with the Context IDs that its requests hold. */
function ofParts(parts: readonly EffectPart[], state: RunState): readonly Placed[] {
  const steps = updatesById(state);
  const rows = new Map<string, Placed>();
  for (const { title, objects } of parts) {
    const kind = kindOfPart(title);
    if (kind === undefined) continue;
    for (const [at, { name, _id, says, contextIds }] of objects.entries()) {
      const key = _id ?? `${title} ${at}`;
      const side = { name: cut(name) };
      if (kind === "deleted") {
        const isPlain = title === "Options deleted";
        rows.set(key, { kind, _id, before: { ...side, ...(isPlain ? { count: contextIds } : { says }) } });
      } else if (kind === "changed") {
        const { add = [], remove = [] } = steps.get(_id ?? "") ?? {};
        const isKnown = add.length + remove.length > 0;
        rows.set(key, {
          ...{ kind, _id, before: { ...side, ...ids(remove) } },
          after: { ...side, ...ids(add), ...(!isKnown && { says }) },
        });
      } else rows.set(key, { kind, _id, after: { ...side, says } });
    }
  }
  return [...rows.values()];
}

interface Update {
  readonly add?: readonly string[];
  readonly remove?: readonly string[];
}

function updatesById(state: RunState): ReadonlyMap<string, Update> {
  const updates = new Map<string, Update>();
  for (let id = 0; id < state.steps.length; id += 1) {
    if (state.steps.partAt(id)?.operation !== "updateOptions") continue;
    const step: Step | undefined = state.steps.at(id);
    const binding = step?.bindings.find(({ field }) => field === "_id");
    const _id = binding === undefined ? undefined : state.boundId(binding);
    if (step?.operation === "updateOptions" && _id !== undefined) updates.set(_id, step.item.contexts ?? {});
  }
  return updates;
}

/** What a run has done, as far as it is known to have been applied. */
async function ofDone(
  { header: { runId }, state }: ChangeRun,
  groups: Map<string, string>,
  { runs }: ToolServices,
): Promise<readonly Placed[]> {
  const done = await doneBy(state, runs.part(runId, "former")());
  for (const option of done.options) {
    const name = nameAfter(option) ?? nameBefore(option);
    if (name !== undefined) groups.set(option._id, name);
  }
  const names = namesOf(state);
  return [...done.targetings.map(ofTargeting), ...done.options.map((option) => ofOption(option, groups, names, done))];
}

/** The names of objects that are given by their IDs. */
function namesOf(state: RunState): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (let object = 0; object < state.objects.length; object += 1) {
    const { name } = state.objects.at(object) ?? {};
    const _id = state.idOf(object);
    if (_id !== undefined && name !== undefined) names.set(_id, name);
  }
  return names;
}

function nameAfter(option: DoneOption): string | undefined {
  return option.did === "created" ? option.left.name : option.did === "changed" ? option.name?.to : undefined;
}

function nameBefore(option: DoneOption): string | undefined {
  return option.did === "deleted" ? option.before?.name : undefined;
}

function ofTargeting(targeting: DoneTargeting): Placed {
  const { _id } = targeting;
  const says = "the targeting itself";
  if (targeting.did === "created") return { kind: "created", _id, after: { name: cut(targeting.name), says } };
  if (targeting.did === "deleted") return { kind: "deleted", _id, before: { name: cut(targeting.name ?? _id), says } };
  const { from = "", to } = targeting.name;
  return { kind: "changed", _id, before: { name: cut(from), says }, after: { name: cut(to), says } };
}

function ofOption(
  option: DoneOption,
  groups: ReadonlyMap<string, string>,
  names: ReadonlyMap<string, string>,
  { options }: Done,
): Placed {
  const { _id } = option;
  const groupOf = (id: string | null | undefined): string | null | undefined => {
    if (id === null || id === undefined) return id;
    return cut(groups.get(id) ?? names.get(id) ?? nameOfDeleted(options, id) ?? "a group");
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
  return ofChanged(option, groupOf, names);
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
      ...(parent !== undefined && { within: from }),
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
