import { splitBeside } from "../files/cells.ts";
import { type Change, type Conflict, conflicts as conflictsIn, type Ref } from "../model/targeting-model.ts";
import { LIMITS } from "../spec/limits.ts";
import { bytesOf } from "../spec/names-and-contexts.ts";
import { baseOptionOf, digestOfContexts, type ServiceOption, type ServiceTargeting } from "./base.ts";
import { type ContextsWish, Problems, quoted, type Spot } from "./file/desired.ts";
import { addSuspect } from "./file/read-desired.ts";
import { type DesiredRow, matchRows, type Service, type Sides, serviceOf } from "./match.ts";
import {
  checkOrphans,
  compareGone,
  compareOthers,
  placesOf,
  removedByRows,
  type WantedPlace,
  type WantedPlaces,
} from "./others.ts";
import {
  type ChangeItem,
  type ContextsChange,
  type CreateItem,
  changeOf,
  type DeleteItem,
  type Difference,
  type DifferingField,
  type ExceededLimit,
  exceededThresholds,
  knownOption,
  type ParentRef,
  type PlanItem,
  type PlannedTargeting,
  positionOf,
  type SeenOption,
  type ShownValue,
  type StatePlan,
  type Thresholds,
} from "./plan.ts";

export interface DiffInput extends Pick<Sides, "desired" | "base" | "prune" | "byName"> {
  readonly there?: ServiceTargeting | undefined;
  readonly thresholds: Thresholds;
}

/**
 * Makes a plan by comparing each field in a file, in its base and in the service. `there` is the targeting in the
 * service; undefined if the plan creates it.
 */
export function planOf({ there, thresholds, ...given }: DiffInput): StatePlan {
  const { desired, base } = given;
  const problems = new Problems();
  const service = serviceOf(there);
  const groupName = (id: string): string => service.byId.get(id)?.name ?? base?.options.get(id)?.name ?? id;
  const sides: Sides = { ...given, service, problems, drift: [], conflicts: [], groupName };
  const all = matchRows(sides);
  const rows = all.filter(({ option }) => option.isRemoved !== true);
  const wanted = placesOf(rows, sides);
  if (desired.suspects.length > 0) checkSuspects(sides);
  const { deleted: pruned, onlyThere } = compareOthers(all, sides);
  const removed = removedByRows(all, sides);
  const deleted = [...pruned, ...removed.map(({ there: gone }) => gone)];
  checkOrphans(rows, deleted, wanted, sides);
  const { items: kept, rows: itemRows } = itemsOf(rows, wanted, sides);
  const items: readonly PlanItem[] = [
    ...kept,
    ...pruned.map((option) => deletion(option, service)),
    ...removed.map(({ there: option, line }) => ({ ...deletion(option, service), line })),
  ];
  const thereRows = new Map(rows.flatMap((row) => (row.there === undefined ? [] : [[row.there._id, row] as const])));
  const limits = checkResult({ options: service.options, items, rows: itemRows, rowOf: thereRows, problems });
  return {
    targeting: targetingOf(sides, there),
    items,
    adopted: rows.flatMap(({ how, there: found, option }) =>
      how === "adopt" && found !== undefined ? [{ _id: found._id, name: found.name, line: option.line }] : [],
    ),
    drift: sides.drift,
    conflicts: sides.conflicts,
    onlyThere: onlyThere.map(({ _id, name }) => ({ _id, name })),
    limits: [...limits, ...exceededThresholds(items, service.options.length, thresholds)],
    problems: problems.sorted(),
    optionsThere: service.options.length,
  };
}

