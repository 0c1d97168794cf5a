import * as z from "zod";
import type { Fixed } from "../../platform/json.ts";
import { isUlid } from "../../spec/ulid.ts";

export const ulid = z.string().refine(isUlid);
/** The value of a field as it is shown: of parents the name (null: top level), of Context IDs their number. */
export const shownValue = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const type = z.enum(["atomic", "collection"]);
/** Where an option will be: null for the top level, a group that is there, or one that the plan creates (its item). */
const parentRef = z.union([z.null(), z.strictObject({ _id: ulid }), z.strictObject({ item: z.int().min(0) })]);
const texts = z.array(z.string());

/** An option as the plan saw it, so that a later look shows whether it has changed. */
const seen = z.strictObject({
  name: z.string(),
  parent: ulid.nullable(),
  type,
  exposeChildren: z.boolean().optional(),
  /** How many Context IDs, and the digest of them. */
  contexts: z.int().min(0),
  digest: z.string(),
  /** Of groups: how many sub-options. */
  subOptions: z.int().min(0).optional(),
});

/** How well an item of a way back brings back what was. Absent in the plan of a desired state. */
const undo = z.enum(["exact", "caveat"]).optional();

const item = z.discriminatedUnion("kind", [
  /** An option that is created. A group stands before the options that go into it. */
  z.strictObject({
    kind: z.literal("create"),
    undo,
    /** The line of the file. */
    line: z.int(),
    name: z.string(),
    type,
    parent: parentRef,
    exposeChildren: z.boolean().optional(),
    contexts: texts,
  }),
  /** An option that changes; fields that stay are absent. */
  z.strictObject({
    kind: z.literal("change"),
    undo,
    line: z.int(),
    _id: ulid,
    seen,
    name: z.string().optional(),
    parent: parentRef.optional(),
    exposeChildren: z.boolean().optional(),
    /** `after` is the digest of the result; absent where the added ones are only to be there. */
    contexts: z.strictObject({ add: texts, remove: texts, after: z.string().optional() }).optional(),
  }),
  /** An option that is deleted, since it stood in the base and is gone from the file. */
  z.strictObject({ kind: z.literal("delete"), undo, _id: ulid, seen }),
]);

/** What differs between the sides of a plan: what others changed, what both changed, or what no longer fits. */
export const difference = z.object({
  _id: z.string().optional(),
  name: z.string(),
  /** `deleted` and `added` are about the option as a whole. */
  field: z.enum(["name", "parent", "type", "exposeChildren", "contexts", "deleted", "added", "subOptions"]),
  base: shownValue.optional(),
  file: shownValue.optional(),
  service: shownValue.optional(),
  planned: shownValue.optional(),
  /** The line of the file that speaks of it. */
  line: z.int().optional(),
});

/** A limit that the plan would exceed: of the service (management-api 8.1), or a setting. */
export const exceededLimit = z.object({
  limit: z.string(),
  /** What the limit is about: an option, a targeting, the project. */
  of: z.string(),
  /** How much is there, how much it would be, and how much fits. */
  there: z.number(),
  wanted: z.number(),
  fits: z.number(),
});

/** A problem of a file, as it is written. */
export const fileProblem = z.object({
  line: z.int(),
  column: z.int(),
  lines: z.array(z.int()).optional(),
  message: z.string(),
  remedy: z.string(),
});

const named = { _id: ulid, name: z.string() };

/** What applying a file would do, as it is written. */
export const statePlan = z.strictObject({
  targeting: z.strictObject({
    /** Absent where the plan creates it. */
    _id: ulid.optional(),
    /** Its name now, or the one that it gets when it is created. */
    name: z.string(),
    /** Another name that it gets. */
    rename: z.string().optional(),
    /** It is deleted with all its options, which are the items then: the undone run created it. */
    delete: z.literal(true).optional(),
  }),
  items: z.array(item),
  /** Options that are there under the name of a row without `_id`. */
  adopted: z.array(z.strictObject({ ...named, line: z.int() })),
  drift: z.array(difference),
  conflicts: z.array(difference),
  /** By name, without a base: what only the targeting has. */
  onlyThere: z.array(z.strictObject(named)),
  limits: z.array(exceededLimit),
  problems: z.array(fileProblem),
  /** How many options the targeting had at planning time. */
  optionsThere: z.int().min(0),
});

/** What applying a file would do, as plain data. */
export type StatePlan = Fixed<z.infer<typeof statePlan>>;

/** The targeting of a plan. */
export type PlannedTargeting = StatePlan["targeting"];

/** One object that would be created, changed or deleted. */
export type PlanItem = StatePlan["items"][number];
export type CreateItem = Extract<PlanItem, { readonly kind: "create" }>;
export type ChangeItem = Extract<PlanItem, { readonly kind: "change" }>;
export type DeleteItem = Extract<PlanItem, { readonly kind: "delete" }>;

/** Where an option will be. */
export type ParentRef = CreateItem["parent"];

/** An option as the plan saw it. */
export type SeenOption = DeleteItem["seen"];

/** How an option's Context IDs change. */
export type ContextsChange = NonNullable<ChangeItem["contexts"]>;

/** What differs between the sides of a plan. */
export type Difference = Fixed<z.infer<typeof difference>>;

/** A field in which the sides differ. */
export type DifferingField = Difference["field"];

/** The value of a field as it is shown. */
export type ShownValue = z.infer<typeof shownValue>;

/** A limit that the plan would exceed. */
export type ExceededLimit = Fixed<z.infer<typeof exceededLimit>>;

/** How many objects a plan changes; the targeting itself counts where it is created or renamed. */
export function itemCount({ items, targeting }: StatePlan): number {
  return items.length + (isChanged(targeting) ? 1 : 0);
}

function isChanged({ _id, rename, delete: isDeleted }: PlannedTargeting): boolean {
  return _id === undefined || rename !== undefined || isDeleted === true;
}

/** Whether a plan may be applied as far as it can tell itself. */
export function isApplicable({ conflicts, limits, problems }: StatePlan): boolean {
  return conflicts.length + limits.length + problems.length === 0;
}

/** A plan without anything in it, but for its targeting. */
export const NOTHING_PLANNED: Omit<StatePlan, "targeting"> = {
  ...{ items: [], adopted: [], drift: [], conflicts: [], onlyThere: [], limits: [], problems: [], optionsThere: 0 },
};

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

/** Settings that limit what a plan may change. */
export interface Thresholds {
  /** Of a targeting's options that a plan may change, and that it may delete: percent, from 10 options up. */
  readonly maxChangePercent: number;
  readonly maxDeletes: number;
}

/** Percentages are checked from this number of options. */
const LEAST_OPTIONS = 10;

/** The settings that a plan exceeds. Creations do not count; deletions and changes each by themselves. */
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
