import type { Base, BaseOption, ServiceOption, ServiceTargeting } from "../base.ts";
import type { Desired, Problem } from "../file/desired.ts";
import type { Difference, DifferingField, SeenOption, ShownValue, StatePlan } from "./plan.ts";

/** What others changed in a targeting since its base was written, object by object. */
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

/** What others changed on an option since the base, field by field. `groupName` gives the name of a group by its ID. */
export function changedSince(
  base: BaseOption,
  there: ServiceOption,
  groupName: (id: string) => string,
): readonly Difference[] {
  const { _id, name } = there;
  return differingFields(base, there).map(([field, before, now]) => {
    const told = (value: ShownValue) => (field === "parent" && typeof value === "string" ? groupName(value) : value);
    return { _id, name, field, base: told(before), service: told(now) };
  });
}

/** The fields in which an option differs from what it was, with both values: of its group the ID. */
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

/**
 * Where no base is known: in what the service differs from the file, taken from a plan of it. An `_id` that is not
 * there is no problem then, but a difference; the other problems are given back.
 */
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
    if (item.kind === "create") {
      drift.push({ name: item.name, field: "deleted", file: item.name, line: item.line });
      continue;
    }
    if (item.kind === "delete") continue;
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
