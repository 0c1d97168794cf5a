import type { ByteSource } from "../platform/held-folder.ts";

/**
 * Decodes the next bytes. At the end of the file, `chunk` is absent. Returns undefined at invalid bytes, after which the
 * function must not be called again.
 */
export type Decode = (chunk?: Uint8Array) => string | undefined;

/**
 * Returns the line of the first invalid byte, which is in the part of `size` bytes that begins at byte `start`. A
 * decoder does not say which byte is invalid. So this reads the file again, and decodes this part byte by byte.
 * `withLines`: makes the lines of a text end with line feeds.
 */
export async function lineOfFault(
  bytes: ByteSource,
  { start, size: partSize }: { readonly start: number; readonly size: number },
  { decode, withLines }: { readonly decode: Decode; readonly withLines: (text: string) => string },
): Promise<number> {
  const end = start + partSize;
  let line = 1;
  let position = 0;
  let before = "";
  for await (const chunk of bytes()) {
    // The part has no invalid byte if the file has changed since.
    if (position >= end) break;
    for (let from = 0; from < chunk.length && position < end; ) {
      const size = position < start ? Math.min(partSize, start - position) : 1;
      const part = chunk.subarray(from, from + size);
      const text = decode(part);
      if (text === undefined) return line + newlinesIn(withLines(before));
      if (position < start) line += newlinesIn(withLines(text));
      else before += text;
      from += part.length;
      position += part.length;
    }
  }
  return line + newlinesIn(withLines(before));
}

function newlinesIn(text: string): number {
  return text.split("\n").length - 1;
}
