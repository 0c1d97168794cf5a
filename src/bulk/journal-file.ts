import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { createInterface } from "node:readline";
import { parseJson } from "../api/answers.ts";
import { hasCode } from "./files/file-error.ts";
import type { RunForm } from "./run-form.ts";
import { type RunJournal, RunStoreError } from "./store.ts";

/** What to do about a run that cannot be read. */
export const START_ANEW = "Look at what was applied with list_options, and start anew.";

const NEWLINE = Buffer.from("\n");

/** Opens a journal for appending. A last line that was cut off by a crash never took effect, and is cut away. */
export async function openJournal<Entry>(
  file: string,
  { line }: Pick<RunForm<unknown, Entry>, "line">,
): Promise<RunJournal<Entry>> {
  const handle = await open(file, "a+", 0o600);
  await handle.truncate(await endOfLastLine(handle));
  let waiting: Uint8Array[] = [];
  const writeWaiting = async (): Promise<void> => {
    if (waiting.length === 0) return;
    const pieces = waiting;
    waiting = [];
    for (let at = 0; at < pieces.length; at += PIECES_AT_ONCE) {
      await writeWhole(handle, pieces.slice(at, at + PIECES_AT_ONCE));
    }
    await handle.datasync();
  };
  // One after the other: what follows a line that could not be written would be taken for damage.
  let written = Promise.resolve();
  const flush = (): Promise<void> => {
    written = written.then(writeWaiting);
    return written;
  };
  return {
    append(entry) {
      for (const piece of line(entry)) waiting.push(typeof piece === "string" ? Buffer.from(piece) : piece);
      waiting.push(NEWLINE);
    },
    // What goes wrong is told by the next flush.
    write: () => void flush().catch(() => undefined),
    flush,
    async close(how) {
      try {
        if (how !== "discard") await flush();
      } finally {
        await handle.close();
      }
    },
  };
}

/** As many pieces as every system takes in one go. */
const PIECES_AT_ONCE = 512;

/** Writes pieces one after the other, without putting them together first. */
async function writeWhole(handle: FileHandle, pieces: readonly Uint8Array[]): Promise<void> {
  const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const { bytesWritten } = await handle.writev([...pieces]);
  // A disk that is nearly full takes a part; what happens to the rest is for it to say.
  if (bytesWritten < bytes) await handle.appendFile(Buffer.concat(pieces).subarray(bytesWritten));
}

async function endOfLastLine(handle: FileHandle): Promise<number> {
  const { size } = await handle.stat();
  const chunk = Buffer.alloc(65_536);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - chunk.length);
    const { bytesRead } = await handle.read(chunk, 0, end - start, start);
    const newline = chunk.subarray(0, bytesRead).lastIndexOf(0x0a);
    if (newline >= 0) return start + newline + 1;
    end = start;
  }
  return 0;
}

/** Reads a journal line by line. A damaged last line was cut off by a crash; a damaged line before it is an error. */
export async function* readJournal<Entry>(
  file: string,
  runId: string,
  form: Pick<RunForm<unknown, Entry>, "entry">,
): AsyncGenerator<Entry> {
  if ((await openOrUndefined(file)) === undefined) return;
  let damaged = false;
  for await (const line of createInterface({ input: createReadStream(file, "utf8"), crlfDelay: Infinity })) {
    if (damaged) throw new RunStoreError(`the journal of run ${runId} is damaged: it cannot be resumed`, START_ANEW);
    const entry = form.entry.safeParse(parseJson(line));
    if (entry.success) yield entry.data;
    else damaged = true;
  }
}

async function openOrUndefined(file: string): Promise<true | undefined> {
  try {
    await (await open(file, "r")).close();
    return true;
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT")) return undefined;
    throw thrown;
  }
}
