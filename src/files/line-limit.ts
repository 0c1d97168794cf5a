import { FileError } from "../platform/files.ts";

/** The unit whose size is limited in a file: a line, or a JSON value at most `jsonDepth` brackets deep. */
export type BoundedUnit = "line" | { readonly jsonDepth: number };

const MEGABYTE = 1_048_576;
const [NEWLINE, SPACE, QUOTE, BACKSLASH, COMMA] = [0x0a, 0x20, 0x22, 0x5c, 0x2c];
const OPENING: readonly number[] = [0x5b, 0x7b];
const CLOSING: readonly number[] = [0x5d, 0x7d];

/**
 * Passes a content on. Throws a FileError with the line of the first unit over `mostBytes`, before reading more of it.
 */
export async function* withinLineLimit(
  content: AsyncIterable<Uint8Array>,
  unit: BoundedUnit,
  mostBytes: number,
): AsyncGenerator<Uint8Array> {
  const check = lineLimit(unit, mostBytes);
  for await (const chunk of content) {
    check(chunk);
    yield chunk;
  }
}

/** Checks a content piece by piece, like `withinLineLimit`. */
export function lineLimit(unit: BoundedUnit, mostBytes: number): (chunk: Uint8Array) => void {
  const endsUnit = unitEnds(unit);
  let line = 1;
  let unitLine = 1;
  let unitBytes = 0;
  let isBlank = true;
  return (chunk) => {
    for (const byte of chunk) {
      if (byte === NEWLINE) line += 1;
      if (endsUnit(byte)) {
        unitLine = line;
        unitBytes = 0;
        isBlank = true;
      } else unitBytes += 1;
      // White space before a value counts as part of it, but its line is the line of its first character.
      if (isBlank && byte > SPACE && unitBytes > 0) {
        isBlank = false;
        unitLine = line;
      }
      if (unitBytes > mostBytes) throw tooLong(unitLine, mostBytes);
    }
  };
}

/** Reports for each byte whether a unit ends with it. */
function unitEnds(unit: BoundedUnit): (byte: number) => boolean {
  if (unit === "line") return (byte) => byte === NEWLINE;
  let isQuoted = false;
  let isEscaped = false;
  let depth = 0;
  return (byte) => {
    if (isQuoted) {
      if (isEscaped) isEscaped = false;
      else if (byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE) isQuoted = false;
      return false;
    }
    if (byte === QUOTE) isQuoted = true;
    else if (OPENING.includes(byte)) {
      depth += 1;
      return depth <= unit.jsonDepth;
    } else if (CLOSING.includes(byte)) depth -= 1;
    else return byte === COMMA && depth <= unit.jsonDepth;
    return false;
  };
}

export function tooLong(line: number, mostBytes: number): FileError {
  return new FileError(
    `line ${line} of the file is longer than ${mostBytes / MEGABYTE} MB; nothing was sent`,
    "Check the file: a quote or a line break may be missing there. Otherwise split that line, or ask the person who runs " +
      "this server to raise TARGETING_MCP_MAX_LINE_MB.",
  );
}
