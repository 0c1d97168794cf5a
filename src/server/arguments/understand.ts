import { ToolError } from "../../tools/definition.ts";
import { itemFields } from "./absent.ts";
import { formsOf, isSchema, type JsonSchema } from "./json-schema.ts";
import { MOST_MEMBERS, MOST_VALUES, membersIn, valuesIn } from "./json-values.ts";

const REMEDY = "Send the items in several calls, and as JSON arrays rather than as texts.";

/** How many objects and arrays may stand in one another: far more than any tool takes. */
export const DEEPEST = 64;

/** Whether data is nested so deep, in more than so many levels, that walking through it is a danger. */
export function isTooDeep(given: unknown, levels = DEEPEST): boolean {
  if (typeof given !== "object" || given === null) return false;
  return levels === 0 || Object.values(given).some((value) => isTooDeep(value, levels - 1));
}

/** One reading of arguments. */
interface Reading {
  readonly root: JsonSchema;
  /** How many values may still be read from texts. */
  left: number;
}

/**
 * Reads arguments as they were meant: where the schema takes no text, a text that holds a JSON array or object, a
 * number, or true or false, becomes what it holds, at any depth; one of several words in another case becomes that word,
 * and fields of items that hold `null` and cannot are left out. What cannot be read stays as it is. Throws a ToolError
 * where the texts hold too much.
 */
export function understood(given: unknown, schema: JsonSchema): unknown {
  return read(given, schema, { root: schema, left: MOST_VALUES });
}

function read(value: unknown, schema: JsonSchema, reading: Reading): unknown {
  const forms = formsOf(schema, reading.root);
  if (typeof value === "string") return fromText(value, forms, reading);
  if (Array.isArray(value)) {
    const items = forms.find((form) => form.type === "array")?.items;
    return isSchema(items) ? value.map((item) => read(item, items, reading)) : value;
  }
  if (typeof value !== "object" || value === null) return value;
  const form = forms.find((one) => isSchema(one.properties));
  const properties = form?.properties;
  if (form === undefined || !isSchema(properties) || !isSchema(value)) return value;
  const readField = ([name, field]: [string, unknown]): [string, unknown] => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return [name, isSchema(known) ? read(field, known, reading) : field];
  };
  const fields = schema === reading.root ? value : itemFields(value, form, reading.root);
  return Object.fromEntries(Object.entries(fields).map(readField));
}

function fromText(text: string, forms: readonly JsonSchema[], reading: Reading): unknown {
  const words = forms.length === 1 ? forms[0]?.enum : undefined;
  if (Array.isArray(words))
    return words.find((word) => String(word).toLowerCase() === text.trim().toLowerCase()) ?? text;
  if (forms.length === 0 || forms.some((form) => form.type === "string" || form.type === undefined)) return text;
  const parsed = parseJson(text.trim(), reading);
  const form = forms.find(({ type }) => isOfType(parsed, type));
  return form === undefined ? text : read(parsed, form, reading);
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isSchema(value);
  if (type === "integer") return typeof value === "number";
  return (type === "boolean" || type === "number") && typeof value === type;
}

function parseJson(text: string, reading: Reading): unknown {
  const json = Buffer.from(text);
  reading.left -= valuesIn(json, reading.left);
  if (membersIn(json, MOST_MEMBERS) > MOST_MEMBERS)
    throw new ToolError(`an object in the texts of the arguments has more than ${MOST_MEMBERS} members`);
  if (reading.left < 0) throw new ToolError(`the texts in the arguments hold more than ${MOST_VALUES} values`, REMEDY);
  try {
    const parsed: unknown = JSON.parse(text);
    return isTooDeep(parsed) ? undefined : parsed;
  } catch {
    return undefined;
  }
}
