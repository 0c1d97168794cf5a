import { digestOfContexts, type ServiceOption } from "../base.ts";
import { quoted } from "../file/desired.ts";
import type { DesiredRow, Sides } from "./match.ts";
import { changedSince } from "./match.ts";

/** Compares a row whose option others deleted: drift, or a conflict if the file changed the option. */
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

/** Options without a row: options to delete, and options that only the targeting has. */
interface Unnamed {
  readonly deleted: readonly ServiceOption[];
  readonly onlyThere: readonly ServiceOption[];
}

/**
 * Handles options without a row. `prune` deletes those in the base; changes by others, and sub-options that others
 * added to them, are conflicts. Options that others added are listed and stay.
 */
export function compareOthers(rows: readonly DesiredRow[], sides: Sides): Unnamed {
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
  // Options in neither the file nor the service: others deleted them, unless the file removes them, too.
  const inFile = new Set(rows.flatMap((row) => row.base?._id ?? []));
  for (const { _id, name } of base.options.values()) {
    if (!service.byId.has(_id) && !inFile.has(_id)) drift.push({ _id, name, field: "deleted" });
  }
  return { deleted, onlyThere: [] };
}

/**
 * Returns the options that rows request to delete. It is a conflict if others changed one or added sub-options. Without
 * a base a row needs the ID, so that nothing is deleted by its name alone.
 */
export function removedByRows(rows: readonly DesiredRow[], sides: Sides): readonly ServiceOption[] {
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
  const deleted: ServiceOption[] = [];
  const since = subOptionsAddedSince(sides);
  for (const row of rows) {
    const { option, there } = row;
    if (option.isRemoved !== true || there === undefined) continue;
    if (base?.options.has(there._id) !== true && option._id === undefined) {
      problems.add(
        option,
        `Action is Remove, but the row has no Option ID: the option ${nameOf(row)} cannot be deleted by its name alone`,
        "Fill Option ID: list_options with saveTo, and export, write it.",
      );
      continue;
    }
    if (mayBeDeleted(there, sides, since, { line: option.line })) deleted.push(there);
  }
  return deleted;
}

/** Returns whether an option is unchanged since the base, or not in it. Changes by others become conflicts. */
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

/** Returns how many sub-options each group received since the base. */
function subOptionsAddedSince({ base, service }: Sides): ReadonlyMap<string, number> {
  const given = new Map<string, number>();
  for (const { _id, parent } of service.options) {
    if (parent !== null && base?.options.get(_id)?.parent !== parent) given.set(parent, (given.get(parent) ?? 0) + 1);
  }
  return given;
}

/** Reports rows whose options would stay in a group that is deleted. */
export function checkOrphans(
  rows: readonly DesiredRow[],
  deleted: readonly ServiceOption[],
  wanted: WantedPlaces,
  sides: Sides,
): void {
  const gone = new Set(deleted.map(({ _id }) => _id));
  for (const row of rows) {
    const { there, option } = row;
    const place = wanted.place(row);
    const isInside = there !== undefined && there.parent !== null && gone.has(there.parent) && place.kind === "unsaid";
    if (!isInside && !(place.kind === "there" && gone.has(place._id))) continue;
    sides.problems.add(
      option.spots.parent ?? option,
      `the group of ${nameOf(row)} is no longer in the file, so it would be deleted`,
      "Put the group back into the file, or give parentName: another group, or [] for the top level.",
    );
  }
}

/**
 * The wanted parent of a row's option: unspecified, the top level, or a group that exists or is created; `lost`: a
 * problem.
 */
export type WantedPlace =
  | { readonly kind: "unsaid" }
  | { readonly kind: "top" }
  | { readonly kind: "lost" }
  | { readonly kind: "there"; readonly _id: string }
  | { readonly kind: "row"; readonly row: DesiredRow };

const TOP = { kind: "top" } as const;
const UNSAID = { kind: "unsaid" } as const;

/** The wanted parent of each row, and which rows are groups, including rows that are the parent of others. */
export interface WantedPlaces {
  readonly place: (row: DesiredRow) => WantedPlace;
  readonly isGroup: (row: DesiredRow) => boolean;
}

/**
 * Resolves the wanted parent of each row by name: first a row of the file, by its new name, otherwise an existing
 * option. Reports an invalid parent, a group below a group, and a type that differs from the option's.
 */
export function placesOf(rows: readonly DesiredRow[], sides: Sides): WantedPlaces {
  const named = new Map<string, DesiredRow>();
  for (const row of rows) {
    const name = row.option.name ?? row.there?.name;
    if (name !== undefined && !named.has(name)) named.set(name, row);
  }
  const places = new Map(rows.map((row) => [row, placeOf(row, rows, named, sides)]));
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

function placeOf(
  row: DesiredRow,
  rows: readonly DesiredRow[],
  named: ReadonlyMap<string, DesiredRow>,
  sides: Sides,
): WantedPlace {
  const { option } = row;
  const { parent } = option;
  if (parent.kind === "top") return TOP;
  if (parent.kind === "keep") return row.how === "create" ? TOP : UNSAID;
  if (parent.kind === "row") return placeIn(rows[parent.row]);
  const spot = option.spots.parent ?? option;
  const inFile = named.get(parent.name);
  if (inFile === row) {
    sides.problems.add(spot, `${quoted(parent.name)} is its own group`, "Name another group, or [] for the top level.");
    return { kind: "lost" };
  }
  if (inFile !== undefined) return placeIn(inFile);
  const [there, other] = sides.service.byName.get(parent.name) ?? [];
  if (there !== undefined && other === undefined) return { kind: "there", _id: there._id };
  sides.problems.add(
    spot,
    `${other === undefined ? "no option has" : "several options have"} the name ${quoted(parent.name)}, which this option names as its group`,
    "Name a group of the file or of the targeting, or [] for the top level.",
  );
  return { kind: "lost" };
}

function placeIn(group: DesiredRow | undefined): WantedPlace {
  if (group === undefined || group.how === "lost") return { kind: "lost" };
  if (group.there !== undefined) return { kind: "there", _id: group.there._id };
  // In the base, a group that others deleted is still the parent of its options.
  if (group.how === "gone" && group.option._id !== undefined) return { kind: "there", _id: group.option._id };
  return { kind: "row", row: group };
}

function checkTypes(row: DesiredRow, wanted: WantedPlaces, { service, problems }: Sides): void {
  const { option, there } = row;
  const type = there?.type;
  if (type !== undefined && option.type !== undefined && option.type !== type) {
    problems.add(
      option.spots.type ?? option,
      `${nameOf(row)} is ${type === "atomic" ? "not a group" : "a group"}, and the file makes it ${type === "atomic" ? "one" : "none"}`,
      "The type of an option cannot change. Remove type and children, or describe a new option under another name.",
    );
    return;
  }
  const isGroup = wanted.isGroup(row);
  if (option.type === "atomic" && isGroup) {
    problems.add(
      option.spots.type ?? option,
      `${nameOf(row)} has type atomic, and other rows go into it`,
      "Leave type out, or move the other rows.",
    );
  }
  if (option.exposeChildren !== undefined && !isGroup) {
    problems.add(
      option.spots.exposeChildren ?? option,
      `${nameOf(row)} has exposeChildren, but is not a group`,
      "Leave it out.",
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
      "Only a group, an option of type collection, has sub-options.",
    );
  }
}

/** Returns the name of a row for messages. */
function nameOf({ option, there, base }: DesiredRow): string {
  return quoted(option.name ?? there?.name ?? base?.name ?? option._id ?? "");
}
