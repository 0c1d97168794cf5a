import type { Change, KnownOption, Ref } from "../model/targeting-model.ts";
import type { ServiceOption } from "./base.ts";
import type { ParentRef, PlanItem } from "./diff/plan.ts";

/** The beginning of a reference to a new option. The position of its item follows. */
const NEW = "new:";

function newRef(item: number): Ref {
  return `${NEW}${item}`;
}

/** Returns the position of the item that creates an option. Undefined for an existing option. */
export function positionOf(ref: Ref): number | undefined {
  return ref.startsWith(NEW) ? Number(ref.slice(NEW.length)) : undefined;
}

/** Returns the reference to a group. Null for the top level. */
export function groupAt(place: ParentRef): Ref | null {
  if (place === null) return null;
  return "_id" in place ? place._id : newRef(place.item);
}

/** Converts an item of a plan to a change of the model. */
export function changeOf(item: PlanItem, at: number, groupOf = groupAt): Change {
  if (item.kind === "delete") return { kind: "delete", ref: item._id };
  const { name, exposeChildren: expose } = item;
  if (item.kind === "create") {
    const { type, contexts } = item;
    const place = { group: type === "collection", parent: groupOf(item.parent) };
    return { kind: "create", ref: newRef(at), name: item.name, ...place, expose: expose ?? false, contexts };
  }
  const { add, remove } = item.contexts ?? { add: [], remove: [] };
  return {
    kind: "update",
    ref: item._id,
    add,
    remove,
    ...(name !== undefined && { name }),
    ...(item.parent !== undefined && { parent: groupOf(item.parent) }),
    ...(expose !== undefined && { expose }),
  };
}

/** The Context IDs of options of which the model needs only their number. */
export const NO_CONTEXTS: ReadonlySet<string> = new Set();

/** Converts an option to the form of the model. */
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
