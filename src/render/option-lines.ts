import { shown, shownLast } from "./fence.ts";

/** An option as data of an answer. */
export type OptionRow = Readonly<Record<string, unknown>> & { readonly _id: string; readonly name: string };

/** One line about an option: its ID, its name, and what else the row says. */
export function optionLine({ _id, name, ...rest }: OptionRow): string {
  return [_id, shown(name), ...fieldWords(rest)].join(" ");
}

/** The fields of a record in words. */
export function fieldWords(fields: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.entries(fields).map(([field, value]) => `${field}=${plain(value)}`);
}

/** A line of a list, whose columns its heading names: ID, Context IDs, what is not the same for most, and the name. */
export function listLine({ _id, name, type, contextCount, parent, parentName, ...rest }: OptionRow): string {
  const { childCount, contextCountWithChildren, matched, contexts, ...fields } = rest;
  const all = contextCountWithChildren === undefined ? "" : `, ${plain(contextCountWithChildren)} with them`;
  const more = [
    type === "collection" && `group of ${childCount === undefined ? "?" : plain(childCount)}${all}`,
    typeof parentName === "string" && `in ${shown(parentName)}`,
    typeof parent === "string" && typeof parentName !== "string" && `in ${parent}`,
    Array.isArray(matched) && `holds ${plain(matched)}`,
    Array.isArray(contexts) && `first ${plain(contexts)}`,
    ...fieldWords(fields),
  ].filter((part) => part !== false);
  const count = contextCount === undefined ? "?" : plain(contextCount);
  // Quotes take a token in each of many lines, and are needed where something follows.
  return [`${_id}:${count}`, more.length > 0 ? shown(name) : shownLast(name), ...more].join(" ");
}

/** A list in brief: its IDs go without the beginning that all have, and groups are told by name alone. */
export interface BriefList {
  readonly beginning: string;
}

/**
 * Writes the rows of a list one after another; where those of another group begin, a line before them names it. A name
 * stands for one option of a targeting alone (management-api 8.3).
 */
export function listLines(brief?: BriefList): (row: OptionRow) => string {
  const known = new Map<string, unknown>();
  let last: string | undefined;
  return ({ parent, parentName, ...row }) => {
    const place =
      brief !== undefined && typeof parentName === "string"
        ? { key: parentName, words: `in ${shownLast(parentName)}` }
        : groupWords(parent, parentName, known);
    known.set(row.name, row._id);
    const line = listLine({ ...row, _id: row._id.slice(brief?.beginning.length) });
    const isAsBefore = place.key === last;
    last = place.key;
    return isAsBefore ? line : `${place.words}\n${line}`;
  };
}

/** The form of a list that takes the fewest tokens. Only the time within an ID is left out, which many IDs share. */
export function briefList(rows: readonly OptionRow[]): BriefList {
  const [first = "", ...others] = rows.map(({ _id }) => _id);
  let length = Math.min(first.length, ULID_TIME_LETTERS);
  for (const id of others) while (!id.startsWith(first.slice(0, length))) length -= 1;
  return { beginning: first.slice(0, length < FEWEST_LEFT_OUT ? 0 : length) };
}

const ULID_TIME_LETTERS = 10;
/** Fewer letters are not worth the sentence that names them. */
const FEWEST_LEFT_OUT = 3;

/** Names the group of sub-options: with its ID, unless its name stood for just this ID before. */
function groupWords(
  id: unknown,
  name: unknown,
  known: Map<string, unknown>,
): { readonly key: string | undefined; readonly words: string } {
  const key = typeof id === "string" ? id : typeof name === "string" ? name : undefined;
  if (key === undefined) return { key, words: "at the top level:" };
  if (typeof name !== "string") return { key, words: `in ${key}:` };
  const isKnown = key === name || known.get(name) === id;
  known.set(name, id);
  return { key, words: `in ${shown(name)}${isKnown ? "" : ` ${key}`}:` };
}

/** Text from the service is shown with care; numbers and flags are as they are. */
function plain(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(plain).join(",")}]`;
  if (typeof value === "string") return /^[\w.:+-]*$/.test(value) ? value : shown(value);
  return JSON.stringify(value);
}
