import { contextRows, optionRows } from "../../src/changes/rows/input-rows.ts";
import type { Encoding, Format } from "../../src/files/input-file.ts";
import { type GivenItem, itemsIn, type RowShape } from "../../src/files/rows.ts";
import type { ByteSource } from "../../src/platform/held-folder.ts";

/** Returns a content that arrives in pieces of `size` bytes. */
export function contentOf(content: string | Uint8Array, size = 7): ByteSource {
  const bytes = Buffer.from(content);
  return async function* () {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  };
}

/** How to read a file. */
interface As {
  readonly format?: Format;
  readonly encoding?: Encoding;
}

function reader<Item>(shape: RowShape<Item>) {
  return (content: string | Uint8Array, { format = "csv", encoding = "utf-8" }: As = {}) =>
    itemsIn(contentOf(content), { format, encoding, digest: "" }, shape);
}

export const readOptionFile = reader(optionRows);
export const readContextFile = reader(contextRows);

/** Returns the problem of an item that cannot be used; undefined if it can. */
export function problemOf(given: GivenItem<unknown> | undefined): unknown {
  return given !== undefined && "reason" in given ? (given.reason.detail?.problem ?? given.reason.code) : undefined;
}
