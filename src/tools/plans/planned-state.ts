import { dirname } from "node:path";
import type { ManagementApi } from "../../api/management.ts";
import type { ChangeHeader } from "../../changes/changes.ts";
import type { KeptPlan } from "../../changes/kept-plan.ts";
import { findFile, findFileIfThere, type Place } from "../../files/folders.ts";
import { type Base, basePathOf, readBase } from "../../plans/base/base.ts";
import type { ServiceTargeting } from "../../plans/base/service-targeting.ts";
import { NOTHING_PLANNED, type PlanItem } from "../../plans/diff/plan.ts";
import { jsonPathAt } from "../../plans/file/forms/json-path.ts";
import { formatToRead, type ReadDesired, readDesired } from "../../plans/file/read-desired.ts";
import { textOf } from "../../plans/look-again.ts";
import { type MadePlan, makePlan } from "../../plans/make-plan.ts";
import { planBytes, planDocument } from "../../plans/plan-document.ts";
import { asPlanned } from "../../plans/planned-changes.ts";
import { readTargeting } from "../../plans/read-targeting.ts";
import { whichTargeting } from "../../plans/which-targeting.ts";
import { bytesAt, wholeOf } from "../../platform/bytes.ts";
import { FileError } from "../../platform/file-error.ts";
import { nearNote } from "../../render/changes/headline.ts";
import { problemsAnswer } from "../../render/plans/problems-answer.ts";
import { RunStoreError } from "../../runs/backend/store.ts";
import { nearContextIds } from "../../spec/context-ids.ts";
import { changesOf } from "../apis.ts";
import type { ToolContext } from "../context.ts";
import { type ToolAnswer, ToolError } from "../definition.ts";
import { type FileArguments, sheetArguments } from "../input-file.ts";
import { readableDirs } from "../readable-dirs.ts";
import { fileWithinWait } from "../within-wait.ts";
import { toldPlan } from "./kept-plan.ts";
import { madeInTime } from "./made-in-time.ts";
import { readNotes } from "./read-notes.ts";

/** The arguments of `plan_targeting`. */
export interface DesiredArguments extends FileArguments {
  readonly desired?: Readonly<Record<string, unknown>> | undefined;
  readonly targetingId?: string | undefined;
  readonly base?: string | undefined;
  readonly prune?: boolean | undefined;
  readonly byName?: boolean | undefined;
  readonly fresh?: boolean | undefined;
}

/**
 * Plans a desired state, keeps the plan as a run, `earlier` where that was not made before, and answers it, or the run
 * where planning takes longer than the call may.
 */
export async function planDesiredState(
  given: DesiredArguments,
  context: ToolContext,
  earlier?: ChangeHeader,
): Promise<ToolAnswer> {
  const { prune = false, byName = false } = given;
  const { desired, problems, digest, file, bytes, columns } = await fileWithinWait(context, readGiven(given, context));
  const notes = readNotes({ file, columns, desired });
  const sheet = file &&
    bytes && {
      file,
      bytes: async function* () {
        yield bytes;
      },
    };
  if (problems.length > 0) {
    const runId = sheet && (await keptProblems(given, { desired, problems, digest }, sheet, context, earlier));
    return withNotes(problemsAnswer(context.environment, problems, runId), notes);
  }
  const { base, place } = await fileWithinWait(context, baseOf(given, context));
  const api = changesOf(context).api();
  const { memory } = context;
  const targeting = given.targetingId || undefined;
  const targetingId = await whichTargeting({ given: targeting, file: desired.targeting, base, byName, memory });
  // A base that is named goes with another file, or none.
  // The roots of a client are read, and never written to.
  const isKept = place !== undefined && !given.base && context.allowedDirs.length > 0;
  const beside = isKept ? { root: place.root, steps: place.steps } : undefined;
  return madeInTime<MadePlan>(
    {
      ...{ plannedBy: "plan_targeting", base: beside, sheet, from: { given, fileDigest: digest } },
      targetings: targetingId === undefined ? [] : [targetingId],
      make: (signal) =>
        makePlan(
          { desired, fileDigest: digest, base, targeting, prune, byName },
          {
            ...{ environment: context.environment, apiUrl: context.apiUrl, memory },
            thresholds: { maxChangePercent: context.maxChangePercent, maxDeletes: context.maxDeletes },
            read: (id) => readRemembering(api, id, signal, context, given.fresh),
          },
        ),
      textOf: ({ document, there }) => ({ changes: asPlanned(document.plan, there), text: planBytes(document) }),
      async answer({ document, there }) {
        const { caller } = context;
        // The base is renewed when the run ends that apply_plan starts.
        const kept = { text: planBytes(document), plannedBy: "plan_targeting", base: beside, sheet, caller } as const;
        const { header, plan } = await changesOf(context).keepPlan(asPlanned(document.plan, there), kept, earlier);
        return withNotes(toldPlan(document, header, plan, context), [
          ...notes,
          ...nearNotes(document.plan.items, there),
        ]);
      },
    },
    context,
    earlier,
  );
}

