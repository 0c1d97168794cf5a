import * as z from "zod";
import type { ValidColumns } from "../files/columns.ts";
import type { SheetArguments } from "../files/detect-sheet.ts";
import { ENCODINGS, type Encoding } from "../files/input-file.ts";
import type { OpenedFile } from "../files/rows.ts";
import { isJsonObject } from "../platform/json.ts";
import { fileWithinWait, undefinedIfLate } from "./apis.ts";
import { type ToolContext, ToolError, type Waiting } from "./define-tool.ts";

const rowsArguments = () => ({
  encoding: z.string().optional().describe("Default: detected"),
  sheet: z.string().optional().describe("Sheet name or number"),
  columns: z.object({}).catchall(z.string()).optional().describe("Each column's heading in the file"),
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

/** Splits the arguments of a call into those that concern its file and the others. */
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

/** Opens the file of a call, which `beside` excludes. Detects the form of a sheet now if time allows. */
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
    throw new ToolError(`${useless} was given together with ${other}`, `${useless} is only for file: leave it out.`);
  }
  if (other !== undefined) throw new ToolError(`file and ${other} were both given`, "Give one of the two.");
  // Imported with the first file, which makes the start faster.
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

/**
 * Returns the folders of the settings, or of the token over HTTP. If there are none, the working folders of the client.
 */
export async function readableDirs({
  allowedDirs,
  roots,
}: Pick<ToolContext, "allowedDirs" | "roots">): Promise<readonly string[]> {
  return allowedDirs.length > 0 ? allowedDirs : ((await roots?.()) ?? []);
}

export const saveArguments = (saveTo: string) => ({
  saveTo: z.string().optional().describe(saveTo),
  delimiter: z.string().optional().describe("Of a .csv file"),
});

/** Where a call saves a file. `delimiter` separates the cells of a text file. */
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

/** Returns the schema of an object with any fields. Zod's own object schemas drop `__proto__`. */
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

/** How deeply an event may be nested. No event needs more, and parsing would fail only far beyond this depth. */
const DEEPEST = 100;

/** Throws a ToolError for values that JSON cannot represent: too large numbers, and cyclic references. */
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
