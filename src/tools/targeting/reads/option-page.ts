import type { Hit } from "../../../reading/option-scan.ts";
import { rowsThatFit, tokensOf, writeCursor } from "../../../render/page.ts";
import { listLines, type OptionRow, type OptionsTotals, optionRow, optionsText } from "../../../render/reading.ts";
import type { ToolContext } from "../../context.ts";
import type { ToolAnswer } from "../../definition.ts";

/** Options in order, and what is known of the list that they are of. */
export interface Part<Position> extends OptionsTotals {
  /** Each with the position behind it. */
  readonly hits: readonly (Hit & { readonly behind: Position })[];
  /** Where more would be, behind all hits; undefined where there is no more. */
  readonly next: Position | undefined;
  /** How many options the caller wanted. */
  readonly limit: number;
}

/** Rows as the caller asked for them; `contexts`, by ID, are the first Context IDs of options. */
export function rowsOf(
  hits: readonly Hit[],
  detail: "concise" | "detailed",
  contexts: ReadonlyMap<string, readonly string[]> = new Map(),
): readonly OptionRow[] {
  return hits.map(({ step: { option, groupName, countWithChildren }, matched }) => {
    const first = contexts.get(option._id);
    return {
      ...optionRow(option, detail),
      ...(groupName !== undefined && { parentName: groupName }),
      ...(option.type === "collection" &&
        countWithChildren !== undefined && { contextCountWithChildren: countWithChildren }),
      ...(matched !== undefined && { matched }),
      ...(first !== undefined && { contexts: first }),
    };
  });
}

/** As many options as an answer can hold, with a note that says why there are no more, and a cursor where there are. */
export function optionsAnswer<Position>(
  query: unknown,
  part: Part<Position>,
  all: readonly OptionRow[],
  { environment }: Pick<ToolContext, "environment">,
): ToolAnswer {
  const { hits, next, limit, isFiltered } = part;
  const { total, topLevel, subOptions, scanned, complete } = part;
  const counts = { total, topLevel, subOptions, scanned, complete };
  const answer = (rows: readonly OptionRow[], cursor: string | undefined, note: string | undefined): ToolAnswer => ({
    structured: { environment, options: rows, ...told({ ...counts, cursor, note }) },
    text: optionsText({ rows, ...counts, note, cursor, isFiltered }),
    isError: false,
  });
  const position = hits.at(-1)?.behind ?? next;
  const cursor = position && writeCursor(query, position);
  const bare = tokensOf(JSON.stringify(answer([], cursor, undefined).structured)) + tokensOf(cursor ?? "");
  const frame = bare + 2 * tokensOf(part.note ?? "") + SENTENCES_TOKENS;
  const rows = all.slice(0, rowsThatFit(all, listLines(), null, frame));
  const behind = rows.length < all.length ? hits[rows.length - 1]?.behind : next;
  const note = rows.length < all.length ? fullNote(rows.length, Math.min(limit, all.length)) : part.note;
  return answer(rows, behind && writeCursor(query, behind), note);
}

/** The heading, the fence, the words before the cursor, and twice the note of a full page, with numbers of any size. */
const SENTENCES_TOKENS = 125;

function fullNote(shown: number, wanted: number): string {
  return `This page ends after ${shown} of ${wanted}: an answer holds no more.`;
}

function told(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
