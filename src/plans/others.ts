import { folded, groupedBy } from "../platform/by-key.ts";
import { digestOfContexts, type ServiceOption } from "./base.ts";
import { quoted } from "./file/desired.ts";
import { changedSince, type DesiredRow, type Sides } from "./match.ts";

/**
 * Records that others have deleted an option. This is a conflict if the file differs from the base, otherwise drift.
 * Context IDs that the file only adds or removes do not count.
 */
export function compareGone(row: DesiredRow, wanted: WantedPlaces, { drift, conflicts }: Sides): void {
  const { option, base } = row;
  if (base === undefined) return;
  const place = wanted.place(row);
  const parent = place.kind === "top" ? null : place.kind === "there" ? place._id : undefined;
  const { name = base.name, exposeChildren = base.exposeChildren, contexts } = option;
  const isChanged =
    name !== base.name ||
    place.kind === "row" ||
    (parent !== undefined && parent !== base.parent) ||
    (exposeChildren ?? false) !== (base.exposeChildren ?? false) ||
    (contexts !== undefined && !contexts.atLeast && digestOfContexts(contexts.ids) !== base.digest);
  (isChanged ? conflicts : drift).push({ _id: base._id, name: base.name, field: "deleted", line: option.line });
}

type Rows = readonly DesiredRow[];

/**
 * Decides what happens to existing options that are not in the file. With `prune`, the plan deletes those that are in
 * the base; otherwise it deletes none. If an option to be deleted has changed in the service since the base, or got
 * sub-options, it stays and a conflict is recorded. Options that are not in the base were added by others and stay.
 * Records drift. `onlyThere`: all options that are not in the file, if the plan has no base and matches by name.
 */
export function compareOthers(rows: Rows, sides: Sides) {
  const { base, service, prune, byName, drift, groupName } = sides;
  const named = new Set(rows.flatMap(({ there }) => there?._id ?? []));
  const others = service.options.filter(({ _id }) => !named.has(_id));
  if (base === undefined) return { deleted: [], onlyThere: byName ? others : [] };
  const deleted: ServiceOption[] = [];
  const since = subOptionsAddedSince(sides);
  for (const there of others) {
    const { _id, name } = there;
    const before = base.options.get(_id);
    if (before === undefined) {
      drift.push({ _id, name, field: "added", service: name });
      continue;
    }
    if (!prune) drift.push(...changedSince(before, there, groupName));
    else if (mayBeDeleted(there, sides, since)) deleted.push(there);
  }
  if (prune) return { deleted, onlyThere: [] };
  // Options of the base that are neither in the file nor in the service: others deleted them.
  const inFile = new Set(rows.flatMap((row) => row.base?._id ?? []));
  for (const { _id, name } of base.options.values()) {
    if (!service.byId.has(_id) && !inFile.has(_id)) drift.push({ _id, name, field: "deleted" });
  }
  return { deleted, onlyThere: [] };
}

/** An option that a row deletes, and the line of the row. */
interface Removed {
  readonly there: ServiceOption;
  readonly line: number;
}

/**
 * Returns the existing options that rows of the file delete (Action is Remove). Omits options that have changed in the
 * service since the base and groups that got sub-options since then, and records conflicts for them. Reports a problem
 * for a row whose name is not the name of the option with its ID, because the ID may be wrong, and for a row without an
 * ID whose option is not in the base. With `prune` and a filled column Action, only reports that these exclude each
 * other.
 */
export function removedByRows(rows: Rows, sides: Sides): readonly Removed[] {
  const { base, prune, problems, desired } = sides;
  if (prune && desired.hasActions === true) {
    const [first] = rows;
    problems.add(
      first?.option ?? { line: 1, column: 1 },
      "prune cannot be combined with a filled column Action: both decide what is deleted",
      "Leave prune out, or empty the column Action.",
    );
    return [];
  }
  const deleted: Removed[] = [];
  const since = subOptionsAddedSince(sides);
  for (const row of rows) {
    const { option, there } = row;
    if (option.isRemoved !== true || there === undefined) continue;
    if (base?.options.has(there._id) !== true && option._id === undefined) {
      problems.add(
        option,
        `Action is Remove, but the row has no Option ID: the option ${nameOf(row)} cannot be deleted by its name alone`,
        "Fill the column Option ID. list_options with saveTo, and targeting-mcp export, write it.",
      );
      continue;
    }
    if (hasOtherName(row)) {
      problems.add(
        option,
        `Action is Remove, and the row names the option ${there._id} ${nameOf(row)}, but its name is ${quoted(there.name)}`,
        "Correct the Option ID or the name, or empty the name: the option is then deleted by its ID.",
      );
      continue;
    }
    if (mayBeDeleted(there, sides, since, { line: option.line })) deleted.push({ there, line: option.line });
  }
  return deleted;
}

