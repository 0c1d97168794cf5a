import * as z from "zod";
import type { Change, KnownOption, Ref } from "../model/targeting-model.ts";
import { defined } from "../platform/by-key.ts";
import type { Fixed } from "../platform/json.ts";
import { baseLine, type ServiceOption, ulid } from "./base.ts";

/** A value as people see it: a group by its name (null for the top level), Context IDs by their number. */
export const shownValue = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const type = z.enum(["atomic", "collection"]);
/** An option's group: null for the top level, the ID of a group, or the index of the item that creates it. */
const parentRef = z.union([z.null(), z.strictObject({ _id: ulid }), z.strictObject({ item: z.int().min(0) })]);
const texts = z.array(z.string());

const seen = baseLine.omit({ _id: true }).extend({ subOptions: z.int().min(0).optional() });

/** Only in undo plans: whether the item restores the previous state exactly or with differences ("caveat"). */
const undo = z.enum(["exact", "caveat"]).optional();

const item = z.discriminatedUnion("kind", [
  /** Creates an option. Items that create groups come before those that create their sub-options. */
  z.strictObject({
    kind: z.literal("create"),
    undo,
    line: z.int(),
    name: z.string(),
    type,
    parent: parentRef,
    exposeChildren: z.boolean().optional(),
    contexts: texts,
  }),
  /** Changes an option. Absent fields stay as they are. */
  z.strictObject({
    kind: z.literal("change"),
    undo,
    line: z.int(),
    _id: ulid,
    seen,
    name: z.string().optional(),
    parent: parentRef.optional(),
    exposeChildren: z.boolean().optional(),
    /** `after`: the digest of all Context IDs after the change. Absent if the option may also have others. */
    contexts: z.strictObject({ add: texts, remove: texts, after: z.string().optional() }).optional(),
  }),
  /** Deletes an option. `line`: the line of the row that deletes it, if there is one. */
  z.strictObject({ kind: z.literal("delete"), undo, line: z.int().optional(), _id: ulid, seen }),
]);

/** The number of Context IDs, and the first of them: at most 20 in two lists together, and fewer if they are long. */
const someIds = z.object({ count: z.int(), first: texts });

/** A difference between base, file and service (drift or a conflict), or a change since the plan was made. */
export const difference = z.object({
  _id: z.string().optional(),
  name: z.string(),
  /** The field that differs. `deleted` and `added` are about the whole option. */
  field: z.enum(["name", "parent", "type", "exposeChildren", "contexts", "deleted", "added", "subOptions"]),
  base: shownValue.optional(),
  file: shownValue.optional(),
  service: shownValue.optional(),
  planned: shownValue.optional(),
  line: z.int().optional(),
  /** Only for conflicts about Context IDs: those that only the service or only the file has. */
  contextIds: z.object({ onlyService: someIds, onlyFile: someIds }).optional(),
});

/** A limit of the service (management-api 8.1) or of a setting that the plan would exceed. */
export const exceededLimit = z.object({
  limit: z.string(),
  of: z.string(),
  /**
   * `there`: the current number. `wanted`: the number after the plan; for a setting, how many options the plan changes
   * or deletes. `fits`: the maximum.
   */
  there: z.number(),
  wanted: z.number(),
  fits: z.number(),
});

export const fileProblem = z.object({
  line: z.int(),
  column: z.int(),
  lines: z.array(z.int()).optional(),
  message: z.string(),
  remedy: z.string(),
});

const named = { _id: ulid, name: z.string() };

/** A plan: everything that applying a file changes, and what prevents applying it. */
export const statePlan = z.strictObject({
  targeting: z.strictObject({
    _id: ulid.optional(),
    /** The current name of the targeting. If the plan creates the targeting: its name. */
    name: z.string(),
    rename: z.string().optional(),
    /** Only if the plan undoes the creation of the targeting: it is deleted together with its options (the items). */
    delete: z.literal(true).optional(),
  }),
  items: z.array(item),
  adopted: z.array(z.strictObject({ ...named, line: z.int() })),
  drift: z.array(difference),
  conflicts: z.array(difference),
  /** The existing options that the file does not contain. Only filled for plans that match by name and have no base. */
  onlyThere: z.array(z.strictObject(named)),
  limits: z.array(exceededLimit),
  problems: z.array(fileProblem),
  optionsThere: z.int().min(0),
});

export type StatePlan = Fixed<z.infer<typeof statePlan>>;

export type PlannedTargeting = StatePlan["targeting"];

export type PlanItem = StatePlan["items"][number];
export type CreateItem = Extract<PlanItem, { readonly kind: "create" }>;
export type ChangeItem = Extract<PlanItem, { readonly kind: "change" }>;
export type DeleteItem = Extract<PlanItem, { readonly kind: "delete" }>;

export type GroupName = (id: string) => string;

export type ParentRef = CreateItem["parent"];

export type SeenOption = DeleteItem["seen"];

export type ContextsChange = NonNullable<ChangeItem["contexts"]>;

export type Difference = Fixed<z.infer<typeof difference>>;

export type DifferingField = Difference["field"];

export type ShownValue = z.infer<typeof shownValue>;

export type ExceededLimit = Fixed<z.infer<typeof exceededLimit>>;

/** Counts what a plan changes: its items, and the targeting itself if it is created, renamed or deleted. */
export function itemCount({ items, targeting: { _id, rename, delete: isDeleted } }: StatePlan): number {
  return items.length + (_id === undefined || rename !== undefined || isDeleted === true ? 1 : 0);
}

export function isApplicable({ conflicts, limits, problems }: StatePlan): boolean {
  return conflicts.length + limits.length + problems.length === 0;
}

