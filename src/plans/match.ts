import { groupedBy } from "../platform/by-key.ts";
import type { Base, BaseOption, ServiceOption, ServiceTargeting } from "./base.ts";
import { type Desired, type DesiredOption, type Problem, type Problems, quoted } from "./file/desired.ts";
import type { Difference, DifferingField, GroupName, SeenOption, ShownValue, StatePlan } from "./plan.ts";

/** The options of a targeting by ID, by name, and by group (null for the top level). */
export interface Service {
  readonly options: readonly ServiceOption[];
  readonly byId: ReadonlyMap<string, ServiceOption>;
  readonly byName: ReadonlyMap<string, readonly ServiceOption[]>;
  readonly byParent: ReadonlyMap<string | null, readonly ServiceOption[]>;
}

export interface DesiredRow {
  readonly index: number;
  readonly option: DesiredOption;
  readonly there?: ServiceOption | undefined;
  readonly base?: BaseOption | undefined;
  /**
   * How the row was matched to an option. `match`: by ID. `adopt`: by name. `create`: there is none yet. `gone`: others
   * deleted it. `lost`: a problem was reported.
   */
  readonly how: "match" | "adopt" | "create" | "gone" | "lost";
}

/** What a plan compares (file, base and service), and the results of the comparison. */
export interface Sides {
  readonly desired: Desired;
  readonly base?: Base | undefined;
  readonly service: Service;
  /** Whether to delete the options that are in the base but no longer in the file. Needs a base. */
  readonly prune: boolean;
  readonly byName: boolean;
  readonly problems: Problems;
  readonly drift: Difference[];
  readonly conflicts: Difference[];
  readonly groupName: GroupName;
}

/** Returns the options of a targeting. None if the plan creates the targeting. */
export function serviceOf(there: ServiceTargeting | undefined): Service {
  const options = there?.options ?? [];
  return {
    options,
    byId: new Map(options.map((one) => [one._id, one])),
    byName: groupedBy(options, ({ name }) => name),
    byParent: groupedBy(options, ({ parent }) => parent),
  };
}

/** Finds the existing option of each row: by `_id` if the row has one, otherwise by name. */
export function matchRows(sides: Sides): readonly DesiredRow[] {
  const claimed = new Set(sides.byName ? [] : sides.desired.options.flatMap(({ _id }) => _id ?? []));
  return sides.desired.options.map((option, index) => {
    const { _id } = option;
    if (_id === undefined || sides.byName) return byName(option, index, claimed, sides);
    const there = sides.service.byId.get(_id);
    const base = sides.base?.options.get(_id);
    if (there !== undefined) return { index, option, there, base, how: "match" };
    if (base !== undefined) return { index, option, base, how: "gone" };
    // No problem is reported for a row that removes an option, because a sheet keeps this row after it was applied.
    if (option.isRemoved) return { index, option, how: "lost" };
    sides.problems.add(
      option.spots._id ?? option,
      `neither the targeting nor the base has an option ${_id}`,
      "Check the ID, or remove it: the option is then found by its name, or created. " +
        "To plan the file of another targeting onto this one, use byName: true.",
    );
    return { index, option, how: "lost" };
  });
}

function byName(option: DesiredOption, index: number, claimed: ReadonlySet<string>, sides: Sides): DesiredRow {
  const { name } = option;
  if (name === undefined) {
    sides.problems.add(option, "the row has no name, and rows are matched by name", "Give each row a name.");
    return { index, option, how: "lost" };
  }
  const named = (sides.service.byName.get(name) ?? []).filter(({ _id }) => !claimed.has(_id));
  const [there, other] = named;
  if (there === undefined) return { index, option, how: "create" };
  if (other !== undefined) {
    const ids = named.map(({ _id }) => _id).join(", ");
    sides.problems.add(
      option.spots.name ?? option,
      `several options have the name ${quoted(name)}: ${ids}`,
      "Give the _id of the option that you mean.",
    );
    return { index, option, how: "lost" };
  }
  const how = sides.byName ? "match" : "adopt";
  return { index, option, there, base: sides.base?.options.get(there._id), how };
}

