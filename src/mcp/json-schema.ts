import * as z from "zod";
import { isJsonObject } from "../platform/json.ts";

/** A JSON Schema, as plain data. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The JSON Schema that is advertised for arguments or answers: small, and in a form that strict clients accept. */
export function advertised(schema: z.ZodObject, io: "input" | "output"): JsonSchema {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { io });
  return simplifiedObject(json);
}

/** Returns the schemas that a value may match: references are resolved, and alternatives are listed. */
export function schemaAlternatives(schema: JsonSchema, root: JsonSchema): readonly JsonSchema[] {
  if (typeof schema.$ref === "string") {
    const target = schema.$ref.split("/").slice(1).reduce(stepInto, root);
    return isJsonObject(target) ? schemaAlternatives(target, root) : [];
  }
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (!Array.isArray(alternatives)) return [schema];
  return alternatives.filter(isJsonObject).flatMap((alternative) => schemaAlternatives(alternative, root));
}

function stepInto(node: unknown, name: string): unknown {
  return isJsonObject(node) && Object.hasOwn(node, name) ? node[name] : undefined;
}

function simplified(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(simplified);
  return isJsonObject(node) ? simplifiedObject(node) : node;
}

function simplifiedObject(node: JsonSchema): JsonSchema {
  const kept = Object.entries(node).filter(([keyword, value]) => !saysNothing(keyword, value));
  const parts: Record<string, unknown> = {};
  for (const [keyword, value] of kept) {
    // Here the keys are names of fields, not keywords.
    const isNamed = (keyword === "properties" || keyword === "$defs") && isJsonObject(value);
    parts[keyword] = isNamed ? mapped(value) : simplified(value);
  }
  // Some clients refuse an object schema without any keyword.
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

/** Returns whether a keyword only states a default: the bounds of `z.int()`, openness, or no properties. */
function saysNothing(keyword: string, value: unknown): boolean {
  if (keyword === "minimum") return value === Number.MIN_SAFE_INTEGER;
  if (keyword === "maximum") return value === Number.MAX_SAFE_INTEGER;
  const isEmpty = isJsonObject(value) && Object.keys(value).length === 0;
  return isEmpty && (keyword === "additionalProperties" || keyword === "properties");
}

const [QUOTE = 0, BACKSLASH = 0, COLON = 0, COMMA = 0, SPACE = 0] = Buffer.from('"\\:, ');
const [OPEN_LIST = 0, CLOSE_LIST = 0, OPEN_OBJECT = 0, CLOSE_OBJECT = 0] = Buffer.from("[]{}");

/** The maximum number of values in one message: parsed, each takes many times its size in bytes. */
export const MAX_VALUES = 1_000_000;
/** The maximum number of members of one object, far more than any tool accepts. */
export const MAX_MEMBERS = 10_000;

/**
 * Counts the values that parsing a JSON text would create, from its bytes, to slightly above `most`. For invalid JSON
 * it counts at least the values before the error.
 */
export function valuesIn(json: Uint8Array, most: number): number {
  let values = 0;
  // A name counts as a value until its colon follows: one value above `most` may still turn out to be a name.
  for (let at = 0; at < json.length && values <= most + 1; at += 1) {
    const byte = json[at] ?? SPACE;
    if (byte === COLON) values -= 1;
    else if (byte === QUOTE) {
      values += 1;
      at = endOfString(json, at);
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) values += 1;
    else if (!endsWord(byte)) {
      values += 1;
      at = endOfWord(json, at);
    }
  }
  return values;
}

/**
 * Counts the members of the largest object in a JSON text, up to one more than `most`: many members cost far more than
 * as many values in a list.
 */
export function membersIn(json: Uint8Array, most: number): number {
  /** The member counts of the objects that are open here, outermost first. */
  const open: number[] = [];
  let largest = 0;
  for (let at = 0; at < json.length && largest <= most; at += 1) {
    const byte = json[at];
    if (byte === QUOTE) at = endOfString(json, at);
    else if (byte === OPEN_OBJECT) open.push(0);
    else if (byte === CLOSE_OBJECT) open.pop();
    else if (byte === COLON) {
      const members = (open.pop() ?? 0) + 1;
      open.push(members);
      largest = Math.max(largest, members);
    }
  }
  return largest;
}

function endOfString(json: Uint8Array, from: number): number {
  let at = from + 1;
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
  return at;
}

function endOfWord(json: Uint8Array, from: number): number {
  let at = from;
  while (at + 1 < json.length && !endsWord(json[at + 1] ?? SPACE)) at += 1;
  return at;
}

function endsWord(byte: number): boolean {
  return byte <= SPACE || byte === COMMA || byte === CLOSE_LIST || byte === CLOSE_OBJECT || isOpening(byte);
}

function isOpening(byte: number): boolean {
  return byte === QUOTE || byte === COLON || byte === OPEN_LIST || byte === OPEN_OBJECT;
}
