import type { InputFile } from "../files/input-file.ts";
import { type GivenItem, givenItems, itemsIn, type Row, type RowShape, rowsOf, rowsOfItems } from "../files/rows.ts";
import type { ByteSource } from "../platform/bytes.ts";

/** The content of a call: items, or a file that holds them. */
interface CallContent<Item> {
  readonly items: readonly Item[];
  readonly file?: InputFile | undefined;
}

/** The items of a call, or those in its file, whose content is `bytes`; an unusable row gives its reason. */
export async function givenIn<Item, Full extends Item>(
  { items, file }: CallContent<Item>,
  shape: RowShape<Full>,
  bytes: ByteSource | undefined,
): Promise<readonly GivenItem<Item>[]> {
  return file === undefined ? givenItems(items) : itemsIn(contentOf(bytes), file, shape);
}

/** The usable items of a call. */
export async function itemsOf<Item, Full extends Item>(
  rows: CallContent<Item>,
  shape: RowShape<Full>,
  bytes: ByteSource | undefined,
): Promise<readonly Item[]> {
  return (await givenIn(rows, shape, bytes)).flatMap((one) => ("reason" in one ? [] : [one.item]));
}

/** The items of a call as rows, piece by piece. */
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
