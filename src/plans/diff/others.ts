import { digestOfContexts, type ServiceOption } from "../base/service-targeting.ts";
import { changedSince } from "./drift.ts";
import type { DesiredRow, Sides } from "./match.ts";
import { nameOf, type WantedPlaces } from "./places.ts";

/** A row whose option others deleted: left out, unless the file changed it, which is a conflict. */
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

/** Options without a row: those to be deleted, and those that only one side has. */
export interface Unnamed {
  readonly deleted: readonly ServiceOption[];
  readonly onlyThere: readonly ServiceOption[];
}

/**
 * Looks at options that no row speaks of. With `prune` those that stood in the base are deleted, unless others changed
 * them since, or gave them sub-options, which is a conflict. What others added is listed, and stays.
 */
export function compareOthers(rows: readonly DesiredRow[], sides: Sides): Unnamed {
  const { base, service, prune, byName, drift, conflicts, groupName } = sides;
  const named = new Set(rows.flatMap(({ there }) => there?._id ?? []));
  const others = service.options.filter(({ _id }) => !named.has(_id));
  if (base === undefined) return { deleted: [], onlyThere: byName ? others : [] };
  const deleted: ServiceOption[] = [];
  const since = givenSince(sides);
  for (const there of others) {
    const { _id, name } = there;
    const before = base.options.get(_id);
    if (before === undefined) {
      drift.push({ _id, name, field: "added", service: name });
      continue;
    }
    const changes = changedSince(before, there, groupName);
    const given = since.get(_id) ?? 0;
    if (!prune) drift.push(...changes);
    else if (changes.length === 0 && given === 0) deleted.push(there);
    else {
      conflicts.push(...changes.map((change) => ({ ...change, file: "deleted" })));
      if (given > 0) conflicts.push({ _id, name, field: "subOptions", file: "deleted", service: given });
    }
  }
  if (prune) return { deleted, onlyThere: [] };
  // What is in neither file nor service: unless the file removes it as well, others did.
  const inFile = new Set(rows.flatMap((row) => row.base?._id ?? []));
  for (const { _id, name } of base.options.values()) {
    if (!service.byId.has(_id) && !inFile.has(_id)) drift.push({ _id, name, field: "deleted" });
  }
  return { deleted, onlyThere: [] };
}

/**
 * The options that rows ask to be deleted. One that others changed since the base, or gave sub-options, is a conflict;
 * without a base a row needs the ID, so that no option is deleted that only has the name.
 */
export function removedByRows(rows: readonly DesiredRow[], sides: Sides): readonly ServiceOption[] {
  const { base, prune, problems, conflicts, groupName, desired } = sides;
  if (prune && desired.hasActions === true) {
    const [first] = rows;
    problems.add(
      first?.option ?? { line: 1, column: 1 },
      "prune was given for a sheet whose column Action is filled: both say what is deleted",
      "Leave prune out, or empty the column Action.",
    );
    return [];
  }
  const deleted: ServiceOption[] = [];
  const since = givenSince(sides);
  for (const row of rows) {
    const { option, there } = row;
    if (option.isRemoved !== true || there === undefined) continue;
    const { _id, name } = there;
    const before = base?.options.get(_id);
    if (before === undefined && option._id === undefined) {
      problems.add(
        option,
        `Action is Remove, and the row has no Option ID: the option ${nameOf(row)} is not deleted by its name alone`,
        "Fill Option ID, as list_options saveTo and export write it.",
      );
      continue;
    }
    const changes = before === undefined ? [] : changedSince(before, there, groupName);
    const given = before === undefined ? 0 : (since.get(_id) ?? 0);
    if (changes.length === 0 && given === 0) deleted.push(there);
    else {
      conflicts.push(...changes.map((change) => ({ ...change, file: "deleted", line: option.line })));
      if (given > 0)
        conflicts.push({ _id, name, field: "subOptions", file: "deleted", service: given, line: option.line });
    }
  }
  return deleted;
}

/** How many sub-options each group was given since the base. */
function givenSince({ base, service }: Sides): ReadonlyMap<string, number> {
  const given = new Map<string, number>();
  for (const { _id, parent } of service.options) {
    if (parent !== null && base?.options.get(_id)?.parent !== parent) given.set(parent, (given.get(parent) ?? 0) + 1);
  }
  return given;
}

/** Rows that keep their place in a group that is deleted. */
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
      `the group of ${nameOf(row)} is gone from the file, and would be deleted`,
      "Put the group back into the file, or give parentName: another group, or [] for the top level.",
    );
  }
}
