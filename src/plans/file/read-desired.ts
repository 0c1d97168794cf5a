import { createHash } from "node:crypto";
import { extname, isAbsolute } from "node:path";
import { setFlagsFromString } from "node:v8";
import { damageIn, damageWords, NO_VALUE } from "../../files/damage.ts";
import { type BoundedUnit, BYTE_ORDER_MARK, lineLimit, QuoteFault } from "../../files/delimited.ts";
import type { ListedContextId, SheetArguments } from "../../files/detect-sheet.ts";
import { findFile } from "../../files/folders.ts";
import type { InputFile } from "../../files/input-file.ts";
import { formatOf, openBytes, unknownForm } from "../../files/open-file.ts";
import type { OpenedFile } from "../../files/rows.ts";
import { FileError } from "../../platform/files.ts";
import { bytesAt, bytesIn } from "../../platform/held-folder.ts";
import { thousands } from "../../platform/text.ts";
import {
  type Desired,
  type DesiredOption,
  type Problem,
  Problems,
  quoted,
  type Spot,
  type Suspect,
  UnreadableFile,
} from "./desired.ts";
import { jsonNodes, readNdjson } from "./json-nodes.ts";
import { desiredRows, type ReadSheet, readSheet } from "./sheet.ts";
import { addContextId, type Drafts, joinedWishes, type NamedFile, readTree, wishFor } from "./tree.ts";

export type DesiredFormat = "yaml" | "json" | "csv" | "ndjson";

const BY_ENDING: Readonly<Record<string, DesiredFormat>> = {
  ".yaml": "yaml",
  ".yml": "yaml",
  ".json": "json",
  ".csv": "csv",
  ".ndjson": "ndjson",
  ".jsonl": "ndjson",
};

/** The maximum number of options in a YAML file. Parsed YAML takes much memory for positions and comments. */
export const MAX_YAML_OPTIONS = 5000;

export type ReadFormat = DesiredFormat | "xlsx";

/** The unit whose size `maxLineBytes` limits, by format: a line or, in JSON, a value such as an option. */
const UNITS: Readonly<Record<Exclude<DesiredFormat, "csv">, BoundedUnit>> = {
  yaml: "line",
  ndjson: "line",
  json: { jsonDepth: 2 },
};

const LARGE_BYTES = 1_048_576;

export interface DesiredSource {
  readonly bytes: Uint8Array;
  readonly format: ReadFormat;
  /** The path of the file. Its extension may say which separator is between cells. */
  readonly path?: string;
  /** Settings for reading a sheet, such as its columns. Absent settings are detected from its content. */
  readonly sheet?: SheetArguments;
  /** The folder that contains the files named as `contextsFile`. Undefined if the desired state is not a file. */
  readonly folder: string | undefined;
  /** The maximum size of a line or value in bytes (see `UNITS`). Default: no limit. */
  readonly maxLineBytes?: number;
}

/** The content of a file. Incomplete if there are problems. */
export interface ReadDesired {
  readonly desired: Desired;
  /** Sorted by line and column. */
  readonly problems: readonly Problem[];
  /** The SHA-256 digest of the file, in hexadecimal. */
  readonly digest: string;
  /** The settings with which a sheet was read. Absent if the file is not a sheet. */
  readonly file?: InputFile | undefined;
  readonly columns?: ReadSheet["columns"] | undefined;
}

/** Returns the format in which to write a file, by its extension. Throws a FileError if the extension is unknown. */
export function formatOfDesired(path: string): DesiredFormat {
  const ending = extname(path).toLowerCase();
  const format = BY_ENDING[ending];
  if (format !== undefined) return format;
  throw new FileError(
    `${JSON.stringify(path)} has an unknown extension`,
    "Use a file name that ends in .yaml, .json, .xlsx, .csv, .tsv or .ndjson.",
  );
}

/** Returns the format in which to read a file, by its extension. Throws a FileError if the extension is unknown. */
export function formatToRead(path: string): ReadFormat {
  const format = BY_ENDING[extname(path).toLowerCase()];
  if (format !== undefined) return format;
  const sheet = formatOf(path);
  if (sheet === "csv" || sheet === "xlsx") return sheet;
  throw unknownForm(path, ".yaml, ");
}

/**
 * Reads a desired state. If its syntax is wrong, no other problem is reported. Throws a FileError if a line or value is
 * larger than `maxLineBytes`; in a sheet, this is a problem.
 */
