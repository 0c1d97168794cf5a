import { isExact } from "../platform/exact-json.ts";
import { CURRENCY } from "./damage.ts";
import type { SheetForm } from "./input-file.ts";

const AROUND = new RegExp(`(?<=^-?)(?:${CURRENCY})\\s*(?=[-\\d])|(?<=\\d)\\s*(?:${CURRENCY})$`, "gu");
/** Matches a negative number in parentheses, as accountants write it. */
const NEGATIVE = new RegExp(`^(?:${CURRENCY})?\\s*\\((?!\\s*-)([^()]+)\\)\\s*(?:${CURRENCY})?$`, "u");
const LIKE_NUMBER = new RegExp(`^(?=\\D*\\d)(?:[\\d.,'’\\s%‰()+-]|${CURRENCY})+$`, "u");
/** Longer texts are no numbers. Without this limit, the time to read one would grow with the square of its length. */
const LONGEST = 100;

/** Returns a number without its currency, and without spaces or apostrophes between thousands. */
function bareNumber(text: string): string {
  if (text.length > LONGEST) return text;
  return plainSigns(text)
    .trim()
    .replace(NEGATIVE, "-$1")
    .replaceAll(AROUND, "")
    .replaceAll(/(?<=^-?\d{1,3}(?:[\s'’]\d{3})*)[\s'’](?=\d{3}(?!\d))/g, "");
}

function plainSigns(text: string): string {
  return text.replaceAll(/[０-９．，％]/g, (wide) => wide.normalize("NFKC")).replaceAll("−", "-");
}

/** Returns whether a text has only what people write in numbers, such as 12% and 10-20. */
export function isLikeNumber(text: string): boolean {
  return text.length <= LONGEST && LIKE_NUMBER.test(plainSigns(text));
}

type DecimalSign = "," | ".";

/** For each decimal sign, matches numbers that show it: for the comma, numbers such as 1,5 and 1.250.000. */
const CLEAR: readonly (readonly [DecimalSign, RegExp])[] = [
  [",", /^-?(?:\d+,(?:\d{1,2}|\d{4,})|(?:0|\d{4,}),\d{3}|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,})$/],
  [".", /^-?(?:\d+\.(?:\d{1,2}|\d{4,})|(?:0|\d{4,})\.\d{3}|\d{1,3}(?:,\d{3})+\.\d+|\d{1,3}(?:,\d{3}){2,})$/],
];
/** Matches numbers such as 1.250 and 1,250, which may mean 1250 as well as 1.25. */
const UNCLEAR = /^-?[1-9]\d{0,2}[.,]\d{3}$/;
/**
 * Matches an amount such as 1,250원. Its currency has no decimals, so the comma or point can only separate thousands.
 */
const WHOLE = /^(?:[₩￦] ?-?\d{1,3}[.,]\d{3}|-?\d{1,3}[.,]\d{3} ?[원円])$/;

/** Matches numbers that can be parsed at once. Most numbers are like this. */
const PLAIN = /^\d{1,9}(?:\.\d{1,2})?$/;

function decimalSignOf(bare: string): DecimalSign | undefined {
  return CLEAR.find(([, form]) => form.test(bare))?.[0];
}

/** The form of numbers in a column. `decimal` is absent if the sheet does not show it, or if no number is unclear. */
export interface NumberForm {
  readonly decimal?: DecimalSign | undefined;
  readonly delimiter?: string | undefined;
}

/** Returns the form of the numbers in a column. */
export function numberForm(
  column: string,
  {
    decimalCommas = [],
    decimalPoints = [],
    delimiter,
  }: Pick<SheetForm, "decimalCommas" | "decimalPoints" | "delimiter">,
): NumberForm {
  const decimal = decimalCommas.includes(column) ? "," : decimalPoints.includes(column) ? "." : undefined;
  return { decimal, delimiter };
}

/**
 * Reads a number. Accepts 1.250,00, $1,250.00 and (5.00). Undefined if the text is no number, or one that JavaScript
 * would round. Also undefined if `decimal` is absent and the number can be read in two ways: 1,250; or 1.250 with a
 * currency or in a file separated by semicolons.
 */
export function numberIn(text: string, { decimal, delimiter }: NumberForm): number | undefined {
  if (PLAIN.test(text)) return Number(text);
  const bare = bareNumber(text);
  let sign = decimalSignOf(bare);
  if (sign === undefined && UNCLEAR.test(bare)) {
    const isPlain = bare.includes(".") && bare === text && delimiter !== ";";
    sign = WHOLE.test(text) ? otherSign(bare) : (decimal ?? (isPlain ? "." : undefined));
    if (sign === undefined) return undefined;
  }
  const plain =
    sign === "," ? bare.replaceAll(".", "").replace(",", ".") : bare.replaceAll(sign === "." ? "," : "", "");
  return plain !== "" && isExact(plain) ? Number(plain) : undefined;
}

/**
 * Returns the decimal sign for an amount without decimals, such as 1,250원: of the comma and the point, the one that it
 * does not contain.
 */
function otherSign(bare: string): DecimalSign {
  return bare.includes(",") ? "." : ",";
}

/** Finds out which sign the numbers of a sheet have before their decimals. */
export class DecimalSigns {
  readonly #columns: readonly { readonly column: string; readonly at: number }[];
  readonly #isWorkbook: boolean;
  readonly #commas = new Set<string>();
  readonly #points = new Set<string>();
  #hasUnclear = false;

  /** `names` are the columns of the sheet, by index. */
  constructor(names: readonly string[], isNumeric: ((column: string) => boolean) | undefined, isWorkbook: boolean) {
    this.#columns = names.flatMap((column, at) => (column !== "" && isNumeric?.(column) ? [{ column, at }] : []));
    this.#isWorkbook = isWorkbook;
  }

  take(cells: readonly string[]): void {
    for (const { column, at } of this.#columns) {
      const cell = cells[at] ?? "";
      if (!/[.,．，]/.test(cell)) continue;
      const bare = bareNumber(cell);
      const sign = decimalSignOf(bare);
      if (sign === ",") this.#commas.add(column);
      // A workbook stores numbers with a point, however its program shows them.
      if (sign === "." && !(this.#isWorkbook && !bare.includes(","))) this.#points.add(column);
      this.#hasUnclear ||= UNCLEAR.test(bare);
    }
  }

  /**
   * Returns the columns with each decimal sign. Empty if no number is unclear. If all clear numbers of a sheet have the
   * same sign, it applies to all columns. Otherwise, each column counts by itself.
   */
  found(): Pick<SheetForm, "decimalCommas" | "decimalPoints"> {
    const [commas, points] = [this.#commas, this.#points];
    if (!this.#hasUnclear || commas.size + points.size === 0) return {};
    const all = this.#columns.map(({ column }) => column);
    if (points.size === 0) return { decimalCommas: all };
    if (commas.size === 0) return { decimalPoints: all };
    return {
      decimalCommas: all.filter((column) => commas.has(column) && !points.has(column)),
      decimalPoints: all.filter((column) => points.has(column) && !commas.has(column)),
    };
  }
}
