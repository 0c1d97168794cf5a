import * as z from "zod";
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
