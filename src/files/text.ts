import { FileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { ENCODING_NAMES, ENCODINGS, type Encoding } from "./input-file.ts";

const LOST = "\uFFFD";
const NEWLINE = 0x0a;
/** The bytes that are decoded at once: few enough that the text before is freed soon, which keeps memory low. */
const PART_BYTES = 8192;

/**
 * Decodes a content piece by piece. A byte order mark overrides `encoding`. Throws a FileError that names the line of
 * the first bytes that the encoding does not have.
 */
export async function* textOf(bytes: ByteSource, encoding: Encoding): AsyncGenerator<string> {
  let decode: Decode | undefined;
  let line = 1;
  let isMac: boolean | undefined;
  /** Programs of old Macs, and Excel's "CSV (Macintosh)", end lines with a return alone. */
  const withLines = (text: string): string => {
    if (isMac === undefined && /\n|\r[^\n]/.test(text)) isMac = !text.includes("\n");
    return isMac === true ? text.replaceAll("\r", "\n") : text;
  };
  for await (const chunk of bytes()) {
    decode ??= await decoderOf(markedEncoding(chunk) ?? encoding);
    for (let from = 0; from < chunk.length; from += PART_BYTES) {
      const part = chunk.subarray(from, from + PART_BYTES);
      yield withLines(decode(part, line));
      line += newlinesIn(part);
    }
  }
  if (decode !== undefined) yield withLines(decode(undefined, line));
}

/** Decodes the next bytes, which begin on `line`; undefined says that there are no more. */
type Decode = (chunk: Uint8Array | undefined, line: number) => string;

async function decoderOf(encoding: Encoding): Promise<Decode> {
  return encoding === "euc-kr" ? await cp949() : native(encoding);
}

function native(encoding: Exclude<Encoding, "euc-kr">): Decode {
  const decoder = new TextDecoder(encoding, { fatal: true });
  return (chunk, line) => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch {
      throw invalid(encoding, line + (encoding === "utf-8" ? newlinesBeforeFault(chunk) : 0));
    }
  };
}

/** Node's own decoder knows the letters of KS X 1001 only; Excel saves all modern Korean syllables. */
async function cp949(): Promise<Decode> {
  const { getDecoder } = (await import("iconv-lite")).default;
  const decoder = getDecoder("cp949");
  return (chunk, line) => {
    const text = (chunk === undefined ? decoder.end() : decoder.write(Buffer.from(chunk))) ?? "";
    const lost = text.indexOf(LOST);
    if (lost >= 0) throw invalid("euc-kr", line + text.slice(0, lost).split("\n").length - 1);
    return text;
  };
}

/** How many lines of a chunk end before its first bytes that are not UTF-8. */
function newlinesBeforeFault(chunk: Uint8Array | undefined): number {
  if (chunk === undefined) return 0;
  // The chunk may begin inside a character of the one before.
  const start = chunk.findIndex((byte) => (byte & 0xc0) !== 0x80);
  const text = new TextDecoder("utf-8").decode(chunk.subarray(Math.max(start, 0)), { stream: true });
  return text.slice(0, Math.max(text.indexOf(LOST), 0)).split("\n").length - 1;
}

function invalid(encoding: Encoding, line: number): FileError {
  return new FileError(
    `line ${line} of the file has bytes that are not ${ENCODING_NAMES[encoding]}`,
    `Leave encoding out, so that it is detected, or give the right one: ${ENCODINGS.join(", ")}. ` +
      'A spreadsheet saves UTF-8 as "CSV UTF-8".',
  );
}

function newlinesIn(chunk: Uint8Array): number {
  let count = 0;
  for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}

/** The encoding that the mark at the beginning of a content says. */
export function markedEncoding([first, second, third]: Uint8Array): Encoding | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return first === 0xfe && second === 0xff ? "utf-16be" : undefined;
}