function itemsOf(rows: readonly DesiredRow[], wanted: WantedPlaces, sides: Sides): Pick<Result, "items" | "rows"> {
  const { service, conflicts, groupName } = sides;
  const items: PlanItem[] = [];
  const itemRows: DesiredRow[] = [];
  const add = (item: PlanItem, row: DesiredRow): void => {
    items.push(item);
    itemRows.push(row);
  };
  const created = createdRows(rows, wanted);
  const positions = new Map(created.map((row, index) => [row, index]));
  for (const row of created) {
    const place = wanted.place(row);
    const item = creation(row, refOf(place, positions), wanted);
    if (place.kind === "there" && !service.byId.has(place._id)) {
      conflicts.push({ name: item.name, field: "parent", file: groupName(place._id), line: item.line });
    }
    add(item, row);
  }
  for (const row of rows) {
    const { there, option } = row;
    if (row.how === "gone") compareGone(row, wanted, sides);
    if (there === undefined) continue;
    const { place, ...changes } = compareRow(row, there, wanted, sides);
    if (place === undefined && Object.keys(changes).length === 0) continue;
    const about = { kind: "change", line: option.line, _id: there._id, seen: seenOf(there, service) } as const;
    const { name, ...others } = changes;
    add({ ...about, name, parent: place && refOf(place, positions), ...others }, row);
  }
  return { items, rows: itemRows };
}

/** Returns the rows whose options are created: groups first, otherwise in the order of the file. */
function createdRows(rows: readonly DesiredRow[], wanted: WantedPlaces): readonly DesiredRow[] {
  const created = rows.filter(({ how }) => how === "create");
  return [...created.filter((row) => wanted.isGroup(row)), ...created.filter((row) => !wanted.isGroup(row))];
}

function refOf(place: WantedPlace, positions: ReadonlyMap<DesiredRow, number>): ParentRef {
  if (place.kind === "there") return { _id: place._id };
  if (place.kind !== "row") return null;
  const item = positions.get(place.row);
  return item === undefined ? null : { item };
}

function creation(row: DesiredRow, parent: ParentRef, wanted: WantedPlaces): CreateItem {
  const { line, name = "", exposeChildren, contexts } = row.option;
  const type = wanted.isGroup(row) ? "collection" : "atomic";
  return { kind: "create", line, name, type, parent, exposeChildren, contexts: contexts?.ids ?? [] };
}

function deletion(option: ServiceOption, service: Service): DeleteItem {
  return { kind: "delete", _id: option._id, seen: seenOf(option, service) };
}

function seenOf(option: ServiceOption, service: Service): SeenOption {
  const { _id, ...seen } = baseOptionOf(option);
  const subOptions = seen.type === "collection" ? (service.byParent.get(_id)?.length ?? 0) : undefined;
  return { ...seen, subOptions };
}

/** Reports texts that look damaged by a spreadsheet, unless the targeting has them, or the base has them as names. */
function checkSuspects({ desired, service, base, problems }: Sides): void {
  const contexts = new Set(service.options.flatMap((option) => option.contexts));
  const names = new Set([...service.byName.keys(), ...[...(base?.options.values() ?? [])].map(({ name }) => name)]);
  for (const suspect of desired.suspects) {
    const { text, field } = suspect;
    if (!(field === "contexts" ? contexts.has(text.trim()) : names.has(text))) addSuspect(suspect, problems);
  }
}

function targetingOf(
  { desired: { targeting: given }, base, byName, drift, conflicts }: Sides,
  there: ServiceTargeting | undefined,
): PlannedTargeting {
  if (there === undefined) return { name: given?.name ?? "" };
  const { _id, name } = there.targeting;
  const wanted = given?.name;
  // A file without the ID of its targeting may come from another targeting. So its plan does not rename the targeting.
  if (wanted === undefined || wanted === name || byName || given?._id === undefined) return { _id, name };
  const before = base?.targeting._id === _id ? base.targeting.name : undefined;
  if (before === undefined || before === name) return { _id, name, rename: wanted };
  const values = { base: before, file: wanted, service: name };
  (before === wanted ? drift : conflicts).push({ _id, name, field: "name", ...values, line: given.line });
  return { _id, name };
}

interface FieldChanges {
  name?: string;
  place?: WantedPlace;
  exposeChildren?: boolean;
  contexts?: ContextsChange;
}

