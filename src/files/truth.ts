import { wordReader } from "./cells.ts";
import type { SheetForm } from "./input-file.ts";

/**
 * Whether an X and an empty circle mean yes in a column (see `SIGNS` in input-file.ts). A mark is absent if its meaning
 * is unclear.
 */
type Meanings = NonNullable<SheetForm["signs"]>[string];

const wordIn = wordReader<boolean | "x" | "o" | "tick" | "dot">([
  ["x", ["x", "ｘ", "×", "✕", "✖", "✗", "✘", "☒"]],
  ["o", ["o", "ｏ", "ㅇ", "○", "◯", "〇", "⭕"]],
  ["tick", ["✓", "✔", "☑", "✅", "v"]],
  ["dot", ["●", "•", "⚫"]],
  [
    true,
    ["yes", "true", "1", "y", "t", "예", "네", "ja", "j", "wahr", "oui", "vrai", "sí", "si", "sì", "s", "sim", "evet"],
  ],
  [true, ["はい", "是", "collection", "group", "그룹", "gruppe", "grupo", "groupe"]],
  [
    false,
    ["no", "false", "0", "n", "f", "❌", "☐", "아니오", "아니요", "nein", "falsch", "non", "faux", "não", "hayır"],
  ],
  [false, ["いいえ", "否", "atomic", "option", "옵션", "opción"]],
]);

/**
 * Returns a function that reads the cells of a column as yes or no: undefined if a cell is empty, null if it is neither
 * or unclear.
 */
export function truthReader(meanings: Meanings = {}): (cell: string) => boolean | undefined | null {
  return (cell) => {
    const word = wordIn(cell);
    if (word === "x" || word === "o") return meanings[word] ?? null;
    return word === "tick" || word === "dot" ? true : word;
  };
}

/** The columns whose cells mean yes or no. */
const COLUMNS = ["type", "exposeChildren"];

/** At most this many different cells of a column are compared. */
const MOST_CELLS = 100;

/** Finds out what the marks in columns with yes and no mean. */
export class Signs {
  readonly #columns: readonly { readonly column: string; readonly at: number; readonly cells: Set<string> }[];
  readonly #nameAt: number;
  #name = "";

  constructor(at: (column: string) => number) {
    this.#columns = COLUMNS.map((column) => ({ column, at: at(column), cells: new Set<string>() })).filter(
      (one) => one.at >= 0,
    );
    this.#nameAt = at("name");
  }

  take(cells: readonly string[]): void {
    if (this.#columns.length === 0) return;
    const name = cells[this.#nameAt] ?? "";
    // In a further row of the same option, an empty cell does not mean no.
    const isContinued = name !== "" && name === this.#name;
    this.#name = name;
    for (const { at, cells: known } of this.#columns) {
      const cell = cells[at] ?? "";
      if (known.size < MOST_CELLS && !(isContinued && cell.trim() === "")) known.add(cell);
    }
  }

  found(): Pick<SheetForm, "signs"> {
    const signs = this.#columns.flatMap(({ column, cells }) => {
      const meanings = meaningsIn(new Set([...cells].map(wordIn)));
      return Object.keys(meanings).length === 0 ? [] : [[column, meanings] as const];
    });
    return signs.length === 0 ? {} : { signs: Object.fromEntries(signs) };
  }
}

function meaningsIn(words: ReadonlySet<ReturnType<typeof wordIn>>): Meanings {
  const isMarked = words.has("o") || words.has("tick") || words.has("dot");
  const isClear = !words.has(true) && (isMarked ? !words.has(false) : words.has(false) || words.has(undefined));
  return {
    ...(words.has("x") && isClear && { x: !isMarked }),
    ...(words.has("o") && !words.has("dot") && { o: true }),
  };
}
