import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { moveOver } from "../../platform/move-over.ts";
import { removeFile } from "../../platform/remove-file.ts";
import { RunStoreError } from "../../runs/store.ts";
import type { SUITE_FORMATS, SuiteFormat } from "./emit.ts";
import { type SuiteReport, suiteReport } from "./run-suite.ts";
import { type EventSuite, eventSuite } from "./suite.ts";

/** A suite that is kept, and the form in which its caller wants it. */
export interface KeptSuite {
  readonly suiteId: string;
  readonly suite: EventSuite;
  readonly format: SuiteFormat;
  /** What its last run gave, where it was run. */
  readonly report?: SuiteReport;
}

const plannedTests = z.object({ suiteId: z.string(), saveTo: z.string() });

/** Tests that wait for a person's yes: the suite, and the file for the report; empty where there is to be none. */
export type PlannedTests = Readonly<z.output<typeof plannedTests>>;

/** Where suites are kept; each is seen only by the caller who made it. Throws a RunStoreError where a file cannot be used. */
export interface SuiteStore {
  /** Keeps a suite; the same one in the same form has the same ID. */
  keep(caller: string, suite: EventSuite, format: SuiteFormat): Promise<KeptSuite>;
  /** Keeps what a run of a suite gave, in place of its last report. */
  keepReport(caller: string, kept: KeptSuite, report: SuiteReport): Promise<void>;
  /**
   * Runs once for each yes of a person, whichever process is asked: called again with the same one, it gives what the
   * first call gave. Throws a RunStoreError where the first one has no report, or none yet.
   */
  runOnce(yes: string, run: () => Promise<SuiteReport>): Promise<SuiteReport>;
  /** Whether something was run for a yes. */
  wasRun(yes: string): Promise<boolean>;
  /** Keeps tests that wait for a person's yes, which will be given as `yes`. */
  keepPlanned(caller: string, yes: string, planned: PlannedTests): Promise<void>;
  /** Tests that wait for a yes, or were run for it; undefined where there are none, or no longer. */
  planned(caller: string, yes: string): Promise<PlannedTests | undefined>;
  /** A suite by its ID; undefined where there is none, or no longer. */
  find(caller: string, suiteId: string): Promise<KeptSuite | undefined>;
  /** The caller's suites, the newest first. */
  list(caller: string): Promise<readonly KeptSuite[]>;
}

/** How many suites of one caller, and how many uses of a yes, are kept. */
const MOST_SUITES = 100;
const MOST_RUNS = 1000;
const YES = "yes";
const PLANNED = "planned";

const keptSuite: z.ZodType<KeptSuite> = z.object({
  suiteId: z.string(),
  suite: eventSuite,
  format: z.enum(["json", "vitest", "playwright", "curl"] as const satisfies readonly (keyof typeof SUITE_FORMATS)[]),
  report: suiteReport.exactOptional(),
});

/**
 * Keeps suites in files below `folder`, readable by the owner only, so that whatever shares the folder knows them. Of
 * each caller the newest hundred stay. Nothing is made before it is needed.
 */
export function suiteStore(folder: string): SuiteStore {
  const folderOf = (caller: string) => join(folder, hashOf(caller).slice(0, 32));
  const fileOf = (caller: string, suiteId: string) => join(folderOf(caller), `${suiteId}.json`);
  const yesFile = (yes: string) => join(folder, YES, `${hashOf(yes)}.json`);
  const plannedFile = (caller: string, yes: string) => join(folder, PLANNED, `${hashOf(`${caller} ${yes}`)}.json`);
  const put = (caller: string, kept: KeptSuite) =>
    usable(folder, async () => {
      await mkdir(folderOf(caller), { recursive: true, mode: 0o700 });
      await replace(fileOf(caller, kept.suiteId), kept);
      await removeOldest(folderOf(caller), MOST_SUITES);
    });
  const find: SuiteStore["find"] = async (caller, suiteId) =>
    isSuiteId(suiteId) ? usable(folder, () => readAs(fileOf(caller, suiteId), keptSuite)) : undefined;

  return {
    find,
    async keep(caller, suite, format) {
      const suiteId = hashOf(JSON.stringify([format, suite])).slice(0, 16);
      const kept = (await find(caller, suiteId)) ?? { suiteId, suite, format };
      await put(caller, kept);
      return kept;
    },
    keepReport: (caller, kept, given) => put(caller, { ...kept, report: given }),
    async runOnce(yes, run) {
      const file = yesFile(yes);
      const isFirst = await usable(folder, () => createEmpty(join(folder, YES), file));
      if (!isFirst) {
        const given = await usable(folder, () => readAs(file, suiteReport));
        if (given !== undefined) return given;
        throw new RunStoreError(
          "these tests were begun with this confirmation before, and there is no report of them yet; nothing was sent",
          "Call again in a while; where there still is none, plan them anew without confirmation.",
        );
      }
      const given = await run();
      await usable(folder, () => replace(file, given));
      return given;
    },
    keepPlanned: (caller, yes, tests) =>
      usable(folder, async () => {
        await mkdir(join(folder, PLANNED), { recursive: true, mode: 0o700 });
        await removeOldest(join(folder, PLANNED), MOST_RUNS);
        await replace(plannedFile(caller, yes), tests);
      }),
    planned: (caller, yes) => usable(folder, () => readAs(plannedFile(caller, yes), plannedTests)),
    wasRun: (yes) => usable(folder, () => isThere(yesFile(yes))),
    async list(caller) {
      const files = (await usable(folder, () => newestFirst(folderOf(caller)))).filter((file) =>
        file.endsWith(".json"),
      );
      const kept = await Promise.all(files.map((file) => usable(folder, () => readAs(file, keptSuite))));
      return kept.filter((one) => one !== undefined);
    },
  };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Only names that we make are ever looked up: no path leads out of the folder. */
function isSuiteId(text: string): boolean {
  return /^[0-9a-f]{16}$/.test(text);
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

/** What a file holds; undefined where there is none, or where it is empty or of another form. */
async function readAs<T>(file: string, form: z.ZodType<T>): Promise<T | undefined> {
  const text = await unlessMissing(() => readFile(file, "utf8"));
  if (text === undefined || text === "") return undefined;
  return form.safeParse(JSON.parse(text)).data;
}

/** Writes beside the file and moves it into place, so that no reader sees half of it. */
async function replace(file: string, content: unknown): Promise<void> {
  const beside = `${file}.${randomUUID()}`;
  try {
    await writeFile(beside, JSON.stringify(content), { mode: 0o600 });
    await moveOver(beside, file);
  } finally {
    await removeFile(beside);
  }
}

/** Creates an empty file that nobody else has created; false when somebody has. */
async function createEmpty(folder: string, file: string): Promise<boolean> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await removeOldest(folder, MOST_RUNS);
  try {
    await writeFile(file, "", { flag: "wx", mode: 0o600 });
    return true;
  } catch (thrown) {
    if (hasCode(thrown, "EEXIST")) return false;
    throw thrown;
  }
}

async function isThere(file: string): Promise<boolean> {
  return (await unlessMissing(() => stat(file))) !== undefined;
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

async function unlessMissing<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT")) return undefined;
    throw thrown;
  }
}

function hasCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === code;
}
