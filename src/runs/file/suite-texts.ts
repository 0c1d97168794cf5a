import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "../../platform/file-error.ts";
import { moveOver } from "../../platform/move-over.ts";
import { removeFile } from "../../platform/remove-file.ts";
import { RunStoreError } from "../backend/store.ts";
import type { SuiteTexts } from "../backend/suite-texts.ts";

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
  const yesFile = (yes: string) => join(folder, YES, `${hashOf(yes)}.json`);
  return {
    put: (caller, id, text) =>
      usable(folder, async () => {
        await mkdir(folderOf(caller), { recursive: true, mode: 0o700 });
        await replace(join(folderOf(caller), `${id}.json`), text);
        await removeOldest(folderOf(caller), MOST_SUITES);
      }),
    get: (caller, id) => usable(folder, () => textOf(join(folderOf(caller), `${id}.json`))),
    list: (caller) =>
      usable(folder, async () => {
        const files = (await newestFirst(folderOf(caller))).filter((file) => file.endsWith(".json"));
        return (await Promise.all(files.map(textOf))).filter((text) => text !== undefined);
      }),
    claim: (yes) =>
      usable(folder, async () => {
        await mkdir(join(folder, YES), { recursive: true, mode: 0o700 });
        await removeOldest(join(folder, YES), MOST_YES);
        try {
          await writeFile(yesFile(yes), "", { flag: "wx", mode: 0o600 });
          return true;
        } catch (thrown) {
          if (hasCode(thrown, "EEXIST")) return false;
          throw thrown;
        }
      }),
    settle: (yes, text) => usable(folder, () => replace(yesFile(yes), text)),
    settled: (yes) => usable(folder, () => textOf(yesFile(yes))),
  };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

async function usable<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new RunStoreError(
      `suites cannot be kept in ${folder} (${why})`,
      "Make room, or let TARGETING_MCP_STATE_DIR name a folder that can be written.",
      { cause: thrown },
    );
  }
}

/** Writes beside the file and moves it into place, so that no reader sees half of it. */
async function replace(file: string, text: string): Promise<void> {
  const beside = `${file}.${randomUUID()}`;
  try {
    await writeFile(beside, text, { mode: 0o600 });
    await moveOver(beside, file);
  } finally {
    await removeFile(beside);
  }
}

async function removeOldest(folder: string, most: number): Promise<void> {
  const old = (await newestFirst(folder)).slice(most);
  await Promise.all(old.map((file) => removeFile(file)));
}

/** The files of a folder, those written last first; none where there is no such folder. */
async function newestFirst(folder: string): Promise<readonly string[]> {
  const names = (await unlessMissing(() => readdir(folder))) ?? [];
  const files = await Promise.all(
    names.map(async (name) => {
      const file = join(folder, name);
      return { file, at: (await unlessMissing(() => stat(file)))?.mtimeMs };
    }),
  );
  return files
    .flatMap(({ file, at }) => (at === undefined ? [] : [{ file, at }]))
    .sort((one, other) => other.at - one.at)
    .map(({ file }) => file);
}

function textOf(file: string): Promise<string | undefined> {
  return unlessMissing(() => readFile(file, "utf8"));
}

async function unlessMissing<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT")) return undefined;
    throw thrown;
  }
}
