import { hash } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { hasCode } from "../bulk/files/file-error.ts";
import { RunStoreError } from "../bulk/store.ts";
import { SUITE_FORMATS, type SuiteFormat } from "./emit.ts";
import { suiteReport } from "./run-suite.ts";
import { eventSuite } from "./suite.ts";
import { type KeptSuite, memorySuiteStore, type SuiteStore } from "./suite-store.ts";

const MOST_SUITES = 100;
/** Lists look into so many files: each may be long. */
const MOST_LISTED = 20;
const MOST_YESES = 1000;

const suiteFile = z.object({
  caller: z.string(),
  suiteId: z.string(),
  format: z.custom<SuiteFormat>((name) => typeof name === "string" && Object.hasOwn(SUITE_FORMATS, name)),
  suite: eventSuite,
  report: suiteReport.exactOptional(),
});

/**
 * Keeps suites in memory, and in files below `folder`, readable by the owner only, so that later processes find them.
 * A file that cannot be written is told to `onProblem`: the suite is then kept for as long as the process lives. For
 * each yes a file is made before anything is run, so that no yes is used twice.
 */
export function fileSuiteStore(folder: string, onProblem: (error: unknown) => void): SuiteStore {
  const memory = memorySuiteStore();
  const suites = join(folder, "kept");
  const yeses = join(folder, "yeses");
  const fileOf = (caller: string, suiteId: string): string =>
    join(suites, `${hash("sha256", JSON.stringify([caller, suiteId]), "hex")}.json`);

  async function write(caller: string, kept: KeptSuite): Promise<void> {
    try {
      await mkdir(suites, { recursive: true, mode: 0o700 });
      const file = fileOf(caller, kept.suiteId);
      await writeFile(`${file}.new`, JSON.stringify({ caller, ...kept }), { mode: 0o600 });
      await rename(`${file}.new`, file);
      await removeBeyond(suites, MOST_SUITES);
    } catch (thrown) {
      onProblem(thrown);
    }
  }

  /** What a file holds, if it is the caller's; a damaged one counts as none. */
  async function read(file: string, caller: string): Promise<KeptSuite | undefined> {
    try {
      const { caller: owner, ...kept } = suiteFile.parse(JSON.parse(await readFile(file, "utf8")));
      return owner === caller ? kept : undefined;
    } catch (thrown) {
      if (!hasCode(thrown, "ENOENT")) onProblem(thrown);
      return undefined;
    }
  }

  return {
    async keep(caller, suite, format) {
      const made = await memory.keep(caller, suite, format);
      const before = made.report === undefined ? await read(fileOf(caller, made.suiteId), caller) : undefined;
      const kept = before ?? made;
      await write(caller, kept);
      return kept;
    },
    async keepReport(caller, kept, report) {
      await memory.keepReport(caller, kept, report);
      await write(caller, { ...kept, report });
    },
    async runOnce(yes, run) {
      if (!(await memory.wasRun(yes))) await markUsed(yeses, yes);
      return memory.runOnce(yes, run);
    },
    wasRun: async (yes) => memory.wasRun(yes),
    find: async (caller, suiteId) =>
      (await memory.find(caller, suiteId)) ?? (await read(fileOf(caller, suiteId), caller)),
    async list(caller) {
      const here = await memory.list(caller);
      const files = (await namesByAge(suites)).slice(0, MOST_LISTED).map((name) => join(suites, name));
      const elsewhere = await Promise.all(files.map((file) => read(file, caller)));
      const known = new Set(here.map(({ suiteId }) => suiteId));
      return [...here, ...elsewhere.filter((kept) => kept !== undefined).filter(({ suiteId }) => !known.has(suiteId))];
    },
  };
}

/** Makes the file that stands for a yes. Throws a RunStoreError where there is one, or it cannot be made. */
async function markUsed(folder: string, yes: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await (await open(join(folder, hash("sha256", yes, "hex")), "wx", 0o600)).close();
    await removeBeyond(folder, MOST_YESES);
  } catch (thrown) {
    if (hasCode(thrown, "EEXIST")) {
      throw new RunStoreError("this yes was used before, by an earlier process; nothing was sent", "Ask anew.");
    }
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new RunStoreError(
      `what a person agreed to cannot be kept in ${folder} (${why}); nothing was sent`,
      "Make room, or let TARGETING_MCP_STATE_DIR name a folder that can be written.",
      { cause: thrown },
    );
  }
}

/** Removes the oldest files of a folder that are more than so many. */
async function removeBeyond(folder: string, most: number): Promise<void> {
  const names = await namesByAge(folder);
  await Promise.all(names.slice(most).map((name) => rm(join(folder, name), { force: true })));
}

/** The files of a folder, the newest first; none where there is no folder. */
async function namesByAge(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((thrown: unknown) => {
    if (hasCode(thrown, "ENOENT")) return [];
    throw thrown;
  });
  const dated = await Promise.all(
    names
      .filter((name) => !name.endsWith(".new"))
      .map(async (name) => ({ name, at: await changedAt(join(folder, name)) })),
  );
  return dated.sort((one, other) => other.at - one.at).map(({ name }) => name);
}

/** When a file was last written; one that was removed meanwhile counts as the oldest. */
async function changedAt(file: string): Promise<number> {
  try {
    return (await stat(file)).mtimeMs;
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT")) return 0;
    throw thrown;
  }
}
