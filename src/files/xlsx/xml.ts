import { parser } from "sax";
import { FileError } from "../../platform/file-error.ts";
import { unreadableWorkbook } from "./archive.ts";

/** What is done with each element of a part; names are without their prefixes. */
export interface Elements {
  readonly open?: (name: string, attribute: (name: string) => string | undefined) => void;
  readonly text?: (text: string) => void;
  readonly close?: (name: string) => void;
}

/**
 * Reads the XML of a part, piece by piece; gives control back after each. Document types and entities are refused.
 * Throws a FileError where it is no XML.
 */
export async function* readXml(bytes: AsyncIterable<Uint8Array>, elements: Elements): AsyncGenerator<undefined> {
  const reader = parser(true, { position: false });
  reader.onopentag = ({ name, attributes }) => {
    elements.open?.(plain(name), (wanted) => {
      const value = attributes[wanted];
      return typeof value === "object" ? value.value : value;
    });
  };
  reader.ontext = (text) => elements.text?.(text);
  reader.oncdata = (text) => elements.text?.(text);
  reader.onclosetag = (name) => elements.close?.(plain(name));
  reader.ondoctype = () => {
    throw unreadableWorkbook("a part of it has a document type, which may define entities");
  };
  reader.onerror = (thrown) => {
    throw thrown;
  };
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    for await (const chunk of bytes) {
      reader.write(decoder.decode(chunk, { stream: true }));
      yield;
    }
    reader.write(decoder.decode()).close();
  } catch (thrown) {
    if (thrown instanceof FileError) throw thrown;
    throw unreadableWorkbook(thrown instanceof Error ? thrown.message : "it holds no XML", thrown);
  }
}

function plain(name: string): string {
  const colon = name.indexOf(":");
  return colon < 0 ? name : name.slice(colon + 1);
}

/** Reads the XML of a part to its end. */
export async function readWholeXml(bytes: AsyncIterable<Uint8Array>, elements: Elements): Promise<void> {
  for await (const _ of readXml(bytes, elements));
}

/** Characters that XML cannot hold are written as `_x000D_`. */
export function unescaped(text: string): string {
  return text.includes("_x")
    ? text.replaceAll(/_x([0-9A-Fa-f]{4})_/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
    : text;
}
