import { splitBeside } from "../../files/cells.ts";
import { digestOfContexts, type ServiceOption, type ServiceTargeting } from "../base.ts";
import { type ContextsWish, Problems } from "../file/desired.ts";
import { addSuspect } from "../file/read-desired.ts";
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
  type ContextsChange,
  type CreateItem,
  type DifferingField,
  exceededThresholds,
  type ParentRef,
  type PlanItem,
  type PlannedTargeting,
  type SeenOption,
  type ShownValue,
  type StatePlan,
  type Thresholds,
} from "./plan.ts";
import { checkResult, type Result } from "./result.ts";

export interface DiffInput extends Pick<Sides, "desired" | "base" | "prune" | "byName"> {
  /** Undefined if the plan creates the targeting. */
  readonly there?: ServiceTargeting | undefined;
  readonly thresholds: Thresholds;
}

/** Compares a file with the current state and its base, field by field. Reads nothing. */
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
  const deleted = [...pruned, ...removedByRows(all, sides)];
  checkOrphans(rows, deleted, wanted, sides);
  const { items, rows: itemRows } = itemsOf(rows, deleted, wanted, sides);
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

function itemsOf(
  rows: readonly DesiredRow[],
  deleted: readonly ServiceOption[],
  wanted: WantedPlaces,
  sides: Sides,
): Pick<Result, "items" | "rows"> {
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
  for (const there of deleted) items.push({ kind: "delete", _id: there._id, seen: seenOf(there, service) });
  return { items, rows: itemRows };
}

/** Returns the new options in the order of the file, groups first. */
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

function seenOf(
  { _id, name, parent, type, exposeChildren, contexts, digest }: ServiceOption,
  service: Service,
): SeenOption {
  const subOptions = type === "collection" ? (service.byParent.get(_id)?.length ?? 0) : undefined;
  return { name, parent, type, exposeChildren, contexts: contexts.length, digest, subOptions };
}

/** Reports texts that look damaged, unless the service or the base has exactly the same text. */
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
  // The file may come from another targeting, whose name must not be applied to this one.
  if (wanted === undefined || wanted === name || byName || given?._id === undefined) return { _id, name };
  const before = base?.targeting._id === _id ? base.targeting.name : undefined;
  if (before === undefined || before === name) return { _id, name, rename: wanted };
  (before === wanted ? drift : conflicts).push({
    _id,
    name,
    field: "name",
    base: before,
    file: wanted,
    service: name,
    line: given.line,
  });
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
  // A group that no longer exists cannot receive options.
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

/** Returns whether the plan sets a field to the value in the file. */
type FieldComparer = (field: DifferingField, values: Sided) => boolean;

/** Records drift and conflicts. */
function fieldComparer(
  { option }: DesiredRow,
  { _id, name }: ServiceOption,
  { drift, conflicts }: Sides,
): FieldComparer {
  return (field, { file, base, service }) => {
    if (file?.key === service.key) return false;
    if (base === undefined || base.key === service.key) return file !== undefined;
    const isDrift = file === undefined || file.key === base.key;
    (isDrift ? drift : conflicts).push({
      _id,
      name,
      field,
      base: base.shown,
      file: file?.shown,
      service: service.shown,
      line: option.line,
    });
    return false;
  };
}

/** `key` to compare the value, and `shown` to show it. */
interface Side {
  readonly key: ShownValue | object;
  readonly shown: ShownValue;
}

interface Sided {
  /** Undefined if the file does not manage the field. */
  readonly file: Side | undefined;
  readonly base: Side | undefined;
  readonly service: Side;
}

function side(value: string | boolean): Side {
  return { key: value, shown: value };
}

function placeSide(place: WantedPlace, groupName: (id: string) => string): Side | undefined {
  if (place.kind === "unsaid" || place.kind === "lost") return undefined;
  if (place.kind === "top") return { key: null, shown: null };
  if (place.kind === "there") return { key: place._id, shown: groupName(place._id) };
  // The group does not exist yet, so this key differs from every existing parent.
  return { key: place.row, shown: place.row.option.name ?? "" };
}

/** Undoes the split of Context IDs that the option already holds and that contain the separator. */
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