/** Reads a targeting as a whole, unless `fresh` without the Context IDs that were kept, and remembers its name. */
async function readRemembering(
  api: ManagementApi,
  targetingId: string,
  signal: AbortSignal,
  { memory, contents: store }: Pick<ToolContext, "memory" | "contents">,
  fresh?: boolean,
): Promise<ServiceTargeting> {
  const there = await readTargeting(api, targetingId, { signal, store, fresh });
  await memory.remember([there.targeting]);
  return there;
}

async function readGiven(
  given: DesiredArguments,
  context: Pick<ToolContext, "allowedDirs" | "roots" | "maxLineBytes">,
): Promise<ReadDesired & { readonly bytes?: Uint8Array }> {
  const { file, desired } = given;
  const { maxLineBytes } = context;
  if (file && desired !== undefined) throw new ToolError("file and desired were both given", "Give one of the two.");
  if (file) {
    const format = formatToRead(file);
    const place = await findFile(file, await readableDirs(context));
    const bytes = await wholeOf(bytesAt(place));
    const sheet = sheetArguments(given);
    const read = await readDesired({ bytes, path: file, sheet, format, folder: dirname(place.path), maxLineBytes });
    return { ...read, bytes };
  }
  if (desired === undefined)
    throw new ToolError("neither file nor desired was given", "Give the desired state as a file, or as desired.");
  const text = JSON.stringify(desired);
  const read = await readDesired({ bytes: Buffer.from(text), format: "json", folder: undefined });
  // What stands in a call has no lines.
  const options = read.desired.options.map(withoutLine);
  const problems = read.problems.map((problem) => ({
    ...problem,
    path: jsonPathAt(text, problem.column - 1) || "the state",
  }));
  return { ...read, desired: { ...read.desired, options }, problems };
}

/** What is added beside a Context ID of the option that differs only in case, width or composition. */
function nearNotes(items: readonly PlanItem[], there: ServiceTargeting | undefined): readonly string[] {
  const held = new Map(there?.options.map(({ _id, contexts }) => [_id, contexts]));
  const near = items.flatMap((item) =>
    item.kind === "change" && item.contexts !== undefined
      ? nearContextIds(item.contexts.add, held.get(item._id) ?? [])
      : [],
  );
  return nearNote(near.length === 0 ? {} : { nearIds: { count: near.length, first: near.slice(0, MOST_NEAR) } });
}

const MOST_NEAR = 3;

/**
 * Keeps a sheet that has problems as a plan of nothing, so that it can be given back with them; gives its run, undefined
 * where its targeting is not known or nothing can be stored now.
 */
async function keptProblems(
  { targetingId: given, byName = false, prune = false }: DesiredArguments,
  { desired, problems, digest }: Pick<ReadDesired, "desired" | "problems" | "digest">,
  sheet: NonNullable<KeptPlan["sheet"]>,
  context: ToolContext,
  earlier: ChangeHeader | undefined,
): Promise<string | undefined> {
  const { memory, environment, apiUrl, caller } = context;
  try {
    const targeting = given || undefined;
    const _id = await whichTargeting({ given: targeting, file: desired.targeting, base: undefined, byName, memory });
    if (_id === undefined) return undefined;
    const plan = { targeting: { _id, name: desired.targeting?.name ?? "" }, ...NOTHING_PLANNED, problems };
    const document = planDocument(plan, { environment, apiUrl, fileDigest: digest, prune, byName }, {});
    const kept = { text: planBytes(document), plannedBy: "plan_targeting", sheet, caller } as const;
    return (await changesOf(context).keepPlan(asPlanned(plan, undefined), kept, earlier)).header.runId;
  } catch (thrown) {
    if (thrown instanceof FileError || thrown instanceof RunStoreError) return undefined;
    throw thrown;
  }
}

/** An answer that also says how the file was read, behind its first line. */
function withNotes(answer: ToolAnswer, notes: readonly string[]): ToolAnswer {
  if (notes.length === 0) return answer;
  const { structured, text } = answer;
  const [first = "", ...rest] = text.split("\n");
  const lines = [first, ...notes.map((note) => `Note: ${note}.`), ...rest];
  return { ...answer, structured: { ...structured, notes }, text: lines.join("\n") };
}

function withoutLine<Row extends { readonly line: number }>(row: Row): Row {
  return { ...row, line: 0 };
}

/** The base that is named, else the one beside the file; by names, that is the base of another targeting. */
async function baseOf(
  { file, base, byName }: DesiredArguments,
  context: Pick<ToolContext, "allowedDirs" | "roots">,
): Promise<{ readonly base?: Base; readonly place?: Place }> {
  const path = base || (file && !byName ? basePathOf(file) : undefined);
  if (path === undefined) return {};
  const allowedDirs = await readableDirs(context);
  const place = base ? await findFile(path, allowedDirs) : await findFileIfThere(path, allowedDirs);
  return place === undefined ? {} : { base: readBase(await textOf(bytesAt(place)), path), place };
}