export const NOTHING_PLANNED: Omit<StatePlan, "targeting"> = {
  items: [],
  adopted: [],
  drift: [],
  conflicts: [],
  onlyThere: [],
  limits: [],
  problems: [],
  optionsThere: 0,
};

export const CHANGE_KINDS = ["created", "renamed", "moved", "contexts", "settings", "deleted", "adopted"] as const;
export type ListedChangeKind = (typeof CHANGE_KINDS)[number];

export const listedChange = z.object({
  _id: z.string().optional(),
  /** The current name of the object. If the plan creates it: its name. */
  name: z.string(),
  kind: z.enum(CHANGE_KINDS),
  /** The values before and after: names, names of groups (null for the top level), or values of a setting. */
  from: shownValue.optional(),
  to: shownValue.optional(),
  added: z.int().optional(),
  removed: z.int().optional(),
  isTargeting: z.literal(true).optional(),
});
export type ListedChange = Fixed<z.infer<typeof listedChange>>;

/** Returns all changes of a plan, sorted by kind. `groupName` returns the name of an existing group. */
export function changesOf(plan: StatePlan, groupName: GroupName): readonly ListedChange[] {
  const changes = [...targetingChanges(plan), ...plan.items.flatMap((item) => itemChanges(plan, item, groupName))];
  for (const { _id, name } of plan.adopted) changes.push({ kind: "adopted", _id, name });
  const order = new Map(CHANGE_KINDS.map((kind, place) => [kind, place]));
  return changes.toSorted((one, other) => (order.get(one.kind) ?? 0) - (order.get(other.kind) ?? 0));
}

export function targetingChanges({ targeting: { _id, name, rename, delete: isDeleted } }: StatePlan): ListedChange[] {
  if (isDeleted) return [{ kind: "deleted", _id, name, isTargeting: true }];
  if (_id === undefined) return [{ kind: "created", name, isTargeting: true }];
  return rename === undefined ? [] : [{ kind: "renamed", _id, name, from: name, to: rename, isTargeting: true }];
}

/** Returns the new name of an option that a plan renames. */
export function renamedIn({ items }: Pick<StatePlan, "items">, id: string): string | undefined {
  const group = items.find((item) => item.kind === "change" && item._id === id);
  return group?.kind === "change" ? group.name : undefined;
}

/** Returns the name of an option that a plan creates. */
export function createdIn({ items }: Pick<StatePlan, "items">, item: number): string | undefined {
  const created = items[item];
  return created?.kind === "create" ? created.name : undefined;
}

export function itemChanges(plan: StatePlan, item: PlanItem, groupName: GroupName): readonly ListedChange[] {
  const place = (parent: ParentRef): ShownValue => {
    if (parent === null) return null;
    if ("_id" in parent) return renamedIn(plan, parent._id) ?? groupName(parent._id);
    return createdIn(plan, parent.item) ?? "";
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

export interface Thresholds {
  readonly maxChangePercent: number;
  readonly maxDeletes: number;
}

/** The limit in percent applies only to targetings with at least this many options. */
const LEAST_OPTIONS = 10;

/** Returns the settings whose limits a plan exceeds. Changes and deletions count separately. Creations do not count. */
export function exceededThresholds(
  items: readonly PlanItem[],
  options: number,
  { maxChangePercent, maxDeletes }: Thresholds,
): readonly ExceededLimit[] {
  const changed = items.filter(({ kind }) => kind === "change").length;
  const deleted = items.filter(({ kind }) => kind === "delete").length;
  const fits = Math.floor((maxChangePercent * options) / 100);
  const limits = [
    ["TARGETING_MCP_MAX_DELETES", "deleted options", deleted, maxDeletes, 0],
    ["TARGETING_MCP_MAX_CHANGE_PERCENT", "changed options", changed, fits, LEAST_OPTIONS],
    ["TARGETING_MCP_MAX_CHANGE_PERCENT", "deleted options", deleted, fits, LEAST_OPTIONS],
  ] as const;
  return limits.flatMap(([limit, of, wanted, most, from]) =>
    options < from || wanted <= most ? [] : [{ limit, of, there: options, wanted, fits: most }],
  );
}

/** The prefix of a reference to an option that the plan creates. The index of the creating item follows it. */
const NEW = "new:";

function newRef(item: number): Ref {
  return `${NEW}${item}`;
}

/** Returns the index of the item that creates an option. Undefined for an existing option. */
export function positionOf(ref: Ref): number | undefined {
  return ref.startsWith(NEW) ? Number(ref.slice(NEW.length)) : undefined;
}

/** Returns the reference to the group of an option. Null for the top level. */
export function groupAt(place: ParentRef): Ref | null {
  if (place === null) return null;
  return "_id" in place ? place._id : newRef(place.item);
}

export function changeOf(item: PlanItem, at: number, groupOf = groupAt): Change {
  if (item.kind === "delete") return { kind: "delete", ref: item._id };
  const { name, exposeChildren: expose } = item;
  if (item.kind === "create") {
    const { type, contexts } = item;
    const place = { group: type === "collection", parent: groupOf(item.parent) };
    return { kind: "create", ref: newRef(at), name: item.name, ...place, expose: expose ?? false, contexts };
  }
  const { add, remove } = item.contexts ?? { add: [], remove: [] };
  const parent = item.parent === undefined ? undefined : groupOf(item.parent);
  return { kind: "update", ref: item._id, add, remove, ...defined({ name, parent, expose }) };
}

/** Used in a model of a targeting for options whose Context IDs do not matter. */
export const NO_CONTEXTS: ReadonlySet<string> = new Set();

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
