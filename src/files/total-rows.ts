import { CURRENCY, NO_VALUE } from "./damage.ts";
import { type SheetRecord, SUM_FORMULA } from "./delimited.ts";

/**
 * Words for totals in English, German, French, Spanish, Italian, Portuguese, Dutch, Turkish, Korean, Japanese and
 * Chinese.
 */
const TOTAL_WORDS = [
  "(?:grand |sub[- ]?|sous-|suma |eind)?tot(?:als?|aal|ale)(?: g[eé]n[eé]ral| geral| complessivo)?",
  ...["suma?", "som(?:me|ma)", "(?:gesamt|zwischen|teil)?summe", "gesamt", "(?:genel |ara )?toplam"],
  ...["총? ?합 ?계", "총 ?계", "소 ?계", "부분합", "계", "[合総總小]?計", "[合总小]计"],
].join("|");
/**
 * Matches the first filled cell of a row with totals. If the row has a formula that sums, cells such as "Nike Total"
 * (`TOTAL_OF`) also count.
 */
const TOTAL = new RegExp(`^(?:${TOTAL_WORDS}):?$`, "i");
/**
 * Matches a total with a label, such as "Total Colors". An option may have such a name, so the row counts as a total
 * only if its numbers are the sums.
 */
const LABELLED = new RegExp(`^(?:${TOTAL_WORDS}):?\\s+\\S|\\s(?:${TOTAL_WORDS}):?$`, "i");
const TOTAL_OF = new RegExp(`(?:^|\\s)(?:${TOTAL_WORDS}|(?:gesamt|teil)?ergebnis|요약):?$`, "i");
const CURRENCIES = new RegExp(CURRENCY, "gu");
const NUMBER = new RegExp(`^(?:[\\d.,'\\s%-]|${CURRENCIES.source})+$`, "u");

/** Matches a number of options with its unit, such as "5 rows". */
const COUNTED = /^\(?(\d+) ?(?:rows?|items?|options?|건|개|件|個)(?: in set| selected| affected)?\)?$/i;

function countIn(cell: string): number {
  return Number(COUNTED.exec(cell)?.[1] ?? cell);
}

/** Returns whether a cell is a number as people write it, with separators, a percent sign or a currency. */
export function isNumber(cell: string): boolean {
  return cell.length <= LONGEST && NUMBER.test(cell) && /\d/.test(cell);
}

const MONTH =
  "(?:jan|feb|fév|fev|mar|mär|mrz|apr|avr|abr|may|mai|jun|juin|jul|juil|aug|août|ago|sep|oct|okt|nov|dec|dez|dic)\\p{L}*\\.?";
/** Matches a date, with or without a time, as spreadsheets may show it. */
const DATE = new RegExp(
  `^(?:(?:\\p{L}+, )?(?:${[
    "(?:19|20)\\d\\d([-/.]) ?\\d{1,2}\\1 ?\\d{1,2}\\.?|\\d{1,2}([./])\\d{1,2}\\2\\d{2,4}",
    "(?:\\d{4}|\\p{Script=Han}{2}\\d{1,2})[년年] ?\\d{1,2}[월月] ?\\d{1,2}[일日]",
    `\\d{1,2}(?:\\.? |-)${MONTH}[ -]\\d{2,4}|${MONTH} \\d{1,2}, \\d{4}`,
  ].join("|")}))(?:[ T](?:오전 |오후 )?\\d{1,2}:\\d{2}(?::\\d{2})?(?: ?[AP]M)?)?$`,
  "iu",
);

/** Longer texts are neither numbers nor dates. */
const LONGEST = 100;

export function isDate(text: string): boolean {
  return text.length <= LONGEST && DATE.test(text);
}

/**
 * The kind of a row. `totalIfLast`: a total if it is the last row, otherwise an option. `notTotal`: an option, although
 * its name is a word for totals.
 */
export type RowKind = "option" | "total" | "totalIfLast" | "notTotal";

/** Recognizes rows with totals of the rows above. Needs all rows of a sheet in order. */
export class TotalRows {
  readonly #read: readonly boolean[];
  readonly #ids: readonly number[];
  readonly #columns = new Map<number, ColumnSum>();
  /** How many options there are so far (`#count`), and since the last total row (`#countBelow`). */
  #count = 0;
  #countBelow = 0;
  #hasDigits = false;

  /**
   * `read`: for each column, whether its heading is known, so that its cells are read. `ids` are the indexes of columns
   * with option IDs or Context IDs.
   */
  constructor(read: readonly boolean[], ids: readonly number[]) {
    this.#read = read;
    this.#ids = ids;
  }

