import { open, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type * as z from "zod";
import { makeFolder, type Pieces, replaceFile, syncFolder } from "../../platform/durable-files.ts";
import { hasCode, removeFile } from "../../platform/files.ts";
import { type ByteSource, bytesOf } from "../../platform/held-folder.ts";
import { parseJson } from "../../platform/json.ts";
import { isRunId, keptHeader } from "../kept.ts";
import { CREATED, isUnstarted, type RunRecord, runRecord } from "../lifecycle.ts";
import { RunStoreError, type RunSummary } from "../store.ts";

/** The files in the folder of a run, beside those of its record. */
export const FILES = {
  header: "run.json",
  proposed: "proposed.ndjson",
  journal: "journal.ndjson",
  input: "input",
  sheet: "sheet",
  removed: "removed.ndjson",
  former: "former.ndjson",
  rejects: "rejects",
} as const;

/** The name of the file that holds a version of a run's record. The highest version counts, and the others stay. */
export function recordFile(version: number): string {
  return `record.${version}.json`;
}

/** The versions of the record in a folder with files of these names, the newest first. */
function versionsIn(names: readonly string[]): number[] {
  const versions = names.flatMap((name) => /^record\.([1-9]\d*)\.json$/.exec(name)?.[1] ?? []).map(Number);
  return versions.sort((one, other) => other - one);
}

const partOfHeader = keptHeader
  .pick({ createdAt: true, fingerprint: true, caller: true, project: true, environment: true })
  .partial();
/** The runs below a folder, the newest first. */
export async function runsIn(folder: string): Promise<readonly string[]> {
  return (await namesIn(folder)).filter(isRunId).sort().reverse();
}

/**
 * The record of a run; undefined where there is no such run. A journal with entries overrules a record that a power
 * failure has taken back to a time before the run was started; and a run whose newest record cannot be read counts as
 * one that was started, so that its journal says how it stands. It says where the other files of the run are damaged.
 */
export async function readRecord(folder: string, runId: string): Promise<RunRecord | undefined> {
  const place = join(folder, runId);
  const names = await namesIn(place);
  if (names.length === 0) return undefined;
  const [version = 0] = versionsIn(names);
  const text = version === 0 ? undefined : await readText(join(place, recordFile(version)));
  const read = runRecord.safeParse(parseJson(text ?? "")).data ?? (version === 0 ? CREATED : undefined);
  const record: RunRecord = read ?? { version, status: "running" };
  if (isUnstarted(record.status) && (await hasEntries(place))) return { version, status: "running" };
  const { rest } = record;
  if (rest === undefined) return record;
  const { journalBytes: _, ...summary } = rest;
  return { ...record, rest: (await isDamaged(folder, runId, rest)) ? { ...summary, isDamaged: true } : summary };
}

async function hasEntries(place: string): Promise<boolean> {
  return ((await unlessMissing(stat(join(place, FILES.journal))))?.size ?? 0) > 0;
}

/**
 * Whether the header or the journal of a run is damaged, as far as their ends show: what lies between is looked at when
 * it is read. To be asked after the summary was read, since a journal may grow meanwhile.
 */
export async function isDamaged(folder: string, runId: string, summary?: RunSummary): Promise<boolean> {
  const [header, journal] = await Promise.all([
    endsOf(join(folder, runId, FILES.header)),
    endsOf(join(folder, runId, FILES.journal), summary?.journalBytes),
  ]);
  if (header === undefined ? summary !== undefined || journal !== undefined : !isObject(header)) return true;
  const { succeeded = 0, alreadyDone = 0, failed = 0 } = summary?.counts ?? {};
  // Versions before did not say how long it was; what they reported as done is in it.
  const isNeeded = (summary?.journalBytes ?? succeeded + alreadyDone + failed) > 0;
  if (journal === undefined || journal.bytes === 0) return isNeeded;
  if (journal.first !== "{") return true;
  const { journalBytes = 0 } = summary ?? {};
  return journalBytes > 0 && (journal.bytes < journalBytes || journal.last !== "\n");
}

/** The length of a file, its first character, and the last one, or that before `upTo`; undefined where it is not there. */
async function endsOf(file: string, upTo?: number) {
  const handle = await unlessMissing(open(file, "r"));
  if (handle === undefined) return undefined;
  try {
    const { size } = await handle.stat();
    const at = async (position: number): Promise<string> => {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, Math.max(0, position));
      return buffer.toString("latin1", 0, bytesRead);
    };
    return { bytes: size, first: await at(0), last: await at((upTo ?? size) - 1) };
  } finally {
    await handle.close();
  }
}

