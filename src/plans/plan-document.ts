import { createHash } from "node:crypto";
import * as z from "zod";
import { isApiError } from "../api/errors.ts";
import { defined } from "../platform/by-key.ts";
import { FileError, undefinedIf } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { type Fixed, jsonPieces, parseJson } from "../platform/json.ts";
import { amount } from "../platform/text.ts";
import type { TargetingMemory } from "../runs/backend.ts";
import { type Base, type ServiceTargeting, ulid } from "./base.ts";
import { type DiffInput, planOf } from "./diff.ts";
import {
  changesOf,
  difference,
  exceededLimit,
  fileProblem,
  isApplicable,
  itemCount,
  type ListedChange,
  listedChange,
  type StatePlan,
  statePlan,
  type Thresholds,
} from "./plan.ts";
import { checkSeenName, whichTargeting } from "./read-targeting.ts";
import { UNDO_LABELS, undoRow } from "./undo-plan.ts";

/** Only in undo plans: what the undo restores, and how far. */
const wayBack = z.strictObject({
  undoes: ulid,
  rows: z.array(undoRow),
  /** The number of objects that need no row, because they already have their previous state. */
  already: z.int().optional(),
  further: z.array(statePlan),
  /** The deleted options that the undo creates again: the indexes of the plan and of the item, and the old ID. */
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
  plan: statePlan,
  groups: z.record(ulid, z.string()),
  wayBack: wayBack.optional(),
  /**
   * Only in a plan that was saved to a file: the relative path of the planned file, whose base is updated after the
   * plan was applied. The digest does not cover this field.
   */
  file: z.string().optional(),
  digest: z.string(),
});

export type PlanDocument = Fixed<z.infer<typeof document>>;

export type PlanOrigin = Pick<PlanDocument, "environment" | "apiUrl" | "fileDigest" | "prune" | "byName">;

export function plansOf({ plan, wayBack }: PlanDocument): readonly StatePlan[] {
  return [plan, ...(wayBack?.further ?? [])];
}

export function planDocument(
  plan: StatePlan,
  origin: PlanOrigin,
  groups: PlanDocument["groups"],
  wayBack?: PlanDocument["wayBack"],
): PlanDocument {
  const content = {
    kind: "targeting-mcp-plan" as const,
    version: 1 as const,
    ...origin,
    plan,
    groups,
    ...defined({ wayBack }),
  };
  return { ...content, digest: digestOfPlan(content) };
}

function digestOfPlan(content: object): string {
  const hash = createHash("sha256");
  for (const piece of jsonPieces(content)) hash.update(piece);
  return hash.digest("hex");
}

/** Returns a plan as pieces of ASCII. When it is read later, ASCII text needs half the memory of other text. */
export function planBytes(document: PlanDocument): ByteSource {
  return async function* () {
    for (const piece of jsonPieces(document)) yield Buffer.from(inAscii(piece), "latin1");
  };
}

