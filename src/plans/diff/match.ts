import { type Base, type BaseOption, groupedBy, type ServiceOption, type ServiceTargeting } from "../base.ts";
import { type Desired, type DesiredOption, type Problems, quoted } from "../file/desired.ts";
import type { Difference } from "./plan.ts";

/** The options of an existing targeting, by ID, by name, and by group: null for the top level. */
export interface Service {
  readonly options: readonly ServiceOption[];
  readonly byId: ReadonlyMap<string, ServiceOption>;
  readonly byName: ReadonlyMap<string, readonly ServiceOption[]>;
  readonly byParent: ReadonlyMap<string | null, readonly ServiceOption[]>;
}

/** A row of the file, and the option that it means on the other two sides. */
export interface DesiredRow {
  readonly index: number;
  readonly option: DesiredOption;
  readonly there?: ServiceOption | undefined;
  readonly base?: BaseOption | undefined;
  /**
   * `match`: it is there; `adopt`: it is there, found by name; `create`; `gone`: deleted by others; `lost`: a problem.
   */
  readonly how: "match" | "adopt" | "create" | "gone" | "lost";
}

/** What a file is planned against, and what is found on the way. */
export interface Sides {
  readonly desired: Desired;
  /** The state that the file was exported from; undefined where none is known. */
  readonly base?: Base | undefined;
  readonly service: Service;
  /** Whether options that stood in the base and are gone from the file are deleted; needs a base. */
  readonly prune: boolean;
  /** Whether names alone are identity. */
  readonly byName: boolean;
  readonly problems: Problems;
  readonly drift: Difference[];
  readonly conflicts: Difference[];
  /** The name of a group by its ID. */
  readonly groupName: (id: string) => string;
}

/** Indexes the options of a targeting; empty where it is to be created. */
export function serviceOf(there: ServiceTargeting | undefined): Service {
  const options = there?.options ?? [];
  return {
    options,
    byId: new Map(options.map((one) => [one._id, one])),
    byName: groupedBy(options, ({ name }) => name),
    byParent: groupedBy(options, ({ parent }) => parent),
  };
}

/** Finds the option of each row: by `_id` where it has one, else by its name. */
export function matchRows(sides: Sides): readonly DesiredRow[] {
  const claimed = new Set(sides.byName ? [] : sides.desired.options.flatMap(({ _id }) => _id ?? []));
  return sides.desired.options.map((option, index) => {
    const { _id } = option;
    if (_id === undefined || sides.byName) return byName(option, index, claimed, sides);
    const there = sides.service.byId.get(_id);
    const base = sides.base?.options.get(_id);
    if (there !== undefined) return { index, option, there, base, how: "match" };
    if (base !== undefined) return { index, option, base, how: "gone" };
    sides.problems.add(
      option.spots._id ?? option,
      `the targeting has no option ${_id}, and the base knows none either`,
      "Check the ID, or remove it: the row then means the option of its name, which is created where there is none. " +
        "A file of another targeting is planned onto this one by names: --by-name (byName).",
    );
    return { index, option, how: "lost" };
  });
}

function byName(option: DesiredOption, index: number, claimed: ReadonlySet<string>, sides: Sides): DesiredRow {
  const { name } = option;
  if (name === undefined) {
    sides.problems.add(option, "the row has no name, by which it is to be found", "Give each row a name.");
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
      "Give the _id of the one that is meant.",
    );
    return { index, option, how: "lost" };
  }
  const how = sides.byName ? "match" : "adopt";
  return { index, option, there, base: sides.base?.options.get(there._id), how };
}
