import { nearestWord } from "../platform/near-words.ts";
import { HEADINGS, type Header, plainHeading, type ValidColumns } from "./columns.ts";

/**
 * Suggests headings for the required columns that the header lacks, and then for some optional ones: by column, the
 * heading. `shown`: the headings that may be suggested. Undefined if there is none for a required column.
 */
export function likelyMapping(
  header: Header,
  shown: readonly string[],
  { required, columns }: Pick<ValidColumns, "required" | "columns">,
): Readonly<Record<string, string>> | undefined {
  const likely: Record<string, string> = {};
  const among = new Set(shown);
  const free = new Set(header.ignored.filter((heading) => among.has(heading)));
  for (const group of required) {
    if (group.some((column) => header.at(column) >= 0)) continue;
    // A file more often has names than IDs of this service, so a heading for the name is searched first.
    for (const column of group.toSorted((one, other) => Number(one === "_id") - Number(other === "_id"))) {
      const found = similarHeading([...free], column);
      if (found === undefined) continue;
      likely[column] = found;
      free.delete(found);
      break;
    }
    const [only, ...others] = [...free];
    const isOpen = !group.some((column) => column in likely);
    if (isOpen && only !== undefined && others.length === 0 && group[0] !== undefined) {
      likely[group[0]] = only;
      free.delete(only);
    }
  }
  if (Object.keys(likely).length === 0) return undefined;
  // The columns below are optional. Similar headings are suggested for them as well, because their values would
  // otherwise be ignored.
  const isWithoutIds = header.at("contexts") < 0 && header.at("contextId") < 0;
  for (const column of [...(isWithoutIds ? ["contexts", "contextId"] : []), "parentName", "action", "op"]) {
    const isFree = columns.includes(column) && header.at(column) < 0 && !(column in likely);
    const found = isFree && !("contexts" in likely && column === "contextId") && similarHeading([...free], column);
    if (typeof found !== "string") continue;
    likely[column] = found;
    free.delete(found);
  }
  return likely;
}

/** Returns the first heading that resembles the name or a usual heading of a column. */
export function similarHeading(headings: readonly string[], column: string): string | undefined {
  const known = [column, ...(HEADINGS[column] ?? [])].map(plainHeading).filter((one) => one.length > 1);
  return headings.find((heading) => {
    const plain = plainHeading(heading);
    return nearestWord(plain, known) !== undefined || known.some((one) => one !== "id" && plain.includes(one));
  });
}
