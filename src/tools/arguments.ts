import * as z from "zod";
import { readCursor } from "../answers/budget.ts";
import { fenced, fenceIfForeign, quoteUntrusted } from "../answers/fence.ts";
import { listLine, optionRow, seenLine } from "../answers/reading.ts";
import type { ManagementApi } from "../api/management.ts";
import type { NamedTargeting } from "../changes/call.ts";
import type { ValidColumns } from "../files/columns.ts";
import type { SheetArguments } from "../files/detect-sheet.ts";
import { isUndetected } from "../files/detected-form.ts";
import { ENCODINGS, type Encoding } from "../files/input-file.ts";
import type { OpenedFile } from "../files/rows.ts";
import { differenceOf, NameIndex } from "../platform/by-key.ts";
import { isJsonObject } from "../platform/json.ts";
import { readOptions } from "../reads/option-lists.ts";
import type { SeenTargeting } from "../runs/backend.ts";
import { isUlid, nameProblem } from "../spec/names-and-contexts.ts";
import type { OptionRecord } from "../spec/records.ts";
import { fileWithinWait, managementOf, undefinedIfLate } from "./apis.ts";
import { type ToolAnswer, type ToolContext, ToolError, type ToolOutcome, type Waiting } from "./define-tool.ts";

export const targetingArguments = () => ({
  targetingId: z.string().optional().describe("ULID of the targeting"),
  targetingName: z.string().optional().describe("Or its name, if seen before"),
});

/** The arguments that name a targeting. An empty text counts as absent. */
export interface TargetingReference {
  readonly targetingId?: string | undefined;
  readonly targetingName?: string | undefined;
}

/**
 * A targeting or option that the arguments name. `note`: how its name differs from the given one. `seen`: the ID and
 * name of a targeting in the list of seen targetings; absent if its ID was given.
 */
export interface FoundByName {
  readonly _id: string;
  readonly note?: string | undefined;
  readonly seen?: Pick<SeenTargeting, "_id" | "name">;
}

/**
 * Returns the targeting that the arguments name; undefined if they name none. If it was found by name, it is read,
 * because others may have renamed it. Throws a ToolError if the name is unknown or ambiguous (with candidates), or if
 * the targeting has another name now.
 */
export async function findTargeting(
  reference: TargetingReference,
  context: ToolContext,
): Promise<FoundByName | undefined> {
  const found = await findSeenTargeting(reference, context);
  if (found?.seen === undefined) return found;
  const { name } = await managementOf(context).getTargeting(found._id, { signal: context.signal });
  await checkSameName(found.seen, name, context);
  return found;
}

/** Throws a ToolError if a targeting has another name than the one by which it was found. Remembers the new name. */
export async function checkSameName(
  { _id, name: seen }: Pick<SeenTargeting, "_id" | "name">,
  name: string,
  { memory }: Pick<ToolContext, "memory">,
): Promise<void> {
  if (name === seen) return;
  await memory.remember([{ _id, name }]);
  const isValid = nameProblem(name) === undefined;
  const now = isValid ? `is now named ${quoteUntrusted(name)}` : "now has another name";
  throw new ToolError(
    `the targeting that was named ${quoteUntrusted(seen)} ${now}; nothing was sent`,
    `To use it, give targetingId ${_id}${isValid ? ` or targetingName ${quoteUntrusted(name)}` : ""}. ` +
      `For another targeting that is named ${quoteUntrusted(seen)} now, give its targetingId (shown in the web console).`,
  );
}

/**
 * Returns the targeting that the arguments name, as it was seen before. Undefined if they name none. Throws a ToolError
 * with candidates if the name is unknown or ambiguous.
 */
export async function findSeenTargeting(
  { targetingId, targetingName }: TargetingReference,
  { memory }: Pick<ToolContext, "memory">,
): Promise<FoundByName | undefined> {
  if (targetingId && targetingName) {
    throw new ToolError("targetingId and targetingName were both given", "Give only one of them.");
  }
  if (targetingId) return { _id: ulidArgument("targetingId", targetingId) };
  if (!targetingName) return undefined;
  const found = await memory.resolve(targetingName);
  if (found.kind === "one") return { ...matched(targetingName, found), seen: found.thing };
  const problem =
    found.kind === "unknown"
      ? `no targeting named ${quoteUntrusted(targetingName)} has been seen`
      : `several targetings named ${quoteUntrusted(targetingName)} have been seen`;
  const candidates =
    found.candidates.length === 0
      ? "Give targetingId instead (a ULID, shown in the web console). No targeting has been seen yet."
      : `Give targetingId (a ULID, shown in the web console) or the whole name. Seen before:\n${fenced(found.candidates.map(seenLine))}`;
  throw new ToolError(problem, candidates);
}

