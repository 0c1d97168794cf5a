import { groupedBy } from "../platform/by-key.ts";
import { type Base, type BaseOption, digestOfContexts, type ServiceOption, type ServiceTargeting } from "./base.ts";
import { type Desired, type DesiredOption, type Problem, type Problems, quoted } from "./file/desired.ts";
import { checkNames } from "./file/read-desired.ts";
import {
  type ChangeItem,
  type CreateItem,
  createdIn,
  type DeleteItem,
  type Difference,
  type DifferingField,
  type GroupName,
  type ParentRef,
  type PlannedTargeting,
  type SeenOption,
  type ShownValue,
  type StatePlan,
} from "./plan.ts";

/** The options of a targeting in the service: by ID, by name, and by the ID of their group (null for the top level). */
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
   * How the row was matched to an option. `match`: by ID or, with `byName`, by name. `adopt`: by name, because the row
   * has no ID. `create`: no such option exists yet. `gone`: others deleted the option. `lost`: not matched. In this
   * case, a problem was reported, unless the row itself removes the option.
   */
  readonly how: "match" | "adopt" | "create" | "gone" | "lost";
}

/** What a plan compares (file, base and service), and the lists into which it writes the differences. */
export interface Sides {
  readonly desired: Desired;
  readonly base?: Base | undefined;
  readonly service: Service;
  /** Whether to delete options that are in the base but no longer in the file. Only possible with a base. */
  readonly prune: boolean;
  readonly byName: boolean;
  readonly problems: Problems;
  readonly drift: Difference[];
  readonly conflicts: Difference[];
  readonly groupName: GroupName;
}

/** Indexes the options of a targeting. There are none if the plan creates it (`there` is undefined). */
export function serviceOf(there: ServiceTargeting | undefined): Service {
  const options = there?.options ?? [];
  return {
    options,
    byId: new Map(options.map((one) => [one._id, one])),
    byName: groupedBy(options, ({ name }) => name),
    byParent: groupedBy(options, ({ parent }) => parent),
  };
}

/** Finds the existing option of each row: by `_id` if the row has one, otherwise, and with `byName`, by name. */
export function matchRows(sides: Sides): readonly DesiredRow[] {
  // With `byName`, only names identify rows, so each repeated name is reported here. Otherwise repeated names were
  // reported when the file was read, except those of rows with IDs.
  if (sides.byName) checkNames(sides.desired.options, sides.problems, () => false);
  const claimed = new Set(sides.byName ? [] : sides.desired.options.flatMap(({ _id }) => _id ?? []));
  return sides.desired.options.map((option, index) => {
    const { _id } = option;
    if (_id === undefined || sides.byName) return byName(option, index, claimed, sides);
    const there = sides.service.byId.get(_id);
    const base = sides.base?.options.get(_id);
    if (there !== undefined) return { index, option, there, base, how: "match" };
    if (base !== undefined) return { index, option, base, how: "gone" };
    // An unknown ID is no problem in a row that removes its option. The sheet still has this row after the removal, and
    // may be planned again.
    if (option.isRemoved) return { index, option, how: "lost" };
    sides.problems.add(
      option.spots._id ?? option,
      unknownId(_id),
      "Check the ID, or remove it: the option is then found by its name, or created. " +
        "To plan the file of another targeting onto this one, use byName: true.",
    );
    return { index, option, how: "lost" };
  });
}

