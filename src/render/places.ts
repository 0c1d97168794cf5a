import type { FailureDetail, PlaceRange } from "../runs/report.ts";

/** Places as a person counts: `line 501`, `lines 2-20, 35`, `item 1`, `items 1-5000`. */
export function placesWords(
  places: readonly PlaceRange[],
  { byLine, omitted = false }: { readonly byLine: boolean; readonly omitted?: boolean },
): string {
  const [first] = places;
  const isOne = places.length === 1 && first !== undefined && first[0] === first[1] && !omitted;
  const ranges = places.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`));
  const noun = byLine ? "line" : "item";
  return `${noun}${isOne ? "" : "s"} ${ranges.join(", ")}${omitted ? ", …" : ""}`;
}

/** Where something stands in the call: the line of a file, or the item counted from 1, and what it is within that. */
export function placeWords({ index, line, child, grandchild }: Omit<FailureDetail, "reason">): string {
  const within = [child, grandchild].flatMap((position) => (position === undefined ? [] : [`.${position + 1}`]));
  return `${line === undefined ? `item ${index + 1}` : `line ${line}`}${within.join("")}`;
}
