import { createHash } from "node:crypto";
import * as z from "zod";
import type { ByteSource } from "../platform/bytes.ts";
import { jsonPieces } from "../platform/json.ts";
import { CHANGE_KINDS, changesOf } from "./diff/changes.ts";
import { isApplicable, itemCount, type StatePlan } from "./diff/plan.ts";
import { UNDO_LABELS, type UndoRow } from "./undo/way-back.ts";

/** The service, targeting and file of a plan; all of it is compared when it is applied. */
export interface PlanOrigin {
  readonly environment: "live" | "sandbox";
  /** Base address of the management API. */
  readonly apiUrl: string;
  /** SHA-256 of the file, in hexadecimal digits. */
  readonly fileDigest: string;
  readonly prune: boolean;
  readonly byName: boolean;
}

/** A plan as it travels from the one who made it to the one who applies it. */
export interface PlanDocument extends PlanOrigin {
  readonly kind: "targeting-mcp-plan";
  readonly version: 1;
  /** SHA-256 over everything else, in hexadecimal digits: what was reviewed is what is applied. */
  readonly digest: string;
  readonly plan: StatePlan;
  /** The names of the targeting's groups at planning time, by ID. */
  readonly groups: Readonly<Record<string, string>>;
  /** Of a way back: what it undoes, and what becomes of each object. */
  readonly wayBack?: PlannedWayBack | undefined;
  /**
   * Of a plan in a file: the path from there to the planned file whose base is renewed. No part of the digest, since what
   * is applied is the same wherever the files lie.
   */
  readonly file?: string | undefined;
}

/** The way back from a run, in a plan. */
export interface PlannedWayBack {
  /** The run that is undone. */
  readonly undoes: string;
  readonly rows: readonly UndoRow[];
  /** The plans of further targetings, where the run changed several. */
  readonly further: readonly StatePlan[];
  /** Which created option stands for which deleted one: the position of its targeting and of its item. */
  readonly standsFor: readonly { readonly targeting: number; readonly item: number; readonly _id: string }[];
}

/** The plans of all targetings of a document. */
export function plansOf({ plan, wayBack }: PlanDocument): readonly StatePlan[] {
  return [plan, ...(wayBack?.further ?? [])];
}

/** Puts a plan and its origin together, with the digest of both. */
export function planDocument(
  plan: StatePlan,
  origin: PlanOrigin,
  groups: PlanDocument["groups"],
  wayBack?: PlannedWayBack,
): PlanDocument {
  const about = { kind: "targeting-mcp-plan" as const, version: 1 as const, ...origin };
  const content = { ...about, plan, groups, ...(wayBack !== undefined && { wayBack }) };
  return { ...content, digest: digestOfPlan(content) };
}

/** The digest of everything in a plan's document besides it. */
export function digestOfPlan(content: object): string {
  const hash = createHash("sha256");
  for (const piece of jsonPieces(content)) hash.update(piece);
  return hash.digest("hex");
}

/** A plan as it is kept, in pieces: in ASCII alone, which takes half the memory where it is read again. */
export function planBytes(document: PlanDocument): ByteSource {
  return async function* () {
    for (const piece of jsonPieces(document)) yield Buffer.from(inAscii(piece), "latin1");
  };
}

function inAscii(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** How a command ends. */
export type PlanExitCode = 0 | 1 | 2;

const told = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const about = { _id: z.string().optional(), name: z.string() };
/** What differs between the sides, as it is written. */
export const difference = z.object({
  ...about,
  field: z.enum(["name", "parent", "type", "exposeChildren", "contexts", "deleted", "added", "subOptions"]),
  base: told.optional(),
  file: told.optional(),
  service: told.optional(),
  planned: told.optional(),
  line: z.int().optional(),
});

/** A limit that would be exceeded, as it is written. */
export const exceededLimit = z.object({
  limit: z.string(),
  of: z.string(),
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

/** What `plan --json` prints: all of a plan that a program may look at. */
export const planJsonSchema = z.object({
  version: z.literal(1),
  targeting: z.object({ _id: z.string().optional(), name: z.string().optional(), rename: z.string().optional() }),
  changes: z.array(
    z.object({
      ...about,
      kind: z.enum(CHANGE_KINDS),
      from: told.optional(),
      to: told.optional(),
      added: z.int().optional(),
      removed: z.int().optional(),
      isTargeting: z.literal(true).optional(),
    }),
  ),
  drift: z.array(difference),
  conflicts: z.array(difference),
  onlyThere: z.array(z.object({ _id: z.string(), name: z.string() })).optional(),
  limits: z.array(exceededLimit),
  problems: z.array(fileProblem),
  /** Of a way back: what becomes of each object of the undone run. */
  wayBack: z.array(z.looseObject({ name: z.string(), undo: z.enum(UNDO_LABELS) })).optional(),
  requests: z.array(z.object({ operation: z.string(), items: z.int(), contextIds: z.int(), bytes: z.int() })),
  digest: z.string().optional(),
  exitCode: z.union([z.literal(0), z.literal(1), z.literal(2)]),
});
export type PlanJson = z.input<typeof planJsonSchema>;

/** The exit code of the command that shows a plan: 0 nothing to do, 2 changes, 1 where it cannot be applied. */
export function exitCodeOf(plan: StatePlan): PlanExitCode {
  if (!isApplicable(plan)) return 1;
  return itemCount(plan) === 0 ? 0 : 2;
}

/** The name of a group of a plan's targeting, or its ID where the plan does not know it. */
export function groupNamesOf({ groups }: PlanDocument): (id: string) => string {
  return (id) => groups[id] ?? id;
}

/** A plan as `--json` prints it; `requests` are those that would go out. */
export function planJson(document: PlanDocument, requests: readonly PlanJson["requests"][number][]): PlanJson {
  const { plan, digest } = document;
  const exitCode = exitCodeOf(plan);
  const groupName = groupNamesOf(document);
  const { targeting, drift, conflicts, onlyThere, limits, problems } = plan;
  return {
    version: 1,
    targeting,
    changes: plansOf(document).flatMap((one) => changesOf(one, groupName)),
    drift: [...drift],
    conflicts: [...conflicts],
    ...(onlyThere.length > 0 && { onlyThere: [...onlyThere] }),
    limits: [...limits],
    problems: problems.map((problem) => ({ ...problem, lines: problem.lines && [...problem.lines] })),
    ...(document.wayBack !== undefined && { wayBack: document.wayBack.rows.map((row) => ({ ...row })) }),
    requests: [...requests],
    digest,
    exitCode,
  };
}