/** Returns whether the name of a row is neither the current name of its option nor the one in the base. */
function hasOtherName({ option, there, base }: DesiredRow): boolean {
  const { name } = option;
  return name !== undefined && name !== there?.name && name !== base?.name;
}

/**
 * Returns whether an option may be deleted: it has not changed since the base, or it is not in the base, so that there
 * is nothing to compare it with. Otherwise records conflicts.
 */
function mayBeDeleted(
  there: ServiceOption,
  { base, conflicts, groupName }: Sides,
  since: ReadonlyMap<string, number>,
  place: { readonly line?: number } = {},
): boolean {
  const { _id, name } = there;
  const before = base?.options.get(_id);
  if (before === undefined) return true;
  const changes = changedSince(before, there, groupName);
  const given = since.get(_id) ?? 0;
  conflicts.push(...changes.map((change) => ({ ...change, file: "deleted", ...place })));
  if (given > 0) conflicts.push({ _id, name, field: "subOptions", file: "deleted", service: given, ...place });
  return changes.length + given === 0;
}

/** Returns how many sub-options others have added since the base, by ID of the group. */
function subOptionsAddedSince({ base, service }: Sides): ReadonlyMap<string, number> {
  const given = new Map<string, number>();
  for (const { _id, parent } of service.options) {
    if (parent !== null && base?.options.get(_id)?.parent !== parent) given.set(parent, (given.get(parent) ?? 0) + 1);
  }
  return given;
}

export function checkOrphans(rows: Rows, deleted: readonly ServiceOption[], wanted: WantedPlaces, sides: Sides): void {
  const gone = new Set(deleted.map(({ _id }) => _id));
  for (const row of rows) {
    const { there, option } = row;
    const place = wanted.place(row);
    const isInside = there !== undefined && there.parent !== null && gone.has(there.parent) && place.kind === "unsaid";
    if (!isInside && !(place.kind === "there" && gone.has(place._id))) continue;
    sides.problems.add(
      option.spots.parent ?? option,
      `the group of ${nameOf(row)} would be deleted, but the file keeps ${nameOf(row)} in it`,
      "Add the group to the file, without the Action Remove. Or give parentName: another group, or [] for the top level.",
    );
  }
}

/**
 * The group that a row wants its option to be in. `unsaid`: the row names none. `top`: the top level. `there`: an
 * existing group. `row`: a new group in the file. `lost`: invalid; a problem was reported.
 */
export type WantedPlace =
  | { readonly kind: "unsaid" }
  | { readonly kind: "top" }
  | { readonly kind: "lost" }
  | { readonly kind: "there"; readonly _id: string }
  | { readonly kind: "row"; readonly row: DesiredRow };

const TOP = { kind: "top" } as const;
const UNSAID = { kind: "unsaid" } as const;

/** The groups that rows name. `isGroup`: whether a row's option is a group. Rows that name a new option make it one. */
export interface WantedPlaces {
  readonly place: (row: DesiredRow) => WantedPlace;
  readonly isGroup: (row: DesiredRow) => boolean;
}

/**
 * Finds the group of each row by name: first in the file, then in the service. Reports groups that do not exist, groups
 * inside groups, and types that differ from those of existing options.
 */
export function placesOf(rows: Rows, sides: Sides): WantedPlaces {
  const named = groupedBy(rows, ({ option, there }) => option.name ?? there?.name);
  const spelled = spelling(named, sides);
  const places = new Map(rows.map((row) => [row, placeOf(row, rows, named, { ...sides, spelled })]));
  const groups = new Set<DesiredRow>();
  for (const place of places.values()) if (place.kind === "row") groups.add(place.row);
  const wanted: WantedPlaces = {
    place: (row) => places.get(row) ?? UNSAID,
    isGroup: (row) => {
      const known = row.there ?? (row.how === "gone" ? row.base : undefined);
      if (known !== undefined) return known.type === "collection";
      return row.how === "create" && (row.option.type === "collection" || groups.has(row));
    },
  };
  for (const row of rows) if (row.how !== "lost" && row.how !== "gone") checkTypes(row, wanted, sides);
  return wanted;
}

type RowsByName = ReadonlyMap<string | undefined, Rows>;

