import { KEPT_TITLE, LOSS_TITLES, WITHIN_TITLE } from "../answers/approvals.ts";
import { messageFor } from "../answers/failures.ts";
import { quoteShort } from "../answers/fence.ts";
import { many, undoResultWords } from "../answers/message-words.ts";
import { type ApprovalRun, isApproval } from "../changes/approvals.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import { effectsOfRun } from "../changes/done.ts";
import type { EffectPart } from "../changes/rows/entries.ts";
import { undoPlanUnread } from "../plans/undo.ts";
import { countsOfRows } from "../plans/undo-plan.ts";
import { capitalized, thousands } from "../platform/text.ts";
import type { Done, ListedRun, Run } from "../runs/kind.ts";
import { nameProblem } from "../spec/names-and-contexts.ts";
import type { ToolServices } from "../tools/define-tool.ts";
import {
  countsOfEffect,
  DELETED,
  deletedIn,
  deletionWords,
  kindOfPart,
  nounOf,
  nounsOf,
  sumIn,
} from "./effect-parts.ts";
import { PAGE_ROWS, pageOf } from "./list-page.ts";
import type { ChangeCounts, EffectObjects, RunRow, EffectPart as ShownPart, Waiting } from "./wire.ts";

/** From this number of deletions on, a person must type a text to approve (`textToType`). */
const LARGE = 100;
/** The maximum number of objects for which the page computes what an undo would do. 10,000 take about 100 ms. */
const MAX_PLANNED = 10_000;
/** Matches names that a person can type: visible characters and single spaces. */
const TYPED = /^[\p{L}\p{M}\p{N}\p{P}\p{S}]+(?: [\p{L}\p{M}\p{N}\p{P}\p{S}]+)*$/u;
const MAX_TYPED = 60;

/** Describes the approval for which a run waits. Undefined if it does not wait. */
export function waitingOf(
  run: ChangeRun | ApprovalRun,
  { days, targeting }: { readonly days: number; readonly targeting: RunRow["targeting"] },
): Omit<Waiting, "ended" | "act"> | undefined {
  const { waits, effect = "" } = run.state.facts;
  const isDeletion = run.header.call.tool === "delete_options";
  if (waits === undefined) return undefined;
  const { digest, note, parts, until, elsewhere, stale, differs } = waits;
  const isUndo = isUndoPlan(run);
  const isSandbox = run.header.environment === "sandbox";
  const counts = countsOfWaiting(run);
  const newGroups = isChangeRun(run) ? (kindsOfWaiting(run).groups?.created ?? 0) : 0;
  const contextIds = sumIn(parts, "contextIds");
  // The title of a run that only deletes already says what is deleted.
  const isOnlyDeletion = isDeletion && counts.deleted > 0 && counts.created + counts.changed === 0;
  return {
    effect: isOnlyDeletion ? "" : (note ?? effect),
    stays: sentencesOf(staysWords(parts), failedWords(run)),
    ...{ digest, parts: parts.map(firstObjects), expiresAt: until, elsewhere },
    undo: parts.length === 0 ? undefined : undoOf(counts, parts, { days, isUndo, isSandbox, newGroups }),
    consequence: sentencesOf(
      isDeletion && freedWords(parts),
      isUndo && restoredNote(newObjects(counts.created, newGroups, parts)),
    ),
    check: counts.deleted === 0 ? undefined : isSandbox ? OF_SANDBOX : campaignsNote(counts.deleted, parts),
    counts,
    magnitude: magnitudeOf(run, parts),
    optionsInside: sumIn(parts, "options") || undefined,
    contextIds: contextIds > 0 ? contextIds : undefined,
    typed: elsewhere === undefined ? textToType(parts, targeting) : undefined,
    stale: stale === undefined ? undefined : (differs ?? [stale]),
  };
}

interface UndoContext {
  readonly days: number;
  readonly isUndo?: boolean;
  /** Whether the campaigns are not real. The approval then already says so (`check`). */
  readonly isSandbox?: boolean;
  readonly newGroups?: number;
}

