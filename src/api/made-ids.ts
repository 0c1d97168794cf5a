/** A text in JSON, its quotes included. */
const TEXT = '"[^"\\\\]*(?:\\\\.[^"\\\\]*)*"';
const VALUE = `(?:${TEXT}|-?(?:0|[1-9]\\d*)(?:\\.\\d+)?|true|false|null)`;
/** A further field that says nothing about what became of the item. */
const FIELD = `,"(?!(?:_id|children|error|index|success|results)")\\w+":${VALUE}`;
const OPENING = '{"results":[';
const ITEM = new RegExp(`\\{"index":(\\d+),"success":true,"data":\\{"_id":"(\\w+)"(?:${FIELD})*\\}\\}`, "y");
const ENDING = new RegExp(`\\](?:${FIELD})*\\}\\s*$`, "y");

/**
 * The IDs in the answer to a bulk request of `count` items that all succeeded, in order, where it has the form that
 * management-api 2.3 shows, without anything inside the items that asks for a closer look. Undefined for any other
 * answer, which is to be read as JSON: for 5,000 items that takes four times as long.
 */
export function madeIds(body: Buffer, count: number): readonly string[] | undefined {
  // A byte is taken for a character: IDs and everything that is compared are ASCII.
  const text = body.toString("latin1");
  if (!text.startsWith(OPENING)) return undefined;
  const ids: string[] = [];
  let at = OPENING.length;
  while (ids.length < count) {
    if (ids.length > 0 && text[at++] !== ",") return undefined;
    ITEM.lastIndex = at;
    const [item, index, _id] = ITEM.exec(text) ?? [];
    if (item === undefined || _id === undefined || index !== String(ids.length)) return undefined;
    ids.push(_id);
    at += item.length;
  }
  ENDING.lastIndex = at;
  return ENDING.test(text) ? ids : undefined;
}
