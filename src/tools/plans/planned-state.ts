import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ManagementApi } from "../../api/management.ts";
import type { ChangeHeader } from "../../changes/changes.ts";
import { findFile, findFileIfThere, type Place } from "../../files/folders.ts";
import { type Base, basePathOf, readBase } from "../../plans/base/base.ts";
import type { ServiceTargeting } from "../../plans/base/service-targeting.ts";
import { jsonPathAt } from "../../plans/file/forms/json-path.ts";
import { formatToRead, type ReadDesired, readDesired } from "../../plans/file/read-desired.ts";
import { textOf } from "../../plans/look-again.ts";
import { type MadePlan, makePlan } from "../../plans/make-plan.ts";
import { planBytes } from "../../plans/plan-document.ts";
import { asPlanned } from "../../plans/planned-changes.ts";
import { readTargeting } from "../../plans/read-targeting.ts";
import { whichTargeting } from "../../plans/which-targeting.ts";
import { bytesAt, wholeOf } from "../../platform/bytes.ts";
import { FileError } from "../../platform/file-error.ts";
import { many } from "../../render/failures/words.ts";
import { problemsAnswer } from "../../render/plans/problems-answer.ts";
import { sheetNotes } from "../../render/sheet-words.ts";
import { changesOf } from "../apis.ts";
import type { ToolContext } from "../context.ts";
import { type ToolAnswer, ToolError } from "../definition.ts";
import { type FileArguments, sheetArguments } from "../input-file.ts";
import { fileWithinWait, unlessLate } from "../within-wait.ts";
import { toldPlan } from "./kept-plan.ts";
import { madeInTime } from "./made-in-time.ts";

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
  const { bytes, digest, ...source } = await fileWithinWait(context, givenBytes(given, context));
  const { base, place } = await fileWithinWait(context, baseOf(given, context));
  const api = changesOf(context).api();
  const { memory } = context;
  const targeting = given.targetingId || undefined;
  // A base that is named goes with another file, or none.
  const beside = place !== undefined && !given.base ? { root: place.root, steps: place.steps } : undefined;
  const reading = readState(bytes, source, context);
  const read = await unlessLate(context, reading);
  if (read !== undefined && read.problems.length > 0) {
    return withNotes(problemsAnswer(context.environment, read.problems), sheetNotes(read.file));
  }
  // Where the state is not read yet, only the call can say which targeting it is about.
  const file = read?.desired.targeting;
  const targetingId = await (read === undefined && targeting === undefined
    ? undefined
    : whichTargeting({ given: targeting, file, base, byName, memory }));
  return madeInTime<MadeState>(
    {
      ...{ plannedBy: "plan_targeting", base: beside, from: { given, fileDigest: digest } },
      targetings: targetingId === undefined ? [] : [targetingId],
      async make(signal) {
        const { desired, problems, file: sheet } = await reading;
        if (problems.length > 0) throw hasProblems(problems);
        const made = await makePlan(
          { desired, fileDigest: digest, base, targeting, prune, byName },
          {
            ...{ environment: context.environment, apiUrl: context.apiUrl, memory },
            thresholds: { maxChangePercent: context.maxChangePercent, maxDeletes: context.maxDeletes },
            read: (id) => readRemembering(api, id, signal, context, given.fresh),
          },
        );
        return { ...made, notes: sheetNotes(sheet) };
      },
      textOf: ({ document, there }) => ({ changes: asPlanned(document.plan, there), text: planBytes(document) }),
      async answer({ document, there, notes }) {
        const { caller } = context;
        // The base is renewed when the run ends that apply_plan starts.
        const kept = { text: planBytes(document), plannedBy: "plan_targeting", base: beside, caller } as const;
        const { header, plan } = await changesOf(context).keepPlan(asPlanned(document.plan, there), kept, earlier);
        return withNotes(toldPlan(document, header, plan, context), notes);
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

/** A plan, and how its file was read. */
interface MadeState extends MadePlan {
  readonly notes: readonly string[];
}

/** The content of a desired state, with its digest, and how it is to be read: as a file, or as what stands in the call. */
async function givenBytes(given: DesiredArguments, { allowedDirs }: Pick<ToolContext, "allowedDirs">) {
  const { file, desired } = given;
  if (file && desired !== undefined) throw new ToolError("file and desired were both given", "Give one of the two.");
  if (!file && desired === undefined)
    throw new ToolError("neither file nor desired was given", "Give the desired state as a file, or as desired.");
  const digested = (bytes: Uint8Array) => ({ bytes, digest: createHash("sha256").update(bytes).digest("hex") });
  if (!file) return { ...digested(Buffer.from(JSON.stringify(desired))), format: "json" as const, folder: undefined };
  const format = formatToRead(file);
  const place = await findFile(file, allowedDirs);
  const bytes = await wholeOf(bytesAt(place));
  return { ...digested(bytes), path: file, sheet: sheetArguments(given), format, folder: dirname(place.path) };
}

type StateSource = Omit<Awaited<ReturnType<typeof givenBytes>>, "bytes" | "digest">;

async function readState(
  bytes: Uint8Array,
  source: StateSource,
  { maxLineBytes }: Pick<ToolContext, "maxLineBytes">,
): Promise<ReadDesired> {
  // Large states take long to read: before that, what waits gets its turn.
  await nextTurn();
  if (source.folder !== undefined) return readDesired({ bytes, ...source, maxLineBytes });
  const read = await readDesired({ bytes, ...source });
  const text = Buffer.from(bytes).toString("utf8");
  // What stands in a call has no lines.
  const options = read.desired.options.map(withoutLine);
  const problems = read.problems.map((problem) => ({
    ...problem,
    path: jsonPathAt(text, problem.column - 1) || "the state",
  }));
  return { ...read, desired: { ...read.desired, options }, problems };
}

/** How many places of problems are named. */
const PLACES_NAMED = 20;

/** The problems of a state that was read after its call had answered: the run ends for them. */
function hasProblems(problems: ReadDesired["problems"]): FileError {
  const [first] = problems;
  const places = problems.slice(0, PLACES_NAMED).map(({ path, line }) => path ?? `line ${line}`);
  const more = problems.length - places.length;
  return new FileError(
    `the desired state has ${many(problems.length, "problem")} (${places.join(", ")}${more > 0 ? ` and ${more} more` : ""})` +
      `${first === undefined ? "" : `, first: ${first.message}`}`,
    "Fix it, and plan it again.",
  );
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
  { allowedDirs }: Pick<ToolContext, "allowedDirs">,
): Promise<{ readonly base?: Base; readonly place?: Place }> {
  const path = base || (file && !byName ? basePathOf(file) : undefined);
  if (path === undefined) return {};
  const place = base ? await findFile(path, allowedDirs) : await findFileIfThere(path, allowedDirs);
  return place === undefined ? {} : { base: readBase(await textOf(bytesAt(place)), path), place };
}
