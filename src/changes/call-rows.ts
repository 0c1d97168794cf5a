import { type Rejected, rejectedRows } from "../files/rejects.ts";
import {
  type Given,
  givenItems,
  type InputFile,
  itemsIn,
  type Row,
  type RowShape,
  rowsOf,
  rowsOfItems,
} from "../files/rows.ts";
import type { ByteSource } from "../platform/bytes.ts";
import type { WriteCall } from "./call.ts";
import { contextRows } from "./rows/context-rows.ts";
import { optionRows } from "./rows/option-rows.ts";

/** The file of a call that has one. */
export function fileOf(call: WriteCall): InputFile | undefined {
  return "file" in call.input ? call.input.file : undefined;
}

/** What a call gives: its items, or those that `bytes`, the content of its file, holds. */
export async function givenIn<Item, Full extends Item>(
  { items, file }: { readonly items: readonly Item[]; readonly file?: InputFile | undefined },
  shape: RowShape<Full>,
  bytes: ByteSource | undefined,
): Promise<readonly Given<Item>[]> {
  if (file === undefined) return givenItems(items);
  if (bytes === undefined) throw new RangeError("a call with a file needs its content");
  return itemsIn(bytes, file, shape);
}

/** What a call gives, row by row. */
export function rowsIn<Item, Full extends Item>(
  { items, file }: { readonly items: readonly Item[]; readonly file?: InputFile | undefined },
  shape: RowShape<Full>,
  bytes: ByteSource | undefined,
): AsyncIterable<readonly Row<Item>[]> {
  if (file === undefined) return rowsOfItems(items);
  if (bytes === undefined) throw new RangeError("a call with a file needs its content");
  return rowsOf(bytes, file, shape);
}

/** The call with the items of its file in it, for whoever has to look at all of them. */
export async function withItems(call: WriteCall, bytes: ByteSource | undefined): Promise<WriteCall> {
  if (fileOf(call) === undefined) return call;
  if (call.tool === "bulk_add_options") {
    const given = await givenIn(call.input, optionRows, bytes);
    return { ...call, input: { ...call.input, items: itemsOf(given) } };
  }
  if (call.tool === "update_contexts") {
    const given = await givenIn(call.input, contextRows, bytes);
    return { ...call, input: { ...call.input, items: itemsOf(given) } };
  }
  return call;
}

function itemsOf<Item>(given: readonly Given<Item>[]): readonly Item[] {
  return given.flatMap((one) => ("reason" in one ? [] : [one.item]));
}

/** The rows of a call's file that failed, as its reject file has them; none where nothing failed. */
export async function* rejectsOf(call: WriteCall, bytes: ByteSource, rejected: Rejected): AsyncGenerator<string> {
  const file = fileOf(call);
  if (file === undefined || rejected.failed.size === 0) return;
  if (call.tool === "bulk_add_options") yield* rejectedRows(bytes, file, optionRows, rejected);
  if (call.tool === "update_contexts") yield* rejectedRows(bytes, file, contextRows, rejected);
}