function compareRow(row: DesiredRow, there: ServiceOption, wanted: WantedPlaces, sides: Sides): FieldChanges {
  const { service, conflicts, groupName } = sides;
  const { option, base } = row;
  const changes: FieldChanges = {};
  const isToSet = fieldComparer(row, there, sides);
  const isNamed = isToSet("name", {
    file: option.name === undefined ? undefined : side(option.name),
    base: base && side(base.name),
    service: side(there.name),
  });
  if (isNamed && option.name !== undefined) changes.name = option.name;
  const parentSide = (parent: string | null): Side => ({
    key: parent,
    shown: parent === null ? null : groupName(parent),
  });
  const place = wanted.place(row);
  const isMoved = isToSet("parent", {
    file: placeSide(place, groupName),
    base: base && parentSide(base.parent),
    service: parentSide(there.parent),
  });
  const isLost = place.kind === "there" && !service.byId.has(place._id);
  if (isMoved && isLost) {
    const file = groupName(place._id);
    conflicts.push({ _id: there._id, name: there.name, field: "parent", file, line: option.line });
  } else if (isMoved) changes.place = place;
  if (there.type === "collection") {
    const isSet = isToSet("exposeChildren", {
      file: option.exposeChildren === undefined ? undefined : side(option.exposeChildren),
      base: base && side(base.exposeChildren ?? false),
      service: side(there.exposeChildren ?? false),
    });
    if (isSet && option.exposeChildren !== undefined) changes.exposeChildren = option.exposeChildren;
  }
  const contexts = compareContexts(keepUnsplitIds(option.contexts, there), row, there, isToSet);
  if (contexts !== undefined) changes.contexts = contexts;
  return changes;
}

type FieldComparer = (field: DifferingField, values: Sided) => boolean;

/** Returns a function that decides whether the plan changes a field of an option. It records drift and conflicts. */
function fieldComparer(
  { option }: DesiredRow,
  { _id, name }: ServiceOption,
  { drift, conflicts }: Sides,
): FieldComparer {
  return (field, { file, base, service, differing }) => {
    if (file?.key === service.key) return false;
    if (base === undefined || base.key === service.key) return file !== undefined;
    const isDrift = file === undefined || file.key === base.key;
    const shown = { base: base.shown, file: file?.shown, service: service.shown };
    const contextIds = isDrift ? undefined : differing?.();
    const difference = { _id, name, field, ...shown, line: option.line, ...(contextIds && { contextIds }) };
    (isDrift ? drift : conflicts).push(difference);
    return false;
  };
}

interface Side {
  readonly key: ShownValue | object;
  readonly shown: ShownValue;
}

interface Sided {
  /** The value in the file. Undefined if the file does not specify the field. */
  readonly file: Side | undefined;
  readonly base: Side | undefined;
  readonly service: Side;
  /** Only for the field `contexts`: returns the Context IDs that only the file or only the service has. */
  readonly differing?: () => Difference["contextIds"];
}

function side(value: string | boolean): Side {
  return { key: value, shown: value };
}

function placeSide(place: WantedPlace, groupName: (id: string) => string): Side | undefined {
  if (place.kind === "unsaid" || place.kind === "lost") return undefined;
  if (place.kind === "top") return { key: null, shown: null };
  if (place.kind === "there") return { key: place._id, shown: groupName(place._id) };
  // The plan creates this group, so it has no ID yet. Its row is the key, which differs from every ID.
  return { key: place.row, shown: place.row.option.name ?? "" };
}

/** Joins the parts of a Context ID that was split at a separator, if the option already has the whole ID. */
function keepUnsplitIds(wish: ContextsWish | undefined, { contexts }: ServiceOption): ContextsWish | undefined {
  if (wish?.split === undefined) return wish;
  const taken = new Set(splitBeside(wish.split, []));
  const whole = splitBeside(wish.split, contexts);
  if (whole.length === taken.size && whole.every((id) => taken.has(id))) return wish;
  const kept = (ids: readonly string[]) => ids.filter((id) => !taken.has(id));
  if (wish.remove !== undefined) return { ...wish, remove: [...new Set([...kept(wish.remove), ...whole])] };
  return { ...wish, ids: [...new Set([...kept(wish.ids), ...whole])] };
}

