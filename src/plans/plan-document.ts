import { createHash } from "node:crypto";
import * as z from "zod";
import { FileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { type Fixed, jsonPieces, parseJson } from "../platform/json.ts";
import type { TargetingMemory } from "../runs/backend.ts";
import type { Base, ServiceTargeting } from "./base.ts";
import { type DiffInput, planOf } from "./diff/diff.ts";
import {
  changesOf,
  difference,
  exceededLimit,
  fileProblem,
  isApplicable,
  itemCount,
  listedChange,
  type StatePlan,
  statePlan,
  type Thresholds,
  ulid,
} from "./diff/plan.ts";
import { whichTargeting } from "./read-targeting.ts";
import { UNDO_LABELS, undoRow } from "./way-back.ts";

/** The way back from a run, in a plan. */
const wayBack = z.strictObject({
  /** The run that is undone. */
  undoes: ulid,
  /** What becomes of each object. */
  rows: z.array(undoRow),
  /** The plans of further targetings, where the run changed several. */
  further: z.array(statePlan),
  /** Which created option stands for which deleted one: the position of its targeting and of its item. */
  standsFor: z.array(z.strictObject({ targeting: z.int(), item: z.int(), _id: ulid })),
});

const document = z.strictObject({
  kind: z.literal("targeting-mcp-plan"),
  version: z.literal(1),
  environment: z.enum(["live", "sandbox"]),
  /** Base address of the management API. */
  apiUrl: z.string(),
  /** SHA-256 of the file, in hexadecimal digits. */
  fileDigest: z.string(),
  prune: z.boolean(),
  byName: z.boolean(),
  plan: statePlan,
  /** The names of the targeting's groups at planning time, by ID. */
  groups: z.record(ulid, z.string()),
  wayBack: wayBack.optional(),
  /**
   * Of a plan in a file: the path from there to the planned file whose base is renewed. No part of the digest, since what
   * is applied is the same wherever the files lie.
   */
  file: z.string().optional(),
  /** SHA-256 over everything else, in hexadecimal digits: what was reviewed is what is applied. */
  digest: z.string(),
});

/** A plan as it travels from the one who made it to the one who applies it. */
export type PlanDocument = Fixed<z.infer<typeof document>>;

/** The service, targeting and file of a plan; all of it is compared when it is applied. */
export type PlanOrigin = Pick<PlanDocument, "environment" | "apiUrl" | "fileDigest" | "prune" | "byName">;

/** The plans of all targetings of a document. */
export function plansOf({ plan, wayBack }: PlanDocument): readonly StatePlan[] {
  return [plan, ...(wayBack?.further ?? [])];
}

/** Puts a plan and its origin together, with the digest of both. */
export function planDocument(
  plan: StatePlan,
  origin: PlanOrigin,
  groups: PlanDocument["groups"],
  wayBack?: PlanDocument["wayBack"],
): PlanDocument {
  const about = { kind: "targeting-mcp-plan" as const, version: 1 as const, ...origin };
  const content = { ...about, plan, groups, ...(wayBack !== undefined && { wayBack }) };
  return { ...content, digest: digestOfPlan(content) };
}

/** The digest of everything in a plan's document besides it. */
function digestOfPlan(content: object): string {
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

/** How a command ends. */
export type PlanExitCode = 0 | 1 | 2;

/** What `plan --json` prints: all of a plan that a program may look at. */
export const planJsonSchema = z.object({
  version: z.literal(1),
  targeting: z.object({ _id: z.string().optional(), name: z.string().optional(), rename: z.string().optional() }),
  changes: z.array(listedChange),
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
export type PlanJson = Fixed<z.input<typeof planJsonSchema>>;

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
export function planJson(document: PlanDocument, requests: PlanJson["requests"]): PlanJson {
  const { plan, digest } = document;
  const exitCode = exitCodeOf(plan);
  const groupName = groupNamesOf(document);
  const { targeting, drift, conflicts, onlyThere, limits, problems } = plan;
  return {
    version: 1,
    targeting,
    changes: plansOf(document).flatMap((one) => changesOf(one, groupName)),
    drift,
    conflicts,
    ...(onlyThere.length > 0 && { onlyThere }),
    limits,
    problems,
    ...(document.wayBack !== undefined && { wayBack: document.wayBack.rows }),
    requests,
    digest,
    exitCode,
  };
}

/** What a plan is asked for. */
export interface PlanRequest extends Pick<DiffInput, "desired" | "prune" | "byName"> {
  /** SHA-256 of the file, in hexadecimal digits. */
  readonly fileDigest: string;
  readonly base: Base | undefined;
  /** The targeting that the caller names, by ID or name. */
  readonly targeting: string | undefined;
}

/** The service that a plan is made for, and what may be changed there. */
export interface PlanScene extends Pick<PlanOrigin, "environment" | "apiUrl"> {
  readonly memory: Pick<TargetingMemory, "resolve">;
  readonly thresholds: Thresholds;
  /** Reads a targeting as a whole. */
  readonly read: (targetingId: string) => Promise<ServiceTargeting>;
}

/** A plan, and the targeting as it was when it was made; undefined where the plan creates it. */
export interface MadePlan {
  readonly document: PlanDocument;
  readonly there: ServiceTargeting | undefined;
}

/**
 * Plans a desired state. Throws a FileError where the targeting is not said or unknown, and where `prune` has no base;
 * and what `read` throws.
 */
export async function makePlan(asked: PlanRequest, scene: PlanScene): Promise<MadePlan> {
  const { desired, fileDigest, base, targeting, prune, byName } = asked;
  const { memory, thresholds, environment, apiUrl } = scene;
  if (prune && base === undefined) {
    throw new FileError(
      "prune deletes what stood in the base and is gone from the file, and there is no base",
      "Export the targeting into a file, which writes the base beside it, or name the base.",
    );
  }
  const targetingId = await whichTargeting({ given: targeting, file: desired.targeting, base, byName, memory });
  const there = targetingId === undefined ? undefined : await scene.read(targetingId);
  const plan = planOf({ desired, base, there, prune, byName, thresholds });
  return { document: planDocument(plan, { environment, apiUrl, fileDigest, prune, byName }, groupsIn(there)), there };
}

/** The names of the groups of a targeting, by ID. */
function groupsIn(there: ServiceTargeting | undefined): Readonly<Record<string, string>> {
  const groups = there?.options.filter(({ type }) => type === "collection") ?? [];
  return Object.fromEntries(groups.map(({ _id, name }) => [_id, name]));
}
