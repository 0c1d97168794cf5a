import { hash } from "node:crypto";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import * as z from "zod";
import { withForeignLast } from "../answers/fence.ts";
import { many } from "../answers/message-words.ts";
import { problemsAnswer } from "../answers/plan-answers.ts";
import { nearNote } from "../answers/run-headline.ts";
import { PREVIEW_ROWS, type PreviewRow, previewNotes, sheetNotes } from "../answers/sheets.ts";
import type { ManagementApi } from "../api/management.ts";
import type { ChangeHeader, StoredPlan } from "../changes/changes.ts";
import { findFile, findFileIfThere, type Place } from "../files/folders.ts";
import type { InputFile } from "../files/input-file.ts";
import { unreadBytes } from "../files/open-file.ts";
import { type Base, basePathOf, readBase, type ServiceTargeting } from "../plans/base.ts";
import type { Desired } from "../plans/file/desired.ts";
import { jsonPathAt } from "../plans/file/json-nodes.ts";
import { type DesiredSource, formatToRead, type ReadDesired, readDesired } from "../plans/file/read-desired.ts";
import { textOf } from "../plans/look-again.ts";
import { NOTHING_PLANNED, type PlanItem } from "../plans/plan.ts";
import { type MadePlan, makePlan, planBytes, planDocument } from "../plans/plan-document.ts";
import { asPlanned } from "../plans/planned-undo.ts";
import { readTargeting, whichTargeting } from "../plans/read-targeting.ts";
import { FileError, undefinedIfFileError } from "../platform/files.ts";
import { bytesAt, wholeOf } from "../platform/held-folder.ts";
import { capitalized, firstOf } from "../platform/text.ts";
import { RunStoreError } from "../runs/store.ts";
import { nearContextIds } from "../spec/names-and-contexts.ts";
import { changesOf, DeadlineExceeded, fileWithinWait, undefinedIfLate } from "./apis.ts";
import { readableDirs, sheetArguments, sheetReadingArguments } from "./arguments.ts";
import { type ToolAnswer, type ToolContext, type ToolDefinition, ToolError } from "./define-tool.ts";
import { newPlanAnswer, planNowOrInBackground } from "./plan-in-time.ts";
import { runOutput } from "./write/write.ts";

const input = () =>
  z.strictObject({
    file: z
      .string()
      .optional()
      .describe("Desired state: .yaml, .json, .ndjson, .xlsx, .csv, .tsv or .txt, as list_options saves it"),
    ...sheetReadingArguments(),
    desired: z
      .looseObject({})
      .optional()
      .describe(
        "Or the desired state itself: {version: 1, targeting: {_id or name}, options: [{_id?, name, contexts?, …}]}",
      ),
    targetingId: z.string().optional().describe("Only if the desired state names none"),
    targetingName: z.string().optional().describe("Or its name"),
    base: z.string().optional().describe("Base file; default: the one beside file"),
    prune: z.boolean().optional().describe("Delete what is in the base but not in the state"),
    byName: z.boolean().optional().describe("Match by name only: one targeting's file for another"),
    fresh: z.boolean().optional().describe("Read again, use nothing stored"),
  });

type DesiredArguments = z.output<ReturnType<typeof input>>;

