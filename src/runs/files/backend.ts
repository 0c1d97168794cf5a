import { hash, randomBytes, randomUUID } from "node:crypto";
import { appendFile, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";
import { type Clock, systemClock } from "../../platform/clock.ts";
import {
  appendLine,
  createFile,
  hasCode,
  makeFolder,
  moveIntoPlace,
  openFile,
  readTextFile,
  removeFile,
  replaceFile,
  unlessMissing,
  withHandle,
} from "../../platform/files.ts";
import { parseJson } from "../../platform/json.ts";
import {
  type Backend,
  type CallerTexts,
  type ContentsStore,
  ENDED_FOR_MS,
  type EndedSessions,
  findSeenTargeting,
  MAX_REMEMBERED_TARGETINGS,
  type NamesOptions,
  type SeenOption,
  type SeenTargeting,
  type SuiteTexts,
  type TargetingMemory,
} from "../backend.ts";
import type { RetentionWatch } from "../retention-clock.ts";
import { callerName, RunStoreError } from "../store.ts";
import { machineLock } from "./lease.ts";
import { bytesInFolder, callerFolder, inFolder, namesIn, readText, withStoreErrors } from "./run-folder.ts";
import { fileRunStore, type Retention } from "./run-store.ts";

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

/** Session IDs become file names. Only these characters are accepted, so that no path can leave the folder. */
const SESSION_ID = /^[\w-]{1,64}$/;

function endedSessionsIn(
  folder: string,
  clock: Pick<Clock, "now">,
  retention: Pick<RetentionWatch, "doubt">,
): EndedSessions {
  const inUse = <T>(work: () => Promise<T>): Promise<T> => withStoreErrors(folder, work, "ended sessions");
  const forgetOld = async (): Promise<void> => {
    for (const one of await namesIn(folder)) {
      const path = join(folder, one);
      // Other names are of files that are being written, or that a process which ended has left.
      const ended = SESSION_ID.test(one) ? Number(await readText(path)) : (await unlessMissing(stat(path)))?.mtimeMs;
      if (ended !== undefined && ended <= clock.now() - ENDED_FOR_MS) await rm(path, { force: true });
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
  const fileOf = (caller: string): string => join(folder, hash("sha256", caller));
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
  const folderOf = (caller: string) => join(folder, callerFolder(caller));
  const withKeys = (name: string) => join(folder, "with-keys", callerFolder(name));
  const kept = <T>(work: () => Promise<T>) => withStoreErrors(folder, work, "suites");
  const confirmationFile = (confirmation: string) =>
    join(folder, CONFIRMATIONS, `${hash("sha256", confirmation)}.json`);
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

/** Removes all but the newest files. `written` (just written) stays, even if a wrong clock makes it look old. */
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

interface ContentsFile {
  readonly file: string;
  readonly onProblem: (problem: unknown) => void;
  /** About the maximum size of the file and its renamed predecessor together, in bytes. The predecessor is replaced. */
  readonly mostBytes?: number;
}

/** Enough for most projects: the maximum of a project is 200,000 Context IDs of up to 256 bytes. */
const MAX_BYTES = 64 * 1_048_576;
const PIECE = 1_048_576;
/** How many bytes are read at once. They include the following lines, which are usually needed next. */
const NEIGHBOURS = 65_536;
/** How many of these bytes lie before the requested line. */
const NEIGHBOURS_BEFORE = 8192;
const PLAIN = /^[\w.:+-]+$/;

interface Line {
  readonly key: string;
  readonly at: number;
  readonly length: number;
}

interface Lines {
  readonly path: string;
  inode: number;
  upTo: number;
  readonly of: Map<string, Line>;
  piece?: { readonly from: number; readonly to: number; readonly bytes: Promise<Buffer> } | undefined;
}

const line = z.object({ k: z.string(), c: z.array(z.string()) });

/** Caches Context IDs as lines of a file that all processes append to. A full file replaces the previous full file. */
export function fileContentsStore({ file, onProblem, mostBytes = MAX_BYTES }: ContentsFile): ContentsStore {
  const files = [linesOf(file), linesOf(`${file}.before`)] as const;
  let turn: Promise<unknown> = Promise.resolve();
  let waiting = "";
  const inTurn = async (work: () => Promise<unknown>): Promise<void> => {
    turn = turn.then(work).catch(onProblem);
    await turn;
  };
  const keep = async (text: string): Promise<void> => {
    await inFolder(dirname(file), () => appendFile(file, text, { mode: 0o600 }));
    if (files[0].upTo > mostBytes / 2 && (await stat(file)).size > mostBytes / 2)
      await moveIntoPlace(file, files[1].path);
  };
  return {
    refresh: () => inTurn(() => Promise.all(files.map(scanNewLines))),
    async get(option) {
      const key = keyOf(option);
      for (const lines of files) {
        const found = lines.of.get(option.optionId);
        if (found === undefined || found.key !== key) continue;
        const read = line.safeParse(parseJson((await textAt(lines, found).catch(onProblem)) ?? ""));
        if (read.success && read.data.k === key && read.data.c.length === option.contextCount) return read.data.c;
        lines.of.delete(option.optionId);
      }
      return undefined;
    },
    async put(option, contexts) {
      const key = keyOf(option);
      if (!key.split(" ").every((part) => PLAIN.test(part))) return;
      // The line break at the start ends a line that another process may have left incomplete.
      waiting += `\n${JSON.stringify({ k: key, c: contexts })}\n`;
      await inTurn(async () => {
        const text = waiting;
        waiting = "";
        if (text !== "") await keep(text);
      });
    },
  };
}

function linesOf(path: string): Lines {
  return { path, inode: 0, upTo: 0, of: new Map() };
}

function keyOf({ targetingId, optionId, updatedAt, contextCount }: SeenOption): string {
  return `${optionId} ${targetingId} ${updatedAt} ${contextCount}`;
}

async function scanNewLines(lines: Lines): Promise<void> {
  const handle = await unlessMissing(openFile(lines.path));
  if (handle === undefined) return forget(lines, 0);
  try {
    const { ino, size } = await handle.stat();
    if (ino !== lines.inode || size < lines.upTo) forget(lines, ino);
    let rest = Buffer.alloc(0);
    for (let at = lines.upTo; at < size; ) {
      const piece = Buffer.alloc(Math.min(PIECE, size - at));
      const { bytesRead } = await handle.read(piece, 0, piece.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      rest = note(lines, Buffer.concat([rest, piece.subarray(0, bytesRead)]));
    }
  } finally {
    await handle.close();
  }
}

function forget(lines: Lines, inode: number): void {
  lines.inode = inode;
  lines.upTo = 0;
  lines.piece = undefined;
  lines.of.clear();
}

function note(lines: Lines, piece: Buffer): Buffer<ArrayBuffer> {
  let from = 0;
  for (let end = piece.indexOf(0x0a); end >= 0; end = piece.indexOf(0x0a, from)) {
    const [, key = "", optionId] = /^\{"k":"((\w+) [^"]+)",/.exec(piece.toString("utf8", from, from + 160)) ?? [];
    if (optionId !== undefined) lines.of.set(optionId, { key, at: lines.upTo, length: end - from });
    lines.upTo += end + 1 - from;
    from = end + 1;
  }
  return Buffer.from(piece.subarray(from));
}

async function textAt(lines: Lines, { at, length }: Line): Promise<string> {
  const { piece } = lines;
  const isIn = piece !== undefined && at >= piece.from && at + length <= piece.to;
  const { from, bytes } = isIn ? piece : readAround(lines, at, length);
  return (await bytes).toString("utf8", at - from, at - from + length);
}

function readAround(lines: Lines, at: number, length: number) {
  const from = Math.max(0, at - NEIGHBOURS_BEFORE);
  const to = Math.max(at + length, Math.min(from + NEIGHBOURS, lines.upTo));
  const bytes = bytesBetween(lines.path, from, to).catch((thrown: unknown) => {
    lines.piece = undefined;
    throw thrown;
  });
  const piece = { from, to, bytes };
  lines.piece = piece;
  return piece;
}

function bytesBetween(path: string, from: number, to: number): Promise<Buffer> {
  return withHandle(openFile(path), async (handle) => {
    const bytes = Buffer.alloc(to - from);
    await handle.read(bytes, 0, bytes.length, from);
    return bytes;
  });
}

interface MemoryOptions extends Pick<NamesOptions, "known" | "onProblem"> {
  /** The file of the remembered targetings. If undefined (embedded sandbox), they are only kept in memory. */
  readonly file?: string | undefined;
  readonly now: () => number;
}

/** Unknown fields are allowed, because a newer version may have added them. */
const memoryFile = z.object({
  targetings: z.array(z.object({ _id: z.string(), name: z.string(), seenAt: z.number() })),
});

export function targetingMemory(options: MemoryOptions): TargetingMemory {
  let known: ReadonlyMap<string, SeenTargeting> = new Map();
  let turn: Promise<unknown> = Promise.resolve();
  let beginning: Promise<void> | undefined;

  const begin = async (): Promise<void> => {
    const first = await options.known?.().catch(options.onProblem);
    // All targetings get the same time, so that sorting them by time keeps this order.
    const seenAt = options.now();
    known = new Map(first?.map(({ _id, name }) => [_id, { _id, name, seenAt }]));
  };
  const load = async () => {
    beginning ??= begin();
    await beginning;
    const stored = await readMemory(options);
    if (stored !== undefined) known = new Map(stored.map((one) => [one._id, one]));
    return known;
  };
  const change = (apply: (targetings: Map<string, SeenTargeting>) => void): Promise<void> => {
    const done = turn.then(async () => {
      const next = new Map(await load());
      apply(next);
      const kept = lastSeenFirst(next).slice(0, MAX_REMEMBERED_TARGETINGS);
      known = new Map(kept.map((one) => [one._id, one]));
      await writeMemory(options, kept);
    });
    turn = done;
    return done;
  };
  const recent = async () => {
    await turn;
    return lastSeenFirst(await load());
  };

  return {
    recent,
    remember: (targetings) =>
      change((next) => {
        const seenAt = options.now();
        for (const { _id, name } of targetings) next.set(_id, { _id, name, seenAt });
      }),
    forget: (ids) =>
      change((next) => {
        for (const id of ids) next.delete(id);
      }),
    resolve: async (name) => findSeenTargeting(await recent(), name),
  };
}

function lastSeenFirst(targetings: ReadonlyMap<string, SeenTargeting>): readonly SeenTargeting[] {
  return [...targetings.values()].sort((one, other) => other.seenAt - one.seenAt);
}

/** Returns the targetings in the file. Undefined if the file is missing or damaged. */
async function readMemory({ file, onProblem }: MemoryOptions): Promise<readonly SeenTargeting[] | undefined> {
  if (file === undefined) return undefined;
  try {
    return memoryFile.parse(JSON.parse(await readTextFile(file))).targetings;
  } catch (problem) {
    if (!hasCode(problem, "ENOENT")) onProblem(problem);
    return undefined;
  }
}

async function writeMemory({ file, onProblem }: MemoryOptions, targetings: readonly SeenTargeting[]): Promise<void> {
  if (file === undefined) return;
  const beside = `${file}.${randomUUID()}`;
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(beside, JSON.stringify({ targetings }), { mode: 0o600 });
    await moveIntoPlace(beside, file);
  } catch (problem) {
    onProblem(problem);
    await rm(beside, { force: true }).catch(onProblem);
  }
}

export const SEAL_KEY_FILE = "seal.key";
const KEY_BYTES = 32;
/** How many times the key file is read. While another process writes it, it is incomplete. */
const READ_TRIES = 20;
const READ_WAIT_MS = 25;

/** Why the key file cannot be used, by error code of the operating system. */
const UNUSABLE = {
  EISDIR: "this is a folder",
  ENOENT: "this is a link to a file that does not exist",
  EACCES: "this server may not read or write it",
} as const;

/** Returns the shared key (at least 32 bytes), created on first use or if incomplete. Throws a RunStoreError. */
export async function sealKeyIn(stateDir: string): Promise<Uint8Array> {
  const file = join(stateDir, SEAL_KEY_FILE);
  try {
    await makeFolder(stateDir);
    return (await keyIn(file, READ_TRIES)) ?? (await keyMadeAgain(file, stateDir));
  } catch (cause) {
    const why = Object.entries(UNUSABLE).find(([code]) => hasCode(cause, code))?.[1] ?? String(cause);
    throw new RunStoreError(
      `the key that signs confirmations cannot be stored in ${file}: ${why}`,
      "Replace it by a file that this server can read and write, or remove it. A new key is then created, and " +
        "earlier confirmations become invalid. Or set TARGETING_MCP_STATE_DIR to another folder.",
    );
  }
}

async function keyIn(file: string, tries: number): Promise<Uint8Array | undefined> {
  for (let left = tries; left > 0; left -= 1) {
    const text = await readText(file);
    if (text === undefined) await createFile(file, newKey());
    const key = Buffer.from(text ?? (await readFile(file, "utf8")), "base64");
    if (key.length >= KEY_BYTES) return key;
    await delay(READ_WAIT_MS);
  }
  return undefined;
}

function keyMadeAgain(file: string, stateDir: string): Promise<Uint8Array> {
  const lock = machineLock((name) => join(stateDir, "locks", name), systemClock);
  return lock.hold(
    SEAL_KEY_FILE,
    async () => {
      const madeMeanwhile = await keyIn(file, 1);
      if (madeMeanwhile !== undefined) return madeMeanwhile;
      const key = newKey();
      await replaceFile(file, key);
      return Buffer.from(key, "base64");
    },
    new AbortController().signal,
  );
}

function newKey(): string {
  return randomBytes(KEY_BYTES).toString("base64");
}