function compareContexts(
  wish: ContextsWish | undefined,
  { base }: DesiredRow,
  there: ServiceOption,
  isToSet: FieldComparer,
): ContextsChange | undefined {
  const exact = wish === undefined || wish.atLeast ? undefined : digestOfContexts(wish.ids);
  const isWanted = isToSet("contexts", {
    file: exact === undefined ? undefined : { key: exact, shown: wish?.ids.length ?? 0 },
    base: base && { key: base.digest, shown: base.contexts },
    service: { key: there.digest, shown: there.contexts.length },
    differing: () => differingIds(wish?.ids ?? [], there.contexts),
  });
  if (wish === undefined || (exact !== undefined && !isWanted)) return undefined;
  const held = new Set(there.contexts);
  const add = wish.ids.filter((id) => !held.has(id));
  if (exact === undefined) {
    const remove = (wish.remove ?? []).filter((id) => held.has(id) && !wish.ids.includes(id));
    return add.length + remove.length === 0 ? undefined : { add, remove };
  }
  const ids = new Set(wish.ids);
  return { add, remove: there.contexts.filter((id) => !ids.has(id)), after: exact };
}

const MAX_IDS_SHOWN = 20;
const MAX_ID_LETTERS = 600;

function differingIds(file: readonly string[], service: readonly string[]): Difference["contextIds"] {
  const [inFile, inService] = [new Set(file), new Set(service)];
  let [left, letters] = [MAX_IDS_SHOWN, MAX_ID_LETTERS];
  const some = (ids: readonly string[]) => {
    const first = ids.slice(0, left).filter(({ length }) => {
      letters -= length;
      return letters >= 0;
    });
    left -= first.length;
    return { count: ids.length, first };
  };
  const onlyService = some(service.filter((id) => !inFile.has(id)));
  return { onlyService, onlyFile: some(file.filter((id) => !inService.has(id))) };
}

interface Result {
  readonly options: readonly ServiceOption[];
  readonly items: readonly PlanItem[];
  /** The rows of the items, in the same order, but without the last items, which are deletions. */
  readonly rows: readonly DesiredRow[];
  /** The rows of existing options, by ID of the option. */
  readonly rowOf: ReadonlyMap<string, DesiredRow>;
  readonly problems: Problems;
}

/** Reports conflicts of names, groups and Context IDs after the plan. Returns the service's limits that it exceeds. */
function checkResult(result: Result): readonly ExceededLimit[] {
  const { options, items } = result;
  const known = new Map(options.map((option) => [option._id, knownOption(option)]));
  const changes = new Map<Ref, Change>();
  for (const [at, item] of items.entries()) {
    const change = changeOf(item, at);
    changes.set(change.ref, change);
  }
  const rowOf = (ref: Ref): DesiredRow | undefined => result.rows[positionOf(ref) ?? -1] ?? result.rowOf.get(ref);
  const nameOf = (ref: Ref): string => {
    const change = changes.get(ref);
    return (change?.kind === "delete" ? undefined : change?.name) ?? known.get(ref)?.name ?? "";
  };
  for (const conflict of conflictsIn(known, changes)) {
    addProblem(conflict, { rowOf, nameOf, problems: result.problems });
  }
  return limitsOf(items, options);
}

interface ConflictContext extends Pick<Result, "problems"> {
  readonly rowOf: (ref: Ref) => DesiredRow | undefined;
  readonly nameOf: (ref: Ref) => string;
}