interface Match {
  readonly isExact: boolean;
  readonly thing: Pick<OptionRecord, "_id" | "name">;
}

function matched(given: string, { isExact, thing: { _id, name } }: Match): FoundByName {
  const note = `${quoteUntrusted(given)} matched ${quoteUntrusted(name)}, which ${differenceOf([given, name])}.`;
  return isExact ? { _id } : { _id, note };
}

/** Like `findTargeting`, but also throws a ToolError if the arguments name no targeting. */
export async function neededTargeting(reference: TargetingReference, context: ToolContext): Promise<FoundByName> {
  const found = await findTargeting(reference, context);
  if (found !== undefined) return found;
  throw new ToolError(
    "targetingId is missing",
    "Give targetingId or targetingName; get_targeting lists the targetings seen before.",
  );
}

/** Finds the targeting of one item by name. Does not throw for an unknown name, so that only this item fails. */
export async function seenTargeting(name: string, { memory }: Pick<ToolContext, "memory">): Promise<NamedTargeting> {
  const found = await memory.resolve(name);
  if (found.kind === "one") return { currentName: name, _id: found.thing._id };
  const { candidates } = found;
  if (found.kind === "ambiguous") return { currentName: name, ids: candidates.map(({ _id }) => _id) };
  return { currentName: name, near: candidates.map((candidate) => candidate.name) };
}

export function withNote<Outcome extends ToolOutcome>(
  note: string | undefined,
  outcome: Outcome,
): Outcome | ToolAnswer {
  if (note === undefined || "ask" in outcome) return outcome;
  const { structured, text, isError } = outcome;
  const all = typeof structured.note === "string" ? `${note} ${structured.note}` : note;
  return { structured: { ...structured, note: all }, text: `${fenceIfForeign([note]).join("\n")}\n${text}`, isError };
}

export function ulidArgument(argument: string, value: string): string {
  if (isUlid(value)) return value;
  throw new ToolError(
    `${argument} is ${quoteUntrusted(value)}, which is not a ULID`,
    "An ID has 26 characters: digits and capital letters. Copy it from an earlier answer or the web console.",
  );
}

/** Returns the targeting that the arguments name or, if they name none, the one in the column Targeting of the file. */
export function referenceOf(given: TargetingReference, opened: OpenedFile | undefined): TargetingReference {
  const named = opened?.file.seen?.targeting;
  if (given.targetingId || given.targetingName) return given;
  if (opened !== undefined && isUndetected(opened.file)) {
    throw new ToolError(
      "the call names no targeting, and looking for one in the file takes longer than a call may take; nothing was sent",
      "Give targetingId or targetingName too. Then the call returns a run ID at once, and the run continues.",
    );
  }
  if (named === undefined) return given;
  return isUlid(named) ? { targetingId: named } : { targetingName: named };
}

/** Returns the file, together with the ID and the names that its rows may use for the targeting of the call. */
export async function aboutTargeting(
  opened: OpenedFile | undefined,
  found: FoundByName | undefined,
  { memory }: Pick<ToolContext, "memory">,
): Promise<OpenedFile["file"] | undefined> {
  if (opened !== undefined && found !== undefined && isUndetected(opened.file)) {
    const seen = (await memory.recent()).filter(({ _id }) => _id === found._id);
    return { ...opened.file, targeting: [found._id, ...seen.map(({ name }) => name)] };
  }
  const named = opened?.file.seen?.targeting;
  if (opened === undefined || named === undefined || found === undefined) return opened?.file;
  const seen = await memory.resolve(named);
  const isSame = seen.kind === "one" && seen.thing._id === found._id;
  return { ...opened.file, targeting: [found._id, ...(isSame ? [named] : [])] };
}

