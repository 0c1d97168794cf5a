import { parseJson } from "./json.ts";

/** What parsing a JSON text would lose: digits of a number, or the first value of a repeated field. */
export type JsonFault = { readonly number: string } | { readonly twice: string };

/** Matches every text with a number that `isExact` rejects, and some other texts. */
const LONG_NUMBER = /\d{16}|\d[eE][+-]?\d/;
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[{}[\],]/g;

/** Returns the first fault in a valid JSON text. `value` is the value that was parsed from it. */
export function jsonFault(text: string, value: unknown): JsonFault | undefined {
  const colons = text.match(/"\s*:/g)?.length ?? 0;
  if (!LONG_NUMBER.test(text) && colons === fieldCount(value)) return undefined;
  const open: (Set<string> | undefined)[] = [];
  let isName = false;
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === "{" || token === "[") open.push(token === "{" ? new Set() : undefined);
    else if (token === "}" || token === "]") open.pop();
    else if (token.startsWith('"')) {
      if (isName) {
        const name = String(parseJson(token));
        if (open.at(-1)?.has(name) === true) return { twice: name };
        open.at(-1)?.add(name);
      }
    } else if (token !== "," && !isExact(token)) return { number: token };
    isName = token === "{" || (token === "," && open.at(-1) !== undefined);
  }
  return undefined;
}

function fieldCount(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const held = Object.values(value).reduce((sum: number, one) => sum + fieldCount(one), 0);
  return Array.isArray(value) ? held : held + Object.keys(value).length;
}

/** Returns whether parsing a number keeps its value. After a safe integer part, lost decimals are accepted. */
export function isExact(text: string): boolean {
  const number = Number(text);
  if (!Number.isFinite(number)) return false;
  if (number === 0) return !/[1-9]/.test(text.replace(/e.*$/i, ""));
  return Number.isSafeInteger(Math.trunc(number)) || digitsOf(text) === digitsOf(String(number));
}

/** Returns the significant digits of a number, without zeros at both ends. */
function digitsOf(text: string): string {
  return text
    .replace(/e.*$/i, "")
    .replaceAll(/[-+.]/g, "")
    .replaceAll(/^0+|0+$/g, "");
}
