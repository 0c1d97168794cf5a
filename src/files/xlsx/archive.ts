import { parser } from "sax";
import { type Entry, fromBuffer, type ZipFile } from "yauzl";
import { FileError } from "../../platform/files.ts";
import { messageOf } from "../../platform/text.ts";

const MAX_PARTS = 10_000;
const MEGABYTE = 1_048_576;
/** The most bytes to unpack from one archive. A part that is unpacked twice counts twice. */
const MAX_UNPACKED_BYTES = 1024 * MEGABYTE;
/** The largest text or tag. In spreadsheet programs, a cell has at most 32,767 characters. */
const MAX_PIECE_BYTES = MEGABYTE;
const MAX_DEPTH = 100;

export interface Archive {
  readonly names: readonly string[];
  /** Yields the unpacked bytes of a part; nothing if there is no such part. Throws a FileError if it is too large. */
  readonly part: (name: string, mostBytes: number) => AsyncGenerator<Uint8Array>;
}

const DAMAGED = "Open it in a spreadsheet program and save it again as .xlsx, or as CSV UTF-8.";

export function unreadableWorkbook(why: string, cause?: unknown): FileError {
  return new FileError(`the workbook cannot be read: ${why}`, DAMAGED, { cause });
}

/**
 * Opens a ZIP archive. Throws a FileError if it is damaged or has too many parts, or if a part's name is invalid or
 * occurs twice.
 */
export async function openArchive(packed: Buffer, mostBytes = MAX_UNPACKED_BYTES): Promise<Archive> {
  const zip = await opened(packed);
  const entries = new Map<string, Entry>();
  await new Promise<void>((resolve, reject) => {
    zip.on("entry", (entry) => {
      if (entries.size >= MAX_PARTS) reject(unreadableWorkbook(`it has more than ${MAX_PARTS} parts`));
      else if (entries.has(entry.fileName)) reject(unreadableWorkbook("two of its parts have the same name"));
      else {
        entries.set(entry.fileName, entry);
        zip.readEntry();
      }
    });
    zip.on("end", resolve);
    zip.on("error", (thrown: Error) => reject(unreadableWorkbook(thrown.message, thrown)));
    zip.readEntry();
  });
  let left = mostBytes;
  return {
    names: [...entries.keys()],
    part: async function* (name, mostOfPart) {
      const entry = entries.get(name);
      if (entry === undefined) return;
      for await (const chunk of unpacked(zip, entry, mostOfPart)) {
        left -= chunk.length;
        if (left < 0) throw tooLarge("the workbook", mostBytes);
        yield chunk;
      }
    },
  };
}

function opened(packed: Buffer): Promise<ZipFile> {
  return new Promise((resolve, reject) => {
    const options = { lazyEntries: true, autoClose: false, strictFileNames: true, validateEntrySize: true } as const;
    fromBuffer(packed, options, (thrown, zip) => {
      if (thrown === null) resolve(zip);
      else reject(unreadableWorkbook(thrown.message, thrown));
    });
  });
}

async function* unpacked(zip: ZipFile, entry: Entry, mostBytes: number): AsyncGenerator<Uint8Array> {
  const named = `the workbook's part ${JSON.stringify(entry.fileName)}`;
  if (entry.uncompressedSize > mostBytes) throw tooLarge(named, mostBytes);
  const stream = await new Promise<AsyncIterable<unknown>>((resolve, reject) => {
    zip.openReadStream(entry, (thrown, found) => {
      if (thrown === null) resolve(found);
      else reject(unreadableWorkbook(thrown.message, thrown));
    });
  });
  let size = 0;
  try {
    for await (const chunk of stream) {
      if (!(chunk instanceof Uint8Array)) continue;
      size += chunk.length;
      if (size > mostBytes) throw tooLarge(named, mostBytes);
      yield chunk;
    }
  } catch (thrown) {
    throw thrown instanceof FileError ? thrown : unreadableWorkbook(messageOf(thrown), thrown);
  }
}

function tooLarge(what: string, mostBytes: number): FileError {
  return new FileError(
    `${what} has more than ${mostBytes / MEGABYTE} MB when it is unpacked`,
    "Save only the sheet that is needed as CSV UTF-8, or split the workbook.",
  );
}

/**
 * Called for each element of an XML part. Names come without their namespace prefix. `attribute(":name")` finds an
 * attribute with any prefix.
 */
export interface Elements {
  readonly open?: (name: string, attribute: (name: string) => string | undefined) => void;
  readonly text?: (text: string) => void;
  readonly close?: (name: string) => void;
}

/**
 * Reads a part as XML. Throws a FileError if it is not XML, if it declares a document type or entities, or if a text, a
 * tag or the nesting is larger than in files of spreadsheet programs.
 */
export async function* readXml(bytes: AsyncIterable<Uint8Array>, elements: Elements): AsyncGenerator<undefined> {
  const reader = parser(true, { position: false });
  let [depth, pieceBytes] = [0, 0];
  reader.onopentag = ({ name, attributes }) => {
    pieceBytes = 0;
    depth += 1;
    if (depth > MAX_DEPTH) throw unreadableWorkbook(`one of its parts has more than ${MAX_DEPTH} nested tags`);
    elements.open?.(plain(name), (wanted) => {
      const isAny = wanted.startsWith(":");
      const value = attributes[isAny ? (Object.keys(attributes).find((one) => one.endsWith(wanted)) ?? "") : wanted];
      return typeof value === "object" ? value.value : value;
    });
  };
  reader.ontext = (text) => elements.text?.(text);
  reader.oncdata = (text) => elements.text?.(text);
  reader.onclosetag = (name) => {
    pieceBytes = 0;
    depth -= 1;
    elements.close?.(plain(name));
  };
  reader.ondoctype = () => {
    throw unreadableWorkbook(
      "one of its parts declares a document type, which is refused because it can define entities",
    );
  };
  reader.onerror = (thrown) => {
    throw thrown;
  };
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    for await (const chunk of bytes) {
      pieceBytes += chunk.length;
      reader.write(decoder.decode(chunk, { stream: true }));
      if (pieceBytes > MAX_PIECE_BYTES)
        throw unreadableWorkbook(`a text or tag in it has more than ${MAX_PIECE_BYTES / MEGABYTE} MB`);
      yield;
    }
    reader.write(decoder.decode()).close();
  } catch (thrown) {
    if (thrown instanceof FileError) throw thrown;
    throw unreadableWorkbook(thrown instanceof Error ? thrown.message : "one of its parts is not XML", thrown);
  }
}

function plain(name: string): string {
  const colon = name.indexOf(":");
  return colon < 0 ? name : name.slice(colon + 1);
}

export async function readWholeXml(bytes: AsyncIterable<Uint8Array>, elements: Elements): Promise<void> {
  for await (const _ of readXml(bytes, elements));
}

/** Decodes codes such as `_x000D_`, which stand for characters that XML does not allow. */
export function unescaped(text: string): string {
  return text.includes("_x")
    ? text.replaceAll(/_x([0-9A-Fa-f]{4})_/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
    : text;
}