/** Returns a function that finds an option of a targeting by name. The options are read once, for the first search. */
export function optionsNamed(targetingId: string, api: ManagementApi, signal: AbortSignal) {
  let index: Promise<NameIndex<OptionRecord>> | undefined;
  return async (name: string): Promise<FoundByName> => {
    index ??= indexOf(targetingId, api, signal);
    const found = (await index).find(name);
    if (found.kind === "one") return matched(name, found);
    const candidates = found.candidates.map((option) => listLine(optionRow(option, "concise")));
    const near = candidates.length === 0 ? "" : ` Nearest (ID, name, Context IDs):\n${fenced(candidates)}`;
    const quoted = quoteUntrusted(name);
    const isSame = found.kind !== "unknown" && found.candidates.every((option) => option.name === name);
    const several = isSame
      ? `several options of the targeting are named ${quoted}`
      : `several options of the targeting differ from ${quoted} only in case, outer spaces or Unicode composition`;
    const problem = found.kind === "unknown" ? `no option of the targeting is named ${quoted}` : several;
    throw new ToolError(problem, `Give the option's ID; list_options with search finds it by part of the name.${near}`);
  };
}

async function indexOf(targetingId: string, api: ManagementApi, signal: AbortSignal): Promise<NameIndex<OptionRecord>> {
  const index = new NameIndex<OptionRecord>();
  for await (const option of readOptions(api, targetingId, signal)) index.add(option);
  return index;
}

const rowsArguments = () => ({
  encoding: z.string().optional().describe("Default: detected"),
  sheet: z.coerce.string().optional().describe("Sheet name or number"),
  columns: z.object({}).catchall(z.string()).optional().describe("Column to unrecognized heading"),
  fillDown: z.array(z.string()).optional().describe("Columns where a blank cell repeats the cell above"),
});

export const sheetReadingArguments = () => ({
  ...rowsArguments(),
  separator: z.string().optional().describe("Between Context IDs in a cell"),
});

const fileArgument = (columns: string, beside: string) => ({
  file: z
    .string()
    .optional()
    .describe(`Instead of ${beside}: .xlsx, .csv, .tsv, .txt (${columns}), .ndjson or .json in an allowed folder`),
});

export const eventFileArguments = (columns: string) => ({ ...fileArgument(columns, "events"), ...rowsArguments() });

export const fileArguments = (columns: string) => ({ ...fileArgument(columns, "items"), ...sheetReadingArguments() });

type FileArguments = Omit<SheetArguments, "sheet" | "encoding"> & {
  readonly file?: string | undefined;
  readonly sheet?: string | undefined;
  readonly encoding?: string | undefined;
};

export function fileArgumentsOf<Given extends FileArguments>({
  file,
  encoding,
  sheet,
  columns,
  separator,
  fillDown,
  ...others
}: Given) {
  return { about: { file, encoding, sheet, columns, separator, fillDown }, others };
}

const ENCODING_ALIASES: Readonly<Record<string, Encoding>> = {
  utf8: "utf-8",
  "utf-16": "utf-16le",
  cp949: "euc-kr",
  "ks_c_5601-1987": "euc-kr",
  "cp-1252": "windows-1252",
  cp1252: "windows-1252",
  "iso-8859-1": "windows-1252",
  latin1: "windows-1252",
  macroman: "macintosh",
  "mac-roman": "macintosh",
  "shift-jis": "shift_jis",
  sjis: "shift_jis",
  cp932: "shift_jis",
  gbk: "gb18030",
};

function encodingNamed(name: string | undefined): Encoding | undefined {
  const plain = name?.trim().toLowerCase();
  if (!plain) return undefined;
  const known = ENCODINGS.find((one) => one === plain) ?? ENCODING_ALIASES[plain];
  if (known !== undefined) return known;
  throw new ToolError(
    `the encoding ${JSON.stringify(name)} is not known`,
    `Leave encoding out, so that it is detected, or give one of ${ENCODINGS.map((one) => JSON.stringify(one)).join(", ")}.`,
  );
}

/** Returns the arguments about a sheet. Throws a ToolError for an unknown encoding. */
export function sheetArguments({ encoding, sheet, columns, separator, fillDown }: FileArguments): SheetArguments {
  const number = sheet !== undefined && /^\d+$/.test(sheet.trim()) ? Number(sheet) : undefined;
  return {
    encoding: encodingNamed(encoding),
    sheet: number ?? (sheet || undefined),
    columns,
    separator: separator || undefined,
    fillDown,
  };
}

/**
 * Opens the file of a call. Undefined if the call has none. Throws a ToolError if the call has both a file and one of
 * the arguments in `beside`. Detects how to read a sheet, unless the call must be answered before that is done.
 */