/** Describes what can be undone. Restored objects have new IDs, which campaigns and ad products do not use. */
export function undoOf(
  { created, changed, deleted }: ChangeCounts,
  parts: readonly EffectPart[],
  { days, isUndo = false, isSandbox = false, newGroups = 0 }: UndoContext,
): Waiting["undo"] {
  const refusedNames = deletedIn(parts).flatMap(({ name }) => (nameProblem(name) === undefined ? [] : [name]));
  const lost = refusedNames.length;
  const counts = { created: newObjects(created, newGroups, parts), exact: changed, newIds: deleted - lost, lost };
  const isDeletion = created + changed === 0;
  const refused = `the service does not accept ${lost === 1 ? "its name" : "their names"}`;
  const some = lost === 0 ? "" : ` restores ${thousands(counts.newIds)} of ${many(deleted, nounOf(parts))}`;
  const title = undoTitle(counts, many(days, "day"), {
    isUndo,
    restored: `${some}: ${newIdWords(counts.newIds, parts)}${isSandbox ? "" : "; campaigns are not reconnected"}`,
  });
  if (isDeletion && counts.newIds === 0)
    return { title: lost > 0 ? `${title}: ${refused}` : title, notes: [], isImpossible: true };
  const notes = [
    lost > 0 && `Not restored: ${firstNames(refusedNames)}, because ${refused}.`,
    !isDeletion &&
      !isSandbox &&
      counts.newIds > 0 &&
      "Undo does not reconnect campaigns and ad products to deleted objects.",
  ].filter((words) => words !== false);
  return { title, notes };
}

/**
 * Describes deleted objects after they are restored: with new IDs and, if they had Context IDs, with the same Context
 * IDs.
 */
function newIdWords(restored: number, parts: readonly EffectPart[]): string {
  const options = sumIn(parts, "options");
  const nouns = commaList([...new Set([...nounsOf(parts), ...(options > 0 ? ["option"] : [])])]);
  const same = options > 0 || sumIn(parts, "contextIds") > 0 ? "same Context IDs, " : "";
  const ids = `${same}new ${nouns} ID${restored + options === 1 ? "" : "s"}`;
  const freed = sumIn(parts, "freed");
  const groups = parts.find(({ title }) => title === LOSS_TITLES.optionGroup)?.count;
  const back = freed === 0 ? "" : `, ${many(freed, "sub-option")} back in the group${groups === 1 ? "" : "s"}`;
  return `${ids}${back}`;
}

/** The maximum number of names in a sentence. */
const MAX_NAMES = 3;

function firstNames(names: readonly string[]): string {
  return firstOf(names.map(quoteShort));
}

function firstOf(texts: readonly string[]): string {
  const rest = texts.length - MAX_NAMES;
  const shown = texts.slice(0, MAX_NAMES);
  return commaList(rest > 0 ? [...shown, `${thousands(rest)} more`] : shown);
}

/** Says which sub-options are not deleted, because each is the last one of a group that cannot be empty. */
function staysWords(parts: readonly EffectPart[]): string | undefined {
  const groups = parts.find(({ title }) => title === KEPT_TITLE)?.objects ?? [];
  if (groups.length === 0) return undefined;
  const kept = firstOf(groups.map(({ name, says }) => `${quoteShort(name)} ${says}`));
  const stay = groups.length === 1 ? "1 requested option stays" : `${thousands(groups.length)} requested options stay`;
  return `${stay}: ${kept}, since a group cannot be empty.`;
}

/** Names the items of a waiting run that have already failed, with the reason of the first. Undefined if none has. */
function failedWords({ state }: ChangeRun | ApprovalRun): string | undefined {
  const failed = Array.from({ length: state.objects.length }, (_, object) => object).filter(
    (object) => state.standing(object) === "failed",
  );
  const reason = state.reason(failed[0] ?? 0);
  if (reason === undefined || failed.length === 0) return undefined;
  const names = failed.flatMap((object) => state.objects.at(object)?.name ?? []);
  const what = `${thousands(failed.length)} of ${many(state.objects.length, "item")} ${failed.length === 1 ? "is" : "are"} left out`;
  return `${what}${names.length > 0 ? ` (${firstNames(names)})` : ""}: ${messageFor(reason, "page").message}.`;
}

