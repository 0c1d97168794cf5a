import { randomUUID } from "node:crypto";
import { link, mkdir, readdir, readFile, stat, unlink, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import * as z from "zod";
import { moveOver } from "../disk/move-over.ts";
import { hasCode } from "./files/file-error.ts";

/** How often a holder shows that it lives, and after how long without that it counts as dead, in milliseconds. */
const BEAT_MS = 2000;
const DEAD_AFTER_MS = 10_000;

const content = z.object({ pid: z.number(), host: z.string(), token: z.string(), released: z.boolean() });
type Content = z.infer<typeof content>;

/** A lease that this process holds. */
export interface Lease {
  /** Gives it back; the next one can have it at once. */
  release(): Promise<void>;
}

/** A lease that is kept in a folder. */
export interface KeptLease extends Lease {
  /**
   * Shows life. False where it was taken for dead meanwhile, since this process stood still, and another one took over:
   * then it is held no more.
   */
  renew(): Promise<boolean>;
}

interface Generation {
  readonly number: number;
  readonly file: string;
  /** Undefined while its holder is still writing it, or when it is damaged. */
  readonly content: Content | undefined;
  readonly beatAt: number;
}

/**
 * Tries to take a lease that is kept in a folder; undefined while somebody else holds it. A lease is a file whose name
 * ends in a growing number: whoever creates the next number holds it, and creating is atomic, so that a dead holder is
 * followed by exactly one. The newest file stays when the lease is given back, so that numbers never start again.
 * A holder is dead when its process on this host is gone, or when it has not shown life for ten seconds.
 */
export async function tryLease(folder: string, name: string, now: () => number): Promise<KeptLease | undefined> {
  const newest = await newestGeneration(folder, name);
  if (newest === undefined) await mkdir(folder, { recursive: true, mode: 0o700 });
  else if (isHeld(newest, now())) return undefined;
  const number = (newest?.number ?? 0) + 1;
  const file = fileOf(folder, name, number);
  const mine: Content = { pid: process.pid, host: hostname(), token: randomUUID(), released: false };
  if (!(await createFile(file, mine))) return undefined;
  const files = await filesOf(folder, name);
  if (Math.max(...numbersIn(files, name)) !== number) {
    // Somebody was faster by more than one number: this file was made too late to count.
    await remove(file);
    return undefined;
  }
  // Those that were killed may have left files that never became a lease, too.
  const older = files.filter((other) => Number.parseInt(other.slice(prefixOf(name).length), 10) < number);
  await Promise.all(older.map((other) => remove(join(folder, other))));
  const beat = setInterval(() => void showLife(file), BEAT_MS).unref();
  return {
    async renew() {
      await showLife(file);
      if (await isNewest(folder, name, number)) return true;
      clearInterval(beat);
      return false;
    },
    async release() {
      clearInterval(beat);
      await replaceFile(file, { ...mine, released: true });
    },
  };
}

/** Whether nobody took a later number, which is there before this one is removed; false where that cannot be told. */
async function isNewest(folder: string, name: string, number: number): Promise<boolean> {
  try {
    return Math.max(0, ...(await generations(folder, name))) === number;
  } catch {
    return false;
  }
}

/** Whether somebody holds a lease now. */
export async function isLeased(folder: string, name: string, now: () => number): Promise<boolean> {
  const newest = await newestGeneration(folder, name);
  return newest !== undefined && isHeld(newest, now());
}

function isHeld({ content: held, beatAt }: Generation, now: number): boolean {
  if (held?.released) return false;
  if (now - beatAt > DEAD_AFTER_MS) return false;
  return held === undefined || held.host !== hostname() || isAlive(held.pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    // Without the right to signal it, the process is there all the same.
    return hasCode(thrown, "EPERM");
  }
}

async function newestGeneration(folder: string, name: string): Promise<Generation | undefined> {
  const [number] = (await generations(folder, name)).sort((a, b) => b - a);
  if (number === undefined) return undefined;
  const file = fileOf(folder, name, number);
  try {
    const [text, { mtimeMs }] = await Promise.all([readFile(file, "utf8"), stat(file)]);
    return { number, file, content: parseContent(text), beatAt: mtimeMs };
  } catch (thrown) {
    // Removed meanwhile by the holder of a newer number: look again.
    if (hasCode(thrown, "ENOENT")) return newestGeneration(folder, name);
    throw thrown;
  }
}

async function generations(folder: string, name: string): Promise<number[]> {
  return numbersIn(await filesOf(folder, name), name);
}

function numbersIn(files: readonly string[], name: string): number[] {
  return files.flatMap((file) => {
    const number = Number(file.slice(prefixOf(name).length));
    return Number.isSafeInteger(number) ? [number] : [];
  });
}

/** The files of a lease; none where there is no folder. */
async function filesOf(folder: string, name: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).filter((file) => file.startsWith(prefixOf(name)));
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT")) return [];
    throw thrown;
  }
}

function prefixOf(name: string): string {
  return `${name}.lease.`;
}

function fileOf(folder: string, name: string, number: number): string {
  return join(folder, `${prefixOf(name)}${number}`);
}

/** Removes a file, unless somebody else did. */
async function remove(file: string): Promise<void> {
  try {
    await unlink(file);
  } catch (thrown) {
    if (!hasCode(thrown, "ENOENT")) throw thrown;
  }
}

function parseContent(text: string): Content | undefined {
  try {
    return content.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/**
 * Creates a file that nobody else has created; false when somebody has. It appears with its content, so that a holder
 * that is killed at any moment is known to be dead.
 */
async function createFile(file: string, value: Content): Promise<boolean> {
  const fresh = `${file}-${value.token}`;
  await writeFile(fresh, JSON.stringify(value), { mode: 0o600 });
  try {
    return await unlessThere(
      () => link(fresh, file),
      () => createInPlace(file, value),
    );
  } finally {
    await remove(fresh);
  }
}

/** Where the file system has no links, a lease is empty for a moment: whoever dies in it counts as alive for a while. */
function createInPlace(file: string, value: Content): Promise<boolean> {
  return unlessThere(() => writeFile(file, JSON.stringify(value), { flag: "wx", mode: 0o600 }));
}

/** Whether something could be created; false when it is there. Where it fails for another reason, `otherwise` is tried. */
async function unlessThere(create: () => Promise<void>, otherwise?: () => Promise<boolean>): Promise<boolean> {
  try {
    await create();
    return true;
  } catch (thrown) {
    if (hasCode(thrown, "EEXIST")) return false;
    if (otherwise === undefined) throw thrown;
    return otherwise();
  }
}

async function replaceFile(file: string, value: Content): Promise<void> {
  const fresh = `${file}-${value.token}`;
  await writeFile(fresh, JSON.stringify(value), { mode: 0o600 });
  await moveOver(fresh, file);
}

/** A beat that cannot be written is noticed by others, who then take over; there is nobody here to tell. */
async function showLife(file: string): Promise<void> {
  const at = new Date();
  await utimes(file, at, at).catch(() => undefined);
}