export function driftSince(base: Base, there: ServiceTargeting): readonly Difference[] {
  const now = new Map(there.options.map((option) => [option._id, option]));
  const names = (id: string): string => now.get(id)?.name ?? base.options.get(id)?.name ?? id;
  const { _id, name } = there.targeting;
  const drift: Difference[] = [];
  if (name !== base.targeting.name) drift.push({ _id, name, field: "name", base: base.targeting.name, service: name });
  for (const before of base.options.values()) {
    const option = now.get(before._id);
    if (option === undefined) drift.push({ _id: before._id, name: before.name, field: "deleted" });
    else drift.push(...changedSince(before, option, names));
  }
  for (const option of there.options) {
    if (!base.options.has(option._id))
      drift.push({ _id: option._id, name: option.name, field: "added", service: option.name });
  }
  return drift;
}

export function changedSince(base: BaseOption, there: ServiceOption, groupName: GroupName): readonly Difference[] {
  const { _id, name } = there;
  return differingFields(base, there).map(([field, before, now]) => {
    const shown = (value: ShownValue) => (field === "parent" && typeof value === "string" ? groupName(value) : value);
    return { _id, name, field, base: shown(before), service: shown(now) };
  });
}

/** Returns the fields in which an option differs from a previous state. A parent is given by its ID. */
export function differingFields(
  was: BaseOption | SeenOption,
  there: ServiceOption,
): readonly (readonly [field: DifferingField, before: ShownValue, now: ShownValue])[] {
  const fields = [
    ["name", was.name, there.name],
    ["parent", was.parent, there.parent],
    ["type", was.type, there.type],
    ["exposeChildren", was.exposeChildren ?? false, there.exposeChildren ?? false],
  ] as const;
  const differing = fields.filter(([, before, now]) => before !== now);
  if (was.digest === there.digest) return differing;
  return [...differing, ["contexts", was.contexts, there.contexts.length]];
}

/** Compares the service with a file that has no base. An unknown `_id` is a difference here, not a problem. */
export function driftFromFile(
  plan: StatePlan,
  { options }: Desired,
  there: ServiceTargeting,
): { readonly differences: readonly Difference[]; readonly problems: readonly Problem[] } {
  const known = new Set(there.options.map(({ _id }) => _id));
  const lost = options.filter(({ _id }) => _id !== undefined && !known.has(_id));
  const spots = new Set(lost.map(({ spots, line, column }) => placeOf(spots._id ?? { line, column })));
  const differences = lost.map(
    ({ _id, name = "", line }): Difference => ({ _id, name, field: "deleted", file: name, line }),
  );
  differences.push(...planned(plan, there));
  return { differences, problems: plan.problems.filter((problem) => !spots.has(placeOf(problem))) };
}

function placeOf({ line, column }: { readonly line: number; readonly column: number }): string {
  return `${line}:${column}`;
}

function planned({ items, targeting }: StatePlan, there: ServiceTargeting): readonly Difference[] {
  const names = new Map(there.options.map(({ _id, name }) => [_id, name]));
  const parentName = (parent: string | null): string | null => (parent === null ? null : (names.get(parent) ?? parent));
  const drift: Difference[] = [];
  const { _id, name, rename } = targeting;
  if (rename !== undefined) drift.push({ _id, name, field: "name", file: rename, service: name });
  for (const item of items) {
    if (item.kind === "create") drift.push({ name: item.name, field: "deleted", file: item.name, line: item.line });
    if (item.kind !== "change") continue;
    const { seen, line, _id, name, parent, exposeChildren, contexts } = item;
    const about = { _id, name: seen.name, line };
    if (name !== undefined) drift.push({ ...about, field: "name", file: name, service: seen.name });
    if (parent !== undefined) {
      const file = parent === null ? null : "_id" in parent ? parentName(parent._id) : createdName(items, parent.item);
      drift.push({ ...about, field: "parent", file, service: parentName(seen.parent) });
    }
    if (exposeChildren !== undefined) {
      drift.push({ ...about, field: "exposeChildren", file: exposeChildren, service: seen.exposeChildren ?? false });
    }
    if (contexts !== undefined) {
      const file = seen.contexts + contexts.add.length - contexts.remove.length;
      drift.push({ ...about, field: "contexts", file, service: seen.contexts });
    }
  }
  return drift;
}

function createdName(items: StatePlan["items"], index: number): string {
  const item = items[index];
  return item?.kind === "create" ? item.name : "";
}
