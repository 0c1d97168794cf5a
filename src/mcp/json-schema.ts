import * as z from "zod";
import { isJsonObject } from "../platform/json.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Returns the JSON Schema that is listed for arguments or results: short, and in a form that strict clients accept. */
export function advertised(schema: z.ZodObject, io: "input" | "output"): JsonSchema {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { io });
  return simplifiedObject(json);
}

/** Returns the schemas that a value may match, with references resolved. */
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
    // The keys of these objects are field names, not JSON Schema keywords.
    const isNamed = (keyword === "properties" || keyword === "$defs") && isJsonObject(value);
    parts[keyword] = isNamed ? mapped(value) : simplified(value);
  }
  // Some clients refuse an object schema that has neither `properties` nor `additionalProperties`.
  if (parts.type === "object" && parts.properties === undefined && parts.additionalProperties === undefined) {
    parts.additionalProperties = true;
  }
  if (!Array.isArray(parts.type)) return parts;
  // Some clients support only one type in `type`.
  const { type, ...rest } = parts;
  return { ...rest, anyOf: parts.type.map((one: unknown) => ({ type: one })) };
}

function mapped(named: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, simplified(schema)]));
}

/**
 * Returns whether a keyword only repeats a default: the bounds of `z.int()`, or that further or no properties are
 * allowed.
 */
function saysNothing(keyword: string, value: unknown): boolean {
  if (keyword === "minimum") return value === Number.MIN_SAFE_INTEGER;
  if (keyword === "maximum") return value === Number.MAX_SAFE_INTEGER;
  const isEmpty = isJsonObject(value) && Object.keys(value).length === 0;
  return isEmpty && (keyword === "additionalProperties" || keyword === "properties");
}

const [QUOTE = 0, BACKSLASH = 0, COLON = 0, COMMA = 0, SPACE = 0] = Buffer.from('"\\:, ');
const [OPEN_LIST = 0, CLOSE_LIST = 0, OPEN_OBJECT = 0, CLOSE_OBJECT = 0] = Buffer.from("[]{}");

/** The maximum number of values in one message. Each parsed value takes many times its size in bytes. */
export const MAX_VALUES = 1_000_000;
/** The maximum number of fields of one object. No tool accepts as many. */
export const MAX_MEMBERS = 10_000;

/**
 * Counts the values that parsing a JSON text would create, without parsing it. Stops slightly above `most`. For invalid
 * JSON, counts at least the values before the error.
 */
export function valuesIn(json: Uint8Array, most: number): number {
  let values = 0;
  // A field name counts as a value until its colon follows, so the count may be too high by one.
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
 * Counts the fields of the largest object in a JSON text, up to one more than `most`. Fields of an object need far more
 * time to parse than entries of a list.
 */
export function membersIn(json: Uint8Array, most: number): number {
  /** The numbers of fields of the objects that are open at this position, outermost first. */
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
