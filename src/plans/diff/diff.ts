import type { Base } from "../base/base.ts";
import type { ServiceOption, ServiceTargeting } from "../base/service-targeting.ts";
import { addSuspect } from "../file/check-rows.ts";
import { type Desired, Problems } from "../file/desired.ts";
import { compareRow, type FieldChanges } from "./fields.ts";
import { type DesiredRow, matchRows, type Service, type Sides, serviceOf } from "./match.ts";
import { checkOrphans, compareGone, compareOthers } from "./others.ts";
import { placesOf, type WantedPlace, type WantedPlaces } from "./places.ts";
import type {
  ChangeItem,
  CreateItem,
  DeleteItem,
  Difference,
  ParentRef,
  PlanItem,
  PlannedTargeting,
  SeenOption,
  StatePlan,
} from "./plan.ts";
import { checkResult } from "./result.ts";
import { exceededThresholds, type Thresholds } from "./thresholds.ts";

/** What a plan is made of. */
export interface DiffInput {
  readonly desired: Desired;
  /** The state that the file was exported from; undefined where none is known. */
  readonly base?: Base | undefined;
  /** What is there; undefined where the targeting is to be created. */
  readonly there?: ServiceTargeting | undefined;
  /** Whether options that stood in the base and are gone from the file are deleted; needs a base. */
  readonly prune: boolean;
  /** Whether names alone are identity. */
  readonly byName: boolean;
  readonly thresholds: Thresholds;
}

/**
 * Compares what a file means with what is there and what it was exported from, field by field (desired state,
 * "Settled", Base). Gives the plan; nothing is read or sent.
 */
export function planOf({ desired, base, there, prune, byName, thresholds }: DiffInput): StatePlan {
  const problems = new Problems();
  const service = serviceOf(there);
  const sides: Sides = { desired, base, service, byName, problems };
  const told: { drift: Difference[]; conflicts: Difference[] } = { drift: [], conflicts: [] };
  const names = (id: string): string => service.byId.get(id)?.name ?? base?.options.get(id)?.name ?? id;
  const rows = matchRows(sides);
  const wanted = placesOf(rows, sides);
  if (desired.suspects.length > 0) checkSuspects(sides);
  const { deleted, onlyThere } = compareOthers(rows, sides, { prune, told, groupName: names });
  checkOrphans(rows, deleted, wanted, sides);
  const { items, rowOf } = itemsOf(rows, deleted, { sides, wanted, told, groupName: names });
  const thereRows = new Map(rows.flatMap((row) => (row.there === undefined ? [] : [[row.there._id, row] as const])));
  const limits = checkResult({ options: service.options, items, rows: rowOf, rowOf: thereRows, problems });
  return {
    targeting: targetingOf(desired, base, there, { byName, told }),
    items,
    adopted: rows.flatMap(({ how, there: found, option }) =>
      how === "adopt" && found !== undefined ? [{ _id: found._id, name: found.name, line: option.line }] : [],
    ),
    ...told,
    onlyThere: onlyThere.map(({ _id, name }) => ({ _id, name })),
    limits: [...limits, ...exceededThresholds(items, service.options.length, thresholds)],
    problems: problems.sorted(),
    optionsThere: service.options.length,
  };
}

/** What the items are made from. */
interface Making {
  readonly sides: Sides;
  readonly wanted: WantedPlaces;
  readonly told: { readonly drift: Difference[]; readonly conflicts: Difference[] };
  readonly groupName: (id: string) => string;
}

function itemsOf(
  rows: readonly DesiredRow[],
  deleted: readonly ServiceOption[],
  { sides, wanted, told, groupName }: Making,
): { readonly items: readonly PlanItem[]; readonly rowOf: ReadonlyMap<PlanItem, DesiredRow> } {
  const { service } = sides;
  const items: PlanItem[] = [];
  const rowOf = new Map<PlanItem, DesiredRow>();
  const created = createdRows(rows, wanted);
  const positions = new Map(created.map((row, index) => [row, index]));
  for (const row of created) {
    const item = creation(row, refOf(wanted.place(row), positions), wanted);
    const place = wanted.place(row);
    if (place.kind === "there" && !service.byId.has(place._id)) {
      told.conflicts.push({ name: item.name, field: "parent", file: groupName(place._id), line: item.line });
    }
    items.push(item);
    rowOf.set(item, row);
  }
  for (const row of rows) {
    if (row.how === "gone") compareGone(row, wanted, told);
    if (row.there === undefined) continue;
    const changes = compareRow(row, row.there, { wanted, service, told, groupName });
    if (Object.keys(changes).length === 0) continue;
    const item = change(row, row.there, changes, positions, service);
    items.push(item);
    rowOf.set(item, row);
  }
  for (const there of deleted) items.push(deletion(there, service));
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
  const expose = exposeChildren === undefined ? {} : { exposeChildren };
  return { kind: "create", line, name, type, parent, ...expose, contexts: contexts?.ids ?? [] };
}

function change(
  { option }: DesiredRow,
  there: ServiceOption,
  { name, place, exposeChildren, contexts }: FieldChanges,
  positions: ReadonlyMap<DesiredRow, number>,
  service: Service,
): ChangeItem {
  return {
    kind: "change",
    line: option.line,
    _id: there._id,
    seen: seenOf(there, service),
    ...(name !== undefined && { name }),
    ...(place !== undefined && { parent: refOf(place, positions) }),
    ...(exposeChildren !== undefined && { exposeChildren }),
    ...(contexts !== undefined && { contexts }),
  };
}

function deletion(there: ServiceOption, service: Service): DeleteItem {
  return { kind: "delete", _id: there._id, seen: seenOf(there, service) };
}

/** What a plan notes down of an option. */
function seenOf(
  { _id, name, parent, type, exposeChildren, contexts, digest }: ServiceOption,
  service: Service,
): SeenOption {
  const expose = exposeChildren === undefined ? {} : { exposeChildren };
  const subOptions = type === "collection" ? { subOptions: service.subOptions.get(_id) ?? 0 } : {};
  return { name, parent, type, ...expose, contexts: contexts.length, digest, ...subOptions };
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
  { targeting: given }: Desired,
  base: Base | undefined,
  there: ServiceTargeting | undefined,
  { byName, told }: { readonly byName: boolean; readonly told: Making["told"] },
): PlannedTargeting {
  if (there === undefined) return { name: given?.name ?? "" };
  const { _id, name } = there.targeting;
  const wanted = given?.name;
  // By names, a file of another targeting says what options are to be, and not what the targeting is called.
  if (wanted === undefined || wanted === name || byName || given?._id === undefined) return { _id, name };
  const before = base?.targeting._id === _id ? base.targeting.name : undefined;
  const difference = { _id, name, field: "name" as const, base: before, file: wanted, service: name, line: given.line };
  if (before === undefined || before === name) return { _id, name, rename: wanted };
  (before === wanted ? told.drift : told.conflicts).push(difference);
  return { _id, name };
}
