import { dirname } from "node:path";
import { type ByteSource, bytesOf } from "../../platform/bytes.ts";
import { type Pieces, replaceFile, syncFolder } from "../../platform/durable-files.ts";
import { hasCode } from "../../platform/file-error.ts";
import { removeFile } from "../../platform/remove-file.ts";

/**
 * Writes pieces to a file that only the owner can read, and replaces the file of this name when the last piece is on
 * the disk. Without pieces there is no file. Throws what the pieces or the operating system throw.
 */
export async function keepPart(file: string, pieces: Pieces): Promise<void> {
  let isEmpty = true;
  const noted = async function* () {
    for await (const piece of pieces) {
      isEmpty = false;
      yield piece;
    }
  };
  await replaceFile(file, noted());
  if (!isEmpty) return;
  await removeFile(file);
  await syncFolder(dirname(file));
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
