import { FileError } from "../platform/files.ts";

export type BoundedUnit = "line" | { readonly jsonDepth: number };

const MEGABYTE = 1_048_576;
const [NEWLINE, SPACE, QUOTE, BACKSLASH, COMMA] = [0x0a, 0x20, 0x22, 0x5c, 0x2c];
const OPENING: readonly number[] = [0x5b, 0x7b];
const CLOSING: readonly number[] = [0x5d, 0x7d];

/** Returns a function that checks the next bytes. It throws a FileError for the first unit over `mostBytes`. */
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
      if (isBlank && byte > SPACE && unitBytes > 0) {
        isBlank = false;
        unitLine = line;
      }
      if (unitBytes > mostBytes) throw tooLong(unitLine, mostBytes);
    }
  };
}

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