function sentencesOf(...sentences: readonly (string | false | undefined)[]): string | undefined {
  return sentences.filter((one) => one !== false && one !== undefined && one !== "").join(" ") || undefined;
}

/**
 * Adds to `waiting` how many of the run's deletions other waiting runs (`waits`) would make as well. The options of a
 * targeting that is deleted as a whole are not known, so all deletions in this targeting count. If both runs delete the
 * same targetings as a whole, only these count.
 */
export function withOverlap(
  waiting: Waiting | undefined,
  run: Run | undefined,
  waits: Iterable<Run>,
): Waiting | undefined {
  if (waiting === undefined || run === undefined) return waiting;
  const own = deletionsOf(run);
  const [shared, whole] = [new Map<string, string>(), new Map<string, string>()];
  let runId = "";
  for (const other of waits) {
    const { options, targetings, within = "" } = deletionsOf(other);
    if (other.header.runId === run.header.runId) continue;
    const before = shared.size + whole.size;
    for (const [id, name] of targetings) if (own.targetings.has(id)) whole.set(id, name);
    for (const [id, name] of options) if (own.options.has(id) || own.targetings.has(within)) shared.set(id, name);
    if (targetings.has(own.within ?? "")) for (const [id, name] of own.options) shared.set(id, name);
    if (shared.size + whole.size > before) runId = other.header.runId;
  }
  const [same, all] =
    whole.size > 0 ? [whole, own.targetings.size] : [shared, sumIn(partsOf(run), "options") || own.options.size];
  const [name] = same.values();
  if (name === undefined) return waiting;
  const some = same.size === 1 ? quoteShort(name) : `${thousands(same.size)} of these`;
  const which = all === 1 ? `The ${nounOf(partsOf(run))}` : same.size >= all ? `All ${thousands(all)}` : some;
  return { ...waiting, also: { runId, what: `${which} ${same.size === 1 ? "is" : "are"} also` } };
}

/** Returns the options and targetings that a run would delete: names by ID. `within`: the ID of its only targeting. */
function deletionsOf(run: Run) {
  const namesOf = (areTargetings: boolean): ReadonlyMap<string, string> => {
    const parts = partsOf(run).filter(
      ({ title }) => DELETED.has(title) && (title === LOSS_TITLES.targeting) === areTargetings,
    );
    const objects = parts.flatMap((part) => part.objects);
    return new Map(objects.flatMap(({ _id, name }) => (_id === undefined ? [] : [[_id, name]])));
  };
  const within = isChangeRun(run) ? run.state.facts.within : undefined;
  return { options: namesOf(false), targetings: namesOf(true), within };
}

const OF_SANDBOX = "Sandbox: campaigns here are not real.";

/** Returns what a person should check about campaigns before approving a deletion, and when the service refuses it. */
function campaignsNote(count: number, parts: readonly EffectPart[]): string {
  const noun = nounOf(parts);
  const [what, them, its] = count === 1 ? [`this ${noun}`, "it", "its"] : [`these ${noun}s`, "them", "their"];
  const lost = `Campaigns and ad products lose ${what} at once. Only the web console shows which ones use ${them}.`;
  if (!nounsOf(parts).includes("targeting")) return lost;
  return `${lost} But while an approved campaign uses one of ${its} options, the service refuses to delete ${them}.`;
}

/** Returns what it means that restored objects get new IDs. Undefined if no objects are restored. */
function restoredNote([targetings, groups, options]: NewObjects): string | undefined {
  const count = targetings + groups + options;
  if (count === 0) return undefined;
  const noun = targetings + groups > 0 ? "object" : "option";
  const [what, id] =
    count === 1
      ? [`1 restored ${noun} gets a new ID`, "ID"]
      : [`${thousands(count)} restored ${noun}s get new IDs`, "IDs"];
  return `${what}: campaigns and ad products that use the old ${id} stay disconnected.`;
}

/** Returns what happens to sub-options that remain although their group is deleted. Undefined if there are none. */
function freedWords(parts: readonly EffectPart[]): string | undefined {
  const count = sumIn(parts, "freed");
  if (count === 0) return undefined;
  const [stay, they] = count === 1 ? ["stays, with its", "it moves"] : ["stay, with their", "they move"];
  return `${many(count, "sub-option")} ${stay} Context IDs: ${they} to the top level.`;
}

