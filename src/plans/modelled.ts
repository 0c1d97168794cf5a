import type { KnownOption, Ref } from "../model/targeting-model.ts";
import type { Change } from "../model/work.ts";
import type { ServiceOption } from "./base.ts";
import type { ParentRef, PlanItem } from "./diff/plan.ts";

/** What the names of options begin with that are not made yet; the position of their item follows. */
const NEW = "new:";

/** The name in the model of the option that an item creates. */
function newRef(item: number): Ref {
  return `${NEW}${item}`;
}

/** The position of the item that creates an option; undefined for an option that exists. */
export function positionOf(ref: Ref): number | undefined {
  return ref.startsWith(NEW) ? Number(ref.slice(NEW.length)) : undefined;
}

/** The group at a place, by the name that it has in the model; null for the top level. */
export function groupAt(place: ParentRef): Ref | null {
  if (place === null) return null;
  return "_id" in place ? place._id : newRef(place.item);
}

/** What an item of a plan wants of its option. */
export function changeOf(item: PlanItem, at: number, groupOf = groupAt): Change {
  if (item.kind === "delete") return { kind: "delete", ref: item._id };
  const { name, exposeChildren: expose } = item;
  if (item.kind === "create") {
    const { type, contexts } = item;
    const fields = { group: type === "collection", parent: groupOf(item.parent), expose: expose ?? false };
    return { kind: "create", ref: newRef(at), name: item.name, ...fields, contexts };
  }
  const { add, remove } = item.contexts ?? { add: [], remove: [] };
  return {
    ...{ kind: "update", ref: item._id, add, remove },
    ...(name !== undefined && { name }),
    ...(item.parent !== undefined && { parent: groupOf(item.parent) }),
    ...(expose !== undefined && { expose }),
  };
}

/** No Context IDs: of most options the model needs their number alone. */
export const NO_CONTEXTS: ReadonlySet<string> = new Set();

/** An option as the model has it, with its Context IDs where these matter. */
export function knownOption(
  { name, type, parent, exposeChildren = false, contexts = [], contextCount = contexts.length }: KnownFields,
  needsContexts = type === "collection",
): KnownOption {
  const held = needsContexts ? new Set(contexts) : NO_CONTEXTS;
  const others = Math.max(0, contextCount - held.size);
  return { name, group: type === "collection", parent, expose: exposeChildren, contexts: held, others };
}

interface KnownFields extends Pick<ServiceOption, "name" | "type" | "parent" | "exposeChildren"> {
  readonly contexts?: readonly string[] | undefined;
  readonly contextCount?: number | undefined;
}

/** Values by what they have in common, in their order. */
export function groupedBy<Value, Key>(
  values: Iterable<Value>,
  keyOf: (value: Value) => Key,
): ReadonlyMap<Key, readonly Value[]> {
  const groups = new Map<Key, Value[]>();
  for (const value of values) {
    const key = keyOf(value);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [value]);
    else group.push(value);
  }
  return groups;
}