function inAscii(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * Parses a plan to check its digest, which covers all fields except `digest` and `file`. Keeps the order of the fields,
 * because the digest depends on it.
 */
const digested = z.looseObject({ digest: z.string(), file: z.string().optional() });

/** Reads a plan. Throws a FileError if it is invalid or was edited after it was made. */
export function readPlan(text: string, path: string): PlanDocument {
  const value = parseJson(text);
  const { digest, file, ...content } = digested.safeParse(value).data ?? {};
  // The digest is checked before the content is validated, so that the memory for both is not needed at the same time.
  const isUnchanged = digestOfPlan(content) === digest;
  const read = document.safeParse(value).data;
  const quoted = JSON.stringify(path);
  if (read === undefined) {
    throw new FileError(`${quoted} is not a plan`, "Write a plan with targeting-mcp plan FILE --out PLAN.");
  }
  if (isUnchanged) return read;
  throw new FileError(`${quoted} was changed after it was planned`, "Plan the file again.");
}

export const planJsonSchema = z.object({
  version: z.literal(1),
  targeting: z.object({ _id: z.string().optional(), name: z.string().optional(), rename: z.string().optional() }),
  changes: z.array(listedChange),
  drift: z.array(difference),
  conflicts: z.array(difference),
  onlyThere: z.array(z.object({ _id: z.string(), name: z.string() })).optional(),
  limits: z.array(exceededLimit),
  problems: z.array(fileProblem),
  /** Only in undo plans: how far each object is restored. */
  wayBack: z.array(z.looseObject({ name: z.string(), undo: z.enum(UNDO_LABELS) })).optional(),
  requests: z.array(z.object({ operation: z.string(), items: z.int(), contextIds: z.int(), bytes: z.int() })),
  digest: z.string().optional(),
  exitCode: z.union([z.literal(0), z.literal(1), z.literal(2)]),
});
export type PlanJson = Fixed<z.input<typeof planJsonSchema>>;

/** Returns the exit code of the command `plan`: 0 without changes, 2 with changes, 1 if the plan cannot be applied. */
export function exitCodeOf(plan: StatePlan): 0 | 1 | 2 {
  if (!isApplicable(plan)) return 1;
  return itemCount(plan) === 0 ? 0 : 2;
}

/** Returns a function that returns the name of a group, or its ID if the plan does not contain its name. */
export function groupNamesOf({ groups }: PlanDocument): (id: string) => string {
  return (id) => groups[id] ?? id;
}

/** Returns the changes of all plans of a document. An undo plan has one for each targeting. */
export function allChangesOf(document: PlanDocument): readonly ListedChange[] {
  return plansOf(document).flatMap((plan) => changesOf(plan, groupNamesOf(document)));
}

/** Returns the output of the command `plan --json`. `requests`: the requests that applying the plan would send. */
export function planJson(document: PlanDocument, requests: PlanJson["requests"]): PlanJson {
  const { plan, digest } = document;
  const exitCode = exitCodeOf(plan);
  const { targeting, drift, conflicts, onlyThere, limits, problems } = plan;
  return {
    version: 1,
    targeting,
    changes: allChangesOf(document),
    drift,
    conflicts,
    ...(onlyThere.length > 0 && { onlyThere }),
    limits,
    problems,
    ...defined({ wayBack: document.wayBack?.rows }),
    requests,
    digest,
    exitCode,
  };
}

export interface PlanRequest extends Pick<DiffInput, "desired" | "prune" | "byName"> {
  readonly fileDigest: string;
  readonly base: Base | undefined;
  readonly targeting: string | undefined;
}

export interface PlanScene extends Pick<PlanOrigin, "environment" | "apiUrl"> {
  readonly memory: Pick<TargetingMemory, "resolve">;
  readonly thresholds: Thresholds;
  readonly read: (targetingId: string) => Promise<ServiceTargeting>;
}

/** A new plan, and the targeting as it was read for it. `there` is undefined if the plan creates the targeting. */
export interface MadePlan {
  readonly document: PlanDocument;
  readonly there: ServiceTargeting | undefined;
}

/** Plans a file. Throws the errors of `read`, and a FileError for an unclear targeting or `prune` without a base. */
export async function makePlan(asked: PlanRequest, scene: PlanScene): Promise<MadePlan> {
  const { desired, fileDigest, base, targeting, prune, byName } = asked;
  const { memory, thresholds, environment, apiUrl } = scene;
  if (prune && base === undefined) {
    throw new FileError(
      "prune deletes the options that are in the base but not in the file, and this targeting has no base",
      "Export the targeting first: list_options with saveTo writes its base, NAME.base.ndjson. Then give that file with the argument base. Without files, leave prune out and delete the unwanted options with delete_options.",
    );
  }
  const hints = { given: targeting, file: desired.targeting, base, byName };
  const targetingId = await whichTargeting({ ...hints, memory });
  const there = targetingId === undefined ? undefined : await scene.read(targetingId);
  if (there !== undefined) checkSeenName(hints, there);
  const compared = planOf({ desired, base, there, prune, byName, thresholds });
  const source = byName && desired.targeting?._id !== targetingId ? desired.targeting?._id : undefined;
  const held = source === undefined ? [] : await heldInSource(source, compared, there, scene);
  const plan = { ...compared, problems: [...compared.problems, ...held] };
  return {
    document: planDocument(plan, { environment, apiUrl, fileDigest, prune, byName }, groupsIn(there?.options)),
    there,
  };
}

/**
 * Returns a problem for each group that would get a Context ID of a group in `sourceId`, the targeting that the file
 * describes. Two groups of a project cannot have the same Context ID (management-api 7.2). Empty if that targeting
 * cannot be read.
 */
async function heldInSource(
  sourceId: string,
  { items }: StatePlan,
  there: ServiceTargeting | undefined,
  { read }: Pick<PlanScene, "read">,
): Promise<StatePlan["problems"]> {
  const groups = new Map(there?.options.flatMap(({ _id, name, type }) => (type === "collection" ? [[_id, name]] : [])));
  const given = items.flatMap((item) => {
    if (item.kind === "create" && item.type === "collection") return [{ ...item, add: item.contexts }];
    const name = item.kind === "change" ? groups.get(item._id) : undefined;
    return item.kind === "change" && name !== undefined
      ? [{ line: item.line, name, add: item.contexts?.add ?? [] }]
      : [];
  });
  if (given.every(({ add }) => add.length === 0)) return [];
  const source = await undefinedIf(isApiError, read(sourceId));
  const owners = new Map<string, string>();
  for (const { type, name, contexts } of source?.options ?? []) {
    if (type === "collection") for (const id of contexts) owners.set(id, name);
  }
  return given.flatMap(({ line, name, add }) => {
    const held = add.filter((id) => owners.has(id));
    const [first] = held;
    if (first === undefined) return [];
    const more = held.length === 1 ? "" : ` and ${amount(held.length - 1, "more Context ID")}`;
    const holder = `the group ${JSON.stringify(owners.get(first))} of the targeting ${JSON.stringify(source?.targeting.name)}`;
    return {
      ...{ line, column: 1 },
      message: `the group ${JSON.stringify(name)} would get ${JSON.stringify(first)}${more}, which ${holder} already holds (TARGETING_COLLECTION_CONTEXT_DUPLICATED)`,
      remedy:
        "Two groups cannot hold the same Context ID: remove it from this group in the file, or remove it from the other group first, with update_contexts.",
    };
  });
}

export function groupsIn(options: Iterable<NamedOption> = []): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...options].flatMap(({ _id, name, type }) => (type === "collection" ? [[_id, name]] : [])),
  );
}

type NamedOption = Pick<ServiceTargeting["options"][number], "_id" | "name" | "type">;