type NewObjects = readonly [targetings: number, groups: number, options: number];

function newObjects(created: number, groups: number, parts: readonly EffectPart[]): NewObjects {
  const targetings = parts.find(({ title }) => title === "Targetings created")?.count ?? 0;
  return [targetings, groups, created - targetings - groups];
}

/**
 * How many objects an undo deletes (`created`), and how many it restores: as they were (`exact`), under new IDs, with
 * differences (`differing`), and not at all (`lost`).
 */
type UndoCounts = Readonly<Record<"exact" | "newIds" | "lost", number>> & {
  readonly created: NewObjects;
  readonly differing?: number;
};

function undoTitle(
  counts: UndoCounts,
  days: string,
  { isUndo, restored }: { readonly isUndo: boolean; readonly restored: string },
): string {
  const { exact, newIds, lost } = counts;
  const others = counts.created.reduce((sum, count) => sum + count, exact);
  if (others + newIds === 0) return `You cannot get ${lost > 1 ? "them" : "it"} back`;
  if (others === 0) return `Undo within ${days}${restored}`;
  if (newIds + lost === 0) return `You can undo it for ${days}`;
  return `You can undo it for ${days}: this ${undoWords(counts, isUndo ? "restored" : "new")}`;
}

/**
 * Describes what an undo does: `deletes the 3 new options and restores 2 as they were`. `how` is the adjective for
 * the objects that the undo deletes: `new`, or `restored` if an earlier undo created them.
 */
function undoWords({ created: [targetings, groups, options], ...others }: UndoCounts, how = "new"): string {
  const made = [
    { count: targetings, noun: `${how} targeting` },
    { count: groups, noun: `${how} group` },
    { count: options, noun: `${how} option` },
  ].flatMap(({ count, noun }) => (count === 0 ? [] : [`the ${count === 1 ? noun : many(count, noun)}`]));
  if (made.length === 0) return restoredWords(others);
  const { exact, newIds, differing = 0, lost } = others;
  const restored = exact + newIds + differing + lost === 0 ? "" : ` and ${restoredWords(others, true)}`;
  return `deletes ${commaList(made)}${restored}`;
}

/** Describes what an undo restores: `restores 3 of 4 as they were and 1 under a new ID`. */
function restoredWords(
  { exact, newIds, differing = 0, lost }: Omit<UndoCounts, "created">,
  isAfterDeletion = false,
): string {
  const total = exact + newIds + differing + lost;
  const kinds = [
    { count: exact, how: exact === 1 ? " as it was" : " as they were" },
    { count: newIds, how: newIds === 1 ? " under a new ID" : " under new IDs" },
    { count: differing, how: " with differences" },
  ].filter(({ count }) => count > 0);
  const [first, ...more] = kinds;
  const isOne = total === 1 && !isAfterDeletion;
  if (first === undefined) return isOne ? "cannot restore it" : `restores none of ${thousands(total)} objects`;
  if (first.count === total) {
    if (isAfterDeletion) return `restores ${thousands(total)}${first.how}`;
    if (isOne) return `restores it${first.how}`;
    return `restores all ${thousands(total)}${exact === total ? "" : first.how}`;
  }
  const parts = [
    `${thousands(first.count)} of ${many(total, "object")}${first.how}`,
    ...more.map(({ count, how }) => thousands(count) + how),
  ];
  const not = lost > 0 ? `; ${thousands(lost)} cannot be restored` : "";
  return `restores ${parts.join(" and ")}${not}`;
}

/**
 * Returns what an undo of a run would do if nothing else changed before it. Undefined while the run is running, or if
 * it has too many objects to compute this quickly.
 */
