import { randomBytes } from "node:crypto";
import { statSync } from "node:fs";
import { open, readFile, realpath, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import * as z from "zod";
import { problemLine } from "../answers/plan-words.ts";
import { sheetNotes } from "../answers/sheets.ts";
import type { SheetArguments } from "../files/detect-sheet.ts";
import { ENCODINGS } from "../files/input-file.ts";
import { type Base, basePathOf, readBase } from "../plans/base.ts";
import type { Problem } from "../plans/file/desired.ts";
import { formatToRead, type ReadDesired, readDesired } from "../plans/file/read-desired.ts";
import { type MadePlan, makePlan } from "../plans/plan-document.ts";
import { FileError, hasCode, moveIntoPlace, type Pieces, syncFolder } from "../platform/files.ts";
import { parseJson } from "../platform/json.ts";
import { isOn } from "../runtime/settings-input.ts";
import { type CommandLine, optionOf } from "../settings/command-line.ts";
import { oneOf, path, SettingsError, text } from "../settings/value-types.ts";
import { onlyWord, type PlanContext, printLines, printNote, readShowing } from "./project.ts";

export type AskedFile = ReturnType<typeof askedFile>;

/** Reads the arguments about a file. In error messages, `what` says what kind of file is expected. */
export function askedFile(line: CommandLine, what: string) {
  return {
    file: onlyWord(line, what),
    targeting: optionOf(line, "targeting", text),
    base: optionOf(line, "base", path),
    prune: isOn(line, "prune"),
    byName: isOn(line, "by-name"),
    fresh: isOn(line, "fresh"),
    sheet: sheetOf(line),
  } as const;
}

function sheetOf(line: CommandLine): SheetArguments {
  const [sheet, columns] = [optionOf(line, "sheet", text), optionOf(line, "columns", text)];
  const encoding = optionOf(line, "encoding", oneOf(...ENCODINGS));
  const headings =
    columns === undefined ? undefined : z.record(z.string(), z.string()).safeParse(parseJson(columns)).data;
  if (columns !== undefined && headings === undefined) {
    throw new SettingsError(`--columns must be a JSON object whose values are strings: ${columns}`);
  }
  return { sheet: sheet !== undefined && /^\d+$/.test(sheet) ? Number(sheet) : sheet, columns: headings, encoding };
}

export interface PlannedFile extends MadePlan {
  readonly read: Awaited<ReturnType<typeof readDesiredFile>>;
  readonly base: Base | undefined;
}

export async function planFile(
  asked: AskedFile,
  context: PlanContext,
): Promise<PlannedFile | { readonly problems: readonly Problem[] }> {
  const { file, prune, byName, targeting } = asked;
  const read = await readDesiredFile(file, asked.sheet);
  const { desired, problems, digest } = read;
  if (problems.length > 0) return { problems };
  // With `--by-name`, the file is planned for another targeting than that of the base in its folder.
  const base = byName && asked.base === undefined ? undefined : await baseFor(file, asked.base);
  const request = { desired, fileDigest: digest, base, targeting, prune, byName };
  const scene = {
    ...context,
    thresholds: context,
    read: (targetingId: string) => readShowing(context, targetingId, asked.fresh),
  };
  return { ...(await makePlan(request, scene)), read, base };
}

export function printFileProblems(file: string, problems: readonly Problem[]): void {
  printLines(problems.map((problem) => ({ text: problemLine(file, problem), tone: "stops" })));
}

export function printReading({ file }: ReadDesired): void {
  for (const note of sheetNotes(file)) printNote(`Note: ${note}.`);
}

export async function readDesiredFile(path: string, sheet: SheetArguments) {
  const format = formatToRead(path);
  const bytes = await bytesAtPath(path);
  const read = await readDesired({ bytes, path, sheet, format, folder: dirname(await realpath(path)) });
  return { ...read, bytes };
}

/** Reads the base at the path `named`; default: the one beside the file. Undefined if there is none. */
export async function baseFor(path: string, named: string | undefined): Promise<Base | undefined> {
  if (named !== undefined) return readBase((await bytesAtPath(named)).toString("utf8"), named);
  const beside = basePathOf(path);
  return (await isThere(beside)) ? readBase((await bytesAtPath(beside)).toString("utf8"), beside) : undefined;
}

export async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT") || hasCode(thrown, "ENOTDIR")) return false;
    throw unreadable(path, thrown);
  }
}

const MAX_BYTES = 268_435_456;

export async function bytesAtPath(path: string): Promise<Buffer> {
  try {
    const found = await stat(path);
    if (!found.isFile())
      throw new FileError(`${JSON.stringify(path)} is not a file`, "Use the path of a file, not of a folder.");
    if (found.size > MAX_BYTES) {
      throw new FileError(
        `${JSON.stringify(path)} is larger than 256 MB`,
        "Move the Context IDs to separate files (contextsFile).",
      );
    }
    return await readFile(path);
  } catch (thrown) {
    if (thrown instanceof FileError) throw thrown;
    throw unreadable(path, thrown);
  }
}

function unreadable(path: string, thrown: unknown): FileError {
  if (hasCode(thrown, "ENOENT")) return new FileError(`there is no file ${JSON.stringify(path)}`, "Check the path.");
  const why = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown reason";
  return new FileError(`${JSON.stringify(path)} cannot be read (${why})`, "Check the path and its permissions.", {
    cause: thrown,
  });
}

/** Writes files under temporary names, then renames them in order. Replaced files keep their permissions. */
export async function writeOver(files: readonly { readonly path: string; readonly pieces: Pieces }[]): Promise<void> {
  const written: { readonly beside: string; readonly path: string }[] = [];
  try {
    for (const { path, pieces } of files) {
      const beside = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}.unfinished`);
      written.push({ beside, path });
      const handle = await open(beside, "wx");
      try {
        const there = statSync(path, { throwIfNoEntry: false });
        if (there !== undefined) await handle.chmod(there.mode & 0o777);
        for await (const piece of pieces) await handle.appendFile(piece);
        await handle.datasync();
      } finally {
        await handle.close();
      }
    }
    for (const { beside, path } of written) {
      await moveIntoPlace(beside, path);
      await syncFolder(dirname(path));
    }
  } catch (thrown) {
    if (!(thrown instanceof Error && "code" in thrown)) throw thrown;
    const remedy = "Check that the folder exists and that you may write to it.";
    const paths = files.map(({ path }) => path).join(" and ");
    throw new FileError(`${paths} cannot be written (${String(thrown.code)})`, remedy, { cause: thrown });
  } finally {
    await Promise.all(written.map(({ beside }) => rm(beside, { force: true })));
  }
}
