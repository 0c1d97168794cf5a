import { FileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { ENCODING_NAMES, ENCODINGS, type Encoding } from "./input-file.ts";
import type { Decode } from "./line-of-fault.ts";

const LOST = "\uFFFD";
/** How many bytes are decoded at a time. Small parts need little memory. */
const PART_BYTES = 8192;

/**
 * Decodes a file. A byte order mark at its beginning takes precedence over `encoding`. Line ends of old Mac
 * programs become line feeds. Throws a FileError with the line of the first invalid byte.
 */
export async function* textOf(bytes: ByteSource, encoding: Encoding): AsyncGenerator<string> {
  let decode: Decode | undefined;
  let found = encoding;
  let position = 0;
  const withLines = lineEnds();
  for await (const chunk of bytes()) {
    if (decode === undefined) {
      found = markedEncoding(chunk) ?? encoding;
      decode = await decoderOf(found);
    }
    for (let from = 0; from < chunk.length; from += PART_BYTES) {
      const part = chunk.subarray(from, from + PART_BYTES);
      const text = decode(part);
      if (text === undefined) throw await invalid(bytes, found, position);
      yield withLines(text);
      position += part.length;
    }
  }
  if (decode === undefined) return;
  const rest = decode();
  if (rest === undefined) throw await invalid(bytes, found, position);
  yield withLines(rest);
}

/**
 * Returns a function that makes the lines of a text end with line feeds. Old Mac programs, and Excel's "CSV
 * (Macintosh)", end lines with a carriage return only.
 */
function lineEnds(): (text: string) => string {
  let isMac: boolean | undefined;
  return (text) => {
    if (isMac === undefined && /\n|\r[^\n]/.test(text)) isMac = hasMacLines(text);
    return isMac === true ? text.replaceAll("\r", "\n") : text;
  };
}

/** Returns whether the first line ends with a carriage return only. Line breaks in quotation marks do not count. */
function hasMacLines(text: string): boolean {
  const end = /^(?:[^"\r\n]|"[^"]*")*(\r?\n|\r)/.exec(text)?.[1];
  return end === undefined ? !text.includes("\n") : end === "\r";
}

async function decoderOf(encoding: Encoding): Promise<Decode> {
  return encoding === "euc-kr" ? await cp949() : native(encoding);
}

function native(encoding: Exclude<Encoding, "euc-kr">): Decode {
  const decoder = new TextDecoder(encoding, { fatal: true });
  return (chunk) => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch {
      return undefined;
    }
  };
}

/**
 * Decodes CP949, in which Excel saves all modern Korean syllables. Node's own decoder knows only those of KS X 1001.
 */
async function cp949(): Promise<Decode> {
  const { getDecoder } = (await import("iconv-lite")).default;
  const decoder = getDecoder("cp949");
  return (chunk) => {
    const text = (chunk === undefined ? decoder.end() : decoder.write(Buffer.from(chunk))) ?? "";
    return text.includes(LOST) ? undefined : text;
  };
}

/** Returns the error for invalid bytes in the part of the file that begins at byte `start`. */
async function invalid(bytes: ByteSource, encoding: Encoding, start: number): Promise<FileError> {
  // Imported only when needed, because few files have invalid bytes.
  const { lineOfFault } = await import("./line-of-fault.ts");
  const reading = { decode: await decoderOf(encoding), withLines: lineEnds() };
  const line = await lineOfFault(bytes, { start, size: PART_BYTES }, reading);
  return new FileError(
    `line ${line} of the file has bytes that are not ${ENCODING_NAMES[encoding]}`,
    `If encoding was given, leave it out, so that it is detected. Otherwise give the right one: ${ENCODINGS.join(", ")}. ` +
      'A spreadsheet saves UTF-8 as "CSV UTF-8".',
  );
}

/** Returns the detected encoding. Throws a FileError if none was detected. */
export function certainEncoding(found: Encoding | undefined): Encoding {
  if (found !== undefined) return found;
  throw new FileError(
    "the encoding of the file is not certain, so some letters could be read wrongly; nothing was sent",
    `Save it as CSV UTF-8 or as .xlsx. Or give its encoding: ${ENCODINGS.join(", ")}.`,
  );
}

function markedEncoding([first, second, third]: Uint8Array): Encoding | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return first === 0xfe && second === 0xff ? "utf-16be" : undefined;
}

/** A file that is valid UTF-8 is still read as UTF-16 if more than one in this many bytes is zero. */
const FEWEST_ZEROS = 10;

/**
 * Detects the encoding of a file. Checks in this order: a byte order mark, zero bytes (UTF-16), valid UTF-8, and in
 * which encoding the bytes are plausible letters. A file with intact characters of UTF-8 counts as UTF-8, so that the
 * error can name the line with the invalid bytes.
 */
export class EncodingDetector {
  #marked: Encoding | undefined;
  #isFirst = true;
  readonly #zeros: [even: number, odd: number] = [0, 0];
  #position = 0;
  readonly #utf8 = new TextDecoder("utf-8", { fatal: true });
  #isUtf8 = true;

  take(chunk: Uint8Array): void {
    if (this.#isFirst) this.#marked = markedEncoding(chunk);
    this.#isFirst = false;
    if (this.#marked !== undefined) return;
    for (let at = chunk.indexOf(0); at >= 0; at = chunk.indexOf(0, at + 1)) {
      this.#zeros[(this.#position + at) % 2 === 0 ? 0 : 1] += 1;
    }
    this.#position += chunk.length;
    if (this.#isUtf8) this.#isUtf8 = isValid(() => this.#utf8.decode(chunk, { stream: true }));
  }

  /**
   * Returns the encoding as far as the bytes that `take` got show it: by a byte order mark, or else `said`, or else
   * UTF-16 by its zero bytes.
   */
  soFar(said: Encoding | undefined): Encoding | undefined {
    return this.#marked ?? said ?? this.#utf16(this.#isUtf8);
  }

  /**
   * Returns the encoding of the file whose bytes `take` got. Reads the file again if it is neither UTF-8 nor UTF-16.
   * Undefined if the encoding is not certain.
   */
  async found(bytes: ByteSource): Promise<Encoding | undefined> {
    if (this.#marked !== undefined) return this.#marked;
    const isUtf8 = this.#isUtf8 && isValid(() => this.#utf8.decode());
    const wide = this.#utf16(isUtf8);
    if (wide !== undefined) return wide;
    if (isUtf8) return "utf-8";
    const { likelyEncoding } = await import("./likely-encoding.ts");
    return likelyEncoding(bytes);
  }

  #utf16(isUtf8: boolean): Encoding | undefined {
    const [even, odd] = this.#zeros;
    // In UTF-16, each ASCII letter has one zero byte. A few zero bytes in valid UTF-8 are damage, which is reported for
    // the row.
    if (even + odd <= (isUtf8 ? this.#position / FEWEST_ZEROS : 0)) return undefined;
    return odd >= even ? "utf-16le" : "utf-16be";
  }
}

function isValid(decode: () => string): boolean {
  try {
    decode();
    return true;
  } catch {
    return false;
  }
}

const SAMPLE = 65_536;

/** Returns the first characters of a text file, and whether these are all. */
export async function sampleOf(
  bytes: ByteSource,
  encoding: Encoding,
): Promise<{ readonly sample: string; readonly isAll: boolean }> {
  let sample = "";
  for await (const text of textOf(bytes, encoding)) {
    sample += text;
    if (sample.length >= SAMPLE) return { sample, isAll: false };
  }
  return { sample, isAll: true };
}
