import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { createFile, makeFolder, replaceFile } from "../../platform/durable-files.ts";
import { removeFile } from "../../platform/remove-file.ts";
import type { SuiteTexts } from "../backend/backend.ts";
import { namesIn, readText, unlessMissing, usable } from "./files.ts";

/** How many suites of one caller, and how many confirmations, are kept. */
const MOST_SUITES = 100;
const MOST_YES = 1000;
const YES = "yes";

/**
 * Keeps suites in files below `folder`, readable by the owner only, so that all processes that share the folder find
 * them. Nothing is made before it is needed.
 */
export function fileSuites(folder: string): SuiteTexts {
  const folderOf = (caller: string) => join(folder, hashOf(caller).slice(0, 32));
  const kept = <T>(work: () => Promise<T>) => usable(folder, work, "suites", "");
  const yesFile = (yes: string) => join(folder, YES, `${hashOf(yes)}.json`);
  return {
    put: (caller, id, text) =>
      kept(async () => {
        await makeFolder(folderOf(caller));
        await replaceFile(join(folderOf(caller), `${id}.json`), text);
        await removeOldest(folderOf(caller), MOST_SUITES, `${id}.json`);
      }),
    get: (caller, id) => kept(() => readText(join(folderOf(caller), `${id}.json`))),
    list: (caller) =>
      kept(async () => {
        const files = (await newestFirst(folderOf(caller))).filter((file) => file.endsWith(".json"));
        return (await Promise.all(files.map(readText))).filter((text) => text !== undefined);
      }),
    storedBytes: (caller) => kept(() => bytesIn(folderOf(caller))),
    claim: (yes) =>
      kept(async () => {
        await makeFolder(join(folder, YES));
        await removeOldest(join(folder, YES), MOST_YES);
        return createFile(yesFile(yes), "");
      }),
    settle: (yes, text) => kept(() => replaceFile(yesFile(yes), text)),
    settled: (yes) => kept(() => readText(yesFile(yes))),
  };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Removes all but the newest files, and keeps the one that was just written: a clock that is behind makes it look old. */
async function removeOldest(folder: string, most: number, written?: string): Promise<void> {
  const old = (await newestFirst(folder)).slice(most).filter((file) => file !== join(folder, written ?? ""));
  await Promise.all(old.map((file) => removeFile(file)));
}

async function bytesIn(folder: string): Promise<number> {
  const files = await Promise.all((await namesIn(folder)).map((name) => unlessMissing(stat(join(folder, name)))));
  return files.reduce((sum, file) => sum + (file?.size ?? 0), 0);
}

/** The files of a folder, those written last first; none where there is no such folder. */
async function newestFirst(folder: string): Promise<readonly string[]> {
  const names = await namesIn(folder);
  const files = await Promise.all(
    names.map(async (name) => {
      const file = join(folder, name);
      return { file, at: (await unlessMissing(stat(file)))?.mtimeMs };
    }),
  );
  return files
    .flatMap(({ file, at }) => (at === undefined ? [] : [{ file, at }]))
    .sort((one, other) => other.at - one.at)
    .map(({ file }) => file);
}
