import type { ServiceOption, ServiceTargeting } from "../base/service-targeting.ts";
import { addSuspect } from "../file/check-rows.ts";
import { Problems } from "../file/desired.ts";
import { compareRow } from "./fields.ts";
import { type DesiredRow, matchRows, type Service, type Sides, serviceOf } from "./match.ts";
import { checkOrphans, compareGone, compareOthers, removedByRows } from "./others.ts";
import { placesOf, type WantedPlace, type WantedPlaces } from "./places.ts";
import type { CreateItem, ParentRef, PlanItem, PlannedTargeting, SeenOption, StatePlan } from "./plan.ts";
import { checkResult } from "./result.ts";
import { exceededThresholds, type Thresholds } from "./thresholds.ts";

/** What a plan is made of. */
export interface DiffInput extends Pick<Sides, "desired" | "base" | "prune" | "byName"> {
  /** What is there; undefined where the targeting is to be created. */
  readonly there?: ServiceTargeting | undefined;
  readonly thresholds: Thresholds;
}

/**
 * Compares what a file means with what is there and what it was exported from, field by field (desired state,
 * "Settled", Base). Gives the plan; nothing is read or sent.
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
  const deleted = [...pruned, ...removedByRows(all, sides)];
  checkOrphans(rows, deleted, wanted, sides);
  const { items, rowOf } = itemsOf(rows, deleted, wanted, sides);
  const thereRows = new Map(rows.flatMap((row) => (row.there === undefined ? [] : [[row.there._id, row] as const])));
  const limits = checkResult({ options: service.options, items, rows: rowOf, rowOf: thereRows, problems });
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
): { readonly items: readonly PlanItem[]; readonly rowOf: ReadonlyMap<PlanItem, DesiredRow> } {
  const { service, conflicts, groupName } = sides;
  const items: PlanItem[] = [];
  const rowOf = new Map<PlanItem, DesiredRow>();
  const add = (item: PlanItem, row: DesiredRow): void => {
    items.push(item);
    rowOf.set(item, row);
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
  return { items, rowOf };
}

/** New options in the order of the file, but a group before its sub-options. */
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

/** What a plan notes down of an option. */
function seenOf(
  { _id, name, parent, type, exposeChildren, contexts, digest }: ServiceOption,
  service: Service,
): SeenOption {
  const subOptions = type === "collection" ? (service.byParent.get(_id)?.length ?? 0) : undefined;
  return { name, parent, type, exposeChildren, contexts: contexts.length, digest, subOptions };
}

/** Texts that look damaged are problems, unless the service or the base holds exactly them. */
function checkSuspects({ desired, service, base, problems }: Sides): void {
  const contexts = new Set(service.options.flatMap((option) => option.contexts));
  const names = new Set([...service.byName.keys(), ...[...(base?.options.values() ?? [])].map(({ name }) => name)]);
  for (const suspect of desired.suspects) {
    const { text, field } = suspect;
    if (!(field === "contexts" ? contexts.has(text.trim()) : names.has(text))) addSuspect(suspect, problems);
  }
}

/** The targeting's own name goes three ways, too. */
function targetingOf(
  { desired: { targeting: given }, base, byName, drift, conflicts }: Sides,
  there: ServiceTargeting | undefined,
): PlannedTargeting {
  if (there === undefined) return { name: given?.name ?? "" };
  const { _id, name } = there.targeting;
  const wanted = given?.name;
  // By names, a file of another targeting says what options are to be, and not what the targeting is called.
  if (wanted === undefined || wanted === name || byName || given?._id === undefined) return { _id, name };
  const before = base?.targeting._id === _id ? base.targeting.name : undefined;
  if (before === undefined || before === name) return { _id, name, rename: wanted };
  const sides = { base: before, file: wanted, service: name, line: given.line };
  (before === wanted ? drift : conflicts).push({ _id, name, field: "name", ...sides });
  return { _id, name };
}
