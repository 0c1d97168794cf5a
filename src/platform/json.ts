/** A value as a schema reads it, of which nothing is changed. */
export type Fixed<Value> = Value extends readonly (infer Item)[]
  ? readonly Fixed<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]: Fixed<Value[Key]> }
    : Value;

/** JSON text as a value; undefined where it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** How many elements of a long list are written at a time. */
const LIST_PIECE = 200;
/** Fields of fields of fields are written in one piece, unless they are long lists. */
const DEPTH = 2;

/** Plain data as JSON, in pieces: the text of a large value never stands in memory as a whole. */
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