function addProblem(conflict: Conflict, { rowOf, nameOf, problems }: ConflictContext): void {
  const row = rowOf(conflict.ref);
  if (conflict.kind === "name" && row !== undefined) {
    const holder = rowOf(conflict.holder);
    const isNew = positionOf(conflict.holder) !== undefined;
    problems.add(
      row.option.spots.name ?? row.option,
      `the name ${quoted(conflict.value)} is already used by ${isNew ? "another new option" : `option ${conflict.holder}`}, which keeps it`,
      holder === undefined
        ? "Choose another name, or add the other option to the file with a new name."
        : "Give each option its own name.",
      holder && [row.option.line, holder.option.line],
    );
  }
  if (conflict.kind === "empty") {
    const last = row ?? conflict.leaving.map(rowOf).findLast((left) => left !== undefined);
    const spot: Spot = row?.option.spots.contexts ?? last?.option ?? FIRST;
    problems.add(
      spot,
      `the group ${quoted(nameOf(conflict.ref))} would have neither sub-options nor own Context IDs`,
      "Keep a sub-option or a Context ID in it, or delete the whole group.",
    );
  }
  if (conflict.kind === "owner" && row !== undefined) {
    problems.add(
      row.option.spots.contexts ?? row.option,
      `the groups ${quoted(nameOf(conflict.ref))} and ${quoted(nameOf(conflict.holder))} would both have the Context ID ${quoted(conflict.value)}`,
      "Two groups cannot hold the same Context ID: remove it from one of them in the file.",
    );
  }
}

const FIRST: Spot = { line: 1, column: 1 };

/**
 * Returns the limits that the plan would exceed. A limit that is already exceeded counts only if the plan makes it
 * worse (management-api 8.2 rule 1).
 */
function limitsOf(items: readonly PlanItem[], options: readonly ServiceOption[]): readonly ExceededLimit[] {
  const exceeded: ExceededLimit[] = [];
  const check = (limit: string, most: number, of: string, there: number, wanted: number): void => {
    if (wanted > most && wanted > there) exceeded.push({ limit, of, there, wanted, fits: most });
  };
  const { optionContextIds, optionContextBytes, contextIdBytes } = LIMITS;
  const itemOf = new Map(items.map((item) => [item.kind === "create" ? "" : item._id, item]));
  const byId = new Map(options.map((option) => [option._id, option]));
  const total = options.reduce((sum, { contexts }) => sum + contexts.length, 0);
  let [count, contextIds] = [options.length, total];
  const ordered = [
    ...options.flatMap(({ _id }) => itemOf.get(_id) ?? []),
    ...items.filter(({ kind }) => kind === "create"),
  ];
  for (const item of ordered) {
    const there = item.kind === "create" ? undefined : byId.get(item._id);
    const held = there?.contexts ?? [];
    if (item.kind === "create") count += 1;
    if (item.kind === "delete") count -= 1;
    const after = item.kind === "delete" ? [] : contextsAfter(item, held);
    contextIds += after.length - held.length;
    if (item.kind === "delete") continue;
    const name = item.name ?? there?.name ?? "";
    check("Context IDs of an option", optionContextIds.value, name, held.length, after.length);
    // Counting bytes takes time. It is not needed if this number of Context IDs fits even if each has the maximum size.
    if (after.length * contextIdBytes.value <= optionContextBytes.value) continue;
    check("bytes of an option's Context IDs", optionContextBytes.value, name, bytesOf(held), bytesOf(after));
  }
  check("options of a targeting", LIMITS.targetingOptions.value, "the targeting", options.length, count);
  const project = "Context IDs of a project (only those of this targeting are counted)";
  check(project, LIMITS.projectContextIds.value, "the project", total, contextIds);
  return exceeded;
}

function contextsAfter(item: CreateItem | ChangeItem, held: readonly string[]): readonly string[] {
  if (item.kind === "create") return item.contexts;
  if (item.contexts === undefined) return held;
  const removed = new Set(item.contexts.remove);
  return [...held.filter((id) => !removed.has(id)), ...item.contexts.add];
}
