import { quoted } from "../file/desired.ts";
import type { DesiredRow, Sides } from "./match.ts";

/** Where a row wants its option: not said, the top level, a group that is there, or one that another row creates. */
export type WantedPlace =
  | { readonly kind: "unsaid" }
  | { readonly kind: "top" }
  | { readonly kind: "lost" }
  | { readonly kind: "there"; readonly _id: string }
  | { readonly kind: "row"; readonly row: DesiredRow };

/** What the rows want besides their own fields: where each goes, and which are groups since others go into them. */
export interface WantedPlaces {
  readonly place: (row: DesiredRow) => WantedPlace;
  readonly isGroup: (row: DesiredRow) => boolean;
}

/**
 * Resolves where each row's option is to be. A name means a row of the file, by the name that it will have, and else an
 * option that is there. A parent that is none, a group below a group and another type than an option has are problems.
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
    place: (row) => places.get(row) ?? { kind: "unsaid" },
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
  if (parent.kind === "top") return { kind: "top" };
  if (parent.kind === "keep") return { kind: row.how === "create" ? "top" : "unsaid" };
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
    `${other === undefined ? "no option has" : "several options have"} the name ${quoted(parent.name)}, which is to be the group of this one`,
    "Name a group of the file or of the targeting, or [] for the top level.",
  );
  return { kind: "lost" };
}

function placeIn(group: DesiredRow | undefined): WantedPlace {
  if (group === undefined || group.how === "lost") return { kind: "lost" };
  if (group.there !== undefined) return { kind: "there", _id: group.there._id };
  // A group that others deleted is still where its options were, as far as the base knows.
  if (group.how === "gone" && group.option._id !== undefined) return { kind: "there", _id: group.option._id };
  return { kind: "row", row: group };
}

function checkTypes(row: DesiredRow, wanted: WantedPlaces, { service, problems }: Sides): void {
  const { option, there } = row;
  const type = there?.type;
  if (type !== undefined && option.type !== undefined && option.type !== type) {
    problems.add(
      option.spots.type ?? option,
      `${nameOf(row)} is ${type === "atomic" ? "no group" : "a group"}, and the file makes it ${type === "atomic" ? "one" : "none"}`,
      "An option keeps its type. Take type and children out, or describe a new option under another name.",
    );
    return;
  }
  const isGroup = wanted.isGroup(row);
  if (option.type === "atomic" && isGroup) {
    problems.add(
      option.spots.type ?? option,
      `${nameOf(row)} has type atomic, and other rows go into it`,
      "Leave type out, or move the others.",
    );
  }
  if (option.exposeChildren !== undefined && !isGroup) {
    problems.add(
      option.spots.exposeChildren ?? option,
      `exposeChildren is given for ${nameOf(row)}, which is no group`,
      "Leave it out.",
    );
  }
  const place = wanted.place(row);
  const spot = option.spots.parent ?? option;
  if (isGroup && (place.kind === "there" || place.kind === "row")) {
    problems.add(spot, `${nameOf(row)} is a group: it cannot stand below a group`, "Put it at the top level.");
  }
  if (place.kind === "there" && service.byId.get(place._id)?.type === "atomic") {
    problems.add(
      spot,
      `${nameOf(row)} is to go into an option that is no group`,
      "Only a group, an option of type collection, has sub-options.",
    );
  }
}

/** A row in words. */
export function nameOf({ option, there, base }: DesiredRow): string {
  return quoted(option.name ?? there?.name ?? base?.name ?? option._id ?? "");
}