export async function readDesired(source: DesiredSource): Promise<ReadDesired> {
  const { bytes, format, folder, maxLineBytes } = source;
  if (maxLineBytes !== undefined && format !== "csv" && format !== "xlsx") {
    lineLimit(UNITS[format], maxLineBytes)(bytes);
  }
  const digest = createHash("sha256").update(bytes).digest("hex");
  if (bytes.length > LARGE_BYTES) keepHeapSmall();
  try {
    const drafts: Drafts = { options: [], files: [], problems: new Problems() };
    const { targeting, suspects: inRows, hasActions, file, columns } = await readRows(source, format, drafts);
    const suspects = [...inRows, ...(await readContextsFiles({ folder, maxLineBytes }, drafts))];
    checkRows(drafts.options, drafts.problems);
    // Texts that look damaged are checked against the service when the plan is made. Other problems prevent the plan,
    // so these texts are reported now.
    if (drafts.problems.all.length > 0) for (const suspect of suspects) addSuspect(suspect, drafts.problems);
    const desired = {
      ...(targeting && { targeting }),
      options: drafts.options,
      suspects,
      ...(hasActions && { hasActions }),
    };
    return { desired, problems: drafts.problems.sorted(), digest, file, columns };
  } catch (thrown) {
    if (!(thrown instanceof UnreadableFile)) throw thrown;
    return { desired: { options: [], suspects: [] }, problems: [thrown.problem], digest };
  }
}

/** Makes this process collect garbage more often, from now on. Reading a large file creates much short-lived data. */
function keepHeapSmall(): void {
  setFlagsFromString("--heap-growing-percent=40");
}

async function readRows(source: DesiredSource, format: ReadFormat, drafts: Drafts): Promise<ReadRows> {
  if (format === "csv" || format === "xlsx") {
    const opened = await openSheet(source, format);
    return { ...(await readSheet(opened, drafts)), file: opened.file };
  }
  const NO_SUSPECTS = { suspects: [] };
  const text = textIn(source.bytes);
  if (format === "ndjson") return { ...NO_SUSPECTS, targeting: readNdjson(text, drafts) };
  const unmarked = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  if (format === "json") return { ...NO_SUSPECTS, targeting: readTree(jsonNodes(unmarked), drafts) };
  const { yamlNodes } = await import("./yaml-nodes.ts");
  const targeting = readTree(await yamlNodes(unmarked), drafts);
  const beyond = drafts.options[MAX_YAML_OPTIONS];
  if (beyond !== undefined) {
    throw new UnreadableFile(
      beyond,
      `a YAML file may have at most ${thousands(MAX_YAML_OPTIONS)} options, and this is one more`,
      "Save it as JSON, NDJSON or CSV, which have no such limit.",
    );
  }
  return { ...NO_SUSPECTS, targeting };
}

interface ReadRows extends Omit<ReadSheet, "columns"> {
  readonly file?: InputFile;
  readonly columns?: ReadSheet["columns"];
}

/** Detects the settings for reading a sheet. Throws an UnreadableFile if they cannot be detected. */
async function openSheet(
  { bytes, path = "", sheet = {}, maxLineBytes }: DesiredSource,
  format: "csv" | "xlsx",
): Promise<OpenedFile> {
  try {
    return await openBytes(bytesIn(bytes), { path, format, maxLineBytes }, sheet, desiredRows);
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown;
    const { message, remedy, cause } = thrown;
    if (cause instanceof QuoteFault) throw new UnreadableFile(cause, cause.message, remedy);
    throw new UnreadableFile({ line: 1, column: 1 }, message, remedy);
  }
}

/** Decodes UTF-8. Throws an UnreadableFile at the first invalid byte, and for bytes that are no text, such as a PDF. */
function textIn(bytes: Uint8Array): string {
  const foreign = foreignWords(bytes);
  if (foreign !== undefined) throw new UnreadableFile({ line: 1, column: 1 }, ...foreign);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    const before = textBeforeFault(bytes);
    throw new UnreadableFile(
      { line: before.split("\n").length, column: before.length - before.lastIndexOf("\n") },
      "these bytes are not UTF-8",
      "Save the file as UTF-8.",
    );
  }
}

const LOST = "\uFFFD";
const LOST_BYTES = Buffer.from(LOST);

/** Returns the text before the first byte that is not UTF-8. The text may contain U+FFFD itself. */
function textBeforeFault(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString("utf8");
  let [from, offset] = [0, 0];
  for (let at = text.indexOf(LOST); at >= 0; at = text.indexOf(LOST, at + 1)) {
    offset += Buffer.byteLength(text.slice(from, at));
    if (!LOST_BYTES.equals(bytes.subarray(offset, offset + LOST_BYTES.length))) return text.slice(0, at);
    from = at;
  }
  return text;
}

const AS_SHEET = "If it is a workbook, name it .xlsx; otherwise unpack it.";
const AS_XLSX = "Save it as a workbook with the extension .xlsx.";
const AS_TEXT = "Give YAML, JSON, NDJSON or a sheet.";

const FOREIGN: readonly (readonly [start: string, message: string, remedy: string])[] = [
  ["PK\u0003\u0004", "the file is really a spreadsheet or an archive", AS_SHEET],
  ["\u00D0\u00CF\u0011\u00E0", "the file is really an old spreadsheet", AS_XLSX],
  ["\u00FF\u00FE", "the file is UTF-16", "Save it as UTF-8."],
  ["\u00FE\u00FF", "the file is UTF-16", "Save it as UTF-8."],
  ["%PDF", "the file is a PDF", AS_TEXT],
  ["\u001F\u008B", "the file is compressed", "Unpack it first."],
];

