import { createHash } from "node:crypto";
import { rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Clock } from "../../platform/clock.ts";
import { appendLine, createFile, makeFolder, removeFile, replaceFile } from "../../platform/files.ts";
import { type Backend, type CallerTexts, ENDED_FOR_MS, type EndedSessions, type SuiteTexts } from "../backend.ts";
import type { RetentionWatch } from "../retention-clock.ts";
import { callerName } from "../store.ts";
import { machineLock } from "./lease.ts";
import { bytesInFolder, namesIn, readText, unlessMissing, withStoreErrors } from "./run-folder.ts";
import { fileRunStore, type Retention } from "./run-store.ts";
import { fileContentsStore, sealKeyIn, targetingMemory } from "./side-stores.ts";

interface FileBackendOptions {
  readonly stateDir: string;
  readonly clock: Clock;
  readonly keep: Retention;
}

export function fileBackend({ stateDir, clock, keep }: FileBackendOptions): Backend {
  const projectFolder = (id: string): string => join(stateDir, "projects", id);
  const runs = fileRunStore(join(stateDir, "runs"), clock, keep);
  return {
    runs,
    lock: machineLock(projectFolder, clock),
    suites: fileSuites(join(stateDir, "suites")),
    names: (project, { lasting, ...options }) =>
      targetingMemory({
        ...options,
        file: lasting ? join(projectFolder(project), "targetings.json") : undefined,
        now: () => clock.now(),
      }),
    contents: (project, onProblem) =>
      fileContentsStore({ file: join(projectFolder(project), "contents.ndjson"), onProblem }),
    async audit(line) {
      await makeFolder(stateDir);
      await appendLine(join(stateDir, "audit.ndjson"), line);
    },
    sealKey: () => sealKeyIn(stateDir),
    endedSessions: endedSessionsIn(join(stateDir, "ended-sessions"), clock, runs.retention),
    callerRights: callerTextsIn(join(stateDir, "caller-rights")),
    close: async () => {},
  };
}

/** Only session IDs that match become file names, so no path can leave the folder. */
const SESSION_ID = /^[\w-]{1,64}$/;

function endedSessionsIn(
  folder: string,
  clock: Pick<Clock, "now">,
  retention: Pick<RetentionWatch, "doubt">,
): EndedSessions {
  const inUse = <T>(work: () => Promise<T>): Promise<T> => withStoreErrors(folder, work, "ended sessions", "");
  const forgetOld = async (): Promise<void> => {
    for (const one of await namesIn(folder)) {
      const ended = Number(await readText(join(folder, one)));
      if (ended <= clock.now() - ENDED_FOR_MS) await rm(join(folder, one), { force: true });
    }
  };
  return {
    add: (id, until) =>
      inUse(async () => {
        if (!SESSION_ID.test(id)) return;
        await makeFolder(folder);
        if ((await retention.doubt()) === undefined) await forgetOld();
        await replaceFile(join(folder, id), String(until));
      }),
    has: (id) => inUse(async () => SESSION_ID.test(id) && (await readText(join(folder, id))) !== undefined),
  };
}

function callerTextsIn(folder: string): CallerTexts {
  const fileOf = (caller: string): string => join(folder, createHash("sha256").update(caller).digest("hex"));
  const inUse = <T>(work: () => Promise<T>): Promise<T> => withStoreErrors(folder, work, "rights of callers");
  return {
    keep: (caller, text) =>
      inUse(async () => {
        await makeFolder(folder);
        await replaceFile(fileOf(caller), text);
      }),
    read: (caller) => inUse(() => readText(fileOf(caller))),
  };
}

const MAX_SUITES = 100;
const MAX_STORED_CONFIRMATIONS = 1000;
const CONFIRMATIONS = "yes";

export function fileSuites(folder: string): SuiteTexts {
  const folderOf = (caller: string) => join(folder, hashOf(caller).slice(0, 32));
  const withKeys = (name: string) => join(folder, "with-keys", hashOf(name).slice(0, 32));
  const kept = <T>(work: () => Promise<T>) => withStoreErrors(folder, work, "suites", "");
  const confirmationFile = (confirmation: string) => join(folder, CONFIRMATIONS, `${hashOf(confirmation)}.json`);
  return {
    put: (caller, id, text) =>
      kept(async () => {
        await makeFolder(folderOf(caller));
        const name = callerName(caller);
        if (name !== caller) {
          await makeFolder(withKeys(name));
          await createFile(join(withKeys(name), basename(folderOf(caller))), "");
        }
        await replaceFile(join(folderOf(caller), `${id}.json`), text);
        await removeOldest(folderOf(caller), MAX_SUITES, `${id}.json`);
      }),
    get: (caller, id) => kept(() => readText(join(folderOf(caller), `${id}.json`))),
    list: (caller) =>
      kept(async () => {
        const files = (await newestFirst(folderOf(caller))).filter((file) => file.endsWith(".json"));
        return (await Promise.all(files.map(readText))).filter((text) => text !== undefined);
      }),
    storedBytes: (name) =>
      kept(async () => {
        const folders = [folderOf(name), ...(await namesIn(withKeys(name))).map((one) => join(folder, one))];
        return (await Promise.all(folders.map(bytesInFolder))).reduce((sum, bytes) => sum + bytes, 0);
      }),
    claim: (confirmation) =>
      kept(async () => {
        await makeFolder(join(folder, CONFIRMATIONS));
        await removeOldest(join(folder, CONFIRMATIONS), MAX_STORED_CONFIRMATIONS);
        return createFile(confirmationFile(confirmation), "");
      }),
    settle: (confirmation, text) => kept(() => replaceFile(confirmationFile(confirmation), text)),
    settled: (confirmation) => kept(() => readText(confirmationFile(confirmation))),
  };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Removes all files except the newest. Keeps `written` even if it looks old because a clock is wrong. */
async function removeOldest(folder: string, most: number, written?: string): Promise<void> {
  const old = (await newestFirst(folder)).slice(most).filter((file) => file !== join(folder, written ?? ""));
  await Promise.all(old.map((file) => removeFile(file)));
}

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