function unknownId(_id: string): string {
  return `neither the targeting nor the base has an option ${_id}`;
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
      "Rename all but one of them, or give the _id of the option that you mean (byName ignores it).",
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

/** Returns the fields in which an option differs from its previous state `was`. A parent is an ID here. */
function differingFields(
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

/** Returns how the service differs from a file without a base. An option with an unknown `_id` counts as deleted. */
export function driftFromFile(
  plan: StatePlan,
  { options }: Desired,
  there: ServiceTargeting,
): { readonly differences: readonly Difference[]; readonly problems: readonly Problem[] } {
  const known = new Set(there.options.map(({ _id }) => _id));
  const lost = options.flatMap(({ _id, name = "", line }) =>
    _id === undefined || known.has(_id) ? [] : [{ _id, name, line }],
  );
  const differences = lost.map(
    ({ _id, name, line }): Difference => ({ _id, name, field: "deleted", file: name, line }),
  );
  differences.push(...planned(plan, there));
  // Each of these options is already reported as a difference.
  const reported = new Set(lost.map(({ _id }) => unknownId(_id)));
  return { differences, problems: plan.problems.filter(({ message }) => !reported.has(message)) };
}

function planned(plan: StatePlan, there: ServiceTargeting): readonly Difference[] {
  const names = new Map(there.options.map(({ _id, name }) => [_id, name]));
  const parentName = (parent: string | null): string | null => (parent === null ? null : (names.get(parent) ?? parent));
  const drift: Difference[] = [];
  const { _id, name, rename } = plan.targeting;
  if (rename !== undefined) drift.push({ _id, name, field: "name", file: rename, service: name });
  for (const item of plan.items) {
    if (item.kind === "create") drift.push({ name: item.name, field: "deleted", file: item.name, line: item.line });
    if (item.kind !== "change") continue;
    const { seen, line, _id, name, parent, exposeChildren, contexts } = item;
    const about = { _id, name: seen.name, line };
    if (name !== undefined) drift.push({ ...about, field: "name", file: name, service: seen.name });
    if (parent !== undefined) {
      const isNew = parent !== null && "item" in parent;
      const file = isNew ? createdIn(plan, parent.item) : parentName(parent?._id ?? null);
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

/**
 * Checks whether everything that a plan changes, deletes or refers to is as it was when the plan was made, or already
 * as planned (`alreadyDone`: the indexes of such items). `stale`: the differences because of which nothing may be sent.
 * `at`: the index of the item, or -1 for the targeting.
 */
export function lookAgain({ items, targeting, adopted }: StatePlan, there: ServiceTargeting | undefined) {
  const look = new Look(items, serviceOf(there), new Set(adopted.map(({ _id }) => _id)));
  const alreadyDone = new Set<number>();
  if (there !== undefined) look.targeting(targeting, there);
  for (const [index, item] of items.entries()) {
    look.at = index;
    const isDone =
      item.kind === "create" ? look.creation(item) : item.kind === "change" ? look.change(item) : look.deletion(item);
    if (isDone) alreadyDone.add(index);
  }
  return { stale: look.stale, alreadyDone };
}

class Look {
  readonly stale: { readonly at: number; readonly difference: Difference }[] = [];
  at = -1;
  readonly #items: StatePlan["items"];
  readonly #service: Service;
  /** The options that the plan changes or deletes. Their names may become free for other options of the plan. */
  readonly #own: ReadonlySet<string>;
  /** The options that the plan found by their names. */
  readonly #foundByName: ReadonlySet<string>;

  constructor(items: StatePlan["items"], service: Service, foundByName: ReadonlySet<string>) {
    this.#items = items;
    this.#service = service;
    this.#foundByName = foundByName;
    this.#own = new Set(items.flatMap((item) => (item.kind === "create" ? [] : [item._id])));
  }

  /**
   * If the plan renames or deletes a targeting, checks that it still has the name that the plan knows. If the plan
   * deletes it, also checks that it has no options that the plan does not know.
   */
  targeting({ name, rename, delete: isDeleted }: PlannedTargeting, { targeting, options }: ServiceTargeting): void {
    if (rename === undefined && !isDeleted) return;
    const isKnown = targeting.name === name || targeting.name === rename;
    if (!isKnown) this.#tell({ _id: targeting._id, name }, "name", name, targeting.name);
    if (!isDeleted) return;
    for (const option of options)
      if (!this.#own.has(option._id)) this.#tell(targeting, "added", undefined, option.name);
  }

  creation(item: CreateItem): boolean {
    // An option that the plan changes or deletes is not a holder of the name, because it may give up the name.
    const holder = this.#service.byName.get(item.name)?.find(({ _id }) => !this.#own.has(_id));
    if (holder !== undefined && this.#isMade(item, holder)) return true;
    if (holder !== undefined) this.#tell({ _id: holder._id, name: item.name }, "name", undefined, item.name);
    this.#group(item.parent, item.name);
    return false;
  }

  #isMade({ type, parent, contexts, exposeChildren }: CreateItem, there: ServiceOption): boolean {
    const isThere = this.#isIn(parent, there);
    const isExposed = exposeChildren === undefined || (there.exposeChildren ?? false) === exposeChildren;
    return isThere && isExposed && there.type === type && there.digest === digestOfContexts(contexts);
  }

  #isIn(parent: ParentRef, there: ServiceOption): boolean {
    if (parent === null || there.parent === null) return parent === there.parent;
    if ("_id" in parent) return parent._id === there.parent;
    const group = this.#service.byId.get(there.parent);
    const item = this.#items[parent.item];
    if (group === undefined || this.#own.has(group._id)) return false;
    return item?.kind === "create" && item.name === group.name && this.#isMade(item, group);
  }

  change(item: ChangeItem): boolean {
    const { _id, seen, name, parent, exposeChildren, contexts } = item;
    const there = this.#service.byId.get(_id);
    if (there === undefined) {
      this.#tell({ _id, name: seen.name }, "deleted");
      return false;
    }
    // The plan found this option by its name. If it has a different name now, it may not be the one that was meant.
    if (name === undefined && this.#foundByName.has(_id) && there.name !== seen.name) {
      this.#tell({ _id, name: seen.name }, "name", seen.name, there.name);
      return false;
    }
    let open = 0;
    const field = (
      key: DifferingField,
      isDone: boolean,
      isSeen: boolean,
      planned: ShownValue,
      service: ShownValue,
    ): void => {
      if (isDone) return;
      open += 1;
      if (!isSeen) this.#tell(there, key, planned, service);
    };
    if (name !== undefined) {
      field("name", there.name === name, there.name === seen.name, seen.name, there.name);
      const other = this.#service.byName.get(name)?.find((one) => one._id !== _id && !this.#own.has(one._id));
      if (other !== undefined) this.#tell({ _id: other._id, name }, "name", undefined, name);
    }
    if (parent !== undefined) {
      const isDone = this.#isIn(parent, there);
      field("parent", isDone, there.parent === seen.parent, seen.parent, there.parent);
      this.#group(parent, there.name);
    }
    if (exposeChildren !== undefined) {
      const now = there.exposeChildren ?? false;
      const then = seen.exposeChildren ?? false;
      field("exposeChildren", now === exposeChildren, now === then, then, now);
    }
    if (contexts !== undefined) {
      const held = new Set(there.contexts);
      const { after, add, remove } = contexts;
      const isLike = add.every((id) => held.has(id)) && !remove.some((id) => held.has(id));
      const isDone = after === undefined ? isLike : there.digest === after;
      // Without `after`, the option may also have other Context IDs, so their changes do not matter.
      const isSeen = after === undefined || there.digest === seen.digest;
      field("contexts", isDone, isSeen, seen.contexts, there.contexts.length);
    }
    return open === 0;
  }

  deletion({ _id, seen }: DeleteItem): boolean {
    const there = this.#service.byId.get(_id);
    if (there === undefined) return true;
    const subOptions = this.#service.byParent.get(_id)?.length ?? 0;
    for (const [field, planned, service] of differingFields(seen, there)) this.#tell(there, field, planned, service);
    if (subOptions !== (seen.subOptions ?? 0)) this.#tell(there, "subOptions", seen.subOptions ?? 0, subOptions);
    return false;
  }

  #group(parent: ParentRef, name: string): void {
    if (parent === null || !("_id" in parent)) return;
    const group = this.#service.byId.get(parent._id);
    if (group?.type !== "collection") this.#tell({ _id: parent._id, name }, "parent", parent._id, group?.type);
  }

  #tell(
    { _id, name }: { readonly _id: string; readonly name: string },
    field: DifferingField,
    planned?: ShownValue,
    service?: ShownValue,
  ): void {
    // A group that no longer exists has no name, so its ID is shown.
    const shown = (value: ShownValue | undefined): ShownValue | undefined =>
      field === "parent" && typeof value === "string" ? (this.#service.byId.get(value)?.name ?? value) : value;
    const difference = { _id, name, field, planned: shown(planned), service: shown(service) };
    this.stale.push({ at: this.at, difference });
  }
}