export async function undoOfRun(run: ChangeRun, { runs }: Pick<ToolServices, "runs">): Promise<string | undefined> {
  const { header, state } = run;
  if (run.status() === "running" || state.objects.length > MAX_PLANNED) return undefined;
  const done = await effectsOfRun(state, runs.part(header.runId, "former")());
  const freed = freedBy(done, state);
  const rows = undoPlanUnread(done).rows.filter(({ _id }) => _id === undefined || !freed.has(_id));
  const { exact, caveat, impossible, notOurs, unresolved } = countsOfRows(rows);
  const newIds = rows.filter(({ reasons }) => reasons?.includes("newId")).length;
  const deletable = new Set(rows.flatMap(({ undo, _id }) => (undo === "exact" && _id !== undefined ? [_id] : [])));
  const isNew = ({ _id, did }: { readonly _id: string; readonly did: string }): boolean =>
    did === "created" && deletable.has(_id);
  const made = done.options.filter(isNew);
  const groups = made.filter((one) => one.did === "created" && one.left.type === "collection").length;
  const created = [done.targetings.filter(isNew).length, groups, made.length - groups] as const;
  const counts = { exact: exact - created[0] - made.length, newIds, differing: caveat - newIds };
  const lost = impossible + notOurs;
  const looks = unresolved > 0 && `first checks the ${many(unresolved, "object")} with an unknown result`;
  const undoes =
    rows.length > unresolved && undoWords({ created, ...counts, lost }, isUndoPlan(run) ? "restored" : "new");
  const words = `Undo ${[looks, undoes].filter((part) => part !== false).join(", and ")}`;
  return freed.size === 0 ? words : `${words}, with ${many(freed.size, "sub-option")} inside`;
}

/** Returns the IDs of the sub-options that moved to the top level because a run deleted their group. */
export function freedBy({ options }: Pick<Done, "options">, state: ChangeRun["state"]): ReadonlySet<string> {
  const groups = new Set(options.flatMap(({ _id, did }) => (did === "deleted" ? [_id] : [])));
  if (groups.size === 0) return new Set();
  const own = new Set(Array.from({ length: state.objects.length }, (_, object) => state.idOf(object)));
  const freed = options.filter(
    (one) => one.did === "changed" && one.parent?.to === null && groups.has(one.parent.from ?? "") && !own.has(one._id),
  );
  return new Set(freed.map(({ _id }) => _id));
}

export function isUndoPlan(run: Run): boolean {
  if (!isChangeRun(run)) return false;
  const { call } = run.header;
  return call.tool === "apply_plan" && call.input.plannedBy === "undo_run";
}

/** Returns how many objects a run deletes or, if none, changes, and how many options their targeting has. */
function magnitudeOf(run: ChangeRun | ApprovalRun, parts: readonly EffectPart[]): Waiting["magnitude"] {
  if (!isChangeRun(run)) return undefined;
  const { changed, deleted } = countsOfWaiting(run);
  const whole = run.state.facts.waits?.optionsThere;
  const targetings = parts.find(({ title }) => title === LOSS_TITLES.targeting);
  if (targetings !== undefined) {
    const [itself, options] = [many(targetings.count, "targeting"), sumIn(parts, "options")];
    if (options === 0) return { count: deleted, verb: "deleted", what: itself, within: "without options" };
    return { count: options, verb: "deleted", what: `${itself} and ${many(options, "option")}` };
  }
  if (deleted > 0) {
    return { count: deleted, whole, verb: "deleted", what: deletionWords(parts) || many(deleted, "option") };
  }
  return changed > 0 ? { count: changed, whole, verb: "changed", what: many(changed, "option") } : undefined;
}

/**
 * Returns the text that a person must type to approve the deletion of a targeting or of many objects (`LARGE`): the
 * name of the targeting, its ID if the name cannot be typed, or the number of deletions. Undefined for other changes.
 */
export function textToType(parts: readonly EffectPart[], targeting: RunRow["targeting"]): string | undefined {
  const { deleted } = countsOfEffect(parts);
  const whole = parts.find(({ title }) => title === LOSS_TITLES.targeting)?.objects[0];
  if (deleted < LARGE && whole === undefined) return undefined;
  const { name, _id } = whole ?? targeting ?? {};
  const composed = name?.normalize("NFC");
  if (composed !== undefined && composed.length <= MAX_TYPED && TYPED.test(composed)) return composed;
  return _id ?? thousands(deleted);
}

/** Returns whether a person typed the required text. Outer spaces and decomposed letters make no difference. */
export function isTyped(typed: string | undefined, wanted: string): boolean {
  return typed?.trim().normalize("NFC") === wanted;
}

