import {
  type GivenItem,
  givenItems,
  type InputFile,
  itemsIn,
  type Row,
  type RowShape,
  rowsOf,
  rowsOfItems,
} from "../files/rows.ts";
import type { ByteSource } from "../platform/bytes.ts";

/** What a call gives: items, or a file that holds them. */
interface CallContent<Item> {
  readonly items: readonly Item[];
  readonly file?: InputFile | undefined;
}

/** What a call gives: its items, or those that `bytes`, the content of its file, holds. */
export async function givenIn<Item, Full extends Item>(
  { items, file }: CallContent<Item>,
  shape: RowShape<Full>,
  bytes: ByteSource | undefined,
): Promise<readonly GivenItem<Item>[]> {
  return file === undefined ? givenItems(items) : itemsIn(contentOf(bytes), file, shape);
}

/** The items of a call that can be read. */
export async function itemsOf<Item, Full extends Item>(
  rows: CallContent<Item>,
  shape: RowShape<Full>,
  bytes: ByteSource | undefined,
): Promise<readonly Item[]> {
  return (await givenIn(rows, shape, bytes)).flatMap((one) => ("reason" in one ? [] : [one.item]));
}

/** What a call gives, row by row. */
export function rowsIn<Item, Full extends Item>(
  { items, file }: CallContent<Item>,
  shape: RowShape<Full>,
  bytes: ByteSource | undefined,
): AsyncIterable<readonly Row<Item>[]> {
  return file === undefined ? rowsOfItems(items) : rowsOf(contentOf(bytes), file, shape);
}

function contentOf(bytes: ByteSource | undefined): ByteSource {
  if (bytes === undefined) throw new RangeError("a call with a file needs its content");
  return bytes;
}