export const planTargeting = {
  name: "plan_targeting",
  title: "Plan a desired state",
  description:
    "Compares a desired state (file) with a targeting and stores the plan: what would be created, renamed, moved, changed or deleted, conflicts and drift. Sends nothing; apply_plan applies it. Options given without contexts keep their Context IDs; options not given stay.",
  toolset: "targeting",
  effect: "reads",
  idempotent: false,
  input,
  output: runOutput,
  handler: (given, context) => planDesiredState(given, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

/** Plans a desired state. Stores the plan in a new run, or in `earlier`, the run of an interrupted call. */
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
  const targeting = targetingArgument(given);
  // After the plan is applied, the base next to the file is updated, unless the caller named another base, or the file
  // is in a folder of the client (root), where this server does not write.
  const isKept = place !== undefined && !given.base && context.allowedDirs.length > 0;
  const beside = isKept ? { root: place.root, steps: place.steps } : undefined;
  const unread = await fileWithinWait(context, unreadSheet(bytes, source, context)).catch(ignoreDeadline);
  let reading: Promise<ReadDesired> | undefined = readState(bytes, source, context);
  // Keeps a rejection from being unhandled. If the call is answered before the state was read, the run reports the
  // error.
  reading.catch(() => undefined);
  const read = await undefinedIfLate(context, reading.then(withoutOptions));
  const notes = read === undefined ? [] : read.notes;
  // `file` is undefined if it was not read in time, or is no sheet. Then problems cannot be marked in a sheet.
  const file = read === undefined ? unread : read.file;
  const sheet = file && { file, bytes: () => Readable.from([bytes]) };
  if (read !== undefined && read.problems.length > 0) {
    const runId = sheet && (await storeProblems(given, { ...(await reading), digest }, sheet, context, earlier));
    return withNotes(problemsAnswer(context.environment, read.problems, runId), notes);
  }
  // Before the state was read, only arguments can tell which targeting is meant.
  const targetingId = await (read === undefined && targeting === undefined
    ? undefined
    : whichTargeting({ given: targeting, file: read?.targeting, base, byName, memory }));
  return planNowOrInBackground<MadePlan & { readonly notes: readonly string[] }>(
    {
      plannedBy: "plan_targeting",
      // Stored with the plan, because `apply_plan` updates this base after it has applied the plan.
      base: beside,
      sheet,
      from: { given, fileDigest: digest },
      targetings: targetingId === undefined ? [] : [targetingId],
      async make(signal) {
        const found = await (reading ?? readState(bytes, source, context));
        // Frees the memory of a large state. Planning its requests needs as much again.
        reading = undefined;
        if (found.problems.length > 0) {
          const made = sheet && (await problemsPlan(given, { ...found, digest }, context));
          if (made === undefined) throw hasProblems(found.problems);
          return { ...made, notes: readNotes(found) };
        }
        const made = await makePlan(
          { desired: found.desired, fileDigest: digest, base, targeting, prune, byName },
          {
            environment: context.environment,
            apiUrl: context.apiUrl,
            memory,
            thresholds: { maxChangePercent: context.maxChangePercent, maxDeletes: context.maxDeletes },
            read: (id) => readRemembering(api, id, signal, context, given.fresh),
          },
        );
        return { ...made, notes: readNotes(found) };
      },
      textOf: ({ document, there }) => ({ changes: asPlanned(document.plan, there), text: planBytes(document) }),
      async answer({ document, there, notes }, keep) {
        const { header, plan } = await keep();
        return withNotes(await newPlanAnswer(document, header, plan, context), [
          ...notes,
          ...nearNotes(document.plan.items, there),
        ]);
      },
    },
    context,
    earlier,
  );
}

function targetingArgument({ targetingId, targetingName }: DesiredArguments): string | undefined {
  if (targetingId && targetingName) {
    throw new ToolError("targetingId and targetingName were both given", "Give only one of them.");
  }
  return targetingId || targetingName || undefined;
}

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

/** Returns what is still needed of a desired state, without its options, which may take much memory. */
function withoutOptions(read: ReadDesired) {
  const { problems, file, desired } = read;
  return { problems, file, targeting: desired.targeting, notes: readNotes(read) };
}

async function givenBytes(given: DesiredArguments, context: Pick<ToolContext, "allowedDirs" | "roots">) {
  const { file, desired } = given;
  if (file && desired !== undefined) throw new ToolError("file and desired were both given", "Give only one of them.");
  if (!file && desired === undefined) throw new ToolError("neither file nor desired was given", "Give one of them.");
  const digested = (bytes: Uint8Array) => ({ bytes, digest: hash("sha256", bytes, "hex") });
  if (!file) return { ...digested(Buffer.from(JSON.stringify(desired))), format: "json" as const, folder: undefined };
  const format = formatToRead(file);
  const place = await findFile(file, await readableDirs(context));
  const bytes = await wholeOf(bytesAt(place));
  return { ...digested(bytes), path: file, sheet: sheetArguments(given), format, folder: dirname(place.path) };
}

type StateSource = Omit<DesiredSource, "bytes" | "maxLineBytes">;

async function readState(
  bytes: Uint8Array,
  source: StateSource,
  { maxLineBytes }: Pick<ToolContext, "maxLineBytes">,
): Promise<ReadDesired> {
  // Reading a large state takes long, so other calls go first.
  await nextTurn();
  if (source.folder !== undefined) return readDesired({ bytes, ...source, maxLineBytes });
  const read = await readDesired({ bytes, ...source });
  const text = Buffer.from(bytes).toString("utf8");
  // This state is in the arguments of the call, so it has no lines. Line numbers would look as if it were in a file.
  const options = read.desired.options.map((option) => ({ ...option, line: 0, spots: {} }));
  const problems = read.problems.map((problem) => ({
    ...problem,
    path: jsonPathAt(text, problem.column - 1) || "the state",
  }));
  return { ...read, desired: { ...read.desired, options }, problems };
}

const PLACES_NAMED = 20;

function hasProblems(problems: ReadDesired["problems"]): FileError {
  const [first] = problems;
  const places = firstOf(problems, PLACES_NAMED, ({ path, line }) => path ?? `line ${line}`);
  return new FileError(
    `the desired state has ${many(problems.length, "problem")} (${places})` +
      `${first === undefined ? "" : `, first: ${first.message}`}`,
    "Fix it, and plan it again.",
  );
}

function nearNotes(items: readonly PlanItem[], there: ServiceTargeting | undefined): readonly string[] {
  const held = new Map(there?.options.map(({ _id, contexts }) => [_id, contexts]));
  const near = items.flatMap((item) =>
    item.kind === "change" && item.contexts !== undefined
      ? nearContextIds(item.contexts.add, held.get(item._id) ?? [])
      : [],
  );
  return nearNote(near.length === 0 ? {} : { nearIds: { count: near.length, first: near.slice(0, MAX_NEAR) } });
}

const MAX_NEAR = 3;

/** Stores an empty plan for a sheet with problems, so that the sheet can be saved with the problems marked. */
async function storeProblems(
  given: DesiredArguments,
  read: ProblemsRead,
  sheet: NonNullable<StoredPlan["sheet"]>,
  context: ToolContext,
  earlier: ChangeHeader | undefined,
): Promise<string | undefined> {
  const { caller, requested } = context;
  try {
    const made = await problemsPlan(given, read, context);
    if (made === undefined) return undefined;
    const kept = { text: planBytes(made.document), plannedBy: "plan_targeting", sheet, caller, requested } as const;
    return (await changesOf(context).keepPlan(asPlanned(made.document.plan, undefined), kept, earlier)).header.runId;
  } catch (thrown) {
    if (thrown instanceof FileError || thrown instanceof RunStoreError) return undefined;
    throw thrown;
  }
}

type ProblemsRead = Pick<ReadDesired, "desired" | "problems" | "digest">;

async function problemsPlan(
  given: DesiredArguments,
  { desired, problems, digest }: ProblemsRead,
  { memory, environment, apiUrl }: Pick<ToolContext, "memory" | "environment" | "apiUrl">,
): Promise<MadePlan | undefined> {
  const { byName = false, prune = false } = given;
  const targeting = targetingArgument(given);
  const _id = await whichTargeting({ given: targeting, file: desired.targeting, base: undefined, byName, memory });
  if (_id === undefined) return undefined;
  const plan = { targeting: { _id, name: desired.targeting?.name ?? "" }, ...NOTHING_PLANNED, problems };
  return {
    document: planDocument(plan, { environment, apiUrl, fileDigest: digest, prune, byName }, {}),
    there: undefined,
  };
}

/** Ignores that a read takes longer than the call may take. Planning goes on without its result. */
function ignoreDeadline(thrown: unknown): undefined {
  if (!(thrown instanceof DeadlineExceeded)) throw thrown;
}

/** While a large state is read, other calls get a turn after this many bytes. */
const PIECE_BYTES = 4_194_304;

/** Returns how to read a sheet, but does not read its rows. Undefined if the desired state is not a readable sheet. */
async function unreadSheet(
  bytes: Uint8Array,
  { format, path = "", sheet = {} }: StateSource,
  { maxLineBytes }: Pick<ToolContext, "maxLineBytes">,
): Promise<InputFile | undefined> {
  if (format !== "csv" && format !== "xlsx") return undefined;
  const pieces = async function* (): AsyncGenerator<Uint8Array> {
    for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
      await nextTurn();
      yield bytes.subarray(from, from + PIECE_BYTES);
    }
  };
  // If the sheet cannot be read, reading its rows will report the error.
  return (await undefinedIfFileError(unreadBytes(pieces, { path, format, maxLineBytes }, sheet)))?.file;
}