  take(record: SheetRecord, isApart: boolean): RowKind {
    const kind = this.#kindOf(record, isApart);
    if (kind === "total") {
      this.#countBelow = 0;
      for (const column of this.#columns.values()) column.endBlock();
      return kind;
    }
    this.#count += 1;
    this.#countBelow += 1;
    for (const [at, cell] of record.cells.entries()) {
      const isRead = this.#read[at] === true;
      if (isRead && (this.#hasDigits || !this.#ids.includes(at))) continue;
      if (!isNumber(cell.trim())) continue;
      if (isRead) {
        this.#hasDigits = true;
        continue;
      }
      const column = this.#columns.get(at) ?? new ColumnSum();
      this.#columns.set(at, column);
      column.add(cell);
    }
    return kind;
  }

  /**
   * Returns the kind of a row. A row with totals starts with a word for totals, or has a formula that sums, and all
   * other filled cells are numbers. One of these must be the sum of its column, such a formula, or the number of
   * options. In a column with a known heading, only such a formula or the number of options is allowed. The last row
   * counts as totals even if no number can be compared, or if it comes after an empty row. A row with only the number
   * of options (`5 rows`) counts as totals, too.
   */
  #kindOf({ cells, sums: formulas }: SheetRecord, isApart: boolean): RowKind {
    const name = cells.find((cell) => cell.trim() !== "")?.trim() ?? "";
    const isAlone = cells.filter((cell) => cell.trim() !== "").length === 1;
    const isCount = this.#count >= FEWEST_ADDED && countIn(name) === this.#count;
    if (isCount && (isAlone ? COUNTED.test(name) : this.#isLabelledSum(cells))) return "total";
    if (formulas === undefined && !TOTAL.test(name) && LABELLED.test(name) && this.#isLabelledSum(cells))
      return "total";
    if (formulas === undefined && !TOTAL.test(name) && !cells.some((cell) => SUM_FORMULA.test(cell.trim())))
      return "option";
    const filled = cells.flatMap((cell, at) => (cell.trim() === "" ? [] : [{ cell: cell.trim(), at }]));
    const [first, ...others] = filled;
    const isSum = formulas !== undefined || others.some(({ cell }) => SUM_FORMULA.test(cell));
    const isFigure = ({ cell }: { readonly cell: string }): boolean =>
      cell === NO_VALUE || SUM_FORMULA.test(cell) || isNumber(cell) || COUNTED.test(cell);
    const isNamed = ({ at }: { readonly at: number }): boolean => this.#read[at] === true && formulas?.has(at) !== true;
    if (isSum && filled.every((one) => !isNamed(one) && isFigure(one))) return "total";
    if (first === undefined || others.length === 0 || !(isSum ? TOTAL_OF : TOTAL).test(first.cell)) return "option";
    if (!others.every(isFigure)) return "option";
    if (isSum) return "total";
    const counts = others.filter(({ at }) => this.#read[at] === true).map(({ cell }) => countIn(cell));
    if (!counts.every((count) => count === this.#count || (!this.#hasDigits && count === this.#countBelow))) {
      return "option";
    }
    // If Context IDs are numbers, a number below a single option is probably a Context ID, not a count of options.
    if (counts.length > 0 && this.#hasDigits && this.#count < FEWEST_ADDED) return "option";
    const sums = others.map(({ cell, at }) => this.#columns.get(at)?.compare(cell));
    const isCounted = counts.length === 0 || !this.#hasDigits;
    const isCounts = counts.length > 0 && this.#count >= FEWEST_ADDED && !sums.includes("different");
    if (isCounted && (isCounts || sums.includes("equal"))) return "total";
    return isApart || !sums.includes("different") || sums.includes("equal") ? "totalIfLast" : "notTotal";
  }

  /**
   * Returns whether all filled cells after the first are the sums of their columns. False if one of these columns has a
   * known heading.
   */
  #isLabelledSum(cells: readonly string[]): boolean {
    const filled = cells.flatMap((cell, at) => (cell.trim() === "" ? [] : [{ cell: cell.trim(), at }]));
    const numbers = filled.slice(1);
    return (
      this.#countBelow >= FEWEST_ADDED &&
      numbers.length > 0 &&
      numbers.every(
        ({ cell, at }) => this.#read[at] !== true && isNumber(cell) && this.#columns.get(at)?.compare(cell) === "equal",
      )
    );
  }
}

/** A labelled sum or a count needs at least this many rows above it. With a single row, equality proves little. */
const FEWEST_ADDED = 2;

/** The possible decimal signs of a number such as 1.250. The right one is the one with which the sum is correct. */
const DECIMALS = [",", "."] as const;

/**
 * The sums of a column, for each decimal sign: of all options (`all`), and of those since the last row with totals
 * (`below`).
 */
class ColumnSum {
  readonly #sums = DECIMALS.map((decimal) => ({ decimal, all: 0, below: 0, digits: 0 }));
  #count = 0;

  add(cell: string): void {
    this.#count += 1;
    for (const sum of this.#sums) {
      const { value, digits } = readNumber(cell, sum.decimal);
      sum.all += value;
      sum.below += value;
      sum.digits = Math.max(sum.digits, digits);
    }
  }

  /**
   * Returns whether the number of a cell nearly equals the sum of all options above it, or of those since the last row
   * with totals. Undefined if the column has cells that cannot be added, such as percentages.
   */
  compare(cell: string): "equal" | "different" | undefined {
    const compared = this.#sums.flatMap(({ decimal, all, below, digits }) => {
      const { value } = readNumber(cell, decimal);
      const isNear = (sum: number): boolean =>
        Math.abs(sum - value) <= Math.min(0.5 * (this.#count + 1) * 10 ** -digits, 0.005 * Math.abs(sum)) + 1e-6;
      return Number.isNaN(value + all) ? [] : [isNear(all) || isNear(below)];
    });
    if (compared.length === 0) return undefined;
    return compared.includes(true) ? "equal" : "different";
  }

  endBlock(): void {
    for (const sum of this.#sums) sum.below = 0;
  }
}

/**
 * Reads a number with this decimal sign, and counts the digits after it. The value is NaN for percentages and other
 * texts.
 */
function readNumber(cell: string, decimal: "," | "."): { readonly value: number; readonly digits: number } {
  const plain = cell.replace(CURRENCIES, "").replaceAll(decimal === "," ? /[.'\s]/g : /[,'\s]/g, "");
  const text = plain.replace(",", ".");
  return { value: Number(text), digits: text.includes(".") ? text.length - text.indexOf(".") - 1 : 0 };
}
