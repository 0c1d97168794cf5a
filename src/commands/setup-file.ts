import { randomUUID } from "node:crypto";
import {
  access,
  chmod,
  constants,
  lstat,
  mkdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { dirname } from "node:path";
import { UnsafeChange } from "./setup-entry.ts";

/** A file that was never there may get keys later: it is nobody else's. */
const MODE_OF_NEW = 0o600;

/** Behind a link stands the file that is meant. Throws an UnsafeChange where the link leads nowhere. */
export async function targetOf(file: string): Promise<string> {
  const target = await ifThere(() => realpath(file));
  if (target !== undefined) return target;
  if ((await ifThere(() => lstat(file))) !== undefined) throw new UnsafeChange("it is a link to what is not there");
  return file;
}

/** Whether a folder or file is there. */
export async function isThere(path: string): Promise<boolean> {
  return (await ifThere(() => stat(path))) !== undefined;
}

/** The bytes of a file; undefined where it is not there. */
export function bytesOf(file: string): Promise<Buffer | undefined> {
  return ifThere(() => readFile(file));
}

/** Bytes as a text, with its byte order mark. Throws an UnsafeChange where they are no UTF-8. */
export function textOf(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UnsafeChange("it is not encoded in UTF-8");
  }
}

/** Throws where a file that is there may not be written; an exchange would do that to one that is read-only, too. */
export async function checkWritable(file: string): Promise<void> {
  const found = await ifThere(() => stat(file));
  if (found === undefined) return;
  if ((found.mode & 0o222) === 0) throw new UnsafeChange("it is read-only");
  await access(file, constants.W_OK);
}

/** What came of an exchange: `kept` is the copy of the file as it was. */
export type Exchange = { readonly done: false } | { readonly done: true; readonly kept: string | undefined };

/**
 * Exchanges the content of a file in one step, so that no host ever reads half of it, and keeps the file as it was
 * beside it. Does nothing where the file no longer holds `before` (undefined: is not there).
 */
export async function exchange(file: string, before: Buffer | undefined, after: string): Promise<Exchange> {
  await mkdir(dirname(file), { recursive: true });
  const mode = (await ifThere(() => stat(file)))?.mode ?? MODE_OF_NEW;
  const fresh = `${file}.${randomUUID()}.new`;
  const kept = before && `${file}.${new Date().toISOString().replaceAll(/[:.]/g, "-")}.backup`;
  const made: string[] = [];
  const make = async (path: string, content: string | Buffer): Promise<void> => {
    await writeFile(path, content, { mode: MODE_OF_NEW, flag: "wx" });
    made.push(path);
    await chmod(path, mode & 0o777);
  };
  const unmake = () => Promise.all(made.map((path) => rm(path, { force: true })));
  try {
    await make(fresh, after);
    if (before !== undefined && kept !== undefined) await make(kept, before);
    // The last moment: what a host writes from here on until the next line would be lost.
    if (!areSame(await bytesOf(file), before)) {
      await unmake();
      return { done: false };
    }
    await rename(fresh, file);
    return { done: true, kept };
  } catch (thrown) {
    await unmake();
    throw thrown;
  }
}

function areSame(one: Buffer | undefined, other: Buffer | undefined): boolean {
  return one === undefined || other === undefined ? one === other : one.equals(other);
}

/** Whether something is what the file system throws. */
export function isFileError(thrown: unknown): thrown is Error {
  return thrown instanceof Error && "code" in thrown && "syscall" in thrown;
}

async function ifThere<Value>(look: () => Promise<Value>): Promise<Value | undefined> {
  try {
    return await look();
  } catch (thrown) {
    if (isFileError(thrown) && "code" in thrown && thrown.code === "ENOENT") return undefined;
    throw thrown;
  }
}
