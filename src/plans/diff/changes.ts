import * as z from "zod";
import type { Fixed } from "../../platform/json.ts";
import type { ParentRef, ShownValue, StatePlan } from "./plan.ts";
import { shownValue } from "./plan-schema.ts";

/** The kinds of changes, in the order in which they are listed. */
export const CHANGE_KINDS = ["created", "renamed", "moved", "contexts", "settings", "deleted", "adopted"] as const;
export type ListedChangeKind = (typeof CHANGE_KINDS)[number];

/** One change of one object, as it is listed. */
export const listedChange = z.object({
  _id: z.string().optional(),
  /** The name that it has, or gets where it is created. */
  name: z.string(),
  kind: z.enum(CHANGE_KINDS),
  /** Of renames the names, of moves the names of groups (null: top level), of settings the values. */
  from: shownValue.optional(),
  to: shownValue.optional(),
  /** How many Context IDs come and go. */
  added: z.int().optional(),
  removed: z.int().optional(),
  /** The targeting itself is meant. */
  isTargeting: z.literal(true).optional(),
});
export type ListedChange = Fixed<z.infer<typeof listedChange>>;

/** Every change of a plan, kind by kind. `groupName` gives the name of a group that is there. */
export function changesOf(plan: StatePlan, groupName: (id: string) => string): readonly ListedChange[] {
  const changes = [...ofTargeting(plan), ...plan.items.flatMap((item) => itemChanges(plan, item, groupName))];
  for (const { _id, name } of plan.adopted) changes.push({ kind: "adopted", _id, name });
  const order = new Map(CHANGE_KINDS.map((kind, place) => [kind, place]));
  return changes.toSorted((one, other) => (order.get(one.kind) ?? 0) - (order.get(other.kind) ?? 0));
}

function ofTargeting({ targeting: { _id, name, rename, delete: isDeleted } }: StatePlan): ListedChange[] {
  if (isDeleted) return [{ kind: "deleted", _id, name, isTargeting: true }];
  if (_id === undefined) return [{ kind: "created", name, isTargeting: true }];
  return rename === undefined ? [] : [{ kind: "renamed", _id, name, from: name, to: rename, isTargeting: true }];
}

/** The name that a group gets by the same plan. */
function renamedIn({ items }: StatePlan, id: string): string | undefined {
  const group = items.find((item) => item.kind === "change" && item._id === id);
  return group?.kind === "change" ? group.name : undefined;
}

/** The changes of one item of a plan. */
export function itemChanges(
  plan: StatePlan,
  item: StatePlan["items"][number],
  groupName: (id: string) => string,
): readonly ListedChange[] {
  const place = (parent: ParentRef): ShownValue => {
    if (parent === null) return null;
    if ("_id" in parent) return renamedIn(plan, parent._id) ?? groupName(parent._id);
    const group = plan.items[parent.item];
    return group?.kind === "create" ? group.name : "";
  };
  if (item.kind === "create") {
    const to = item.parent === null ? {} : { to: place(item.parent) };
    return [{ kind: "created", name: item.name, ...to, added: item.contexts.length }];
  }
  const { _id, seen } = item;
  const { name } = seen;
  if (item.kind === "delete") return [{ kind: "deleted", _id, name, removed: seen.contexts }];
  const changes: ListedChange[] = [];
  if (item.name !== undefined) changes.push({ kind: "renamed", _id, name, from: name, to: item.name });
  if (item.parent !== undefined) {
    const from = seen.parent === null ? null : groupName(seen.parent);
    changes.push({ kind: "moved", _id, name, from, to: place(item.parent) });
  }
  if (item.contexts !== undefined) {
    const { add, remove } = item.contexts;
    changes.push({ kind: "contexts", _id, name, added: add.length, removed: remove.length });
  }
  if (item.exposeChildren !== undefined) {
    changes.push({ kind: "settings", _id, name, from: seen.exposeChildren ?? false, to: item.exposeChildren });
  }
  return changes;
}
