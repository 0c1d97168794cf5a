import * as z from "zod";
import { isJsonObject } from "../platform/json.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Returns a short JSON Schema that strict clients accept. */
export function advertised(schema: z.ZodObject, io: "input" | "output"): JsonSchema {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { io });
  return simplifiedObject(json);
}

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
    const isNamed = (keyword === "properties" || keyword === "$defs") && isJsonObject(value);
    parts[keyword] = isNamed
      ? Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, simplified(schema)]))
      : simplified(value);
  }
  // Adds `additionalProperties` if needed: some clients refuse an object schema that has neither that nor `properties`.
  if (parts.type === "object" && parts.properties === undefined && parts.additionalProperties === undefined) {
    parts.additionalProperties = true;
  }
  if (!Array.isArray(parts.type)) return parts;
  // Several types become alternatives, because some clients support only one type in `type`.
  const { type, ...rest } = parts;
  return { ...rest, anyOf: parts.type.map((one: unknown) => ({ type: one })) };
}

/**
 * Returns whether a keyword only repeats a default: the bounds of `z.int()`, and empty `additionalProperties` and
 * `properties`.
 */
function saysNothing(keyword: string, value: unknown): boolean {
  if (keyword === "minimum") return value === Number.MIN_SAFE_INTEGER;
  if (keyword === "maximum") return value === Number.MAX_SAFE_INTEGER;
  const isEmpty = isJsonObject(value) && Object.keys(value).length === 0;
  return isEmpty && (keyword === "additionalProperties" || keyword === "properties");
}

const [QUOTE = 0, BACKSLASH = 0, COLON = 0, COMMA = 0, SPACE = 0] = Buffer.from('"\\:, ');
const [OPEN_LIST = 0, CLOSE_LIST = 0, OPEN_OBJECT = 0, CLOSE_OBJECT = 0] = Buffer.from("[]{}");

/** The most values of one message. Each takes many times its size in bytes when parsed. */
export const MAX_VALUES = 1_000_000;
/** The most fields of one object. No tool accepts as many. */
export const MAX_MEMBERS = 10_000;

/**
 * Counts the values of a JSON text, without parsing it, up to slightly above `most`. Invalid JSON: at least those
 * before the error.
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

/** Counts the fields of the largest object, up to `most` + 1. They take far longer to parse than entries of a list. */
export function membersIn(json: Uint8Array, most: number): number {
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
  const opens = byte === QUOTE || byte === COLON || byte === OPEN_LIST || byte === OPEN_OBJECT;
  return opens || byte <= SPACE || byte === COMMA || byte === CLOSE_LIST || byte === CLOSE_OBJECT;
}
