import { open } from "node:fs/promises";
import { type ByteSource, bytesOf } from "../../platform/bytes.ts";
import { hasCode } from "../../platform/file-error.ts";
import { moveOver } from "../../platform/move-over.ts";
import { removeFile } from "../../platform/remove-file.ts";

/**
 * Writes pieces to a file that only the owner can read, and replaces the file of this name when the last piece is on
 * the disk. Without pieces there is no file. Throws what the pieces or the operating system throw.
 */
export async function keepPart(
  file: string,
  pieces: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>,
): Promise<void> {
  const unfinished = `${file}.unfinished`;
  const handle = await open(unfinished, "w", 0o600);
  let isEmpty = true;
  try {
    for await (const piece of pieces) {
      await handle.appendFile(piece);
      isEmpty = false;
    }
    await handle.datasync();
  } finally {
    await handle.close();
  }
  if (isEmpty) await Promise.all([removeFile(unfinished), removeFile(file)]);
  else await moveOver(unfinished, file);
}

/** The content of a file that may not be there. */
export function partIn(file: string): ByteSource {
  return async function* (pieceBytes) {
    try {
      yield* bytesOf(file)(pieceBytes);
    } catch (thrown) {
      if (!hasCode(thrown, "ENOENT")) throw thrown;
    }
  };
}