export async function openedFile(
  given: FileArguments,
  beside: Readonly<Record<string, unknown>>,
  shape: ValidColumns,
  context: Waiting & Pick<ToolContext, "allowedDirs" | "roots" | "maxLineBytes">,
): Promise<OpenedFile | undefined> {
  const other = Object.keys(beside).find((name) => beside[name] !== undefined);
  const { file, ...reading } = given;
  if (!file) {
    const useless = Object.entries(reading).find(([, value]) => value !== undefined)?.[0];
    if (useless === undefined || other === undefined) return undefined;
    throw new ToolError(
      `${useless} was given together with ${other}`,
      `${useless} is used only with file: leave it out.`,
    );
  }
  if (other !== undefined) throw new ToolError(`file and ${other} were both given`, "Give only one of them.");
  // Loaded with the first file, so that the server starts fast.
  const [{ openFile }, { withDetectedForm }] = await Promise.all([
    import("../files/open-file.ts"),
    import("../files/detected-form.ts"),
  ]);
  const { maxLineBytes } = context;
  const rules = { allowedDirs: await readableDirs(context), maxLineBytes };
  const opened = await fileWithinWait(context, openFile(file, sheetArguments(given), rules));
  const look = withDetectedForm(opened.bytes, opened.file, shape);
  return { ...opened, file: (await undefinedIfLate(context, look)) ?? opened.file };
}

/** Returns the folders that a call may read: those of the settings or the token, or else the client's roots. */
export async function readableDirs({
  allowedDirs,
  roots,
}: Pick<ToolContext, "allowedDirs" | "roots">): Promise<readonly string[]> {
  return allowedDirs.length > 0 ? allowedDirs : ((await roots?.()) ?? []);
}

const CURSOR_REMEDIES = {
  list: "Give the cursor of the last answer with the same other arguments, or leave cursor out to start again.",
  option: "Leave cursor out to start at the beginning.",
  run: "Leave cursor out to start at the beginning.",
} as const;

/** Returns the position in a cursor, by default the beginning. Throws a ToolError if the cursor is of another query. */
export function placeOf<Schema extends z.ZodType>(
  of: keyof typeof CURSOR_REMEDIES,
  cursor: string | undefined,
  query: unknown,
  { schema, beginning }: { readonly schema: Schema; readonly beginning: z.output<Schema> },
): z.output<Schema> {
  const place = cursor ? readCursor(cursor, query, schema) : beginning;
  if (place !== undefined) return place;
  throw new ToolError(`cursor does not come from this ${of}`, CURSOR_REMEDIES[of]);
}

export const saveArguments = (saveTo: string) => ({
  saveTo: z.string().optional().describe(saveTo),
  delimiter: z.string().optional().describe("Of a .csv file"),
});

/** Where a call saves a file. `delimiter`: what separates the cells of a text file. */
export interface SaveArguments {
  readonly saveTo: string;
  readonly delimiter?: string | undefined;
}

export const onUnknownArgument = () => ({
  onUnknown: z
    .enum(["report", "resend"])
    .default("report")
    .describe("When an answer is lost: report it, or send again and risk recording it twice"),
});

/** Returns the schema of an object with any fields. Unlike Zod's own schemas, it keeps a field named `__proto__`. */
export function openObject() {
  return z
    .unknown()
    .meta({ type: "object" })
    .transform((value, context): Readonly<Record<string, unknown>> => {
      if (isJsonObject(value)) return value;
      context.issues.push({ code: "invalid_type", expected: "object", input: value });
      return z.NEVER;
    });
}

/** The maximum depth of an event. The JSON parser accepts far more, but no event needs it. */
const DEEPEST = 100;

/** Throws a ToolError for numbers that JSON cannot contain, and for more than 100 levels, as a cyclic reference has. */
export function checkJsonValues(given: unknown, where = "the event"): void {
  let level: readonly unknown[] = [given];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > DEEPEST) {
      throw new ToolError(
        `${where} is nested more than ${DEEPEST} levels deep; nothing was sent`,
        "Send the data with fewer levels.",
      );
    }
    if (level.some((value) => typeof value === "number" && !Number.isFinite(value))) {
      throw new ToolError(
        `${where} holds a number that is too large to be sent; nothing was sent`,
        "Give a smaller number, or a string.",
      );
    }
    level = level.flatMap((value) => (typeof value === "object" && value !== null ? Object.values(value) : []));
  }
}