type Spelling = (name: string) => string;

/** Returns a function that spells a group's name as the file or the service does, if only case or spaces differ. */
function spelling(named: RowsByName, { service }: Sides): Spelling {
  let alike: ReadonlyMap<string, readonly string[]> | undefined;
  return (name) => {
    if (named.has(name) || service.byName.has(name)) return name;
    const all = () => new Set([...named.keys(), ...service.byName.keys()].filter((one) => one !== undefined));
    alike ??= groupedBy(all(), folded);
    const [only, ...others] = alike.get(folded(name)) ?? [];
    return only === undefined || others.length > 0 ? name : only;
  };
}

function placeOf(
  row: DesiredRow,
  rows: Rows,
  named: RowsByName,
  sides: Sides & { readonly spelled: Spelling },
): WantedPlace {
  const { option } = row;
  const { parent } = option;
  if (parent.kind === "top") return TOP;
  if (parent.kind === "keep") return row.how === "create" ? TOP : UNSAID;
  if (parent.kind === "row") return placeIn(rows[parent.row]);
  const spot = option.spots.parent ?? option;
  const name = sides.spelled(parent.name);
  const existing = sides.service.byName.get(name) ?? [];
  const current = existing.find(({ _id }) => _id === row.there?.parent);
  // If several groups have this name and the option is in one of them, it stays there.
  if (existing.length > 1 && current !== undefined) return { kind: "there", _id: current._id };
  const inFile = named.get(name) ?? [];
  if (inFile.length === 1 && inFile[0] === row) {
    sides.problems.add(spot, `${quoted(parent.name)} is its own group`, "Name another group, or [] for the top level.");
    return { kind: "lost" };
  }
  const found = inFile.length > 0 ? inFile.map(placeIn) : existing.map(({ _id }) => ({ kind: "there", _id }) as const);
  const [place, other] = found;
  if (place !== undefined && other === undefined) return place;
  sides.problems.add(
    spot,
    `${other === undefined ? "no option has" : "several options have"} the name ${quoted(parent.name)}, which this option names as its group`,
    other === undefined
      ? "Name a group of the file or of the targeting, or [] for the top level."
      : "Rename one of them first, or use a YAML or JSON file, where sub-options are listed inside their group.",
  );
  return { kind: "lost" };
}

function placeIn(group: DesiredRow | undefined): WantedPlace {
  if (group === undefined || group.how === "lost") return { kind: "lost" };
  if (group.there !== undefined) return { kind: "there", _id: group.there._id };
  // A group that others deleted counts as still there, under its old ID. The base, an earlier export, has this ID as
  // the group of the sub-options, so the file can be compared with the base.
  if (group.how === "gone" && group.option._id !== undefined) return { kind: "there", _id: group.option._id };
  return { kind: "row", row: group };
}

function checkTypes(row: DesiredRow, wanted: WantedPlaces, { service, problems }: Sides): void {
  const { option, there } = row;
  const type = there?.type;
  if (type !== undefined && option.type !== undefined && option.type !== type) {
    problems.add(
      option.spots.type ?? option,
      `${nameOf(row)} is ${type === "atomic" ? "not a group, but the file describes it as one" : "a group, but the file gives it the type atomic"}`,
      "The type of an option cannot change. Remove type and children, or describe a new option under another name.",
    );
    return;
  }
  const isGroup = wanted.isGroup(row);
  if (option.type === "atomic" && isGroup) {
    problems.add(
      option.spots.type ?? option,
      `${nameOf(row)} has type atomic, but other rows name it as their group`,
      "Remove its type, or name another group in the other rows.",
    );
  }
  if (option.exposeChildren !== undefined && !isGroup) {
    problems.add(
      option.spots.exposeChildren ?? option,
      `${nameOf(row)} has exposeChildren, but is not a group`,
      "Remove exposeChildren from this option.",
    );
  }
  const place = wanted.place(row);
  const spot = option.spots.parent ?? option;
  if (isGroup && (place.kind === "there" || place.kind === "row")) {
    problems.add(spot, `${nameOf(row)} is a group, and a group cannot be inside a group`, "Put it at the top level.");
  }
  if (place.kind === "there" && service.byId.get(place._id)?.type === "atomic") {
    problems.add(
      spot,
      `${nameOf(row)} would go into an option that is not a group`,
      "Name a group instead, which is an option of type collection.",
    );
  }
}

function nameOf({ option, there, base }: DesiredRow): string {
  return quoted(option.name ?? there?.name ?? base?.name ?? option._id ?? "");
}
