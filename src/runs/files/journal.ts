import { createReadStream } from "node:fs";
import { copyFile, type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { syncFolder } from "../../platform/durable-files.ts";
import { moveIntoPlace, withHandle } from "../../platform/files.ts";
import { lineBytes, type RunJournal } from "../store.ts";
import { type Lease, RECENT_MS } from "../turn.ts";
import { unlessMissing } from "./run-folder.ts";

/** Opens a journal while the lease of the run is held. Removes an incomplete last line, which never took effect. */
export async function openJournal(
  file: string,
  lease: Lease,
  isStopAsked: () => Promise<boolean>,
): Promise<RunJournal> {
  const handle = await open(file, "a+", 0o600);
  await handle.truncate(await endOfLastLine(handle));
  // A power failure could lose the file with all its entries, because its name is not on disk yet.
  await syncFolder(dirname(file));
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
  // A failed write stops all later ones, because a line after it would make the journal look damaged.
  let written = Promise.resolve();
  const write = (): Promise<void> => {
    written = written.then(writeWaiting);
    return written;
  };
  const held = async (): Promise<void> => {
    lease.lost.throwIfAborted();
    await write();
  };
  return {
    append(line) {
      for (const piece of lineBytes(line)) waiting.push(piece);
    },
    write: () => write().catch(() => undefined),
    async flush() {
      await held();
      await lease.check(RECENT_MS);
    },
    async intend(turn) {
      await held();
      // First, so that the clock readings of the other lease do not become too old.
      await lease.settled();
      const renewed = lease.renew();
      const [first, second, stopAsked] = await Promise.all([
        renewed,
        turn === lease ? renewed : turn.renew(),
        isStopAsked(),
      ]);
      return { ...(first.monotonic < second.monotonic ? first : second), stopAsked };
    },
    appendLate: (line) =>
      withHandle(open(file, "a", 0o600), async (now) => {
        await now.appendFile(Buffer.concat(lineBytes(line)));
        await now.datasync();
      }),
    close: () => held().finally(() => handle.close()),
  };
}

/** Replaces a journal by a copy, so that a process with the old file open can no longer change the journal. */
export async function detachJournal(file: string): Promise<void> {
  const fresh = `${file}.new`;
  const isThere = await unlessMissing(copyFile(file, fresh).then(() => true));
  if (!isThere) return;
  await withHandle(open(fresh, "a+", 0o600), async (handle) => {
    await handle.truncate(await endOfLastLine(handle));
    await handle.datasync();
  });
  await moveIntoPlace(fresh, file);
  await syncFolder(dirname(file));
}

export async function wholeBytes(file: string): Promise<number> {
  return (await unlessMissing(withHandle(open(file, "r"), endOfLastLine))) ?? 0;
}

const PIECES_AT_ONCE = 512;

/** Does not concatenate the pieces, which would copy all bytes. */
async function writeWhole(handle: FileHandle, pieces: readonly Uint8Array[]): Promise<void> {
  const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const { bytesWritten } = await handle.writev([...pieces]);
  // A nearly full disk writes only a part. Writing the rest then throws its error.
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

/** Omits an incomplete last line, which a crash cut off. */
export async function* journalLines(file: string): AsyncGenerator<string> {
  const bytes = await wholeBytes(file);
  if (bytes === 0) return;
  yield* createInterface({ input: createReadStream(file, { encoding: "utf8", end: bytes - 1 }), crlfDelay: Infinity });
}
