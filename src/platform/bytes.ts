import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { FileError, linkRefused } from "./file-error.ts";
import { holdFolder, LinkOnTheWay, openHeld, type Place } from "./held-folder.ts";

/** Opens a content from its beginning, any number of times, in pieces of about `pieceBytes` bytes. */
export type ByteSource = (pieceBytes?: number) => AsyncIterable<Uint8Array>;

const PIECE_BYTES = 65_536;
/** Hashing and copying are faster in large pieces. */
const LARGE_PIECE_BYTES = 524_288;

/** The content of a file of our own, which may not be a link. Reading throws the error of the operating system. */
export function bytesOf(path: string): ByteSource {
  return (pieceBytes) => piecesOf(() => open(path, constants.O_RDONLY | constants.O_NOFOLLOW), pieceBytes);
}

/**
 * The content of a file that the caller named. Reading throws a FileError where a link leads there by then, and the
 * error of the operating system.
 */
export function bytesAt(place: Place): ByteSource {
  return (pieceBytes) => piecesOf(() => openPlace(place), pieceBytes);
}

async function openPlace(place: Place): Promise<FileHandle> {
  try {
    const folder = await holdFolder(place);
    return await openHeld(folder, place.steps.at(-1) ?? "").finally(() => folder.close());
  } catch (thrown) {
    if (!(thrown instanceof LinkOnTheWay)) throw thrown;
    throw linkRefused(place.path, "It changed while it was used: call again once it is left alone.", {
      cause: thrown,
    });
  }
}

async function* piecesOf(opened: () => Promise<FileHandle>, pieceBytes = PIECE_BYTES): AsyncGenerator<Uint8Array> {
  const handle = await opened();
  for await (const chunk of handle.createReadStream({ highWaterMark: pieceBytes })) {
    const bytes: unknown = chunk;
    if (bytes instanceof Uint8Array) yield bytes;
  }
}

/** The SHA-256 of a content, as hexadecimal digits: it tells whether two contents are the same. */
export async function digestOf(bytes: ByteSource): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of bytes(LARGE_PIECE_BYTES)) hash.update(chunk);
  return hash.digest("hex");
}

/** A content that must be what was read and hashed before. Throws a FileError at its end where it is not. */
export async function* unchanged(bytes: ByteSource, digest: string): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  for await (const chunk of bytes(LARGE_PIECE_BYTES)) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest("hex") === digest) return;
  throw new FileError("the file changed while it was being read; nothing was sent", "Call again once it is complete.");
}

/** A whole content, held in memory. */
export async function wholeOf(bytes: ByteSource): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes(LARGE_PIECE_BYTES)) chunks.push(chunk);
  return Buffer.concat(chunks);
}
