/** A value parsed by a schema. All its fields and lists are readonly. */
export type Fixed<Value> = Value extends readonly (infer Item)[]
  ? readonly Fixed<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: Fixed<Value[Key]> }
    : Value;

export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What parsing a JSON text would change: a number that has no exact value, or a field of which only the last counts. */
export type JsonFault = { readonly number: string } | { readonly twice: string };

/** Matches what may be a number that is rounded. Most texts have none, so they are not searched further. */
const LONG_NUMBER = /\d{16}|\d[eE][+-]?\d/;
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[{}[\],]/g;

/** Returns the first fault in valid JSON. `value` is the value that was parsed from it. */
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

/** Returns whether a number keeps its value. Further digits after the decimal point may be lost. */
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

/** Returns the JSON text of a value with sorted keys. Values that differ only in their order have the same text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(withSortedKeys(value));
}

function withSortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedKeys);
  if (!isJsonObject(value)) return value;
  const sorted = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : Number(one > other)));
  return Object.fromEntries(sorted.map(([key, one]) => [key, withSortedKeys(one)]));
}

const LIST_PIECE = 200;
/** Values nested deeper than this are written in one piece, unless they are long lists. */
const DEPTH = 2;

/** Writes a value as JSON in pieces, so that the whole text is never in memory. */
export function* jsonPieces(value: unknown, depth = DEPTH): Generator<string> {
  if (Array.isArray(value) && value.length > LIST_PIECE) {
    for (let from = 0; from < value.length; from += LIST_PIECE) {
      const some = JSON.stringify(value.slice(from, from + LIST_PIECE));
      yield `${from === 0 ? "[" : ","}${some.slice(1, -1)}`;
    }
    yield "]";
  } else if (typeof value === "object" && value !== null && !Array.isArray(value) && depth > 0) {
    let before = "{";
    for (const [key, one] of Object.entries(value)) {
      if (one === undefined) continue;
      yield `${before}${JSON.stringify(key)}:`;
      yield* jsonPieces(one, depth - 1);
      before = ",";
    }
    yield before === "{" ? "{}" : "}";
  } else yield JSON.stringify(value);
}
