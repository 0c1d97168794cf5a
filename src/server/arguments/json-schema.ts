import * as z from "zod";

/** A JSON Schema, as plain data. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The JSON Schema that is advertised for arguments or answers: small, and in a form that strict clients accept. */
export function advertised(schema: z.ZodObject, io: "input" | "output"): JsonSchema {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { io });
  return simplifiedObject(json);
}

/** Whether a value is a JSON Schema written as an object. */
export function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The schemas that a value may follow: references followed, alternatives side by side. */
export function formsOf(schema: JsonSchema, root: JsonSchema): readonly JsonSchema[] {
  if (typeof schema.$ref === "string") {
    const target = schema.$ref.split("/").slice(1).reduce(stepInto, root);
    return isSchema(target) ? formsOf(target, root) : [];
  }
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (!Array.isArray(alternatives)) return [schema];
  return alternatives.filter(isSchema).flatMap((alternative) => formsOf(alternative, root));
}

function stepInto(node: unknown, name: string): unknown {
  return isSchema(node) && Object.hasOwn(node, name) ? node[name] : undefined;
}

function simplified(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(simplified);
  return isSchema(node) ? simplifiedObject(node) : node;
}

function simplifiedObject(node: JsonSchema): JsonSchema {
  const kept = Object.entries(node).filter(([keyword, value]) => !saysNothing(keyword, value));
  const parts: Record<string, unknown> = {};
  for (const [keyword, value] of kept) {
    // Here the keys are names of fields, not keywords.
    const isNamed = (keyword === "properties" || keyword === "$defs") && isSchema(value);
    parts[keyword] = isNamed ? mapped(value) : simplified(value);
  }
  // Some clients refuse an object of which nothing is said.
  if (parts.type === "object" && parts.properties === undefined && parts.additionalProperties === undefined) {
    parts.additionalProperties = true;
  }
  if (!Array.isArray(parts.type)) return parts;
  // Some clients read only a single type.
  const { type, ...rest } = parts;
  return { ...rest, anyOf: parts.type.map((one: unknown) => ({ type: one })) };
}

function mapped(named: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, simplified(schema)]));
}

/** The bounds of `z.int()`, and what is the default: openness, no properties. */
function saysNothing(keyword: string, value: unknown): boolean {
  if (keyword === "minimum") return value === Number.MIN_SAFE_INTEGER;
  if (keyword === "maximum") return value === Number.MAX_SAFE_INTEGER;
  const isEmpty = isSchema(value) && Object.keys(value).length === 0;
  return isEmpty && (keyword === "additionalProperties" || keyword === "properties");
}
