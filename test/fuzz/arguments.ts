import fc from "fast-check";
import * as z from "zod";

const schema = z.looseObject({
  type: z.string().optional(),
  enum: z.array(z.unknown()).optional(),
  anyOf: z.array(z.unknown()).optional(),
  items: z.unknown().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
});

const TEXTS = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom(
    "",
    " ",
    "01JABCDEFGHJKMNPQRSTVWXYZ0",
    "01jabcdefghjkmnpqrstvwxyz0",
    "../../etc/passwd",
    "targeting://runs/x",
    "\u202Eevil\u0000",
    "[]",
    "{",
    "null",
    "가나",
    "purchase",
    "__proto__",
    "constructor",
  ),
);
/** Any JSON value. */
export const ANYTHING = fc.jsonValue({ maxDepth: 3 });

/** Values that match a schema, and sometimes others. */
export function valuesOf(given: unknown): fc.Arbitrary<unknown> {
  const { type, enum: words, anyOf, items, properties } = schema.parse(given);
  const fitting = (): fc.Arbitrary<unknown> => {
    if (words !== undefined) return fc.constantFrom(...words);
    if (anyOf !== undefined) return fc.oneof(...anyOf.map(valuesOf));
    if (type === "array") return fc.array(items === undefined ? ANYTHING : valuesOf(items), { maxLength: 4 });
    if (type === "object") {
      const fields = Object.entries(properties ?? {}).map(([name, field]) => [name, valuesOf(field)] as const);
      return fc.record(Object.fromEntries(fields), { requiredKeys: [] });
    }
    if (type === "boolean") return fc.boolean();
    if (type === "integer" || type === "number") return fc.oneof(fc.integer(), fc.double({ noNaN: true }));
    return TEXTS;
  };
  return fc.oneof({ arbitrary: fitting(), weight: 12 }, { arbitrary: ANYTHING, weight: 1 });
}

/**
 * Arguments that can never match a schema: not an object, an unknown field, or a field with a wrong type, if
 * `isChecked`.
 */
export function misfitsOf(given: unknown, isChecked: (field: string) => boolean = () => true): fc.Arbitrary<unknown> {
  const { properties = {} } = schema.parse(given);
  const fields = Object.entries(properties).map(([name, field]) => [name, valuesOf(field)] as const);
  const some = fc.record(Object.fromEntries(fields), { requiredKeys: [] });
  const unknown = fc.stringMatching(/^[a-z_]{1,12}X$/);
  const noObject = fc.oneof(
    fc.array(ANYTHING, { minLength: 1 }),
    fc.integer(),
    fc.boolean(),
    fc.string({ minLength: 1 }),
  );
  const extra = fc.tuple(some, unknown, ANYTHING).map(([args, name, value]) => ({ ...args, [name]: value }));
  const wrong = Object.entries(properties).flatMap(([name, field]) => {
    const value = outside(field);
    return value === undefined || !isChecked(name) ? [] : [some.map((args) => ({ ...args, [name]: value }))];
  });
  return fc.oneof(noObject, extra, ...wrong);
}

/** Returns a value that has none of the types of a field and is not a text that could be read as one. */
function outside(field: unknown): unknown {
  const { type, enum: words, anyOf } = schema.parse(field);
  if (anyOf !== undefined || (words === undefined && type === undefined)) return undefined;
  if (type === "string" || words !== undefined) return { not: "a text" };
  return "neither a number nor JSON";
}
