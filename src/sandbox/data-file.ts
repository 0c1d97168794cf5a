import { readFile } from "node:fs/promises";
import * as z from "zod";
import { replaceFile } from "../platform/durable-files.ts";
import { type Dump, dumpSchema } from "./state-dump.ts";

/** How long changes gather before they are written, in milliseconds. */
const GATHER_MS = 300;
/** The mode of the file, as far as the mask of the process allows it: nothing in a sandbox is secret. */
const READABLE_BY_ALL = 0o666;

/** A data file that cannot be read or written, or holds something else; the message names it. */
export class DataFileError extends Error {}

/** Keeps a state in a file. */
export interface DataFile {
  /** Notes a change: the file is written soon. */
  touch(): void;
  /** Writes what is not written yet. Throws a DataFileError for what went wrong in any write. */
  flush(): Promise<void>;
}

/**
 * Reads a state from a file; undefined where there is no file. Throws a DataFileError when it cannot be read, or holds
 * something else.
 */
export async function readDataFile(file: string): Promise<Dump | undefined> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new DataFileError(`${file} cannot be read: ${wordsOf(error)}`, { cause: error });
  });
  if (text === undefined) return undefined;
  const result = dumpSchema.safeParse(jsonOf(text, file));
  if (!result.success) throw noState(file, z.prettifyError(result.error));
  return result.data;
}

function jsonOf(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw noState(file, "it is not JSON", error);
  }
}

/** The error for a file that holds something else than a state, and why. */
export function noState(file: string, why: string, cause?: unknown): DataFileError {
  return new DataFileError(`${file} holds no state of a sandbox: ${why}`, { cause });
}

function wordsOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Keeps the state that `dump` gives in a file, in place of what the file held before: whole, or not at all. */
export function dataFile(file: string, dump: () => Dump): DataFile {
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let failure: DataFileError | undefined;

  function write(): void {
    timer = undefined;
    writing = writing
      .then(() => replaceFile(file, JSON.stringify(dump()), READABLE_BY_ALL))
      .catch((error: unknown) => {
        failure = new DataFileError(`${file} cannot be written: ${wordsOf(error)}`, { cause: error });
      });
  }

  return {
    touch() {
      timer ??= setTimeout(write, GATHER_MS).unref();
    },
    async flush() {
      clearTimeout(timer);
      write();
      await writing;
      if (failure !== undefined) throw failure;
    },
  };
}