function foreignWords(bytes: Uint8Array): readonly [message: string, remedy: string] | undefined {
  const first = Buffer.from(bytes.subarray(0, 8)).toString("latin1");
  const known = FOREIGN.find(([start]) => first.startsWith(start));
  if (known !== undefined) return [known[1], known[2]];
  return bytes.subarray(0, 1024).includes(0) ? ["the file contains binary data", AS_TEXT] : undefined;
}

function checkRows(options: readonly DesiredOption[], problems: Problems): void {
  for (const [first, option] of repeated(options, "_id")) {
    addRepeated(first.spots._id ?? first, option.spots._id ?? option, `the _id ${option._id}`, problems);
  }
  checkNames(options, problems, ({ _id }) => _id !== undefined);
}

/**
 * Reports each name that occurs twice, except for options that are `identified` by other means. Edits in the web
 * console can leave a targeting with two options of one name (management-api 4.2 rule 4).
 */
export function checkNames(
  options: readonly DesiredOption[],
  problems: Problems,
  identified: (option: DesiredOption) => boolean,
): void {
  for (const [first, option] of repeated(options, "name")) {
    if (identified(first) && identified(option)) continue;
    const words = `the name ${quoted(option.name ?? "")}`;
    addRepeated(first.spots.name ?? first, option.spots.name ?? option, words, problems);
  }
}

/** Yields each option that repeats the ID or name of an earlier one, in a pair with the first option that has it. */
function* repeated(
  options: readonly DesiredOption[],
  field: "_id" | "name",
): Generator<readonly [DesiredOption, DesiredOption]> {
  const firsts = new Map<string | undefined, DesiredOption>();
  for (const option of options) {
    const first = firsts.get(option[field]);
    if (first !== undefined) yield [first, option];
    else if (option[field] !== undefined) firsts.set(option[field], option);
  }
}

function addRepeated(first: Spot, spot: Spot, words: string, problems: Problems): void {
  problems.add(
    spot,
    `${words} occurs twice${first.line === spot.line ? "" : ` in the file: on line ${first.line} and on line ${spot.line}`}`,
    "Describe each option once; names are unique within a targeting.",
    [first.line, spot.line],
  );
}

export function addSuspect({ text, field, place = "", ...spot }: Suspect, problems: Problems): void {
  const damage = damageIn(text);
  if (damage === undefined) return;
  const { message, remedy } = damageWords(damage);
  problems.add(
    spot,
    `${quoted(text.trim() === NO_VALUE ? "" : text)} in ${field}${place} ${message}; it is accepted only if the service or the base has it`,
    remedy,
  );
}

interface BesideFile {
  /** The folder that contains the files of Context IDs. Undefined if the desired state is not a file. */
  readonly folder: string | undefined;
  readonly maxLineBytes: number | undefined;
}

/**
 * Reads the files of Context IDs that rows name, one on each line, and adds them to the options. Returns the Context
 * IDs that look damaged.
 */
async function readContextsFiles(beside: BesideFile, drafts: Drafts): Promise<readonly Suspect[]> {
  const { files, options, problems } = drafts;
  const suspects: Suspect[] = [];
  const read = new Map<string, readonly ListedContextId[]>();
  for (const file of files) {
    const listed = read.get(file.path) ?? (await listAt(beside, file, problems));
    if (listed === undefined) continue;
    read.set(file.path, listed);
    const ids = new Set<string>();
    for (const { line, id, isText } of listed) {
      const place = ` (line ${line} of ${quoted(file.path)})`;
      addContextId(ids, id, file.spot, problems, place);
      if (damageIn(id, isText) !== undefined) suspects.push({ ...file.spot, text: id, field: "contexts", place });
    }
    const option = options[file.row];
    if (option?.contexts === undefined) continue;
    options[file.row] = { ...option, contexts: joinedWishes(option.contexts, wishFor([...ids], file.action)) };
  }
  return suspects;
}

async function listAt(
  { folder, maxLineBytes }: BesideFile,
  { path, spot }: NamedFile,
  problems: Problems,
): Promise<readonly ListedContextId[] | undefined> {
  if (folder === undefined) {
    return problems.add(
      spot,
      "contextsFile works only if the desired state is a file itself",
      "Write the Context IDs under contexts, or give the desired state as a file.",
    );
  }
  if (isAbsolute(path) || /^[A-Za-z]:/.test(path)) {
    return problems.add(
      spot,
      `contextsFile ${quoted(path)} is not a relative path`,
      "Name a file in the same folder or in a folder inside it.",
    );
  }
  try {
    const { listedContextIds } = await import("../../files/detect-sheet.ts");
    const { ids, heading } = await listedContextIds(path, bytesAt(await findFile(path, [folder])), maxLineBytes);
    if (heading === undefined) return ids;
    return problems.add(
      spot,
      `contextsFile ${quoted(path)} has a heading on line ${heading.line}: ${quoted(heading.text)}`,
      "Write one Context ID per line, without a heading. If this line is a Context ID, move it down.",
    );
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown;
    return problems.add(spot, `contextsFile: ${thrown.message}`, thrown.remedy);
  }
}