function withNotes(answer: ToolAnswer, notes: readonly string[]): ToolAnswer {
  if (notes.length === 0) return answer;
  const { structured, text } = answer;
  const [first = "", ...rest] = text.split("\n");
  const lines = [first, ...withForeignLast(notes.map((note) => `${capitalized(note)}.`)), ...rest];
  return { ...answer, structured: { ...structured, notes }, text: lines.join("\n") };
}

/** Reads the base that the call names. If it names none, reads the base next to the file, except with `byName`. */
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

function readNotes({
  file,
  columns = [],
  desired,
}: Pick<ReadDesired, "file" | "columns" | "desired">): readonly string[] {
  if (file === undefined) return [];
  const rows = desired.options.slice(0, PREVIEW_ROWS).map(rowOf);
  const preview = previewNotes(file, { columns, rows });
  return [...sheetNotes(file, preview), ...preview];
}

function rowOf({ line, _id, name, parent, type, contexts, isRemoved }: Desired["options"][number]): PreviewRow {
  const { ids = [], atLeast = false, remove = [] } = contexts ?? {};
  const changes = [
    { op: atLeast ? ("add" as const) : ("set" as const), ids },
    { op: "remove" as const, ids: remove },
  ];
  return {
    line,
    option: name ?? _id,
    isGroup: type === "collection",
    isRemoved,
    group: parent.kind === "name" ? parent.name : undefined,
    contexts: contexts && changes.filter((change, at) => change.ids.length > 0 || (at === 0 && remove.length === 0)),
  };
}