const CAVEAT = { name: "", undo: "caveat" } as const;
/** The titles of the parts with the objects that an undo restores exactly, and of those that only get a new ID. */
const UNDONE: ReadonlySet<string> = new Set(
  [undoResultWords("exact", []), undoResultWords("caveat", [CAVEAT]), undoResultWords("caveat", [CAVEAT, CAVEAT])].map(
    capitalized,
  ),
);

/** Returns a part of an effect with its first objects. The page requests the others when it needs them. */
function firstObjects({ title, count, objects }: EffectPart): ShownPart {
  const kind = title === WITHIN_TITLE ? "inside" : kindOfPart(title);
  // Objects that an undo restores are in the table of changes, and `consequence` says that IDs are new. If few
  // sub-options are kept, `stays` names them.
  const isSaid = UNDONE.has(title) || (title === KEPT_TITLE && count <= MAX_NAMES);
  return {
    title,
    count,
    objects: objects.slice(0, PAGE_ROWS).map(shownObject),
    kind,
    isNote: (kind === undefined && !isSaid) || undefined,
  };
}

function shownObject({ name, says }: EffectPart["objects"][number]): ShownPart["objects"][number] {
  return { name, ...(says !== undefined && { says }) };
}

export function objectsOf(part: EffectPart, query: URLSearchParams): EffectObjects {
  const text = (query.get("search") ?? "").toLowerCase();
  const found = part.objects.filter(
    ({ name, _id }) => name.toLowerCase().includes(text) || _id === query.get("search"),
  );
  const { rows, total } = pageOf(found, query);
  return { objects: rows.map(shownObject), total };
}

/** Returns how many objects a run that waits for approval would create, change and delete. */
export function countsOfWaiting(run: Run): ChangeCounts {
  if (!isChangeRun(run) || run.header.call.tool !== "apply_plan") return countsOfEffect(partsOf(run));
  const counts = { created: 0, changed: 0, deleted: 0 };
  for (const { how } of pendingChanges(run)) counts[how] += 1;
  return counts;
}

/** Returns how many of the objects that a waiting plan creates, changes and deletes are groups or targetings. */
export function kindsOfWaiting(run: ChangeRun): OtherKinds {
  const none = { items: 0, created: 0, changed: 0, deleted: 0 };
  const counts = { group: { ...none }, targeting: { ...none } };
  for (const { how, kind } of pendingChanges(run)) if (kind !== undefined) counts[kind][how] += 1;
  return { groups: counts.group, targetings: counts.targeting };
}

function* pendingChanges({ state }: ChangeRun) {
  for (let at = 0; at < state.objects.length; at += 1) {
    const { _id, change, kind } = state.objects.at(at) ?? {};
    if (state.standing(at) !== "pending") continue;
    yield { how: _id === undefined ? "created" : change === undefined ? "deleted" : "changed", kind } as const;
  }
}

export type About = NonNullable<ListedRun["about"]>;
/** How many of a run's objects are groups and, for a plan, targetings. The others are mostly options. */
export type OtherKinds = Pick<About, "groups" | "targetings">;
type KindCounts = NonNullable<OtherKinds["groups"]>;

/**
 * Returns how many of `count` objects are of each kind: `1 group and 4 options`. `of` says which objects are counted:
 * all (`items`), or those that are created, changed or deleted.
 */
export function objectWords(count: number, { groups, targetings }: OtherKinds, of: keyof KindCounts): string {
  const [targets, sets] = [targetings?.[of] ?? 0, groups?.[of] ?? 0];
  const parts = [
    targets > 0 && many(targets, "targeting"),
    sets > 0 && many(sets, "group"),
    (count > targets + sets || count === 0) && many(Math.max(0, count - targets - sets), "option"),
  ].filter((part) => part !== false);
  return commaList(parts);
}

export function commaList(parts: readonly string[]): string {
  const last = parts.at(-1) ?? "";
  return parts.length < 2 ? last : `${parts.slice(0, -1).join(", ")} and ${last}`;
}

export function partsOf(run: Run): readonly EffectPart[] {
  return isChangeRun(run) || isApproval(run) ? (run.state.facts.waits?.parts ?? []) : [];
}
