/** The type of a value that a schema has parsed, with all fields and lists readonly. */
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

/** Returns a value as JSON with sorted keys, so that equal values always have the same text. */
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
/** How many levels of objects are split. Deeper objects and lists of at most `LIST_PIECE` items are one piece each. */
const DEPTH = 2;

/** Writes a value as JSON in pieces, so that long lists in its upper levels are not completely in memory as text. */
export function* jsonPieces(value: unknown, depth = DEPTH): Generator<string> {
  if (Array.isArray(value) && value.length > LIST_PIECE) {
    for (let from = 0; from < value.length; from += LIST_PIECE) {
      const some = JSON.stringify(value.slice(from, from + LIST_PIECE));
      yield `${from === 0 ? "[" : ","}${some.slice(1, -1)}`;
    }
    yield "]";
  } else if (isJsonObject(value) && depth > 0) {
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
