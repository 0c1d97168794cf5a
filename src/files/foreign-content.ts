import { extname } from "node:path";
import { FileError } from "../platform/files.ts";

export const AS_XLSX = "Open it in a spreadsheet program and save it as .xlsx or as CSV UTF-8.";

/** Matches the beginning of a page of HTML or XML, with or without a byte order mark. */
const PAGE =
  /^(?:\u00EF\u00BB\u00BF|\u00FF\u00FE|\u00FE\u00FF)?\s*(?:<(?:!doctype|!--|html|head|meta|style|body|table|\?xml)|MIME-Version:)/i;

/** Returns whether a file may be a protected workbook, or one from before 2007, also without its usual container. */
function isOldWorkbook(chunk: Uint8Array): boolean {
  const [first, version = 0, length = 0, zero] = chunk;
  if (first === 0xd0) return chunk[1] === 0xcf && chunk[2] === 0x11 && chunk[3] === 0xe0;
  return first === 0x09 && [0, 2, 4, 8].includes(version) && [4, 6, 8, 16].includes(length) && zero === 0;
}

/**
 * Throws a FileError if the first bytes of a file show that it is a page, a PDF, compressed, or a workbook that is
 * protected or old. The error says what to do.
 */
export function checkContent(chunk: Uint8Array, path: string): void {
  // The zero bytes are removed so that `PAGE` also matches a page in UTF-16.
  const first = Buffer.from(chunk.subarray(0, 200)).toString("latin1").replaceAll("\0", "");
  const quoted = JSON.stringify(path);
  const ending = extname(path).toLowerCase();
  if (isOldWorkbook(chunk) && (ending === ".xlsx" || ending === ".xlsm")) {
    throw new FileError(
      `${quoted} is protected by a password, or is really an old Excel workbook`,
      "Open it in Excel, remove the password (File, Info, Protect Workbook), and save it as .xlsx.",
    );
  }
  if (isOldWorkbook(chunk)) {
    const what =
      ending === ".xls" ? "is an old Excel workbook, which cannot be read" : "is really an old Excel workbook";
    throw new FileError(`${quoted} ${what}`, AS_XLSX);
  }
  if (PAGE.test(first)) throw new FileError(`${quoted} is really a page of HTML or XML`, AS_XLSX);
  if (first.startsWith("%PDF")) throw new FileError(`${quoted} is really a PDF`, AS_XLSX);
  if (first.startsWith("\u001F\u008B")) throw new FileError(`${quoted} is compressed`, "Unpack it first.");
}
