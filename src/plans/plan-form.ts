import * as z from "zod";
import { FileError } from "../platform/file-error.ts";
import { parseJson } from "../platform/json.ts";
import { isUlid } from "../spec/ulid.ts";
import type { StatePlan } from "./diff/plan.ts";
import { difference, digestOfPlan, exceededLimit, fileProblem, type PlanDocument } from "./plan-document.ts";
import { UNDO_LABELS, UNDO_REASONS } from "./undo/way-back.ts";

const ulid = z.string().refine(isUlid);
const type = z.enum(["atomic", "collection"]);
const parentRef = z.union([z.null(), z.strictObject({ _id: ulid }), z.strictObject({ item: z.int().min(0) })]);
const texts = z.array(z.string());
const seen = z.strictObject({
  name: z.string(),
  parent: ulid.nullable(),
  type,
  exposeChildren: z.boolean().optional(),
  contexts: z.int().min(0),
  digest: z.string(),
  subOptions: z.int().min(0).optional(),
});

const undo = z.enum(["exact", "caveat"]).optional();

const item = z.discriminatedUnion("kind", [
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
  z.strictObject({
    kind: z.literal("change"),
    undo,
    line: z.int(),
    _id: ulid,
    seen,
    name: z.string().optional(),
    parent: parentRef.optional(),
    exposeChildren: z.boolean().optional(),
    contexts: z.strictObject({ add: texts, remove: texts, after: z.string().optional() }).optional(),
  }),
  z.strictObject({ kind: z.literal("delete"), undo, _id: ulid, seen }),
]);

const named = { _id: ulid, name: z.string() };

const plan: z.ZodType<StatePlan> = z.strictObject({
  targeting: z.strictObject({
    _id: ulid.optional(),
    name: z.string(),
    rename: z.string().optional(),
    delete: z.literal(true).optional(),
  }),
  items: z.array(item),
  adopted: z.array(z.strictObject({ ...named, line: z.int() })),
  drift: z.array(difference),
  conflicts: z.array(difference),
  onlyThere: z.array(z.strictObject(named)),
  limits: z.array(exceededLimit),
  problems: z.array(fileProblem),
  optionsThere: z.int().min(0),
});

const undoRow = z.strictObject({
  targeting: ulid.optional(),
  _id: ulid.optional(),
  name: z.string(),
  undo: z.enum(UNDO_LABELS),
  reasons: z.array(z.enum(UNDO_REASONS)).optional(),
  field: difference.shape.field.optional(),
  left: difference.shape.base,
  now: difference.shape.base,
  contextIds: z.int().optional(),
  at: z.strictObject({ targeting: z.int(), item: z.int() }).optional(),
});

const wayBack = z.strictObject({
  undoes: ulid,
  rows: z.array(undoRow),
  further: z.array(plan),
  standsFor: z.array(z.strictObject({ targeting: z.int(), item: z.int(), _id: ulid })),
});

const document = z.strictObject({
  kind: z.literal("targeting-mcp-plan"),
  version: z.literal(1),
  environment: z.enum(["live", "sandbox"]),
  apiUrl: z.string(),
  fileDigest: z.string(),
  prune: z.boolean(),
  byName: z.boolean(),
  plan,
  groups: z.record(ulid, z.string()),
  wayBack: wayBack.optional(),
  file: z.string().optional(),
  digest: z.string(),
});

/** What is looked at first: the rest keeps the order in which it was written. */
const digested = z.looseObject({ digest: z.string(), file: z.string().optional() });

/** Reads a plan that `plan --out` wrote. Throws a FileError where it is none, or was changed since. */
export function readPlan(text: string, path: string): PlanDocument {
  const value = parseJson(text);
  const { digest, file, ...content } = digested.safeParse(value).data ?? {};
  // Before the plan is made of the value, so that they take memory one after the other.
  const isUnchanged = digestOfPlan(content) === digest;
  const read = document.safeParse(value).data;
  if (read === undefined) {
    throw new FileError(`${JSON.stringify(path)} is no plan`, "targeting-mcp plan FILE --out writes one.");
  }
  if (isUnchanged) return read;
  throw new FileError(`${JSON.stringify(path)} was changed after it was planned`, "Plan the file again.");
}