function isObject({ first, last }: { readonly first: string; readonly last: string }): boolean {
  return first === "{" && last === "}";
}

/** What can be read of a run's header, even of a damaged one. */
export async function readHeader(folder: string, runId: string): Promise<z.infer<typeof partOfHeader> | undefined> {
  const text = await readText(join(folder, runId, FILES.header));
  return text === undefined ? undefined : (partOfHeader.safeParse(parseJson(text)).data ?? {});
}

/** What some work with a file or folder gives; undefined where that is not there. */
export function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  return work.catch((thrown: unknown) => {
    if (hasCode(thrown, "ENOENT")) return undefined;
    throw thrown;
  });
}

/** The content of a file; undefined where it is not there. */
export function readText(file: string): Promise<string | undefined> {
  return unlessMissing(readFile(file, "utf8"));
}

/** The names in a folder that may not be there. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  return (await unlessMissing(readdir(folder))) ?? [];
}

/** Makes an empty file, where it does not exist. */
export function mark(folder: string, name: string): Promise<void> {
  return inFolder(folder, () => writeFile(join(folder, name), "", { flag: "a", mode: 0o600 }));
}

/** Removes a mark. A mark that cannot be removed does no harm: it costs one look at its run each time. */
export async function unmark(file: string): Promise<void> {
  await rm(file, { force: true }).catch(() => undefined);
}

/** Writes into a folder, which is made where it is not there. */
export async function inFolder(folder: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (thrown) {
    if (!hasCode(thrown, "ENOENT")) throw thrown;
    await makeFolder(folder);
    await write();
  }
}

/**
 * Does some work in a folder that keeps `what`. Throws a RunStoreError, which tells of the effect, where the operating
 * system refuses something.
 */
export async function usable<T>(
  folder: string,
  work: () => Promise<T>,
  what = "runs",
  effect = "; nothing was sent",
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    // The content to be kept may come from a source of its own, whose errors are passed on.
    if (!isSystemError(thrown)) throw thrown;
    throw new RunStoreError(
      `${what} cannot be kept in ${folder} (${thrown.message})${effect}`,
      "Make room, or let TARGETING_MCP_STATE_DIR name a folder that can be written.",
      { cause: thrown },
    );
  }
}

/** Whether the operating system refused something. */
function isSystemError(thrown: unknown): thrown is Error {
  return thrown instanceof Error && "syscall" in thrown;
}

/**
 * Writes pieces to a file that only the owner can read, and replaces the file of this name when the last piece is on
 * the disk. Without pieces there is no file. Throws what the pieces or the operating system throw.
 */
export async function keepPart(file: string, pieces: Pieces): Promise<void> {
  let isEmpty = true;
  const noted = async function* () {
    for await (const piece of pieces) {
      isEmpty = false;
      yield piece;
    }
  };
  await replaceFile(file, noted());
  if (!isEmpty) return;
  await removeFile(file);
  await syncFolder(dirname(file));
}

/** The content of a file that may not be there. */
export function partIn(file: string): ByteSource {
  return async function* (pieceBytes) {
    try {
      yield* bytesOf(file)(pieceBytes);
    } catch (thrown) {
      if (!hasCode(thrown, "ENOENT")) throw thrown;
    }
  };
}
